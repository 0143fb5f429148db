"""Recipes: reductions, and what moves elements: shapes, indices, extents that only the run knows."""

from __future__ import annotations

import math

import numpy as np
from graphs import ALL, BITS, FLOATS, NUMPY_TYPE, Graph, Skip, Value, unit
from onnx import numpy_helper
from recipes import FUNCTION_UNITS, MOVED, corners, exactly, moved, partner_dims, recipe

# ---- Reductions --------------------------------------------------------------------------------------------------------------


def some_axes(g: Graph, rank: int) -> tuple[list[int] | None, list[int]]:
    """As written (some negative; None: all), and as they are."""
    if rank == 0 or g.chance(0.2):
        return None, list(range(rank))
    axes = g.dice.sample(range(rank), g.dice.randint(1, rank))
    return [a - rank if g.chance(0.4) else a for a in axes], sorted(axes)


def reduced(dims, axes, keep: bool) -> tuple:
    return tuple(1 if i in axes else d for i, d in enumerate(dims) if keep or i not in axes)


REDUCTIONS = {"ReduceSum": 13, "ReduceMean": 13, "ReduceMax": 13, "ReduceMin": 13, "ReduceProd": 13, "ReduceL1": 13, "ReduceL2": 13,
              "ReduceSumSquare": 13, "ReduceLogSum": 13, "ReduceLogSumExp": 13}  # fmt: skip
