"""Decoders with caches of keys and values, with weights from a seed: GPT-2 as PyTorch's exporter writes it (Conv1D as Gemm between Reshapes,
caches that grow by Concat), and a Llama-like one as onnxruntime-genai's builder writes it (GroupQueryAttention over caches of fixed
capacity, products of f32 or of int4 in blocks). Batch and length are symbols.
"""

from __future__ import annotations

import numpy as np
from make_bert import Sizes, Writer, helper, onnx

F32, I64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
MS = "com.microsoft"
tensor = helper.make_tensor_value_info


class Gpt2(Writer):
    def conv1d(self, x: str, name: str, inputs: int, outputs: int) -> str:
        flat = self.op("Reshape", x, self.constant([-1, inputs], np.int64))
        y = self.op("Gemm", flat, self.weight(f"{name}.weight", inputs, outputs), self.weight(f"{name}.bias", outputs))
        parts = [self.extent(x, 0), self.extent(x, 1), self.constant([outputs], np.int64)]
        return self.op("Reshape", y, self.op("Concat", *parts, axis=0))

    def layer_norm(self, x: str, name: str) -> str:
        width = self.sizes.hidden
        return self.op("LayerNormalization", x, self.weight(f"{name}.weight", width, about=1.0), self.weight(f"{name}.bias", width), axis=-1, epsilon=1e-5)

    def gelu(self, x: str) -> str:
        cubed = self.op("Mul", self.op("Pow", x, self.constant(3)), self.constant(0.044715))
        inner = self.op("Tanh", self.op("Mul", self.op("Add", x, cubed), self.constant(np.sqrt(2 / np.pi))))
        return self.op("Mul", self.op("Mul", x, self.constant(0.5)), self.op("Add", inner, self.constant(1)))

    def split_qkv(self, x: str) -> list[str]:
        names = [f"{x}_{part}" for part in "qkv"]
        self.nodes.append(helper.make_node("Split", [x, self.constant([self.sizes.hidden] * 3, np.int64)], names, name=f"/Split_{len(self.nodes)}", axis=2))
        return names

    def causal(self, q: str, k: str, scores: str) -> str:
        """A slice of the model's buffer of ones below the diagonal."""
        size, keys, one = self.sizes.positions, self.extent(k, 2), self.constant([1], np.int64)
        first = self.op("Sub", keys, self.extent(q, 2))
        below = self.constant(np.tril(np.ones((1, 1, size, size), bool)), bool)
        rows = self.op("Slice", below, first, keys, self.constant([2], np.int64), one)
        seen = self.op("Slice", rows, self.constant([0], np.int64), keys, self.constant([3], np.int64), one)
        return self.op("Where", seen, scores, self.constant(np.finfo(np.float32).min))

    def cached(self, new: str, layer: int, part: str, grows: bool) -> str:
        return self.op("Concat", f"past_key_values.{layer}.{part}", new, name=f"present.{layer}.{part}", axis=-2) if grows else new

    def block(self, x: str, mask: str, layer: int, grows: bool) -> str:
        s, name = self.sizes, f"h.{layer}"
        q, k, v = (self.heads(part, 0, 2, 1, 3) for part in self.split_qkv(self.conv1d(self.layer_norm(x, f"{name}.ln_1"), f"{name}.attn", s.hidden, 3 * s.hidden)))
        k, v = self.cached(k, layer, "key", grows), self.cached(v, layer, "value", grows)
        scores = self.op("Div", self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2])), self.constant(np.sqrt(s.size)))
        shares = self.op("Softmax", self.op("Add", self.causal(q, k, scores), mask), axis=-1)
        mixed = self.op("Transpose", self.op("MatMul", shares, v), perm=[0, 2, 1, 3])
        x = self.op("Add", self.conv1d(self.reshape(mixed, s.hidden), f"{name}.proj", s.hidden, s.hidden), x)
        inner = self.gelu(self.conv1d(self.layer_norm(x, f"{name}.ln_2"), f"{name}.fc", s.hidden, s.inner))
        return self.op("Add", x, self.conv1d(inner, f"{name}.fc_proj", s.inner, s.hidden))


GPT2 = Sizes(12, 768, 12, 12, 50257, 1024, 3072)
TINY_GPT2 = Sizes(2, 32, 4, 4, 50, 64, 128)


