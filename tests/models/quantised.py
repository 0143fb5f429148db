"""A small convolutional network and a small transformer, and what onnxruntime's quantiser makes of them: QDQ and QLinear forms,
static and dynamic, weights per channel and per tensor, signed and not. Weights and calibration data come from a seed.
"""

from __future__ import annotations

import logging
import tempfile

import numpy as np
import onnx
from convnets import Net
from model import F32, make, value
from onnxruntime import quantization as q

U8, S8 = q.QuantType.QUInt8, q.QuantType.QInt8


def cnn(size: int = 32) -> onnx.ModelProto:
    """A stem, pooling, a residual block at each width, one channel a group, points, a linear layer."""
    n = Net(seed=3)
    x = n.op("Relu", n.conv("x", 3, 24, 3, 2))
    x, c = n.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 24
    for stride, width in ((1, 24), (2, 40)):
        y = n.op("Relu", n.conv(n.op("Relu", n.conv(x, c, width)), width, width, 3, stride))
        x = n.op("Relu", n.op("Add", n.conv(y, width, width), n.conv(x, c, width, 1, stride)))
        x, c = n.conv(n.op("Relu", n.conv(x, width, width, 3, 1, width)), width, width), width
    x = n.op("Flatten", n.op("GlobalAveragePool", x))
    n.op("Gemm", x, n.constant(n.rng.standard_normal((10, c)).astype(np.float32) / 6), n.constant(np.zeros(10, np.float32)), transB=1)
    return make(n.nodes, [value("x", F32, [1, 3, size, size])], [value(n.nodes[-1].output[0], F32, None)], n.weights)


def gated(size: int = 24, width: int = 24) -> onnx.ModelProto:
    """Convolutions with what is one function of their 8 bits behind them, and residuals that are their own inputs."""
    n = Net(seed=7)

    def silu(x: str) -> str:
        return n.op("Mul", x, n.op("Sigmoid", x))

    x = silu(n.conv("x", 3, width, 3, 2))
    for act in (silu, lambda x: n.op("LeakyRelu", x, alpha=0.2), silu):
        x = n.op("Add", act(n.conv(x, width, width)), x)
        x = n.op("Add", n.conv(x, width, width), x)
    x = n.op("Flatten", n.op("GlobalAveragePool", silu(n.conv(x, width, 40, 1))))
    n.op("Gemm", x, n.constant(n.rng.standard_normal((10, 40)).astype(np.float32) / 6), n.constant(np.zeros(10, np.float32)), transB=1)
    return make(n.nodes, [value("x", F32, [1, 3, size, size])], [value(n.nodes[-1].output[0], F32, None)], n.weights)


def joined(size: int = 24, width: int = 32) -> onnx.ModelProto:
    """Halves that go their own ways and come together, with what each of them becomes, as detectors have it."""
    n = Net(seed=8)

    def silu(x: str) -> str:
        return n.op("Mul", x, n.op("Sigmoid", x))

    x = silu(n.conv("x", 3, width, 3, 2))
    for _ in range(2):
        halves = [f"half{len(n.nodes)}_{k}" for k in range(2)]
        n.nodes.append(onnx.helper.make_node("Split", [x], halves, axis=1))
        y = silu(n.conv(halves[1], width // 2, width // 2))
        z = n.op("Add", silu(n.conv(y, width // 2, width // 2)), y)
        x = silu(n.conv(n.op("Concat", *halves, y, z, axis=1), 2 * width, width, 1))
    x = n.op("Flatten", n.op("GlobalAveragePool", n.conv(x, width, 40, 1)))
    n.op("Gemm", x, n.constant(n.rng.standard_normal((10, 40)).astype(np.float32) / 6), n.constant(np.zeros(10, np.float32)), transB=1)
    return make(n.nodes, [value("x", F32, [1, 3, size, size])], [value(n.nodes[-1].output[0], F32, None)], n.weights)


def encoder(rows: int = 24, width: int = 64, heads: int = 4, inner: int = 160, layers: int = 2) -> onnx.ModelProto:
    """An encoder as exporters write it: linear layers of MatMul and Add, attention decomposed, Gelu by Erf."""
    n = Net(seed=4)
    split, join = n.constant(np.array([1, rows, heads, width // heads])), n.constant(np.array([1, rows, width]))

    def number(v: float) -> str:
        return n.constant(np.float32(v))

    def linear(x: str, a: int, b: int) -> str:
        w = n.rng.standard_normal((a, b)).astype(np.float32) / np.float32(np.sqrt(a))
        return n.op("Add", n.op("MatMul", x, n.constant(w)), n.constant(n.rng.standard_normal(b).astype(np.float32) * np.float32(0.1)))

    def norm(x: str) -> str:
        ones, zeros = np.ones(width, np.float32), np.zeros(width, np.float32)
        return n.op("LayerNormalization", x, n.constant(ones), n.constant(zeros), axis=-1)

    x = "x"
    for _ in range(layers):
        queries, keys, values = (n.op("Transpose", n.op("Reshape", linear(x, width, width), split), perm=perm)
                                 for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))  # fmt: skip
        p = n.op("Softmax", n.op("Div", n.op("MatMul", queries, keys), number(np.sqrt(width // heads))), axis=-1)
        y = n.op("Reshape", n.op("Transpose", n.op("MatMul", p, values), perm=[0, 2, 1, 3]), join)
        x = norm(n.op("Add", linear(y, width, width), x))
        h = linear(x, width, inner)
        gelu = n.op("Mul", n.op("Mul", h, n.op("Add", n.op("Erf", n.op("Div", h, number(np.sqrt(2)))), number(1))), number(0.5))
        x = norm(n.op("Add", linear(gelu, inner, width), x))
    return make(n.nodes, [value("x", F32, [1, rows, width])], [value(x, F32, [1, rows, width])], n.weights)


class _Calibration(q.CalibrationDataReader):
    def __init__(self, name: str, shape: list[int]):
        rng = np.random.default_rng(5)
        self.feeds = iter([{name: rng.standard_normal(shape).astype(np.float32)} for _ in range(4)])

    def get_next(self):
        return next(self.feeds, None)


def quantised(model: onnx.ModelProto, form: str, weights=S8, activations=U8, per_channel=False, symmetric=False) -> onnx.ModelProto:
    """form: "dynamic", "qdq" or "qlinear"."""
    logging.disable(logging.WARNING)  # it recommends steps that networks this small do not need
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    with tempfile.TemporaryDirectory() as folder:
        before, after = f"{folder}/before.onnx", f"{folder}/after.onnx"
        onnx.save(model, before)
        if form == "dynamic":
            q.quantize_dynamic(before, after, weight_type=weights, per_channel=per_channel)
        else:
            q.quantize_static(before, after, _Calibration(model.graph.input[0].name, shape), weight_type=weights, activation_type=activations,
                              quant_format=q.QuantFormat.QDQ if form == "qdq" else q.QuantFormat.QOperator,
                              per_channel=per_channel, extra_options={"ActivationSymmetric": symmetric})  # fmt: skip
        return onnx.load(after)
