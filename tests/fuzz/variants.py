#!/usr/bin/env python3
"""The standard's own cases in other forms, on every provider: variants.py WORKER [--plugin SIM] [--every N].

A case says what a model gives as it stands there: extents known, every output asked for, every input a run's. Each is run again with
all extents of its inputs as symbols, with its inputs as constants, with its constants as inputs, with each output and each two of its
outputs alone, without the outputs and without the inputs at the end that the operator lets go. Results must be those of the case as
it stands on ref, within the suite's tolerances; where nobody knows them (inputs left out), the providers must agree.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from harness import check, finish, packages  # noqa: E402

np, onnx, loader, _ = packages("numpy", "onnx", "onnx.backend.test.loader", "ml_dtypes")
from cases import NO_PASSES, Case, Configuration, Died, Worker, array_of  # noqa: E402
from make_suite import RANDOM, operators  # noqa: E402

REFERENCE = Configuration("ref as it is", "ref", NO_PASSES)
PROVIDERS = [Configuration("ref", "ref"), Configuration("cpu", "cpu")]


NOT_YET: dict[str, str] = {}  # variants that are known to fail, and why


class Variant(NamedTuple):
    name: str
    case: Case
    known: bool = True  # it gives what the case gives


def copy_of(model: onnx.ModelProto) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(model.SerializeToString())


def forget_shapes(model: onnx.ModelProto) -> None:
    """Of results: they follow from the inputs, and no longer are what the file says."""
    del model.graph.value_info[:]
    for o in model.graph.output:
        o.type.tensor_type.ClearField("shape")


def symbolic(case: Case) -> Variant:
    model = copy_of(case.model)
    forget_shapes(model)
    for i in model.graph.input:
        for k, d in enumerate(i.type.tensor_type.shape.dim):
            d.dim_param = f"{i.name}_{k}"
    return Variant("extents are symbols", case._replace(model=model))


def constant(case: Case) -> Iterator[Variant]:
    """All inputs, and all but the first: then not everything is folded."""
    for first in range(min(2, len(case.feeds))):
        feeds = dict(itertools.islice(case.feeds.items(), first))
        model = copy_of(case.model)
        moved = [i for i in model.graph.input if i.name not in feeds and i.name in case.feeds]
        for i in moved:
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(case.feeds[i.name]), i.name))
            model.graph.input.remove(i)
        if moved:
            yield Variant("inputs are constants" if not first else "all inputs but the first are constants", Case(model, feeds, case.bounds))


def fed(case: Case) -> Iterator[Variant]:
    """Constants of the outermost graph as inputs of the run."""
    model, feeds = copy_of(case.model), dict(case.feeds)
    for n in list(model.graph.node):
        if n.op_type == "Constant" and len(n.attribute) == 1:
            a = n.attribute[0]
            value = {"value": lambda a: onnx.numpy_helper.to_array(a.t), "value_int": lambda a: np.int64(a.i), "value_float": lambda a: np.float32(a.f),
                     "value_ints": lambda a: np.array(a.ints, np.int64), "value_floats": lambda a: np.array(a.floats, np.float32)}.get(a.name)  # fmt: skip
            if value:
                feeds[n.output[0]] = np.asarray(value(a))
                model.graph.node.remove(n)
    for t in list(model.graph.initializer):
        feeds[t.name] = onnx.numpy_helper.to_array(t)
        model.graph.initializer.remove(t)
    new = [n for n in feeds if n not in case.feeds]
    there = {i.name for i in model.graph.input}
    for n in new:
        if n not in there:
            kind = onnx.helper.np_dtype_to_tensor_dtype(feeds[n].dtype)
            model.graph.input.append(onnx.helper.make_tensor_value_info(n, kind, [f"{n}_{k}" for k in range(feeds[n].ndim)]))
    if new:
        forget_shapes(model)
        yield Variant("constants are inputs", Case(model, feeds, case.bounds))


def subsets(case: Case) -> Iterator[Variant]:
    """As asked for by a run, and as declared by the model."""
    names = case.outputs
    for some in [*((n,) for n in names), *itertools.combinations(names, 2)]:
        if len(some) == len(names):
            continue
        model = copy_of(case.model)
        kept = [o for o in model.graph.output if o.name in some]
        kept = [onnx.ValueInfoProto.FromString(o.SerializeToString()) for o in kept]
        del model.graph.output[:]
        model.graph.output.extend(kept)
        yield Variant(f"only {' and '.join(some)} asked for", case._replace(asked=some))
        yield Variant(f"only {' and '.join(some)} declared", case._replace(model=model))


def cut(case: Case) -> Iterator[Variant]:
    """Of one node: without its last outputs, without its last inputs, as far as the operator can do without."""
    if len(case.model.graph.node) != 1 or case.model.functions:
        return
    node, opsets = case.model.graph.node[0], {o.domain: o.version for o in case.model.opset_import}
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
    except Exception:  # an operator of a test
        return
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    if not any(o.option == variadic for o in schema.outputs):
        for n in range(max(1, schema.min_output), len(node.output)):
            model = copy_of(case.model)
            gone = set(model.graph.node[0].output[n:])
            del model.graph.node[0].output[n:]
            for o in [o for o in model.graph.output if o.name in gone]:
                model.graph.output.remove(o)
            if model.graph.output:
                yield Variant(f"with {n} outputs", case._replace(model=model))
    if not any(i.option == variadic for i in schema.inputs):
        for n in range(schema.min_input, len(node.input)):
            model = copy_of(case.model)
            gone = set(model.graph.node[0].input[n:]) - set(model.graph.node[0].input[:n])
            del model.graph.node[0].input[n:]
            for i in [i for i in model.graph.input if i.name in gone]:
                model.graph.input.remove(i)
            forget_shapes(model)
            yield Variant(f"with {n} inputs", Case(model, {k: a for k, a in case.feeds.items() if k not in gone}, case.bounds), False)


def variants(case: Case) -> Iterator[Variant]:
    yield symbolic(case)
    yield from constant(case)
    yield from fed(case)
    yield from subsets(case)
    yield from cut(case)


def differs(name: str, got: bytes, want: bytes, rtol: float, atol: float) -> str:
    if got == want:
        return ""
    try:
        a, b = array_of(got), array_of(want)
    except Exception:  # no tensors: what moves values has nothing to round
        return f"{name} is another value"
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{name} is {a.dtype} {a.shape}, expected {b.dtype} {b.shape}"
    if a.dtype.kind in "biuOSU":
        return "" if (a == b).all() else f"{name} differs"
    if a.dtype.name == "bfloat16":
        rtol = max(rtol, 2.0**-6)  # the suite's rule
    kind = np.complex128 if a.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        good = np.isclose(a.astype(kind), b.astype(kind), rtol, atol, equal_nan=True)
    return "" if good.all() else f"{name}: {int((~good).sum())} of {good.size} differ, such as {a[~good][0]}, expected {b[~good][0]}"


def noise(want: bytes) -> float:
    """What sums in f32 may leave where the suite did not choose the numbers: a millionth of the largest, of which others cancel each other."""
    try:
        a = array_of(want)
    except Exception:
        return 0.0
    if a.dtype != np.float32:
        return 0.0
    finite = np.abs(a[np.isfinite(a)])
    return float(finite.max()) * 2.0**-20 if finite.size else 0.0


class Tester:
    def __init__(self, options):
        command = [options.worker, *(["--plugin", options.plugin] if options.plugin else [])]
        self.worker = Worker(command)
        self.providers = PROVIDERS + ([Configuration("sim", "sim")] if options.plugin else [])
        self.runs = collections.Counter()

    def answers(self, case: Case, configurations):
        self.worker.ask(case, configurations)
        return self.worker.answers(case, configurations)

    def look_at(self, v: Variant, expected: dict[str, bytes], rtol: float, atol: float) -> str:
        try:
            answers = self.answers(v.case, self.providers)
        except Died as why:
            return f"died: {why}"
        if not v.known:  # ref is right
            said = {a.status for a in answers}
            if len(said) > 1:
                return "; ".join(f"{c.name}: status {a.status} {a.text}" for c, a in zip(self.providers, answers))
            if answers[0].status:
                return ""
            expected = dict(zip(v.case.outputs, answers[0].results))
        self.runs[v.name.split(" ")[0]] += len(answers)
        for c, a in zip(self.providers, answers):
            if a.status:
                return f"{c.name}: status {a.status}: {a.text}"
            for name, got in zip(v.case.outputs, a.results):
                if why := differs(name, got, expected[name], rtol, atol if v.known else max(atol, noise(expected[name]))):
                    return f"{c.name}: {why}"
        return ""


def tensors_only(model: onnx.ModelProto) -> bool:
    return all(i.type.WhichOneof("value") == "tensor_type" for i in model.graph.input)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worker")
    parser.add_argument("--plugin", help="the module of provider sim")
    parser.add_argument("--every", type=int, default=1, help="every n-th case; of those with several outputs eight times as many")
    parser.add_argument("--only", help="the case of this name")
    options = parser.parse_args()
    tester = Tester(options)
    with np.errstate(all="ignore"):
        known = loader.load_node_model_tests()
    begun, skipped, looked_at = time.monotonic(), 0, 0
    for at, c in enumerate(known):
        outputs = [o.name for o in c.model.graph.output]
        every = options.every if len(outputs) == 1 else max(1, options.every // 8)
        if c.name != options.only if options.only else at % every:
            continue
        if not tensors_only(c.model) or operators(c.model) & RANDOM:
            skipped += 1
            continue
        inputs = c.data_sets[0][0]
        feeds = {i.name: np.asarray(onnx.numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v) for i, v in zip(c.model.graph.input, inputs)}
        case = Case(c.model, feeds, {o: 0.0 for o in outputs})
        try:
            (base,) = tester.answers(case, [REFERENCE])
        except Died as why:
            check(c.name, lambda why=why: str(why))
            continue
        if base.status:  # test_suite.py tells of it
            skipped += 1
            continue
        expected = dict(zip(outputs, base.results))
        looked_at += 1
        for v in variants(case):
            name = f"{c.name}, {v.name}"
            if name in NOT_YET:
                check(f"{name}, not yet", lambda v=v: "" if tester.look_at(v, expected, c.rtol, c.atol) else "it passes now")
            else:
                check(name, lambda v=v: tester.look_at(v, expected, c.rtol, c.atol))
    check("the worker ends well", tester.worker.close)
    print(f"{looked_at} cases in {time.monotonic() - begun:.0f} s, {skipped} without tensors alone, random or not supported; runs {dict(tester.runs)}")
    return finish()


if __name__ == "__main__":
    sys.exit(main())
