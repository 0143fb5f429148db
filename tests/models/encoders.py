"""Encoders with a fixed batch as exporters write them, with weights from a seed: ViT (one product for queries, keys and values, scaled
dot-product attention), Swin (windows, some of them shifted) and Whisper's encoder (two convolutions, 1,500 positions).
"""

from __future__ import annotations

import numpy as np
from pictures import Picture


class Encoder(Picture):
    def split_heads(self, qkv: str, rows: int, tokens: int, heads: int, size: int) -> list[str]:
        """timm's form: one tensor of five dims, and three Gathers."""
        x = self.op("Transpose", self.op("Reshape", qkv, self.ints(rows, tokens, 3, heads, size)), perm=[2, 0, 3, 1, 4])
        return [self.op("Gather", x, self.constant(np.int64(i)), axis=0) for i in range(3)]

    def joined(self, x: str, rows: int, tokens: int, width: int) -> str:
        return self.op("Reshape", self.op("Transpose", x, perm=[0, 2, 1, 3]), self.ints(rows, tokens, width))

    def sdpa(self, q: str, k: str, v: str, size: int) -> str:
        """As PyTorch writes scaled_dot_product_attention: the root of the scale on either side."""
        root = self.constant(np.float32(size**-0.25))
        k = self.op("Mul", self.op("Transpose", k, perm=[0, 1, 3, 2]), root)
        return self.op("MatMul", self.op("Softmax", self.op("MatMul", self.op("Mul", q, root), k), axis=-1), v)

    def mlp(self, x: str, width: int, inner: int) -> str:
        return self.linear(self.gelu(self.linear(x, width, inner)), inner, width)


