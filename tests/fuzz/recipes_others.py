"""Recipes: recurrent operators, attention, pictures, signals, losses, sequences, loops that carry, and other domains."""

from __future__ import annotations

import numpy as np
from graphs import ONNX_TYPE, Graph, Skip, Value, unit
from onnx import TensorProto, helper
from recipes import FUNCTION_UNITS, exactly, moved, normalised, products, recipe

# ---- Recurrent, attention ------------------------------------------------------------------------------------------------------


def build_recurrent(g: Graph, name: str, gates: int):
    t, b, i, h = g.dice.randint(1, 5), g.dice.randint(1, 3), g.dice.randint(1, 9), g.dice.randint(1, 17)
    way = g.dice.choice(("forward", "reverse", "bidirectional"))
    d = 2 if way == "bidirectional" else 1
    x = g.leaf("f32", (t, b, i))
    w, r = g.leaf("f32", (d, gates * h, i), -0.5, 0.5, 0.125, constant=True), g.leaf("f32", (d, gates * h, h), -0.25, 0.25, 0.125, constant=True)
    bias = g.leaf("f32", (d, 2 * gates * h), -0.5, 0.5, 0.125) if g.chance(0.6) else None
    lengths = g.hide(g.leaf("i32", (b,), 1, t)) if g.chance(0.3) else None
    first = g.leaf("f32", (d, b, h), -1, 1) if g.chance(0.4) else None
    cell = g.leaf("f32", (d, b, h), -1, 1) if name == "LSTM" and first else None
    # A step adds its products' rounding and hands on what it got, stretched by R: at most 0.25 * h * gates.
    one = (i + h + FUNCTION_UNITS) * unit("f32") * (4 * 0.5 * i + h + 2)
    stretch = 1 + 0.25 * h * gates
    if one * stretch**t > 0.02:
        raise Skip
    err, most = one * stretch**t, float(t + 2)
    outs = [g.result("f32", (t, d, b, h), -most, most, 0, err), g.result("f32", (d, b, h), -most, most, 0, err)]
    if name == "LSTM":
        outs.append(g.result("f32", (d, b, h), -most, most, 0, err))
    inputs = [x, w, r, bias, lengths, first] + ([cell] if name == "LSTM" else [])
    more = {"linear_before_reset": int(g.chance(0.5))} if name == "GRU" else {}
    g.add(name, inputs, outs, hidden_size=h, direction=way, **more)


for _name, _gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
    recipe(_name, 14)(lambda g, name=_name, gates=_gates: build_recurrent(g, name, gates))


@recipe("Attention", 23)
def build_attention(g):
    b, heads, shared, s, t, d = g.dice.randint(1, 2), g.dice.choice((1, 2, 4)), g.dice.choice((1, 2)), g.dice.randint(1, 9), g.dice.randint(1, 17), g.dice.choice((4, 8, 16))
    kv = heads // shared if heads % shared == 0 else heads
    q, k, v = g.leaf("f32", (b, heads, s, d)), g.leaf("f32", (b, kv, t, d)), g.leaf("f32", (b, kv, t, d))
    mask = g.leaf("f32", (s, t), -2, 2) if g.chance(0.4) else None
    causal = int(g.chance(0.3) and s <= t)
    # scores are sums of d products over sqrt(d); a softmax does not stretch; then sums of t parts of 1
    score = (d + 4) * unit("f32") * d * 16
    g.add("Attention", [q, k, v, mask], g.result("f32", (b, heads, s, d), -4, 4, 0, 8 * (score + (t + 16) * unit("f32")), 8), is_causal=causal)


