#!/usr/bin/env python3
"""Random graphs on every provider, against each other and against others: differential.py WORKER [--plugin SIM] ...

Each graph (generate.py, by its seed) runs on ref as the file has it, and then on ref, cpu (fused, unfused, without passes, every
instruction set), sim, onnxruntime and the standard's evaluator, those two where they can. Statuses and results must agree, results
within the bounds that the graph carries. A graph that does not is made as small as it gets (shrink.py), printed, and with --keep
written to a folder; tests/fuzz/found holds such cases, and they run first. --graphs 200000 is a long run; several processes with
different --first share it.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from harness import check, finish, packages  # noqa: E402

np, onnx, onnxruntime, evaluation, _ = packages("numpy", "onnx", "onnxruntime", "onnx.reference", "ml_dtypes")
from cases import NO_FUSION, NO_PASSES, Case, Configuration, Died, Worker, array_of, difference, put_together, take_apart  # noqa: E402
from disputed import DISPUTES, EVALUATOR, ONNXRUNTIME, wrong  # noqa: E402
from generate import generate  # noqa: E402
from shrink import shrink  # noqa: E402

REFERENCE = Configuration("ref as it is", "ref", NO_PASSES)
PLAIN = [REFERENCE, Configuration("ref", "ref"), Configuration("cpu", "cpu"), Configuration("cpu unfused", "cpu", 0, NO_FUSION),
         Configuration("cpu as it is", "cpu", NO_PASSES, NO_FUSION)]
SIM = [Configuration("sim", "sim"), Configuration("sim and cpu", "sim:layout=1:claim=2:only=MatMul+Add+Relu+Conv+Mul+Sub,cpu")]
LEVELS = ("avx2", "scalar")

def traits(case: Case) -> set[str]:
    """Operators with what the tables of disputed.py ask for."""
    out = set()
    arrays = [*case.feeds.values(), *map(onnx.numpy_helper.to_array, case.model.graph.initializer)]
    made = {o.type.tensor_type.elem_type for o in case.model.graph.output}
    kinds = [k for k, there in (("f64", any(a.dtype == np.float64 for a in arrays)),
                                ("i32", any(a.dtype == np.int32 for a in arrays) or onnx.TensorProto.INT32 in made),
                                ("s8", any(a.dtype == np.int8 for a in arrays)), ("empty", not all(a.size for a in arrays))) if there]  # fmt: skip

    def visit(nodes):
        for n in nodes:
            said = {a.name: a.s.decode() for a in n.attribute if a.type == onnx.AttributeProto.STRING}
            out.update((n.op_type, " ".join(filter(None, (n.op_type, said.get("mode"), said.get("padding_mode"))))))
            out.update(f"{n.op_type} {k}" for k in kinds)
            if n.op_type in ("GRU", "LSTM", "RNN") and len(n.input) > 4 and n.input[4]:
                out.add(f"{n.op_type} lengths")
            if n.op_type == "MaxPool" and len(n.output) > 1:
                out.add("MaxPool indices")
            if any(a.ref_attr_name for a in n.attribute):
                out.add(f"{n.op_type} reference")
            if n.op_type == "Unique" and any(a.name == "sorted" and a.i == 0 for a in n.attribute):
                out.add("Unique unsorted")
            if n.op_type == "SequenceInsert" and len(n.input) > 2:
                out.add("SequenceInsert place")
            for a in n.attribute:
                for g in [a.g] if a.type == onnx.AttributeProto.GRAPH else a.graphs:
                    visit(g.node)

    visit(case.model.graph.node)
    for f in case.model.functions:
        visit(f.node)
    return out


class Peers:
    """Who else knows the answer."""

    def __init__(self):
        self.options = onnxruntime.SessionOptions()
        self.options.log_severity_level = 4
        self.options.intra_op_num_threads = 1
        self.options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # some of its fusions round coarsely
        self.answered = collections.Counter()

    def onnxruntime(self, case: Case, disputed: bool = False):
        if not disputed and traits(case) & ONNXRUNTIME.keys() or any(a.dtype.name == "bfloat16" for a in case.feeds.values()):
            return None
        try:
            session = onnxruntime.InferenceSession(case.model.SerializeToString(), self.options, providers=["CPUExecutionProvider"])
            results = session.run(case.outputs, case.feeds)
        except Exception:  # it says in many ways that it cannot
            return None
        self.answered["onnxruntime"] += 1
        return results

    def evaluator(self, case: Case, disputed: bool = False):
        if not disputed and traits(case) & EVALUATOR.keys():
            return None
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = evaluation.ReferenceEvaluator(case.model).run(case.outputs, case.feeds)
        except Exception:  # it does not do all that the standard says
            return None
        self.answered["evaluator"] += 1
        return [np.asarray(r) for r in results]


class Fuzzer:
    def __init__(self, options):
        command = [options.worker, *(["--plugin", options.plugin] if options.plugin else [])]
        self.groups = [(Worker(command), PLAIN + (SIM if options.plugin else []))]
        self.groups += [(Worker(command, {"ORTC_CPU": level}), [Configuration(f"cpu {level}", "cpu")]) for level in LEVELS]
        self.peers = Peers()
        self.options = options
        self.runs = collections.Counter()

    def differences(self, case: Case, slow: bool = False) -> dict[str, str]:
        """What does not agree, by configuration."""
        for worker, configurations in self.groups:
            worker.ask(case, configurations)
        others = {"onnxruntime": self.peers.onnxruntime(case), "evaluator": self.peers.evaluator(case) if slow else None}
        found, expected, raw = {}, None, None
        for worker, configurations in self.groups:
            try:
                answers = worker.answers(case, configurations)
            except Died as why:
                found[configurations[0].name + " group"] = f"died: {why}"
                continue
            for c, answer in zip(configurations, answers):
                self.runs[c.name] += 1
                if answer.status:
                    found[c.name] = f"status {answer.status}: {answer.text}"
                elif c is REFERENCE:
                    raw = answer.results
                    expected = [array_of(r) for r in raw]
                elif expected is not None:
                    for name, data, same, want in zip(case.outputs, answer.results, raw, expected):
                        if data != same and (why := difference(name, array_of(data), want, case.bounds[name])):
                            found[c.name] = why
                            break
        for who, results in others.items():
            if results is None or expected is None:
                continue
            for name, got, want in zip(case.outputs, results, expected):
                if why := difference(name, np.asarray(got), want, case.bounds[name]):
                    found[who] = f"{why} (as ortc has it)"
                    break
        return found

    def look_at(self, name: str, file: onnx.ModelProto, slow: bool) -> str:
        case = take_apart(file)
        found = self.differences(case, slow)
        if not found:
            return ""
        text = "; ".join(f"{c}: {why}" for c, why in found.items())
        if self.options.shrink:
            small = shrink(case, self.intermediates, lambda c: self.still(c, found))
            text += "\n" + onnx.printer.to_text(small.model) + "\nfeeds " + repr({n: a.shape if a.size > 8 else a.tolist() for n, a in small.feeds.items()})
            text += "\nnow " + repr(self.differences(small, slow))
            if self.options.keep:
                self.options.keep.mkdir(parents=True, exist_ok=True)
                onnx.save(put_together(small), self.options.keep / f"{name}.onnx")
        return text

    def settle(self, who: str, dispute) -> str:
        """ortc has what the standard says; the other has not, and is known not to."""
        case, (worker, configurations) = dispute.case(), self.groups[0]
        if dispute.row not in traits(case) & (ONNXRUNTIME if who == "onnxruntime" else EVALUATOR).keys():
            return "no graph would be left out for it"
        worker.ask(case, configurations)
        for c, answer in zip(configurations, worker.answers(case, configurations)):
            if why := answer.text or wrong([array_of(r) for r in answer.results], dispute):
                return f"{c.name}: {why}"
        return "" if wrong(getattr(self.peers, who)(case, True), dispute) else f"{who} is right: the row is to go"

    def still(self, case: Case, was: dict[str, str]) -> bool:
        """Whether something of the same kind is wrong for one who was wrong: results differ, or the status is the same."""
        now = self.differences(case, "evaluator" in was)
        kind = lambda why: why.split(":")[0] if why.startswith(("status", "died")) else ""  # noqa: E731
        return any(c in was and kind(why) == kind(was[c]) for c, why in now.items())

    def intermediates(self, case: Case, names: list[str]) -> dict[str, np.ndarray]:
        """What ref makes of the named values."""
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        del model.graph.output[:]
        model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(n) for n in names)
        asked = Case(model, case.feeds, {})
        worker = self.groups[0][0]
        worker.ask(asked, [REFERENCE])
        try:
            (answer,) = worker.answers(asked, [REFERENCE])
        except Died:
            return {}
        try:
            return dict(zip(names, map(array_of, answer.results)))
        except ValueError:  # a sequence, which is no message of this kind
            return {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worker")
    parser.add_argument("--plugin", help="the module of provider sim")
    parser.add_argument("--graphs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first graph")
    parser.add_argument("--evaluate", type=int, default=8, help="every n-th graph goes to the standard's evaluator, which is slow")
    parser.add_argument("--keep", type=Path, help="folder for what is found")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    parser.add_argument("--seconds", type=float, help="stop after so many")
    options = parser.parse_args()
    fuzzer, operators = Fuzzer(options), collections.Counter()
    for path in sorted((HERE / "found").glob("*.onnx")):
        check(path.stem, lambda path=path: fuzzer.look_at(path.stem, onnx.load(path), True))
    for who, disputes in DISPUTES.items():
        for dispute in [d() for d in disputes]:
            check(f"{who}: {dispute.row}", lambda who=who, d=dispute: fuzzer.settle(who, d))
    begun = time.monotonic()
    done = 0
    for seed in range(options.first, options.first + options.graphs):
        if options.seconds and time.monotonic() - begun > options.seconds:
            break
        file, used = generate(seed)
        operators.update(used)
        check(f"graph {seed}", lambda: fuzzer.look_at(f"graph{seed}", file, seed % options.evaluate == 0))
        done += 1
    for worker, _ in fuzzer.groups:
        check("the worker ends well", worker.close)
    if done >= 2000:
        check("at least 150 operators came up", lambda: "" if len(operators) >= 150 else f"only {len(operators)}")
    print(f"{done} graphs of {len(operators)} operators in {time.monotonic() - begun:.0f} s; runs: {dict(fuzzer.runs)}; "
          f"answered: {dict(fuzzer.peers.answered)}")
    return finish()


if __name__ == "__main__":
    sys.exit(main())
