"""Networks that give pictures or text of pictures, as exporters write them, with weights from a seed: a U-Net, a detector of text (DB on
a backbone of depthwise convolutions, squeezed and excited, with HardSwish) and two recognisers of text lines (CRNN; SVTR-like).
"""

from __future__ import annotations

import numpy as np
from classifiers import Classifier
from model import node


class Picture(Classifier):
    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def transposed_conv(self, x: str, c_in: int, c_out: int) -> str:
        w = self.rng.standard_normal((c_in, c_out, 2, 2), np.float32) / np.float32(c_in**0.5)
        return self.op("ConvTranspose", x, self.constant(w), self.constant(np.zeros(c_out, np.float32)), kernel_shape=[2, 2], strides=[2, 2])

    def up(self, x: str, times: int) -> str:
        return self.op("Resize", x, "", self.constant(np.array([1, 1, times, times], np.float32)), mode="nearest",
                       coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip

    def hard(self, x: str) -> str:
        return self.op("HardSwish", x)

    def lstm(self, x: str, width: int, hidden: int, both: bool = True) -> str:
        """[length, 1, width] to [length, 1, hidden * directions], as torch.nn.LSTM is written."""
        ways = 2 if both else 1
        w, r = (self.rng.standard_normal((ways, 4 * hidden, k), np.float32) / np.float32(k**0.5) for k in (width, hidden))
        b, state = self.rng.standard_normal((ways, 8 * hidden), np.float32) * np.float32(0.1), np.zeros((ways, 1, hidden), np.float32)
        out = f"lstm_{len(self.nodes)}"
        inputs = [x, *(self.constant(a) for a in (w, r, b)), "", self.constant(state), self.constant(state)]
        self.nodes.append(node("LSTM", inputs, [out, out + "_h", out + "_c"], hidden_size=hidden, direction="bidirectional" if both else "forward"))
        if not both:
            return self.op("Squeeze", out, self.ints(1))
        return self.op("Reshape", self.op("Transpose", out, perm=[0, 2, 1, 3]), self.ints(0, 0, -1))


def unet(size: int = 256, width: int = 32, depth: int = 4, classes: int = 2):
    n = Picture(9)

    def two(x: str, c_in: int, c_out: int) -> str:
        return n.op("Relu", n.conv(n.op("Relu", n.conv(x, c_in, c_out, 3)), c_out, c_out, 3))

    x, c, kept = two("image", 3, width), width, []
    for _ in range(depth):
        kept.append((x, c))
        x = two(n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), c, 2 * c)
        c *= 2
    for skip, half in reversed(kept):
        x = two(n.op("Concat", skip, n.transposed_conv(x, c, half), axis=1), c, half)
        c = half
    n.conv(x, c, classes)
    return n.model([1, 3, size, size])


