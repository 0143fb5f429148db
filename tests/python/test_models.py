#!/usr/bin/env python3
"""The models of tests/models on every configuration: test_models.py ORTC [PROVIDERS[@PLUGIN]...]

Each model is run under several sets of random names and orders (model.py), all its feeds twice in one session, on each
configuration of the table below, and compared with onnxruntime or the standard's evaluator. Outputs of random operators have
no reference: ref says the bits, and every run, session and provider must give the same; what they are like is tested on
long ones. Then each model goes through `ortc optimize`: valid for the standard's checker, no domain of ours, the same
answers by ortc and by onnxruntime.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import check, finish, packages

np, onnx, onnxruntime, reference = packages("numpy", "onnx", "onnxruntime", "onnx.reference")

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "models"))
from make_suite import write_values  # noqa: E402
from model import Model, make, node, value, varied  # noqa: E402
from models import MODELS  # noqa: E402

ORTC = sys.argv[1]
CONFIGURATIONS = tuple(sys.argv[2:]) or ("ref", "cpu")  # providers, in order, and the plugin that has them
SEEDS = 3


def ortc(*arguments: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run([ORTC, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def where(configuration: str) -> list[str]:
    providers, _, plugin = configuration.partition("@")
    return ["--provider", providers, *(["--plugin", plugin] if plugin else [])]


# ---- What is expected -------------------------------------------------------------------------------------------------------


def run_reference(model: Model, proto: onnx.ModelProto, names: list[str]) -> list[list]:
    """The named outputs for each feed."""
    if model.reference == "onnx":
        evaluator = reference.ReferenceEvaluator(proto)
        return [evaluator.run(names, feed) for feed in model.feeds]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # some of its fusions round coarsely
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [session.run(names, feed) for feed in model.feeds]


def run_alone(path: Path, feed: dict, *options: str) -> dict:
    """One run in a process of its own: arrays by name."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = []
        for i, (name, array) in enumerate(feed.items()):
            np.save(Path(folder, f"{i}.npy"), array)
            arguments += ["--input", f"{name}={Path(folder, f'{i}.npy')}"]
        done = ortc("run", path, *arguments, "--out", Path(folder, "out.npz"), "--quiet", *options)
        if done.returncode:
            raise RuntimeError(f"exit status {done.returncode}: {done.stderr}")
        with np.load(Path(folder, "out.npz")) as arrays:
            return dict(arrays)


def write_case(model: Model, folder: Path) -> Path:
    """A case of `ortc test`, all feeds twice: model.onnx, inputs, and what is expected of them."""
    case = folder / model.name
    case.mkdir(parents=True)
    onnx.save(model.proto, case / "model.onnx")
    (case / "tolerance.json").write_text(json.dumps({"rtol": model.rtol, "atol": model.atol}))
    outputs = [o.name for o in model.proto.graph.output]
    known = [n for n in outputs if n not in model.random]
    expected = [dict(zip(known, results)) for results in run_reference(model, model.proto, known)]
    if model.random:
        for feed, results in zip(model.feeds, expected):
            alone = run_alone(case / "model.onnx", feed, "--provider", "ref")
            results.update({n: alone[n] for n in model.random})
    for i in range(2 * len(model.feeds)):
        data = case / f"test_data_set_{i}"
        data.mkdir()
        feed, results = model.feeds[i % len(model.feeds)], expected[i % len(model.feeds)]
        write_values(data, "input", [feed.get(x.name) for x in model.proto.graph.input], model.proto.graph.input)
        write_values(data, "output", [results[n] for n in outputs], model.proto.graph.output)
    return case


# ---- The runs ----------------------------------------------------------------------------------------------------------------


def test_cases(folder: Path, cases: list[str], configuration: str, label: str) -> None:
    """One check a case."""
    done = ortc("test", folder, "--json", *where(configuration))
    results = {}
    if done.returncode in (0, 1) and done.stdout:
        results = {Path(c["name"]).name: c for c in json.loads(done.stdout)["cases"]}
    for case in cases:
        found = results.get(case)
        check(f"{label}{case} on {configuration}",
              lambda: f"not run: {done.stderr}" if not found else None if found["result"] == "passed" else str(found))


