"""Networks of less than two milliseconds, where what a run costs besides its arithmetic counts: perceptrons, keyword spotting, voice
activity, recommendation, control, taggers and the like, as exporters write them, with weights from a seed. Also two recurrent ones that are
not small. Each function writes one.
"""

from __future__ import annotations

import numpy as np
from model import F32, I64, make, node, value
from pictures import Picture, depthwise, unet


class Small(Picture):
    def gemms(self, x: str, *widths: int, last: str = "") -> str:
        """Linear layers of a matrix, Relu between them."""
        for i, (a, b) in enumerate(zip(widths, widths[1:])):
            x = self.gemm(x, a, b)
            x = self.op("Relu", x) if i + 2 < len(widths) else x
        return self.op(last, x) if last else x

    def conv1d(self, x: str, c_in: int, c_out: int, k: int = 3, stride: int = 1, dilation: int = 1, pad: int | None = None) -> str:
        w = self.rng.standard_normal((c_out, c_in, k), np.float32) / np.float32((c_in * k) ** 0.5)
        pad = dilation * (k // 2) if pad is None else pad
        return self.op("Conv", x, self.constant(w), self.constant(np.zeros(c_out, np.float32)), kernel_shape=[k], strides=[stride],
                       dilations=[dilation], pads=[pad, pad])  # fmt: skip

    def gru(self, x: str, width: int, hidden: int, ways: int = 1) -> str:
        w, r = (self.rng.standard_normal((ways, 3 * hidden, k), np.float32) / np.float32(k**0.5) for k in (width, hidden))
        b, state = self.rng.standard_normal((ways, 6 * hidden), np.float32) * np.float32(0.1), np.zeros((ways, 1, hidden), np.float32)
        out = f"gru_{len(self.nodes)}"
        inputs = [x, *(self.constant(a) for a in (w, r, b)), "", self.constant(state)]
        self.nodes.append(node("GRU", inputs, [out, out + "_h"], hidden_size=hidden, linear_before_reset=1, direction="bidirectional" if ways > 1 else "forward"))
        if ways == 1:
            return self.op("Squeeze", out, self.ints(1))
        return self.op("Reshape", self.op("Transpose", out, perm=[0, 2, 1, 3]), self.ints(0, 0, -1))

    def embedded(self, ids: str, words: int, width: int) -> str:
        return self.op("Gather", self.constant(self.rng.standard_normal((words, width), np.float32)), ids)

    def words_model(self, shape, name: str = "ids"):
        return make(self.nodes, [value(name, I64, shape)], [value(self.nodes[-1].output[0], F32, None)], self.weights, opset=17)


def perceptron():
    n = Small(31)
    n.gemms(n.op("Flatten", "image"), 784, 256, 128, 10, last="Softmax")
    return n.model([1, 1, 28, 28])


def lenet():
    n = Small(32)
    x = n.op("MaxPool", n.op("Relu", n.conv("image", 1, 6, 5)), kernel_shape=[2, 2], strides=[2, 2])
    x = n.op("MaxPool", n.op("Relu", n.conv(x, 6, 16, 5)), kernel_shape=[2, 2], strides=[2, 2])
    n.gemms(n.op("Flatten", x), 784, 120, 84, 10)
    return n.model([1, 1, 28, 28])


def resnet8():
    n, c = Small(33), 16
    x = n.op("Relu", n.conv("image", 3, c, 3))
    for i, out in enumerate((16, 32, 64)):
        y = n.conv(n.op("Relu", n.conv(x, c, out, 3, 2 if i else 1)), out, out, 3)
        x, c = n.op("Relu", n.op("Add", y, n.conv(x, c, out, 1, 2) if i else x)), out
    n.head(x, c, 10)
    return n.model([1, 3, 32, 32])


def keywords():
    n = Small(34)
    x = n.op("Relu", n.conv("image", 1, 64, 3, 2))
    for _ in range(4):
        x = n.op("Relu", n.conv(n.op("Relu", n.conv(x, 64, 64, 3, 1, 64)), 64, 64))
    n.op("Softmax", n.head(x, 64, 12))
    return n.model([1, 1, 49, 10])


def voice_activity():
    n, x = Small(35), "sound"
    for c_in, c_out in ((1, 16), (16, 32), (32, 32), (32, 64)):
        x = n.op("Relu", n.conv1d(x, c_in, c_out, 3, 2))
    x = n.lstm(n.op("Transpose", x, perm=[2, 0, 1]), 64, 64, both=False)
    n.op("ReduceMean", n.op("Sigmoid", n.linear(x, 64, 1)), axes=[0], keepdims=0)
    return n.model([1, 1, 512], name="sound")


def autoencoder():
    n = Small(36)
    n.gemms("frames", 640, 128, 128, 128, 8, 128, 128, 128, 640)
    return n.model([1, 640], name="frames")


def mobilenet_quarter():
    n, c = Small(37), 8
    x = n.op("Relu", n.conv("image", 3, c, 3, 2))
    for out, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (128, 1), (128, 1), (256, 2), (256, 1)):
        x = n.op("Relu", n.conv(x, c, c, 3, stride, c))
        x, c = n.op("Relu", n.conv(x, c, out)), out
    n.head(x, c, 2)
    return n.model([1, 3, 96, 96])