@recipe("AttentionParts", 13)
def build_attention_parts(g):
    """As exporters write it: a pass raises it."""
    b, h, s, d = g.dice.randint(1, 2), g.dice.choice((1, 3)), g.dice.randint(1, 9), g.dice.choice((4, 8))
    q, k, v = (g.leaf("f32", (b, h, s, d), constant=False) for _ in range(3))
    kt = g.hide(g.add("Transpose", [k], moved(g, k, (b, h, d, s)), perm=[0, 1, 3, 2]))
    scores = g.hide(g.add("MatMul", [q, kt], products(g, "f32", (b, h, s, s), d, q, k)))
    scale = g.hide(g.put(np.float32(2.0**-3), "f32", 0, 1, 2.0**-3, True))
    scaled = g.hide(g.add("Mul", [scores, scale], g.result("f32", scores.dims, scores.lo / 8, scores.hi / 8, scores.step / 8, scores.err / 8)))
    if g.chance(0.5):
        m = g.leaf("f32", (s, s), -2, 2)
        scaled = g.hide(g.add("Add", [scaled, m], g.result("f32", scaled.dims, scaled.lo - 2, scaled.hi + 2, min(scaled.step, m.step), scaled.err)))
    p = g.hide(g.add("Softmax", [scaled], g.result("f32", scores.dims, 0, 1, 0, scaled.err + (s + 40) * unit("f32") * 4, 16), axis=-1))
    g.add("MatMul", [p, v], g.result("f32", (b, h, s, d), -4, 4, 0, s * 4 * p.err + (s + 4) * 8 * unit("f32"), 8))


