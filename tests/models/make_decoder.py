#!/usr/bin/env python3
"""Writes a small decoder with a cache of keys and values, as exporters write them for opset 24: make_decoder.py OUT.onnx [SEED].

Two layers, width 32, four heads, 50 tokens, caches of 80 positions that TensorScatter writes from write_indices on; attention is
decomposed, and its mask compares positions. Weights are random; SEED also renames every value inside and shuffles the weights in
the file, which must change nothing.

    inputs   ids, positions i64[batch,seq] · write_indices i64[batch] · past.{0,1}.{key,value} f32[batch,4,80,8]
    outputs  logits f32[batch,seq,50] · present.{0,1}.{key,value}
"""

from __future__ import annotations

import random
import sys

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

LAYERS, WIDTH, HEADS, VOCABULARY, CAPACITY = 2, 32, 4, 50, 80
DEPTH = WIDTH // HEADS
CACHES = [f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]


class Builder:
    def __init__(self, seed: int):
        self.rng = np.random.default_rng(1)  # weights do not depend on the seed of the names
        self.names = random.Random(seed)
        self.taken: set[str] = set()
        self.nodes: list = []
        self.weights: list = []

    def fresh(self, hint: str) -> str:
        name = hint
        while name == hint or name in self.taken:
            name = f"{hint}_{self.names.randrange(1 << 30):x}"
        self.taken.add(name)
        return name

    def constant(self, value: np.ndarray) -> str:
        name = self.fresh("w")
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def weight(self, *shape: int) -> str:
        return self.constant((self.rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def node(self, op: str, *inputs: str, out: str | None = None, **attributes) -> str:
        out = out or self.fresh(op.lower())
        self.nodes.append(helper.make_node(op, list(inputs), [out], name=self.fresh("n"), **attributes))
        return out

    def norm(self, x: str) -> str:
        scale = self.constant((1 + self.rng.standard_normal(WIDTH) / 10).astype(np.float32))
        return self.node("LayerNormalization", x, scale, self.constant(np.zeros(WIDTH, np.float32)))

    def heads(self, x: str) -> str:
        split = self.node("Reshape", self.node("MatMul", x, self.weight(WIDTH, WIDTH)), self.ints(0, 0, HEADS, DEPTH))
        return self.node("Transpose", split, perm=[0, 2, 1, 3])

    def attention(self, x: str, layer: int, mask: str) -> str:
        q, k, v = (self.heads(x) for _ in range(3))
        present = [self.node("TensorScatter", f"past.{layer}.{part}", new, "write_indices", out=f"present.{layer}.{part}", axis=2)
                   for part, new in (("key", k), ("value", v))]  # fmt: skip
        scores = self.node("MatMul", q, self.node("Transpose", present[0], perm=[0, 1, 3, 2]))
        scores = self.node("Mul", scores, self.constant(np.float32(DEPTH**-0.5)))
        shares = self.node("Softmax", self.node("Add", scores, mask), axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", shares, present[1]), perm=[0, 2, 1, 3])
        return self.node("MatMul", self.node("Reshape", mixed, self.ints(0, 0, WIDTH)), self.weight(WIDTH, WIDTH))

    def build(self):
        embedding = self.weight(VOCABULARY, WIDTH)
        seen = self.node("LessOrEqual", self.constant(np.arange(CAPACITY)), self.node("Unsqueeze", "positions", self.ints(1, 3)))
        mask = self.node("Where", seen, self.constant(np.float32(0)), self.constant(np.float32(-np.inf)))
        x = self.node("Add", self.node("Gather", embedding, "ids"), self.node("Gather", self.weight(CAPACITY, WIDTH), "positions"))
        for layer in range(LAYERS):
            x = self.node("Add", x, self.attention(self.norm(x), layer, mask))
            inner = self.node("Gelu", self.node("MatMul", self.norm(x), self.weight(WIDTH, 4 * WIDTH)))
            x = self.node("Add", x, self.node("MatMul", inner, self.weight(4 * WIDTH, WIDTH)))
        self.node("MatMul", self.norm(x), self.node("Transpose", embedding, perm=[1, 0]), out="logits")
        cache = ["batch", HEADS, CAPACITY, DEPTH]
        info = helper.make_tensor_value_info
        inputs = [info(name, TensorProto.INT64, ["batch", "seq"]) for name in ("ids", "positions")]
        inputs += [info("write_indices", TensorProto.INT64, ["batch"])]
        inputs += [info(f"past.{c}", TensorProto.FLOAT, cache) for c in CACHES]
        outputs = [info("logits", TensorProto.FLOAT, ["batch", "seq", VOCABULARY])]
        outputs += [info(f"present.{c}", TensorProto.FLOAT, cache) for c in CACHES]
        self.names.shuffle(self.weights)
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)


def make(seed: int = 0):
    model = Builder(seed).build()
    checker.check_model(model, full_check=True)
    return model


if __name__ == "__main__":
    save(make(int(sys.argv[2]) if len(sys.argv) > 2 else 0), sys.argv[1])
