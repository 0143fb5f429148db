"""Model 9: networks of pointwise operators: chains, diamonds, values that are read twice and that are outputs too, operands
that are broadcast in every way, conditions, integers. Whatever becomes one node of it must give what the nodes gave.
"""

from __future__ import annotations

import random

import numpy as np
from model import BOOL, F32, I64, Model, make, node, value

UNARY = ("Relu", "Sigmoid", "Tanh", "Erf", "Neg", "Abs", "Floor", "Softplus", "HardSwish", "Elu", "Sign", "Sin", "Atan", "Mish", "Softsign")
BINARY = ("Add", "Sub", "Mul", "Max", "Min")
COMPARE = ("Less", "Greater", "LessOrEqual", "Equal")
OPERANDS = {"x": ["n", 3, "w"], "y": ["n", 3, "w"], "row": ["w"], "column": [3, 1], "one": [1], "scalar": [], "batch": ["n", 1, 1]}


def network(dice: random.Random, count: int):
    """Nodes and names of outputs: values f.. of the shape of x, conditions c.., integers i.. ."""
    nodes, floats, conditions, integers, outputs = [], ["x", "y"], [], [], []
    for k in range(count):
        kind = dice.choice(("unary", "binary", "binary", "operand", "compare", "where", "logic", "cast", "integer"))
        recent = floats[-3:]
        a = floats[-1] if dice.random() < 0.7 else dice.choice(recent)
        if kind == "unary":
            nodes.append(node(dice.choice(UNARY), [a], [f"f{k}"]))
        elif kind == "binary":
            nodes.append(node(dice.choice(BINARY), dice.sample([a, dice.choice(recent)], 2), [f"f{k}"]))
        elif kind == "operand":
            nodes.append(node(dice.choice(BINARY), dice.sample([a, dice.choice([*OPERANDS, "half"])], 2), [f"f{k}"]))
            if not {a, *nodes[-1].input} & {"x", "y"} and not any(i.startswith("f") for i in nodes[-1].input):
                nodes.pop()
                continue
        elif kind == "compare":
            nodes.append(node(dice.choice(COMPARE), [a, dice.choice(recent)], [f"c{k}"]))
            conditions.append(f"c{k}")
            continue
        elif kind == "logic" and len(conditions) > 1:
            nodes.append(node(dice.choice(("And", "Or", "Xor")), dice.sample(conditions, 2), [f"c{k}"]))
            conditions.append(f"c{k}")
            continue
        elif kind == "where" and conditions:
            nodes.append(node("Where", [dice.choice(conditions), a, dice.choice(recent)], [f"f{k}"]))
        elif kind == "cast" and conditions:
            nodes.append(node("Cast", [dice.choice(conditions)], [f"f{k}"], to=F32))
        elif kind == "integer":
            left = dice.choice(["i", *integers])
            nodes.append(node(dice.choice(("Add", "Sub", "Mul", "Max")), [left, dice.choice(["i", "three", *integers])], [f"i{k}"]))
            integers.append(f"i{k}")
            continue
        else:
            continue
        floats.append(f"f{k}")
    read = {i for n in nodes for i in n.input}
    outputs = [o for n in nodes for o in n.output if o not in read or dice.random() < 0.02]
    return nodes, outputs


def pointwise() -> Model:
    dice, rng = random.Random(9), np.random.default_rng(9)
    nodes, outputs = [], []
    for part in range(24):
        some, names = network(dice, 4 + part)
        new = {o: f"{o}_{part}" for n in some for o in n.output}
        for n in some:
            n.input[:] = [new.get(i, i) for i in n.input]
            n.output[:] = [new[o] for o in n.output]
        nodes += some
        outputs += [new[o] for o in names]
    types = {"f": F32, "c": BOOL, "i": I64}
    shapes = {"f": ["n", 3, "w"], "c": ["n", 3, "w"], "i": ["n", "w"]}
    inputs = [value(name, F32, dims) for name, dims in OPERANDS.items()] + [value("i", I64, ["n", "w"])]
    sizes = {"n": (1, 2, 3, 1, 5), "w": (1, 17, 700, 4096, 64)}
    feeds = []
    for at in range(5):
        def shape(dims, at=at):
            return [sizes[d][at] if isinstance(d, str) else d for d in dims]
        feed = {name: rng.standard_normal(shape(dims)).astype(np.float32) for name, dims in OPERANDS.items()}
        feed["i"] = rng.integers(-9, 9, shape(["n", "w"]))
        feeds.append(feed)
    constants = [("half", np.float32(0.5)), ("three", np.int64(3))]
    return Model("pointwise", make(nodes, inputs, [value(o, types[o[0]], shapes[o[0]]) for o in outputs], constants, opset=18), feeds,
                 rtol=1e-4, atol=1e-5)
