"""Makes a case that differs as small as it gets, while it differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnx
from cases import Case
from graphs import read_names
from onnx import helper


def copy_of(model: onnx.ModelProto) -> onnx.ModelProto:
    new = onnx.ModelProto()
    new.CopyFrom(model)
    return new


def pruned(case: Case, outputs: list[str]) -> Case:
    """Only what these outputs need."""
    model = copy_of(case.model)
    g = model.graph
    needed, nodes = set(outputs), []
    for n in reversed(g.node):
        if needed & set(n.output):
            nodes.insert(0, n)
            needed |= read_names([n])
    for field, keep in ((g.node, nodes), (g.output, [o for o in g.output if o.name in outputs]),
                        (g.input, [i for i in g.input if i.name in needed]), (g.initializer, [t for t in g.initializer if t.name in needed])):
        keep = [type(k).FromString(k.SerializeToString()) for k in keep]
        del field[:]
        field.extend(keep)
    del g.value_info[:]
    if not any(n.domain == "local" for n in g.node) and not any(a.type == onnx.AttributeProto.GRAPH for n in g.node for a in n.attribute):
        del model.functions[:]
    return Case(model, {i.name: case.feeds[i.name] for i in g.input}, {o: case.bounds[o] for o in (x.name for x in g.output)})


def cut(case: Case, values: dict[str, np.ndarray]) -> Case:
    """Values that nodes make become inputs."""
    model = copy_of(case.model)
    g = model.graph
    made = {o for n in g.node for o in n.output}
    for n in g.node:
        for i, o in enumerate(n.output):
            if o in values:
                n.output[i] = f"{o}_cut"
    g.input.extend(helper.make_tensor_value_info(v, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for v, a in values.items() if v in made)
    new = Case(model, {**case.feeds, **values}, case.bounds)
    return pruned(new, case.outputs)


def numbered(case: Case) -> Case:
    """No symbols: every input has the extents of its array."""
    model = copy_of(case.model)
    for i in model.graph.input:
        kind = i.type.tensor_type.elem_type
        i.CopyFrom(helper.make_tensor_value_info(i.name, kind, case.feeds[i.name].shape))
    for o in model.graph.output:
        o.CopyFrom(helper.make_tensor_value_info(o.name, o.type.tensor_type.elem_type, None))
    return case._replace(model=model)


def inlined(case: Case) -> Case:
    from onnx import inliner
    return case._replace(model=inliner.inline_local_functions(case.model))


def opened(case: Case) -> Iterator[Case]:
    """Instead of an If, the nodes of one of its branches."""
    for at, n in enumerate(case.model.graph.node):
        if n.op_type != "If":
            continue
        for a in n.attribute:
            model = copy_of(case.model)
            nodes = list(a.g.node) + [helper.make_node("Identity", [o.name], [r]) for o, r in zip(a.g.output, n.output)]
            rest = list(model.graph.node)
            rest[at:at + 1] = nodes
            rest = [onnx.NodeProto.FromString(x.SerializeToString()) for x in rest]
            del model.graph.node[:]
            model.graph.node.extend(rest)
            yield case._replace(model=model)


def candidates(case: Case, intermediates) -> Iterator[Case]:
    if len(case.outputs) > 1:
        for o in case.outputs:
            yield pruned(case, [o])
    if case.model.functions:
        yield inlined(case)
    yield from opened(case)
    names = [o for n in case.model.graph.node for o in n.output if o and o not in case.outputs]
    values = {}
    for name in names:  # one by one: sequences are not told
        values.update(intermediates(case, [name]))
    for n in reversed(case.model.graph.node):
        here = {o: values[o] for o in n.output if o in values}
        if here:
            yield cut(case, here)
    if any(d.dim_param or not d.HasField("dim_value") for i in case.model.graph.input for d in i.type.tensor_type.shape.dim):
        yield numbered(case)


def size(case: Case) -> tuple:
    return (len(case.model.graph.node) + sum(len(f.node) for f in case.model.functions), len(case.outputs), case.model.ByteSize())


def shrink(case: Case, intermediates: Callable, differs: Callable[[Case], bool], most: int = 300) -> Case:
    tried = 0
    again = True
    while again and tried < most:
        again = False
        for candidate in candidates(case, intermediates):
            tried += 1
            try:
                better = candidate.outputs and size(candidate) != size(case) and differs(candidate)
            except Exception:  # a candidate that is no model
                better = False
            if better:
                case, again = candidate, True
                break
    return case