def recommender():
    """Eight categories and thirteen numbers of 64 candidates."""
    n, parts = Small(38), []
    for i in range(8):
        ids = n.op("Gather", "ids", n.constant(np.int64(i)), axis=1)
        parts.append(n.embedded(ids, 1000, 16))
    numbers = n.op("Cast", n.op("Slice", "ids", n.ints(8), n.ints(21), n.ints(1)), to=F32)
    dense = n.op("Relu", n.gemm(n.op("Mul", numbers, n.constant(np.float32(1e-3))), 13, 16))
    n.gemms(n.op("Concat", *parts, dense, axis=1), 144, 128, 64, 1, last="Sigmoid")
    return n.words_model([64, 21])


def temporal():
    n, x = Small(39), "series"
    for i in range(4):
        y = n.op("Relu", n.conv1d(x, 64 if i else 8, 64, 3, 1, 1 << i))
        y = n.op("Relu", n.conv1d(y, 64, 64, 3, 1, 1 << i))
        x = n.op("Relu", n.op("Add", y, x if i else n.conv1d(x, 8, 64, 1)))
    n.gemm(n.op("Flatten", n.op("GlobalAveragePool", x)), 64, 6)
    return n.model([1, 8, 128], name="series")


def tagger():
    n = Small(40)
    n.linear(n.gru(n.op("Unsqueeze", n.embedded("ids", 5000, 64), n.ints(1)), 64, 64, 2), 128, 17)
    return n.words_model([32])


def text_cnn():
    n = Small(41)
    x, parts = n.op("Transpose", n.embedded("ids", 5000, 64), perm=[0, 2, 1]), []
    for k in (3, 4, 5):
        y = n.op("Relu", n.conv1d(x, 64, 32, k, pad=0))
        parts.append(n.op("Squeeze", n.op("MaxPool", y, kernel_shape=[64 - k + 1]), n.ints(2)))
    n.gemm(n.op("Concat", *parts, axis=1), 96, 4)
    return n.words_model([1, 64])


def player():
    n, x = Small(42), "image"
    for c_in, c_out, k, s in ((4, 32, 8, 4), (32, 64, 4, 2), (64, 64, 3, 1)):
        w = n.rng.standard_normal((c_out, c_in, k, k), np.float32) / np.float32(k * c_in**0.5)
        x = n.op("Relu", n.op("Conv", x, n.constant(w), n.constant(np.zeros(c_out, np.float32)), kernel_shape=[k, k], strides=[s, s]))
    n.gemms(n.op("Flatten", x), 3136, 512, 6)
    return n.model([1, 4, 84, 84])