def optimized(case: Path, target: Path, model: Model) -> str | None:
    """The checker's word, domains, and onnxruntime's answers; the case with the new model is left for `ortc test`."""
    shutil.copytree(case, target)
    after = target / "model.onnx"
    after.unlink()
    done = ortc("optimize", case / "model.onnx", "-o", after, "--no-check")
    if done.returncode:
        return f"exit status {done.returncode}: {done.stderr}"
    onnx.checker.check_model(str(after), full_check=True)
    before, written = model.proto, onnx.load(after)
    domains = {n.domain for n in written.graph.node} | {o.domain for o in written.opset_import}
    if not domains <= {"", *(o.domain for o in before.opset_import)}:
        return f"domains {domains}"
    known = [o.name for o in before.graph.output if o.name not in model.random]
    for i, (a, b) in enumerate(zip(run_reference(model, before, known), run_reference(model, written, known))):
        for name, x, y in zip(known, a, b):
            if not isinstance(x, np.ndarray):
                if str(x) != str(y):
                    return f"feed {i}, '{name}': {y} instead of {x}"
            elif x.shape != y.shape or x.dtype != y.dtype or not close(x, y, model):
                return f"feed {i}, '{name}': {y} instead of {x}"
    return None


def close(x: np.ndarray, y: np.ndarray, model: Model) -> bool:
    if x.dtype.kind in "fc":
        return np.allclose(x, y, rtol=model.rtol, atol=model.atol, equal_nan=True)
    return np.array_equal(x, y)


def run_models(folder: Path) -> None:
    written = []
    for make_model in MODELS:
        model = make_model()
        for seed in range(SEEDS):
            other = varied(model, seed)
            if check(f"{other.name} by {model.reference}", lambda: write_case(other, folder / "cases") and None):
                written.append(other)
    names = [m.name for m in written]
    for configuration in CONFIGURATIONS:
        test_cases(folder / "cases", names, configuration, "")
    good = [m for m in written[::SEEDS]
            if check(f"optimize {m.name}", lambda: optimized(folder / "cases" / m.name, folder / "optimized" / m.name, m))]
    for configuration in CONFIGURATIONS:
        test_cases(folder / "optimized", [m.name for m in good if not m.random], configuration, "optimized ")


# ---- Random operators --------------------------------------------------------------------------------------------------------

MANY = 40000


def random_model() -> onnx.ModelProto:
    nodes = [
        node("RandomNormal", [], ["normal"], shape=[MANY], mean=1.0, scale=3.0),
        node("RandomNormal", [], ["twin"], shape=[MANY], mean=1.0, scale=3.0),
        node("RandomUniform", [], ["uniform"], shape=[MANY], low=-1.0, high=3.0, dtype=onnx.TensorProto.DOUBLE),
        node("RandomUniform", [], ["seeded"], shape=[MANY], seed=3.5),
        node("RandomUniform", [], ["seeded_again"], shape=[MANY], seed=3.5),
        node("Expand", ["p", "many"], ["ps"]),
        node("Bernoulli", ["ps"], ["coins"], dtype=onnx.TensorProto.INT32),
        node("Multinomial", ["logs"], ["classes"], sample_size=MANY),
    ]
    types = {"uniform": onnx.TensorProto.DOUBLE, "coins": onnx.TensorProto.INT32, "classes": onnx.TensorProto.INT32}
    outputs = [value(n, types.get(n, onnx.TensorProto.FLOAT), None)
               for n in ("normal", "twin", "uniform", "seeded", "seeded_again", "coins", "classes")]
    logs = np.log(np.array([[0.1, 0.6, 0.0, 0.3]], np.float32) + np.float32(1e-30))
    return make(nodes, [], outputs, [("p", np.array([0.3], np.float32)), ("many", np.array([MANY], np.int64)), ("logs", logs)], opset=22,
                ir_version=10)


def moments(got: dict) -> str | None:
    """Within five standard deviations of what many independent draws have."""
    root = MANY ** 0.5

    def near(x, expected, deviation):
        return abs(float(x) - expected) <= 5 * deviation / root

    normal = (got["normal"].astype(np.float64) - 1) / 3
    shares = np.bincount(got["classes"].ravel(), minlength=4) / MANY
    facts = {
        "types": got["uniform"].dtype == np.float64 and got["coins"].dtype == np.int32 and got["classes"].shape == (1, MANY),
        "mean": near(normal.mean(), 0, 1), "variance": near((normal ** 2).mean(), 1, 2 ** 0.5),
        "skewness": near((normal ** 3).mean(), 0, 15 ** 0.5), "kurtosis": near((normal ** 4).mean(), 3, 96 ** 0.5),
        "neighbours": near((normal[1:] * normal[:-1]).mean(), 0, 1), "twins": near(np.mean(normal * (got["twin"] - 1) / 3), 0, 1),
        "range": got["uniform"].min() >= -1 and got["uniform"].max() < 3 and got["uniform"].min() < -0.99 and got["uniform"].max() > 2.99,
        "uniform mean": near(got["uniform"].mean(), 1, 4 / 12 ** 0.5), "uniform variance": near(got["uniform"].var(), 16 / 12, 1.2),
        "coins": set(np.unique(got["coins"])) == {0, 1} and near(got["coins"].mean(), 0.3, 0.21 ** 0.5),
        "classes": all(near(s, p, 0.5) for s, p in zip(shares, (0.1, 0.6, 0, 0.3))) and shares[2] == 0,
    }
    return ", ".join(name for name, fine in facts.items() if not fine)


