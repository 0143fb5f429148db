#!/usr/bin/env python3
"""`ortc optimize`: what it writes is valid ONNX that means the same: test_optimize.py ORTC [SUITE].

Models made here and digits.onnx: each is optimized (with the command's own check), accepted by the standard's checker, runs
in onnxruntime with equal outputs before and after, and holds no domain that was not there. Then node cases of the suite
in SUITE (test_suite.py wrote it): each is optimized and `ortc test` runs the written model on the case's data.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import check, finish, packages

np, onnx, onnxruntime = packages("numpy", "onnx", "onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
ORTC = sys.argv[1]
TOLERANCE = 1e-5
F32, I64 = TensorProto.FLOAT, TensorProto.INT64
SUITE_STEP = 4  # every so many cases of the suite that ortc runs


def value(name: str, shape, dtype=F32) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def array(name: str, *shape: int, seed: int = 1) -> onnx.TensorProto:
    return numpy_helper.from_array(np.random.default_rng(seed).standard_normal(shape).astype(np.float32), name)


def ints(name: str, values) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model(nodes, inputs, outputs, initializers=(), opset=17, **more) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "made", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **more)


node = helper.make_node


# ---- The models ------------------------------------------------------------------------------------------------


def mlp() -> onnx.ModelProto:
    """Identity and Dropout to remove, constants to fold, equal nodes to share, nodes that nobody reads."""
    nodes = [
        node("Identity", ["x"], ["x1"]),
        node("Add", ["b", "b"], ["b2"]),
        node("Gemm", ["x1", "w", "b2"], ["h"], transB=1),
        node("Dropout", ["h"], ["h1"]),
        node("Relu", ["h1"], ["r1"]),
        node("Relu", ["h1"], ["r2"]),
        node("Add", ["r1", "r2"], ["s"]),
        node("Constant", [], ["two"], value=numpy_helper.from_array(np.float32(2))),
        node("Mul", ["s", "two"], ["y"]),
        node("Exp", ["s"], ["unread"]),
    ]
    made = model(nodes, [value("x", ["batch", 4])], [value("y", ["batch", 5])], [array("w", 5, 4), array("b", 5)])
    made.doc_string, made.domain, made.model_version = "what it is for", "org.example", 7
    helper.set_model_props(made, {"key": "value", "empty": ""})
    return made


def conv_batchnorm() -> onnx.ModelProto:
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"], epsilon=1e-3),
        node("Relu", ["n"], ["y"]),
    ]
    var = numpy_helper.from_array(np.linspace(0.5, 2, 6).astype(np.float32), "var")
    weights = [array("w", 6, 3, 3, 3), array("scale", 6, seed=2), array("bias", 6, seed=3), array("mean", 6, seed=4), var]
    return model(nodes, [value("x", ["n", 3, 8, "width"])], [value("y", None)], weights)


def opset_11() -> onnx.ModelProto:
    nodes = [
        node("Unsqueeze", ["x"], ["u"], axes=[0]),
        node("Softmax", ["u"], ["s"]),  # flattens to two dimensions at axis 1
        node("Clip", ["s", "low", "high"], ["c"]),
        node("Squeeze", ["c"], ["q"], axes=[0]),
        node("ReduceSum", ["q"], ["y"], axes=[1], keepdims=0),
    ]
    limits = [numpy_helper.from_array(np.float32(v), n) for n, v in (("low", 0.001), ("high", 0.5))]
    return model(nodes, [value("x", ["a", 4, 3])], [value("y", ["a", 3])], limits, opset=11)


def opset_9() -> onnx.ModelProto:
    """Clip-6 has its limits in attributes, Dropout-7 its ratio."""
    nodes = [
        node("Clip", ["x"], ["c"], min=-0.25, max=0.5),
        node("Softmax", ["c"], ["s"], axis=2),
        node("Dropout", ["s"], ["d"], ratio=0.25),
        node("Unsqueeze", ["d"], ["y"], axes=[0, 4]),
    ]
    return model(nodes, [value("x", [2, "b", 3])], [value("y", None)], opset=9)


def overridable() -> onnx.ModelProto:
    """An initializer that is an input too: its value is a default, which no pass may fold."""
    nodes = [node("Add", ["b", "c"], ["bc"]), node("Add", ["x", "bc"], ["y"])]
    return model(nodes, [value("x", ["n", 4]), value("b", [4])], [value("y", ["n", 4])], [array("b", 4), array("c", 4, seed=2)])


def outputs() -> onnx.ModelProto:
    """Outputs that are a constant, an input, one value twice, and what a removed Identity made."""
    nodes = [
        node("Identity", ["x"], ["same"]),
        node("Identity", ["w"], ["weights"]),
        node("Relu", ["x"], ["r"]),
        node("Identity", ["r"], ["again"]),
        node("Add", ["w", "w"], ["folded"]),
    ]
    shape = ["n", 4]
    ends = [value("same", shape), value("weights", [4]), value("r", shape), value("again", shape), value("folded", [4])]
    return model(nodes, [value("x", shape)], ends, [array("w", 4)])


def unnamed_dims() -> onnx.ModelProto:
    """Dims that are expressions of symbols, and a Reshape whose target is shape arithmetic."""
    nodes = [
        node("Concat", ["x", "x"], ["xx"], axis=0),
        node("Shape", ["xx"], ["s"]),
        node("Gather", ["s", "zero"], ["rows"], axis=0),
        node("Concat", ["rows", "rest"], ["target"], axis=0),
        node("Reshape", ["xx", "target"], ["y"]),
    ]
    return model(nodes, [value("x", ["n", 2, 3])], [value("y", None)], [ints("zero", [0]), ints("rest", [6])])


MODELS = (mlp, conv_batchnorm, opset_11, opset_9, overridable, outputs, unnamed_dims)


# ---- The checks ------------------------------------------------------------------------------------------------


def optimize(*arguments: str | Path, status: int = 0) -> subprocess.CompletedProcess:
    command = [ORTC, "optimize", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != status:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done


def session(path: Path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feeds(path: Path) -> dict:
    """Random inputs; 3 for every free dimension."""
    random = np.random.default_rng(7)
    made = {}
    for x in session(path).get_inputs():
        shape = [d if isinstance(d, int) else 3 for d in x.shape]
        made[x.name] = random.standard_normal(shape).astype(np.float32)
    return made


def equal_outputs(before: Path, after: Path, given: dict | None = None) -> str | None:
    given = feeds(before) if given is None else given
    names = [o.name for o in session(before).get_outputs()]
    if [o.name for o in session(after).get_outputs()] != names:
        return f"outputs {[o.name for o in session(after).get_outputs()]} instead of {names}"
    if [i.name for i in session(after).get_inputs()] != [i.name for i in session(before).get_inputs()]:
        return "other inputs"
    for name, a, b in zip(names, session(before).run(None, given), session(after).run(None, given)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"output '{name}': {b.dtype}{list(b.shape)} instead of {a.dtype}{list(a.shape)}"
        if not np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            return f"output '{name}' differs by {np.abs(a - b).max()}"
    return None


def standard(before: Path, after: Path) -> str | None:
    """The checker's word, domains, and what is to be kept."""
    onnx.checker.check_model(str(after), full_check=True)
    a, b = onnx.load(before, load_external_data=False), onnx.load(after, load_external_data=False)
    domains = {n.domain for n in b.graph.node} | {o.domain for o in b.opset_import}
    if not domains <= {"", *(o.domain for o in a.opset_import)}:
        return f"domains {domains}"
    if b.producer_name != "ortc" or b.functions:
        return "the producer, or functions"
    for field in ("doc_string", "domain", "model_version"):
        if getattr(a, field) != getattr(b, field):
            return f"{field} is {getattr(b, field)!r}"
    if {p.key: p.value for p in a.metadata_props} != {p.key: p.value for p in b.metadata_props}:
        return "other metadata"
    return None if list(a.graph.input) == list(b.graph.input) else "other inputs, or types of them"


