#!/usr/bin/env python3
"""Products of one value with several constants in one launch: test_siblings.py ORTC DEVICE [PLUGIN]

A group of them is one step of the plan and gives what ref gives, at lengths around the tiles, of one row, and of none; what is added or
applied to sums may differ from ours in bias only; what cannot stand side by side (other types, residuals, other activations) stays apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "python")]
from harness import check, finish, packages  # noqa: E402

np, onnx = packages("numpy", "onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

ORTC, DEVICE = sys.argv[1:3]
PLUGIN = ["--plugin", sys.argv[3]] if len(sys.argv) > 3 else []
random = np.random.default_rng(1)


def model(products: list[tuple[str, int, str]], k: int = 72, kind: str = "FLOAT16") -> onnx.ModelProto:
    """products: operator (MatMul; Gemm, transposed, with a C), columns, and what follows: bias, residual, an activation."""
    t = getattr(TensorProto, kind)
    to = helper.tensor_dtype_to_np_dtype(t)
    nodes, constants, outputs, inputs = [], [], [], [helper.make_tensor_value_info("x", t, ["rows", k])]

    def constant(name: str, *dims: int) -> str:
        constants.append(numpy_helper.from_array((random.standard_normal(dims) / (k**0.5 if len(dims) > 1 else 1)).astype(to), name))
        return name

    for i, (op, n, then) in enumerate(products):
        at = f"p{i}"
        if op == "Gemm":
            nodes.append(helper.make_node("Gemm", ["x", constant(f"w{i}", n, k), constant(f"c{i}", n)], [at], transB=1))
        else:
            nodes.append(helper.make_node("MatMul", ["x", constant(f"w{i}", k, n)], [at]))
        for word in then.split():
            to_name = f"{at}{word}"
            if word == "bias":
                nodes.append(helper.make_node("Add", [at, constant(f"b{i}", n)], [to_name]))
            elif word == "residual":
                inputs.append(helper.make_tensor_value_info(f"r{i}", t, ["rows", n]))
                nodes.append(helper.make_node("Add", [at, f"r{i}"], [to_name]))
            else:
                nodes.append(helper.make_node(word, [at], [to_name]))
            at = to_name
        outputs.append(helper.make_tensor_value_info(at, t, ["rows", n]))
    graph = helper.make_graph(nodes, "siblings", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def ortc(*words: object) -> str:
    done = subprocess.run([ORTC, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{words}: {done.returncode}: {done.stderr}"
    return done.stdout


def equal(folder: Path, products: list[tuple[str, int, str]], kernels: int, kind: str = "FLOAT16") -> str | None:
    made = model(products, kind=kind)
    path = folder / "siblings.onnx"
    onnx.save(made, path)
    steps = json.loads(ortc("info", path, "--json", "--steps", "--set", "rows=130", "--provider", DEVICE, *PLUGIN))["steps"]
    have = sum(s["kind"] == "kernel" for s in steps)
    if have != kernels:
        return f"{have} kernels, not {kernels}: {[s.get('node') for s in steps]}"
    for rows in (1, 16, 65, 130, 0):
        feeds = {i.name: random.standard_normal((rows, i.type.tensor_type.shape.dim[1].dim_value)).astype(
            helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)) for i in made.graph.input}
        np.savez(folder / "in.npz", **feeds)
        results = []
        for words in (["--provider", DEVICE, "--require", DEVICE.split(":")[0], *PLUGIN], ["--provider", "ref"]):
            ortc("run", path, "--input", folder / "in.npz", "--out", folder / "out.npz", "--quiet", *words)
            with np.load(folder / "out.npz") as arrays:
                results.append({name: a.astype(np.float64) for name, a in arrays.items()})
        for name, want in results[1].items():
            off = np.max(np.abs(results[0][name] - want) / (1 + np.abs(want)), initial=0)
            if results[0][name].shape != want.shape or not off < 2e-3:
                return f"{rows} rows: {name} is off by {off}"
    return None


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, products, kernels, kind in (
            ("queries, keys and values with biases", [("MatMul", 72, "bias"), ("MatMul", 24, "bias"), ("MatMul", 24, "bias")], 1, "FLOAT16"),
            ("without, of unlike widths", [("MatMul", 8, ""), ("MatMul", 264, "bias"), ("MatMul", 136, ""), ("MatMul", 40, "")], 1, "FLOAT16"),
            ("transposed, C as a bias", [("Gemm", 128, ""), ("Gemm", 64, "")], 1, "FLOAT16"),
            ("gate and up, both through Gelu", [("MatMul", 200, "bias Gelu"), ("MatMul", 200, "bias Gelu")], 1, "FLOAT16"),
            ("columns that are no whole 16 bytes: one node, each by itself", [("MatMul", 9, "bias"), ("MatMul", 64, "bias")], 1, "FLOAT16"),
            ("unlike activations", [("MatMul", 64, "Gelu"), ("MatMul", 64, "Tanh")], 2, "FLOAT16"),
            ("residuals", [("MatMul", 64, "bias residual"), ("MatMul", 64, "bias residual")], 2, "FLOAT16"),
            ("f32", [("MatMul", 64, ""), ("MatMul", 64, "")], 2, "FLOAT"),
        ):
            check(what, lambda p=products, n=kernels, k=kind: equal(folder, p, n, k))
    return finish()


sys.exit(main())
