#!/usr/bin/env python3
"""ortc, onnxruntime and OpenVINO alternately on the networks of tests/models/networks.py, or on files: build/venv/bin/python tests/bench/peers.py BUILD

Needs numpy, onnx and onnxruntime; OpenVINO is left out where it is not installed (pip install openvino). For each network and number of
threads: milliseconds of a run (medians, or --percentile; a round is about half a second of each in turn), milliseconds from the begin of the process, imports
left out, to the first result and what of it is not that run, ortc's second run, which packs large weights for good, MiB of memory at most
above that at the begin, and of each the ratio of the best peer's to ortc's: above 1 ortc is better. "floor" is the time that the products'
operations take at the machine's peak (of fused multiply-adds in f32), or the reading of the weights, whichever is longer, and its share of
ortc's time. Results are compared with onnxruntime's (OpenVINO's where it has no kernels): the largest difference over the largest value.
Last come geometric means by group.
Exit status: 1 where results differ.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

BF16_FAR = 5e-2  # of the largest value: each product rounds its operands to 8 bits

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / d) for d in ("python", "models")]
from harness import packages  # noqa: E402

np, onnx, _ = packages("numpy", "onnx", "onnxruntime")
import networks  # noqa: E402
from networks import Network  # noqa: E402


class Runner:
    """A runtime in a process of its own, which has run the model once."""

    def __init__(self, command: list[str]):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read().strip()[-400:] or "nothing said")
        self.load, self.run_once, self.first = map(float, line.split())

    def ask(self, runs: int) -> list[float]:
        """Microseconds of so many runs; of none the KiB of memory."""
        self.process.stdin.write(f"{runs}\n")
        self.process.stdin.flush()
        return [float(v) for v in self.process.stdout.readline().split()]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


def alternate(commands: dict[str, list[str]], rounds: int, seconds: float, starts: int, percentile: float = 50) -> dict[str, dict[str, float]]:
    """Of each runtime: latency (that percentile of its runs), first, beside (the first result less a run) and second (run) in milliseconds, memory in MiB; or "failed"."""
    told: dict[str, dict] = {name: {} for name in commands}
    runners: dict[str, Runner] = {}
    firsts: dict[str, list[float]] = {name: [] for name in commands}
    order = [*commands]
    for turn in range(starts):
        for name in order:
            if "failed" in told[name]:
                continue
            try:
                runner = Runner(commands[name])
            except RuntimeError as e:
                told[name]["failed"] = str(e)
                continue
            firsts[name].append(runner.first)
            if turn + 1 < starts:
                runner.close()
            else:
                runners[name] = runner
        order.append(order.pop(0))  # the first of a turn may get memory that the machine never touched
    times: dict[str, list[float]] = {name: [] for name in runners}
    second: dict[str, float] = {}
    counts = dict.fromkeys(runners, 1)
    for turn in range(rounds + 1):
        for name, runner in runners.items():
            time.sleep(0.1)  # until the threads of the one before are asleep
            got = runner.ask(counts[name])
            second.setdefault(name, got[0] / 1e3)
            counts[name] = max(1, min(20000, int(seconds * 1e6 / statistics.median(got))))
            if turn:
                times[name] += got
    for name, runner in runners.items():
        latency, first = float(np.percentile(times[name], percentile)) / 1e3, statistics.median(firsts[name])
        told[name] = {"latency": latency, "first": first, "beside": max(first - latency, 0.01), "second": second[name], "memory": runner.ask(0)[0] / 1024}
        runner.close()
    return told


# ---- What the arithmetic takes at least ----


def flops(model: onnx.ModelProto, dims: dict[str, int]) -> float:
    """Two for each multiplication and addition of products, convolutions and recurrent layers."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for i in [*fixed.graph.input, *fixed.graph.output]:
        for d in i.type.tensor_type.shape.dim:
            if d.dim_param in dims:
                d.dim_value = dims[d.dim_param]
    try:
        known = onnx.shape_inference.infer_shapes(fixed, data_prop=True).graph
    except onnx.shape_inference.InferenceError:  # of a converter that left the types of before
        del fixed.graph.value_info[:]
        known = onnx.shape_inference.infer_shapes(fixed, data_prop=True).graph
    shapes = {t.name: list(t.dims) for t in known.initializer}
    shapes |= {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in [*known.input, *known.value_info, *known.output]}
    rows, total = dims.get("batch", 1) * dims.get("length", 1), 0.0
    for n in known.node:
        a, b = (shapes.get(i, []) for i in (list(n.input) + ["", ""])[:2])
        y, attribute = shapes.get(n.output[0], []), {a.name: a for a in n.attribute}
        if n.op_type in ("Conv", "ConvInteger", "QLinearConv"):
            total += 2 * math.prod(y) * math.prod(b[1:])
        elif n.op_type == "ConvTranspose":
            total += 2 * math.prod(a) * math.prod(b[1:])
        elif n.op_type in ("MatMul", "MatMulInteger"):  # behind operators whose shapes are not inferred: by the weights
            total += 2 * (math.prod(y) * b[-2] if y and all(y) else rows * math.prod(b)) if len(b) > 1 else 0
        elif n.op_type == "Gemm":
            total += 2 * math.prod(b) * (a[0] if a and a[0] else rows)
        elif n.op_type in ("LSTM", "GRU"):
            total += 2 * a[0] * a[1] * (math.prod(b) + math.prod(shapes[n.input[2]]))
        elif n.op_type == "MatMulNBits":
            total += 2 * rows * attribute["K"].i * attribute["N"].i
    return total