def written(before: Path, folder: Path, *options: str) -> Path:
    after = folder / "after.onnx"
    done = optimize(before, "-o", after, *options)
    if "checked: same outputs" not in done.stdout:
        raise RuntimeError(f"no check: {done.stdout}")
    return after


def whole(before: Path, folder: Path, *options: str) -> str | None:
    after = written(before, folder, *options)
    return standard(before, after) or equal_outputs(before, after)


def nodes_of(path: Path) -> list[str]:
    return [n.op_type for n in onnx.load(path, load_external_data=False).graph.node]


def external(before: Path, folder: Path) -> str | None:
    """Weights in a file beside it: pages' starts, small ones inside, and the input may be such a model too."""
    first, second = folder / "first", folder / "second"
    first.mkdir(), second.mkdir()
    after = first / "after.onnx"
    optimize(before, "-o", after, "--external", "weights.bin")
    places = {t.name: {e.key: e.value for e in t.external_data}
              for t in onnx.load(after, load_external_data=False).graph.initializer if t.data_location}
    if not places or any(int(p["offset"]) % 4096 or p["location"] != "weights.bin" for p in places.values()):
        return f"places: {places}"
    if (first / "weights.bin").stat().st_size != max(int(p["offset"]) + int(p["length"]) for p in places.values()):
        return "the external file is of another size than what lies in it"
    again = second / "again.onnx"
    optimize(after, "-o", again)
    if sorted(p.name for p in folder.rglob("*") if p.is_file()) != ["after.onnx", "again.onnx", "before.onnx", "weights.bin"]:
        return f"files: {sorted(p.name for p in folder.rglob('*'))}"
    return standard(before, after) or equal_outputs(before, after) or standard(before, again) or equal_outputs(before, again)


