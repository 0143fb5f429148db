"""Random valid graphs for the differential test: values with ranges and error bounds, and a graph that grows by operators.

Every value knows its type, its extents (None: known when the model runs), the range that its elements lie in, and how far they may lie
from what exact arithmetic gives: `err`, an absolute bound. Numbers that start on a grid of quarters stay exact as long as the type holds
the grid (`step`), so most of what moves, compares and adds must agree to the bit; what rounds adds its unit roundoff, times what the
operators after it can make of that. Operators that jump (comparisons, rounding, sorting) take exact values only. So the tolerance of an
output follows from the graph, and never from what a provider made of it.

recipes*.py have a recipe for each operator; nesting.py puts parts of a graph into branches, loops and functions.
"""

from __future__ import annotations

import functools
import random

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ONNX_TYPE = {
    "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16,
    "i8": TensorProto.INT8, "i16": TensorProto.INT16, "i32": TensorProto.INT32, "i64": TensorProto.INT64,
    "u8": TensorProto.UINT8, "u16": TensorProto.UINT16, "u32": TensorProto.UINT32, "u64": TensorProto.UINT64,
    "bool": TensorProto.BOOL,
}  # fmt: skip
NUMPY_TYPE = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i16": np.int16, "i32": np.int32,
    "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_,
}  # fmt: skip
SCHEMA_TYPE = {
    "f32": "float", "f64": "double", "f16": "float16", "bf16": "bfloat16", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool",
}  # fmt: skip
FLOATS = ("f32", "f16", "bf16", "f64")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTS
ALL = NUMBERS + ("bool",)
BITS = {"f32": 24, "f16": 11, "bf16": 8, "f64": 53}  # of the significand
MOST = {"f32": 1e15, "f16": 2e4, "bf16": 1e15, "f64": 1e15}  # nothing comes near the type's infinities
MAX_ELEMENTS = 4096


class Skip(Exception):
    """The recipe does not fit the graph as it is; another is tried."""


def unit(t: str) -> float:
    """Half a unit in the last place of 1."""
    return 2.0 ** -BITS[t] if t in BITS else 0.0


def limits(t: str) -> tuple[int, int]:
    if t == "bool":
        return 0, 1
    info = np.iinfo(NUMPY_TYPE[t])
    return int(info.min), int(info.max)


@functools.cache
def schema_of(op: str, domain: str, opset: int):
    """None: onnx does not know it."""
    if domain not in ("", "ai.onnx.ml"):
        return None
    return onnx.defs.get_schema(op, 3 if domain else opset, domain)


def admits(schema, i: int, t: str) -> bool:
    """Whether the operator takes the type there in this version."""
    formal = schema.inputs[min(i, len(schema.inputs) - 1)]
    return f"tensor({SCHEMA_TYPE[t]})" in formal.types


class Value:
    def __init__(self, name: str, t: str, dims: tuple, lo: float, hi: float, step: float = 0.0, err: float = 0.0):
        self.name, self.t, self.dims = name, t, tuple(dims)
        self.lo, self.hi, self.step, self.err = lo, hi, step, err

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def late(self) -> bool:
        return None in self.dims

    @property
    def exact(self) -> bool:
        return self.err == 0

    @property
    def most(self) -> float:
        return max(abs(self.lo), abs(self.hi))

    @property
    def count(self) -> int:
        return int(np.prod(self.dims, dtype=np.int64)) if self.dims else 1


