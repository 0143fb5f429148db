#!/usr/bin/env python3
"""A tiny LLaMA as exporters write it: make_llama.py OUT.onnx.

Two layers, hidden size 32, four heads on two groups of keys and values, a vocabulary of 50, batch and length symbolic, opset 17. RMS
normalisation, rotary positions (rotate_half), SiLU and attention are decomposed; keys and values are repeated by Expand; shapes come
from Shape, Gather and Concat. Weights are random, from a seed.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from make_bert import Sizes, Writer, helper, np, onnx  # noqa: E402

TINY = Sizes(groups=2, vocabulary=50, inner=48)
END = np.iinfo(np.int64).max


class Llama(Writer):
    def ints(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def norm(self, x: str, name: str) -> str:
        mean = self.mean(self.op("Pow", x, self.constant(2)))
        inverse = self.op("Div", self.constant(1), self.op("Sqrt", self.op("Add", mean, self.constant(1e-5))))
        return self.op("Mul", self.weight(name, self.sizes.hidden, about=1.0), self.op("Mul", x, inverse))

    def product(self, x: str, name: str, inputs: int, outputs: int) -> str:
        return self.op("MatMul", x, self.weight(name, inputs, outputs))

    def angles(self) -> tuple[str, str]:
        """cos and sin, [batch, 1, length, SIZE]"""
        frequencies = self.constant((10000.0 ** (-np.arange(0, self.sizes.size, 2) / self.sizes.size)).reshape(1, -1, 1))
        shape = self.op("Concat", self.extent("position_ids", 0), self.ints(self.sizes.size // 2), self.ints(1), axis=0)
        positions = self.op("Cast", self.unsqueeze("position_ids", 1), to=onnx.TensorProto.FLOAT)
        half = self.op("Transpose", self.op("MatMul", self.op("Expand", frequencies, shape), positions), perm=[0, 2, 1])
        both = self.op("Concat", half, half, axis=-1)
        return self.unsqueeze(self.op("Cos", both), 1), self.unsqueeze(self.op("Sin", both), 1)

    def turned(self, x: str, cos: str, sin: str) -> str:
        low = self.op("Slice", x, self.ints(0), self.ints(self.sizes.size // 2), self.ints(3), self.ints(1))
        high = self.op("Slice", x, self.ints(self.sizes.size // 2), self.ints(END), self.ints(3), self.ints(1))
        other = self.op("Concat", self.op("Neg", high), low, axis=-1)
        return self.op("Add", self.op("Mul", x, cos), self.op("Mul", other, sin))

    def split(self, x: str, heads: int) -> str:
        return self.op("Transpose", self.reshape(x, heads, self.sizes.size), perm=[0, 2, 1, 3])

    def repeated(self, x: str) -> str:
        """[batch, GROUPS, length, SIZE], every head HEADS / GROUPS times"""
        batch, length = self.extent(x, 0), self.extent(x, 2)
        times = [batch, self.ints(self.sizes.groups), self.ints(self.sizes.heads // self.sizes.groups), length, self.ints(self.sizes.size)]
        wide = self.op("Expand", self.unsqueeze(x, 2), self.op("Concat", *times, axis=0))
        return self.op("Reshape", wide, self.op("Concat", batch, self.ints(self.sizes.heads), length, self.ints(self.sizes.size), axis=0))

    def causal_mask(self) -> str:
        """[batch, 1, length, length]: 0 where a key is no later than the query and no padding"""
        length = self.op("Gather", self.op("Shape", "input_ids"), self.constant(1, np.int64), axis=0)
        steps = self.op("Range", self.constant(0, np.int64), length, self.constant(1, np.int64))
        past = self.op("LessOrEqual", self.unsqueeze(steps, 0), self.unsqueeze(steps, 1))
        kept = self.op("Cast", self.unsqueeze(self.unsqueeze("attention_mask", 1), 2), to=onnx.TensorProto.BOOL)
        seen = self.op("And", self.unsqueeze(self.unsqueeze(past, 0), 0), kept)
        return self.op("Where", seen, self.constant(0), self.constant(np.finfo(np.float32).min))

    def attention(self, x: str, mask: str, cos: str, sin: str, name: str) -> str:
        q = self.turned(self.split(self.product(x, f"{name}.q", self.sizes.hidden, self.sizes.hidden), self.sizes.heads), cos, sin)
        k = self.turned(self.split(self.product(x, f"{name}.k", self.sizes.hidden, self.sizes.groups * self.sizes.size), self.sizes.groups), cos, sin)
        v = self.split(self.product(x, f"{name}.v", self.sizes.hidden, self.sizes.groups * self.sizes.size), self.sizes.groups)
        keys = self.op("Transpose", self.repeated(k), perm=[0, 1, 3, 2])
        scores = self.op("Mul", self.op("MatMul", q, keys), self.constant(self.sizes.size ** -0.5))
        weights = self.op("Softmax", self.op("Add", scores, mask), axis=-1)
        mixed = self.op("Transpose", self.op("MatMul", weights, self.repeated(v)), perm=[0, 2, 1, 3])
        return self.product(self.reshape(mixed, self.sizes.hidden), f"{name}.o", self.sizes.hidden, self.sizes.hidden)

    def layer(self, x: str, mask: str, cos: str, sin: str, name: str) -> str:
        x = self.op("Add", x, self.attention(self.norm(x, f"{name}.norm"), mask, cos, sin, name))
        inner = self.norm(x, f"{name}.inner.norm")
        gate = self.product(inner, f"{name}.gate", self.sizes.hidden, self.sizes.inner)
        gate = self.op("Mul", gate, self.op("Sigmoid", gate))
        gated = self.op("Mul", gate, self.product(inner, f"{name}.up", self.sizes.hidden, self.sizes.inner))
        return self.op("Add", x, self.product(gated, f"{name}.down", self.sizes.inner, self.sizes.hidden))


def model(opset: int = 17, seed: int = 11, sizes: Sizes = TINY) -> onnx.ModelProto:
    w = Llama(opset, seed, sizes=sizes)
    x, mask = w.op("Gather", w.weight("words", sizes.vocabulary, sizes.hidden), "input_ids"), w.causal_mask()
    cos, sin = w.angles()
    for i in range(sizes.layers):
        x = w.layer(x, mask, cos, sin, f"layer.{i}")
    w.op("MatMul", w.norm(x, "norm"), w.weight("head", sizes.hidden, sizes.vocabulary), name="logits")
    tensor = helper.make_tensor_value_info
    inputs = [tensor(name, onnx.TensorProto.INT64, ["batch", "length"])
              for name in ("input_ids", "attention_mask", "position_ids")]
    graph = helper.make_graph(w.nodes, "llama", inputs,
                              [tensor("logits", onnx.TensorProto.FLOAT, ["batch", "length", sizes.vocabulary])], w.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def feeds(batch: int = 2, length: int = 7, seed: int = 1, sizes: Sizes = TINY) -> dict[str, np.ndarray]:
    """Random tokens; samples are padded to different lengths at the end, the first is not padded."""
    random = np.random.default_rng(seed)
    kept = np.maximum(1, length - np.arange(batch) * 2)
    mask = (np.arange(length)[None, :] < kept[:, None]).astype(np.int64)
    return {"input_ids": random.integers(0, sizes.vocabulary, (batch, length)), "attention_mask": mask,
            "position_ids": np.broadcast_to(np.arange(length), (batch, length)).copy()}


def model_and_feeds() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    return model(), feeds()


if __name__ == "__main__":
    onnx.save(model(), sys.argv[1])
