"""A case is one model file: its inputs have their test values as initializers of the same name, its metadata says the error bound of each
output ("bound y"). Here it is taken apart, run by a worker (worker.c), and compared."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

NO_PASSES, NO_FUSION = 1, 1
STATUS_OK = 0


class Case(NamedTuple):
    model: onnx.ModelProto  # without the values of its inputs
    feeds: dict[str, np.ndarray]
    bounds: dict[str, float]  # of the outputs, in their order
    asked: tuple[str, ...] = ()  # outputs that a run asks for; (): all

    @property
    def outputs(self) -> list[str]:
        return list(self.asked) or [o.name for o in self.model.graph.output]


def take_apart(file: onnx.ModelProto) -> Case:
    model = onnx.ModelProto()
    model.CopyFrom(file)
    inputs = {i.name for i in model.graph.input}
    values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer if t.name in inputs}
    kept = [t for t in model.graph.initializer if t.name not in inputs]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    said = {p.key: float(p.value) for p in model.metadata_props if p.key.startswith("bound ")}
    del model.metadata_props[:]
    return Case(model, values, {o.name: said.get(f"bound {o.name}", 0.0) for o in model.graph.output})


def put_together(case: Case) -> onnx.ModelProto:
    file = onnx.ModelProto()
    file.CopyFrom(case.model)
    file.graph.initializer.extend(numpy_helper.from_array(np.asarray(case.feeds[i.name]), i.name) for i in file.graph.input)
    onnx.helper.set_model_props(file, {f"bound {o}": repr(case.bounds[o]) for o in case.outputs})
    return file


# ---- Workers ---------------------------------------------------------------------------------------------------------------


class Configuration(NamedTuple):
    name: str
    providers: str
    model_flags: int = 0
    session_flags: int = 0


class Answer(NamedTuple):
    status: int
    text: str
    results: list[bytes]  # TensorProto of each output


class Died(Exception):
    """The worker ended: by a signal, a sanitizer or an oracle of its own."""


def block(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


class Worker:
    def __init__(self, command: list[str], environment: dict[str, str] | None = None):
        self.command, self.environment = command, {**os.environ, **(environment or {})}
        self.process: subprocess.Popen | None = None

    def send(self, request: bytes) -> None:
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                            env=self.environment)
        try:
            self.process.stdin.write(request)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # read() says what happened

    def read(self, n: int) -> bytes:
        data = self.process.stdout.read(n)
        if len(data) < n:
            said = self.process.stderr.read().decode(errors="replace")
            code = self.process.wait()
            self.process = None
            raise Died((signal.Signals(-code).name if code < 0 else f"exit status {code}") + f": {said[-4000:]}")
        return data

    def read_number(self) -> int:
        return struct.unpack("<I", self.read(4))[0]

    def read_block(self) -> bytes:
        return self.read(self.read_number())

    def close(self) -> str:
        """What it said on its way out: a leak, if it is built to tell of leaks."""
        if self.process is None:
            return ""
        _, said = self.process.communicate()
        code, self.process = self.process.returncode, None
        return "" if code == 0 else f"exit status {code}: {said.decode(errors='replace')[-4000:]}"

    # ---- Graphs ----

    def ask(self, case: Case, configurations: list[Configuration]) -> None:
        parts = [b"R", block(case.model.SerializeToString()), struct.pack("<I", len(case.feeds))]
        for name, a in case.feeds.items():
            parts += [block(name.encode()), block(numpy_helper.from_array(np.asarray(a)).SerializeToString())]
        parts += [struct.pack("<I", len(case.outputs)), *(block(o.encode()) for o in case.outputs), struct.pack("<I", len(configurations))]
        for c in configurations:
            parts += [block(c.providers.encode()), struct.pack("<II", c.model_flags, c.session_flags)]
        self.send(b"".join(parts))

    def answers(self, case: Case, configurations: list[Configuration]) -> list[Answer]:
        out = []
        for _ in configurations:
            status, text = self.read_number(), self.read_block().decode(errors="replace")
            out.append(Answer(status, text, [self.read_block() for _ in case.outputs] if status == STATUS_OK else []))
        return out


# ---- Comparing ---------------------------------------------------------------------------------------------------------------


def array_of(data: bytes) -> np.ndarray:
    return numpy_helper.to_array(TensorProto.FromString(data))


def difference(name: str, got: np.ndarray, expected: np.ndarray, bound: float) -> str:
    """"" when they agree: both are within the bound of what exact arithmetic gives."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{name} is {got.dtype} {got.shape}, expected {expected.dtype} {expected.shape}"
    if got.dtype.kind in "biuOSU":
        wrong = got != expected
        far = None
    else:
        a, b = (x.astype(np.float64) for x in (got, expected))
        with np.errstate(all="ignore"):
            far = np.abs(a - b)
            wrong = ~((far <= 2 * bound) | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not wrong.any():
        return ""
    at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    here = (np.atleast_1d(got)[at], np.atleast_1d(expected)[at])
    largest = f", the largest by {np.nanmax(far[wrong] if far.ndim else far):.3g}, allowed {2 * bound:.3g}" if far is not None else ""
    return f"{name}: {int(wrong.sum())} of {wrong.size} differ, first at {list(at)}: {here[0]}, expected {here[1]}{largest}"
