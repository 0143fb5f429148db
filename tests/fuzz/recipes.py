"""What the recipes share: the table of them, operands that broadcast, products, windows, pictures.

A recipe makes a node, or a few that belong together, at the end of a graph: what it may read, with which attributes, and what comes of
ranges and error bounds (graphs.py). It is registered with the opset that its form needs, and raises Skip where the graph has nothing for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from graphs import BITS, FLOATS, Graph, Skip, Value, unit

RECIPES: dict[str, tuple[Callable[[Graph], object], int]] = {}
FUNCTION_UNITS = 16  # what a transcendental function may be off, in units of roundoff: 8 in the last place
MOVED = ("f32", "f16", "bf16", "f64", "i8", "u8", "i16", "i32", "i64", "bool")
PRODUCT_TYPES = ("f32", "f32", "f32", "f16", "f64", "bf16")


def recipe(name: str, since: int = 13):
    def register(f):
        RECIPES[name] = (f, since)
        return f
    return register


def partner_dims(g: Graph, dims: tuple) -> tuple[tuple, tuple]:
    """Extents that broadcast with these, and what comes out."""
    other = [1 if g.chance(0.25) else d for d in dims]
    for i, d in enumerate(dims):
        if d == 1 and g.chance(0.3):
            other[i] = g.extent()
    while other and g.chance(0.25):
        other.pop(0)
    if len(other) == len(dims) and len(dims) < 4 and g.chance(0.1):
        other.insert(0, g.dice.choice((1, 2, 3)))
    return tuple(other), np.broadcast_shapes(dims, tuple(other))


def broadcast(dims, other):
    try:
        return np.broadcast_shapes(dims, other)
    except ValueError:
        return None


def pair(g: Graph, types, where=None, lo=None, hi=None) -> tuple[Value, Value, tuple]:
    a = g.pick(types, where=where)
    fits = [v for v in g.values.values()
            if v.t == a.t and not v.late and v.name not in g.hidden and (where is None or where(v)) and broadcast(a.dims, v.dims) is not None
            and (v.exact or v.err <= 1e-3 + 0.02 * v.most) and (lo is None or v.lo >= lo) and (hi is None or v.hi <= hi)]
    if fits and g.chance(0.6):
        b = g.dice.choice(fits)
    else:
        b = g.leaf(a.t, partner_dims(g, a.dims)[0], lo, hi)
    if lo is None and g.chance(0.3):
        a, b = b, a
    return a, b, broadcast(a.dims, b.dims)


def corners(f, a: Value, b: Value) -> tuple[float, float]:
    y = [f(x, z) for x in (a.lo, a.hi) for z in (b.lo, b.hi)]
    return min(y), max(y)


def exactly(v):
    return v.exact


def moved(g: Graph, v: Value, dims) -> Value:
    return g.result(v.t, dims, v.lo, v.hi, v.step, v.err, 0)


def products(g: Graph, t: str, dims, k: int, a: Value, b: Value, extra: float = 0.0, exact: bool = True) -> Value:
    """Sums of k products, and of something as large as `extra`. In f16 and bf16 sums are f32's. Steps of an exact grid must be held by
    the type that sums are made in, whatever their order."""
    most = max(k, 1) * a.most * b.most + extra
    err = k * (a.most * b.err + b.most * a.err + a.err * b.err)
    sums = "f32" if t in ("f16", "bf16") else t
    step = min(a.step * b.step, 1) if exact and (t not in BITS or a.step * b.step > 0 and most / (a.step * b.step) <= 2.0 ** BITS[sums]) else 0.0
    if t in BITS and step == 0:
        err += (k + 2) * unit(sums) * most
    return g.result(t, dims, -most, most, step, err, 2)


def window(g: Graph, spatial: tuple, same: bool = False) -> tuple[dict, tuple]:
    """Kernel, strides, pads, dilations and the extents that come out."""
    kernel = [g.dice.choice((1, 2, 3, 3)) for _ in spatial]
    strides, dilations = [g.dice.choice((1, 1, 2)) for _ in spatial], [g.dice.choice((1, 1, 1, 2)) for _ in spatial]
    pads = [g.dice.choice((0, 0, 1)) if k > 1 else 0 for k in kernel] + [g.dice.choice((0, 0, 1)) if k > 1 else 0 for k in kernel]
    n = len(spatial)
    out = tuple((d + pads[i] + pads[i + n] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i, d in enumerate(spatial))
    if min(out) < 1 or any(d + pads[i] + pads[i + n] < dilations[i] * (kernel[i] - 1) + 1 for i, d in enumerate(spatial)):
        raise Skip
    return {"kernel_shape": kernel, "strides": strides, "pads": pads, "dilations": dilations}, out


def picture(g: Graph, types=("f32", "f32", "f16", "bf16"), channels=None) -> Value:
    """A batch of pictures, lines or volumes, if need be a new one."""
    fits = [v for v in g.values.values() if v.t in types and 3 <= v.rank <= 5 and not v.late and v.count and v.name not in g.hidden and v.most < 1e4
            and v.err < 1e-3 + 0.02 * v.most and min(v.dims[2:]) > 1 and (channels is None or channels(v.dims[1]))]
    if fits and g.chance(0.7):
        return g.dice.choice(fits)
    rank = g.dice.choice((3, 4, 4, 4, 5))
    c = g.dice.choice([k for k in (1, 2, 3, 4, 6, 8, 12, 16, 17, 32) if channels is None or channels(k)])
    t = g.dice.choice(types)
    return g.leaf(t, (g.dice.choice((1, 1, 2)), c) + tuple(g.dice.randint(2, 9 if rank < 5 else 4) for _ in range(rank - 2)))


def normalised(g: Graph, v: Value, n: int, epsilon: float, scale: Value | None, shift: Value | None) -> Value:
    """(x - mean) / sqrt(variance + epsilon) * scale + shift over n elements: at most sqrt(n), and stretched by 2/sqrt(epsilon)."""
    u = unit("f32" if v.t in ("f16", "bf16") else v.t)
    err = (2 * v.err + (n + 8) * u * v.most) * 2 / math.sqrt(epsilon)
    s, b = scale.most if scale else 1.0, shift.most if shift else 0.0
    if err > 0.05:
        raise Skip
    return g.result(v.t, v.dims, -math.sqrt(n) * s - b, math.sqrt(n) * s + b, 0, err * s + 16 * u * (math.sqrt(n) * s + b), 8)
