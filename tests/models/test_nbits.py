#!/usr/bin/env python3
"""Weights of 2, 4 and 8 bits as the standard writes them: test_nbits.py ORTC

A constant DequantizeLinear in front of MatMul or Gemm becomes MatMulNBits (graph/normalise/raise_nbits.c) in every form, or numbers
once when the model is loaded: never at a run. Results are those of the definition in double, on the cpu and on ref, and of the model
that `ortc optimize` writes, which has the standard's operators alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from harness import check, finish, packages  # noqa: E402

np, onnx, helper = packages("numpy", "onnx", "onnx.helper")
from onnx import TensorProto as T  # noqa: E402

ORTC = sys.argv[1]
RANGE = {T.INT4: (-8, 8), T.UINT4: (0, 16), T.INT8: (-128, 128), T.UINT8: (0, 256), T.INT2: (-2, 2), T.UINT2: (0, 4)}
ROWS = 3


def tensor(name: str, t: int, a):
    return helper.make_tensor(name, t, a.shape, a.ravel().tolist())


class Form:
    """x [3, k] times weights [k, n], or [n, k] where they are `turned`; scales "one", "each" (of n), or of blocks of so many of k."""

    def __init__(self, t, k, n, scales, zeros=False, turned=False, op="MatMul", bias=False, real=T.FLOAT, seed=1):
        rng = np.random.default_rng(seed)
        low, high = RANGE[t]
        along_k, shape = int(turned), [n, k] if turned else [k, n]
        self.block = scales if isinstance(scales, int) else 0
        of_scales = [] if scales == "one" else [n] if scales == "each" else [-(-d // self.block) if i == along_k else d for i, d in enumerate(shape)]
        w, s = rng.integers(low, high, shape), np.array(rng.uniform(0.01, 0.02, of_scales), np.float16)
        z = rng.integers(low, high, of_scales) if zeros else np.zeros(of_scales, int)
        self.x = rng.standard_normal((ROWS, k)).astype(np.float16 if real == T.FLOAT16 else np.float32)
        c = rng.standard_normal(n).astype(np.float16)
        attributes = {"axis": along_k, "block_size": self.block} if self.block else {"axis": 1 - along_k}
        weights = [tensor("w", t, w), tensor("s", real, s)] + [tensor("z", t, z)] * zeros + [tensor("c", real, c)] * bias
        nodes = [helper.make_node("DequantizeLinear", ["w", "s"] + ["z"] * zeros, ["d"], **attributes)]
        if op == "Gemm":
            nodes.append(helper.make_node("Gemm", ["x", "d"] + ["c"] * bias, ["y"], transB=along_k))
        else:
            nodes += [helper.make_node("Transpose", ["d"], ["e"], perm=[1, 0])] * turned
            nodes.append(helper.make_node("MatMul", ["x", "e" if turned else "d"], ["y"]))
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", real, [ROWS, k])],
                                  [helper.make_tensor_value_info("y", real, [ROWS, n])], weights)  # fmt: skip
        opset, ir = (25, 13) if t in (T.INT2, T.UINT2) else (21, 10)
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)

        def spread(a):
            a = np.asarray(a, np.float64)
            if self.block:
                return np.repeat(a, self.block, along_k).take(range(k), along_k)
            return (a[:, None] if turned else a[None, :]) if scales == "each" else a

        d = (w - spread(z)) * spread(s)
        self.want = self.x.astype(np.float64) @ (d.T if turned else d) + (c.astype(np.float64) if bias else 0)
        self.off = 3e-3 if real == T.FLOAT16 else 1e-5

    def problem(self, raised: bool) -> str | None:
        with tempfile.TemporaryDirectory() as folder:
            file, x, y, written = (f"{folder}/{name}" for name in ("m.onnx", "x.npy", "y.npy", "o.onnx"))
            onnx.save(self.model, file)
            np.save(x, self.x)
            plan = subprocess.run([ORTC, "info", file, "--provider", "cpu", "--placement", "--json"], capture_output=True, text=True, check=True)
            if raised != ("MatMulNBits" in plan.stdout) or "DequantizeLinear" in json.dumps(json.loads(plan.stdout).get("placement", "")):
                return plan.stdout
            subprocess.run([ORTC, "optimize", file, "-q", "-o", written], check=True, stdout=subprocess.DEVNULL)
            if any(n.domain for n in onnx.load(written).graph.node):
                return "what optimize writes is not the standard's"
            for model, provider in ((file, "cpu"), (file, "ref"), (written, "cpu")):
                subprocess.run([ORTC, "run", model, "-q", "-i", x, "-o", y, "--provider", provider], check=True, stdout=subprocess.DEVNULL)
                off = np.abs(np.load(y).astype(np.float64) - self.want).max() / np.abs(self.want).max()
                if not off <= self.off:
                    return f"{provider}: off by {off:.1e} of the largest"
        return None


# Large enough not to be numbers anyway.
for name, form in {
    "4 bits in blocks, MatMul": Form(T.INT4, 768, 641, 32),
    "4 bits in blocks with zero points": Form(T.UINT4, 768, 640, 64, True),
    "an odd number of blocks with zero points": Form(T.INT4, 96, 6000, 32, True),
    "4 bits with zero points, transposed": Form(T.UINT4, 768, 640, 32, True, True),
    "4 bits without zero points, Gemm": Form(T.UINT4, 768, 640, 128, False, True, "Gemm", True),
    "signs of 4 bits, Gemm": Form(T.INT4, 768, 640, 64, False, True, "Gemm"),
    "8 bits by columns": Form(T.INT8, 768, 640, "each"),
    "8 bits by rows, transposed": Form(T.UINT8, 784, 640, "each", True, True),
    "8 bits by one scale, Gemm": Form(T.INT8, 768, 640, "one", True, False, "Gemm", True),
    "2 bits": Form(T.INT2, 768, 640, 32, True),
    "2 bits without signs, transposed": Form(T.UINT2, 768, 641, 256, True, True),
    "blocks of 48": Form(T.INT4, 768, 640, 48, True),
    "one block for all of K": Form(T.INT4, 768, 640, 768, True),
    "f16": Form(T.INT4, 1536, 640, 32, True, real=T.FLOAT16),
}.items():
    check(name, lambda form=form: form.problem(True))
for name, form in {
    "blocks of 25": Form(T.INT4, 800, 640, 25, True),
    "K of 790": Form(T.INT8, 790, 640, "each"),
    "small ones": Form(T.INT4, 64, 64, 32, True),
}.items():
    check(f"{name}: numbers when loaded", lambda form=form: form.problem(False))


def shared() -> str | None:
    """Weights that five products read are numbers, held once."""
    form = Form(T.INT4, 768, 640, 32)
    graph = form.model.graph
    for i in range(4):
        graph.input.append(helper.make_tensor_value_info(f"x{i}", T.FLOAT, [ROWS, 768]))
        graph.node.append(helper.make_node("MatMul", [f"x{i}", "d"], [f"y{i}"]))
        graph.output.append(helper.make_tensor_value_info(f"y{i}", T.FLOAT, [ROWS, 640]))
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(form.model, f"{folder}/m.onnx")
        plan = subprocess.run([ORTC, "info", f"{folder}/m.onnx", "--provider", "cpu", "--placement"], capture_output=True, text=True, check=True)
        return plan.stdout if "MatMulNBits" in plan.stdout or "DequantizeLinear" in plan.stdout else None


check("weights that five products read", shared)


def table(t: int, scales: str, axis: int, block: int = 0, zeros: bool = True, shape=(8000, 96)) -> str | None:
    """Rows of a table (graph/normalise/gather_first.c). scales: "one", or along 0 or 1. Those that are not gathered first are as before."""
    rng = np.random.default_rng(5)
    low, high = RANGE[t]
    along = None if scales == "one" else int(scales)
    dims = [] if along is None else [-(-d // block) if i == along else d for i, d in enumerate(shape)] if block else [shape[along]]
    w, z = rng.integers(low, high, shape), rng.integers(low, high, dims) if zeros else np.zeros(dims, int)
    s = rng.uniform(0.01, 0.02, dims).astype(np.float32)
    index = rng.integers(-shape[axis], shape[axis], (2, 7))
    attributes = {} if along is None else {"axis": along, "block_size": block} if block else {"axis": along}
    weights = [tensor("w", t, w), tensor("s", T.FLOAT, np.array(s))] + [tensor("z", t, np.array(z))] * zeros
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"] + ["z"] * zeros, ["d"], **attributes),
             helper.make_node("Gather", ["d", "x"], ["y"], axis=axis)]  # fmt: skip
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T.INT64, [2, 7])],
                              [helper.make_tensor_value_info("y", T.FLOAT, None)], weights)  # fmt: skip

    def spread(a):
        if along is None:
            return a
        return np.repeat(a, block, along).take(range(shape[along]), along) if block else (a[:, None] if along == 0 else a[None, :])

    want = np.take((w - spread(z)) * spread(s.astype(np.float64)), index, axis)
    first = t in (T.UINT8, T.INT8) and (along is None or along != axis)
    with tempfile.TemporaryDirectory() as folder:
        file, x, y, written = (f"{folder}/{name}" for name in ("m.onnx", "x.npy", "y.npy", "o.onnx"))
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), file)
        np.save(x, index)
        subprocess.run([ORTC, "optimize", file, "-q", "-o", written], check=True, stdout=subprocess.DEVNULL)
        kinds = [n.op_type for n in onnx.load(written).graph.node]
        if first and kinds != ["Gather"] * (kinds.count("Gather")) + ["DequantizeLinear"]:
            return f"nodes: {kinds}"
        for model, provider in ((file, "cpu"), (file, "ref"), (written, "cpu")):
            subprocess.run([ORTC, "run", model, "-q", "-i", x, "-o", y, "--provider", provider], check=True, stdout=subprocess.DEVNULL)
            got = np.load(y)
            if got.shape != want.shape or not np.abs(got - want).max() <= 1e-5 * np.abs(want).max():
                return f"{provider}: something else"
    return None


check("rows of a table of 8 bits", lambda: table(T.UINT8, "one", 0))
check("rows of a table without zero points", lambda: table(T.INT8, "one", 0, zeros=False))
check("columns of a table", lambda: table(T.UINT8, "one", 1))
check("rows of a table with scales for columns", lambda: table(T.INT8, "1", 0))
check("columns of a table with scales for rows", lambda: table(T.INT8, "0", 1))
check("rows of a table with a scale each", lambda: table(T.INT8, "0", 0))
check("rows of a table of 4 bits in blocks", lambda: table(T.UINT4, "1", 0, 32))
check("columns of a table in blocks of rows", lambda: table(T.INT8, "0", 1, 50))
check("rows of a table in blocks of rows", lambda: table(T.INT8, "0", 0, 50))
sys.exit(finish())
