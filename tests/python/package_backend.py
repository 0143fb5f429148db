#!/usr/bin/env python3
"""onnx's own runner of backends on the installed Python package: all its node cases, with its own data and comparison.

What fails or is refused must be what tests/onnx/known-failures.txt and the suite's own run (test_suite.py) name: the same
cases by another way in and out."""

from __future__ import annotations

import sys
import unittest
import warnings
from pathlib import Path

import onnx
import onnx.backend.base
import onnx.backend.test

import ortc

KNOWN = Path(__file__).resolve().parent.parent / "onnx" / "known-failures.txt"
FLOOR = 1861  # node cases that pass: raise it when more do
# What the runner itself cannot compare, besides: the suite's own run looks at shapes alone there, and at this sequence.
BEYOND_RUNNER = {
    "test_bernoulli": "random", "test_bernoulli_double": "random", "test_bernoulli_seed": "random",
    "test_bernoulli_expanded": "random", "test_bernoulli_double_expanded": "random", "test_bernoulli_seed_expanded": "random",
    "test_loop16_seq_none": "the runner asks a scalar in a sequence for its length",
}  # fmt: skip


class Prepared(onnx.backend.base.BackendRep):
    def __init__(self, model: onnx.ModelProto) -> None:
        self.session = ortc.Session(model.SerializeToString())

    def run(self, inputs, **_):
        names = [io.name for io in self.session.inputs]
        results = self.session.run({n: x for n, x in zip(names, inputs) if x is not None})
        return [results[io.name] for io in self.session.outputs]


class Backend(onnx.backend.base.Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **_):
        return Prepared(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


def main() -> int:
    warnings.simplefilter("ignore")
    known = set(BEYOND_RUNNER) | {line.split()[0].split("/", 1)[1] for line in KNOWN.read_text().splitlines() if line.startswith("node/")}
    cases = onnx.backend.test.BackendTest(Backend, __name__).test_cases["OnnxBackendNodeModelTest"]
    suite = unittest.TestLoader().loadTestsFromTestCase(cases)
    result = unittest.TestResult()
    suite.run(result)
    refused, failed = [], []
    for case, text in result.failures + result.errors:
        name = case.id().rsplit(".", 1)[1].removesuffix("_cpu")
        last = text.rstrip().splitlines()[-1]
        if "ortc._errors.Unsupported" in last:
            refused.append(name)
        else:
            failed.append((name, text))
    elsewhere = len(result.skipped)  # the same cases on other devices
    passed = result.testsRun - elsewhere - len(refused) - len(failed)
    unknown = [(n, text) for n, text in failed if n not in known]
    for name, text in unknown:
        print(f"FAIL {name}: {text[-600:]}")
    fixed = sorted(known - {n for n, _ in failed})
    for name in fixed:
        print(f"FAIL {name} passes, though it is known to fail")
    if passed < FLOOR:
        print(f"FAIL only {passed} node cases pass, {FLOOR} did before")
    bad = len(unknown) + len(fixed) + (passed < FLOOR)
    print(f"{passed} passed, {bad} failed, {len(refused) + len(failed) - len(unknown)} skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
