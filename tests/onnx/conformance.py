#!/usr/bin/env python3
"""Counts of the standard's suite, for ortc on ref, cpu and sim and for onnxruntime, by category: what docs/conformance.md says.

usage: conformance.py ORTC SIM_PLUGIN SUITE_FOLDER >docs/conformance.md

The cases are those of make_suite.py, all kinds, written into SUITE_FOLDER where it is empty, with the suite's own tolerances.
ortc runs each category in one process. onnxruntime runs case after case in a process that is started anew when it dies; it reads
the same files, through its Python interface, with numpy's comparison. Inputs of types that this interface cannot be fed (2 and 4
bits, float8, bfloat16) are made constants of the model, and such results are read where they lie.
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from harness import packages  # noqa: E402

np, onnx, onnxruntime, ml_dtypes = packages("numpy", "onnx", "onnxruntime", "ml_dtypes")
from make_suite import KINDS  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

NAMES = {"node": "node: single operators", "simple": "simple: small graphs", "real": "real: image networks", "pytorch-converted": "pytorch-converted", "pytorch-operator": "pytorch-operator"}


# ---- onnxruntime, in a process of its own


def parsed(path: Path, kind: str):
    data = path.read_bytes()
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    if kind == "map_type":
        return numpy_helper.to_dict(onnx.MapProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def same(got, want, rtol: float, atol: float, only_shape: bool) -> bool:
    if want is None or isinstance(want, (list, dict)):
        if not isinstance(want, list):
            return got == want
        return len(got) == len(want) and all(same(g, w, rtol, atol, only_shape) for g, w in zip(got, want))
    got = np.asarray(got)
    if got.shape != want.shape or (want.dtype != object and got.dtype != want.dtype):
        return False
    if want.dtype == object or want.dtype.kind in "SU":
        return bool((got.astype(str) == want.astype(str)).all())
    if foreign(want):
        got, want = got.astype(np.float64), want.astype(np.float64)
    return only_shape or np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True)


def foreign(array) -> bool:
    """Of a type that numpy has from ml_dtypes."""
    return isinstance(array, np.ndarray) and array.dtype.isbuiltin == 2


def results_of(session, feeds: dict, outputs: list) -> list:
    if not any(helper.tensor_dtype_to_np_dtype(o.type.tensor_type.elem_type).isbuiltin == 2 for o in outputs if o.type.WhichOneof("value") == "tensor_type"):
        return session.run(None, feeds)
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_cpu_input(name, np.ascontiguousarray(array))
    for o in outputs:
        binding.bind_output(o.name)
    session.run_with_iobinding(binding)
    results = []
    for v in binding.get_outputs():
        t, shape = v.element_type(), v.shape()
        raw = ctypes.string_at(v.data_ptr(), v.tensor_size_in_bytes())
        results.append(numpy_helper.to_array(onnx.TensorProto(data_type=t, dims=shape, raw_data=raw)))
    return results


def run_case(folder: Path) -> bool:
    model = onnx.load(folder / "model.onnx")
    terms = json.loads((folder / "tolerance.json").read_text())
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = None
    constants = {i.name for i in model.graph.initializer}
    given = list(model.graph.input)
    for data in sorted(folder.glob("test_data_set_*")):
        files = len(list(data.glob("input_*.pb")))
        inputs = [i for i in given if files == len(given) or i.name not in constants]
        feeds = {}
        for k, info in enumerate(inputs):
            if (data / f"input_{k}.pb").is_file():
                feeds[info.name] = parsed(data / f"input_{k}.pb", info.type.WhichOneof("value"))
        for name in [n for n, a in feeds.items() if foreign(a)]:
            model.graph.initializer.append(numpy_helper.from_array(feeds.pop(name), name))
            model.graph.input.remove(next(i for i in model.graph.input if i.name == name))
            session = None
        if session is None:
            session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = results_of(session, feeds, model.graph.output)
        for k, info in enumerate(model.graph.output):
            if (data / f"output_{k}.pb").is_file():
                want = parsed(data / f"output_{k}.pb", info.type.WhichOneof("value"))
                if not same(results[k], want, terms["rtol"], terms["atol"], terms.get("compare") == "shape"):
                    return False
    return True


def serve() -> None:
    """Answers a folder on each line with whether it passes."""
    for line in sys.stdin:
        try:
            verdict = run_case(Path(line.strip()))
        except Exception:  # not loaded, not fed, not run: it does not pass
            verdict = False
        print(int(verdict), flush=True)


def count_theirs(folders: list[Path]) -> int:
    passed, server = 0, None
    for folder in folders:
        if server is None:
            server = subprocess.Popen([sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            server.stdin.write(f"{folder}\n")
            server.stdin.flush()
            answer = server.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            server.kill()
            server = None
        passed += answer.strip() == "1"
    if server:
        server.stdin.close()
        server.wait()
    return passed


# ---- ortc


def count_ours(ortc: str, folder: Path, provider: str, *more: str) -> int:
    done = subprocess.run([ortc, "test", str(folder), "--provider", provider, "-q", *more], capture_output=True, text=True)
    found = re.search(r"(\d+) passed, \d+ failed, \d+ skipped\s*$", done.stdout)
    if not found:
        raise RuntimeError(done.stdout[-1000:] + done.stderr[-1000:])
    return int(found[1])


def contrib(ortc: str) -> None:
    """Which of com.microsoft's operators are there."""
    from onnxruntime.capi import onnxruntime_pybind11_state as theirs

    table = subprocess.run([ortc, "ops", "--markdown", "--provider", "ref,cpu"], capture_output=True, text=True, check=True).stdout
    ours = {line.split("|")[1].strip().partition(":")[2] for line in table.splitlines() if line.startswith("| com.microsoft:")}
    known = {o.name for o in theirs.get_all_operator_schema() if o.domain == "com.microsoft"}
    runs = {k.op_name for k in theirs.get_all_opkernel_def() if k.domain == "com.microsoft" and k.provider == "CPUExecutionProvider"}
    print("\n## Operators of com.microsoft\n")
    print(f"Of {len(known)} that onnxruntime {onnxruntime.__version__} has a schema of there are {len(known & ours)}; of {len(runs)} that its CPU has kernels for,")
    print(f"{len(runs & ours)}. What they make is compared with it, over their attributes, by `tests/python/test_contrib.py` and `test_search.py`; of forms that its CPU")
    print("does not have numpy says what its schema does. Not there:\n")
    print(f"- that its CPU has: {', '.join(sorted(runs - ours))}")
    print(f"- others: {', '.join(sorted(known - runs - ours))}")