def speaker():
    """A vector of unit length for a sound."""
    n, x = Small(43), "bins"
    for c_in, c_out, d in ((40, 128, 1), (128, 128, 2), (128, 128, 3)):
        x = n.op("Relu", n.conv1d(x, c_in, c_out, 3, 1, d))
    mean = n.op("ReduceMean", x, axes=[2], keepdims=1)
    off = n.op("Sub", x, mean)
    deviation = n.op("Sqrt", n.op("Add", n.op("ReduceMean", n.op("Mul", off, off), axes=[2], keepdims=1), n.constant(np.float32(1e-5))))
    x = n.gemm(n.op("Flatten", n.op("Concat", mean, deviation, axis=1)), 256, 128)
    length = n.op("Clip", n.op("ReduceL2", x, axes=[1], keepdims=1), n.constant(np.float32(1e-12)))
    n.op("Div", x, n.op("Expand", length, n.op("Shape", x)))
    return n.model([1, 40, 100], name="bins")


def forecast():
    n = Small(44)
    x = n.lstm("series", 8, 32, both=False)
    n.gemm(n.op("Gather", x, n.constant(np.int64(-1)), axis=0), 32, 4)
    return n.model([24, 1, 8], name="series")


def graph_convolution():
    n, x = Small(45), "nodes"
    near = np.abs(n.rng.standard_normal((128, 128), np.float32)) / np.float32(100)
    for a, b in ((64, 64), (64, 64), (64, 8)):
        x = n.op("Relu", n.op("MatMul", n.constant(near), n.linear(x, a, b)))
    n.op("LogSoftmax", x, axis=-1)
    return n.model([128, 64], name="nodes")


def squeezed():
    n, c = Small(46), 32
    x = n.op("Relu", n.conv("image", 3, c, 3, 2))
    for i, s in enumerate((8, 8, 16, 16)):
        x = n.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1]) if i % 2 == 0 else x
        y = n.op("Relu", n.conv(x, c, s))
        x, c = n.op("Concat", n.op("Relu", n.conv(y, s, 4 * s)), n.op("Relu", n.conv(y, s, 4 * s, 3)), axis=1), 8 * s
    n.op("Flatten", n.op("GlobalAveragePool", n.conv(x, c, 10)))
    return n.model([1, 3, 64, 64])


def mixer(tokens: int = 16, width: int = 64, layers: int = 2):
    n, x = Small(47), "patches"
    for _ in range(layers):
        y = n.op("Transpose", n.norm(x, width), perm=[0, 2, 1])
        y = n.linear(n.gelu(n.linear(y, tokens, 2 * tokens)), 2 * tokens, tokens)
        x = n.op("Add", x, n.op("Transpose", y, perm=[0, 2, 1]))
        x = n.op("Add", x, n.linear(n.gelu(n.linear(n.norm(x, width), width, 4 * width)), 4 * width, width))
    n.gemm(n.op("ReduceMean", x, axes=[1], keepdims=0), width, 10)
    return n.model([1, tokens, width], name="patches")


def face_landmarks():
    n = Small(48)
    x, c = n.hard(n.conv("image", 3, 16, 3, 2)), 16
    for out, stride in ((24, 2), (32, 2), (64, 2), (64, 1)):
        x, c = depthwise(n, x, c, out, 3, stride, True), out
    n.head(x, c, 136)
    return n.model([1, 3, 64, 64])


def small_unet():
    return unet(32, 8, 2)


def bilstm(length: int = 128, width: int = 256, words: int = 20000, tags: int = 17):
    n = Small(51)
    x = n.op("Unsqueeze", n.embedded("ids", words, width), n.ints(1))
    for c in (width, 2 * width):
        x = n.lstm(x, c, width)
    n.linear(x, 2 * width, tags)
    return n.words_model([length])


def gru(length: int = 128, width: int = 256, hidden: int = 512, letters: int = 64):
    n = Small(52)
    x = "sound"
    for c in (width, hidden):
        x = n.gru(x, c, hidden)
    n.op("LogSoftmax", n.linear(x, hidden, letters), axis=-1)
    return n.model([length, 1, width], name="sound")


SMALL = (perceptron, lenet, resnet8, keywords, voice_activity, autoencoder, mobilenet_quarter, recommender, temporal, tagger, text_cnn, player,
         speaker, forecast, graph_convolution, squeezed, mixer, face_landmarks, small_unet)  # fmt: skip
