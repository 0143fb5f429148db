#!/usr/bin/env python3
"""The tiny BERT of make_bert.py, at opset 11 and 17: test_bert.py ORTC MANY_SHAPES.

Answers are onnxruntime's. The graph must come out of the passes as transformers are thought of: an Attention per layer,
LayerNormalization and Gelu, and nothing of the arithmetic of shapes left in a plan.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from harness import check, finish, packages  # noqa: E402

np, onnx, ort, reference = packages("numpy", "onnx", "onnxruntime", "onnx.reference")
import make_bert  # noqa: E402

ORTC, MANY_SHAPES = sys.argv[1:3]
SHAPES = [(1, 1), (2, 7), (3, 16), (1, 64), (4, 5)]
PLACED = {"ref": ["--provider", "ref"], "cpu": ["--provider", "cpu"], "unfused": ["--provider", "cpu", "--no-fusion"]}


def ortc(*words: object) -> str:
    done = subprocess.run([ORTC, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{words}: {done.returncode}: {done.stderr}"
    return done.stdout


def expected(path: Path, feeds: dict) -> list:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, feeds)


def differs(have, want) -> str | None:
    if have.shape != want.shape or have.dtype != want.dtype:
        return f"{have.dtype}{have.shape} for {want.dtype}{want.shape}"
    worst = float(np.max(np.abs(have - want)))
    return None if np.allclose(have, want, rtol=1e-4, atol=1e-5) else f"differs by {worst}"


def run_case(path: Path, feeds: dict, words: list[str], folder: Path) -> str | None:
    """ortc's answer beside onnxruntime's."""
    names = [o.name for o in onnx.load(path).graph.output]
    np.savez(folder / "in.npz", **feeds)
    ortc("run", path, "--input", folder / "in.npz", "--out", folder / "out.npz", *words)
    have = np.load(folder / "out.npz")
    for name, want in zip(names, expected(path, feeds), strict=True):
        if why := differs(have[name], want):
            return f"{name}: {why}"
    return None


def info(path: Path, *words: str) -> dict:
    return json.loads(ortc("info", path, "--json", *words))


def passes_case(path: Path) -> str | None:
    edits = {p["name"]: p["edits"] for p in info(path, "--passes")["normalising_passes"]}
    want = {"raise-attention": make_bert.TINY.layers, "raise-gelu": make_bert.TINY.layers, "raise-layernorm": 2 * make_bert.TINY.layers + 1}
    return next((f"{name}: {edits[name]} edits for {n}" for name, n in want.items() if edits[name] != n), None)


def placement_case(path: Path) -> str | None:
    """On ref the raised nodes stay; on cpu Attention is its body, whose products are cpu's."""
    on_ref = [n["op"] for n in info(path, "--placement", "--provider", "ref")["placement"]]
    if (on_ref.count("Attention"), on_ref.count("Softmax"), on_ref.count("Gelu")) != (make_bert.TINY.layers, 0, make_bert.TINY.layers):
        return f"on ref: {on_ref}"
    on_cpu = info(path, "--placement", "--provider", "cpu")["placement"]
    has = {n["op"] for n in on_cpu if n["provider"] == "cpu"}
    if "Attention" not in has:
        products = [n for n in on_cpu if n["op"] == "MatMul"]
        if len(products) != 8 * make_bert.TINY.layers or {n["provider"] for n in products} != {"cpu"}:
            return f"products on cpu: {products}"
    return None


def steps_case(path: Path) -> str | None:
    """What only computes shapes makes no step, Reshape is a view, and so are on the cpu the positions, the first ones of their table."""
    for provider, shuffles, gathers in (("ref", set(), 4), ("cpu", {"Transpose"}, 3)):
        steps = info(path, "--steps", "--provider", provider, "--set", "batch=2", "--set", "length=7")["steps"]
        ops = [s["op"] for s in steps]
        found = {"Shape", "Concat", "Unsqueeze", "Reshape", "Slice", "Squeeze", "Transpose"} & set(ops)
        if not found <= shuffles or ops.count("Gather") != gathers:  # three embeddings and the first token
            return f"{provider}: {ops}"
    return None


def tokens(folder: Path) -> Path:
    """A file of inputs, for the check of `ortc optimize`: made-up ones would be no tokens."""
    np.savez(folder / "tokens.npz", **make_bert.feeds())
    return folder / "tokens.npz"