def main() -> None:
    ortc, sim, suite = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if not all((suite / kind).is_dir() for kind in KINDS):
        subprocess.run([sys.executable, str(HERE.parent / "python" / "make_suite.py"), str(suite), "--kinds", ",".join(KINDS)], check=True)
    version = subprocess.run([ortc, "--version"], capture_output=True, text=True, check=True).stdout.strip().splitlines()[0]
    rows, totals = [], [0] * 5
    for kind in KINDS:
        cases = sorted(p.parent for p in (suite / kind).rglob("model.onnx"))
        row = [len(cases), count_ours(ortc, suite / kind, "ref"), count_ours(ortc, suite / kind, "cpu"),
               count_ours(ortc, suite / kind, "sim", "--plugin", sim), count_theirs(cases)]  # fmt: skip
        print(kind, row, file=sys.stderr, flush=True)
        rows.append((NAMES[kind], row))
        totals = [a + b for a, b in zip(totals, row)]
    print("# Conformance\n")
    print("Written by `tests/onnx/conformance.py build/ortc build/providers/sim/sim_c.so FOLDER`. Cases of the standard's own suite that pass, with its own")
    print(f"tolerances (rtol 1e-3, atol 1e-7), of onnx {onnx.__version__}: {version}, and onnxruntime {onnxruntime.__version__} on its CPU provider through its Python interface.")
    print("Of random operators only type and shape are compared.\n")
    print("| category | cases | ortc ref | ortc cpu | ortc sim | onnxruntime |\n|---|---|---|---|---|---|")
    for name, row in [*rows, ("all", totals)]:
        print("| " + " | ".join([name, *map(str, row)]) + " |")
    print("\nWhat does not pass:\n")
    for line in (HERE / "known-failures.txt").read_text().splitlines():
        name, _, why = line.partition(" ")
        print(f"- {name}: {why}")
    print("- simple/test_gradient_of_add, simple/test_gradient_of_add_and_mul: Gradient, of the preview of training, is not there.")
    contrib(ortc)


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main()