@dataclass
class Machine:
    rates: dict[int, tuple[float, float]] = field(default_factory=dict)

    def floor(self, build: Path, threads: int, network: Network, model: onnx.ModelProto) -> float:
        """Milliseconds. Weights that no cache holds are read in every run, but for tables of which rows are gathered."""
        if threads not in self.rates:
            done = subprocess.run([build / "tests/bench/bench_peak", str(threads)], capture_output=True, text=True, check=True)
            self.rates[threads] = tuple(float(v) for v in done.stdout.split())
        peak, read = self.rates[threads]
        whole = {i for n in model.graph.node for at, i in enumerate(n.input) if n.op_type != "Gather" or at}
        size = sum(len(t.raw_data) for t in model.graph.initializer if t.name in whole)
        products = 0 if network.group == "int8" else flops(model, network.dims) / peak
        return max(products, size / read if size > 64e6 else 0) * 1e-6


# ---- One network ----


def commands(a: argparse.Namespace, network: Network, model: onnx.ModelProto, feeds: dict, folder: Path, threads: int) -> dict[str, list[str]]:
    file = f"{folder}/m.onnx"
    words = [f"in={folder}/in.bin"] + ["clock=cpu"] * a.processor
    if network.tied:
        ties = [o.name for o in model.graph.output if o.name.startswith("present.")]
        words += [f"tie={o.replace('present', 'past_key_values', 1)}:{o}:2:{network.dims['capacity']}" for o in ties]
    inputs = [f"input={n}:{v.dtype}:{'x'.join(map(str, v.shape))}" for n, v in feeds.items()]
    made = {"ortc": [f"{a.build}/tests/bench/bench_model", file, "cpu", str(threads), *words, f"out={folder}/ortc.bin", f"precision={a.precision}", *(f"{k}={v}" for k, v in network.dims.items())]}
    for peer in a.peers:
        made[peer] = [a.python or sys.executable, str(HERE / "peer_runner.py"), peer, file, str(threads), *words, *inputs, f"out={folder}/{peer}.bin", f"precision={a.precision}"]
    return made


def differences(network: Network, model: onnx.ModelProto, feeds: dict, folder: Path, ran: list[str]) -> dict[str, float]:
    """Of the results of each peer and ortc: the largest over all outputs, over the largest value of the output. Types as the model's."""
    ours = np.fromfile(folder / "ortc.bin", np.uint8)
    kinds = [onnx.helper.tensor_dtype_to_np_dtype(o.type.tensor_type.elem_type) for o in model.graph.output if not (network.tied and o.name.startswith("present."))]
    told = {}
    for peer in ran:
        theirs = np.fromfile(folder / f"{peer}.bin", np.uint8)
        if len(theirs) != len(ours) or len(set(kinds)) != 1:
            told[peer] = math.inf
            continue
        x, y = (b.view(kinds[0]).astype(np.float64) for b in (ours, theirs))
        far = float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-30))
        told[peer] = far if np.isfinite(far) else math.inf
    return told


def measured(a: argparse.Namespace, network: Network, machine: Machine) -> list[dict]:
    rows = []
    with tempfile.TemporaryDirectory(dir=a.folder) as name:
        folder = Path(name)
        model = network.model()
        feeds = network.feeds(model)
        onnx.save(model, folder / "m.onnx")
        with open(folder / "in.bin", "wb") as f:
            for v in feeds.values():
                f.write(v.tobytes())
        floors = {t: machine.floor(a.build, t, network, model) for t in a.threads}
        slim = onnx.ModelProto(graph=onnx.GraphProto(input=model.graph.input, output=model.graph.output))
        del model
        for threads in a.threads:
            told = alternate(commands(a, network, slim, feeds, folder, threads), a.rounds, a.seconds, a.starts, a.percentile)
            ran = [p for p in a.peers if "failed" not in told[p]]
            row = {"group": network.group, "network": network.name, "threads": threads, "floor": floors[threads], **told}
            if "failed" not in told["ortc"] and ran:
                row["difference"] = differences(network, slim, feeds, folder, ran)
                row["ratio"] = {k: min(told[p][k] for p in ran) / told["ortc"][k] for k in ("latency", "first", "beside", "memory")}
                row["wrong"] = not min(row["difference"].values()) < max(network.far, BF16_FAR * (a.precision == "bf16"))
            rows.append(row)
            print(line(row, a.peers), flush=True)
    return rows


# ---- What is printed ----