def seeds(path: Path) -> str | None:
    """The same bits for the same seed, on any provider and number of threads; other bits for another, but where the model says."""
    first = run_alone(path, {}, "--provider", "ref", "--threads", "1")
    other = run_alone(path, {}, "--provider", "ref", "--seed", "5")
    for options in (["--provider", "cpu"], ["--provider", "ref", "--threads", "4"], ["--provider", "ref", "--repeat", "3"],
                    *(where(c) for c in CONFIGURATIONS)):
        again = run_alone(path, {}, *options)
        if different := [n for n in first if not np.array_equal(first[n], again[n])]:
            return f"{options}: other bits of {different}"
    if not np.array_equal(first["seeded"], first["seeded_again"]) or not np.array_equal(first["seeded"], other["seeded"]):
        return "the attribute seed is not what decides"
    if same := [n for n in first if not n.startswith("seeded") and np.array_equal(first[n], other[n])]:
        return f"--seed changes nothing of {same}"
    return "equal nodes without a seed draw the same" if np.array_equal(first["normal"], first["twin"]) else None


def run_random(folder: Path) -> None:
    path = folder / "random.onnx"
    onnx.save(random_model(), path)
    check("moments of random operators", lambda: moments(run_alone(path, {}, "--provider", "ref")))
    check("seeds of random operators", lambda: seeds(path))


def run_info(folder: Path) -> None:
    """The first segment of a model with a Loop can be planned from shapes alone."""
    done = ortc("info", folder / "cases" / "growing_loop_0" / "model.onnx", "--steps")
    check("info --steps of a segment", lambda: None if done.returncode == 0 and "kernel" in done.stdout else done.stderr)


# ---- Quantized weights stay small ----------------------------------------------------------------------------------------------


def large_int4() -> onnx.ModelProto:
    """Two megabytes of weights that would be 16 as floats: more than folding may make."""
    rng = np.random.default_rng(1)
    packed = onnx.helper.make_tensor("w", onnx.TensorProto.INT4, [2048, 2048], rng.integers(0, 256, 2048 * 1024, np.uint8).tobytes(),
                                     raw=True)
    nodes = [node("DequantizeLinear", ["w", "scale"], ["f"], axis=0, block_size=64), node("MatMul", ["x", "f"], ["y"])]
    return make(nodes, [value("x", onnx.TensorProto.FLOAT, ["n", 2048])], [value("y", onnx.TensorProto.FLOAT, ["n", 2048])],
                [("w", packed), ("scale", rng.uniform(0.01, 0.1, (32, 2048)).astype(np.float32))], opset=21, ir_version=10)


def stays_small(folder: Path) -> str | None:
    path, after = folder / "int4.onnx", folder / "int4_optimized.onnx"
    onnx.save(large_int4(), path)
    done = ortc("optimize", path, "-o", after, "--no-check")
    if done.returncode or [n.op_type for n in onnx.load(after).graph.node] != ["DequantizeLinear", "Transpose", "MatMul"]:
        return f"folded, or not optimized: {done.stderr}"
    if after.stat().st_size > 1.1 * path.stat().st_size:
        return f"{path.stat().st_size} bytes became {after.stat().st_size}"
    feed = {"x": np.random.default_rng(2).standard_normal((2, 2048)).astype(np.float32)}
    (expected,) = run_reference(Model("int4", large_int4(), [feed]), large_int4(), ["y"])[0]
    for configuration in CONFIGURATIONS:
        got = run_alone(path, feed, *where(configuration))["y"]
        if not np.allclose(got, expected, rtol=1e-4, atol=1e-3):
            return f"on {configuration}: differs by {np.abs(got - expected).max()}"
    return None


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        run_models(Path(name))
        run_random(Path(name))
        run_info(Path(name))
        check("four-bit weights are not folded", lambda: stays_small(Path(name)))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
