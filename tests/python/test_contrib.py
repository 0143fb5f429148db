#!/usr/bin/env python3
"""com.microsoft's operators against onnxruntime: test_contrib.py ORTC [SIM].

A model of one node each, with inputs made up here (oracle.py). For what onnxruntime's CPU has no kernel numpy says what comes out.
"""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import check
from oracle import Case, compare, f16, helper, np
from onnx import TensorProto, numpy_helper

rng = np.random.default_rng(7)
f32, f64, i32, i64, u8, i8 = np.float32, np.float64, np.int32, np.int64, np.uint8, np.int8


def r(*shape, t=f32, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(t)


def q(*shape, t=u8):
    return rng.integers(0 if t == u8 else -128, 256 if t == u8 else 128, shape).astype(t)


def s(value, t=f32):
    return np.array(value, t)


def command(*args: str, isa: str = "") -> str:
    env = os.environ | ({"ORTC_CPU": isa} if isa else {})
    return subprocess.run([sys.argv[1], *args], capture_output=True, text=True, timeout=60, check=True, env=env).stdout


def fused():
    x, b = r(2, 3, 8), r(8)
    for t in (f32, f16):
        yield Case(f"bias_gelu_{t.__name__}", "BiasGelu", {"A": x.astype(t), "B": b.astype(t)})
        yield Case(f"fast_gelu_{t.__name__}", "FastGelu", {"X": x.astype(t), "bias": b.astype(t)})
    yield Case("fast_gelu_plain", "FastGelu", {"X": x})
    yield Case("gelu", "Gelu", {"X": x})
    yield Case("quick_gelu", "QuickGelu", {"X": x}, alpha=1.5)
    for a, bt, ab, bb in ((0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (1, 1, 0, 0)):
        yield Case(f"fused_matmul_{a}{bt}", "FusedMatMul", {"A": r(2, 5, 3) if a else r(2, 3, 5), "B": r(2, 4, 5) if bt else r(2, 5, 4)},
                   transA=a, transB=bt, alpha=0.25)
    yield Case("fused_matmul_batch_a", "FusedMatMul", {"A": r(3, 2, 5), "B": r(2, 5, 4)}, transBatchA=1)
    yield Case("fused_matmul_batch_both", "FusedMatMul", {"A": r(3, 2, 6, 5), "B": r(5, 2, 6, 4)}, transBatchA=1, transBatchB=1)
    yield Case("fused_matmul_batch_turned", "FusedMatMul", {"A": r(5, 2, 3), "B": r(4, 2, 5)}, transBatchA=1, transA=1, transBatchB=1, transB=1)
    yield Case("transpose_matmul", "TransposeMatMul", {"A": r(5, 3), "B": r(5, 4)}, transA=1)
    for act, more in (("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("Sigmoid", {}), ("Tanh", {}),
                      ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}), ("Elu", {"activation_alpha": 0.5})):
        yield Case(f"fused_gemm_{act}", "FusedGemm", {"A": r(3, 5), "B": r(4, 5), "C": r(4)}, transB=1, alpha=0.5, beta=2.0,
                   activation=act, **more)
    for act, p in (("Relu", None), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.5]), ("HardSigmoid", [0.3, 0.4]), ("Tanh", None)):
        more = {"activation_params": p} if p else {}
        yield Case(f"fused_conv_{act}", "FusedConv", {"X": r(1, 3, 6, 6), "W": r(4, 3, 3, 3), "B": r(4)}, pads=[1, 1, 1, 1], activation=act, **more)
    yield Case("fused_conv_added", "FusedConv", {"X": r(1, 3, 6, 6), "W": r(4, 3, 3, 3), "B": r(4), "Z": r(1, 4, 6, 6)}, pads=[1, 1, 1, 1],
               activation="Relu")
    yield Case("nhwc_max_pool", "NhwcMaxPool", {"x": q(1, 6, 6, 3)}, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for metric in ("euclidean", "sqeuclidean"):
        yield Case(f"cdist_{metric}", "CDist", {"A": r(3, 5), "B": r(4, 5)}, metric=metric, rtol=1e-3, atol=1e-5)
    yield Case("expand_dims", "ExpandDims", {"X": r(2, 3), "axis": s(-1, i32)}, constants=["axis"])
    yield Case("range", "Range", {"start": s(1.0), "limit": s(3.0)})
    yield Case("trilu", "Trilu", {"X": r(3, 3), "k": s(1, i64)}, upper=0)
    yield Case("pad", "Pad", {"data": r(2, 3), "pads": np.array([0, 1, 1, 0], i64), "value": s(2.0)}, constants=["pads"])
    yield Case("inverse", "Inverse", {"X": r(2, 4, 4) + 3 * np.eye(4, dtype=f32)}, atol=1e-5)
    yield Case("grid_sample", "GridSample", {"X": r(1, 2, 4, 5), "Grid": r(1, 3, 3, 2, scale=0.5)}, mode="bicubic", atol=1e-4)
    yield Case("unique", "Unique", {"x": np.array([3, 1, 3, 2, 1], f32)}, outputs=3)
    yield Case("gather_nd", "GatherND", {"data": r(2, 3), "indices": np.array([[1, 0], [0, 2]], i32)})
    c = r(1, 4, 4, 8)
    half, gate = np.split(x := c.astype(f64) + b, 2, -1)
    erf = np.vectorize(math.erf)
    yield Case("bias_split_gelu", "BiasSplitGelu", {"X": c, "bias": b}, expected=[(half * 0.5 * gate * (1 + erf(gate / 2 ** 0.5))).astype(f32)])


    x, w, b, z = r(1, 4, 4, 2), r(3, 2, 2, 2), r(3), r(1, 3, 3, 3)
    y = sum(x[:, i : i + 3, j : j + 3].astype(f64) @ w[:, :, i, j].T for i in range(2) for j in range(2)) + b + z
    yield Case("fused_conv_last", "NhwcFusedConv", {"X": x, "W": w, "B": b, "Z": z}, activation="Relu", expected=[np.maximum(y, 0).astype(f32)])
    for act, more in (("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("Softmax", {"activation_axis": -1})):
        a, w = r(3, 5), r(5, 4)
        p = 0.5 * a.astype(f64) @ w
        e = np.exp(p - p.max(-1, keepdims=True))
        want = {"Relu": np.maximum(p, 0), "LeakyRelu": np.where(p < 0, 0.2 * p, p), "Softmax": e / e.sum(-1, keepdims=True)}[act]
        yield Case(f"fused_matmul_{act}", "FusedMatMulActivation", {"A": a, "B": w}, alpha=0.5, activation=act, **more, expected=[want.astype(f32)])
    x, w, b = r(3, 5), r(5, 4), r(4)
    g = x.astype(f64) @ w + b
    yield Case("gemm_fast_gelu", "GemmFastGelu", {"X": x, "W": w, "bias": b},
               expected=[(0.5 * g * (1 + np.tanh((2 / math.pi) ** 0.5 * (g + 0.044715 * g**3)))).astype(f32)])
    x, b, more = r(2, 3, 8), r(8), r(2, 3, 8)
    yield Case("bias_dropout", "BiasDropout", {"data": x, "bias": b, "residual": more}, expected=[x + b + more])
    yield Case("bias_dropout_mask", "BiasDropout", {"data": x, "bias": b}, outputs=2, expected=[x + b, np.ones(x.shape, bool)])
    x, b = r(2, 3, 4, 5), r(2, 1, 1, 5)
    for axis, dims in ((3, (3,)), (2, (2, 3))):
        e = np.exp((x.astype(f64) + b))
        yield Case(f"bias_softmax_{axis}", "BiasSoftmax", {"data": x, "bias": b}, axis=axis, is_inner_broadcast=1,
                   expected=[(e / e.sum(dims, keepdims=True)).astype(f32)])
    yield Case("transposed_conv", "ConvTransposeWithDynamicPads", {"X": r(1, 3, 4, 4), "W": r(3, 2, 3, 3), "Pads": np.array([1, 0, 1, 2], i64), "B": r(2)},
               strides=[2, 2], output_padding=[1, 1])
    a, b = r(2, 3, 2), r(2, 3, 2)
    ca, cb = a[..., 0].astype(f64) + 1j * a[..., 1], b[..., 0].astype(f64) + 1j * b[..., 1]
    for op, c in (("ComplexMul", ca * cb), ("ComplexMulConj", ca * cb.conj())):
        yield Case(op, op, {"A": a, "B": b}, expected=[np.stack([c.real, c.imag], -1).astype(f32)])
    x = r(2, 12)
    f = np.fft.rfft(x.astype(f64))
    pairs = np.stack([f.real, f.imag], -1).astype(f32)
    yield Case("rfft", "Rfft", {"X": x}, signal_ndim=1, expected=[pairs], atol=1e-5)
    yield Case("irfft", "Irfft", {"X": pairs}, signal_ndim=1, expected=[12 * x], atol=1e-4, fixed=True)
    good, bad = r(2, 3), np.array([1, np.inf], f32)
    yield Case("finite", "IsAllFinite", {"a": good, "b": good[0]}, expected=[s(True, bool)])
    yield Case("not_finite", "IsAllFinite", {"a": good, "b": bad}, expected=[s(False, bool)])
    yield Case("not_nan", "IsAllFinite", {"a": bad}, isnan_only=1, expected=[s(True, bool)])
    for size in (1, 2, 3):
        yield Case(f"ngrams_{size}", "NGramRepeatBlock", {"ids": rng.integers(0, 3, (3, 9)), "scores": r(3, 4)}, ngram_size=size)
    table, ids = r(5, 4), np.array([[3, 0], [1, 1]], i64)
    yield Case("torch_embedding", "TorchEmbedding", {"w": table, "ids": ids}, expected=[table[ids]])
    x = r(2, 3, 8)
    yield Case("scaled_silu", "ScaledSiLU", {"X": x}, alpha=1.5)
    yield Case("scaled_silu_given", "ScaledSiLU", {"X": x, "scale": s(0.7)})
    yield Case("gated_add", "GatedAdd", {"X": x, "Y": r(2, 3, 8), "gate": r(2, 3, 1)})
    yield Case("attention_gate", "LinearAttentionGate", {"a": x, "dt_bias": r(8), "decay_scale": -(r(8) ** 2), "b": r(2, 3, 8)}, outputs=2)


def texts_and_crops():
    words, grid = np.array([" ab  cd e", "é", ""], object), np.array([["the cat, a dog", "x yy"]], object)
    token = {"mark": 0, "mincharnum": 1, "pad_value": "#"}
    for name, x, more in (("characters", words, {"separators": [""]}), ("marked", words, {"separators": [""], "mark": 1}),
                          ("dots", words, {"tokenexp": "."}), ("blanks", words, {"separators": [" "]}), ("long", words, {"separators": [" "], "mincharnum": 2, "mark": 1}),
                          ("in turn", np.array(["aXXbXc", "Xb"], object), {"separators": ["X+", "b"]}), ("longest", np.array(["aXXbX"], object), {"separators": ["X|XX"]}),
                          ("found", grid, {"tokenexp": "[a-zA-Z0-9_]+"}), ("found long", grid, {"tokenexp": "[a-z]+", "mincharnum": 2, "mark": 1}),
                          ("repeats", np.array(["abab"], object), {"tokenexp": "a*"}), ("anchor", np.array(["aab"], object), {"tokenexp": "^a"}),
                          ("nothing", np.array(["", ""], object), {"separators": [" "], "mark": 1})):  # fmt: skip
        yield Case(f"tokens_{name.replace(' ', '_')}", "Tokenizer", {"x": x}, **(token | more))
    for t in (i32, np.uint32, i64, np.uint64, f32, f64):
        x = rng.integers(-9 if np.dtype(t).kind != "u" else 0, 99, (2, 3)).astype(t)
        yield Case(f"hash_{np.dtype(t).name}", "MurmurHash3", {"x": x}, seed=7)
        yield Case(f"hash_{np.dtype(t).name}_signed", "MurmurHash3", {"x": x}, positive=0)
    yield Case("hash_strings", "MurmurHash3", {"x": np.array(["", "a", "abc", "abcd", "abcde", "hello world"], object)})
    boxes = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 1.3], [-0.5, 0.9, 0.4, 0.1]], f32)
    for mode in ("bilinear", "nearest"):
        for size in ((3, 2), (7, 9), (1, 4)):
            yield Case(f"crops_{mode}_{size[0]}", "CropAndResize", {"X": r(2, 3, 4, 5), "rois": boxes, "who": np.array([0, 1, 0], i32), "size": np.array(size, i32)},
                       mode=mode, extrapolation_value=9.0, atol=1e-5)
    yield Case("crop_of_a_pixel", "CropAndResize", {"X": r(1, 2, 1, 1), "rois": boxes[:1], "who": np.array([0], i32), "size": np.array([2, 2], i32)}, mode="nearest")
    spelled = np.array([[3, 4, 5, 6, 0, 0], [1, 2, 0, 0, 5, 1], [1, 0, 0, 0, 0, 0], [7, 7, 7, 7, 7, 7]], i32)  # of a word without letters onnxruntime writes nothing
    yield Case("spelled", "WordConvEmbedding", {"s": spelled, "W": r(5, 1, 3, 4), "B": r(5), "C": r(9, 4)}, atol=1e-5)