class Graph:
    """Nodes in order, and what they read: inputs with an array each, and constants."""

    def __init__(self, seed: int):
        self.dice = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.opset = self.dice.choice((13, 17, 18, 20, 21, 22, 23, 23, 24, 24))
        self.zeros = self.dice.random() < 0.08  # extents of 0 may come up
        self.large = self.dice.random() < 0.05
        self.nodes: list[onnx.NodeProto] = []
        self.values: dict[str, Value] = {}  # that nodes may read
        self.feeds: dict[str, np.ndarray] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.functions: list[onnx.FunctionProto] = []
        self.domains: set[str] = set()
        self.operators: set[str] = set()
        self.hidden: set[str] = set()  # values that are no tensors, or serve their maker only
        self.count = 0

    # ---- Chance --------------------------------------------------------------------------------------------------------

    def chance(self, p: float) -> bool:
        return self.dice.random() < p

    def extent(self) -> int:
        if self.zeros and self.chance(0.15):
            return 0
        if self.large and self.chance(0.3):
            return self.dice.choice((63, 100, 128, 257))
        return self.dice.choice((1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 33))

    def shape(self, rank: int | None = None, most: int = 4) -> tuple:
        rank = self.dice.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, most)) if rank is None else rank
        dims = [self.extent() for _ in range(rank)]
        while np.prod(dims, dtype=np.int64) > MAX_ELEMENTS:
            i = max(range(rank), key=lambda k: dims[k])
            dims[i] = (dims[i] + 1) // 2
        return tuple(dims)

    # ---- Values --------------------------------------------------------------------------------------------------------

    def name(self, stem: str = "v") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def array(self, t: str, dims: tuple, lo: float = -4, hi: float = 4, step: float = 0.25) -> np.ndarray:
        if t == "bool":
            return self.rng.integers(0, 2, dims).astype(bool)
        if t in FLOATS:
            return (self.rng.integers(int(np.ceil(lo / step)), int(np.floor(hi / step)) + 1, dims) * step).astype(NUMPY_TYPE[t])
        return self.rng.integers(int(max(lo, limits(t)[0])), int(min(hi, limits(t)[1])) + 1, dims).astype(NUMPY_TYPE[t])

    def put(self, a: np.ndarray, t: str, lo: float, hi: float, step: float, constant: bool | None = None) -> Value:
        """An array as an input or a constant."""
        constant = self.chance(0.4) if constant is None else constant
        name = self.name("c" if constant else "x")
        (self.constants if constant else self.feeds)[name] = a
        v = Value(name, t, a.shape, lo, hi, step)
        self.values[name] = v
        return v

    def leaf(self, t: str, dims: tuple, lo: float | None = None, hi: float | None = None, step: float | None = None,
             constant: bool | None = None) -> Value:
        lo = (-4 if t in FLOATS else -8) if lo is None else lo
        hi = (4 if t in FLOATS else 8) if hi is None else hi
        step = (0.25 if t in FLOATS else 1) if step is None else step
        if t not in FLOATS:
            lo, hi = max(lo, limits(t)[0]), min(hi, limits(t)[1])
        return self.put(self.array(t, dims, lo, hi, step), t, lo, hi, step, constant)

    def fixed(self, values, t: str = "i64") -> Value:
        """A constant that says something: axes, a shape. Seldom an input, which makes shapes known by value only."""
        a = np.asarray(values, NUMPY_TYPE[t])
        lo, hi = (float(a.min()), float(a.max())) if a.size else (0, 0)
        v = self.put(a, t, lo, hi, 1, not self.chance(0.06))
        self.hidden.add(v.name)
        return v

    def pick(self, types=FLOATS, rank: int | None = None, low: int = 0, high: int = 5, where=None, lo=None, hi=None) -> Value:
        """A value that is there, or a new one."""
        fits = [v for v in self.values.values()
                if v.t in types and v.name not in self.hidden and not v.late and low <= v.rank <= high and (rank is None or v.rank == rank)
                and v.count <= MAX_ELEMENTS and (where is None or where(v)) and (v.exact or v.err <= 1e-3 + 0.02 * v.most)]
        if fits and self.chance(0.85):
            return self.dice.choice(fits[-6:] if self.chance(0.7) else fits)
        for _ in range(8):
            dims = self.shape(self.dice.randint(low, min(high, 4)) if rank is None else rank)
            t = self.dice.choice([u for u in types if u in ("f32", "i32", "i64", "u8", "bool")] or list(types)) if self.chance(0.6) else \
                self.dice.choice(list(types))
            v = Value("", t, dims, lo or 0, hi or 0)
            if where is None or where(Value("", t, dims, -4 if lo is None else lo, 4 if hi is None else hi, 0.25)):
                return self.leaf(v.t, dims, lo, hi)
        raise Skip

    # ---- Nodes ---------------------------------------------------------------------------------------------------------

    def node(self, op: str, inputs: list, outputs: list[str], domain: str = "", **attributes) -> None:
        names = [i.name if isinstance(i, Value) else i or "" for i in inputs]
        while names and not names[-1]:
            names.pop()
        attributes = {k: a for k, a in attributes.items() if a is not None}
        schema = schema_of(op, domain, self.opset)
        if schema and not all(admits(schema, i, v.t) for i, v in enumerate(inputs) if isinstance(v, Value)):
            raise Skip
        self.nodes.append(helper.make_node(op, names, outputs, domain=domain, name=self.name("n") if self.chance(0.5) else "", **attributes))
        self.operators.add(f"{domain}:{op}" if domain else op)
        if domain:
            self.domains.add(domain)

    def result(self, t: str, dims, lo: float, hi: float, step: float = 0.0, err: float = 0.0, rounds: float = 1.0) -> Value:
        """What a node makes: lo, hi and err of exact arithmetic on inputs within their bounds. step: the grid that it lies on, if
        there is one. rounds: how many units of roundoff of the largest element the operator may add where the type does not hold the
        grid. Overflow is no subject of this test: such nodes are not made."""
        lo, hi, err = float(lo), float(hi), float(err)
        if dims and None not in dims and np.prod(dims, dtype=np.int64) > 4 * MAX_ELEMENTS:
            raise Skip
        if t in FLOATS:
            most = max(abs(lo), abs(hi))
            if not np.isfinite(most) or most > MOST[t] or not err < 1e6:
                raise Skip
            if not (err == 0 and step > 0 and most / step <= 2.0 ** BITS[t]):
                err, step = err + rounds * unit(t) * max(most, 2.0**-14 if t == "f16" else 2.0**-100), 0.0
        else:
            if err:
                raise Skip
            least, greatest = limits(t)
            if lo < least or hi > greatest:
                if t not in ("i32", "i64"):  # wraps: others have the sums in a wider type
                    raise Skip
                lo, hi = least, greatest
            step = 1
        return Value(self.name(), t, dims, lo, hi, step, err)

    def add(self, op: str, inputs: list, result: Value | list[Value], domain: str = "", **attributes) -> Value:
        results = result if isinstance(result, list) else [result]
        self.node(op, inputs, [r.name if r else "" for r in results], domain, **attributes)
        for r in results:
            if r:
                self.values[r.name] = r
        return results[0]

    def hide(self, v: Value) -> Value:
        self.hidden.add(v.name)
        return v


