"""Recipes: one element at a time, and two or more that broadcast."""

from __future__ import annotations

import math

import numpy as np
from graphs import ALL, FLOATS, INTS, NUMBERS, ONNX_TYPE, SIGNED, UNSIGNED, Graph, Skip, Value, limits, unit
from recipes import FUNCTION_UNITS, broadcast, corners, exactly, pair, partner_dims, recipe

# ---- One element at a time -------------------------------------------------------------------------------------------------

erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(0, x)


def attributes_none(g):
    return {}


def alpha(*choices):
    return lambda g: {"alpha": g.dice.choice(choices)}


# name: since, function of (x, attributes), range of new values, attributes
SMOOTH = {
    "Exp": (13, lambda x: np.exp(x), (-4, 4), None),
    "Log": (13, lambda x: np.log(x), (0.25, 8), None),
    "Sqrt": (13, lambda x: np.sqrt(x), (0, 8), None),
    "Reciprocal": (13, lambda x: 1 / x, (0.5, 8), None),
    "Sin": (7, lambda x: np.sin(x), (-4, 4), None),
    "Cos": (7, lambda x: np.cos(x), (-4, 4), None),
    "Tan": (7, lambda x: np.where(np.abs(x) < 1.25, np.tan(x), np.nan), (-1, 1), None),
    "Asin": (7, lambda x: np.arcsin(x), (-1, 1), None),
    "Acos": (7, lambda x: np.arccos(x), (-1, 1), None),
    "Atan": (7, lambda x: np.arctan(x), (-4, 4), None),
    "Sinh": (9, lambda x: np.sinh(x), (-4, 4), None),
    "Cosh": (9, lambda x: np.cosh(x), (-4, 4), None),
    "Tanh": (13, lambda x: np.tanh(x), (-4, 4), None),
    "Asinh": (9, lambda x: np.arcsinh(x), (-4, 4), None),
    "Acosh": (9, lambda x: np.arccosh(x), (1, 8), None),
    "Atanh": (9, lambda x: np.arctanh(x), (-0.75, 0.75), None),
    "Erf": (13, lambda x: erf(x), (-4, 4), None),
    "Sigmoid": (13, lambda x: sigmoid(x), (-8, 8), None),
    "Softplus": (1, lambda x: softplus(x), (-8, 8), None),
    "Softsign": (1, lambda x: x / (1 + np.abs(x)), (-8, 8), None),
    "Elu": (6, lambda x, alpha: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x), (-4, 4), alpha(1.0, 0.5, 1.5)),
    "Celu": (12, lambda x, alpha: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0) / alpha), x), (-4, 4), alpha(1.0, 0.5, 1.5)),
    "Selu": (6, lambda x: 1.05070102 * np.where(x < 0, 1.67326319 * np.expm1(np.minimum(x, 0)), x), (-4, 4), None),
    "LeakyRelu": (6, lambda x, alpha: np.where(x < 0, alpha * x, x), (-4, 4), alpha(0.125, 0.01, 0.5)),
    "HardSigmoid": (6, lambda x, alpha: np.clip(alpha * x + 0.5, 0, 1), (-4, 4), alpha(0.25, 0.2)),
    "HardSwish": (14, lambda x: x * np.clip(x / 6 + 0.5, 0, 1), (-4, 4), None),
    "Mish": (18, lambda x: x * np.tanh(softplus(x)), (-4, 4), None),
    "Gelu": (20, lambda x, approximate: x * 0.5 * (1 + erf(x / math.sqrt(2))), (-4, 4), lambda g: {"approximate": g.dice.choice(("none", "tanh"))}),
    "Swish": (24, lambda x, alpha: x * sigmoid(alpha * x), (-4, 4), alpha(1.0, 1.5, 0.5)),
    "com.microsoft:QuickGelu": (13, lambda x, alpha: x * sigmoid(alpha * x), (-4, 4), alpha(1.702, 1.0)),
    "com.microsoft:Gelu": (13, lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2))), (-4, 4), None),
}
# The two forms of Gelu differ by less than this, which widens a range that is found for one of them.
WIDE = 1e-3


