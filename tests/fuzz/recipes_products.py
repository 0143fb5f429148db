"""Recipes: products, convolutions, pools, quantisation and normalisation."""

from __future__ import annotations

import math

import numpy as np
from graphs import Graph, Skip, Value, limits, unit
from recipes import FUNCTION_UNITS, PRODUCT_TYPES, moved, normalised, picture, products, recipe, window

# ---- Products ------------------------------------------------------------------------------------------------------------------


@recipe("MatMul", 13)
def build_matmul(g):
    a = g.pick(("f32",) if g.chance(0.6) else ("f32", "f16", "bf16", "f64", "i32"), low=1, high=3, where=lambda v: v.count and v.most < 1e4)
    k, n = a.dims[-1], g.extent() or 1
    batch = a.dims[:-2] if a.rank > 2 and g.chance(0.4) else ()
    vector = g.chance(0.1)
    fits = [v for v in g.values.values() if v.t == a.t and v.rank == 2 and v.dims[0] == k and v.name not in g.hidden and v.err < 1e-3 + 0.02 * v.most and v.count]
    b = g.dice.choice(fits) if fits and g.chance(0.4) else g.leaf(a.t, (k,) if vector else batch + (k, n))
    dims = np.matmul(np.empty(a.dims), np.empty(b.dims)).shape if a.count and b.count else None
    if dims is None:
        raise Skip
    g.add("MatMul", [a, b], products(g, a.t, dims, k, a, b))


@recipe("Gemm", 13)
def build_gemm(g):
    a = g.pick(PRODUCT_TYPES, rank=2, where=lambda v: v.count and v.most < 1e4)
    ta, tb, n = g.chance(0.4), g.chance(0.5), g.extent() or 1
    m, k = a.dims[::-1] if ta else a.dims
    b = g.leaf(a.t, (n, k) if tb else (k, n))
    al, be = g.dice.choice((1.0, 0.5, 2.0)), g.dice.choice((1.0, 0.5, 2.0))
    c = g.leaf(a.t, g.dice.choice(((), (n,), (1, n), (m, 1), (m, n), (1,)))) if g.chance(0.7) else None
    r = products(g, a.t, (m, n), k, Value("", a.t, (), a.lo * al, a.hi * al, a.step * min(al, 1), a.err * al), b, be * c.most if c else 0)
    if c and r.step:
        r.step = min(r.step, c.step * be) / 2
    g.add("Gemm", [a, b, c], r, alpha=al, beta=be, transA=int(ta), transB=int(tb))


@recipe("Einsum", 12)
def build_einsum(g):
    a = g.pick(("f32", "f64"), rank=2, where=lambda v: v.count)
    text, dims_b, out, k = g.dice.choice((
        ("ij,jk->ik", (a.dims[1], 3), (a.dims[0], 3), a.dims[1]),
        ("ij,kj->ki", (3, a.dims[1]), (3, a.dims[0]), a.dims[1]),
        ("ij,ij->i", a.dims, a.dims[:1], a.dims[1]),
        ("ij,ij->", a.dims, (), a.dims[0] * a.dims[1]),
        ("ij,k->ijk", (2,), (*a.dims, 2), 1),
        ("ij,ij->ji", a.dims, a.dims[::-1], 1)))
    b = g.leaf(a.t, dims_b)
    g.add("Einsum", [a, b], products(g, a.t, out, k, a, b), equation=text)