def line(row: dict, peers: list[str]) -> str:
    text = f"{row['network']:18}{row['threads']:2} "
    if "ratio" not in row:
        return text + "; ".join(f"{k}: {v['failed']}" for k, v in row.items() if isinstance(v, dict) and "failed" in v)
    r, ours = row["ratio"], row["ortc"]
    best = [f"{row[p]['latency']:9.3f}" if p in row and "failed" not in row[p] else f"{'-':>9}" for p in peers]
    floor = f"{row['floor']:8.2f} {row['floor'] / ours['latency']:4.0%}" if row["floor"] else f"{'-':>8} {'':4}"
    text += f"{ours['latency']:9.3f} {' '.join(best)} {r['latency']:6.2f} {floor}"
    text += f" {ours['first']:8.1f} {r['first']:5.2f} {r['beside']:6.2f} {ours['second']:7.1f} {ours['memory']:7.1f} {r['memory']:5.2f} {min(row['difference'].values()):8.1e}"
    return text + (" WRONG" if row["wrong"] else "")


def header(peers: list[str]) -> str:
    names = " ".join(f"{p[:9]:>9}" for p in peers)
    return f"{'network':17}thr {'ortc ms':>8} {names}  ratio {'floor':>8}      {'first':>8} ratio beside {'second':>7} {'MiB':>7} ratio differs"


def means(rows: list[dict]) -> list[str]:
    told = []
    for group in dict.fromkeys(r["group"] for r in rows):
        for threads in sorted({r["threads"] for r in rows}):
            some = [r["ratio"] for r in rows if r["group"] == group and r["threads"] == threads and "ratio" in r]
            if some:
                mean = {k: math.exp(sum(math.log(max(r[k], 1e-6)) for r in some) / len(some)) for k in some[0]}
                told.append(f"{group:12} {threads} threads: latency {mean['latency']:.2f} (lowest {min(r['latency'] for r in some):.2f}), "
                            f"first {mean['first']:.2f}, beside {mean['beside']:.2f}, memory {mean['memory']:.2f}")  # fmt: skip
    return told


def main(among: tuple[Network, ...] = networks.NETWORKS) -> int:
    words = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("build", type=Path)
    words.add_argument("--only", default="", help='parts of "group/name", separated by commas')
    words.add_argument("--files", type=Path, nargs="+", metavar="MODEL", help="these in place of the networks, as the group \"files\"; integers of their inputs are 0 and 1")
    words.add_argument("--set", type=lambda t: (t.split("=")[0], int(t.split("=")[1])), nargs="+", default=[], metavar="NAME=N", help="extents that the files leave open")
    words.add_argument("--threads", default="1,2", type=lambda t: [int(n) for n in t.split(",")])
    words.add_argument("--rounds", type=int, default=7)
    words.add_argument("--seconds", type=float, default=0.5, help="of a round of one runtime")
    words.add_argument("--percentile", type=float, default=50, help="of the runs of each runtime that is its latency: a low one where others take a part of the processors at times")
    words.add_argument("--starts", type=int, default=3, help="processes for the time to the first result")
    words.add_argument("--peers", default="", type=lambda t: t.split(",") if t else [])
    words.add_argument("--processor", action="store_true", help="latency is time of the processor: for one thread, where others are at work")
    words.add_argument("--python", default="", help="with the peers' packages, where it is not this one")
    words.add_argument("--precision", default="f32", choices=("f32", "bf16"), help="ortc's and OpenVINO's; onnxruntime has f32 alone")
    words.add_argument("--mask", choices=("avx2", "avx512"), help="the processor without what is beyond this (mask_cpu.c), for all of them")
    words.add_argument("--folder", help="where models are written")
    words.add_argument("--json", type=Path, help="write all figures")
    a = words.parse_args()
    if a.mask:  # of the processes that are started
        library = (a.build / "tests/bench/libmask_cpu.so").resolve()
        if not library.exists():  # which the loader would leave out
            words.error(f"{library} is not there: build it (ninja -C {a.build})")
        os.environ |= {"CPU_MASK": a.mask, "LD_PRELOAD": str(library)}
    if not a.peers:
        a.peers = ["onnxruntime"] + ["openvino"] * bool(a.python or importlib.util.find_spec("openvino"))
    if a.files:
        among = tuple(Network("files", f.stem, *[functools.partial(onnx.load, f)] * 2, dims=dict(a.set)) for f in a.files)
    machine, rows, begun = Machine(), [], time.time()
    print(header(a.peers), flush=True)
    for network in networks.chosen(a.only, among):
        rows += measured(a, network, machine)
    rates = "; ".join(f"{t} threads {g:.0f} GFLOP/s, {b:.1f} GB/s" for t, (g, b) in machine.rates.items())
    print("\n".join(means(rows)), f"\npeak: {rates}; {os.cpu_count()} processors; {time.time() - begun:.0f} s")
    if a.json:
        a.json.write_text(json.dumps({"machine": machine.rates, "rows": rows}, indent=1))
    wrong = [r["network"] for r in rows if r.get("wrong", True)]
    print(f"results differ: {', '.join(wrong)}" if wrong else "all results agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
