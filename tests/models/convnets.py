"""Two convolutional networks as PyTorch's exporter writes them in evaluation, with weights from a seed: ResNet-50, and a
detector with the blocks of the small YOLOs (SiLU, splits and concatenations, pooling in a row, nearest upsampling).

Sizes are parameters: tests use narrow ones on small pictures, benchmarks the real ones.
"""

from __future__ import annotations

import math

import numpy as np
from model import F32, make, node, value


class Net:
    def __init__(self, seed: int = 1):
        self.rng, self.nodes, self.weights = np.random.default_rng(seed), [], []

    def op(self, kind: str, *inputs: str, **attributes) -> str:
        out = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(node(kind, list(inputs), [out], name=f"/{out}", **attributes))
        return out

    def constant(self, array) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append((name, np.asarray(array)))
        return name

    def conv(self, x: str, c_in: int, c_out: int, kernel: int = 1, stride: int = 1, group: int = 1) -> str:
        fan = c_in // group * kernel * kernel
        w = self.rng.standard_normal((c_out, c_in // group, kernel, kernel)).astype(np.float32) * math.sqrt(1 / fan)
        b = self.rng.standard_normal(c_out).astype(np.float32) * 0.1
        return self.op("Conv", x, self.constant(w), self.constant(b), kernel_shape=[kernel] * 2, strides=[stride] * 2,
                       pads=[kernel // 2] * 4, group=group)  # fmt: skip

    def silu(self, x: str) -> str:
        return self.op("Mul", x, self.op("Sigmoid", x))


def resnet50(size: int = 224, width: int = 64, blocks=(3, 4, 6, 3), classes: int = 1000, batch="N"):
    """Version 1.5: the stride is in the 3x3 convolution."""
    n = Net()
    x = n.op("Relu", n.conv("image", 3, width, 7, 2))
    x = n.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    c = width
    for stage, count in enumerate(blocks):
        inner = width << stage
        for i in range(count):
            stride = 2 if stage and not i else 1
            y = n.op("Relu", n.conv(x, c, inner))
            y = n.op("Relu", n.conv(y, inner, inner, 3, stride))
            y = n.conv(y, inner, 4 * inner)
            skip = n.conv(x, c, 4 * inner, 1, stride) if not i else x
            x, c = n.op("Relu", n.op("Add", y, skip)), 4 * inner
    x = n.op("Flatten", n.op("GlobalAveragePool", x))
    w = n.rng.standard_normal((classes, c)).astype(np.float32) / math.sqrt(c)
    n.op("Gemm", x, n.constant(w), n.constant(np.zeros(classes, np.float32)), transB=1)
    return make(n.nodes, [value("image", F32, [batch, 3, size, size])], [value(n.nodes[-1].output[0], F32, None)], n.weights)


def yolo(size: int = 640, width: int = 16, depth: int = 1, classes: int = 80, batch: int = 1):
    """Backbone, neck and the three heads, before their boxes are decoded."""
    n = Net(2)

    def block(x: str, c_in: int, c_out: int, kernel: int = 1, stride: int = 1) -> str:
        return n.silu(n.conv(x, c_in, c_out, kernel, stride))

    def c2f(x: str, c_in: int, c_out: int, repeats: int, shortcut: bool) -> str:
        half = c_out // 2
        x = block(x, c_in, c_out)
        split = node("Split", [x, n.constant(np.array([half, half]))], [x + "_a", x + "_b"], name=x + "_split", axis=1)
        n.nodes.append(split)
        parts = [x + "_a", x + "_b"]
        for _ in range(repeats):
            y = block(block(parts[-1], half, half, 3), half, half, 3)
            parts.append(n.op("Add", parts[-1], y) if shortcut else y)
        return block(n.op("Concat", *parts, axis=1), half * len(parts), c_out)

    def sppf(x: str, c: int) -> str:
        parts = [block(x, c, c // 2)]
        for _ in range(3):
            parts.append(n.op("MaxPool", parts[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
        return block(n.op("Concat", *parts, axis=1), 2 * c, c)

    def up(x: str) -> str:
        return n.op("Resize", x, "", n.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest",
                    coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip

    w = [width << i for i in range(5)]
    x = block(block("image", 3, w[0], 3, 2), w[0], w[1], 3, 2)
    x = c2f(x, w[1], w[1], depth, True)
    p3 = c2f(block(x, w[1], w[2], 3, 2), w[2], w[2], 2 * depth, True)
    p4 = c2f(block(p3, w[2], w[3], 3, 2), w[3], w[3], 2 * depth, True)
    p5 = sppf(c2f(block(p4, w[3], w[4], 3, 2), w[4], w[4], depth, True), w[4])
    n4 = c2f(n.op("Concat", up(p5), p4, axis=1), w[4] + w[3], w[3], depth, False)
    n3 = c2f(n.op("Concat", up(n4), p3, axis=1), w[3] + w[2], w[2], depth, False)
    n4 = c2f(n.op("Concat", block(n3, w[2], w[2], 3, 2), n4, axis=1), w[2] + w[3], w[3], depth, False)
    n5 = c2f(n.op("Concat", block(n4, w[3], w[3], 3, 2), p5, axis=1), w[3] + w[4], w[4], depth, False)
    heads, box = [], max(16, w[2] // 4, 64)
    score = max(w[2], min(classes, 100))
    for x, c in ((n3, w[2]), (n4, w[3]), (n5, w[4])):
        b = n.conv(block(block(x, c, box, 3), box, box, 3), box, 64)
        s = n.conv(block(block(x, c, score, 3), score, score, 3), score, classes)
        both = n.op("Concat", b, s, axis=1)
        heads.append(n.op("Reshape", both, n.constant(np.array([batch, 64 + classes, -1]))))
    n.op("Concat", *heads, axis=2)
    return make(n.nodes, [value("image", F32, [batch, 3, size, size])], [value(n.nodes[-1].output[0], F32, None)], n.weights)