def norms():
    x, skip, g, b = r(2, 5, 16), r(2, 5, 16), r(16), r(16)
    for t in (f32, f16):
        a = {n: v.astype(t) for n, v in {"input": x, "skip": skip, "gamma": g, "beta": b, "bias": r(16)}.items()}
        yield Case(f"skip_{t.__name__}", "SkipLayerNormalization", a, outputs=["y", "", "", "sum"], epsilon=1e-5)
        del a["beta"]
        yield Case(f"skip_rms_{t.__name__}", "SkipSimplifiedLayerNormalization", a, outputs=["y", "", "", "sum"], epsilon=1e-5)
        yield Case(f"rms_{t.__name__}", "SimplifiedLayerNormalization", {"X": x.astype(t), "scale": g.astype(t)}, domain="", epsilon=1e-5, axis=-1)
    yield Case("skip_shared", "SkipLayerNormalization", {"input": x, "skip": skip[:1], "gamma": g, "beta": None})
    yield Case("skip_shared_2d", "SkipLayerNormalization", {"input": x, "skip": skip[0], "gamma": g, "beta": b})
    yield Case("rms_inverse", "SimplifiedLayerNormalization", {"X": x, "scale": r(5, 16)}, outputs=2, domain="", axis=1)
    ids, segments = rng.integers(0, 9, (2, 4)).astype(i32), rng.integers(0, 2, (2, 4)).astype(i32)
    e = {"ids": ids, "segments": segments, "words": r(9, 8), "places": r(6, 8), "kinds": r(2, 8), "gamma": r(8), "beta": r(8)}
    yield Case("embed", "EmbedLayerNormalization", e, outputs=["y", "counts"])
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], i32)
    yield Case("embed_masked", "EmbedLayerNormalization", {**e, "mask": mask, "position": np.array([[3, 2, 1, 0]] * 2, i32)}, outputs=3)
    yield Case("embed_plain", "EmbedLayerNormalization", {**e, "segments": None, "kinds": None}, outputs=["y", "counts"])
    x, g, b = r(2, 3, 4, 8), r(8), r(8)
    p = x.astype(f64).transpose(0, 3, 1, 2).reshape(2, 4, -1)
    n = ((p - p.mean(-1, keepdims=True)) / np.sqrt(p.var(-1, keepdims=True) + 1e-5)).reshape(2, 8, 3, 4).transpose(0, 2, 3, 1) * g + b
    yield Case("group", "GroupNorm", {"X": x, "gamma": g, "beta": b}, groups=4, activation=0, expected=[n.astype(f32)])
    yield Case("group_swish", "GroupNorm", {"X": x, "gamma": g, "beta": b}, groups=4, activation=1, expected=[(n / (1 + np.exp(-n))).astype(f32)])
    yield Case("group_skip", "SkipGroupNorm", {"X": x - 2, "gamma": g, "beta": b, "skip": np.ones((2, 8), f32), "bias": np.ones(8, f32)}, groups=4,
               activation=0, outputs=2, expected=[n.astype(f32), x], atol=1e-5)


    x = r(2, 3, 16)
    yield Case("gated_rms", "GatedRMSNorm", {"X": x, "scale": r(8), "gate": r(2, 3, 16)})
    yield Case("gated_rms_sigmoid", "GatedRMSNorm", {"X": x, "scale": r(16), "gate": r(2, 3, 16)}, activation="sigmoid", epsilon=1e-3)
    for name, scale in (("all", r(16)), ("rows", r(2, 8)), ("shared", r(8)), ("none", None)):
        yield Case(f"branches_{name}", "BranchwiseRMSNorm", {"X": x, "scale": scale}, num_branches=2)
    yield Case("branches_apart", "BranchwiseRMSNorm", {"X": r(2, 3, 2, 8), "scale": r(2, 8)})