def image(f, lo: float, hi: float) -> tuple[float, float, float]:
    """Range of f over [lo, hi], and how much it stretches differences there, found on a grid and widened by what may lie between."""
    x = np.linspace(lo, hi, 513) if hi > lo else np.array([lo])
    with np.errstate(all="ignore"):
        y = f(x)
    if not np.isfinite(y).all():
        raise Skip
    slope = float(np.abs(np.diff(y) / (x[1] - x[0])).max()) * 1.25 + 1e-3 if hi > lo else 0.0
    slack = slope * (hi - lo) / 512 + WIDE
    return float(y.min()) - slack, float(y.max()) + slack, slope


def smooth(name: str):
    since, f, new, make = SMOOTH[name]
    domain, _, op = name.rpartition(":")

    def build(g: Graph):
        types = FLOATS if not domain else ("f32",)
        with_attributes = make(g) if make else {}
        v = g.pick(types, where=lambda v: v.lo >= new[0] and v.hi <= new[1], lo=new[0], hi=new[1]) if name in \
            ("Log", "Sqrt", "Reciprocal", "Tan", "Asin", "Acos", "Acosh", "Atanh") else g.pick(types, where=lambda v: v.most <= 12)
        lo, hi, slope = image(lambda x: f(x, **with_attributes), v.lo - v.err, v.hi + v.err)
        if v.err and slope > 1e3:
            raise Skip
        at = unit(v.t) * FUNCTION_UNITS * max(v.most, 1)  # of x, too: Gelu's and Mish's errors are in units of x
        g.add(op, [v], g.result(v.t, v.dims, lo, hi, 0, slope * v.err + at, FUNCTION_UNITS), domain, **with_attributes)

    recipe(name, since)(build)


for _name in SMOOTH:
    smooth(_name)


def jump(name: str, types, f, since: int = 13, step=None, **attributes):
    """Exact values in, exact values out."""
    def build(g: Graph):
        v = g.pick(types, where=lambda v: v.exact)
        lo, hi = f(v)
        g.add(name, [v], g.result(v.t, v.dims, lo, hi, v.step if step is None else step), **attributes)

    recipe(name, since)(build)


for _name in ("Ceil", "Floor", "Round"):
    jump(_name, FLOATS, lambda v: (math.floor(v.lo), math.ceil(v.hi)), step=1)
jump("Sign", NUMBERS, lambda v: (-1 if v.lo < 0 else 0, 1), step=1)
jump("ThresholdedRelu", ("f32", "f16", "f64", "bf16"), lambda v: (min(v.lo, 0), max(v.hi, 0)), 10, alpha=0.5)
jump("Shrink", ("f32", "f16", "f64"), lambda v: (v.lo - 0.5, v.hi + 0.5), 9, step=0.0, lambd=1.0, bias=0.5)
jump("BitwiseNot", INTS, lambda v: limits(v.t), 18)
jump("Not", ("bool",), lambda v: (0, 1), 1)


@recipe("Abs")
def build_abs(g):
    v = g.pick(NUMBERS, where=lambda v: v.t in FLOATS + UNSIGNED or v.lo > limits(v.t)[0])
    g.add("Abs", [v], g.result(v.t, v.dims, 0, v.most, v.step, v.err, 0))


@recipe("Neg")
def build_neg(g):
    v = g.pick(FLOATS + SIGNED, where=lambda v: v.t in FLOATS or v.lo > limits(v.t)[0])
    g.add("Neg", [v], g.result(v.t, v.dims, -v.hi, -v.lo, v.step, v.err, 0))


@recipe("Relu", 14)
def build_relu(g):
    v = g.pick(FLOATS + SIGNED)
    g.add("Relu", [v], g.result(v.t, v.dims, max(v.lo, 0), max(v.hi, 0), v.step, v.err, 0))


@recipe("Identity")
def build_identity(g):
    v = g.pick(ALL)
    g.add("Identity", [v], g.result(v.t, v.dims, v.lo, v.hi, v.step, v.err, 0))


@recipe("Dropout")
def build_dropout(g):
    v = g.pick(("f32", "f16", "f64"))
    g.add("Dropout", [v], g.result(v.t, v.dims, v.lo, v.hi, v.step, v.err, 0))