def vit(size: int = 224, patch: int = 16, width: int = 768, heads: int = 12, layers: int = 12, classes: int = 1000):
    n, side = Encoder(13), size // patch
    tokens = side * side + 1
    w = n.rng.standard_normal((width, 3, patch, patch), np.float32) / np.float32(patch * 3**0.5)
    x = n.op("Conv", "image", n.constant(w), n.constant(np.zeros(width, np.float32)), kernel_shape=[patch] * 2, strides=[patch] * 2)
    x = n.op("Transpose", n.op("Reshape", x, n.ints(1, width, tokens - 1)), perm=[0, 2, 1])
    x = n.op("Concat", n.constant(n.rng.standard_normal((1, 1, width), np.float32)), x, axis=1)
    x = n.op("Add", x, n.constant(n.rng.standard_normal((1, tokens, width), np.float32)))
    for _ in range(layers):
        q, k, v = n.split_heads(n.linear(n.norm(x, width), width, 3 * width), 1, tokens, heads, width // heads)
        y = n.joined(n.sdpa(q, k, v, width // heads), 1, tokens, width)
        x = n.op("Add", x, n.linear(y, width, width))
        x = n.op("Add", x, n.mlp(n.norm(x, width), width, 4 * width))
    first = n.op("Gather", n.norm(x, width), n.constant(np.int64(0)), axis=1)
    n.gemm(first, width, classes)
    return n.model([1, 3, size, size])


def swin(size: int = 224, window: int = 7, width: int = 96, depths=(2, 2, 6, 2), classes: int = 1000, head: int = 32):
    n, side = Encoder(14), size // 4
    area, end = window * window, np.iinfo(np.int64).max

    def rolled(x: str, by: int) -> str:
        for axis in (1, 2):
            low = n.op("Slice", x, n.ints(by), n.ints(end), n.ints(axis), n.ints(1))
            x = n.op("Concat", low, n.op("Slice", x, n.ints(0), n.ints(by), n.ints(axis), n.ints(1)), axis=axis)
        return x

    def shifted_mask(side: int, shift: int) -> np.ndarray:
        """-100 between pixels of one window that were no neighbours before the roll: [1, windows, 1, area, area]."""
        at = np.arange(side)
        part = np.where(at < side - window, 0, np.where(at < side - shift, 1, 2))
        count = side // window
        ids = (3 * part[:, None] + part).reshape(count, window, count, window).transpose(0, 2, 1, 3).reshape(-1, area)
        return np.where(ids[:, :, None] == ids[:, None], 0, -100).astype(np.float32)[None, :, None]

    def attention(x: str, side: int, c: int, heads: int, shift: int) -> str:
        count = (side // window) ** 2
        x = rolled(x, shift) if shift else x
        x = n.op("Transpose", n.op("Reshape", x, n.ints(1, side // window, window, side // window, window, c)), perm=[0, 1, 3, 2, 4, 5])
        x = n.linear(n.op("Reshape", x, n.ints(count, area, c)), c, 3 * c)
        q, k, v = n.split_heads(x, count, area, heads, c // heads)
        q = n.op("Mul", q, n.constant(np.float32((c // heads) ** -0.5)))
        x = n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2]))
        x = n.op("Add", x, n.constant(n.rng.standard_normal((1, heads, area, area), np.float32)))
        if shift:
            x = n.op("Add", n.op("Reshape", x, n.ints(1, count, heads, area, area)), n.constant(shifted_mask(side, shift)))
            x = n.op("Reshape", x, n.ints(-1, heads, area, area))
        x = n.linear(n.joined(n.op("MatMul", n.op("Softmax", x, axis=-1), v), count, area, c), c, c)
        x = n.op("Reshape", x, n.ints(1, side // window, side // window, window, window, c))
        x = n.op("Reshape", n.op("Transpose", x, perm=[0, 1, 3, 2, 4, 5]), n.ints(1, side, side, c))
        return rolled(x, side - shift) if shift else x

    def merged(x: str, c: int) -> str:
        def every_second(y: int, z: int) -> str:
            rows = n.op("Slice", x, n.ints(y), n.ints(end), n.ints(1), n.ints(2))
            return n.op("Slice", rows, n.ints(z), n.ints(end), n.ints(2), n.ints(2))

        four = n.op("Concat", *(every_second(y, z) for z in (0, 1) for y in (0, 1)), axis=-1)
        return n.op("MatMul", n.norm(four, 4 * c), n.weight(4 * c, 2 * c))

    w = n.rng.standard_normal((width, 3, 4, 4), np.float32) / np.float32(48**0.5)
    x = n.op("Conv", "image", n.constant(w), n.constant(np.zeros(width, np.float32)), kernel_shape=[4, 4], strides=[4, 4])
    x, c = n.norm(n.op("Transpose", x, perm=[0, 2, 3, 1]), width), width
    for stage, depth in enumerate(depths):
        if stage:
            x, c, side = merged(x, c), 2 * c, side // 2
        for i in range(depth):
            shift = window // 2 if i % 2 and side > window else 0
            x = n.op("Add", x, attention(n.norm(x, c), side, c, c // head, shift))
            x = n.op("Add", x, n.mlp(n.norm(x, c), c, 4 * c))
    x = n.op("Transpose", n.norm(x, c), perm=[0, 3, 1, 2])
    n.head(x, c, classes)
    return n.model([1, 3, size, size])


def whisper_encoder(frames: int = 3000, bins: int = 80, width: int = 384, heads: int = 6, layers: int = 4):
    n, tokens, size = Encoder(15), frames // 2, width // heads

    def conv(x: str, c_in: int, stride: int) -> str:
        w = n.rng.standard_normal((width, c_in, 3), np.float32) / np.float32((3 * c_in) ** 0.5)
        x = n.op("Conv", x, n.constant(w), n.constant(np.zeros(width, np.float32)), kernel_shape=[3], strides=[stride], pads=[1, 1])
        return n.gelu(x)

    def heads_of(x: str) -> str:
        return n.op("Transpose", n.op("Reshape", x, n.ints(1, tokens, heads, size)), perm=[0, 2, 1, 3])

    x = n.op("Transpose", conv(conv("features", bins, 1), width, 2), perm=[0, 2, 1])
    x = n.op("Add", x, n.constant(n.rng.standard_normal((tokens, width), np.float32)))
    for _ in range(layers):
        y = n.norm(x, width)
        q = heads_of(n.op("Mul", n.linear(y, width, width), n.constant(np.float32(size**-0.5))))
        k, v = heads_of(n.op("MatMul", y, n.weight(width, width))), heads_of(n.linear(y, width, width))
        y = n.op("MatMul", n.op("Softmax", n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2])), axis=-1), v)
        x = n.op("Add", x, n.linear(n.joined(y, 1, tokens, width), width, width))
        x = n.op("Add", x, n.mlp(n.norm(x, width), width, 4 * width))
    n.norm(x, width)
    return n.model([1, bins, frames], name="features")
