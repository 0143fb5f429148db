#!/usr/bin/env python3
"""One block (norm, attention, norm, MLP) of many architectures as exporters write it: make_attention.py FOLDER.

ARCHITECTURES says by a few words how each writes its block; "script" is PyTorch's older exporter, "dynamo" its newer one, which scales q
and k apart, transposes keys as three dims, and puts Where(IsNaN) behind each Softmax of scaled_dot_product_attention. In f16 weights and
constants are f16, and what the architecture computes in f32 (RMSNorm, some Softmax, angles) stands between Casts. Batch and length are
symbolic, weights random from a seed.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from harness import packages  # noqa: E402

np, onnx, helper, numpy_helper = packages("numpy", "onnx", "onnx.helper", "onnx.numpy_helper")

HIDDEN, HEADS, GROUPS, INNER, LENGTH, KEYS = 32, 4, 2, 48, 8, 5
SIZE = HIDDEN // HEADS
F32, F16, I64, BOOL = (getattr(onnx.TensorProto, n) for n in ("FLOAT", "FLOAT16", "INT64", "BOOL"))

# Words: the norm (layer, rms), the activation (gelu, tanh, quick, silu, relu); where the scale stands (div, mul, q, both, none, late: behind
# the mask); masks, from the scores on (padding, causal_where, fill, causal, sliding, bias, alibi; max: a lower bound behind them); rope or
# rope_half; gqa; softcap; f32 (Softmax between Casts in f16); flat (products of three dims); cross (keys of other length); fixed length.
ARCHITECTURES = {
    "bert": "layer gelu div padding", "roberta": "layer gelu div padding", "distilbert": "layer gelu q fill",
    "albert": "layer tanh div padding", "electra": "layer gelu div padding", "vit": "layer gelu mul", "deit": "layer gelu mul",
    "swin": "layer gelu div bias fixed", "gpt2": "layer tanh div causal_where padding", "gpt-neox": "layer gelu mul causal rope_half",
    "opt": "layer relu q causal max flat", "llama": "rms silu mul causal rope gqa f32", "mistral": "rms silu mul sliding rope gqa f32",
    "qwen2": "rms silu mul causal rope gqa f32", "gemma2": "rms tanh mul causal rope gqa f32 softcap",
    "phi": "layer tanh mul causal rope_half f32", "t5": "rms relu none bias padding f32 fixed", "bart": "layer gelu q padding flat",
    "whisper": "layer gelu both", "clip": "layer quick q causal flat", "falcon": "layer gelu late alibi causal",
    "bloom": "layer tanh mul alibi fill", "mpt": "layer gelu mul alibi fill f32", "stable-diffusion": "layer gelu mul flat cross",
}
FORMS = ("script", "dynamo")


class Block:
    def __init__(self, words: str, form: str, half: bool):
        self.words, self.form, self.half = set(words.split()), form, half
        self.type, self.kind = (np.float16, F16) if half else (np.float32, F32)
        self.random = np.random.default_rng(5)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def has(self, *words: str) -> bool:
        return any(w in self.words for w in words)

    def op(self, kind: str, *inputs: str, **attributes) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [f"{kind}_{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def constant(self, value, dtype=None) -> str:
        name = f"constant_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype or self.type), name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def weight(self, *shape: int, about: float = 0.0, by: float = 0.2, dtype=None) -> str:
        return self.constant(self.random.normal(about, by, shape), dtype)

    def cast(self, x: str, to: int) -> str:
        """As exporters write it: nothing where the type is the same already."""
        return self.op("Cast", x, to=to) if self.half else x

    def linear(self, x: str, n_in: int, n_out: int) -> str:
        return self.op("Add", self.op("MatMul", x, self.weight(n_in, n_out)), self.weight(n_out))

    def extent(self, x: str, axis: int) -> str:
        return self.op("Unsqueeze", self.op("Gather", self.op("Shape", x), self.constant(axis, np.int64), axis=0), self.ints(0))

    def reshape(self, x: str, like: str, *tail: int) -> str:
        target = [self.extent(like, 0), self.extent(like, 1), *(self.ints(n) for n in tail)]
        return self.op("Reshape", x, self.op("Concat", *target, axis=0))

    def norm(self, x: str) -> str:
        if self.has("rms"):  # in f32, and the weight behind the Cast back
            wide = self.cast(x, F32)
            mean = self.op("ReduceMean", self.op("Pow", wide, self.constant(2, np.float32)), self.ints(-1))
            root = self.op("Sqrt", self.op("Add", mean, self.constant(1e-5, np.float32)))
            inverse = self.op("Div", self.constant(1, np.float32), root) if self.form == "script" else self.op("Reciprocal", root)
            return self.op("Mul", self.weight(HIDDEN, about=1), self.cast(self.op("Mul", wide, inverse), self.kind))
        scale, bias = self.weight(HIDDEN, about=1), self.weight(HIDDEN)
        if self.form == "dynamo":
            return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
        centred = self.op("Sub", x, self.op("ReduceMean", x, self.ints(-1)))
        variance = self.op("ReduceMean", self.op("Pow", centred, self.constant(2)), self.ints(-1))
        quotient = self.op("Div", centred, self.op("Sqrt", self.op("Add", variance, self.constant(1e-5))))
        return self.op("Add", self.op("Mul", quotient, scale), bias)

    def activation(self, x: str) -> str:
        if self.has("relu"):
            return self.op("Relu", x)
        if self.has("silu", "quick"):
            inner = self.op("Mul", x, self.constant(1.702)) if self.has("quick") else x
            return self.op("Mul", x, self.op("Sigmoid", inner))
        if self.has("tanh"):
            cubed = self.op("Mul", self.op("Pow", x, self.constant(3)), self.constant(0.044715))
            inner = self.op("Tanh", self.op("Mul", self.op("Add", x, cubed), self.constant(np.sqrt(2 / np.pi))))
            return self.op("Mul", self.op("Mul", x, self.constant(0.5)), self.op("Add", inner, self.constant(1)))
        erf = self.op("Erf", self.op("Div", x, self.constant(np.sqrt(2))))
        return self.op("Mul", self.op("Mul", x, self.op("Add", erf, self.constant(1))), self.constant(0.5))

    # ---- Masks ----

    def low(self) -> float:
        return float(np.finfo(self.type).min)

    def range(self) -> str:
        length = self.op("Squeeze", self.extent("x", 1), self.ints(0))
        return self.op("Range", self.constant(0, np.int64), length, self.constant(1, np.int64))

    def seen(self) -> str:
        """Which keys a query sees, bool [1, 1, L, L]."""
        keys, queries = self.op("Unsqueeze", self.range(), self.ints(0, 1, 2)), self.op("Unsqueeze", self.range(), self.ints(0, 1, 3))
        seen = self.op("LessOrEqual", keys, queries)
        if self.has("sliding"):
            seen = self.op("And", seen, self.op("Greater", keys, self.op("Sub", queries, self.constant(3, np.int64))))
        return seen

    def kept(self) -> str:
        """Which keys are no padding, bool [B, 1, 1, L]."""
        return self.op("Cast", self.op("Unsqueeze", "mask", self.ints(1, 2)), to=BOOL)

    def square(self, mask: str) -> str:
        """bool [B, 1, L, L], by a target that the older exporter asks whether it is -1."""
        target = self.op("Concat", self.extent("x", 0), self.ints(-1), self.extent("x", 1), self.extent("x", 1), axis=0)
        if self.form == "script":
            return self.op("Expand", mask, self.op("Where", self.op("Equal", target, self.ints(-1, -1, -1, -1)), self.ints(1, 1, 1, 1), target))
        target = self.op("Concat", self.extent("x", 0), self.ints(1), self.extent("x", 1), self.extent("x", 1), axis=0)
        return self.op("Expand", mask, target)

    def additive(self, mask: str) -> str:
        low = -np.inf if self.form == "dynamo" else self.low()
        return self.op("Where", mask, self.constant(0), self.constant(low))

    def alibi(self) -> str:
        slopes = self.constant(2.0 ** -np.arange(1, HEADS + 1).reshape(-1, 1, 1))
        return self.op("Mul", slopes, self.op("Cast", self.op("Unsqueeze", self.range(), self.ints(0, 1)), to=self.kind))

    def masked(self, scores: str) -> str:
        if self.has("alibi"):
            scores = self.op("Add", scores, self.alibi())
        if self.has("causal_where"):
            scores = self.op("Where", self.seen(), scores, self.constant(self.low()))
        if self.has("fill"):
            scores = self.op("Where", self.square(self.op("Not", self.kept())), self.constant(self.low()), scores)
        terms = []
        if self.has("bias"):
            terms.append(self.weight(1, HEADS, LENGTH, LENGTH))
        if self.has("padding"):
            terms.append(self.additive(self.kept()))
        if self.has("causal", "sliding"):
            terms.append(self.additive(self.square(self.op("And", self.seen(), self.kept()))))
        if self.has("bias") and len(terms) > 1:  # T5 adds them once, for all layers
            terms = [self.op("Add", *terms)]
        for term in terms:
            scores = self.op("Add", scores, term)
        return self.op("Max", scores, self.constant(self.low())) if self.has("max") else scores

    # ---- Attention ----

    def heads(self, x: str, like: str, n: int = HEADS) -> str:
        return self.op("Transpose", self.reshape(x, like, n, SIZE), perm=[0, 2, 1, 3])

    def rope(self, x: str) -> str:
        size = SIZE // 2 if self.has("rope_half") else SIZE
        half, end, last = self.ints(size // 2), self.ints(np.iinfo(np.int64).max), self.ints(3)
        rest = None
        if size < SIZE:
            x, rest = self.op("Slice", x, self.ints(0), self.ints(size), last), self.op("Slice", x, self.ints(size), end, last)
        low, high = self.op("Slice", x, self.ints(0), half, last), self.op("Slice", x, half, end, last)
        turned = self.op("Concat", self.op("Neg", high), low, axis=-1)
        places = self.op("Cast", self.op("Unsqueeze", self.range(), self.ints(0, 2)), to=F32)
        angles = self.op("Mul", places, self.constant(1e-2 ** np.arange(size // 2).reshape(1, 1, -1), np.float32))
        both = self.op("Concat", angles, angles, axis=-1)
        cos, sin = (self.op("Unsqueeze", self.cast(self.op(f, both), self.kind), self.ints(1)) for f in ("Cos", "Sin"))
        y = self.op("Add", self.op("Mul", x, cos), self.op("Mul", turned, sin))
        return self.op("Concat", y, rest, axis=-1) if rest else y

    def repeated(self, x: str) -> str:
        wide = self.op("Expand", self.op("Unsqueeze", x, self.ints(2)), self.ints(1, 1, HEADS // GROUPS, 1, 1))
        target = self.op("Concat", self.extent(x, 0), self.ints(HEADS), self.extent(x, 2), self.ints(SIZE), axis=0)
        return self.op("Reshape", wide, target)

    def flat(self, x: str) -> str:
        target = self.op("Concat", self.op("Mul", self.extent(x, 0), self.ints(HEADS)), self.extent(x, 2), self.ints(SIZE), axis=0)
        return self.op("Reshape", x, target)

    def transposed(self, k: str, is_flat: bool) -> str:
        if is_flat:
            return self.op("Transpose", k, perm=[0, 2, 1])
        if self.form == "script":
            return self.op("Transpose", k, perm=[0, 1, 3, 2])
        flat = self.op("Reshape", k, self.op("Concat", self.ints(-1), self.extent(k, 2), self.extent(k, 3), axis=0))
        target = self.op("Concat", *(self.extent(k, axis) for axis in (0, 1, 3, 2)), axis=0)
        return self.op("Reshape", self.op("Transpose", flat, perm=[0, 2, 1]), target)

    def attention(self, x: str) -> str:
        source = "context" if self.has("cross") else x
        groups = GROUPS if self.has("gqa") else HEADS
        scale = 1 / np.sqrt(SIZE)
        q = self.linear(x, HIDDEN, HIDDEN)
        if self.has("q") and self.form == "script":
            q = self.op("Mul", q, self.constant(scale))
        q = self.heads(q, x)
        k, v = (self.heads(self.linear(source, HIDDEN, groups * SIZE), source, groups) for _ in range(2))
        if self.has("rope", "rope_half"):
            q, k = self.rope(q), self.rope(k)
        if self.has("gqa"):
            k, v = self.repeated(k), self.repeated(v)
        is_flat = self.has("flat") and self.form == "script"
        views = q
        if is_flat:
            q, k, v = self.flat(q), self.flat(k), self.flat(v)
        k = self.transposed(k, is_flat)
        sdpa = self.form == "dynamo" and not self.has("softcap", "none", "late", "alibi")
        if sdpa or self.has("both"):
            q, k = self.op("Mul", q, self.constant(np.sqrt(scale))), self.op("Mul", k, self.constant(np.sqrt(scale)))
        scores = self.op("MatMul", q, k)
        if not sdpa and self.has("div"):
            scores = self.op("Div", scores, self.constant(1 / scale))
        if not sdpa and self.has("mul"):
            scores = self.op("Mul", scores, self.constant(scale))
        if self.has("softcap"):
            scores = self.op("Mul", self.op("Tanh", self.op("Div", scores, self.constant(5))), self.constant(5))
        if is_flat and self.has("padding", "causal"):
            shape = [self.extent(x, 0), self.ints(HEADS), self.extent(x, 1), self.extent(x, 1)]
            four = self.masked(self.op("Reshape", scores, self.op("Concat", *shape, axis=0)))
            three = [self.op("Mul", self.extent(x, 0), self.ints(HEADS)), self.extent(x, 1), self.extent(x, 1)]
            scores = self.op("Reshape", four, self.op("Concat", *three, axis=0))
        else:
            scores = self.masked(scores)
        if self.has("late"):
            scores = self.op("Mul", scores, self.constant(scale))
        wide = self.cast(scores, F32) if self.has("f32") else scores
        weights = self.op("Softmax", wide, axis=-1)
        if sdpa:
            zero = self.constant(0, np.float32 if self.has("f32") else None)
            weights = self.op("Where", self.op("IsNaN", weights), zero, weights)
        y = self.op("MatMul", self.cast(weights, self.kind) if self.has("f32") else weights, v)
        if is_flat:
            y = self.op("Reshape", y, self.op("Concat", self.extent(views, 0), self.ints(HEADS), self.extent(views, 2), self.ints(SIZE), axis=0))
        return self.linear(self.reshape(self.op("Transpose", y, perm=[0, 2, 1, 3]), x, HIDDEN), HIDDEN, HIDDEN)

    def model(self) -> onnx.ModelProto:
        x = self.op("Add", self.attention(self.norm("x")), "x")
        inner = self.activation(self.linear(self.norm(x), HIDDEN, INNER))
        y = self.op("Add", self.linear(inner, INNER, HIDDEN), x)
        tensor, length = helper.make_tensor_value_info, LENGTH if self.has("fixed") else "length"
        inputs = [tensor("x", self.kind, ["batch", length, HIDDEN])]
        if self.has("padding", "fill", "causal", "sliding"):
            inputs.append(tensor("mask", I64, ["batch", length]))
        if self.has("cross"):
            inputs.append(tensor("context", self.kind, ["batch", "keys", HIDDEN]))
        outputs = [tensor(y, self.kind, ["batch", length, HIDDEN])]
        graph = helper.make_graph(self.nodes, "block", inputs, outputs, self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def model(name: str, form: str, half: bool) -> onnx.ModelProto:
    return Block(ARCHITECTURES[name], form, half).model()


def feeds(proto: onnx.ModelProto, half: bool) -> dict[str, np.ndarray]:
    """The second sample is padded."""
    random, kind = np.random.default_rng(1), np.float16 if half else np.float32
    mask = np.ones((2, LENGTH), np.int64)
    mask[1, 6:] = 0
    values = {"x": random.normal(0, 1, (2, LENGTH, HIDDEN)).astype(kind), "mask": mask,
              "context": random.normal(0, 1, (2, KEYS, HIDDEN)).astype(kind)}
    return {i.name: values[i.name] for i in proto.graph.input}


def expected(name: str, form: str) -> dict[str, int]:
    """What must be raised in the block: dynamo writes LayerNormalization itself."""
    words = set(ARCHITECTURES[name].split())
    return {"attention": 1, "layernorm": 2 if form == "script" or "rms" in words else 0, "gelu": int(bool(words & {"gelu", "tanh"})),
            "swish": int(bool(words & {"silu", "quick"})), "rotary": 2 * int(bool(words & {"rope", "rope_half"}))}


if __name__ == "__main__":
    for one in ARCHITECTURES:
        for way in FORMS:
            for narrow in (False, True):
                onnx.save(model(one, way, narrow), Path(sys.argv[1]) / f"{one}-{way}-{'f16' if narrow else 'f32'}.onnx")
