"""Where others differ from ortc, and who is right: for each row of the two tables a small case with its results from the standard's text,
by hand in f64. ortc must give them; the other one must not, or its row has to go."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import onnx
import peer
from cases import Case, difference

PRODUCTS = ("QLinearConv", "QLinearMatMul", "MatMulInteger") if peer.saturates() else ()

# By the traits of a graph (differential.py), with the reason; graphs that have them are not compared with that one.
ONNXRUNTIME = {
    "MeanVarianceNormalization": "its variance is a difference of squares, which may be below 0",
    **{f"{r} empty": "it does not reduce what has no elements along an axis that is counted from the last" for r in
       ("ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp")},
    "Gelu f64": "its double has constants of floats",
    "HardSwish f64": "its 1/6 is that of floats",
    "ReduceProd i32": "of what does not fit it makes the largest number, where integers of others wrap around: the standard does not say",
    "ReduceSumSquare i32": "as ReduceProd",
    **{f"{p} s8": "without VNNI its sums of two products with s8 saturate at 16 bits" for p in PRODUCTS},
    "GridSample cubic border": "of a point outside it moves the neighbours to the border, as PyTorch does; the standard moves the point",
}
EVALUATOR = {
    "Optional": "it puts the tensor into a list",
    "LRN": "it sums for as many channels as there are images",
    "GRU lengths": "it does not look at them",
    "LSTM lengths": "it does not look at them",
    "RNN lengths": "it does not look at them",
    "Erf f64": "it computes in f32",
    "HardSwish f64": "its 1/6 is that of floats",
    "MaxPool indices": "along one dim it counts from the beginning of each channel, not of the tensor",
    "GlobalMaxPool": "it knows four dims only",
    "ReduceSumSquare i32": "it makes i64 of it",
    "Gelu f64": "its erf is that of f32",
    "GridSample reference": "align_corners is 1 where a function's attribute says 0",
    "QLinearConv": "it rounds after the zero point is added",
    "QLinearMatMul": "as QLinearConv",
    "Unique unsorted": "it sorts where one output is asked for, and elsewhere takes of the first axis what it found along another",
    "SequenceInsert place": "at the end of a sequence it inserts at the beginning",
}


class Dispute(NamedTuple):
    row: str
    body: str  # the graph's nodes, from x (and more) to y
    feeds: dict[str, np.ndarray]
    expected: np.ndarray
    bound: float = 0.0
    functions: str = ""

    def case(self) -> Case:
        kinds = {"float32": "float", "float64": "double", "int32": "int32", "uint8": "uint8", "int64": "int64", "int8": "int8"}
        inputs = ", ".join(f"{kinds[a.dtype.name]}[{', '.join(map(str, a.shape))}] {n}" for n, a in self.feeds.items())
        text = f'<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g ({inputs}) => ({kinds[self.expected.dtype.name]} y) {{ {self.body} }} {self.functions}'
        return Case(onnx.parser.parse_model(text), self.feeds, {"y": self.bound})


def line(*v, dtype=np.float32, shape=None) -> np.ndarray:
    a = np.array(v, dtype)
    return a.reshape(shape) if shape else a


def mean_variance() -> Dispute:
    """All the same: nothing is left of the numerator, and the standard's function adds 1e-9 to the divisor."""
    x = np.full((1, 2, 2, 3), 0.1, np.float32)
    return Dispute("MeanVarianceNormalization", "y = MeanVarianceNormalization <axes = [0, 2, 3]> (x)", {"x": x}, np.zeros_like(x), 1e-3)


def nothing_reduced(op: str) -> Dispute:
    y = np.full((2, 3), -np.inf if "Log" in op else 0, np.float32)
    return Dispute(f"{op} empty", f"axes = Constant <value_ints = [-1]> () y = {op} <keepdims = 0> (x, axes)", {"x": np.zeros((2, 3, 0), np.float32)}, y)


def gelu() -> Dispute:
    x = np.linspace(-3, 3, 13)
    return Dispute("Gelu f64", "y = Gelu (x)", {"x": x}, np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x]), 1e-14)