def gpt2(sizes: Sizes = GPT2, cache: bool = False) -> onnx.ModelProto:
    w = Gpt2(17, 21, sizes=sizes)
    x = w.op("Add", w.op("Gather", w.weight("wte", sizes.vocabulary, sizes.hidden), "input_ids"),
             w.op("Gather", w.weight("wpe", sizes.positions, sizes.hidden), "position_ids"))  # fmt: skip
    kept = w.op("Cast", w.unsqueeze(w.unsqueeze("attention_mask", 1), 2), to=F32)
    mask = w.op("Mul", w.op("Sub", w.constant(1), kept), w.constant(np.finfo(np.float32).min))
    for i in range(sizes.layers):
        x = w.block(x, mask, i, cache)
    w.op("MatMul", w.layer_norm(x, "ln_f"), w.weight("lm_head", sizes.hidden, sizes.vocabulary), name="logits")
    inputs = [tensor("input_ids", I64, ["batch", "length"]), tensor("attention_mask", I64, ["batch", "total"]),
              tensor("position_ids", I64, ["batch", "length"])]  # fmt: skip
    outputs = [tensor("logits", F32, ["batch", "length", sizes.vocabulary])]
    if cache:
        names = [f"{i}.{part}" for i in range(sizes.layers) for part in ("key", "value")]
        inputs += [tensor(f"past_key_values.{n}", F32, ["batch", sizes.heads, "past", sizes.size]) for n in names]
        outputs += [tensor(f"present.{n}", F32, ["batch", sizes.heads, "total", sizes.size]) for n in names]
    graph = helper.make_graph(w.nodes, "gpt2", inputs, outputs, w.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


LLAMA = Sizes(8, 1024, 16, 4, 16000, 2048, 2816)
TINY_LLAMA = Sizes(2, 64, 4, 2, 50, 64, 96)
BLOCK = 32


class Grouped(Writer):
    def __init__(self, sizes: Sizes, int4: bool, accuracy: int):
        super().__init__(17, 22, sizes=sizes)
        self.int4, self.accuracy = int4, accuracy

    def contributed(self, kind: str, inputs: list[str], outputs: list[str], **attributes) -> None:
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=f"/{kind}_{len(self.nodes)}", domain=MS, **attributes))

    def product(self, x: str, name: str, inputs: int, outputs: int) -> str:
        if not self.int4:
            return self.op("MatMul", x, self.weight(f"{name}.weight", inputs, outputs))
        codes = self.random.integers(0, 256, (outputs, inputs // BLOCK, BLOCK // 2), np.uint8)
        scales = self.random.uniform(0.5, 1.5, outputs * (inputs // BLOCK)) * self.sizes.spread / 4.6  # 4.6: the deviation of 0..15
        y = f"{name}.y"
        self.contributed("MatMulNBits", [x, self.constant(codes, np.uint8), self.constant(scales)], [y], K=inputs, N=outputs, bits=4, block_size=BLOCK,
                         accuracy_level=self.accuracy)  # fmt: skip
        return y

    def skip_norm(self, x: str, by: str, name: str) -> tuple[str, str]:
        """RMSNorm of x + by, and the sum."""
        y, total = f"{name}.y", f"{name}.sum"
        self.contributed("SkipSimplifiedLayerNormalization", [x, by, self.weight(name, self.sizes.hidden, about=1.0)], [y, "", "", total], epsilon=1e-5)
        return y, total

    def block(self, x: str, layer: int, ends: str, total: str, cos: str, sin: str) -> str:
        s, name, y = self.sizes, f"layers.{layer}", f"layers.{layer}.attn"
        q = self.product(x, f"{name}.q", s.hidden, s.hidden)
        k, v = (self.product(x, f"{name}.{part}", s.hidden, s.groups * s.size) for part in "kv")
        caches = [f"{kind}.{layer}.{part}" for kind in ("past_key_values", "present") for part in ("key", "value")]
        self.contributed("GroupQueryAttention", [q, k, v, *caches[:2], ends, total, cos, sin], [y, *caches[2:]], num_heads=s.heads,
                         kv_num_heads=s.groups, do_rotary=1, scale=s.size**-0.5)  # fmt: skip
        return self.product(y, f"{name}.o", s.hidden, s.hidden)

    def mlp(self, x: str, name: str) -> str:
        s = self.sizes
        gate = self.product(x, f"{name}.gate", s.hidden, s.inner)
        gate = self.op("Mul", gate, self.op("Sigmoid", gate))
        return self.product(self.op("Mul", gate, self.product(x, f"{name}.up", s.hidden, s.inner)), f"{name}.down", s.inner, s.hidden)


def llama(sizes: Sizes = LLAMA, int4: bool = False, accuracy: int = 4) -> onnx.ModelProto:
    """accuracy 4, the builder's choice, lets a runtime round activations to eight bits; 0: it may not."""
    w = Grouped(sizes, int4, accuracy)
    sums = w.op("ReduceSum", "attention_mask", w.constant([1], np.int64), keepdims=1)
    ends = w.op("Cast", w.op("Sub", sums, w.constant([1], np.int64)), to=onnx.TensorProto.INT32)
    total = w.op("Cast", w.op("Gather", w.op("Shape", "attention_mask"), w.constant(1, np.int64), axis=0), to=onnx.TensorProto.INT32)
    angles = np.arange(sizes.positions)[:, None] * 10000.0 ** (-np.arange(0, sizes.size, 2) / sizes.size)
    cos, sin = w.constant(np.cos(angles)), w.constant(np.sin(angles))
    x = w.op("Gather", w.weight("words", sizes.vocabulary, sizes.hidden), "input_ids")
    y = w.op("SimplifiedLayerNormalization", x, w.weight("layers.0.norm", sizes.hidden, about=1.0), axis=-1, epsilon=1e-5, stash_type=1)
    for i in range(sizes.layers):
        y, x = w.skip_norm(x, w.block(y, i, ends, total, cos, sin), f"layers.{i}.post")
        y, x = w.skip_norm(x, w.mlp(y, f"layers.{i}"), f"layers.{i + 1}.norm")
    w.nodes.append(helper.make_node("Identity", [w.product(y, "head", sizes.hidden, sizes.vocabulary)], ["logits"], name="/logits"))
    names = [f"{i}.{part}" for i in range(sizes.layers) for part in ("key", "value")]
    inputs = [tensor("input_ids", I64, ["batch", "length"]), tensor("attention_mask", I64, ["batch", "total"])]
    inputs += [tensor(f"past_key_values.{n}", F32, ["batch", sizes.groups, "capacity", sizes.size]) for n in names]
    outputs = [tensor("logits", F32, ["batch", "length", sizes.vocabulary])]
    outputs += [tensor(f"present.{n}", F32, ["batch", sizes.groups, "capacity", sizes.size]) for n in names]
    graph = helper.make_graph(w.nodes, "llama", inputs, outputs, w.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)], ir_version=8)
