"""A model of the harness: what is run, on what, and against whom; and the same model under other names.

Each file beside this one writes one model with onnx.helper: small, seeded, with symbolic dims where it should not matter how
large they are. It has a function that returns a Model; models.py lists them.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, F64, I64, BOOL = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.BOOL
value = helper.make_tensor_value_info
node = helper.make_node


@dataclass
class Model:
    name: str
    proto: onnx.ModelProto
    feeds: list[dict]  # runs of one session, in order: by input name, arrays (or lists and dicts, as the input's type says)
    reference: str = "onnxruntime"  # or "onnx", the standard's evaluator, for what onnxruntime cannot do
    random: tuple[str, ...] = ()  # outputs that nobody else can compute: the same bits everywhere are asked for
    rtol: float = 1e-5
    atol: float = 1e-6
    options: tuple[str, ...] = field(default=())  # more of `ortc test`'s


def make(nodes, inputs, outputs, initializers=(), opset=17, ir_version=8, **more) -> onnx.ModelProto:
    """initializers: (name, array or TensorProto) pairs."""
    constants = [a if isinstance(a, TensorProto) else numpy_helper.from_array(np.asarray(a), n) for n, a in initializers]
    graph = helper.make_graph(nodes, "made", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version, **more)


# ---- The same under other names ----------------------------------------------------------------------------------------


class Names:
    """A new name for every old one, of the kinds that exporters write; "" stays."""

    def __init__(self, dice: random.Random):
        self.dice, self.new = dice, {"": ""}

    def __call__(self, old: str) -> str:
        if old not in self.new:
            self.new[old] = self.dice.choice(("v{}", "/layer.{}/out", "{}", "a:{}", "Ünder {}")).format(
                f"{self.dice.randrange(1 << 40):010x}")
        return self.new[old]


def subgraphs(n: onnx.NodeProto):
    for attribute in n.attribute:
        yield from ([attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs)


def reads(n: onnx.NodeProto) -> set[str]:
    """What a node needs of the graph around it, captures of its subgraphs among it (and names of their own, which do no harm)."""
    names = set(n.input)
    for g in subgraphs(n):
        for inner in g.node:
            names |= reads(inner)
        names |= {o.name for o in g.output}
    return names


def shuffled(nodes: list[onnx.NodeProto], dice: random.Random) -> list[onnx.NodeProto]:
    """Any order in which nothing is read before it is made."""
    left, done = list(nodes), []
    made_here = {o for n in nodes for o in n.output}
    have: set[str] = set()
    while left:
        ready = [n for n in left if reads(n) & made_here <= have]
        n = dice.choice(ready)
        left.remove(n)
        done.append(n)
        have |= set(n.output)
    return done


def rename_graph(g: onnx.GraphProto, names: Names, symbols: Names) -> None:
    g.name = names(g.name)
    nodes = shuffled(list(g.node), names.dice)
    for n in nodes:
        n.name = names(f"node {n.name} {n.output[0]}")
        n.input[:] = [names(i) for i in n.input]
        n.output[:] = [names(o) for o in n.output]
        for inner in subgraphs(n):
            rename_graph(inner, names, symbols)
    initializers = list(g.initializer)
    names.dice.shuffle(initializers)
    for t in initializers:
        t.name = names(t.name)
    for info in [*g.input, *g.output, *g.value_info]:
        info.name = names(info.name)
        for d in info.type.tensor_type.shape.dim:
            if d.dim_param:
                d.dim_param = re.sub(r"\W", "_", symbols(d.dim_param))
    keep_nodes, keep_initializers = [onnx.NodeProto() for _ in nodes], [TensorProto() for _ in initializers]
    for kept, n in zip(keep_nodes, nodes):
        kept.CopyFrom(n)
    for kept, t in zip(keep_initializers, initializers):
        kept.CopyFrom(t)
    del g.node[:], g.initializer[:]
    g.node.extend(keep_nodes)
    g.initializer.extend(keep_initializers)


def varied(model: Model, seed: int) -> Model:
    """Other names for values, nodes and symbols; initializers and nodes in another order. Functions keep theirs."""
    dice = random.Random(f"{model.name} {seed}")
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    names = Names(dice)
    rename_graph(proto.graph, names, Names(dice))
    feeds = [{names(n): a for n, a in feed.items()} for feed in model.feeds]
    return Model(f"{model.name}_{seed}", proto, feeds, model.reference, tuple(names(n) for n in model.random), model.rtol,
                 model.atol, model.options)