@recipe("Conv", 11)
def build_conv(g):
    x = picture(g)
    how, out = window(g, x.dims[2:])
    c = x.dims[1]
    group = g.dice.choice((1, 1, c, *[d for d in (2, 3, 4) if c % d == 0]))
    m = group * g.dice.choice((1, 2, 3, 5, 8))
    w = g.leaf(x.t, (m, c // group, *how["kernel_shape"]), constant=g.chance(0.8))
    b = g.leaf(x.t, (m,)) if g.chance(0.5) else None
    k = c // group * int(np.prod(how["kernel_shape"]))
    # Winograd's transforms are not exact on any grid, and their error is about 3.5 times a sum's
    r = products(g, x.t, (x.dims[0], m, *out), k + 1, x, w, b.most if b else 0, exact=False)
    r.err += 3 * (k + 16) * unit("f32") * r.most
    if g.chance(0.15) and all(d == 1 for d in how["dilations"]):
        how.pop("pads")
        how["auto_pad"] = g.dice.choice(("SAME_UPPER", "SAME_LOWER"))
        r.dims = (x.dims[0], m, *(-(-d // s) for d, s in zip(x.dims[2:], how["strides"])))
    if g.chance(0.4):
        how.pop("kernel_shape")
    g.add("Conv", [x, w, b], r, group=group, **how)


@recipe("ConvTranspose", 11)
def build_conv_transpose(g):
    x = picture(g, ("f32",))
    n = x.rank - 2
    kernel, strides = [g.dice.choice((1, 2, 3)) for _ in range(n)], [g.dice.choice((1, 2)) for _ in range(n)]
    pads = [g.dice.choice((0, 0, 1)) if k > 1 else 0 for k in kernel] * 2
    more = [g.dice.randrange(s) for s in strides]
    out = tuple(s * (d - 1) + k + o - 2 * p for s, d, k, o, p in zip(strides, x.dims[2:], kernel, more, pads))
    if min(out) < 1:
        raise Skip
    c = x.dims[1]
    group = g.dice.choice((1, 1, c))
    m = g.dice.choice((1, 2, 3))
    w = g.leaf(x.t, (c, m, *kernel))
    k = c // group * int(np.prod(kernel))
    r = products(g, x.t, (x.dims[0], m * group, *out), k, x, w)
    g.add("ConvTranspose", [x, w], r, group=group, kernel_shape=kernel, strides=strides, pads=pads, output_padding=more)


@recipe("MaxPool", 12)
def build_max_pool(g):
    x = picture(g, ("f32", "f32", "f16", "u8", "i8"))
    how, out = window(g, x.dims[2:])
    dims = (*x.dims[:2], *out)
    with_indices = x.exact and g.chance(0.3)
    r = [moved(g, x, dims)] + ([g.result("i64", dims, 0, x.count)] if with_indices else [])
    g.add("MaxPool", [x], r, **how)


@recipe("AveragePool", 11)
def build_average_pool(g):
    x = picture(g, ("f32", "f32", "f16"))
    how, out = window(g, x.dims[2:])
    if g.opset < 19:
        if max(how["dilations"]) > 1:
            raise Skip
        how.pop("dilations")
    n = int(np.prod(how["kernel_shape"]))
    r = g.result(x.t, (*x.dims[:2], *out), min(x.lo, 0), max(x.hi, 0), 0, x.err + n * unit("f32") * x.most * 2, 2)
    g.add("AveragePool", [x], r, count_include_pad=int(g.chance(0.5)), **how)


@recipe("LpPool", 18)
def build_lp_pool(g):
    x = picture(g, ("f32",))
    how, out = window(g, x.dims[2:])
    n = int(np.prod(how["kernel_shape"]))
    g.add("LpPool", [x], g.result(x.t, (*x.dims[:2], *out), 0, n * x.most, 0, n * x.err + n * x.most * unit(x.t) * 32, 16), p=g.dice.choice((1, 2)), **how)


for _name in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
    def build_global(g, name=_name):
        x = picture(g, ("f32", "f32", "f16") if name != "GlobalLpPool" else ("f32",))
        n, u = int(np.prod(x.dims[2:])), unit("f32")
        dims = x.dims[:2] + (1,) * (x.rank - 2)
        if name == "GlobalMaxPool":
            r = moved(g, x, dims)
        elif name == "GlobalAveragePool":
            r = g.result(x.t, dims, x.lo, x.hi, 0, x.err + (n + 2) * u * x.most, 2)
        else:
            r = g.result(x.t, dims, 0, n * x.most, 0, n * x.err + (n + 16) * u * n * x.most, 8)
        g.add(name, [x], r)
    recipe(_name, 1)(build_global)


@recipe("MaxUnpool", 11)
def build_unpool(g):
    n, c, h, w = 1, g.dice.randint(1, 2), g.dice.randint(1, 3), g.dice.randint(1, 3)
    x = g.leaf("f32", (n, c, h, w))
    at = np.stack([2 * w * (2 * i) + 2 * j + g.dice.choice((0, 1, 2 * w)) + k * 4 * h * w for k in range(c) for i in range(h) for j in range(w)])
    i = g.hide(g.put(at.reshape(x.dims).astype(np.int64), "i64", 0, 4 * h * w * c, 1))
    g.add("MaxUnpool", [x, i], g.result("f32", (n, c, 2 * h, 2 * w), -4, 4, 0.25), kernel_shape=[2, 2], strides=[2, 2])


@recipe("MatMulInteger", 10)
def build_matmul_integer(g):
    a = g.pick(("u8", "i8"), low=2, high=3, where=lambda v: v.count)
    b = g.leaf(g.dice.choice(("u8", "i8")), (a.dims[-1], g.dice.randint(1, 33)), *g.dice.choice(((None, None), (-128, 127), (0, 255))))
    za = g.fixed(g.dice.randint(0, 7), a.t) if g.chance(0.6) else None
    zb = g.fixed(g.dice.randint(0, 7), b.t) if za and g.chance(0.6) else None
    most = a.dims[-1] * 263 * 263
    g.add("MatMulInteger", [a, b, za, zb], g.result("i32", (*a.dims[:-1], b.dims[1]), -most, most))


@recipe("ConvInteger", 10)
def build_conv_integer(g):
    x = g.leaf("u8", (1, g.dice.randint(1, 4), g.dice.randint(3, 7), g.dice.randint(3, 7)), 0, 255)
    how, out = window(g, x.dims[2:])
    w = g.leaf(g.dice.choice(("u8", "i8")), (g.dice.randint(1, 5), x.dims[1], *how["kernel_shape"]))
    z = g.fixed(g.dice.randint(0, 7), "u8") if g.chance(0.6) else None
    most = x.dims[1] * 9 * 263 * 263
    g.add("ConvInteger", [x, w, z], g.result("i32", (1, w.dims[0], *out), -most, most), **how)


def quantised(g: Graph, dims: tuple, t: str = "u8") -> tuple[Value, Value, Value]:
    """An integer tensor with a scale that is a power of two, and a zero point."""
    lo, hi = limits(t)
    return g.leaf(t, dims, lo, hi), g.fixed(2.0 ** g.dice.randint(-5, -1), "f32"), g.fixed(g.dice.randint(0, 9), t)


@recipe("QuantizeLinear", 13)
def build_quantize(g):
    v = g.pick(("f32",), where=lambda v: v.exact and v.step >= 2.0**-12)
    t = g.dice.choice(("u8", "i8"))
    per_axis = v.rank > 0 and g.chance(0.3) and v.dims[-1]
    if per_axis:
        s = g.put((2.0 ** g.rng.integers(-4, 1, v.dims[-1])).astype(np.float32), "f32", 0, 1, 2.0**-4, True)
        z = g.leaf(t, (v.dims[-1],), 0, 9, constant=True)
        g.hide(s), g.hide(z)
    else:
        s, z = g.fixed(2.0 ** g.dice.randint(-4, 0), "f32"), g.fixed(g.dice.randint(0, 9), t)
    g.add("QuantizeLinear", [v, s, z], g.result(t, v.dims, *limits(t)), axis=v.rank - 1 if per_axis else None)


@recipe("DequantizeLinear", 13)
def build_dequantize(g):
    v = g.pick(("u8", "i8"))
    s = g.put(np.float32(2.0 ** g.dice.randint(-5, 0)), "f32", 0, 1, 2.0**-5, True)
    g.add("DequantizeLinear", [v, g.hide(s), g.fixed(g.dice.randint(0, 9), v.t) if g.chance(0.7) else None], g.result("f32", v.dims, -264, 264, 2.0**-5))


@recipe("QDQ", 13)
def build_qdq(g):
    """A product between pairs, which specialising turns into one of integers. What it rounds to bytes may fall either way only where
    sums are inexact: scales are powers of two, so they are not."""
    x = g.leaf("u8", (g.dice.randint(1, 9), g.dice.randint(1, 33)), 0, 255)
    w = g.leaf("i8", (x.dims[1], g.dice.randint(1, 17)), -127, 127, constant=True)
    s = [g.put(np.float32(2.0**e), "f32", 0, 1, 1, True) for e in (-4, -5, 1)]
    z = [g.fixed(g.dice.randint(0, 9), "u8"), g.fixed(0, "i8"), g.fixed(128, "u8")]
    for v in s:
        g.hide(v)
    a = g.add("DequantizeLinear", [x, s[0], z[0]], g.result("f32", x.dims, -17, 17, 2.0**-4))
    b = g.add("DequantizeLinear", [w, s[1], z[1]], g.result("f32", w.dims, -4, 4, 2.0**-5))
    y = g.add("MatMul", [a, b], products(g, "f32", (x.dims[0], w.dims[1]), x.dims[1], a, b))
    if not y.exact:
        raise Skip
    q = g.add("QuantizeLinear", [y, s[2], z[2]], g.result("u8", y.dims, 0, 255))
    g.add("DequantizeLinear", [q, s[2], z[2]], g.result("f32", y.dims, -256, 256, 2))


@recipe("DynamicQuantizeLinear", 11)
def build_dynamic_quantize(g):
    """Followed by DequantizeLinear: the scale is a quotient, so bytes may differ by one where a provider rounds it otherwise."""
    v = g.pick(("f32",), low=1, where=lambda v: v.count and v.exact)
    scale = max(v.hi, 0) - min(v.lo, 0)
    if scale <= 0:
        raise Skip
    names = [g.name(), g.name(), g.name()]
    g.node("DynamicQuantizeLinear", [v], names)
    y = g.result("f32", v.dims, v.lo - scale, v.hi + scale, 0, 2 * scale / 255)
    g.node("DequantizeLinear", names, [y.name])
    g.values[y.name] = y


@recipe("QLinearMatMul", 10)
def build_qlinear_matmul(g):
    t = g.dice.choice(("u8", "i8"))
    m, k, n = g.dice.randint(1, 9), g.dice.randint(1, 33), g.dice.randint(1, 9)
    a, sa, za = quantised(g, (m, k), t)
    b, sb, zb = quantised(g, (k, n), t)
    g.add("QLinearMatMul", [a, sa, za, b, sb, zb, g.fixed(2.0, "f32"), g.fixed(5, t)], g.result(t, (m, n), *limits(t)))


@recipe("QLinearConv", 10)
def build_qlinear_conv(g):
    x, sx, zx = quantised(g, (1, g.dice.randint(1, 5), g.dice.randint(3, 7), g.dice.randint(3, 7)))
    how, out = window(g, x.dims[2:])
    m = g.dice.randint(1, 6)
    w, sw, _ = quantised(g, (m, x.dims[1], *how["kernel_shape"]), "i8")
    b = g.leaf("i32", (m,), -1000, 1000, constant=True) if g.chance(0.5) else None
    g.add("QLinearConv", [x, sx, zx, w, sw, g.fixed(0, "i8"), g.fixed(4.0, "f32"), g.fixed(7, "u8"), b], g.result("u8", (1, m, *out), 0, 255), **how)


# ---- Normalisation -------------------------------------------------------------------------------------------------------------


for _name in ("Softmax", "LogSoftmax", "Hardmax"):
    def build_softmax(g, name=_name):
        v = g.pick(("f32", "f32", "f16", "bf16", "f64"), low=1, where=lambda v: v.count and v.most < 50 and (name != "Hardmax" or v.exact))
        axis = g.dice.randrange(v.rank)
        n, u = v.dims[axis], unit(v.t)
        if name == "Hardmax":
            r = g.result(v.t, v.dims, 0, 1, 1)
        elif name == "Softmax":
            r = g.result(v.t, v.dims, 0, 1, 0, v.err + u * (n + FUNCTION_UNITS), FUNCTION_UNITS)
        else:
            r = g.result(v.t, v.dims, v.lo - v.hi - math.log(n) - 1, 0, 0, 2 * v.err + u * (n + FUNCTION_UNITS + 2 * v.most), FUNCTION_UNITS)
        g.add(name, [v], r, axis=axis - v.rank * g.chance(0.5))
    recipe(_name, 13)(build_softmax)


def epsilon_of(g: Graph) -> float:
    return g.dice.choice((1e-5, 1e-3, 0.125))


@recipe("LayerNormalization", 17)
def build_layer_norm(g):
    v = g.pick(("f32", "f32", "f16", "bf16"), low=1, where=lambda v: v.count)
    axis = g.dice.randrange(v.rank)
    dims = v.dims[axis:]
    s, b = g.leaf(v.t, dims), g.leaf(v.t, dims) if g.chance(0.7) else None
    e = epsilon_of(g)
    r = normalised(g, v, int(np.prod(dims)), e, s, b)
    g.add("LayerNormalization", [v, s, b], r, axis=axis - v.rank * g.chance(0.5), epsilon=e)


@recipe("LayerNormalizationParts", 13)
def build_layer_norm_parts(g):
    """As exporters wrote it before there was the operator: a pass raises it."""
    v = g.pick(("f32",), low=1, where=lambda v: v.count and v.dims[-1] > 1)
    n, e = v.dims[-1], 1e-3
    s, b = g.leaf("f32", (n,), constant=True), g.leaf("f32", (n,), constant=True)
    one = v.dims[:-1] + (1,)
    y = normalised(g, v, n, e, s, b)

    def mean(x, r):
        if g.opset >= 18:
            return g.add("ReduceMean", [x, g.fixed([-1])], r)
        return g.add("ReduceMean", [x], r, axes=[-1])
    u = unit("f32")
    m = mean(v, g.result("f32", one, v.lo, v.hi, 0, v.err + n * u * v.most, 2))
    d = g.add("Sub", [v, m], g.result("f32", v.dims, v.lo - v.hi, v.hi - v.lo, 0, v.err + m.err))
    q = g.add("Pow", [d, g.fixed(2, "f32")], g.result("f32", v.dims, 0, d.most**2, 0, 2 * d.most * d.err + d.err**2, 16))
    a = mean(q, g.result("f32", one, 0, q.hi, 0, q.err + n * u * q.hi, 2))
    ae = g.add("Add", [a, g.hide(g.put(np.float32(e), "f32", e, e, 0, True))], g.result("f32", one, e, q.hi + e, 0, a.err))
    r = g.add("Sqrt", [ae], g.result("f32", one, 0, math.sqrt(q.hi + e), 0, a.err / math.sqrt(e), 4))
    z = g.add("Div", [d, r], g.result("f32", v.dims, -math.sqrt(n), math.sqrt(n), 0, y.err, 4))
    w = g.add("Mul", [z, s], g.result("f32", v.dims, -z.most * s.most, z.most * s.most, 0, z.err * s.most))
    y.err = w.err + 4 * u * (w.most + b.most)
    for x in (m, d, q, a, ae, r, z, w):
        g.hide(x)
    g.add("Add", [w, b], y)


@recipe("RMSNormalization", 23)
def build_rms(g):
    v = g.pick(("f32", "f16"), low=1, where=lambda v: v.count)
    axis = g.dice.randrange(v.rank)
    s, e = g.leaf(v.t, v.dims[axis:]), epsilon_of(g)
    g.add("RMSNormalization", [v, s], normalised(g, v, int(np.prod(v.dims[axis:])), e, s, None), axis=axis - v.rank * g.chance(0.5), epsilon=e)


@recipe("InstanceNormalization", 6)
def build_instance_norm(g):
    v, e = picture(g, ("f32",)), epsilon_of(g)
    s, b = g.leaf("f32", v.dims[1:2]), g.leaf("f32", v.dims[1:2])
    g.add("InstanceNormalization", [v, s, b], normalised(g, v, int(np.prod(v.dims[2:])), e, s, b), epsilon=e)


@recipe("GroupNormalization", 21)
def build_group_norm(g):
    v, e = picture(g, ("f32",)), epsilon_of(g)
    groups = g.dice.choice([d for d in range(1, v.dims[1] + 1) if v.dims[1] % d == 0])
    s, b = g.leaf("f32", v.dims[1:2]), g.leaf("f32", v.dims[1:2])
    r = normalised(g, v, int(np.prod(v.dims[1:])) // groups, e, s, b)
    g.add("GroupNormalization", [v, s, b], r, epsilon=e, num_groups=groups)


@recipe("BatchNormalization", 15)
def build_batch_norm(g):
    v, e = picture(g, ("f32", "f32", "f16")), 1e-3
    c = v.dims[1:2]
    s, b, m, var = g.leaf(v.t, c), g.leaf(v.t, c), g.leaf(v.t, c), g.leaf(v.t, c, 0.5, 4)
    most = (v.most + m.most) * s.most / math.sqrt(0.5) + b.most
    g.add("BatchNormalization", [v, s, b, m, var], g.result(v.t, v.dims, -most, most, 0, v.err * s.most / math.sqrt(0.5), 8), epsilon=e)


@recipe("LpNormalization", 1)
def build_lp_norm(g):
    v = g.pick(("f32",), low=1, where=lambda v: v.count and v.exact and v.lo > 0, lo=0.5, hi=4)
    axis = g.dice.randrange(v.rank)
    n = v.dims[axis]
    g.add("LpNormalization", [v], g.result(v.t, v.dims, 0, 1, 0, unit(v.t) * (n + 8), 4), axis=axis - v.rank * g.chance(0.4), p=g.dice.choice((1, 2)))


@recipe("MeanVarianceNormalization", 13)
def build_mvn(g):
    v = g.leaf("f32", (2, 3, 4, 5))
    g.add("MeanVarianceNormalization", [v], g.result("f32", v.dims, -11, 11, 0, 1e-4), axes=g.dice.choice(([0, 2, 3], [2, 3], [1])))


@recipe("LRN", 13)
def build_lrn(g):
    v = picture(g, ("f32",))
    n = g.dice.choice((1, 3, 5))
    al, be, bias = 2.0**-6, g.dice.choice((0.75, 0.5)), 1.0
    slope = 1 + 2 * be * al * v.most**2
    g.add("LRN", [v], g.result("f32", v.dims, -v.most, v.most, 0, slope * v.err + 32 * unit("f32") * max(v.most, 1), 8), size=n, alpha=al, beta=be, bias=bias)
