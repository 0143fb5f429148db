"""One random graph from a seed, as a model that carries its inputs and error bounds (graphs.finish), and what is in it."""

from __future__ import annotations

import importlib

import onnx
from graphs import Graph, Skip, finish
from nesting import nest
from recipes import RECIPES

for _family in ("elementwise", "places", "products", "others"):
    importlib.import_module(f"recipes_{_family}")
NAMES = sorted(RECIPES)
SOME_NODES = (1, 1, 1, 2, 2, 3, 4, 6, 8, 12)


def generate(seed: int) -> tuple[onnx.ModelProto, set[str]]:
    g = Graph(seed)
    steps = g.dice.choice(SOME_NODES)
    made = 0
    while made < steps:
        build, since = RECIPES[g.dice.choice(NAMES)]
        if since > g.opset:
            continue
        before = len(g.nodes), dict(g.values)
        try:
            build(g)
            made += 1
        except Skip:
            del g.nodes[before[0]:]
            g.values = before[1]
    nest(g)
    g.operators |= {f"{n.domain}:{n.op_type}" if n.domain else n.op_type for n in g.nodes} - {f"local:{f.name}" for f in g.functions}
    return finish(g), g.operators