def cubic_border() -> Dispute:
    """"Use border values for out-of-bound grid locations": along a row of four, a point outside is the first or the last of it."""
    row, xs = [1.0, -2.0, 4.0, 3.0], [-1.3, -0.5, 0.1, 1.2]
    a = -0.75

    def weight(d: float) -> float:
        d = abs(d)
        return ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    y = []
    for x in xs:
        at = ((x + 1) * 4 - 1) / 2
        at = at if -0.5 <= at <= 3.5 else min(max(at, 0), 3)
        first = math.floor(at) - 1
        y.append(sum(weight(at - k) * row[min(max(k, 0), 3)] for k in range(first, first + 4)))
    grid = np.stack([np.array(xs, np.float32), np.zeros(4, np.float32)], -1).reshape(1, 1, 4, 2)
    return Dispute("GridSample cubic border", 'y = GridSample <mode = "cubic", padding_mode = "border", align_corners = 0> (x, grid)',
                   {"x": line(*row, shape=(1, 1, 1, 4)), "grid": grid}, line(*y, shape=(1, 1, 1, 4)), 1e-5)  # fmt: skip


def hard_swish() -> Dispute:
    """"y = x * max(0, min(1, alpha * x + beta)), where alpha = 1/6 and beta = 0.5"."""
    x = np.linspace(-4, 4, 17)
    return Dispute("HardSwish f64", "y = HardSwish (x)", {"x": x}, x * np.clip(x / 6 + 0.5, 0, 1), 1e-14)


def wrapped(op: str) -> Dispute:
    x = line(40000, 3, 50000, 7, dtype=np.int32)
    exact = math.prod(map(int, x)) if op == "ReduceProd" else sum(int(v) ** 2 for v in x)
    return Dispute(f"{op} i32", f"y = {op} <keepdims = 0> (x)", {"x": x}, np.array((exact + 2**31) % 2**32 - 2**31, np.int32))


def max_pool_indices() -> Dispute:
    """"The index values of the flattened tensor": the largest of channel 1 is element 3 of six."""
    return Dispute("MaxPool indices", "m, y = MaxPool <kernel_shape = [3]> (x)", {"x": line(1, 5, 2, -1, -3, -2, shape=(1, 2, 3))},
                   line(1, 3, dtype=np.int64, shape=(1, 2, 1)))  # fmt: skip


def optional() -> Dispute:
    x = line(1, 2, 3)
    return Dispute("Optional", "o = Optional (x) y = OptionalGetElement (o)", {"x": x}, x)


def unsorted() -> Dispute:
    x = line(-2, -3.25, -2, shape=(3, 1))
    return Dispute("Unique unsorted", "y = Unique <sorted = 0> (x)", {"x": x}, line(-2, -3.25))


def inserted() -> Dispute:
    feeds = {"x": line(1, 2), "z": line(3), "i": line(1, dtype=np.int64)}
    return Dispute("SequenceInsert place", "s = SequenceConstruct (x) t = SequenceInsert (s, z, i) y = ConcatFromSequence <axis = 0> (t)", feeds, line(1, 2, 3))


def lrn() -> Dispute:
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 4, 2, 1)
    e, y = x.astype(np.float64), np.zeros(x.shape)
    for c in range(4):
        near = (e[:, max(0, c - 1):c + 2] ** 2).sum(axis=1)
        y[:, c] = e[:, c] / (1 + 0.5 / 3 * near) ** 0.75
    return Dispute("LRN", "y = LRN <alpha = 0.5, beta = 0.75, bias = 1.0, size = 3> (x)", {"x": x}, y.astype(np.float32), 1e-6)


def recurrent(op: str, gates: int) -> Dispute:
    """Two sequences of 3 and 1 steps, of one element: the second's results are 0 behind its end, its state is that of its last step."""
    dice = np.random.default_rng(7)
    x, w, r = (dice.uniform(-1, 1, s).astype(np.float32) for s in ((3, 2, 1), (1, gates, 1), (1, gates, 1)))
    y = np.zeros((3, 1, 2, 1))
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    for k, n in enumerate((3, 1)):
        h = c = 0.0
        for t in range(n):
            i, p = x[t, k, 0] * w[0, :, 0].astype(np.float64), r[0, :, 0].astype(np.float64)
            if op == "RNN":
                h = np.tanh(i[0] + p[0] * h)
            elif op == "GRU":
                z, reset = sigmoid(i[0] + p[0] * h), sigmoid(i[1] + p[1] * h)
                h = (1 - z) * np.tanh(i[2] + p[2] * reset * h) + z * h
            else:
                g = i + p * h
                c = sigmoid(g[2]) * c + sigmoid(g[0]) * np.tanh(g[3])
                h = sigmoid(g[1]) * np.tanh(c)
            y[t, 0, k, 0] = h
    return Dispute(f"{op} lengths", f"y, last = {op} <hidden_size = 1> (x, w, r, , lengths)",
                   {"x": x, "w": w, "r": r, "lengths": line(3, 1, dtype=np.int32)}, y.astype(np.float32), 1e-5)  # fmt: skip