def experts():
    """onnxruntime's CPU does MoE without a third layer; with one, and its other forms, numpy says."""
    tokens, size, inner, count = 5, 16, 32, 4
    x, router = r(tokens, size), r(tokens, count)
    w1, b1, w2, b2, w3 = r(count, inner, size), r(count, inner), r(count, size, inner), r(count, size), r(count, inner, size)
    plain = {"x": x, "router": router, "w1": w1, "b1": b1, "w2": w2, "b2": b2}
    for act in ("relu", "gelu", "silu", "identity"):
        for k, normal in ((1, 0), (2, 1)):
            yield Case(f"moe_{act}_{k}", "MoE", plain, k=k, activation_type=act, normalize_routing_weights=normal, rtol=1e-3, atol=1e-4)
    yield Case("moe_3d", "MoE", {**plain, "x": x[:4].reshape(2, 2, size), "router": router[:4]}, k=2, rtol=1e-3, atol=1e-4)
    glu = {**plain, "w1": r(count, 2 * inner, size), "b1": r(count, 2 * inner)}
    swiglu = {"k": 2, "activation_type": "swiglu", "activation_alpha": 1.702, "activation_beta": 1.0, "normalize_routing_weights": 1}
    for name, more in (("", {}), ("_limit", {"swiglu_limit": 0.5})):
        yield Case(f"moe_swiglu{name}", "MoE", glu, swiglu_fusion=1, **swiglu, **more, rtol=1e-3, atol=1e-4)

    def mixed(hidden):
        p = np.exp(router.astype(f64))
        p /= p.sum(-1, keepdims=True)
        y = np.zeros((tokens, size))
        for t in range(tokens):
            for e in np.argsort(-p[t])[:2]:
                y[t] += p[t, e] * (w2[e] @ hidden(e, x[t]) + b2[e])
        return [y.astype(f32)]

    def silu(v):
        return v / (1 + np.exp(-v))
    both = {**plain, "w3": w3}
    yield Case("moe_three", "MoE", both, k=2, activation_type="silu", expected=mixed(lambda e, v: silu(w1[e] @ v + b1[e]) * (w3[e] @ v)), rtol=1e-3, atol=1e-4)
    yield Case("moe_apart", "MoE", both, k=2, activation_type="swiglu", expected=mixed(lambda e, v: silu(w1[e] @ v + b1[e]) * (w3[e] @ v)), rtol=1e-3, atol=1e-4)
    halves = {**plain, "w1": np.concatenate([w1, w3], 1), "b1": np.concatenate([b1, 0 * b1], 1)}
    yield Case("moe_halves", "MoE", halves, k=2, activation_type="swiglu", swiglu_fusion=2,
               expected=mixed(lambda e, v: silu(w1[e] @ v + b1[e]) * (w3[e] @ v)), rtol=1e-3, atol=1e-4)

    close = np.array([[1, 0.99, 0.985, -3], [0.5, 0.499, 0.2, 0.495], [-1, -1.01, -0.999, -4], [2, 1, 0, -1], [0.1, 0.1, 0.1, 0.1]], f32)

    def sparse():  # as Phi-3.5-MoE's own model says
        y = np.zeros((tokens, size))
        for t, p in enumerate(close.astype(f64)):
            left = p.copy()
            for e in np.argsort(-p, kind="stable")[:2]:
                near = np.where((p[e] - p) / np.maximum(np.abs(p), p[e]) > 0.02, -np.inf, left)
                y[t] += np.exp(near[e]) / np.exp(near).sum() * (w2[e] @ np.maximum(w1[e] @ x[t] + b1[e], 0) + b2[e])
                left[e] = -np.inf
        return [y.astype(f32)]
    # onnxruntime's CPU does not look at the attribute
    yield Case("moe_sparse_mixer", "MoE", {**plain, "router": close}, k=2, activation_type="relu", use_sparse_mixer=1, expected=sparse(), rtol=1e-3, atol=1e-4)

    for bits in (4, 8):
        pack = 8 // bits

        def quantised(rows, columns, block, bits=bits, pack=pack):
            scales = (r(count, rows, *([columns // block] if block else [])) ** 2 + 0.1).astype(f32) * 2.0 ** (1 - bits)
            return q(count, rows, columns // pack), scales.astype(f32)
        for block in (0, 16):
            (q1, s1), (q2, s2) = quantised(inner, size, block), quantised(size, inner, block)
            inputs = {"x": x, "router": router, "w1": q1, "s1": s1, "b1": b1, "w2": q2, "s2": s2, "b2": b2}
            more = {"block_size": block} if block else {}
            yield Case(f"qmoe_{bits}_{block}", "QMoE", inputs, k=2, activation_type="silu", normalize_routing_weights=1, expert_weight_bits=bits,
                       rtol=2e-2 if bits == 8 else 2e-3, atol=2e-1 if bits == 8 else 2e-3, constants=["w1", "s1", "w2", "s2"], **more)
        if bits == 4:
            zeros = {**inputs, "w3": None, "s3": None, "b3": None, "z1": q(count, inner, 1), "z2": q(count, size, 1)}
            yield Case("qmoe_zeros", "QMoE", zeros, k=2, activation_type="silu", normalize_routing_weights=1, expert_weight_bits=4, block_size=16, rtol=2e-3, atol=2e-3,
                       constants=["w1", "s1", "w2", "s2", "z1", "z2"])


def attention():
    for n, (heads, packed) in enumerate(((2, False), (4, False))):
        d = heads * 8
        k = {"query": r(2, 3, d), "key": r(2, 5, d), "value": r(2, 5, d)}
        yield Case(f"mha_{n}", "MultiHeadAttention", k, num_heads=heads)
        yield Case(f"mha_bias_{n}", "MultiHeadAttention", {**k, "bias": r(3 * d)}, num_heads=heads, scale=0.3)
        keep = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], i32)
        yield Case(f"mha_mask_{n}", "MultiHeadAttention", {**k, "bias": None, "mask": keep, "added": r(1, heads, 3, 5)}, num_heads=heads)
        yield Case(f"mha_lengths_{n}", "MultiHeadAttention", {**k, "bias": None, "mask": np.array([5, 2], i32)}, num_heads=heads, fixed=True)
        yield Case(f"mha_sums_{n}", "MultiHeadAttention", {**k, "bias": None, "mask": np.array([5, 2, 0, 3, 6, 0, 5, 7], i32)}, num_heads=heads, fixed=True)
        yield Case(f"mha_pairs_{n}", "MultiHeadAttention", {**k, "bias": None, "mask": rng.integers(0, 2, (2, 3, 5)).astype(i32) | np.eye(3, 5, dtype=i32)},
                   num_heads=heads)
        c = {"query": r(2, 3, d), "key": r(2, 3, d), "value": r(2, 3, d)}
        yield Case(f"mha_causal_{n}", "MultiHeadAttention", c, num_heads=heads, unidirectional=1)
        yield Case(f"mha_past_{n}", "MultiHeadAttention", {**c, "bias": r(3 * d), "mask": None, "added": None, "past_key": r(2, heads, 4, 8),
                                                           "past_value": r(2, heads, 4, 8)}, outputs=3, num_heads=heads, unidirectional=n)
    yield Case("mha_half", "MultiHeadAttention", {n: v.astype(f16) for n, v in k.items()}, num_heads=4)
    yield Case("mha_cross", "MultiHeadAttention", {"query": r(2, 3, 16), "key": r(2, 2, 5, 8), "value": r(2, 2, 5, 8)}, num_heads=2)
    for name, more in (("", {}), ("_mask", {"bias": None, "mask": np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], i32)}), ("_added", {"bias": None, "mask": None, "added": r(1, 4, 3, 5)})):
        yield Case(f"mha_scores{name}", "MultiHeadAttention", {**k, **more}, outputs=["y", "", "", "qk"], num_heads=4, declared=f32)
    yield Case("mha_scores_causal", "MultiHeadAttention", {n: v[:, :3] for n, v in k.items()}, outputs=["y", "", "", "qk"], num_heads=4, declared=f32, unidirectional=1)
    for new, causal, where in ((1, 0, None), (3, 1, None), (1, 0, rng.integers(0, 2, (1, 2, 8)).astype(i32))):
        yield Case(f"mha_room_{new}_{where is not None}", "MultiHeadAttention", {"query": r(2, new, 16), "key": r(2, new, 16), "value": r(2, new, 16), "bias": r(48), "mask": None,
                   "added": None, "past_key": r(2, 2, 8, 8), "past_value": r(2, 2, 8, 8), "length": np.array([3], i32), "where": where}, outputs=3, num_heads=2,
                   unidirectional=causal)
    x, w, b = r(2, 4, 12), r(12, 48, scale=0.3), r(48)
    a = {"input": x, "weights": w, "bias": b}
    yield Case("attention", "Attention", a, num_heads=2)
    yield Case("attention_causal", "Attention", a, num_heads=2, unidirectional=1)
    keep = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], i32)
    yield Case("attention_mask", "Attention", {**a, "mask": keep}, num_heads=2)
    yield Case("attention_filter", "Attention", {**a, "mask": keep}, num_heads=2, mask_filter_value=-3.0)
    yield Case("attention_lengths", "Attention", {**a, "mask": np.array([4, 2], i32)}, num_heads=2, fixed=True)
    yield Case("attention_ends", "Attention", {**a, "mask": np.array([4, 3, 0, 1], i32)}, num_heads=2, fixed=True)
    yield Case("attention_sums", "Attention", {**a, "mask": np.array([4, 2, 0, 4, 6, 0, 4, 6], i32)}, num_heads=2, fixed=True)
    yield Case("attention_pairs", "Attention", {**a, "mask": np.tril(np.ones((2, 4, 4), i32))}, num_heads=2)
    yield Case("attention_added", "Attention", {**a, "mask": None, "past": None, "added": r(2, 2, 4, 4)}, num_heads=2, scale=0.4)
    yield Case("attention_past", "Attention", {**a, "mask": None, "past": r(2, 2, 2, 3, 8)}, outputs=2, num_heads=2, unidirectional=1)
    past = r(2, 2, 2, 3, 8)  # onnxruntime's CPU has no buffer that is longer than the past
    y, present = Case("same", "Attention", {**a, "mask": None, "past": past}, outputs=2, num_heads=2, unidirectional=1).answers()
    more = r(2, 2, 2, 4, 8)
    yield Case("attention_room", "Attention", {**a, "mask": None, "past": np.concatenate([past, 0 * more, more], 3), "added": None, "length": np.array([3], i32)}, outputs=2,
               num_heads=2, unidirectional=1, past_present_share_buffer=1, expected=[y, np.concatenate([present, more], 3)])
    yield Case("attention_sizes", "Attention", {"input": x, "weights": r(12, 40, scale=0.3), "bias": r(40)}, num_heads=2, qkv_hidden_sizes=[16, 16, 8])
    yield Case("attention_half", "Attention", {n: v.astype(f16) for n, v in a.items()}, num_heads=2, unidirectional=1)
    # onnxruntime's CPU turns no heads inside: its RotaryEmbedding does before its MultiHeadAttention; the longer buffer as above
    for name, olds, size, turned in (("", 0, 16, 0), ("_part", 0, 64, 32), ("_past", 3, 16, 0), ("_room", 3, 16, 0)):
        tokens, weights, added, past = r(2, 4, 12), r(12, 6 * size, scale=0.3), r(6 * size), r(2, 2, 2, olds, size)
        angles = np.outer(np.arange(20), 10000.0 ** (-np.arange(0, turned or size, 2) / (turned or size)))
        query, key, value = np.split(tokens @ weights + added, 3, -1)
        query, key = (Case("turned", "RotaryEmbedding", {"x": p, "ids": np.tile(np.arange(olds, olds + 4), (2, 1)), "cos": np.cos(angles).astype(f32),
                                                         "sin": np.sin(angles).astype(f32)}, num_heads=2, rotary_embedding_dim=turned).answers()[0] for p in (query, key))
        same = {"query": query, "key": key, "value": value} | ({"bias": None, "mask": None, "added": None, "past_key": past[0], "past_value": past[1]} if olds else {})
        y, *grown = Case("same", "MultiHeadAttention", same, outputs=3, num_heads=2, unidirectional=1).answers()
        present, more, room = np.stack(grown), r(2, 2, 2, 4, size), name == "_room"
        yield Case(f"attention_rotary{name}", "Attention", {"input": tokens, "weights": weights, "bias": added, "mask": None, "past": np.concatenate([past, more, more], 3) if room else past if olds else None,
                   "added": None, "length": np.array([3], i32) if room else None}, outputs=2, num_heads=2, unidirectional=1, do_rotary=1, fixed=True,
                   past_present_share_buffer=int(room), expected=[y, np.concatenate([present, more], 3) if room else present],
                   **({"rotary_embedding_dim": turned} if turned else {}))
    for t in (u8, i8):
        yield Case(f"qattention_{t.__name__}", "QAttention", {"input": q(2, 4, 12), "weight": q(12, 48, t=t), "bias": b, "in": s(0.02), "step": s(0.01),
                   "mask": np.array([4, 2], i32), "in_zero": s(120, u8), "zero": s(3, t)}, num_heads=2, fixed=True, constants=["weight", "zero"])
    cos, sin = np.cos(t := np.outer(np.arange(20), 0.5 ** np.arange(4))).astype(f32), np.sin(t).astype(f32)
    rotary = {"x": r(2, 3, 16), "ids": np.array([[0, 1, 2], [4, 5, 6]], i64), "cos": cos, "sin": sin}
    yield Case("rotary", "RotaryEmbedding", rotary, fixed=True)
    yield Case("rotary_offset", "RotaryEmbedding", {**rotary, "ids": np.array([3], i64)}, fixed=True, interleaved=1)
    yield Case("rotary_packed", "RotaryEmbedding", rotary, is_packed_batching=1, fixed=True)
    yield Case("rotary_4d", "RotaryEmbedding", {**rotary, "x": r(2, 2, 3, 8)})
    many = np.outer(np.arange(20), 0.5 ** np.arange(8))
    for layout in (0, 1):
        for name, x, more in (("", r(2, 3, 32), {"num_heads": 2}), ("_4d", r(2, 2, 3, 16), {}), ("_part", r(2, 3, 48), {"num_heads": 2, "rotary_embedding_dim": 16})):
            yield Case(f"mrotary_{layout}{name}", "MRotaryEmbedding", {"x": x, "ids": rng.integers(0, 20, (3, 2, 3)), "cos": np.cos(many).astype(f32), "sin": np.sin(many).astype(f32)},
                       mrope_layout=layout, mrope_section=[4, 2, 2], fixed=True, **more)
    yield Case("rotary_part", "RotaryEmbedding", {**rotary, "x": r(2, 3, 32)}, num_heads=2, rotary_embedding_dim=8)

    def group(past, new, lengths, heads=4, groups=2, room=None, packed=False, rotary=False, **more):
        size = 16
        total = past + new
        room = past if room is None else room
        batch = len(lengths)
        q_, k_, v_ = r(batch, new, heads * size), r(batch, new, groups * size), r(batch, new, groups * size)
        cache = [np.zeros((batch, groups, room, size), f32) for _ in range(2)]
        for c in cache:
            for line, length in enumerate(lengths):
                c[line, :, :length] = r(groups, length, size)
        inputs = {"query": np.concatenate([q_, k_, v_], -1) if packed else q_, "key": None if packed else k_, "value": None if packed else v_,
                  "past_key": cache[0], "past_value": cache[1], "lengths": np.array([n + new - 1 for n in lengths], i32), "total": s(total, i32),
                  "cos": np.tile(cos, 2) if rotary else None, "sin": np.tile(sin, 2) if rotary else None, "ids": None, "added": None, "sinks": None}
        inputs.update(more.pop("inputs", {}))
        return dict(inputs=inputs, outputs=3, num_heads=heads, kv_num_heads=groups, do_rotary=int(rotary), fixed=packed or rotary, **more)

    def gqa(name, **how):
        return Case(name, "GroupQueryAttention", **how)
    yield gqa("gqa_prompt", **group(0, 4, [0, 0]))
    yield gqa("gqa_step", **group(5, 1, [5, 5]))
    yield gqa("gqa_uneven", **group(5, 1, [5, 3]))
    yield gqa("gqa_packed", **group(5, 1, [5, 4], packed=True))
    yield gqa("gqa_rotary", **group(5, 1, [5, 4], rotary=True))
    yield gqa("gqa_rotary_prompt", **group(0, 6, [0, 0], rotary=True, packed=True, rotary_interleaved=1))
    yield gqa("gqa_window", **group(9, 1, [9, 6], local_window_size=4))
    yield gqa("gqa_window_prompt", **group(0, 7, [0, 0], local_window_size=3))
    yield gqa("gqa_capped", **group(5, 1, [5, 4], softcap=2.0, scale=0.7))
    yield gqa("gqa_chunk", **group(5, 3, [5]))
    yield gqa("gqa_smooth", **group(5, 1, [5, 4], smooth_softmax=1))
    for how, more in (("", {}), ("_capped", {"softcap": 1.0}), ("_smooth", {"smooth_softmax": 1}), ("_window", {"local_window_size": 3})):
        for what in (1, 2):
            yield gqa(f"gqa_scores_{what}{how}", **(group(5, 1, [5, 5], **more) | {"outputs": 4}), qk_output=what, declared=f32)
            yield gqa(f"gqa_scores_prompt_{what}{how}", **(group(0, 5, [0, 0], **more) | {"outputs": 4}), qk_output=what, declared=f32)
    yield gqa("gqa_scores_added", **(group(5, 1, [5, 5], inputs={"added": r(2, 4, 1, 6)}) | {"outputs": 4}), qk_output=1, declared=f32)
    # caches that slide: of 4 rows for a window of 4, of 6 for one, where what leaves does so by threes; rows that are not in use may have any value
    for name, room, past, new, batch in (("step", 4, 7, 1, 2), ("first", 4, 3, 1, 2), ("chunk", 4, 7, 3, 1), ("prompt", 4, 0, 7, 1), ("slack", 6, 8, 1, 2), ("slack_chunk", 6, 7, 5, 1)):
        how = group(room, new, [room] * batch)
        how["inputs"] |= {"lengths": np.full(batch, past + new - 1, i32), "total": s(past + new, i32)}
        yield gqa(f"gqa_sliding_{name}", **how, local_window_size=4, sliding_window_cache=1)
        if past == 0 or past >= room:
            how["inputs"]["added"] = r(1, 4, new, past + new)
            yield gqa(f"gqa_sliding_added_{name}", **how, local_window_size=4, sliding_window_cache=1)
        # of these onnxruntime's CPU has no scores: they are those of a cache of all keys, of which this one has the last
        full = group(past, new, [past] * batch)
        gone = (room - 3) * max(0, -((room - past) // (room - 3)))
        full["inputs"] |= {n: how["inputs"][n] for n in ("query", "key", "value", "added")}
        cut = {n: np.zeros_like(how["inputs"][n]) for n in ("past_key", "past_value")}
        for n, c in cut.items():
            c[:, :, : past - gone] = full["inputs"][n][:, :, gone:]
        for what in (1, 2):
            more = {"qk_output": what, "declared": f32, "local_window_size": 4, "outputs": 4}
            y, _, _, qk = gqa("full", **(full | more)).answers()
            yield gqa(f"gqa_sliding_scores_{what}_{name}", **(how | more | {"inputs": how["inputs"] | cut, "outputs": ["y", "", "", "qk"]}), sliding_window_cache=1,
                      expected=[y, qk])
    yield gqa("gqa_sink", **group(5, 1, [5, 4], inputs={"sinks": r(4)}))
    # onnxruntime's CPU has no norms inside: they come before
    how = group(5, 1, [5, 4], rotary=True)
    plain, qn, kn = how["inputs"], r(16), r(16)

    def normed(x, heads, weight):
        p = x.reshape(2, 1, heads, 16)
        return (p / np.sqrt((p**2).mean(-1, keepdims=True) + 1e-3) * weight).reshape(x.shape)
    before = Case("before", "GroupQueryAttention", **{**how, "inputs": {**plain, "query": normed(plain["query"], 4, qn), "key": normed(plain["key"], 2, kn)}}).answers()
    yield gqa("gqa_normed", **{**how, "inputs": {**plain, "ks": None, "vs": None, "qn": qn, "kn": kn}}, qk_norm_epsilon=1e-3, expected=before)
    for name, t, bits, kind, shape in (("i8", i8, 8, "PER_TENSOR", (1,)), ("i8_channels", i8, 8, "PER_CHANNEL", (1, 2, 1, 16)), ("i4", u8, 4, "PER_TENSOR", (1,)),
                                       ("i4_channels", u8, 4, "PER_CHANNEL", (1, 2, 1, 16))):  # fmt: skip
        for step, (past, new) in (("step", (5, 1)), ("prompt", (0, 4))):
            kept = {f"past_{n}": q(2, 2, past, 16 * bits // 8, t=t) for n in ("key", "value")}
            scales = {n: (r(*shape) ** 2 * 0.01 + 0.02 * 2.0 ** (8 - bits)).astype(f32) for n in ("ks", "vs")}
            yield gqa(f"gqa_{name}_{step}", **group(past, new, [past, past], inputs={**kept, **scales}, k_quant_type=kind, v_quant_type=kind, kv_cache_bit_width=bits),
                      rtol=1e-3, atol=1e-3)
    yield gqa("gqa_added", **group(5, 1, [5, 5], inputs={"added": r(2, 4, 1, 6)}))


    # blocks that see each other, in two layouts; head h has layout h modulo 2
    rows, columns = np.array([[0, 1, 3, 5, 8], [0, 1, 3, 6, 9]], i32), np.array([[0, 0, 1, 1, 2, 1, 2, 3, -1], [0, 0, 1, 0, 1, 2, 0, 2, 3]], i32)
    for name, past, new, lengths, rotary in (("prompt", 0, 40, [40], False), ("step", 37, 1, [38], False), ("rotary", 20, 1, [21], True)):
        size, batch = 16, len(lengths)
        caches = {f"past_{n}": np.zeros((batch, 2, 64, size), f32) for n in ("key", "value")}
        for c in caches.values():
            c[:, :, :past] = r(batch, 2, past, size)
        inputs = {"query": r(batch, new, 4 * size), "key": r(batch, new, 2 * size), "value": r(batch, new, 2 * size), **caches, "rows": rows, "columns": columns,
                  "total": s(past + new, i32), "lengths": np.array(lengths, i32)}
        if rotary:
            t = np.outer(np.arange(64), 0.5 ** np.arange(8))
            inputs |= {"cos": np.cos(t).astype(f32), "sin": np.sin(t).astype(f32)}
        yield Case(f"sparse_{name}", "SparseAttention", inputs, outputs=3, num_heads=4, kv_num_heads=2, sparse_block_size=16, do_rotary=int(rotary),
                   constants=["rows", "columns"], fixed=True, atol=1e-5, tied={"y1": "past_key", "y2": "past_value"})
    one = {"query": r(2, 1, 16), "key": r(2, 1, 16), "value": r(2, 1, 16)}
    past = {"mask": None, "added": None, "past_key": r(2, 2, 4, 8), "past_value": r(2, 2, 4, 8)}
    # without a shared buffer onnxruntime has only MultiHeadAttention, which is the same then
    for name, more, bias in (("", {}, None), ("_bias", {"scale": 0.3}, r(48)), ("_mask", {}, None)):
        mask = np.array([[1, 1, 1, 1, 1], [0, 1, 1, 0, 1]], i32) if name == "_mask" else None
        same = Case("same", "MultiHeadAttention", {**one, "bias": bias, **past, "mask": mask}, outputs=3, num_heads=2, **more).answers()
        yield Case(f"dmmha{name}", "DecoderMaskedMultiHeadAttention", {**one, **past, "mask": mask, "length": None, "beams": None, "from": None, "bias": bias}, outputs=3,
                   num_heads=2, expected=same, **more)
    yield Case("dmmha_cross", "DecoderMaskedMultiHeadAttention", {"query": r(2, 1, 16), "key": r(2, 2, 5, 8), "value": r(2, 2, 5, 8)}, num_heads=2)
    room = {n: np.concatenate([past[n], r(2, 2, 5, 8)], 2) for n in ("past_key", "past_value")}
    same = Case("same", "MultiHeadAttention", {**one, "bias": None, **past}, outputs=3, num_heads=2).answers()[:1]
    yield Case("dmmha_shared", "DecoderMaskedMultiHeadAttention", {**one, **past, **room, "length": np.array([4], i32)}, outputs=["y"], num_heads=2,
               past_present_share_buffer=1, expected=same)
    # two lines of three beams, whose keys so far come from each other; onnxruntime wants the buffers back
    steps = {n: r(6, 1, 16) for n in ("query", "key", "value")}
    for done in (1, 4):
        where = np.zeros((2, 3, 7), i32)
        where[:, :, :done] = rng.integers(0, 3, (2, 3, done))
        room = {n: r(6, 2, 7, 8) for n in ("past_key", "past_value")}
        yield Case(f"dmmha_beams_{done}", "DecoderMaskedMultiHeadAttention", {**steps, "mask": None, "added": None, **room, "length": np.array([done], i32),
                   "beams": np.array([3], i32), "where": where}, outputs=3, num_heads=2, past_present_share_buffer=1, tied={"y1": "past_key", "y2": "past_value"})
    yield Case("dmmha_scores_shared", "DecoderMaskedMultiHeadAttention", {**one, "mask": None, "added": None, "past_key": r(2, 2, 7, 8), "past_value": r(2, 2, 7, 8),
               "length": np.array([4], i32), "beams": np.array([1], i32), "where": np.zeros((2, 1, 7), i32)}, outputs=["y", "pk", "pv", "qk"], num_heads=2, output_qk=1,
               past_present_share_buffer=1, declared=f32, tied={"pk": "past_key", "pv": "past_value"})
    yield Case("dmmha_scores", "DecoderMaskedMultiHeadAttention", {"query": r(2, 1, 16), "key": r(2, 2, 5, 8), "value": r(2, 2, 5, 8)}, outputs=["y", "", "", "qk"],
               num_heads=2, output_qk=1, declared=f32)
    # onnxruntime's CPU keeps no window of states: what it says of each beginning is one of them
    def windows(op, names, axis, length, window, inputs, **attributes):
        def upto(n):
            part = {k: v[(slice(None),) * axis + (slice(n),)] if k in names else v[-1] if k == "past" and v is not None else v for k, v in inputs.items()}
            return Case("upto", op, part, outputs=2, **attributes).answers()
        y, state = upto(length)
        states = [upto(length - window + 1 + j)[1] if length - window + 1 + j > 0 else 0 * state for j in range(window)]
        return dict(op=op, inputs=inputs, outputs=2, state_window=window, expected=[y, np.stack(states)], **attributes)

    for tokens, window in ((5, 3), (1, 2), (2, 4)):
        for name, past in (("", None), ("_past", r(window, 2, 2, 8, 8))):
            new = {"query": r(2, tokens, 16), "key": r(2, tokens, 16, scale=0.3), "value": r(2, tokens, 16), "past": past,
                   "decay": -(r(2, tokens, 2) ** 2), "beta": 1 / (1 + np.exp(-r(2, tokens, 2)))}
            yield Case(f"linear_window_{tokens}{name}", **windows("LinearAttention", ("query", "key", "value", "decay", "beta"), 1, tokens, window, new,
                                                                  q_num_heads=2, kv_num_heads=2))
    for window in (0, 2, 7):
        for dilation in (1, 2):
            for last in (0, 1):
                size = 2 * dilation
                x, kept = (r(2, 6, 2, 2), (2, size, 2, 2)) if last else (r(2, 4, 6), (2, 4, size))
                for name, past in (("", None), ("_past", r(*((window,) if window else ()), *kept))):
                    new = {"x": x, "w": r(4, 1, 3), "b": r(4), "past": past}
                    how = {"activation": "silu" if past is None else "none", "dilation": dilation, "channels_last": last, "constants": ["w"]}
                    yield Case(f"conv_{window}{dilation}{last}{name}", **(windows("CausalConvWithState", ("x",), 1 if last else 2, 6, window, new, **how) if window else
                               dict(op="CausalConvWithState", inputs=new, outputs=2, **how)))
    # several dims, of which onnxruntime's CPU has one: the last is causal, numpy sums by its taps
    for ndim, window in ((2, 0), (2, 2), (3, 0)):
        for name, there in (("", False), ("_past", True)):
            x, w, b = r(2, 4, *(5, 6, 7)[3 - ndim :]), r(4, 1, *(1, 3, 2)[3 - ndim :]), r(4)
            length = w.shape[-1] - 1
            past = r(*((window,) if window else ()), *x.shape[:-1], 2 * length)
            before = (past[-1] if window else past) if there else np.zeros_like(past[-1] if window else past)
            line, sides = np.concatenate([before, x], -1), [(n // 2, n // 2) for n in w.shape[2:-1]]
            wide = np.pad(line, [(0, 0), (0, 0), *sides, (0, 0)])
            y = np.broadcast_to(b.reshape(1, 4, *[1] * ndim), x.shape).astype(f64)
            for tap in np.ndindex(w.shape[2:]):
                cut = tuple(slice(t, t + n) for t, n in zip(tap[:-1], x.shape[2:-1]))
                y = y + wide[(slice(None), slice(None), *cut, slice(2 * tap[-1], 2 * tap[-1] + x.shape[-1]))] * w[(slice(None), 0, *tap)].reshape(1, 4, *[1] * ndim)
            states = [line[..., x.shape[-1] - window + 1 + j :][..., : 2 * length] for j in range(window)]
            yield Case(f"conv_{ndim}d_{window}{name}", "CausalConvWithState", {"x": x, "w": w, "b": b, "past": past if there else None}, outputs=2, ndim=ndim, dilation=2,
                       state_window=window, activation="silu", constants=["w"], expected=[(y / (1 + np.exp(-y))).astype(f32), np.stack(states) if window else line[..., -2 * length :]])
    for rule, more in (("linear", {}), ("gated_delta", {"decay": -(r(2, 3, 2) ** 2), "beta": 1 / (1 + np.exp(-r(2, 3, 2)))})):
        yield Case(f"linear_{rule}", "LinearAttention", {"query": r(2, 3, 16), "key": r(2, 3, 16, scale=0.3), "value": r(2, 3, 16), "past": r(2, 2, 8, 8), **more}, outputs=2,
                   q_num_heads=2, kv_num_heads=2, update_rule=rule)
    yield Case("causal_conv", "CausalConvWithState", {"x": r(2, 4, 6), "w": r(4, 1, 3), "b": r(4), "past": r(2, 4, 2)}, outputs=2, activation="silu")

    # sequences of 2 and 3 tokens of at most 4; numpy says what comes out
    lengths, width, heads = [2, 3], 16, 2
    offsets = np.array([[0, 1, 4, 5], [6, 2, 3, 7]], i32)
    sums = np.array([0, 2, 5], i32)
    qkv = [r(5, width) for _ in range(3)]
    added = r(1, heads, 4, 4)

    def packed(parts, bias=None):
        y = np.zeros((5, width))
        for begin, length in zip(sums, lengths):
            rows = slice(begin, begin + length)
            for h in range(heads):
                cut = slice(h * 8, h * 8 + 8)
                scores = parts[0][rows, cut].astype(f64) @ parts[1][rows, cut].T / 8**0.5 + (bias[0, h, :length, :length] if bias is not None else 0)
                e = np.exp(scores - scores.max(-1, keepdims=True))
                y[rows, cut] = e / e.sum(-1, keepdims=True) @ parts[2][rows, cut]
        return [y.astype(f32)]
    bias = r(3 * width)
    parts = dict(zip(("query", "key", "value"), qkv))
    biased = [p + b for p, b in zip(qkv, np.split(bias, 3))]
    yield Case("packed_mha", "PackedMultiHeadAttention", {**parts, "bias": None, "at": offsets, "sums": sums}, num_heads=heads, expected=packed(qkv))
    yield Case("packed_mha_bias", "PackedMultiHeadAttention", {**parts, "bias": bias, "at": offsets, "sums": sums, "added": added}, num_heads=heads, expected=packed(biased, added))
    together = np.stack([p.reshape(5, heads, 8) for p in qkv], 2)
    yield Case("packed_mha_packed", "PackedMultiHeadAttention", {"query": together, "key": None, "value": None, "bias": None, "at": offsets, "sums": sums}, num_heads=heads,
               expected=packed(qkv))
    x, w = r(5, 12), r(12, 48, scale=0.3)
    yield Case("packed_attention", "PackedAttention", {"input": x, "weights": w, "bias": bias, "at": offsets, "sums": sums}, num_heads=heads,
               expected=packed(np.split(x @ w + bias, 3, -1)))
    # keys in pages of 4: sequences of 2 and 3 new tokens behind 3 and 0
    pages, table, olds = [r(6, 4, 2, 8) for _ in range(2)], np.array([[1, 4], [3, 0]], i32), [3, 0]
    fresh = [r(5, n * 8) for n in (4, 2, 2)]
    kept, want = [p.copy() for p in pages], np.zeros((5, 32))
    for line, (begin, length, old) in enumerate(zip(sums, lengths, olds)):
        for j in range(length):
            for cache, new in zip(kept, fresh[1:]):
                cache[table[line, (old + j) // 4], (old + j) % 4] = new[begin + j].reshape(2, 8)
        keys, values = (c[table[line]].reshape(8, 2, 8).astype(f64) for c in kept)
        for j in range(length):
            for h in range(4):
                scores = keys[: old + j + 1, h // 2] @ fresh[0][begin + j, h * 8 : h * 8 + 8] / 8**0.5
                e = np.exp(scores)
                want[begin + j, h * 8 : h * 8 + 8] = e / e.sum() @ values[: old + j + 1, h // 2]
    yield Case("paged", "PagedAttention", {**dict(zip(("query", "key", "value"), fresh)), "key_cache": pages[0], "value_cache": pages[1], "sums": sums,
               "past": np.array(olds, i32), "table": table}, outputs=3, num_heads=4, kv_num_heads=2, expected=[want.astype(f32), *kept])
    yield from paged()
    full = np.zeros((8, 6), f32)
    full[offsets.ravel()[:5]] = tokens = r(5, 6)
    yield Case("restore_padding", "RestorePadding", {"x": tokens, "at": offsets}, expected=[full.reshape(2, 4, 6)])
    yield Case("remove_padding", "RemovePadding", {"x": full.reshape(2, 4, 6), "counts": np.array(lengths, i32)}, outputs=4,
               expected=[tokens, np.array([[0, 1, 4, 5], [6, 2, 3, 7]], i32), sums, np.array([3], i32)])

    # T5's buckets, as its authors write them
    def bucket(way, both, buckets, most):
        first = 0
        if both:
            buckets //= 2
            first, way = (buckets if way > 0 else 0), abs(way)
        else:
            way = max(-way, 0)
        exact = buckets // 2
        if way < exact:
            return first + way
        return first + min(exact + int(math.log(way / exact) / math.log(most / exact) * (buckets - exact)), buckets - 1)
    table = r(32, 4)
    for both, rows in ((1, 50), (0, 50)):
        want = np.array([[table[bucket(k - n, both, 32, 20)] for k in range(rows)] for n in range(rows)]).transpose(2, 0, 1)[None]
        yield Case(f"position_bias_{both}", "RelativePositionBias", {"table": table, "q": s(rows, i64), "k": s(rows, i64)}, is_bidirectional=both, max_distance=20,
                   expected=[want], fixed=True)
    x, xb, place, w, b, eco = r(2, 3, 16), r(16), r(1, 2, 3, 3), r(8, 4), r(4), r(1, 2, 1, 1)
    heads_of = (x + xb).reshape(2, 3, 2, 8).transpose(0, 2, 1, 3)
    gates = 1 / (1 + np.exp(-(heads_of @ w + b).reshape(2, 2, 3, 2, 2).sum(-1)))
    yield Case("gated_bias", "GatedRelativePositionBias", {"x": x, "xb": xb, "place": place, "w": w, "b": b, "eco": eco}, num_heads=2,
               expected=[((gates[..., :1] * (gates[..., 1:] * eco - 1) + 2) * place).astype(f32)])
    grid = np.array([[0, 1, 3], [4, 2, 5]], i32)  # sequences of 2 and 2 tokens; what is padding has no query
    tokens = r(4, 16)
    spread = np.zeros((6, 16), f32)
    spread[grid.ravel()[:4]] = tokens
    heads_of = (spread.reshape(2, 3, 16) + xb).reshape(2, 3, 2, 8).transpose(0, 2, 1, 3)
    gates = 1 / (1 + np.exp(-(heads_of @ w + b).reshape(2, 2, 3, 2, 2).sum(-1)))
    yield Case("gated_bias_packed", "GatedRelativePositionBias", {"x": tokens, "xb": xb, "place": place, "w": w, "b": b, "eco": eco, "at": grid}, num_heads=2,
               expected=[((gates[..., :1] * (gates[..., 1:] * eco - 1) + 2) * place).astype(f32)])
    angle, parts = r(2, 3, 8), [r(2, 2, 3, 8, t=f16) for _ in range(4)]
    c, n = np.cos(angle)[:, None], np.sin(angle)[:, None]
    yield Case("gemma_rotary", "GemmaRotaryEmbedding", {"angle": angle, **dict(zip("abcd", parts))}, outputs=2,
               expected=[(parts[0] * c + parts[1] * n).astype(f16), (parts[2] * c + parts[3] * n).astype(f16)])


def paged():
    """PagedAttention's forms, which onnxruntime has on CUDA alone, as its schema says them: three heads that share keys of two."""
    sums, table, olds, heads, size = np.array([0, 2, 5], i32), np.array([[1, 4], [3, 0]], i32), [3, 0], 4, 8

    def cached(x, bits, step):
        """What a cache keeps of x, [.., heads of keys, elements], and what is read from it."""
        if not bits:
            return x, x
        whole = np.clip(np.rint(x / step), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if bits == 8:
            return whole.astype(i8), (whole * step).astype(f32)
        codes = (whole + 8).astype(u8)
        return codes[..., ::2] | codes[..., 1::2] << 4, (whole * step).astype(f32)

    def case(name, groups=2, latent=0, offset=0, rotary=0, norms=False, sinks=False, slots=None, bits=0, by="NONE", **more):
        fresh = [r(5, n * size) for n in (heads, groups, groups)]
        qn, kn, sink = (r(size) if norms else None, r(size) if norms else None, r(heads) if sinks else None)
        step = [r(groups, 1, size) ** 2 * 0.1 + 0.3 if by == "PER_CHANNEL" else np.array([0.4], f32) for _ in range(2)]
        each = [p.reshape(-1, size) if p.ndim == 3 else p for p in step]
        angles = np.outer(np.arange(8), 0.5 ** np.arange(rotary // 2))
        made = []
        for x, weight in zip(fresh, (qn, kn, None)):
            x = x.reshape(5, -1, size).astype(f64)
            if weight is not None:
                x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * weight
            made.append(x)
        where = np.concatenate([olds[n] + np.arange(sums[n + 1] - sums[n]) for n in (0, 1)])
        for x in made[:2] if rotary else []:
            a, b = x[..., offset : offset + rotary // 2].copy(), x[..., offset + rotary // 2 : offset + rotary].copy()
            c, n = np.cos(angles)[where][:, None], np.sin(angles)[where][:, None]
            x[..., offset : offset + rotary // 2], x[..., offset + rotary // 2 : offset + rotary] = a * c - b * n, b * c + a * n
        q_, *new = (x.astype(f32) for x in made)
        caches, real = zip(*(cached(r(6, 4, groups, size), bits, p) for p in each))
        caches, real = [c.copy() for c in caches], [c.copy() for c in real]
        goes = [int(table[n, (olds[n] + j) // 4]) * 4 + (olds[n] + j) % 4 for n in (0, 1) for j in range(sums[n + 1] - sums[n])] if slots is None else slots
        before = [c.copy() for c in caches]
        for cache, value, x, p in zip(caches, real, new, each):
            for token, slot in enumerate(goes):
                if slot >= 0:
                    kept, told = cached(x[token], bits, p)
                    cache.reshape(24, groups, -1)[slot], value.reshape(24, groups, -1)[slot] = kept, told
        wide = latent or size
        want = np.zeros((5, heads, wide))
        for line in (0, 1):
            keys, values = (c[table[line]].reshape(8, groups, size).astype(f64) for c in (real if not latent else real[:1] * 2))
            for token in range(sums[line], sums[line + 1]):
                n = where[token] + 1
                for h in range(heads):
                    scores = keys[:n, h * groups // heads] @ q_[token, h] * more.get("scale", size**-0.5)
                    top = max(scores.max(), sink[h] if sinks else -np.inf)
                    e = np.exp(scores - top)
                    want[token, h] = e / (e.sum() + (np.exp(sink[h] - top) if sinks else 0)) @ values[:n, h * groups // heads, :wide]
        inputs = {"query": fresh[0], "key": fresh[1], "value": None if latent else fresh[2], "key_cache": before[0], "value_cache": None if latent else before[1], "sums": sums,
                  "past": np.array(olds, i32), "table": table, "cos": np.cos(angles).astype(f32) if rotary else None, "sin": np.sin(angles).astype(f32) if rotary else None,
                  "slots": None if slots is None else np.array(slots, i32), "sink": sink, "qn": qn, "kn": kn, "ks": step[0] if bits else None,
                  "vs": step[1] if bits and not latent else None, "bounds": np.array([3, 8], i32)}  # fmt: skip
        kinds = {"k_quant_type": by} | ({} if latent else {"v_quant_type": by}) if bits else {}
        return Case(f"paged_{name}", "PagedAttention", inputs, outputs=2 if latent else 3, num_heads=heads, kv_num_heads=groups, fixed=bool(rotary), rtol=1e-3,
                    atol=1e-5, expected=[want.reshape(5, -1).astype(f32), *caches[: 1 if latent else 2]], do_rotary=int(rotary > 0), rotary_offset=offset, **kinds,
                    **({"kv_cache_layout": "LATENT", "v_head_size": latent} if latent else {}), **more)  # fmt: skip

    yield case("bounds")
    yield case("slots", slots=[7, -1, 12, 13, -1])
    yield case("sink", sinks=True)
    yield case("norms", norms=True)
    yield case("rotary_norms", norms=True, rotary=8)
    yield case("offset", rotary=4, offset=2)
    yield case("latent", groups=1, latent=6, rotary=4, offset=4, scale=0.3)
    yield case("latent_sink", groups=1, latent=8, sinks=True, slots=[7, 16, 12, 13, 14])
    for bits in (8, 4):
        for by in ("PER_TENSOR", "PER_CHANNEL"):
            yield case(f"i{bits}_{by}", bits=bits, by=by)
    yield case("i8_slots", bits=8, by="PER_TENSOR", slots=[7, -1, 12, 13, -1], norms=True, rotary=8)


def quantized():
    for t in (u8, i8):
        n, z = t.__name__, (lambda v, t=t: s(v if t == u8 else v - 128, t))
        ab = {"A": q(2, 3, t=t), "As": s(0.03), "Az": z(120), "B": q(3, t=t), "Bs": s(0.02), "Bz": z(100), "Cs": s(0.05), "Cz": z(110)}
        yield Case(f"qadd_{n}", "QLinearAdd", ab, atol=1)
        yield Case(f"qmul_{n}", "QLinearMul", ab, atol=1)
        x = {"X": q(2, 3, 4, 4, t=t), "Xs": s(0.03), "Xz": z(120), "Ys": s(0.02), "Yz": z(10)}
        yield Case(f"qsigmoid_{n}", "QLinearSigmoid", {**x, "Ys": s(1 / 256), "Yz": z(0)}, atol=1)
        yield Case(f"qleaky_{n}", "QLinearLeakyRelu", x, alpha=0.2, atol=1)
        yield Case(f"qaverage_{n}", "QLinearAveragePool", x, kernel_shape=[2, 2], strides=[2, 2], atol=1)
        yield Case(f"qaverage_last_{n}", "QLinearAveragePool", x, kernel_shape=[2, 2], pads=[1, 0, 0, 1], channels_last=1, count_include_pad=1, atol=1)
        yield Case(f"qglobal_{n}", "QLinearGlobalAveragePool", x, atol=1)
        yield Case(f"qglobal_last_{n}", "QLinearGlobalAveragePool", x, channels_last=1, atol=1)
        for opset, axis in ((13, 1), (13, -1), (12, 1)):
            yield Case(f"qsoftmax_{n}_{opset}_{axis}", "QLinearSoftmax", {**x, "Ys": s(1 / 256), "Yz": z(0)}, axis=axis, opset=opset, atol=1,
                       constants=["Xs", "Xz", "Ys", "Yz"])
        yield Case(f"qconcat_{n}", "QLinearConcat", {"Ys": s(0.04), "Yz": z(100), "a": q(2, 3, t=t), "as": s(0.03), "az": z(120), "b": q(2, 2, t=t),
                   "bs": s(0.05), "bz": z(90)}, axis=1, atol=1, constants=["Ys", "Yz", "as", "az", "bs", "bz"])
        yield Case(f"qwhere_{n}", "QLinearWhere", {"c": rng.integers(0, 2, (2, 3)).astype(bool), "X": q(2, 3, t=t), "Xs": s(0.03), "Xz": z(120),
                   "Y": q(3, t=t), "Ys": s(0.02), "Yz": z(100), "Zs": s(0.05), "Zz": z(110)}, atol=1)
        yield Case(f"dynamic_{n}", "DynamicQuantizeMatMul", {"A": r(3, 8), "B": q(8, 4, t=t), "s": r(4) ** 2, "z": q(4, t=t), "bias": r(4)}, rtol=1e-3,
                   atol=1e-3, constants=["B", "s", "z"])
        yield Case(f"dynamic_plain_{n}", "DynamicQuantizeMatMul", {"A": r(2, 3, 8), "B": q(8, 4, t=t), "s": s(0.01)}, rtol=1e-3, atol=1e-3, constants=["B"])
        yield Case(f"to_float_{n}", "MatMulIntegerToFloat", {"A": q(3, 8), "B": q(8, 4, t=t), "as": s(0.02), "bs": r(4) ** 2, "az": s(100, u8),
                   "bz": q(4, t=t), "bias": r(4)}, rtol=1e-3, atol=1e-3)
        yield Case(f"qgemm_{n}", "QGemm", {"A": q(3, 8, t=t), "as": s(0.02), "az": z(120), "B": q(4, 8, t=t), "bs": s(0.01), "bz": z(100),
                   "C": rng.integers(-99, 99, 4).astype(i32)}, transB=1, alpha=0.5, rtol=1e-3, atol=1e-3)
        yield Case(f"qgemm_quantized_{n}", "QGemm", {"A": q(8, 3, t=t), "as": s(0.02), "az": z(120), "B": q(8, 4, t=t), "bs": s(0.01), "bz": z(100),
                   "C": None, "ys": s(0.1), "yz": z(120)}, transA=1, atol=1)
        yield Case(f"quantize_{n}", "QuantizeLinear", {"x": r(2, 3), "s": s(0.02), "z": z(120)}, atol=1)
        yield Case(f"dequantize_{n}", "DequantizeLinear", {"x": q(2, 3, t=t), "s": r(3) ** 2, "z": q(3, t=t)}, axis=1)
    yield Case("quantize_16", "QuantizeLinear", {"x": r(2, 3), "s": s(0.0001), "z": s(32000, np.uint16)}, atol=1)


    table = {"ids": np.array([[3, 1], [0, 8]], i32), "kinds": np.array([[0, 1], [1, 1]], i32), "words": q(9, 8), "places": q(4, 8), "rows": q(2, 8),
             "gamma": q(8), "beta": q(8), "mask": np.array([[1, 1], [1, 0]], i32)}
    table |= {f"s{i}": s(0.01 * (i + 1)) for i in range(5)} | {f"z{i}": s(100 + i, u8) for i in range(5)}
    yield Case("qembed", "QEmbedLayerNormalization", table, outputs=2, constants=[n for n in table if n not in ("ids", "kinds", "mask")])
    conv = {"x": q(1, 5, 6, 2), "xs": s(0.02), "xz": s(120, u8), "w": q(3, 2, 3, 3), "ws": s(0.01), "wz": s(100, u8), "ys": s(0.1), "yz": s(110, u8),
            "B": rng.integers(-99, 99, 3).astype(i32)}
    yield Case("qconv_last", "QLinearConv", conv, channels_last=1, pads=[1, 1, 1, 1], atol=1, constants=["w", "ws", "wz"])
    yield Case("qconv", "QLinearConv", {**conv, "x": q(1, 2, 5, 6)}, atol=1, constants=["w", "ws", "wz"])
    yield Case("integer16", "MatMulInteger16", {"A": rng.integers(-999, 999, (2, 3)).astype(np.int16), "B": rng.integers(-999, 999, (3, 4)).astype(np.int16)})


    a, b = q(2, 3), q(3)
    yield Case("mul_integer", "MulInteger", {"A": a, "az": s(7, u8), "B": b, "bz": s(3, u8)}, expected=[(a.astype(i32) - 7) * (b.astype(i32) - 3)])
    x = q(2, 3, 4)
    yield Case("sum_integer", "ReduceSumInteger", {"x": x}, axes=[1], keepdims=0, expected=[x.sum(1).astype(i32)])
    real = (x.astype(f64) - 120) * 0.03
    yield Case("qmean", "QLinearReduceMean", {"x": x, "xs": s(0.03), "xz": s(120, u8), "ys": s(0.02), "yz": s(100, u8)}, axes=[1, 2], keepdims=1, atol=1,
               expected=[np.clip(np.round(real.mean((1, 2), keepdims=True) / 0.02) + 100, 0, 255).astype(u8)])
    # onnxruntime rounds X and the states to 8 bits, too
    for name, more, channels in (("forward", {}, False), ("both", {"direction": "bidirectional"}, True)):
        n, hidden, size = 1 + ("direction" in more), 8, 6
        shape = (n, 4 * hidden) if channels else (n,)
        lstm = {"X": r(4, 2, size, scale=0.5), "W": q(n, size, 4 * hidden, t=i8), "R": q(n, hidden, 4 * hidden, t=i8), "B": r(n, 8 * hidden, scale=0.2), "len": None,
                "h": None, "c": None, "P": None, "Ws": np.full(shape, 0.004, f32), "Wz": np.zeros(shape, i8), "Rs": np.full(shape, 0.003, f32), "Rz": np.zeros(shape, i8)}
        yield Case(f"lstm_{name}", "DynamicQuantizeLSTM", lstm, outputs=3, hidden_size=hidden, **more, rtol=5e-2, atol=1e-2, fixed=True,
                   constants=["W", "R", "Ws", "Wz", "Rs", "Rz"])


def weights():
    def blocks(k, n, bits, block, t=f32, zeros=None, constant=True, bias=False, **more):
        count = -(-k // block)
        inputs = {"A": r(2, 3, k, t=t), "B": q(n, count, block * bits // 8), "steps": (r(n * count) ** 2 * 0.1 * 2.0 ** (4 - bits)).astype(t)}
        inputs["zeros"] = q(n * (-(-count * bits // 8))) if zeros == u8 else r(n * count, scale=4).astype(t) + t(2 ** (bits - 1)) if zeros else None
        inputs["g_idx"], inputs["bias"] = None, r(n, t=t) if bias else None
        return dict(op="MatMulNBits", inputs=inputs, K=k, N=n, bits=bits, block_size=block, rtol=2e-3, atol=2e-4, **more,
                    constants=[c for c in ("B", "steps", "zeros") if inputs[c] is not None] if constant else [])
    for bits in (4, 8):
        yield Case(f"nbits_{bits}", **blocks(32, 6, bits, 16))
        yield Case(f"nbits_{bits}_odd", **blocks(40, 5, bits, 16, zeros=u8, bias=True))
        yield Case(f"nbits_{bits}_half", **blocks(32, 6, bits, 32, t=f16, zeros=u8))
        yield Case(f"nbits_{bits}_late", **blocks(40, 5, bits, 16, zeros=u8, constant=False))
    # Both round A to bytes, block by block; ref does not.
    yield Case("nbits_4_rounded", **blocks(256, 48, 4, 32, accuracy_level=4, providers=("cpu",)))
    yield Case("nbits_4_rounded_zeros", **blocks(256, 48, 4, 64, zeros=u8, accuracy_level=4, providers=("cpu",)))
    for bits, zeros in ((4, u8), (4, None)):
        case = blocks(64, 6, bits, 16, zeros=zeros)
        case["inputs"]["g_idx"] = (np.arange(64) % 4).astype(i32)
        case["constants"] += ["g_idx"]
        if zeros: # onnxruntime 1.31.1 takes the middle for zero points where there is a g_idx
            given, group = case["inputs"], case["inputs"]["g_idx"]
            codes, points = (np.stack([given[n] & 15, given[n] >> 4], -1).reshape(6, -1).astype(f64) for n in ("B", "zeros"))
            w = (codes - points[:, group]) * given["steps"].reshape(6, -1)[:, group]
            case["expected"] = [(given["A"] @ w.T).astype(f32)]
        yield Case(f"nbits_grouped_{zeros is not None}", **case)
    yield Case("nbits_4_real", **blocks(48, 5, 4, 16, zeros=f32))
    yield Case("nbits_2", **blocks(64, 6, 2, 16, zeros=u8))
    for kind in (0, 1):
        yield Case(f"bnb4_{kind}", "MatMulBnb4", {"A": r(3, 40), "B": q(100), "absmax": r(13) ** 2}, K=40, N=5, block_size=16, quant_type=kind,
                   constants=["B", "absmax"])
    for kind, k in ((0, 64), (1, 64), (1, 40)):
        blocks_of_k = -(-k // 32)
        blob = np.concatenate([np.concatenate([(r(1) ** 2).astype(f32).view(u8), rng.integers(0, 16, kind).astype(u8), q(16)]) for _ in range(5 * blocks_of_k)])
        yield Case(f"fpq4_{kind}_{k}", "MatMulFpQ4", {"A": r(3, k), "B": blob, "shape": np.array([k, 5], i64)}, constants=["B", "shape"], blk_quant_type=kind,
                   rtol=1e-4, atol=1e-5)
    ids = np.array([[3, 0], [4, 4]], i64)
    for zeros in (None, q(5, 2)):
        yield Case(f"gather_bytes_{zeros is not None}", "GatherBlockQuantized", {"data": q(5, 32), "ids": ids, "steps": r(5, 4) ** 2, "zeros": zeros},
                   constants=["data", "steps"] + (["zeros"] if zeros is not None else []), block_size=16, bits=4, quantize_axis=1, gather_axis=0)


    for t, name in ((TensorProto.UINT4, "u4"), (TensorProto.INT4, "i4")):
        low = 0 if name == "u4" else -8
        data, zeros = rng.integers(low, low + 16, (5, 32)), rng.integers(low, low + 16, (5, 2))
        steps = r(5, 2) ** 2
        case = Case(f"gather_{name}", "GatherBlockQuantized", {"data": data, "ids": ids, "steps": steps, "zeros": zeros}, block_size=16, bits=4,
                    constants=["steps"], expected=[(np.repeat(steps, 16, 1) * (data - np.repeat(zeros, 16, 1)))[ids].astype(f32)])
        case.feeds = {"ids": ids}
        case.weights += [helper.make_tensor(n, t, a.shape, a.ravel()) for n, a in (("data", data), ("zeros", zeros))]
        yield case


def kept() -> None:
    """MatMulNBits stays where a provider has a kernel for it, and is its composition elsewhere: on ref, for a provider that was
    named earlier and has products (sim), and in what `ortc optimize` writes."""
    def made(bits: int) -> bytes:
        node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=64, N=8, bits=bits, block_size=32)
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8])],
                                  [numpy_helper.from_array(q(8, 2, 4 * bits), "w"), numpy_helper.from_array(r(16), "s")])  # fmt: skip
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()

    def placed(file: str, *args: str) -> str:
        lines = command("info", file, "--placement", *args).splitlines()
        return " ".join(word for line in lines for word in line.split() if word.split("-")[0] in ("com.microsoft.MatMulNBits", "MatMul") or "." in word)

    def expect(text: str, has: str, lacks: str) -> str:
        return "" if has in text and lacks not in text else f"it says {text}"

    with tempfile.TemporaryDirectory() as folder:
        file, two, plain, raised = (f"{folder}/{name}.onnx" for name in ("m", "two", "plain", "raised"))
        Path(file).write_bytes(made(4))
        Path(two).write_bytes(made(2))
        check("composed where no kernel takes it", lambda: expect(placed(two, "--provider", "cpu"), "gemm.packed", "MatMulNBits-1"))
        check("kept on cpu", lambda: expect(placed(file, "--provider", "cpu"), "gemm.nbits", "dequantize"))
        check("composed on ref", lambda: expect(placed(file, "--provider", "ref"), "matmul.ref", "MatMulNBits-1"))
        if len(sys.argv) > 2:
            sim = ("--plugin", sys.argv[2], "--provider", "sim,cpu")
            check("composed where an earlier provider has products", lambda: expect(placed(file, *sim), "matmul", "MatMulNBits-1"))
        check("written as standard ONNX", lambda: command("optimize", file, "--out", plain) and expect(placed(plain), "MatMul-13", "MatMulNBits-1"))
        check("written as it is", lambda: command("optimize", "--raised", file, "--out", raised) and expect(placed(raised), "gemm.nbits", "MatMul-13"))


def chosen() -> None:
    """MoE multiplies what was chosen: on the cpu by a kernel, whose bits threads do not change; elsewhere by its composition."""
    inputs, outs = {"x": [9, 64], "p": [9, 8]}, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    shapes = {"w1": (8, 96, 64), "b1": (8, 96), "w2": (8, 64, 96), "b2": (8, 64)}
    weights = [numpy_helper.from_array(r(*s, scale=0.1), n) for n, s in shapes.items()]
    node = helper.make_node("MoE", ["x", "p", *shapes], ["y"], domain="com.microsoft", k=2, activation_type="silu")
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in inputs.items()]
    model = helper.make_model(helper.make_graph([node], "g", infos, outs, weights), opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with tempfile.TemporaryDirectory() as folder:
        Path(f"{folder}/m.onnx").write_bytes(model.SerializeToString())
        check("MoE on cpu", lambda: "" if "gemm.experts" in command("info", f"{folder}/m.onnx", "--placement", "--provider", "cpu") else "another kernel")
        check("MoE on ref", lambda: "" if "MatMul" in command("info", f"{folder}/m.onnx", "--placement", "--provider", "ref") else "not its composition")

        def result(count: int) -> bytes:
            command("run", f"{folder}/m.onnx", "-q", "-t", str(count), "-i", "x=rand:normal(0,1)", "-i", "p=rand:normal(0,1)", "--out", f"{folder}/y.npy")
            return np.load(f"{folder}/y.npy").tobytes()

        check("MoE on threads", lambda: "" if result(1) == result(3) else "other bits")


def blocked() -> None:
    """What onnxruntime's optimiser saves at its highest level for this processor, and no import of its domain, as its tools leave it."""
    import onnxruntime

    def conv(name: str, i: int, o: int, k: int = 3, **more):
        group = more.get("group", 1)
        weights.extend([numpy_helper.from_array(r(o, i // group, k, k, scale=(i // group * k * k) ** -0.5), f"w_{name}"), numpy_helper.from_array(r(o), f"b_{name}")])
        return [f"w_{name}", f"b_{name}"], dict(kernel_shape=[k, k], pads=[k // 2] * 4, **more)

    weights, nodes = [], []

    def put(op: str, *inputs: str, **attributes) -> str:
        nodes.append(helper.make_node(op, inputs, [f"v{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def convolved(x: str, *dims, **more) -> str:
        names, attributes = conv(f"c{len(nodes)}", *dims, **more)
        return put("Conv", x, *names, **attributes)

    x = put("Relu", convolved("x", 3, 24, strides=[2, 2]))  # planes in, blocks out
    y = put("HardSigmoid", convolved(x, 24, 24, group=24), alpha=0.3)
    a = put("MaxPool", convolved(y, 24, 32, 1), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    b = put("AveragePool", convolved(x, 24, 32), kernel_shape=[2, 2], strides=[2, 2], count_include_pad=1)
    c = put("Clip", put("Add", put("Concat", a, b, axis=1), convolved(a, 32, 64, 1)))
    weights.append(numpy_helper.from_array(np.array([1, 1, 2, 2], f32), "twice"))
    d = put("Resize", c, "", "twice", mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    e = put("Resize", convolved(d, 64, 48), "", "twice", mode="linear", coordinate_transformation_mode="half_pixel")
    outs = [put("GlobalAveragePool", convolved(e, 48, 48)), put("GlobalMaxPool", convolved(d, 64, 64, group=2)), d, e]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outs]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 20])], infos, weights)
    before = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.optimized_model_filepath = 4, f"{folder}/m.onnx"
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        onnxruntime.InferenceSession(before.SerializeToString(), options, providers=["CPUExecutionProvider"])
        after = helper.onnx.load(f"{folder}/m.onnx")
        del after.opset_import[:]
        after.opset_import.append(helper.make_opsetid("", 17))
        helper.onnx.save(after, f"{folder}/m.onnx")
        kinds = {n.op_type for n in after.graph.node if n.domain == "com.microsoft.nchwc"}
        print("in blocks:", *sorted(kinds))
        check("onnxruntime writes blocks", lambda: "" if {"Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "Upsample", "ReorderInput", "ReorderOutput"} <= kinds else f"only {kinds}")
        feed = {"x": r(1, 3, 16, 20)}
        np.savez(f"{folder}/x.npz", **feed)
        want = onnxruntime.InferenceSession(before.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feed)
        for provider in ("ref", "cpu"):

            def case() -> str:
                command("run", f"{folder}/m.onnx", "-q", "--provider", provider, "-i", f"{folder}/x.npz", "-o", f"{folder}/y.npz")
                got = np.load(f"{folder}/y.npz")
                return "".join(f"{n} differs by {np.abs(got[n] - w).max()}" for n, w in zip(outs, want) if not np.allclose(got[n], w, rtol=1e-4, atol=1e-4))

            check(f"blocks on {provider}", case)


def rounded() -> None:
    """MatMulNBits of accuracy_level 4 on the cpu, on every instruction set: A rounded to bytes by blocks, then sums of integers, scaled. Rows around
    those of a tile, columns around a panel, blocks of one and of several parts. Rows with NaN or infinities, and blocks whose sums 32 bits may not
    hold: as without the level. More than 16 rows may be products of A and weights that are rounded to bf16, which loses less, where the machine has
    tiles for them."""
    rng = np.random.default_rng(11)

    def bf16(x: np.ndarray) -> np.ndarray:
        bits = np.ascontiguousarray(x, f32).view(np.uint32)
        return np.where(np.isfinite(x), (bits + 0x7FFF + (bits >> 16 & 1) & np.uint32(0xFFFF0000)).view(f32), x).astype(f64)

    with tempfile.TemporaryDirectory() as folder:
        for rows, k, n, bits, block, zeros, bias, t in itertools.chain(
            ((rows, 160, 70, bits, 32, None, True, f32) for bits in (4, 8) for rows in (1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 17, 95, 96, 97, 200)),
            ((rows, k, n, bits, block, zeros, False, f32) for rows in (1, 9) for bits in (4, 8) for zeros in (None, u8, f32)
             for k, n, block in ((16, 1, 16), (2100, 31, 16), (300, 33, 128), (5000, 64, 1024), (40, 5, 64))),
            ((2, 65536, 3, bits, 65536, None, False, f32) for bits in (4, 8)),
            ((rows, 300, 40, bits, 64, u8, True, f16) for bits in (4, 8) for rows in (1, 30)),
        ):
            per = -(-k // block)
            w = rng.integers(0, 1 << bits, (n, per * block))
            packed = (w[:, ::2] | w[:, 1::2] << 4 if bits == 4 else w).astype(u8).reshape(n, per, -1)
            scale = (rng.random((n, per)) * 0.02 + 0.01).astype(t)
            points = np.full((n, per), 1 << bits - 1) if zeros is None else rng.integers(0, 1 << bits, (n, per)) if zeros == u8 else rng.random((n, per)) * 9
            codes = np.pad(points, ((0, 0), (0, per % 2))).astype(int)
            given = {"w": packed, "s": scale, "z": points.astype(f32) if zeros == f32 else (codes[:, ::2] | codes[:, 1::2] << 4 if bits == 4 else points).astype(u8),
                     "g": np.zeros(0, i32), "b": rng.standard_normal(n).astype(t)}
            x = rng.standard_normal((rows, k)).astype(t)
            node = helper.make_node("MatMulNBits", ["x", "w", "s", "z" if zeros else "", "", "b" if bias else ""], ["y"], domain="com.microsoft", K=k, N=n, bits=bits,
                                    block_size=block, accuracy_level=4)
            real = helper.np_dtype_to_tensor_dtype(np.dtype(t))
            graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", real, ["rows", k])], [helper.make_tensor_value_info("y", real, ["rows", n])],
                                      [numpy_helper.from_array(given[name], name) for name in node.input[1:] if name])  # fmt: skip
            made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
            Path(f"{folder}/m.onnx").write_bytes(made.SerializeToString())
            weights = (w - points.repeat(block, 1)) * scale.astype(f64).repeat(block, 1)

            def case(x: np.ndarray, exact: bool, isa: str) -> str:
                wide = np.pad(x.astype(f32), ((0, 0), (0, per * block - k))).reshape(rows, per, block)
                most = np.abs(wide).max(2, keepdims=True)
                level = np.rint(wide * np.where(most > 0, f32(127) / np.where(most > 0, most, 1), 0).astype(f32))
                bytes_of = level.astype(f64) * (most / f32(127))
                ways = [((wide if exact else bytes_of).reshape(rows, -1).astype(f64), weights)]
                if rows > 16 and isa == "":
                    ways.append((bf16(wide.reshape(rows, -1)), bf16(weights)))
                np.save(f"{folder}/x.npy", x)
                command("run", f"{folder}/m.onnx", "-q", "--provider", "cpu", "-i", f"{folder}/x.npy", "--out", f"{folder}/y.npy", isa=isa)
                y = np.load(f"{folder}/y.npy").astype(f64)
                said = []
                for a, b in ways:
                    want = a @ b.T + (given["b"].astype(f64) if bias else 0)
                    bound = 2e-6 * (np.abs(a) @ np.abs(b.T)) + (1e-3 if t == f16 else 1e-6) * (1 + np.abs(want))
                    with np.errstate(invalid="ignore"):
                        wrong = ~(np.isfinite(want) & (np.abs(y - want) <= bound) | (y == want) | (np.isnan(y) & np.isnan(want)))
                    said.append(f"{wrong.sum()} of {wrong.size} differ, by {np.nanmax(np.abs(y - want))}" if wrong.any() else "")
                return "" if "" in said else "; ".join(said)

            for isa in ("", "avx512", "avx2", "scalar"):
                check(f"rounded: {rows} x {k} x {n}, {bits} bits, blocks of {block}, zeros {zeros and zeros.__name__}, {t.__name__}, {isa}", lambda: case(x, block > 32768, isa))
            if rows in (1, 9, 97) and t == f32:
                strange = x.copy()
                strange[0, 3], strange[-1, k - 1] = np.inf, np.nan
                check(f"rounded: {rows} x {k} x {n}, {bits} bits, with NaN", lambda: case(strange, True, ""))


def together() -> None:
    """Three products of one rounded A are one node, and each result has the bits that it has alone."""
    rng = np.random.default_rng(12)
    with tempfile.TemporaryDirectory() as folder:
        for rows in (1, 30):
            sizes = {"q": 70, "k": 33, "v": 32}
            nodes = [helper.make_node("MatMulNBits", ["x", f"{n}w", f"{n}s"], [n], domain="com.microsoft", K=256, N=size, bits=4, block_size=32, accuracy_level=4)
                     for n, size in sizes.items()]  # fmt: skip
            weights = [a for n, size in sizes.items() for a in (numpy_helper.from_array(rng.integers(0, 256, (size, 8, 16)).astype(u8), f"{n}w"),
                                                               numpy_helper.from_array(rng.random((size, 8)).astype(f32), f"{n}s"))]  # fmt: skip
            info = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT, [rows, size]) for n, size in (sizes | {"x": 256}).items()}
            imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
            np.save(f"{folder}/x.npy", rng.standard_normal((rows, 256)).astype(f32))

            def results(names: list[str], rows: int = rows) -> dict[str, np.ndarray]:
                graph = helper.make_graph([n for n in nodes if n.output[0] in names], "g", [info["x"]], [info[n] for n in names], [w for w in weights if w.name[0] in names])
                Path(f"{folder}/m.onnx").write_bytes(helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString())
                command("run", f"{folder}/m.onnx", "-q", "--provider", "cpu", "-i", f"{folder}/x.npy", "--out", f"{folder}/y.npz")
                return dict(np.load(f"{folder}/y.npz"))

            def case() -> str:
                alone = {n: results([n])[n] for n in sizes}
                all_of = results([*sizes])
                if "gemm.nbits_siblings" not in command("info", f"{folder}/m.onnx", "--provider", "cpu", "--placement"):
                    return "they are not one node"
                return "".join(f"{n} has other bits" for n in sizes if alone[n].tobytes() != all_of[n].tobytes())

            check(f"rounded together: {rows} rows", case)


def threads() -> None:
    """Attention over long keys, which are cut into parts, and products of packed weights: the same bits on any number of threads."""
    past = {"op": "GroupQueryAttention", "num_heads": 4, "kv_num_heads": 2}
    blocks = {"op": "MatMulNBits", "K": 512, "N": 300, "bits": 4, "block_size": 32}
    ends, total = np.array([[1299]], i32), s(1300, i32)
    weights = {"w": q(300, 16, 16), "s": r(4800), "z": q(2400)}
    models = {"decoding": (past, {"q": [1, 1, 128], "k": [1, 1, 64], "v": [1, 1, 64], "pk": [1, 2, 1400, 32], "pv": [1, 2, 1400, 32]},
                           {"ends": ends, "total": total}, 3),
              "prefill": (past, {"q": [1, 300, 128], "k": [1, 300, 64], "v": [1, 300, 64], "pk": [1, 2, 1400, 32], "pv": [1, 2, 1400, 32]},
                          {"ends": ends, "total": total}, 3),
              "one row": (blocks, {"x": [1, 512]}, weights, 1), "rows": (blocks, {"x": [9, 512]}, weights, 1),
              "many rows": (blocks, {"x": [70, 512]}, weights, 1), "rounded rows": (blocks | {"accuracy_level": 4}, {"x": [100, 512]}, weights, 1)}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for name, (attributes, inputs, constants, n_out) in models.items():
            outs = [f"y{i}" for i in range(n_out)]
            attributes = dict(attributes)
            node = helper.make_node(attributes.pop("op"), [*inputs, *constants], outs, domain="com.microsoft", **attributes)
            infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in inputs.items()]
            graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outs],
                                      [numpy_helper.from_array(v, n) for n, v in constants.items()])  # fmt: skip
            made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
            Path(f"{folder}/m.onnx").write_bytes(made.SerializeToString())

            def result(count: int) -> list[bytes]:
                rand = [word for n in inputs for word in ("--input", f"{n}=rand")]
                command("run", f"{folder}/m.onnx", "-q", "-t", str(count), *rand, "--out", f"{folder}/y.npz")
                return [v.tobytes() for _, v in sorted(np.load(f"{folder}/y.npz").items())]

            check(f"{name}: the same bits on threads", lambda: "" if result(1) == result(2) == result(5) else "other bits")


if __name__ == "__main__":
    kept()
    chosen()
    blocked()
    rounded()
    together()
    threads()
    sys.exit(compare(case for family in (fused, norms, experts, attention, quantized, weights, texts_and_crops) for case in family()))
