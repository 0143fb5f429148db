#!/usr/bin/env python3
"""What only the run knows: late extents, values that decide shapes, If, Loop; compared with onnxruntime: test_control.py ORTC.

Each model is run on several inputs of equal shapes and other values, on ref and on cpu, so that a plan that forgets what
decides a shape gives a wrong answer.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import harness

np, onnx, ort = harness.packages("numpy", "onnx", "onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

F, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
value = helper.make_tensor_value_info


def model(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(a, n) for n, a in initializers])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return made


def reshape_by_value():
    """A Reshape whose target is an input, then arithmetic on a shape that is computed."""
    made = model(
        [helper.make_node("Reshape", ["x", "target"], ["r"]), helper.make_node("Shape", ["r"], ["s"]),
         helper.make_node("Gather", ["s", "zero"], ["rows"]), helper.make_node("Unsqueeze", ["rows", "zero1"], ["rows1"]),
         helper.make_node("Concat", ["rows1", "minus1"], ["flat"], axis=0), helper.make_node("Reshape", ["r", "flat"], ["y"])],
        [value("x", F, ["n"]), value("target", I64, [2])], [value("y", F, None)],
        [("zero", np.int64(0)), ("zero1", np.array([0], np.int64)), ("minus1", np.array([-1], np.int64))])
    x = np.arange(12, dtype=np.float32)
    return made, [{"x": x, "target": np.array(t, np.int64)} for t in ([3, 4], [4, 3], [-1, 2], [12, 1])]


def detector_tail():
    """NonZero, Transpose, Gather on what was found, and an If on how much."""
    many = helper.make_graph([helper.make_node("ReduceMax", ["picked"], ["m"], keepdims=1, axes=[0])], "many", [],
                             [value("m", F, None)])
    few = helper.make_graph([helper.make_node("Mul", ["picked", "two"], ["d"])], "few", [], [value("d", F, None)])
    made = model(
        [helper.make_node("Greater", ["scores", "threshold"], ["keep"]), helper.make_node("NonZero", ["keep"], ["index"]),
         helper.make_node("Squeeze", ["index", "axis0"], ["flat"]), helper.make_node("Gather", ["boxes", "flat"], ["picked"]),
         helper.make_node("Shape", ["flat"], ["count"]), helper.make_node("Greater", ["count", "three"], ["is_many"]),
         helper.make_node("Squeeze", ["is_many", "axis0"], ["cond"]),
         helper.make_node("If", ["cond"], ["result"], then_branch=many, else_branch=few),
         helper.make_node("Add", ["result", "two"], ["y"])],
        [value("scores", F, ["n"]), value("boxes", F, ["n", 4])], [value("y", F, None), value("flat", I64, None)],
        [("threshold", np.float32(0.5)), ("axis0", np.array([0], np.int64)), ("three", np.array([3], np.int64)),
         ("two", np.float32(2))])
    rng = np.random.default_rng(1)
    return made, [{"scores": rng.random(9).astype(np.float32) * s, "boxes": rng.random((9, 4)).astype(np.float32)}
                  for s in (0.0, 0.6, 0.8, 1.0, 1.5)]


def growing_loop():
    """A Loop that concatenates (carried shapes grow), with a scan output, an outer value and an early end."""
    body = helper.make_graph(
        [helper.make_node("Concat", ["grown", "x"], ["grown_out"], axis=0), helper.make_node("Cast", ["i"], ["fi"], to=F),
         helper.make_node("Mul", ["fi", "x"], ["scan"]), helper.make_node("ReduceSum", ["grown_out"], ["sum"], keepdims=0),
         helper.make_node("Less", ["sum", "limit"], ["go"])],
        "body", [value("i", I64, []), value("c", BOOL, []), value("grown", F, [None, 3])],
        [value("go", BOOL, []), value("grown_out", F, [None, 3]), value("scan", F, [2, 3])])
    made = model([helper.make_node("Loop", ["trips", "", "start"], ["grown_last", "scans"], body=body),
                  helper.make_node("ReduceMean", ["grown_last"], ["y"], axes=[0], keepdims=0)],
                 [value("trips", I64, []), value("x", F, [2, 3]), value("start", F, [1, 3]), value("limit", F, [])],
                 [value("y", F, None), value("grown_last", F, None), value("scans", F, None)])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    start = np.ones((1, 3), np.float32)
    return made, [{"trips": np.int64(n), "x": x, "start": start, "limit": np.float32(limit)}
                  for n, limit in ((5, 1e9), (3, 1e9), (7, 40.0), (0, 1e9), (1, 0.0))]


def run_ortc(ortc: str, path: Path, feeds: dict, provider: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        command = [ortc, "run", str(path), "--provider", provider, "--out", str(Path(folder, "y.npz")), "--quiet",
                   "--repeat", "3"]  # a plan that is run again must not remember the run before
        for name, array in feeds.items():
            file = Path(folder, f"{name}.npy")
            np.save(file, array)
            command += ["--input", f"{name}={file}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        with np.load(Path(folder, "y.npz")) as arrays:
            return dict(arrays)


def steps(ortc: str, path: Path) -> str | None:
    done = subprocess.run([ortc, "info", str(path), "--steps"], capture_output=True, text=True, timeout=120)
    return None if done.returncode == 0 and "kernel" in done.stdout else f"exit status {done.returncode}\n{done.stderr}"


def compare(got: dict, expected: dict) -> str | None:
    for name, e in expected.items():
        g = got.get(name)
        if g is None or g.dtype != e.dtype or g.shape != e.shape:
            return f"'{name}': {None if g is None else (g.dtype, g.shape)} instead of {e.dtype, e.shape}"
        if not np.allclose(g, e, rtol=1e-5, atol=1e-6):
            return f"'{name}': {g} instead of {e}"
    return None


def main() -> int:
    ortc = sys.argv[1]
    for make in (reshape_by_value, detector_tail, growing_loop):
        made, feeds = make()
        reference = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        names = [o.name for o in reference.get_outputs()]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.onnx")
            onnx.save(made, path)
            if make is growing_loop:  # its first segment can be planned from shapes alone
                harness.check("info --steps of a segment", lambda: steps(ortc, path))
            for i, feed in enumerate(feeds):
                feed = {name: np.asarray(array) for name, array in feed.items()}
                expected = dict(zip(names, reference.run(None, feed)))
                for provider in ("ref", "cpu"):
                    harness.check(f"{make.__name__} {i} on {provider}",
                                  lambda: compare(run_ortc(ortc, path, feed, provider), expected))
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