def refusals(before: Path, folder: Path) -> str | None:
    original = before.read_bytes()
    link = folder / "link.onnx"
    os.symlink(before, link)
    for arguments, words in (
        ((before,), "expects -o OUT.onnx"),
        ((before, "-o", before), "is the model itself; --force"),
        ((before, "-o", link), "is the model itself; --force"),
        ((before, "-o", folder / "x.onnx", "--external", "a/b"), "without a folder"),
        ((before, "-o", folder / "x.onnx", "--external", "before.onnx"), "is there already"),
        ((before, "-o", folder / "x.onnx", "--check", "--no-check"), "contradict"),
    ):
        done = optimize(*arguments, status=2)
        if words not in done.stderr:
            return f"{arguments}: {done.stderr}"
    if "no normalising pass 'nothing'" not in optimize(before, "-o", folder / "x", "--no-pass", "nothing", status=3).stderr:
        return "an unknown pass"
    if before.read_bytes() != original or sorted(p.name for p in folder.iterdir()) != ["before.onnx", "link.onnx"]:
        return "a refusal left something behind"
    optimize(before, "-o", before, "--force")
    return "--force did nothing" if before.read_bytes() == original else None


def default_and_override(before: Path, folder: Path) -> str | None:
    after = written(before, folder)
    given = feeds(before)
    if list(given) != ["x"] or [i.name for i in session(after).get_overridable_initializers()] != ["b"]:
        return "'b' is no default any more"
    return equal_outputs(before, after, given) or equal_outputs(before, after, given | {"b": np.ones(4, np.float32)})


def passes(before: Path, folder: Path) -> str | None:
    after = written(before, folder)
    kept = folder / "kept.onnx"
    names = [name for name in json.loads(optimize(before, "-o", kept, "--json").stdout)["passes"]]
    optimize(before, "-o", kept, *(word for name in names for word in ("--no-pass", name)))
    if nodes_of(after) != ["Gemm", "Relu", "Add", "Mul"]:
        return f"nodes: {nodes_of(after)}"
    if sorted(nodes_of(kept)) != sorted(["Identity", "Add", "Gemm", "Dropout", "Relu", "Relu", "Add", "Mul", "Exp"]):
        return f"nodes without passes: {nodes_of(kept)}"
    return equal_outputs(before, kept)


def with_file(made: onnx.ModelProto, case, *arguments) -> str | None:
    with tempfile.TemporaryDirectory() as name:
        before = Path(name, "before.onnx")
        onnx.save(made, before)
        return case(before, Path(name), *arguments)


def big() -> onnx.ModelProto:
    made = mlp()
    made.graph.initializer.append(array("table", 40, 50))
    made.graph.node.append(node("ReduceSum", ["table", "all"], ["z"], keepdims=0))
    made.graph.node.append(node("MatMul", ["wide", "table"], ["m"]))
    made.graph.initializer.append(ints("all", [0]))
    made.graph.input.append(value("wide", ["batch", 40]))
    made.graph.output.extend([value("z", [50]), value("m", ["batch", 50])])
    return made


def inferred(path: Path) -> bool:
    """Whether the standard's own inference gets through a model."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except onnx.shape_inference.InferenceError:
        return False
    return True


def suite(folder: Path) -> None:
    """Cases of the standard's suite that ortc runs: optimized, and then run on their data."""
    done = subprocess.run([ORTC, "test", str(folder / "node"), "--unsupported=skip", "--json"], capture_output=True, text=True,
                          timeout=600)
    cases = [c["name"] for c in json.loads(done.stdout)["cases"] if c["result"] == "passed"][::SUITE_STEP]
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        for case in cases:
            source = folder / "node" / Path(case).name
            target = out / source.name
            shutil.copytree(source, target)

            def valid() -> str | None:
                (target / "model.onnx").unlink()
                optimize(source / "model.onnx", "-o", target / "model.onnx", "--no-check")
                # the checker's inference fails on some of its own cases, MeanVarianceNormalization without axes
                onnx.checker.check_model(str(target / "model.onnx"), full_check=inferred(source / "model.onnx"))
                return None

            check(f"suite: {source.name}", valid)
        done = subprocess.run([ORTC, "test", str(out), "--quiet"], capture_output=True, text=True, timeout=600)
        check(f"suite: {len(cases)} optimized cases", lambda: None if done.returncode == 0 and cases else done.stdout + done.stderr)


def main() -> int:
    check("digits", lambda: with_file(onnx.load(ROOT / "models" / "digits.onnx"), whole))
    for make in MODELS:
        check(make.__name__, lambda: with_file(make(), whole))
    check("conv_batchnorm, larger", lambda: with_file(conv_batchnorm(), whole, "--set", "n=2", "--set", "width=5"))
    check("external data", lambda: with_file(big(), external))
    check("a default stays one", lambda: with_file(overridable(), default_and_override))
    check("passes, and none", lambda: with_file(mlp(), passes))
    check("refusals", lambda: with_file(mlp(), refusals))
    if len(sys.argv) > 2 and Path(sys.argv[2], "version").is_file():
        suite(Path(sys.argv[2]))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