def depthwise(n: Picture, x: str, c_in: int, c_out: int, kernel: int, stride, squeeze: bool) -> str:
    """One channel a group, perhaps squeezed and excited, then points."""
    if squeeze:
        s = n.op("Relu", n.conv(n.op("GlobalAveragePool", x), c_in, c_in // 4))
        s = n.op("HardSigmoid", n.conv(s, c_in // 4, c_in), alpha=1 / 6, beta=0.5)
        x = n.op("Mul", x, s)
    w = n.rng.standard_normal((c_in, 1, kernel, kernel), np.float32) / np.float32(kernel)
    b, strides = n.constant(np.zeros(c_in, np.float32)), list(stride) if isinstance(stride, tuple) else [stride] * 2
    x = n.hard(n.op("Conv", x, n.constant(w), b, kernel_shape=[kernel] * 2, strides=strides, pads=[kernel // 2] * 4, group=c_in))
    return n.hard(n.conv(x, c_in, c_out))


def text_detector(size: int = 640, width: int = 16, neck: int = 96):
    """Four stages, a pyramid that adds and concatenates what is resized, and the head: probabilities of text for every pixel."""
    n = Picture(10)
    x, c, stages = n.hard(n.conv("image", 3, width, 3, 2)), width, []
    for stage, (out, count) in enumerate(((4 * width, 2), (8 * width, 2), (16 * width, 5), (32 * width, 2))):
        for i in range(count):
            x, c = depthwise(n, x, c, out, 5 if stage > 1 else 3, 2 if not i else 1, stage == 3), out
        stages.append((x, c))
    levels = [n.conv(x, c, neck) for x, c in stages]
    for i in (2, 1, 0):
        levels[i] = n.op("Add", levels[i], n.up(levels[i + 1], 2))
    parts = [n.conv(x, neck, neck // 4, 3) for x in levels]
    parts = [n.up(p, 1 << i) if i else p for i, p in enumerate(parts)]
    x = n.op("Relu", n.conv(n.op("Concat", *reversed(parts), axis=1), neck, neck // 4, 3))
    x = n.op("Relu", n.transposed_conv(x, neck // 4, neck // 4))
    n.op("Sigmoid", n.transposed_conv(x, neck // 4, 1))
    return n.model([1, 3, size, size])


def crnn(length: int = 320, width: int = 64, hidden: int = 256, letters: int = 97):
    """A line of 32 rows becomes one row, which two LSTMs of both directions read."""
    n = Picture(11)

    def block(x: str, c_in: int, c_out: int, pool=None) -> str:
        x = n.op("Relu", n.conv(x, c_in, c_out, 3))
        return n.op("MaxPool", x, kernel_shape=pool, strides=pool) if pool else x

    x = block(block("image", 1, width, [2, 2]), width, 2 * width, [2, 2])
    x = block(block(x, 2 * width, 4 * width), 4 * width, 4 * width, [2, 1])
    x = block(block(x, 4 * width, 8 * width), 8 * width, 8 * width, [2, 1])
    w = n.rng.standard_normal((8 * width, 8 * width, 2, 2), np.float32) / np.float32((32 * width) ** 0.5)
    x = n.op("Relu", n.op("Conv", x, n.constant(w), n.constant(np.zeros(8 * width, np.float32)), kernel_shape=[2, 2]))
    x = n.op("Transpose", n.op("Squeeze", x, n.ints(2)), perm=[2, 0, 1])
    for c in (8 * width, hidden):
        x = n.linear(n.lstm(x, c, hidden), 2 * hidden, hidden)
    n.op("Softmax", n.linear(x, hidden, letters), axis=2)
    return n.model([1, 1, 32, length])


def svtr(length: int = 320, width: int = 32, letters: int = 6625, heads: int = 8, layers: int = 2):
    """Depthwise convolutions that keep the length, an encoder over what is left of the rows, letters of a large alphabet."""
    n = Picture(12)
    x, c = n.hard(n.conv("image", 3, width, 3, 2)), width
    for i, (out, stride) in enumerate(((2 * width, 1), (4 * width, 1), (4 * width, (2, 1)), (8 * width, 1), (8 * width, (2, 1)), (16 * width, 1))):
        x, c = depthwise(n, x, c, out, 5 if i > 2 else 3, stride, i > 3), out
    x = n.op("AveragePool", x, kernel_shape=[4, 2], strides=[4, 2])
    steps, inner, size = length // 4, 4 * width, 4 * width // heads
    x = n.silu(n.conv(n.silu(n.conv(x, c, c // 8, 3)), c // 8, inner))
    x = n.op("Transpose", n.op("Squeeze", x, n.ints(2)), perm=[0, 2, 1])
    for _ in range(layers):
        y = n.op("Reshape", n.linear(n.norm(x, inner), inner, 3 * inner), n.ints(1, steps, 3, heads, size))
        y = n.op("Transpose", y, perm=[2, 0, 3, 1, 4])
        q, k, v = (n.op("Gather", y, n.constant(np.int64(i)), axis=0) for i in range(3))
        q = n.op("Mul", q, n.constant(np.float32(size**-0.5)))
        y = n.op("Softmax", n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2])), axis=-1)
        y = n.op("Reshape", n.op("Transpose", n.op("MatMul", y, v), perm=[0, 2, 1, 3]), n.ints(1, steps, inner))
        x = n.op("Add", x, n.linear(y, inner, inner))
        x = n.op("Add", x, n.linear(n.silu(n.linear(n.norm(x, inner), inner, 2 * inner)), 2 * inner, inner))
    n.op("Softmax", n.linear(n.norm(x, inner), inner, letters), axis=2)
    return n.model([1, 3, 32, length])
