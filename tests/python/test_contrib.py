#!/usr/bin/env python3
"""com.microsoft's operators against onnxruntime: test_contrib.py ORTC [SIM].

A model of one node each, with inputs made up here (oracle.py). For what onnxruntime's CPU has no kernel numpy says what comes out.
"""

from __future__ import annotations

import math
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


def command(*args: str) -> str:
    return subprocess.run([sys.argv[1], *args], capture_output=True, text=True, timeout=60, check=True).stdout


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


def attention():
    for n, (heads, packed) in enumerate(((2, False), (4, False))):
        d = heads * 8
        k = {"query": r(2, 3, d), "key": r(2, 5, d), "value": r(2, 5, d)}
        yield Case(f"mha_{n}", "MultiHeadAttention", k, num_heads=heads)
        yield Case(f"mha_bias_{n}", "MultiHeadAttention", {**k, "bias": r(3 * d)}, num_heads=heads, scale=0.3)
        keep = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], i32)
        yield Case(f"mha_mask_{n}", "MultiHeadAttention", {**k, "bias": None, "mask": keep, "added": r(1, heads, 3, 5)}, num_heads=heads)
        yield Case(f"mha_lengths_{n}", "MultiHeadAttention", {**k, "bias": None, "mask": np.array([5, 2], i32)}, num_heads=heads, fixed=True)
        yield Case(f"mha_pairs_{n}", "MultiHeadAttention", {**k, "bias": None, "mask": rng.integers(0, 2, (2, 3, 5)).astype(i32) | np.eye(3, 5, dtype=i32)},
                   num_heads=heads)
        c = {"query": r(2, 3, d), "key": r(2, 3, d), "value": r(2, 3, d)}
        yield Case(f"mha_causal_{n}", "MultiHeadAttention", c, num_heads=heads, unidirectional=1)
        yield Case(f"mha_past_{n}", "MultiHeadAttention", {**c, "bias": r(3 * d), "mask": None, "added": None, "past_key": r(2, heads, 4, 8),
                                                           "past_value": r(2, heads, 4, 8)}, outputs=3, num_heads=heads, unidirectional=n)
    yield Case("mha_half", "MultiHeadAttention", {n: v.astype(f16) for n, v in k.items()}, num_heads=4)
    yield Case("mha_cross", "MultiHeadAttention", {"query": r(2, 3, 16), "key": r(2, 2, 5, 8), "value": r(2, 2, 5, 8)}, num_heads=2)
    x, w, b = r(2, 4, 12), r(12, 48, scale=0.3), r(48)
    a = {"input": x, "weights": w, "bias": b}
    yield Case("attention", "Attention", a, num_heads=2)
    yield Case("attention_causal", "Attention", a, num_heads=2, unidirectional=1)
    keep = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], i32)
    yield Case("attention_mask", "Attention", {**a, "mask": keep}, num_heads=2)
    yield Case("attention_filter", "Attention", {**a, "mask": keep}, num_heads=2, mask_filter_value=-3.0)
    yield Case("attention_lengths", "Attention", {**a, "mask": np.array([4, 2], i32)}, num_heads=2, fixed=True)
    yield Case("attention_ends", "Attention", {**a, "mask": np.array([4, 3, 0, 1], i32)}, num_heads=2, fixed=True)
    yield Case("attention_pairs", "Attention", {**a, "mask": np.tril(np.ones((2, 4, 4), i32))}, num_heads=2)
    yield Case("attention_added", "Attention", {**a, "mask": None, "past": None, "added": r(2, 2, 4, 4)}, num_heads=2, scale=0.4)
    yield Case("attention_past", "Attention", {**a, "mask": None, "past": r(2, 2, 2, 3, 8)}, outputs=2, num_heads=2, unidirectional=1)
    yield Case("attention_sizes", "Attention", {"input": x, "weights": r(12, 40, scale=0.3), "bias": r(40)}, num_heads=2, qkv_hidden_sizes=[16, 16, 8])
    yield Case("attention_half", "Attention", {n: v.astype(f16) for n, v in a.items()}, num_heads=2, unidirectional=1)
    for t in (u8, i8):
        yield Case(f"qattention_{t.__name__}", "QAttention", {"input": q(2, 4, 12), "weight": q(12, 48, t=t), "bias": b, "in": s(0.02), "step": s(0.01),
                   "mask": np.array([4, 2], i32), "in_zero": s(120, u8), "zero": s(3, t)}, num_heads=2, fixed=True, constants=["weight"])
    cos, sin = np.cos(t := np.outer(np.arange(20), 0.5 ** np.arange(4))).astype(f32), np.sin(t).astype(f32)
    rotary = {"x": r(2, 3, 16), "ids": np.array([[0, 1, 2], [4, 5, 6]], i64), "cos": cos, "sin": sin}
    yield Case("rotary", "RotaryEmbedding", rotary, fixed=True)
    yield Case("rotary_offset", "RotaryEmbedding", {**rotary, "ids": np.array([3], i64)}, fixed=True, interleaved=1)
    yield Case("rotary_4d", "RotaryEmbedding", {**rotary, "x": r(2, 2, 3, 8)})
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
    yield gqa("gqa_sink", **group(5, 1, [5, 4], inputs={"sinks": r(4)}))
    yield gqa("gqa_added", **group(5, 1, [5, 5], inputs={"added": r(2, 4, 1, 6)}))


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
    yield Case("nbits_4_real", **blocks(48, 5, 4, 16, zeros=f32))
    yield Case("nbits_2", **blocks(64, 6, 2, 16, zeros=u8))
    for kind in (0, 1):
        yield Case(f"bnb4_{kind}", "MatMulBnb4", {"A": r(3, 40), "B": q(100), "absmax": r(13) ** 2}, K=40, N=5, block_size=16, quant_type=kind,
                   constants=["B", "absmax"])
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
              "many rows": (blocks, {"x": [70, 512]}, weights, 1)}  # fmt: skip
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
    threads()
    sys.exit(compare(case for family in (fused, norms, attention, quantized, weights) for case in family()))