for _name, _since in REDUCTIONS.items():
    def build_reduce(g, name=_name):
        whole = name not in ("ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
        where = (lambda v: v.lo >= 0.25) if name == "ReduceLogSum" else (lambda v: v.most <= 16) if name == "ReduceLogSumExp" else None
        types = ("f32", "f16", "f64", "bf16") + (("i32", "i64") if whole else ())
        if name in ("ReduceMax", "ReduceMin"):
            types += ("u8", "i8")
        v = g.pick(types, where=where, lo=0.25 if name == "ReduceLogSum" else None, hi=4 if name == "ReduceLogSum" else None)
        written, axes = some_axes(g, v.rank)
        n = int(np.prod([v.dims[a] for a in axes], dtype=np.int64))
        if n == 0 and name not in ("ReduceSum", "ReduceL1", "ReduceSumSquare"):
            raise Skip
        keep = g.chance(0.6)
        dims, u, m = reduced(v.dims, axes, keep), unit(v.t), v.most
        sums = lambda each: each * n * u * (n + 1)  # noqa: E731  partial sums of n terms, rounded n times
        if name == "ReduceSum":
            r = g.result(v.t, dims, min(n * v.lo, 0), max(n * v.hi, 0), v.step, n * v.err, n + 1)
        elif name == "ReduceMean":
            r = g.result(v.t, dims, v.lo, v.hi, 0, v.err + sums(m) / n, 2)
        elif name in ("ReduceMax", "ReduceMin"):
            r = g.result(v.t, dims, v.lo, v.hi, v.step, v.err, 0)
        elif name == "ReduceProd":
            if n > 6 or max(m, 1) ** n > 1e6 and v.t in FLOATS:
                raise Skip
            most = max(m, 1.0) ** n
            r = g.result(v.t, dims, -most, most, v.step**n if v.t in BITS else 1, n * most * v.err * 2, n + 1)
        elif name == "ReduceL1":
            r = g.result(v.t, dims, 0, n * m, v.step, n * v.err, n + 1)
        elif name == "ReduceSumSquare":
            r = g.result(v.t, dims, 0, n * m * m, v.step**2 if v.t in BITS else 1, n * (2 * m + v.err) * v.err, n + 2)
        elif name == "ReduceL2":  # |x| grows by at most sqrt(n) * err; the root of a small sum stretches its rounding
            r = g.result(v.t, dims, 0, math.sqrt(n) * m, 0, math.sqrt(n) * v.err + math.sqrt(sums(m * m)) if v.err else math.sqrt(n) * m * u * (n + 4), 4)
        elif name == "ReduceLogSum":
            r = g.result(v.t, dims, math.log(n * v.lo) - 1, math.log(n * v.hi) + 1, 0, v.err / v.lo + u * (n + 4) * v.hi / v.lo, FUNCTION_UNITS)
        else:
            r = g.result(v.t, dims, v.lo, v.hi + math.log(n), 0, v.err + u * (n + FUNCTION_UNITS) * max(1, m), FUNCTION_UNITS)
        empty = written is None
        if name == "ReduceSum" or g.opset >= 18:
            g.add(name, [v, None if empty else g.fixed(written)], r, keepdims=int(keep))
        else:
            g.add(name, [v], r, keepdims=int(keep), axes=None if empty else written)
    recipe(_name, _since)(build_reduce)

for _name in ("ArgMax", "ArgMin"):
    def build_arg(g, name=_name):
        v = g.pick(("f32", "f16", "bf16", "f64", "i32", "i8", "u8", "i64"), low=1, where=lambda v: v.exact and v.count)
        axis, keep = g.dice.randrange(v.rank), g.chance(0.6)
        r = g.result("i64", reduced(v.dims, [axis], keep), 0, v.dims[axis] - 1)
        g.add(name, [v], r, axis=axis - v.rank * g.chance(0.4), keepdims=int(keep), select_last_index=int(g.chance(0.3)))
    recipe(_name, 13)(build_arg)


@recipe("CumSum", 14)
def build_cumsum(g):
    v = g.pick(("f32", "f64", "i32", "i64"), low=1)
    axis = g.dice.randrange(v.rank)
    n = max(v.dims[axis], 1)
    r = g.result(v.t, v.dims, min(n * v.lo, 0), max(n * v.hi, 0), v.step, n * v.err, n + 1)
    g.add("CumSum", [v, g.fixed(axis - v.rank * g.chance(0.4), g.dice.choice(("i32", "i64")))], r, exclusive=int(g.chance(0.4)), reverse=int(g.chance(0.4)))


@recipe("TopK", 11)
def build_topk(g):
    v = g.pick(("f32", "f64", "i32", "i64", "f16"), low=1, where=lambda v: v.exact and v.count)
    axis = g.dice.randrange(v.rank)
    k = g.dice.randint(1, v.dims[axis])
    dims = v.dims[:axis] + (k,) + v.dims[axis + 1:]
    r = [g.result(v.t, dims, v.lo, v.hi, v.step), g.result("i64", dims, 0, v.dims[axis])]
    g.add("TopK", [v, g.fixed([k])], r, axis=axis - v.rank * g.chance(0.4), largest=int(g.chance(0.5)), sorted=1)


# ---- Shapes and places ---------------------------------------------------------------------------------------------------------


def split_extent(g: Graph, n: int) -> list[int]:
    """n as a product."""
    out = []
    while n > 1 and g.chance(0.6):
        d = g.dice.choice([k for k in range(1, n + 1) if n % k == 0])
        out.append(d)
        n //= d
    return out + [n]


@recipe("Reshape", 14)
def build_reshape(g):
    v = g.pick(MOVED)
    if v.count == 0:
        dims = list(v.dims)
        g.dice.shuffle(dims)
        return g.add("Reshape", [v, g.fixed(dims)], moved(g, v, dims), allowzero=1)
    dims = split_extent(g, v.count)[:5]
    dims[-1] *= v.count // int(np.prod(dims, dtype=np.int64))
    while len(dims) < 5 and g.chance(0.2):
        dims.insert(g.dice.randint(0, len(dims)), 1)
    written = list(dims)
    if g.chance(0.5):
        written[g.dice.randrange(len(dims))] = -1
    for i in range(min(len(dims), v.rank)):
        if dims[i] == v.dims[i] and written[i] != -1 and g.chance(0.4):
            written[i] = 0
    return g.add("Reshape", [v, g.fixed(written)], moved(g, v, dims))


@recipe("Flatten", 13)
def build_flatten(g):
    v = g.pick(MOVED)
    axis = g.dice.randint(0, v.rank)
    dims = tuple(int(np.prod(d, dtype=np.int64)) for d in (v.dims[:axis], v.dims[axis:]))
    g.add("Flatten", [v], moved(g, v, dims), axis=axis - v.rank if axis < v.rank and g.chance(0.4) else axis)


@recipe("Squeeze", 13)
def build_squeeze(g):
    v = g.pick(MOVED, where=lambda v: 1 in v.dims)
    ones = [i for i, d in enumerate(v.dims) if d == 1]
    axes = g.dice.sample(ones, g.dice.randint(1, len(ones)))
    if g.chance(0.2):
        return g.add("Squeeze", [v], moved(g, v, [d for d in v.dims if d != 1]))
    return g.add("Squeeze", [v, g.fixed([a - v.rank * g.chance(0.4) for a in axes])], moved(g, v, [d for i, d in enumerate(v.dims) if i not in axes]))


@recipe("Unsqueeze", 13)
def build_unsqueeze(g):
    v = g.pick(MOVED, high=3)
    n = g.dice.choice((1, 1, 2))
    axes = g.dice.sample(range(v.rank + n), n)
    dims, rest = [], list(v.dims)
    for i in range(v.rank + n):
        dims.append(1 if i in axes else rest.pop(0))
    g.add("Unsqueeze", [v, g.fixed([a - (v.rank + n) * g.chance(0.4) for a in axes])], moved(g, v, dims))


@recipe("Transpose", 13)
def build_transpose(g):
    v = g.pick(MOVED)
    perm = list(range(v.rank))
    g.dice.shuffle(perm)
    if not perm or g.chance(0.15):
        return g.add("Transpose", [v], moved(g, v, v.dims[::-1]))
    return g.add("Transpose", [v], moved(g, v, [v.dims[p] for p in perm]), perm=perm)


@recipe("Expand", 13)
def build_expand(g):
    v = g.pick(MOVED, where=lambda v: v.count <= 512)
    other, dims = partner_dims(g, v.dims)
    if int(np.prod(dims, dtype=np.int64)) > 4096:
        raise Skip
    g.add("Expand", [v, g.fixed(other)], moved(g, v, dims))


@recipe("Tile", 13)
def build_tile(g):
    v = g.pick(MOVED, low=1, where=lambda v: v.count <= 512)
    repeats = [g.dice.choice((1, 1, 2, 3)) for _ in v.dims]
    g.add("Tile", [v, g.fixed(repeats)], moved(g, v, [a * b for a, b in zip(v.dims, repeats)]))


@recipe("Concat", 13)
def build_concat(g):
    v = g.pick(MOVED, low=1)
    axis = g.dice.randrange(v.rank)
    items = [v]
    for _ in range(g.dice.randint(0, 3)):
        fits = [w for w in g.values.values() if w.t == v.t and w.rank == v.rank and not w.late and w.name not in g.hidden and all(
            w.dims[i] == v.dims[i] for i in range(v.rank) if i != axis)]
        items.append(g.dice.choice(fits) if g.chance(0.6) else g.leaf(v.t, v.dims[:axis] + (g.extent(),) + v.dims[axis + 1:]))
    g.dice.shuffle(items)
    dims = v.dims[:axis] + (sum(i.dims[axis] for i in items),) + v.dims[axis + 1:]
    r = g.result(v.t, dims, min(i.lo for i in items), max(i.hi for i in items), min(i.step for i in items), max(i.err for i in items), 0)
    g.add("Concat", items, r, axis=axis - v.rank * g.chance(0.4))


@recipe("Split", 13)
def build_split(g):
    v = g.pick(MOVED, low=1, where=lambda v: v.count)
    axis = g.dice.randrange(v.rank)
    n = v.dims[axis]
    if g.opset >= 18 and g.chance(0.4):
        parts = g.dice.randint(1, min(n, 4))
        each = -(-n // parts)
        if each * (parts - 1) >= n:
            raise Skip
        extents, inputs, more = [each] * (parts - 1) + [n - each * (parts - 1)], [v], {"num_outputs": parts}
    else:
        cut = sorted(g.dice.randint(0, n) for _ in range(g.dice.randint(0, 3)))
        extents = [b - a for a, b in zip([0, *cut], [*cut, n])]
        if not g.zeros and 0 in extents:
            raise Skip
        inputs, more = [v, g.fixed(extents)], {}
    g.add("Split", inputs, [moved(g, v, v.dims[:axis] + (e,) + v.dims[axis + 1:]) for e in extents], axis=axis - v.rank * g.chance(0.4), **more)


@recipe("Slice", 13)
def build_slice(g):
    v = g.pick(MOVED, low=1)
    axes = g.dice.sample(range(v.rank), g.dice.randint(1, v.rank))
    dims, starts, ends, steps = list(v.dims), [], [], []
    for a in axes:
        n = v.dims[a]
        step = g.dice.choice((1, 1, 1, 2, 3, -1, -2))
        start, end = g.dice.randint(-n - 2, n + 2), g.dice.randint(-n - 2, n + 2)
        if g.chance(0.2):
            end = 2**63 - 1 if step > 0 else -(2**63) + 1
        dims[a] = len(range(*slice(start, end, step).indices(n)))
        starts, ends, steps = starts + [start], ends + [end], steps + [step]
    if 0 in dims and not g.zeros and 0 not in v.dims:
        raise Skip
    t = g.dice.choice(("i64", "i64", "i32")) if all(abs(e) < 2**31 for e in ends) else "i64"
    plain = all(s == 1 for s in steps) and g.chance(0.5)
    in_order = axes == list(range(len(axes))) and g.chance(0.5)
    g.add("Slice", [v, g.fixed(starts, t), g.fixed(ends, t), None if in_order else g.fixed([a - v.rank * g.chance(0.4) for a in axes], t),
                    None if plain else g.fixed(steps, t)], moved(g, v, dims))


@recipe("Pad", 13)
def build_pad(g):
    v = g.pick(("f32", "f64", "i32", "i64", "u8", "i8", "f16"), low=1, where=lambda v: v.count)
    mode = g.dice.choice(("constant", "constant", "edge", "reflect"))
    pads = [g.dice.choice((0, 0, 1, 2, -1 if mode == "constant" else 1)) for _ in range(2 * v.rank)]
    if mode == "reflect":
        pads = [min(p, v.dims[i % v.rank] - 1) for i, p in enumerate(pads)]
    dims = [d + pads[i] + pads[i + v.rank] for i, d in enumerate(v.dims)]
    if min(dims) <= 0:
        raise Skip
    with_value = mode == "constant" and g.chance(0.5)
    lo, hi = (min(v.lo, 0), max(v.hi, 2)) if mode == "constant" else (v.lo, v.hi)
    r = g.result(v.t, dims, lo, hi, min(v.step, 1), v.err, 0)
    g.add("Pad", [v, g.fixed(pads), g.fixed(2, v.t) if with_value else None], r, mode=mode)


@recipe("Gather", 13)
def build_gather(g):
    v = g.pick(MOVED, low=1, high=3, where=lambda v: v.count)
    axis = g.dice.randrange(v.rank)
    n = v.dims[axis]
    at = g.leaf(g.dice.choice(("i64", "i64", "i32")), g.shape(g.dice.choice((0, 1, 1, 2)), 2)[:2], -n, n - 1)
    dims = v.dims[:axis] + at.dims + v.dims[axis + 1:]
    if np.prod(dims, dtype=np.int64) > 8192:
        raise Skip
    g.add("Gather", [v, g.hide(at)], moved(g, v, dims), axis=axis - v.rank * g.chance(0.4))


@recipe("GatherElements", 13)
def build_gather_elements(g):
    v = g.pick(MOVED, low=1, where=lambda v: v.count)
    axis = g.dice.randrange(v.rank)
    dims = tuple(g.dice.randint(1, 6) if i == axis else g.dice.randint(1, d) for i, d in enumerate(v.dims))
    at = g.leaf(g.dice.choice(("i64", "i32")), dims, -v.dims[axis], v.dims[axis] - 1)
    g.add("GatherElements", [v, g.hide(at)], moved(g, v, dims), axis=axis - v.rank * g.chance(0.4))


def nd_indices(g: Graph, dims: tuple, head: tuple, k: int, distinct: bool) -> Value:
    n = int(np.prod(head, dtype=np.int64)) if head else 1
    if distinct:
        space = int(np.prod(dims[:k], dtype=np.int64))
        if n > space:
            raise Skip
        flat = g.rng.permutation(space)[:n]
        a = np.stack(np.unravel_index(flat, dims[:k]), -1).reshape(*head, k)
    else:
        a = np.stack([g.rng.integers(-d, d, head) for d in dims[:k]], -1)
    return g.hide(g.put(a.astype(np.int64), "i64", -max(dims), max(dims), 1))


@recipe("GatherND", 13)
def build_gather_nd(g):
    v = g.pick(MOVED, low=1, high=3, where=lambda v: v.count)
    k = g.dice.randint(1, v.rank)
    head = tuple(g.dice.randint(1, 4) for _ in range(g.dice.randint(0, 2)))
    at = nd_indices(g, v.dims, head, k, False)
    g.add("GatherND", [v, at], moved(g, v, head + v.dims[k:]))


@recipe("ScatterND", 18)
def build_scatter_nd(g):
    v = g.pick(("f32", "f64", "i32", "i64", "f16"), low=1, high=3, where=lambda v: v.count)
    k = g.dice.randint(1, v.rank)
    how = g.dice.choice(("none", "none", "add", "mul", "max", "min"))
    head = tuple(g.dice.randint(1, 3) for _ in range(g.dice.randint(1, 2)))
    at = nd_indices(g, v.dims, head, k, True)
    scatter(g, "ScatterND", v, at, head + v.dims[k:], how, reduction=how)


def scatter(g, op, v, at, dims, how, **attributes):
    u = g.leaf(v.t, dims)
    step = min(v.step, u.step)
    if how == "none" or how in ("max", "min"):
        r = g.result(v.t, v.dims, min(v.lo, u.lo), max(v.hi, u.hi), step, v.err, 0)
    elif how == "add":
        r = g.result(v.t, v.dims, v.lo + min(u.lo, 0), v.hi + max(u.hi, 0), step, v.err)
    else:
        lo, hi = corners(lambda x, z: x * z, v, u)
        r = g.result(v.t, v.dims, min(lo, v.lo), max(hi, v.hi), min(v.step * u.step, v.step), v.err * max(1, u.most))
    g.add(op, [v, at, u], r, **attributes)


@recipe("ScatterElements", 18)
def build_scatter_elements(g):
    v = g.pick(("f32", "f64", "i32", "i64", "f16"), low=1, high=3, where=lambda v: v.count)
    axis = g.dice.randrange(v.rank)
    how = g.dice.choice(("none", "none", "add", "mul", "max", "min"))
    dims = tuple(g.dice.randint(1, d) for d in v.dims)
    lines = g.rng.permuted(np.broadcast_to(np.arange(v.dims[axis]).reshape([-1 if i == axis else 1 for i in range(v.rank)]),
                                           [v.dims[axis] if i == axis else d for i, d in enumerate(dims)]), axis=axis)
    a = np.take(lines, range(dims[axis]), axis).astype(np.int64)
    at = g.hide(g.put(a - v.dims[axis] * g.rng.integers(0, 2, a.shape), "i64", -v.dims[axis], v.dims[axis], 1))
    scatter(g, "ScatterElements", v, at, dims, how, axis=axis - v.rank * g.chance(0.4), reduction=how)


@recipe("Shape", 15)
def build_shape(g):
    v = g.pick(ALL)
    start, end = (g.dice.randint(-v.rank - 1, v.rank), g.dice.choice((None, g.dice.randint(-v.rank - 1, v.rank + 1)))) if g.chance(0.4) else (None, None)
    dims = v.dims[slice(start, end)]
    r = g.result("i64", (len(dims),), min(dims, default=0), max(dims, default=0))
    if not dims and not g.zeros:
        raise Skip
    g.add("Shape", [v], r, start=start, end=end)


@recipe("Size", 13)
def build_size(g):
    v = g.pick(ALL)
    g.add("Size", [v], g.result("i64", (), v.count, v.count))


@recipe("ReshapeByShape", 14)
def build_reshape_by_shape(g):
    """What exporters write: extents that are computed from another tensor's shape."""
    v = g.pick(MOVED, low=2, where=lambda v: v.count)
    s = g.hide(g.add("Shape", [v], g.result("i64", (v.rank,), 0, max(v.dims))))
    first = g.hide(g.add("Gather", [s, g.fixed(0)], g.result("i64", (), 0, max(v.dims)), axis=0))
    one = g.hide(g.add("Unsqueeze", [first, g.fixed([0])], g.result("i64", (1,), 0, max(v.dims))))
    to = g.hide(g.add("Concat", [one, g.fixed([-1])], g.result("i64", (2,), -1, max(v.dims)), axis=0))
    g.add("Reshape", [v, to], moved(g, v, (v.dims[0], v.count // v.dims[0])))


@recipe("ConstantOfShape", 9)
def build_constant_of_shape(g):
    t = g.dice.choice(("f32", "i64", "i32", "bool", "f16", "f64"))
    dims = g.shape()
    a = g.array(t, (1,))
    value = float(a[0])
    step = 0.25 if t in FLOATS else 1
    g.add("ConstantOfShape", [g.fixed(dims)], g.result(t, dims, value, value, step), value=numpy_helper.from_array(a))


@recipe("Constant", 13)
def build_constant(g):
    t = g.dice.choice(("f32", "i64", "i32", "u8", "bool"))
    dims = g.shape()
    step = 0.25 if t in FLOATS else 1
    lo, hi = (-4, 4) if t != "u8" else (0, 4)
    g.add("Constant", [], g.result(t, dims, lo if t != "bool" else 0, hi if t != "bool" else 1, step), value=numpy_helper.from_array(g.array(t, dims, lo, hi)))


@recipe("Range", 11)
def build_range(g):
    t = g.dice.choice(("f32", "i32", "i64", "f64"))
    step = g.dice.choice((1, 2, 3, -1, -2))
    n, start = g.dice.randint(1, 40), g.dice.randint(-9, 9)
    late = g.chance(0.3)
    r = g.result(t, (None if late else n,), min(start, start + step * n), max(start, start + step * n), 1)
    parts = [g.hide(g.put(np.asarray(a, NUMPY_TYPE[t]), t, a, a, 1, not late))
             for a in (start, start + step * n, step)]
    g.add("Range", parts, r)


@recipe("EyeLike", 9)
def build_eye(g):
    v = g.pick(("f32", "f64", "i32", "i64"), rank=2)
    g.add("EyeLike", [v], g.result(v.t, v.dims, 0, 1, 1), k=g.dice.randint(-3, 3))


@recipe("OneHot", 11)
def build_one_hot(g):
    v = g.pick(("i32", "i64"), high=3, where=lambda v: v.count <= 256)
    depth, t = g.dice.randint(1, 9), g.dice.choice(("f32", "i64", "i32"))
    axis = g.dice.randint(0, v.rank)
    dims = v.dims[:axis] + (depth,) + v.dims[axis:]
    g.add("OneHot", [v, g.fixed(depth), g.fixed([-1, 3], t)], g.result(t, dims, -1, 3, 1), axis=axis - (v.rank + 1) * g.chance(0.4))


@recipe("Trilu", 14)
def build_trilu(g):
    v = g.pick(("f32", "f64", "i64", "i32", "bool"), low=2, where=lambda v: v.count)
    r = g.result(v.t, v.dims, min(v.lo, 0), max(v.hi, 0), v.step, v.err, 0)
    g.add("Trilu", [v, g.fixed(g.dice.randint(-3, 3)) if g.chance(0.7) else None], r, upper=int(g.chance(0.5)))


@recipe("DepthToSpace", 13)
def build_depth_to_space(g):
    b = g.dice.choice((2, 2, 3))
    v = g.pick(("f32", "f16", "i32", "u8"), rank=4, where=lambda v: v.dims[1] % (b * b) == 0 and v.count) if g.chance(0.3) else \
        g.leaf("f32", (g.dice.randint(1, 2), b * b * g.dice.randint(1, 3), g.dice.randint(1, 4), g.dice.randint(1, 4)))
    n, c, h, w = v.dims
    g.add("DepthToSpace", [v], moved(g, v, (n, c // (b * b), h * b, w * b)), blocksize=b, mode=g.dice.choice(("DCR", "CRD")))


@recipe("SpaceToDepth", 13)
def build_space_to_depth(g):
    b = g.dice.choice((2, 2, 3))
    v = g.leaf("f32", (g.dice.randint(1, 2), g.dice.randint(1, 4), b * g.dice.randint(1, 4), b * g.dice.randint(1, 4)))
    n, c, h, w = v.dims
    g.add("SpaceToDepth", [v], moved(g, v, (n, c * b * b, h // b, w // b)), blocksize=b)


@recipe("ReverseSequence", 10)
def build_reverse(g):
    v = g.pick(("f32", "i64", "f64", "i32"), low=2, where=lambda v: v.count)
    time = g.dice.choice((0, 1))
    n = g.leaf("i64", (v.dims[1 - time],), 1, v.dims[time])
    g.add("ReverseSequence", [v, g.hide(n)], moved(g, v, v.dims), time_axis=time, batch_axis=1 - time)


@recipe("CenterCropPad", 18)
def build_crop(g):
    v = g.pick(("f32", "f64", "i32", "u8"), low=1, where=lambda v: v.count)
    axes = sorted(g.dice.sample(range(v.rank), g.dice.randint(1, v.rank)))
    to = [g.dice.randint(1, 9) for _ in axes]
    dims = list(v.dims)
    for a, d in zip(axes, to):
        dims[a] = d
    g.add("CenterCropPad", [v, g.fixed(to)], g.result(v.t, dims, min(v.lo, 0), max(v.hi, 0), v.step, v.err, 0), axes=axes)


@recipe("NonZero", 13)
def build_nonzero(g):
    v = g.pick(("f32", "i64", "bool", "i32", "u8"), low=1, where=exactly)
    g.add("NonZero", [v], g.result("i64", (v.rank, None), 0, max(v.dims)))


@recipe("Compress", 11)
def build_compress(g):
    v = g.pick(("f32", "i64", "f64", "u8", "bool"), low=1)
    axis = g.dice.randrange(v.rank)
    keep = g.leaf("bool", (g.dice.randint(1, max(v.dims[axis], 1)),))
    flat = g.chance(0.3)
    if v.dims[axis] == 0:
        raise Skip
    g.add("Compress", [v, keep], moved(g, v, (None,) if flat else v.dims[:axis] + (None,) + v.dims[axis + 1:]), axis=None if flat else axis - v.rank * g.chance(0.4))


@recipe("Unique", 11)
def build_unique(g):
    v = g.pick(("f32", "i64", "f64", "i8"), low=1, where=lambda v: v.exact and v.count)
    axis = g.dice.randrange(v.rank) if g.chance(0.3) else None
    dims = (None,) if axis is None else v.dims[:axis] + (None,) + v.dims[axis + 1:]
    outs = [moved(g, v, dims)] + [g.result("i64", (None,), 0, v.count) if g.chance(0.5) else None for _ in range(3)]
    while outs[-1] is None:
        outs.pop()
    g.add("Unique", [v], outs, axis=axis, sorted=int(g.chance(0.6)))


@recipe("LateUnary", 13)
def build_late(g):
    """Something behind an extent that only the run knows."""
    late = [v for v in g.values.values() if v.late and v.name not in g.hidden]
    if not late:
        raise Skip
    v = g.dice.choice(late)
    if v.t in ("f32", "i64") and g.chance(0.5):
        g.add("Add", [v, v], g.result(v.t, v.dims, 2 * v.lo, 2 * v.hi, v.step, 2 * v.err))
    elif v.rank and g.chance(0.5):
        g.add("Transpose", [v], moved(g, v, v.dims[::-1]), perm=list(range(v.rank))[::-1])
    elif g.chance(0.5):
        g.add("Shape", [v], g.result("i64", (v.rank,), 0, 1 << 20))
    else:
        g.add("Concat", [v, v], moved(g, v, (None,) + v.dims[1:]), axis=0)


@recipe("Resize", 13)
def build_resize(g):
    v = g.leaf(g.dice.choice(("f32", "f32", "f16", "u8")), (1, g.dice.randint(1, 3), g.dice.randint(2, 7), g.dice.randint(2, 7)))
    mode = g.dice.choice(("nearest", "nearest", "linear", "cubic")) if v.t == "f32" else "nearest"
    where = g.dice.choice(("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"))
    scale = g.dice.choice((2.0, 0.5, 1.0, 4.0))
    dims = v.dims[:2] + tuple(int(d * scale) for d in v.dims[2:])
    if 0 in dims or (scale == 0.5 and any(d % 2 for d in v.dims[2:])):
        raise Skip
    more = {"nearest_mode": g.dice.choice(("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"))} if mode == "nearest" else {}
    if mode == "nearest" and where == "align_corners":
        raise Skip  # positions that fall between two elements depend on how the quotient rounds
    by_scale = g.chance(0.5) and where != "align_corners"
    target = [None, g.fixed([1, 1, scale, scale], "f32")] if by_scale else [None, None, g.fixed(dims)]
    if mode == "nearest":
        r = moved(g, v, dims)
    else:
        r = g.result(v.t, dims, 2 * v.lo, 2 * v.hi, 0, v.err * 2 + 64 * unit("f32") * v.most * 8, 16)
    g.add("Resize", [v, *target], r, mode=mode, coordinate_transformation_mode=where, **more)