@recipe("RotaryEmbedding", 23)
def build_rotary(g):
    b, h, s, d = g.dice.randint(1, 2), g.dice.randint(1, 3), g.dice.randint(1, 6), g.dice.choice((4, 8))
    x = g.leaf("f32", (b, h, s, d))
    c, sn = g.leaf("f32", (16, d // 2), -1, 1), g.leaf("f32", (16, d // 2), -1, 1)
    at = g.hide(g.leaf("i64", (b, s), 0, 15))
    g.add("RotaryEmbedding", [x, c, sn, at], g.result("f32", x.dims, -8, 8, 2.0**-4, 0), interleaved=int(g.chance(0.5)))


@recipe("TensorScatter", 24)
def build_tensor_scatter(g):
    b, s, d = g.dice.randint(1, 3), g.dice.randint(3, 8), g.dice.randint(1, 5)
    x, u = g.leaf("f32", (b, s, d)), g.leaf("f32", (b, g.dice.randint(1, 2), d))
    at = g.hide(g.leaf("i64", (b,), 0, s - 2))
    g.add("TensorScatter", [x, u, at], g.result("f32", x.dims, -4, 4, 0.25), axis=g.dice.choice((1, -2)), mode="linear")


# ---- Pictures, signals, losses -------------------------------------------------------------------------------------------------


@recipe("GridSample", 20)
def build_grid_sample(g):
    x = g.leaf("f32", (g.dice.randint(1, 2), g.dice.randint(1, 3), g.dice.randint(2, 6), g.dice.randint(2, 6)))
    h, w = g.dice.randint(1, 5), g.dice.randint(1, 5)
    grid = g.leaf("f32", (x.dims[0], h, w, 2), -1.5, 1.5, 0.0625)
    mode = g.dice.choice(("linear", "cubic"))
    g.add("GridSample", [x, grid], g.result("f32", (*x.dims[:2], h, w), -16, 16, 0, 2000 * unit("f32")), mode=mode,
          padding_mode=g.dice.choice(("zeros", "border")), align_corners=int(g.chance(0.5)))


@recipe("AffineGrid", 20)
def build_affine_grid(g):
    n = g.dice.randint(1, 3)
    theta = g.leaf("f32", (n, 2, 3))
    size = [n, 2, g.dice.randint(2, 5), g.dice.randint(2, 5)]
    g.add("AffineGrid", [theta, g.fixed(size)], g.result("f32", (n, size[2], size[3], 2), -13, 13, 0, 200 * unit("f32")), align_corners=int(g.chance(0.5)))


@recipe("RoiAlign", 16)
def build_roi_align(g):
    x = g.leaf("f32", (1, g.dice.randint(1, 3), 8, 8))
    n = g.dice.randint(1, 3)
    corner = g.array("f32", (n, 2), 0, 3)
    rois = g.hide(g.put(np.concatenate([corner, corner + g.array("f32", (n, 2), 1, 4)], 1), "f32", 0, 8, 0.25))
    at = g.hide(g.leaf("i64", (n,), 0, 0))
    g.add("RoiAlign", [x, rois, at], g.result("f32", (n, x.dims[1], 2, 3), -4, 4, 0, 500 * unit("f32")), output_height=2, output_width=3,
          sampling_ratio=2, mode="avg", coordinate_transformation_mode=g.dice.choice(("half_pixel", "output_half_pixel")))


@recipe("NonMaxSuppression", 11)
def build_nms(g):
    n = g.dice.randint(1, 8)
    corner = g.array("f32", (1, n, 2), 0, 4)
    boxes = g.hide(g.put(np.concatenate([corner, corner + g.array("f32", (1, n, 2), 1, 3)], 2), "f32", 0, 8, 0.25))
    scores = g.hide(g.put((g.rng.permutation(n * 2).reshape(1, 2, n) / 32).astype(np.float32), "f32", 0, 1, 1 / 32))
    g.add("NonMaxSuppression", [boxes, scores, g.fixed(g.dice.randint(1, 4)), g.fixed(0.53125, "f32")], g.result("i64", (None, 3), 0, 16))


@recipe("Det", 11)
def build_det(g):
    n = g.dice.randint(1, 3)
    x = g.leaf("f32", (*g.shape(g.dice.randint(0, 1)), n, n), -2, 2)
    g.add("Det", [x], g.result("f32", x.dims[:-2], -6 * 2**n, 6 * 2**n, 0, 1e-4))


@recipe("DFT", 20)
def build_dft(g):
    n = g.dice.choice((1, 2, 3, 4, 5, 8, 9, 12))
    x = g.leaf("f32", (g.dice.randint(1, 2), n, g.dice.choice((1, 2))), -1, 1)
    g.add("DFT", [x, None, g.fixed(1)], g.result("f32", (x.dims[0], n, 2), -2 * n, 2 * n, 0, 32 * n * n * unit("f32")))


for _name in ("HannWindow", "HammingWindow", "BlackmanWindow"):
    def build_window(g, name=_name):
        n = g.dice.randint(2, 20)  # one sample, not periodic: the formula divides by 0
        g.add(name, [g.fixed(n)], g.result("f32", (n,), -0.1, 1.1, 0, 64 * unit("f32")), periodic=int(g.chance(0.5)))
    recipe(_name, 17)(build_window)


@recipe("MelWeightMatrix", 17)
def build_mel(g):
    g.add("MelWeightMatrix", [g.fixed(8), g.fixed(16), g.fixed(8192), g.fixed(0, "f32"), g.fixed(4096, "f32")], g.result("f32", (9, 8), 0, 1, 0, 1e-5))


@recipe("NegativeLogLikelihoodLoss", 13)
def build_nll(g):
    n, c = g.dice.randint(1, 5), g.dice.randint(1, 6)
    x, t = g.leaf("f32", (n, c)), g.hide(g.leaf("i64", (n,), 0, c - 1))
    w = g.leaf("f32", (c,), 0.5, 2) if g.chance(0.5) else None
    how = g.dice.choice(("none", "sum", "mean"))
    g.add("NegativeLogLikelihoodLoss", [x, t, w], g.result("f32", (n,) if how == "none" else (), -8 * n, 8 * n, 0, 64 * n * unit("f32")), reduction=how)


@recipe("SoftmaxCrossEntropyLoss", 13)
def build_loss(g):
    n, c = g.dice.randint(1, 5), g.dice.randint(1, 6)
    x, t = g.leaf("f32", (n, c)), g.hide(g.leaf("i64", (n,), 0, c - 1))
    how = g.dice.choice(("none", "sum", "mean"))
    g.add("SoftmaxCrossEntropyLoss", [x, t], g.result("f32", (n,) if how == "none" else (), 0, 16 * n, 0, 256 * n * unit("f32")), reduction=how)


@recipe("Col2Im", 18)
def build_col2im(g):
    h, w, n, c = g.dice.randint(2, 5), g.dice.randint(2, 5), g.dice.randint(1, 2), g.dice.randint(1, 3)
    x = g.leaf("f32", (n, c * 4, (h - 1) * (w - 1)))
    g.add("Col2Im", [x, g.fixed([h, w]), g.fixed([2, 2])], g.result("f32", (n, c, h, w), -16, 16, 0.25))


@recipe("DeformConv", 19)
def build_deform(g):
    x, w = g.leaf("f32", (1, 2, 5, 5)), g.leaf("f32", (3, 2, 2, 2))
    o = g.leaf("f32", (1, 8, 4, 4), -1, 1)
    g.add("DeformConv", [x, w, o], g.result("f32", (1, 3, 4, 4), -128, 128, 0, 1e-4))


@recipe("MaxRoiPool", 1)
def build_max_roi(g):
    x = g.leaf("f32", (1, 2, 6, 6))
    rois = g.hide(g.put(np.array([[0, 0, 0, g.dice.randint(2, 5), g.dice.randint(2, 5)]], np.float32), "f32", 0, 6, 1))
    g.add("MaxRoiPool", [x, rois], g.result("f32", (1, 2, 2, 2), min(x.lo, 0), x.hi, 0.25), pooled_shape=[2, 2])


# ---- Sequences, optionals --------------------------------------------------------------------------------------------------------


@recipe("SequenceConstruct", 13)
def build_sequence(g):
    """Tensors go into a sequence, are moved about, and come out as one or all."""
    v = g.pick(("f32", "i64", "f64"), low=1)
    items = [v] + [g.leaf(v.t, v.dims) for _ in range(g.dice.randint(0, 2))]
    s = g.name("s")
    g.node("SequenceConstruct", items, [s])
    n = len(items)
    if g.chance(0.4):
        at = g.dice.choice((None, g.fixed(g.dice.randint(-n, n))))
        items.append(g.leaf(v.t, v.dims))
        g.node("SequenceInsert", [s, items[-1], at], [t := g.name("s")])
        s, n = t, n + 1
    if n > 1 and g.chance(0.4):
        g.node("SequenceErase", [s, g.fixed(g.dice.randint(-n, n - 1)) if g.chance(0.7) else None], [t := g.name("s")])
        s, n = t, n - 1
    lo, hi, step, err = min(i.lo for i in items), max(i.hi for i in items), min(i.step for i in items), max(i.err for i in items)
    if g.chance(0.3):
        g.add("SequenceLength", [s], g.result("i64", (), n, n))
    if g.chance(0.5):
        g.add("SequenceAt", [s, g.fixed(g.dice.randint(-n, n - 1))], g.result(v.t, v.dims, lo, hi, step, err, 0))
    else:
        axis = g.dice.randrange(v.rank)
        new = g.chance(0.4)
        dims = v.dims[:axis] + (n,) + v.dims[axis:] if new else v.dims[:axis] + (n * v.dims[axis],) + v.dims[axis + 1:]
        g.add("ConcatFromSequence", [s], g.result(v.t, dims, lo, hi, step, err, 0), axis=axis, new_axis=int(new))


@recipe("SplitToSequence", 13)
def build_split_to_sequence(g):
    v = g.pick(("f32", "i64", "f64"), low=1, where=lambda v: v.count)
    axis = g.dice.randrange(v.rank)
    n = v.dims[axis]
    s = g.name("s")
    piece = g.dice.randint(1, n)
    g.node("SplitToSequence", [v, g.fixed(piece)], [s], axis=axis - v.rank * g.chance(0.4))
    g.add("ConcatFromSequence", [s], moved(g, v, v.dims), axis=axis)


@recipe("SequenceEmpty", 13)
def build_sequence_empty(g):
    v = g.pick(("f32",), low=1)
    g.node("SequenceEmpty", [], [s := g.name("s")], dtype=1)
    g.node("SequenceInsert", [s, v], [t := g.name("s")])
    g.add("SequenceAt", [t, g.fixed(0)], moved(g, v, v.dims))


@recipe("SequenceMap", 17)
def build_sequence_map(g):
    v = g.pick(("f32",), low=1, where=lambda v: v.count)
    g.node("SplitToSequence", [v], [s := g.name("s")], axis=0)
    a, b = g.name("in"), g.name("out")
    body = helper.make_graph([helper.make_node(g.dice.choice(("Neg", "Abs", "Relu")), [a], [b])], "body",
                             [helper.make_tensor_value_info(a, TensorProto.FLOAT, None)], [helper.make_tensor_value_info(b, TensorProto.FLOAT, None)])
    g.node("SequenceMap", [s], [t := g.name("s")], body=body)
    g.add("ConcatFromSequence", [t], g.result(v.t, v.dims, -v.most, v.most, v.step, v.err, 0), axis=0)


@recipe("Optional", 18)
def build_optional(g):
    v = g.pick(("f32", "i64"))
    g.node("Optional", [v], [o := g.name("o")])
    if g.chance(0.4):
        g.add("OptionalHasElement", [o], g.result("bool", (), 0, 1))
    g.add("OptionalGetElement", [o], moved(g, v, v.dims))


# ---- Loops that carry ------------------------------------------------------------------------------------------------------------


@recipe("Loop", 13)
def build_loop(g):
    """acc = acc + x, n times, each sum also stacked."""
    v = g.pick(("f32", "i64"), where=lambda v: v.exact and v.most < 1e4)
    n = g.dice.randint(0 if g.zeros else 1, 4)
    i, go, acc, on, new, out = (g.name(s) for s in ("i", "go", "acc", "on", "new", "each"))
    t = ONNX_TYPE[v.t]
    nodes = [helper.make_node("Identity", [go], [on]), helper.make_node("Add", [acc, v.name], [new]), helper.make_node("Identity", [new], [out])]
    typed = lambda name, kind, dims: helper.make_tensor_value_info(name, kind, dims)  # noqa: E731
    body = helper.make_graph(nodes, "body", [typed(i, 7, []), typed(go, 9, []), typed(acc, t, None)], [typed(on, 9, []), typed(new, t, None), typed(out, t, None)])
    start = g.leaf(v.t, v.dims)
    most = start.most + n * v.most
    r = [g.result(v.t, v.dims, -most, most, min(v.step, start.step)), g.result(v.t, (n, *v.dims), -most, most, min(v.step, start.step))]
    if not all(x.exact for x in r):
        raise Skip
    g.add("Loop", [g.fixed(n), None, start], r, body=body)


@recipe("Scan", 13)
def build_scan(g):
    v = g.pick(("f32", "i64"), low=1, where=lambda v: v.exact and v.count and v.most < 1e4)
    n, t = v.dims[0], ONNX_TYPE[v.t]
    acc, x, new, out = (g.name(s) for s in ("acc", "x", "new", "each"))
    typed = lambda name: helper.make_tensor_value_info(name, t, None)  # noqa: E731
    body = helper.make_graph([helper.make_node("Add", [acc, x], [new]), helper.make_node("Mul", [x, x], [out])], "body", [typed(acc), typed(x)], [typed(new), typed(out)])
    start = g.leaf(v.t, v.dims[1:])
    most = start.most + n * v.most
    r = [g.result(v.t, v.dims[1:], -most, most, min(v.step, start.step)), g.result(v.t, v.dims, -v.most**2, v.most**2, v.step**2)]
    if not all(z.exact for z in r):
        raise Skip
    g.add("Scan", [start, v], r, body=body, num_scan_inputs=1, scan_input_directions=[int(g.chance(0.4))], scan_output_directions=[int(g.chance(0.4))])


# ---- onnxruntime's -----------------------------------------------------------------------------------------------------------------


@recipe("com.microsoft:FastGelu", 13)
def build_fast_gelu(g):
    v = g.pick(("f32",), low=1, where=lambda v: v.most <= 8)
    b = g.leaf("f32", v.dims[-1:]) if g.chance(0.5) else None
    most = v.most + (b.most if b else 0)
    g.add("FastGelu", [v, b], g.result("f32", v.dims, -1, most, 0, 1.25 * v.err + 32 * unit("f32") * max(most, 1)), "com.microsoft")


@recipe("com.microsoft:BiasGelu", 13)
def build_bias_gelu(g):
    v = g.pick(("f32",), low=1, where=lambda v: v.most <= 8)
    b = g.leaf("f32", v.dims[-1:])
    g.add("BiasGelu", [v, b], g.result("f32", v.dims, -1, v.most + b.most, 0, 1.25 * v.err + 32 * unit("f32") * (v.most + b.most)), "com.microsoft")


@recipe("com.microsoft:FusedMatMul", 13)
def build_fused_matmul(g):
    a = g.pick(("f32",), rank=2, where=lambda v: v.count and v.most < 1e4)
    ta, tb, n = g.chance(0.5), g.chance(0.5), g.extent() or 1
    m, k = a.dims[::-1] if ta else a.dims
    b = g.leaf("f32", (n, k) if tb else (k, n))
    al = g.dice.choice((1.0, 0.5))
    scaled = Value("", "f32", (), a.lo, a.hi, a.step * al, a.err)
    g.add("FusedMatMul", [a, b], products(g, "f32", (m, n), k, scaled, b), "com.microsoft", alpha=al, transA=int(ta), transB=int(tb))


@recipe("com.microsoft:SkipLayerNormalization", 13)
def build_skip_norm(g):
    b, s, h = g.dice.randint(1, 2), g.dice.randint(1, 5), g.dice.randint(2, 17)
    x, y, w, bias = g.leaf("f32", (b, s, h)), g.leaf("f32", (b, s, h)), g.leaf("f32", (h,)), g.leaf("f32", (h,))
    both = Value("", "f32", (b, s, h), -8, 8, 0.25)
    g.add("SkipLayerNormalization", [x, y, w, bias], normalised(g, both, h, 1e-3, w, bias), "com.microsoft", epsilon=1e-3)


# ---- ai.onnx.ml --------------------------------------------------------------------------------------------------------------------


@recipe("ai.onnx.ml:Binarizer", 13)
def build_binarizer(g):
    v = g.pick(("f32",), low=1, high=2, where=exactly)
    g.add("Binarizer", [v], g.result("f32", v.dims, 0, 1, 1), "ai.onnx.ml", threshold=g.dice.choice((0.0, 0.5)))


@recipe("ai.onnx.ml:Scaler", 13)
def build_scaler(g):
    v = g.pick(("f32",), rank=2, where=lambda v: v.count)
    n = v.dims[1]
    offset, scale = [float(g.dice.randint(-3, 3)) for _ in range(n)], [g.dice.choice((0.5, 1.0, 2.0)) for _ in range(n)]
    g.add("Scaler", [v], g.result("f32", v.dims, 2 * (v.lo - 3), 2 * (v.hi + 3), min(v.step, 1) / 2, 2 * v.err, 2), "ai.onnx.ml", offset=offset, scale=scale)


@recipe("ai.onnx.ml:Normalizer", 13)
def build_normalizer(g):
    v = g.pick(("f32",), rank=2, where=lambda v: v.count and v.exact and v.lo > 0, lo=0.5, hi=4)
    g.add("Normalizer", [v], g.result("f32", v.dims, 0, 1, 0, unit("f32") * (v.dims[1] + 8), 4), "ai.onnx.ml", norm=g.dice.choice(("MAX", "L1", "L2")))


@recipe("ai.onnx.ml:ArrayFeatureExtractor", 13)
def build_extractor(g):
    v = g.pick(("f32", "i64", "f64"), rank=2, where=lambda v: v.count)
    at = g.hide(g.leaf("i64", (g.dice.randint(1, 5),), 0, v.dims[1] - 1))
    g.add("ArrayFeatureExtractor", [v, at], moved(g, v, (v.dims[0], at.dims[0])), "ai.onnx.ml")


@recipe("ai.onnx.ml:Imputer", 13)
def build_imputer(g):
    v = g.pick(("f32",), rank=2, where=lambda v: v.count and v.exact)
    g.add("Imputer", [v], g.result("f32", v.dims, min(v.lo, 1), max(v.hi, 1), min(v.step, 1)), "ai.onnx.ml", imputed_value_floats=[1.0], replaced_value_float=0.5)


@recipe("ai.onnx.ml:LinearRegressor", 13)
def build_linear(g):
    v = g.pick(("f32",), rank=2, where=lambda v: v.count and v.most < 1e4)
    w = [g.dice.randint(-4, 4) / 2 for _ in range(v.dims[1])]
    weights = Value("", "f32", (), -2, 2, 0.5)
    g.add("LinearRegressor", [v], products(g, "f32", (v.dims[0], 1), v.dims[1], v, weights, 2), "ai.onnx.ml", coefficients=w, intercepts=[1.5], targets=1)
