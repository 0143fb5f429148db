"""Classifiers of pictures as PyTorch's exporter writes torchvision's in evaluation (BatchNormalization is in the convolutions),
with weights from a seed: MobileNetV2, EfficientNet-B0, ConvNeXt. Sizes are parameters: tests use small ones.
"""

from __future__ import annotations

import math

import numpy as np
from convnets import Net
from model import F32, make, value

MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
EFFICIENTNET = ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1))


class Classifier(Net):
    def clip6(self, x: str) -> str:
        return self.op("Clip", x, self.constant(np.float32(0)), self.constant(np.float32(6)))

    def gelu(self, x: str) -> str:
        erf = self.op("Erf", self.op("Div", x, self.constant(np.float32(math.sqrt(2)))))
        return self.op("Mul", self.op("Mul", x, self.op("Add", erf, self.constant(np.float32(1)))), self.constant(np.float32(0.5)))

    def weight(self, *shape: int) -> str:
        return self.constant(self.rng.standard_normal(shape, np.float32) / np.float32(math.sqrt(shape[0])))

    def linear(self, x: str, c_in: int, c_out: int) -> str:
        """Of more than two dims: a product and a sum."""
        return self.op("Add", self.constant(self.rng.standard_normal(c_out, np.float32) * np.float32(0.1)), self.op("MatMul", x, self.weight(c_in, c_out)))

    def norm(self, x: str, c: int) -> str:
        near_one = 1 + self.rng.standard_normal(c, np.float32) * np.float32(0.1)
        return self.op("LayerNormalization", x, self.constant(near_one), self.constant(self.rng.standard_normal(c, np.float32) * np.float32(0.1)),
                       axis=-1, epsilon=1e-6)  # fmt: skip

    def head(self, x: str, c: int, classes: int) -> str:
        x = self.op("Flatten", self.op("GlobalAveragePool", x))
        return self.gemm(x, c, classes)

    def gemm(self, x: str, c_in: int, c_out: int) -> str:
        w = self.rng.standard_normal((c_out, c_in), np.float32) / np.float32(math.sqrt(c_in))
        return self.op("Gemm", x, self.constant(w), self.constant(np.zeros(c_out, np.float32)), transB=1)

    def model(self, shape, outputs: tuple[str, ...] = (), name: str = "image", opset: int = 17):
        outputs = outputs or (self.nodes[-1].output[0],)
        return make(self.nodes, [value(name, F32, shape)], [value(o, F32, None) for o in outputs], self.weights, opset=opset)


def mobilenet_v2(size: int = 224, blocks=MOBILENET, last: int = 1280, classes: int = 1000):
    n, c = Classifier(6), 32
    x = n.clip6(n.conv("image", 3, c, 3, 2))
    for expand, width, count, stride in blocks:
        for i in range(count):
            inner = c * expand
            y = n.clip6(n.conv(x, c, inner)) if expand > 1 else x
            y = n.clip6(n.conv(y, inner, inner, 3, stride if not i else 1, inner))
            y = n.conv(y, inner, width)
            x, c = n.op("Add", x, y) if i else y, width
    n.head(n.clip6(n.conv(x, c, last)), last, classes)
    return n.model([1, 3, size, size])


def efficientnet_b0(size: int = 224, blocks=EFFICIENTNET, last: int = 1280, classes: int = 1000):
    n, c = Classifier(7), 32
    x = n.silu(n.conv("image", 3, c, 3, 2))
    for expand, kernel, stride, width, count in blocks:
        for i in range(count):
            inner, squeezed = c * expand, max(1, c // 4)
            y = n.silu(n.conv(x, c, inner)) if expand > 1 else x
            y = n.silu(n.conv(y, inner, inner, kernel, stride if not i else 1, inner))
            s = n.silu(n.conv(n.op("GlobalAveragePool", y), inner, squeezed))
            y = n.op("Mul", n.op("Sigmoid", n.conv(s, squeezed, inner)), y)
            y = n.conv(y, inner, width)
            x, c = n.op("Add", y, x) if i else y, width
    n.head(n.silu(n.conv(x, c, last)), last, classes)
    return n.model([1, 3, size, size])


def convnext(size: int = 224, depths=(3, 3, 9, 3), widths=(96, 192, 384, 768), classes: int = 1000):
    """Channels go last around LayerNormalization and the two products, and come back."""
    n = Classifier(8)

    def patches(x: str, c_in: int, c_out: int, k: int) -> str:
        w = n.rng.standard_normal((c_out, c_in, k, k), np.float32) / np.float32(k * math.sqrt(c_in))
        return n.op("Conv", x, n.constant(w), n.constant(np.zeros(c_out, np.float32)), kernel_shape=[k, k], strides=[k, k])

    def norm_channels(x: str, c: int) -> str:
        return n.op("Transpose", n.norm(n.op("Transpose", x, perm=[0, 2, 3, 1]), c), perm=[0, 3, 1, 2])

    x = norm_channels(patches("image", 3, widths[0], 4), widths[0])
    for stage, (depth, c) in enumerate(zip(depths, widths)):
        if stage:
            x = patches(norm_channels(x, widths[stage - 1]), widths[stage - 1], c, 2)
        for _ in range(depth):
            y = n.norm(n.op("Transpose", n.conv(x, c, c, 7, 1, c), perm=[0, 2, 3, 1]), c)
            y = n.linear(n.gelu(n.linear(y, c, 4 * c)), 4 * c, c)
            scale = n.constant(n.rng.uniform(0.1, 0.3, (c, 1, 1)).astype(np.float32))
            x = n.op("Add", n.op("Mul", scale, n.op("Transpose", y, perm=[0, 3, 1, 2])), x)
    x = n.op("Flatten", norm_channels(n.op("GlobalAveragePool", x), widths[-1]))
    n.gemm(x, widths[-1], classes)
    return n.model([1, 3, size, size])
