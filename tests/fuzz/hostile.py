#!/usr/bin/env python3
"""Models from strangers, tried by a worker with oracles (untrusted.c): hostile.py WORKER [--plugin SIM] [--executions N] ...

Seeds are the standard's own cases and generated graphs; mutate.py changes them. An execution loads, saves, makes sessions, runs; what
ends the worker is a finding: a signal, a sanitizer's report, a hang, a broken promise, a leak at the end. Each is made smaller and, with
--keep, written to a folder as NAME-SEED.onnx; tests/fuzz/untrusted holds such files, and they run first. --executions 1000000 is a
long run; several processes with different --first share it. On a build with sanitizers it finds most.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import pickle
import struct
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from harness import check, finish, packages  # noqa: E402

np, onnx, _ = packages("numpy", "onnx", "ml_dtypes")
from cases import Died, Worker, block, take_apart  # noqa: E402
from generate import generate  # noqa: E402
from mutate import Mutator  # noqa: E402

MAX_SEED = 20000  # bytes: what is larger is slow, and no richer
AHEAD = 8  # models that wait for the worker


def seeds(standard: bool) -> list[bytes]:
    from onnx.backend.test.loader import load_node_model_tests
    out = [take_apart(generate(1_000_000 + i)[0]).model.SerializeToString() for i in range(800)]
    if standard:
        with np.errstate(all="ignore"):
            cases = load_node_model_tests()
        out += [c.model.SerializeToString() for c in cases]
    data = Path(onnx.__file__).parent / "backend" / "test" / "data"
    out += [p.read_bytes() for kind in ("simple", "pytorch-operator", "pytorch-converted") for p in sorted((data / kind).glob("*/model.onnx"))]
    return [s for s in out if len(s) <= MAX_SEED]


def kept_seeds(path: Path | None, standard: bool) -> list[bytes]:
    if path and path.is_file():
        return pickle.loads(path.read_bytes())
    out = seeds(standard)
    if path:
        path.write_bytes(pickle.dumps(out))
    return out


class Fuzzer:
    def __init__(self, worker: Worker):
        self.worker = worker
        self.statuses = collections.Counter()

    def ask(self, data: bytes, seed: int) -> None:
        self.worker.send(b"H" + block(data) + struct.pack("<I", seed & 0xFFFFFFFF))

    def answer(self) -> None:
        self.statuses[self.worker.read_number()] += 1
        self.worker.read_block()

    def why(self, data: bytes, seed: int) -> str:
        try:
            self.ask(data, seed)
            self.answer()
        except Died as died:
            return str(died)
        return ""


def headline(why: str) -> str:
    """What kind of end it was: two files with one headline are one finding."""
    lines = [x.strip() for x in why.splitlines()]
    frames = [x.split(" in ")[1].split("(")[0].split(" /")[0] for x in lines if x.startswith("#") and " in " in x and "/usr" not in x]
    first = next((x for x in lines if "ERROR" in x or "runtime error" in x), lines[0] if lines else "")
    return (first.split(" on address")[0].split("==")[-1] + " | " + " < ".join(frames[:4]))[:300]


def smaller(fuzzer: Fuzzer, data: bytes, seed: int, why: str) -> bytes:
    """Parts taken away while it ends in the same way."""
    try:
        m = onnx.ModelProto.FromString(data)
    except Exception:  # bytes were changed
        return data
    goal = headline(why)

    def still(candidate: onnx.ModelProto) -> bool:
        return headline(fuzzer.why(candidate.SerializeToString(), seed)) == goal

    again, tried = True, 0
    while again and tried < 300:
        again = False
        fields = [m.functions, m.metadata_props, m.graph.node, m.graph.output, m.graph.input, m.graph.initializer, m.graph.value_info,
                  m.graph.sparse_initializer, *(n.attribute for n in m.graph.node)]
        for k, field in enumerate(fields):
            for i in reversed(range(len(field))):
                candidate = onnx.ModelProto.FromString(m.SerializeToString())
                del [candidate.functions, candidate.metadata_props, candidate.graph.node, candidate.graph.output, candidate.graph.input,
                     candidate.graph.initializer, candidate.graph.value_info, candidate.graph.sparse_initializer,
                     *(n.attribute for n in candidate.graph.node)][k][i]
                tried += 1
                if still(candidate):
                    m, again = candidate, True
                    break
            if again:
                break
    return m.SerializeToString()


def shown(data: bytes) -> str:
    try:
        return str(onnx.ModelProto.FromString(data))
    except Exception:  # bytes were changed
        return repr(data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worker")
    parser.add_argument("--plugin", help="the module of provider sim")
    parser.add_argument("--executions", type=int, default=20000)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first execution")
    parser.add_argument("--seconds", type=float, help="stop after so many")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--standard", action="store_true", default=True, help="seeds of the standard's, too, which take seconds to read")
    which.add_argument("--generated", dest="standard", action="store_false")
    parser.add_argument("--seeds", type=Path, help="a file that keeps the seeds: made when it is not there, then read")
    parser.add_argument("--keep", type=Path, help="folder for what is found")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    options = parser.parse_args()
    command = [options.worker, *(["--plugin", options.plugin] if options.plugin else [])]
    fuzzer = Fuzzer(Worker(command))
    for path in sorted((HERE / "untrusted").glob("*.onnx")):
        check(path.stem, lambda path=path: fuzzer.why(path.read_bytes(), int(path.stem.rpartition("-")[2])))
    begun = time.monotonic()
    known = kept_seeds(options.seeds, options.standard)
    ready = time.monotonic()
    found: dict[str, tuple[int, bytes, str]] = {}
    pending: collections.deque[tuple[int, bytes]] = collections.deque()
    done = 0

    def settle() -> None:
        """The oldest that was asked; those behind one that ended the worker are asked again."""
        seed, data = pending.popleft()
        try:
            fuzzer.answer()
        except Died as died:
            found.setdefault(headline(str(died)), (seed, data, str(died)))
            for other, bytes_ in pending:
                fuzzer.ask(bytes_, other)

    changed = itertools.chain.from_iterable(Mutator(seed, known).models() for seed in itertools.count(options.first))
    for seed in range(options.first, options.first + options.executions):
        if options.seconds and time.monotonic() - ready > options.seconds:
            break
        data = next(changed)  # while the worker is at those before
        if len(pending) == AHEAD:
            settle()
        fuzzer.ask(data, seed)
        pending.append((seed, data))
        done += 1
    while pending:
        settle()
    leaks = fuzzer.worker.close()
    for i, (kind, (seed, data, why)) in enumerate(found.items()):
        data = smaller(fuzzer, data, seed, why) if options.shrink else data
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"found{i}-{seed}.onnx").write_bytes(data)
        check(f"execution {seed}", lambda: f"{why}\n{shown(data)}"[:6000])
    check(f"{done} executions", lambda: leaks or ("" if done else "none"))
    loaded = sum(n for s, n in fuzzer.statuses.items() if s == 0)
    check("one in ten runs", lambda: "" if 10 * loaded >= done else f"only {loaded} of {done}")
    print(f"{done} executions of {len(known)} seeds in {time.monotonic() - ready:.0f} s ({ready - begun:.0f} s to read seeds); "
          f"{len(found)} findings; statuses {dict(sorted(fuzzer.statuses.items()))}")
    return finish()


if __name__ == "__main__":
    sys.exit(main())