def erf() -> Dispute:
    x = np.linspace(-2, 2, 9)
    return Dispute("Erf f64", "y = Erf (x)", {"x": x}, np.array([math.erf(v) for v in x]), 1e-14)


def global_max() -> Dispute:
    x = line(1, 5, 2, -1, -3, -2, shape=(1, 2, 3))
    return Dispute("GlobalMaxPool", "y = GlobalMaxPool (x)", {"x": x}, line(5, -1, shape=(1, 2, 1)))


def squares() -> Dispute:
    return Dispute("ReduceSumSquare i32", "y = ReduceSumSquare <keepdims = 0> (x)", {"x": line(1, 2, 3, dtype=np.int32)}, np.array(14, np.int32))


def by_reference() -> Dispute:
    """Half of the point lies on the picture."""
    feeds = {"x": line(3, 5, shape=(1, 1, 1, 2)), "p": line(-1, 0, shape=(1, 1, 1, 2))}
    function = '<domain: "local", opset_import: ["" : 21]> F <a> (x, p) => (y) { y = GridSample <align_corners: int = @a> (x, p) }'
    return Dispute("GridSample reference", "y = local.F <a = 0> (x, p)", feeds, line(1.5, shape=(1, 1, 1, 1)), functions=function)


def rounded_product() -> Dispute:
    conv = rounded()
    flat = {n: a.reshape(1, 1) if n == "x" else a for n, a in conv.feeds.items()}
    return Dispute("QLinearMatMul", conv.body.replace("Conv", "MatMul"), flat, conv.expected.reshape(1, 1))


def rounded() -> Dispute:
    """0.5 is rounded to the even number 0, and then the zero point is added."""
    one, half, zero, odd = line(1, dtype=np.uint8, shape=(1, 1, 1, 1)), np.array(0.5, np.float32), np.array(0, np.uint8), np.array(1, np.uint8)
    return Dispute("QLinearConv", "y = QLinearConv (x, half, zero, x, unit, zero, unit, odd)",
                   {"x": one, "half": half, "zero": zero, "unit": np.array(1, np.float32), "odd": odd}, one)  # fmt: skip


def saturated(op: str) -> Dispute:
    """Four of the largest products, in each of 16 results; steps of 1 and 1/1024 make 127 (126.5 and a little) of their sum, 129,540."""
    x, w, product = np.full((16, 4), 255, np.uint8), np.full((4, 16), 127, np.int8), 4 * 255 * 127
    if op == "MatMulInteger":
        return Dispute(f"{op} s8", "y = MatMulInteger (x, w)", {"x": x, "w": w}, np.full((16, 16), product, np.int32))
    feeds = {"x": x, "unit": np.array(1, np.float32), "zero": np.array(0, np.uint8), "w": w, "even": np.array(0, np.int8), "step": np.array(1024, np.float32)}
    y = np.full((16, 16), round(product / 1024), np.uint8)
    if op == "QLinearConv":
        feeds |= {"x": x.T.reshape(1, 4, 4, 4).copy(), "w": w.T.reshape(16, 4, 1, 1).copy()}
        y = y.reshape(1, 16, 4, 4)
    return Dispute(f"{op} s8", f"y = {op} (x, unit, zero, w, unit, even, step, zero)", feeds, y)


DISPUTES: dict[str, list[Callable[[], Dispute]]] = {
    "onnxruntime": [mean_variance, gelu, cubic_border, hard_swish, *(lambda p=p: saturated(p) for p in PRODUCTS), *(lambda op=op: wrapped(op) for op in ("ReduceProd", "ReduceSumSquare")), *(lambda op=r.split()[0]: nothing_reduced(op) for r in ONNXRUNTIME if r.endswith("empty"))],
    "evaluator": [optional, unsorted, inserted, lrn, erf, hard_swish, max_pool_indices, global_max, squares, rounded, rounded_product, by_reference, gelu, *(lambda op=op, n=n: recurrent(op, n) for op, n in (("RNN", 1), ("GRU", 3), ("LSTM", 4)))],
}


def wrong(got: list[np.ndarray] | None, dispute: Dispute) -> str:
    """"" where these results are those of the standard's text."""
    return "no results" if got is None else difference("y", np.asarray(got[0]), dispute.expected, dispute.bound)