def views_case(folder: Path) -> str | None:
    """Reshape, and Split along the first axis, only name parts of what is there, and Gather of what lies together."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Reshape", ["r", "to"], ["s"]),
             helper.make_node("Split", ["s"], ["a", "b", "c"], axis=0, num_outputs=3),
             helper.make_node("Gather", ["s", "last"], ["d"], axis=0), helper.make_node("Gather", ["s", "all"], ["e"], axis=2),
             *(helper.make_node("Exp", [n], [f"y{n}"]) for n in "abcde")]
    constants = {"to": [3, -1, 4], "last": [1, -1], "all": [0, 1, -2, 3]}
    outputs = [helper.make_tensor_value_info(f"y{n}", kind, [None, None, 4]) for n in "abcde"]
    graph = helper.make_graph(nodes, "views", [helper.make_tensor_value_info("x", kind, ["n", 12])], outputs,
                              [onnx.numpy_helper.from_array(np.array(v, np.int64), k) for k, v in constants.items()])
    path = folder / "views.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    ops = [s["op"] for s in info(path, "--steps", "--set", "n=5")["steps"]]
    return run_case(path, {"x": np.arange(60, dtype=np.float32).reshape(5, 12) / 30}, PLACED["cpu"], folder) or (
        None if ops == ["Relu"] + ["Exp"] * 5 else str(ops))


def split_case(folder: Path, axis: int, sizes: list[int] | None, first: str) -> str | None:
    """A part that nobody reads, or that has no name, still takes its place."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    inputs = ["x", "sizes"] if sizes else ["x"]
    attributes = {"axis": axis} if sizes else {"axis": axis, "num_outputs": 3}
    nodes = [helper.make_node("Split", inputs, [first, "b", "c"], **attributes), helper.make_node("Exp", ["b"], ["y"]),
             helper.make_node("Neg", ["c"], ["z"])]
    outputs = [helper.make_tensor_value_info(n, kind, [None, None]) for n in "yz"]
    initializers = [onnx.numpy_helper.from_array(np.array(sizes, np.int64), "sizes")] if sizes else []
    graph = helper.make_graph(nodes, "split", [helper.make_tensor_value_info("x", kind, ["n", 6])], outputs, initializers)
    path = folder / "split.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    x = np.arange(36, dtype=np.float32).reshape(6, 6) / 30
    np.savez(folder / "in.npz", x=x)
    ortc("run", path, "--input", folder / "in.npz", "--out", folder / "out.npz")
    have, (_, b, c) = np.load(folder / "out.npz"), np.split(x, np.cumsum(sizes or [2, 2])[:2], axis)
    return differs(have["y"], np.exp(b)) or differs(have["z"], -c)  # onnxruntime 1.31 dies of an output without a name


def optimize_case(path: Path, folder: Path, shapes: int = 1) -> str | None:
    """Standard ONNX of the file's opset; onnxruntime gives the same. One Shape cuts the positions, more are in bodies."""
    out = folder / f"optimized-{path.name}"
    ortc("optimize", path, "-o", out, "--input", tokens(folder))
    model = onnx.load(out)
    onnx.checker.check_model(model, full_check=True)
    domains = {n.domain for n in model.graph.node} | {o.domain for o in model.opset_import}
    opset = model.opset_import[0].version
    ops = [n.op_type for n in model.graph.node]
    if (domains != {""} or opset != 17 or ops.count("LayerNormalization") != 2 * make_bert.TINY.layers + 1
            or ops.count("Shape") != shapes or {"Attention", "Gelu"} & set(ops)):
        return f"opset {opset}, domains {domains}, {ops}"
    for batch, length in SHAPES:
        feeds = make_bert.feeds(batch, length)
        for have, want in zip(expected(out, feeds), expected(path, feeds), strict=True):
            if why := differs(have, want):
                return why
    return None


def raised_case(path: Path, folder: Path) -> str | None:
    """--raised keeps Attention and Gelu, and takes the opset that they need."""
    out = folder / f"raised-{path.name}"
    ortc("optimize", path, "-o", out, "--raised", "--input", tokens(folder))
    model = onnx.load(out)
    onnx.checker.check_model(model, full_check=True)
    ops = [n.op_type for n in model.graph.node]
    if model.opset_import[0].version != 23 or ops.count("Attention") != make_bert.TINY.layers or "Gelu" not in ops:
        return f"opset {model.opset_import[0].version}, {ops}"
    feeds = make_bert.feeds(3, 16)
    # onnxruntime 1.31 does not stretch a mask over the queries, as the standard says: the standard's evaluator does
    (have, _), (want, _) = reference.ReferenceEvaluator(model).run(None, feeds), expected(path, feeds)
    return differs(have, want)


def many_shapes_case(path: Path, provider: str) -> str | None:
    runs = "300" if "MANY_SHAPES_NO_MEMORY" in os.environ else "1000"  # it is memory that takes so many to see
    done = subprocess.run([MANY_SHAPES, path, provider, runs], capture_output=True, text=True, timeout=300)
    return None if done.returncode == 0 else f"{done.returncode}: {done.stdout}{done.stderr}"


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check("views", lambda: views_case(folder))
        for axis, sizes, first in product((0, 1), (None, [1, 2, 3]), ("a", "")):
            check(f"split {sizes} along {axis}, '{first}'", lambda: split_case(folder, axis, sizes, first))
        for style in ("sdpa", "dynamo"):
            path = folder / f"{style}.onnx"
            onnx.save(make_bert.model(17, style=style), path)
            for where, words in PLACED.items():
                check(f"{style}, {where}", lambda: run_case(path, make_bert.feeds(), words, folder))
            check(f"{style}, passes", lambda: passes_case(path))
            shapes = 1 + make_bert.TINY.layers * (style == "dynamo")
            check(f"{style}, optimize", lambda: optimize_case(path, folder, shapes))
        for opset in (11, 17):
            path = folder / f"bert{opset}.onnx"
            onnx.save(make_bert.model(opset), path)
            onnx.checker.check_model(onnx.load(path), full_check=True)
            for where, words in PLACED.items():
                for batch, length in SHAPES:
                    feeds = make_bert.feeds(batch, length)
                    check(f"opset {opset}, {where}, [{batch}, {length}]", lambda: run_case(path, feeds, words, folder))
            check(f"opset {opset}, passes", lambda: passes_case(path))
            check(f"opset {opset}, placement", lambda: placement_case(path))
            check(f"opset {opset}, steps", lambda: steps_case(path))
            check(f"opset {opset}, optimize", lambda: optimize_case(path, folder))
            check(f"opset {opset}, optimize --raised", lambda: raised_case(path, folder))
            for provider in ("ref", "cpu"):
                check(f"opset {opset}, many shapes on {provider}", lambda: many_shapes_case(path, provider))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