@recipe("Clip", 13)
def build_clip(g):
    v = g.pick(NUMBERS)
    lo, hi = sorted((g.dice.randint(-3, 2), g.dice.randint(0, 4))) if v.t in FLOATS + SIGNED else sorted((g.dice.randint(0, 3), g.dice.randint(0, 6)))
    with_lo, with_hi = g.chance(0.8), g.chance(0.8)
    r = g.result(v.t, v.dims, *(np.clip((v.lo, v.hi), lo if with_lo else None, hi if with_hi else None) if with_lo or with_hi else (v.lo, v.hi)),
                 min(v.step, 1), v.err, 0)
    g.add("Clip", [v, g.fixed(lo, v.t) if with_lo else None, g.fixed(hi, v.t) if with_hi else None], r)


for _name in ("IsNaN", "IsInf"):
    def build_is(g, name=_name):
        v = g.pick(("f32", "f64"))
        g.add(name, [v], g.result("bool", v.dims, 0, 1))
    recipe(_name, 10)(build_is)


def converted(g: Graph) -> tuple[Value, str, Value]:
    v = g.pick(ALL)
    to = g.dice.choice([t for t in ALL if t != v.t])
    if to in FLOATS:
        return v, to, g.result(to, v.dims, v.lo, v.hi, v.step, v.err)
    if not v.exact:
        raise Skip
    if to == "bool":
        return v, to, g.result(to, v.dims, 0, 1)
    lo, hi = math.trunc(v.lo), math.trunc(v.hi)  # towards zero
    if lo < limits(to)[0] or hi > limits(to)[1]:
        raise Skip
    return v, to, g.result(to, v.dims, lo, hi)


@recipe("Cast")
def build_cast(g):
    v, to, r = converted(g)
    g.add("Cast", [v], r, to=ONNX_TYPE[to])


@recipe("CastLike", 15)
def build_cast_like(g):
    v, to, r = converted(g)
    g.add("CastLike", [v, g.leaf(to, ())], r)


# ---- Two and more operands -----------------------------------------------------------------------------------------------------


@recipe("Add")
def build_add(g):
    a, b, dims = pair(g, NUMBERS)
    g.add("Add", [a, b], g.result(a.t, dims, a.lo + b.lo, a.hi + b.hi, min(a.step, b.step), a.err + b.err))


@recipe("Sub")
def build_sub(g):
    a, b, dims = pair(g, FLOATS + SIGNED)
    g.add("Sub", [a, b], g.result(a.t, dims, a.lo - b.hi, a.hi - b.lo, min(a.step, b.step), a.err + b.err))


@recipe("Mul")
def build_mul(g):
    a, b, dims = pair(g, NUMBERS)
    lo, hi = corners(lambda x, z: x * z, a, b)
    g.add("Mul", [a, b], g.result(a.t, dims, lo, hi, a.step * b.step, a.most * b.err + b.most * a.err + a.err * b.err))


@recipe("Div")
def build_div(g):
    whole = g.chance(0.3)
    a = g.pick(INTS if whole else FLOATS, where=lambda v: not whole or v.lo > limits(v.t)[0] or v.t in UNSIGNED)
    b = g.leaf(a.t, partner_dims(g, a.dims)[0], 1, 8)
    dims, lo, hi = broadcast(a.dims, b.dims), min(a.lo, 0), max(a.hi, 0)
    g.add("Div", [a, b], g.result(a.t, dims, lo, hi, 1 if whole else 0, a.err))


@recipe("Pow")
def build_pow(g):
    a = g.pick(("f32", "f64", "i32"), where=lambda v: v.most <= 16)
    n, most = g.dice.choice((0, 1, 2, 3)), max(a.most, 1.0)
    b = g.fixed(n, g.dice.choice((a.t, "f32", "i32", "i64")))
    g.add("Pow", [a, b], g.result(a.t, a.dims, -(most**n) if n % 2 else 0, most**n, 0, 2 * n * most ** max(n - 1, 0) * a.err, FUNCTION_UNITS))


@recipe("Mod")
def build_mod(g):
    fmod = g.chance(0.3)
    a = g.pick(FLOATS[:1] + ("f64",) if fmod else INTS, where=lambda v: v.exact and (v.t in FLOATS + UNSIGNED or v.lo > limits(v.t)[0]))
    b = g.leaf(a.t, partner_dims(g, a.dims)[0], 1, 8)
    g.add("Mod", [a, b], g.result(a.t, broadcast(a.dims, b.dims), min(0, max(a.lo, -8)), 8, min(a.step, b.step)), fmod=int(fmod))


