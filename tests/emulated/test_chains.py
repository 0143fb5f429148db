#!/usr/bin/env python3
"""Chains of elementwise nodes as one step, against ref: test_chains.py ORTC PLUGIN

Random graphs: values that are read once and more than once, broadcast inputs, conditions, constants, results in the middle, in
floats and (exactly) in integers, which wrap around. Every graph must be answered as by ref, and chains must have been made at all.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from harness import check, finish, packages  # noqa: E402

np, onnx, helper, numpy_helper = packages("numpy", "onnx", "onnx.helper", "onnx.numpy_helper")

ORTC, PLUGIN = sys.argv[1:3]
GRAPHS = 100
TYPES = [np.float32, np.int32, np.float32, np.uint8, np.int64, np.float32, np.int8, np.float64, np.uint64, np.uint16]
SHAPES = [([3, 5, 16], [[3, 5, 16], [16], [5, 1], [3, 1, 1], [], [1, 5, 16]]), ([2, 37], [[2, 37], [37], [2, 1], []]), ([1024], [[1024], [1]])]


class Graph:
    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.shape, self.others = SHAPES[seed % len(SHAPES)]
        self.dtype = np.dtype(TYPES[seed % len(TYPES)])
        self.whole = self.dtype.kind in "iu"
        self.elem = helper.np_dtype_to_tensor_dtype(self.dtype)
        self.nodes, self.inputs, self.weights, self.feeds = [], [], [], {}
        self.values: list[str] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def data(self, shape):
        if self.whole:
            bounds = np.iinfo(self.dtype)
            return self.rng.integers(bounds.min, bounds.max, shape, self.dtype, endpoint=True)
        return self.rng.uniform(-2, 2, shape).astype(self.dtype)

    def leaf(self) -> str:
        """An input, a constant or a value that is there already."""
        kind = self.rng.integers(0, 6)
        if self.values and kind >= 2:
            return self.values[self.rng.integers(max(0, len(self.values) - 4), len(self.values))]
        name, data = self.name(), self.data(self.others[self.rng.integers(0, len(self.others))])
        if kind == 0:
            self.weights.append(numpy_helper.from_array(data, name))
        else:
            self.inputs.append(helper.make_tensor_value_info(name, self.elem, list(data.shape)))
            self.feeds[name] = data
        return name

    def node(self, op: str, *inputs: str, **attributes) -> str:
        out = self.name()
        self.nodes.append(helper.make_node(op, list(inputs), [out], name=out, **attributes))
        return out

    def grow(self) -> None:
        kind = self.rng.integers(0, 12)
        if kind < 5:
            v = self.node(("Add", "Sub", "Mul", "Min", "Max")[kind], self.leaf(), self.leaf())
        elif kind < 9:
            v = self.unary(self.leaf())
        elif kind == 9:
            condition = self.node(("Less", "Greater")[self.rng.integers(0, 2)], self.leaf(), self.leaf())
            if self.rng.integers(0, 2):
                condition = self.node("Not", condition)
            v = self.node("Where", condition, self.leaf(), self.leaf())
        elif kind == 10:
            v = self.node("Div", self.leaf(), self.node("Add", self.node("Abs", self.leaf()), self.one()))
        elif self.whole:
            v = self.narrowed(self.node("Mod", self.leaf(), self.leaf()))
        else:
            v = self.node("Sum", self.leaf(), self.leaf(), self.leaf())
        self.values.append(self.node("Sign" if self.whole else "Tanh", v) if self.rng.integers(0, 3) == 0 else v)

    def unary(self, x: str) -> str:
        if not self.whole:
            return self.node(("Tanh", "Sigmoid", "Neg", "Gelu", "Abs", "Relu")[self.rng.integers(0, 6)], x)
        if self.rng.integers(0, 3) == 0:
            return self.narrowed(x)
        return self.node("Abs", x) if self.dtype.kind == "u" else self.node(("Neg", "Abs", "Relu")[self.rng.integers(0, 3)], x)

    def narrowed(self, x: str) -> str:
        return self.node("Cast", self.node("Cast", x, to=onnx.TensorProto.UINT8 if self.dtype.kind == "i" else onnx.TensorProto.UINT16), to=self.elem)

    def one(self) -> str:
        name = self.name()
        self.weights.append(numpy_helper.from_array(self.dtype.type(1), name))
        return name

    def model(self):
        first = self.name()
        self.inputs.append(helper.make_tensor_value_info(first, self.elem, self.shape))
        self.feeds[first] = self.data(self.shape)
        self.values.append(first)
        for _ in range(int(self.rng.integers(3, 25))):
            self.grow()
        outputs = {self.node("Mul", self.values[-1], first)} | {v for v in self.values[1:-1] if self.rng.integers(0, 8) == 0}
        infos = [helper.make_tensor_value_info(v, self.elem, None) for v in sorted(outputs)]
        graph = helper.make_graph(self.nodes, "chains", self.inputs, infos, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def run(folder: Path, provider: str, *extra: str):
    out = folder / f"{provider}.npz"
    done = subprocess.run([ORTC, "run", folder / "m.onnx", "--input", folder / "in.npz", "--provider", provider, "--out", out, "-q", *extra],
                          capture_output=True, text=True, check=False)
    return (dict(np.load(out)), "") if done.returncode == 0 else (None, done.stderr)


def case(seed: int, folder: Path) -> str | None:
    g = Graph(seed)
    onnx.save(g.model(), folder / "m.onnx")
    np.savez(folder / "in.npz", **g.feeds)
    want, why = run(folder, "ref")
    if want is None:
        return why
    have, why = run(folder, "cuda", "--plugin", PLUGIN)
    if have is None:
        return why
    mine: list[int] = []
    placed = subprocess.run([ORTC, "info", folder / "m.onnx", "--placement", "--provider", "cuda", "--plugin", PLUGIN],
                            capture_output=True, text=True, check=True).stdout  # fmt: skip
    mine.extend(len(line.split("pointwise.cuda")[1].split()) for line in placed.splitlines() if "pointwise.cuda" in line)
    lengths.extend(mine)
    whole.extend(mine if g.whole else [])
    wrong = [k for k in want if not (np.array_equal(have[k], want[k]) if g.whole else np.allclose(have[k], want[k], rtol=1e-4, atol=1e-5, equal_nan=True))]
    return f"{wrong} differ\n{placed}" if wrong else None


def shapes_stay() -> str | None:
    """Sizes that exporters compute in floats: the host waits for them, so the host makes them."""
    twice, quarter = (numpy_helper.from_array(np.float32(v), n) for n, v in (("twice", 2), ("quarter", 0.25)))
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Cast", ["s"], ["f"], to=onnx.TensorProto.FLOAT),
             helper.make_node("Mul", ["f", "twice"], ["m"]), helper.make_node("Add", ["m", "quarter"], ["a"]),
             helper.make_node("Floor", ["a"], ["r"]), helper.make_node("Cast", ["r"], ["t"], to=onnx.TensorProto.INT64),
             helper.make_node("ConstantOfShape", ["t"], ["y"])]  # fmt: skip
    infos = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [rows, None]) for n, rows in (("x", "N"), ("y", None))]
    graph = helper.make_graph(nodes, "sizes", infos[:1], infos[1:], [twice, quarter])
    with tempfile.TemporaryDirectory() as name:
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), f"{name}/m.onnx")
        placed = subprocess.run([ORTC, "info", f"{name}/m.onnx", "--placement", "--provider", "cuda", "--plugin", PLUGIN],
                                capture_output=True, text=True, check=True).stdout  # fmt: skip
    return placed if "pointwise.cuda" in placed or placed.count("ref") < 6 else None


lengths: list[int] = []  # of all chains
whole: list[int] = []  # of those of integers
with tempfile.TemporaryDirectory() as name:
    for number in range(GRAPHS):
        check(f"graph {number}", lambda number=number: case(number, Path(name)))
check("chains were made, long ones too", lambda: None if len(lengths) >= GRAPHS and max(lengths) > 8 and len(whole) >= 20 and max(whole) > 8 else f"{sorted(lengths)} {sorted(whole)}")
check("what decides shapes is no chain", shapes_stay)
sys.exit(finish())
