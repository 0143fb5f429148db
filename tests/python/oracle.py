"""Models of one node against somebody who knows the answer: what test_contrib.py and test_oracles.py share.

onnxruntime says what comes out, or the case brings it. Each model runs on ref and on cpu: with its shapes, and with every extent a
symbol.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from harness import Skipped, check, finish, packages

np, onnx, onnxruntime = packages("numpy", "onnx", "onnxruntime")
import peer  # noqa: E402
from make_suite import write_values  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

ORTC = sys.argv[1]
f16 = np.float16


class Case:
    """inputs: arrays by name, None: left out; a name in `constants` is an initializer. fixed: what the operator must know of its
    shapes is no symbol. tied: outputs that onnxruntime writes into the memory of an input, by name. providers: of ref and cpu,
    those that it is asked of. declared: the type of its outputs, where onnxruntime cannot tell."""

    def __init__(self, name, op, inputs, outputs=1, constants=(), rtol=1e-4, atol=2e-6, expected=None, domain="com.microsoft", standard=17,
                 fixed=False, tied=None, providers=("ref", "cpu"), declared=None, **attributes):
        self.name, self.rtol, self.atol, self.expected, self.fixed, self.standard = name, rtol, atol, expected, fixed, standard
        self.tied, self.providers, self.declared = tied or {}, providers, declared
        names = [n if a is not None else "" for n, a in inputs.items()]
        while names and not names[-1]:
            names.pop()
        outs = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
        self.feeds = {n: a for n, a in inputs.items() if a is not None and n not in constants}
        weights = [numpy_helper.from_array(inputs[n], n) for n in constants]
        if any(a.dtype == f16 for a in self.feeds.values()):
            self.rtol, self.atol = max(rtol, 4e-3), max(atol, 4e-3)
        self.node = helper.make_node(op, names, outs, domain=domain, name="node", **attributes)
        self.weights, self.outs = weights, [o for o in outs if o]

    def model(self, symbols: bool, types=None):
        infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype),
                                               [f"{n}_{d}" for d in range(a.ndim)] if symbols else a.shape) for n, a in self.feeds.items()]
        outs = [helper.make_empty_tensor_value_info(o) if types is None else
                helper.make_tensor_value_info(o, helper.np_dtype_to_tensor_dtype(t.dtype), None) for o, t in zip(self.outs, types or self.outs)]
        graph = helper.make_graph([self.node], "contrib", infos, outs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.standard), helper.make_opsetid("com.microsoft", 1)], ir_version=10)

    def answers(self):
        if self.expected is not None:
            return self.expected
        types = self.declared and [np.zeros(0, self.declared)] * len(self.outs)
        try:
            session = peer.session(self.model(False, types))
        except Exception as e:  # it has a type for each of its own statuses
            if "not yet supported on this hardware platform" in str(e):
                raise Skipped(str(e)) from None
            raise
        if not self.tied:
            return session.run(None, self.feeds)
        binding = session.io_binding()
        values = {n: onnxruntime.OrtValue.ortvalue_from_numpy(a) for n, a in self.feeds.items()}
        for name, v in values.items():
            binding.bind_ortvalue_input(name, v)
        for name in self.outs:
            if name in self.tied:
                binding.bind_ortvalue_output(name, values[self.tied[name]])
            else:
                binding.bind_output(name)
        session.run_with_iobinding(binding)
        return [v.numpy() for v in binding.get_outputs()]

    def write(self, folder: Path) -> None:
        results = self.answers()
        for symbols in (False, True)[:1 if self.fixed else 2]:
            path = folder / f"{self.name}{'_symbols' if symbols else ''}"
            data = path / "test_data_set_0"
            data.mkdir(parents=True)
            model = self.model(symbols, results)
            (path / "model.onnx").write_bytes(model.SerializeToString())
            (path / "tolerance.json").write_text(json.dumps({"rtol": self.rtol, "atol": self.atol}))
            write_values(data, "input", [self.feeds[i.name] for i in model.graph.input], model.graph.input)
            write_values(data, "output", results, model.graph.output)


def run(providers: str, folder: Path) -> str:
    done = subprocess.run([ORTC, "test", str(folder), "--provider", providers, "-v"], capture_output=True, text=True, timeout=300)
    return done.stdout + done.stderr


def compare(cases: Iterable[Case]) -> int:
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        made = {}
        for case in cases:
            if check(f"onnxruntime runs {case.name}", lambda case=case: case.write(folder)):
                made[case.name] = made[case.name + "_symbols"] = case
        for providers in ("ref", "cpu"):
            lines = {line.split()[1].rstrip(":"): line for line in run(providers, folder).splitlines() if line.startswith(("pass", "FAIL", "skip"))}
            for path in sorted(p.name for p in folder.iterdir() if (p / "model.onnx").is_file() and providers in made[p.name].providers):
                check(f"{path} on {providers}", lambda path=path: "" if lines.get(path, "").startswith("pass") else lines.get(path, "it did not run"))
    return finish()
