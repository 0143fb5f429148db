#!/usr/bin/env python3
"""A tiny BERT as exporters write it: make_bert.py OUT.onnx [OPSET].

Two layers, hidden size 32, four heads, a vocabulary of 100, at most 64 positions, batch and length symbolic. Everything that
has an operator of its own by now is decomposed: LayerNormalization into ReduceMean, Sub, Pow, Sqrt and Div, Gelu into Erf,
attention into MatMul, Div, Add and Softmax between Reshape and Transpose, and every Reshape gets its shape from
Shape, Gather, Unsqueeze and Concat. Weights are random, from a seed. Two more styles write what torch calls scaled_dot_product_attention
as its exporters do: "sdpa" scales both operands by a root that it computes from Shape, "dynamo" also transposes keys as three dims.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from harness import packages  # noqa: E402

np, onnx, helper, numpy_helper = packages("numpy", "onnx", "onnx.helper", "onnx.numpy_helper")


@dataclass(frozen=True)
class Sizes:
    layers: int = 2
    hidden: int = 32
    heads: int = 4
    groups: int = 4  # of keys and values
    vocabulary: int = 100
    positions: int = 64
    inner: int = 64

    @property
    def spread(self) -> float:  # of weights: sums stay about as large whatever the width
        return 0.2 * float(np.sqrt(32 / self.hidden))

    @property
    def size(self) -> int:  # of a head
        return self.hidden // self.heads


TINY = Sizes()


class Writer:
    """Nodes and initializers of one graph, in the form of an opset."""

    def __init__(self, opset: int, seed: int, style: str = "eager", sizes: Sizes = TINY):
        self.opset, self.style, self.sizes, self.random = opset, style, sizes, np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def constant(self, value, dtype=np.float32) -> str:
        name = f"constant_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, name: str, *shape: int, about: float = 0.0) -> str:
        value = self.random.normal(about, self.sizes.spread, shape).astype(np.float32)
        self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def op(self, kind: str, *inputs: str, name: str | None = None, **attributes) -> str:
        output = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=f"/{kind}_{len(self.nodes)}", **attributes))
        return output

    def unsqueeze(self, x: str, axis: int) -> str:
        if self.opset < 13:
            return self.op("Unsqueeze", x, axes=[axis])
        return self.op("Unsqueeze", x, self.constant([axis], np.int64))

    def mean(self, x: str) -> str:
        if self.opset < 18:
            return self.op("ReduceMean", x, axes=[-1], keepdims=1)
        return self.op("ReduceMean", x, self.constant([-1], np.int64), keepdims=1)

    def extent(self, x: str, axis: int) -> str:
        """Shape(x)[axis] as a vector of one element."""
        return self.unsqueeze(self.op("Gather", self.op("Shape", x), self.constant(axis, np.int64), axis=0), 0)

    def reshape(self, x: str, *tail: int) -> str:
        """x, whose batch and length stay, with these dims behind them."""
        parts = [self.extent(x, 0), self.extent(x, 1), *(self.constant([n], np.int64) for n in tail)]
        return self.op("Reshape", x, self.op("Concat", *parts, axis=0))

    def linear(self, x: str, name: str, inputs: int, outputs: int) -> str:
        product = self.op("MatMul", x, self.weight(f"{name}.weight", inputs, outputs))
        return self.op("Add", self.weight(f"{name}.bias", outputs), product)

    def layer_norm(self, x: str, name: str) -> str:
        centred = self.op("Sub", x, self.mean(x))
        variance = self.mean(self.op("Pow", centred, self.constant(2)))
        deviation = self.op("Sqrt", self.op("Add", variance, self.constant(1e-12)))
        scaled = self.op("Mul", self.op("Div", centred, deviation), self.weight(f"{name}.weight", self.sizes.hidden, about=1.0))
        return self.op("Add", scaled, self.weight(f"{name}.bias", self.sizes.hidden))

    def gelu(self, x: str) -> str:
        erf = self.op("Erf", self.op("Div", x, self.constant(np.sqrt(2))))
        return self.op("Mul", self.op("Mul", x, self.op("Add", erf, self.constant(1))), self.constant(0.5))

    def heads(self, x: str, *perm: int) -> str:
        return self.op("Transpose", self.reshape(x, self.sizes.heads, self.sizes.size), perm=list(perm))

    def attention(self, x: str, mask: str, name: str) -> str:
        q, k, v = (self.linear(x, f"{name}.{part}", self.sizes.hidden, self.sizes.hidden) for part in ("query", "key", "value"))
        if self.style == "eager":
            scores = self.op("MatMul", self.heads(q, 0, 2, 1, 3), self.heads(k, 0, 2, 3, 1))
            scores = self.op("Div", scores, self.constant(np.sqrt(self.sizes.size)))
        else:
            q, k = self.heads(q, 0, 2, 1, 3), self.heads(k, 0, 2, 1, 3)
            root = self.root_of_scale(q)
            k = self.op("Transpose", k, perm=[0, 1, 3, 2]) if self.style == "sdpa" else self.transposed_flat(k)
            scores = self.op("MatMul", self.op("Mul", q, root), self.op("Mul", k, root))
        scores = self.op("Add", scores, mask)
        weights = self.op("Softmax", scores, axis=-1 if self.opset >= 13 else 3)
        mixed = self.op("MatMul", weights, self.heads(v, 0, 2, 1, 3))
        return self.reshape(self.op("Transpose", mixed, perm=[0, 2, 1, 3]), self.sizes.hidden)

    def root_of_scale(self, q: str) -> str:
        last = self.op("Slice", self.op("Shape", q), self.constant([-1], np.int64), self.constant([np.iinfo(np.int64).max], np.int64))
        size = self.op("Cast", last, to=onnx.TensorProto.FLOAT)
        return self.op("Sqrt", self.op("Div", self.constant([1]), self.op("Sqrt", size)))

    def transposed_flat(self, k: str) -> str:
        batch, heads, length, size = (self.extent(k, axis) for axis in range(4))
        flat = self.op("Reshape", k, self.op("Concat", self.constant([-1], np.int64), length, size, axis=0))
        swapped = self.op("Transpose", flat, perm=[0, 2, 1])
        return self.op("Reshape", swapped, self.op("Concat", batch, heads, size, length, axis=0))

    def layer(self, x: str, mask: str, name: str) -> str:
        mixed = self.linear(self.attention(x, mask, f"{name}.attention"), f"{name}.attention.output", self.sizes.hidden, self.sizes.hidden)
        x = self.layer_norm(self.op("Add", mixed, x), f"{name}.attention.norm")
        inner = self.linear(self.gelu(self.linear(x, f"{name}.inner", self.sizes.hidden, self.sizes.inner)), f"{name}.output", self.sizes.inner, self.sizes.hidden)
        return self.layer_norm(self.op("Add", inner, x), f"{name}.norm")

    def embeddings(self) -> str:
        length = self.extent("input_ids", 1)
        ids = self.constant(np.arange(self.sizes.positions).reshape(1, -1), np.int64)
        positions = self.op("Slice", ids, self.constant([0], np.int64), length, self.constant([1], np.int64))
        words = self.op("Gather", self.weight("words", self.sizes.vocabulary, self.sizes.hidden), "input_ids")
        kinds = self.op("Gather", self.weight("kinds", 2, self.sizes.hidden), "token_type_ids")
        places = self.op("Gather", self.weight("places", self.sizes.positions, self.sizes.hidden), positions)
        return self.layer_norm(self.op("Add", self.op("Add", words, kinds), places), "embeddings.norm")

    def mask(self) -> str:
        """0 for tokens, -10000 for padding: [batch, 1, 1, length]."""
        spread = self.unsqueeze(self.unsqueeze("attention_mask", 1), 2)
        kept = self.op("Cast", spread, to=onnx.TensorProto.FLOAT)
        return self.op("Mul", self.op("Sub", self.constant(1), kept), self.constant(-10000))


def model(opset: int = 17, seed: int = 7, style: str = "eager", sizes: Sizes = TINY) -> onnx.ModelProto:
    w = Writer(opset, seed, style, sizes)
    x, mask = w.embeddings(), w.mask()
    for i in range(sizes.layers):
        x = w.layer(x, mask, f"layer.{i}")
    last = w.op("Identity", x, name="last_hidden_state")
    first = w.op("Gather", x, w.constant(0, np.int64), axis=1)
    pooled = w.op("Gemm", first, w.weight("pooler.weight", sizes.hidden, sizes.hidden), w.weight("pooler.bias", sizes.hidden), transB=1)
    pooled = w.op("Tanh", pooled, name="pooler_output")
    tensor = helper.make_tensor_value_info
    inputs = [tensor(name, onnx.TensorProto.INT64, ["batch", "length"])
              for name in ("input_ids", "attention_mask", "token_type_ids")]
    outputs = [tensor(last, onnx.TensorProto.FLOAT, ["batch", "length", sizes.hidden]),
               tensor(pooled, onnx.TensorProto.FLOAT, ["batch", sizes.hidden])]
    graph = helper.make_graph(w.nodes, "bert", inputs, outputs, w.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6 if opset < 15 else 8)


def feeds(batch: int = 2, length: int = 7, seed: int = 1, sizes: Sizes = TINY) -> dict[str, np.ndarray]:
    """Random tokens; samples are padded to different lengths, the first is not padded."""
    random = np.random.default_rng(seed)
    ids = random.integers(0, sizes.vocabulary, (batch, length))
    kept = np.maximum(1, length - np.arange(batch) * 2)
    mask = (np.arange(length)[None, :] < kept[:, None]).astype(np.int64)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": random.integers(0, 2, (batch, length))}


def model_and_feeds() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    return model(), feeds()


if __name__ == "__main__":
    onnx.save(model(int(sys.argv[2]) if len(sys.argv) > 2 else 17), sys.argv[1])
