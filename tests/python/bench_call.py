#!/usr/bin/env python3
"""What a call from Python costs over the same call from C: bench_call.py ORTC, where the package ortc is installed.

A model of three small inputs; C's call is measured by `ortc bench`, with inputs that are made once, as values are here."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path

import numpy as np
import onnx.parser

import ortc

MODEL = '<ir_version: 10, opset_import: ["" : 21]> g (float[16] a, float[16] b, float[16] c) => (float[16] y) {y = Sum(a, b, c)}'


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sum.onnx"
        path.write_bytes(onnx.parser.parse_model(MODEL).SerializeToString())
        session = ortc.Session(path, threads=1)
        said = subprocess.run([sys.argv[1], "bench", path, "--runs", "100000", "--threads", "1", "--json"], check=True, capture_output=True)
    c = json.loads(said.stdout)["latency_ms"]["p50"] * 1e3
    arrays = {name: np.ones(16, np.float32) for name in "abc"}
    values = {name: ortc.Value(x) for name, x in arrays.items()}
    out = {"y": np.empty(16, np.float32)}
    ways = {
        "arrays in, an array out": lambda: session.run(arrays),
        "arrays in, out=": lambda: session.run(arrays, out=out),
        "values in, an array out": lambda: session.run(values),
        "arrays in, a value out": lambda: session.run(arrays, values=True),
        "values in, a value out": lambda: session.run(values, values=True),
    }
    print(f"C {c:.2f} us")
    for name, way in ways.items():
        us = sorted(t / 200 * 1e6 for t in timeit.repeat(way, number=200, repeat=2001))  # short: others want the machine, too
        print(f"{name:26} median {us[1000]:.2f} us, min {us[0]:.2f} us: {us[1000] - c:.2f} over C")


if __name__ == "__main__":
    main()