for _name, _since in (("And", 7), ("Or", 7), ("Xor", 7)):
    def build_logic(g, name=_name):
        a, b, dims = pair(g, ("bool",))
        g.add(name, [a, b], g.result("bool", dims, 0, 1))
    recipe(_name, _since)(build_logic)

for _name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
    def build_bits(g, name=_name):
        a, b, dims = pair(g, INTS)
        g.add(name, [a, b], g.result(a.t, dims, *limits(a.t)))
    recipe(_name, 18)(build_bits)


@recipe("BitShift", 11)
def build_shift(g):
    a = g.pick(UNSIGNED)
    b = g.leaf(a.t, partner_dims(g, a.dims)[0], 0, 7)
    g.add("BitShift", [a, b], g.result(a.t, broadcast(a.dims, b.dims), *limits(a.t)), direction=g.dice.choice(("LEFT", "RIGHT")))


for _name, _since, _types in (("Equal", 13, ALL), ("Greater", 13, NUMBERS), ("Less", 13, NUMBERS), ("GreaterOrEqual", 16, NUMBERS), ("LessOrEqual", 16, NUMBERS)):
    def build_compare(g, name=_name, types=_types):
        a, b, dims = pair(g, types, exactly)
        g.add(name, [a, b], g.result("bool", dims, 0, 1))
    recipe(_name, _since)(build_compare)


@recipe("PRelu", 16)
def build_prelu(g):
    a = g.pick(FLOATS)
    dims = a.dims[1:] if a.rank > 1 and g.chance(0.5) else (1,) * max(a.rank - 1, 0) + a.dims[-1:]
    b = g.leaf(a.t, dims if g.chance(0.7) else (1,) * g.chance(0.5))
    if broadcast(a.dims, b.dims) != a.dims:
        raise Skip
    lo, hi = corners(lambda x, z: min(x, 0) * z + 0, a, b)
    g.add("PRelu", [a, b], g.result(a.t, a.dims, min(lo, 0), max(hi, a.hi, 0), min(a.step * b.step, a.step), a.err * max(1, b.most)))


@recipe("Where", 16)
def build_where(g):
    a, b, dims = pair(g, ALL)
    c = g.pick(("bool",), where=lambda v: broadcast(dims, v.dims) is not None) if g.chance(0.5) else g.leaf("bool", partner_dims(g, dims)[0])
    dims = broadcast(dims, c.dims)
    if dims is None:
        raise Skip
    g.add("Where", [c, a, b], g.result(a.t, dims, min(a.lo, b.lo), max(a.hi, b.hi), min(a.step, b.step), max(a.err, b.err), 0))


for _name, _types in (("Max", NUMBERS), ("Min", NUMBERS), ("Sum", FLOATS), ("Mean", FLOATS)):
    def build_variadic(g, name=_name, types=_types):
        a, b, dims = pair(g, types)
        items = [a, b][: g.dice.choice((1, 2, 2, 2))]
        if g.chance(0.3) and len(items) == 2:
            items.append(g.leaf(a.t, partner_dims(g, dims)[0]))
        dims = items[0].dims
        for i in items[1:]:
            dims = broadcast(dims, i.dims)
        lows, highs, n = [i.lo for i in items], [i.hi for i in items], len(items)
        step = min(i.step for i in items)
        if name == "Max":
            r = g.result(a.t, dims, max(lows), max(highs), step, max(i.err for i in items), 0)
        elif name == "Min":
            r = g.result(a.t, dims, min(lows), min(highs), step, max(i.err for i in items), 0)
        elif name == "Sum":
            r = g.result(a.t, dims, sum(lows), sum(highs), step, sum(i.err for i in items), n)
        else:
            partial = sum(i.most for i in items) * unit(a.t) * n
            r = g.result(a.t, dims, min(lows), max(highs), 0, max(i.err for i in items) + partial, 2)
        g.add(name, items, r)
    recipe(_name, 13)(build_variadic)