# ---- The model -----------------------------------------------------------------------------------------------------------


def info(v: Value, dims=None, shaped: bool = True) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(v.name, ONNX_TYPE[v.t], list(dims if dims is not None else v.dims) if shaped else None)


def read_names(nodes) -> set[str]:
    """What nodes read, their subgraphs included."""
    names: set[str] = set()
    for n in nodes:
        names.update(n.input)
        for a in n.attribute:
            for g in [a.g] if a.type == onnx.AttributeProto.GRAPH else a.graphs:
                names |= read_names(g.node) | {o.name for o in g.output}
    return names


def finish(g: Graph) -> onnx.ModelProto:
    """The case: a model whose inputs have their test values as initializers of the same name, and whose metadata has the error bound
    of each output ("bound y": "1e-6"). cases.py takes it apart again."""
    read = read_names(g.nodes)
    made = [o for n in g.nodes for o in n.output if o]
    outputs = [o for o in made if o in g.values and o not in read]
    outputs += [o for o in made if o in g.values and o in read and o not in g.hidden and g.chance(0.1)]
    feeds = {n: a for n, a in g.feeds.items() if n in read}
    symbolic = g.chance(0.5)
    symbols: dict[int, str] = {}

    def declared(name: str, a: np.ndarray):
        if not symbolic:
            return info(g.values[name])
        return info(g.values[name], [d if g.chance(0.2) else symbols.setdefault(d, f"d{d}") if g.chance(0.5) else f"{name}_{i}" if g.chance(0.8)
                                     else None for i, d in enumerate(a.shape)])

    inputs = [declared(n, a) for n, a in feeds.items()]
    kept = [numpy_helper.from_array(a, n) for n, a in g.constants.items() if n in read]
    graph = helper.make_graph(g.nodes, "made", inputs, [info(g.values[o], shaped=not g.values[o].late and g.chance(0.3)) for o in dict.fromkeys(outputs)],
                              kept + [numpy_helper.from_array(a, n) for n, a in feeds.items()])
    if g.chance(0.2):
        shown = set(outputs)
        graph.value_info.extend(info(v) for n, v in g.values.items() if n in made and n not in shown and not v.late and g.chance(0.5))
    opsets = [helper.make_opsetid("", g.opset)] + [helper.make_opsetid(d, {"ai.onnx.ml": 3}.get(d, 1)) for d in sorted(g.domains)]
    model = helper.make_model(graph, opset_imports=opsets, functions=g.functions, ir_version=10)
    helper.set_model_props(model, {f"bound {o}": repr(g.values[o].err) for o in dict.fromkeys(outputs)})
    return model
