"""Puts parts of a graph into branches, loop bodies and functions: the meaning stays, the form is what control flow makes of it."""

from __future__ import annotations

import copy

import numpy as np
import onnx
from graphs import ONNX_TYPE, Graph, Value, read_names
from onnx import helper

AttributeProto = onnx.AttributeProto


def typed(name: str, v: Value, shaped: bool = False) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, ONNX_TYPE[v.t], v.dims if shaped and not v.late else None)


def part(g: Graph) -> tuple[int, int, list[str], list[str]] | None:
    """Neighbours in the order of nodes, what they read from outside, and the tensors that others read of them; None when what crosses
    the border is no tensor."""
    if not g.nodes:
        return None
    i = g.dice.randrange(len(g.nodes))
    j = min(len(g.nodes), i + g.dice.randint(1, 5))
    inside, outside = g.nodes[i:j], read_names(g.nodes[:i] + g.nodes[j:])
    made = [o for n in inside for o in n.output if o]
    all_read = read_names(g.nodes)
    results = [o for o in made if o in outside or (o in g.values and o not in all_read)]
    read = sorted(read_names(inside) - set(made))
    defined = {*g.values, *g.feeds, *g.constants}
    read = [r for r in read if r in defined]
    sequences = {o for n in g.nodes for o in n.output if o and o not in g.values}
    if not results or any(r not in g.values for r in results) or sequences & read_names(inside) - set(made):
        return None
    return i, j, read, results


def renamed(nodes, names: dict[str, str]) -> list[onnx.NodeProto]:
    out = [copy.deepcopy(n) for n in nodes]

    def visit(ns):
        for n in ns:
            for k, name in enumerate(n.input):
                n.input[k] = names.get(name, name)
            for k, name in enumerate(n.output):
                n.output[k] = names.get(name, name)
            for a in n.attribute:
                for graph in [a.g] if a.type == AttributeProto.GRAPH else a.graphs:
                    visit(graph.node)
                    for o in graph.output:
                        o.name = names.get(o.name, o.name)
    visit(out)
    return out


def copies(g: Graph, nodes, suffix: str) -> tuple[list[onnx.NodeProto], dict[str, str]]:
    names = {o: o + suffix for n in nodes for o in n.output if o}
    return renamed(nodes, names), names


def into_if(g: Graph) -> None:
    found = part(g)
    if not found:
        return
    i, j, _, results = found
    branches = []
    for which in ("then", "else"):
        nodes, names = copies(g, g.nodes[i:j], f"_{which}{g.count}")
        branches.append(helper.make_graph(nodes, which, [], [typed(names[r], g.values[r], g.chance(0.3)) for r in results]))
    cond = g.put(np.array(g.chance(0.5)), "bool", 0, 1, 1)
    g.hidden.add(cond.name)
    g.nodes[i:j] = [helper.make_node("If", [cond.name], results, then_branch=branches[0], else_branch=branches[1])]
    g.operators.add("If")


def into_loop(g: Graph) -> None:
    """Runs the nodes a few times, stacks what comes out and takes the last."""
    found = part(g)
    if not found or any(g.values[r].late for r in found[3]):
        return
    i, j, _, results = found
    nodes, names = copies(g, g.nodes[i:j], f"_body{g.count}")
    step, go, on = g.name("i"), g.name("go"), g.name("on")
    body = helper.make_graph(
        [helper.make_node("Identity", [go], [on]), *nodes], "body",
        [helper.make_tensor_value_info(step, 7, []), helper.make_tensor_value_info(go, 9, [])],
        [helper.make_tensor_value_info(on, 9, []), *(typed(names[r], g.values[r], g.chance(0.3)) for r in results)])
    trips, at = g.fixed(g.dice.randint(1, 3)), g.fixed(-1)
    stacks = [g.name("stack") for _ in results]
    g.nodes[i:j] = [helper.make_node("Loop", [trips.name, ""], stacks, body=body),
                    *(helper.make_node("Gather", [s, at.name], [r], axis=0) for s, r in zip(stacks, results))]
    g.operators.add("Loop")


def into_function(g: Graph) -> None:
    """A call of a local function; now and then an attribute of it is the caller's."""
    found = part(g)
    if not found:
        return
    i, j, read, results = found
    nodes, names = copies(g, g.nodes[i:j], "_f")
    given = {r: f"p{k}" for k, r in enumerate(read)}
    nodes = renamed(nodes, given)
    if any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for n in nodes for a in n.attribute) and g.chance(0.5):
        return
    referred, arguments = [], {}
    for n in nodes:
        for a in n.attribute:
            if a.type in (AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT) and g.chance(0.3):
                name = f"a{len(referred)}"
                arguments[name] = copy.deepcopy(a)
                kind, own = a.type, a.name
                a.Clear()
                a.name, a.type, a.ref_attr_name = own, kind, name
                referred.append(name)
    op = g.name("F")
    domain = "local"
    opsets = [helper.make_opsetid("", g.opset)] + [helper.make_opsetid(d, {"ai.onnx.ml": 3}.get(d, 1)) for d in sorted(g.domains | {domain})]
    g.functions.append(helper.make_function(domain, op, list(given.values()), [names[r] for r in results], nodes, opsets, attributes=referred))
    call = helper.make_node(op, read, results, domain=domain)
    for name, a in arguments.items():
        a.name = name
        call.attribute.append(a)
    g.nodes[i:j] = [call]
    g.domains.add(domain)
    g.operators.add("function")


def nest(g: Graph) -> None:
    for _ in range(g.dice.choice((0, 0, 0, 1, 1, 2, 3))):
        g.dice.choice((into_if, into_loop, into_function, into_function))(g)
