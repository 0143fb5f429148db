#!/usr/bin/env python3
"""How long opening a large model takes: a 600 MB file with 400 weights, through build/tests/bench_load.

usage: bench_load.py BUILD/tests/bench/bench_load [--runs 7] [--megabytes 600] [--weights 400] [--keep FILE]

Writes the model into a temporary folder (a chain of MatMul and Add over [K,K]; all weights inside the one file), has
bench_load open it once so that the file is in the page cache, then the given number of times, each in a process of its
own, and prints each figure's median and range. What the figures are, bench_load says: every token NAME=NUMBER that
it prints on a line is one.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import packages

np, onnx, numpy_helper = packages("numpy", "onnx", "onnx.numpy_helper")
FIGURE = re.compile(r"([A-Za-z_][\w.]*)=(-?[0-9]+(?:\.[0-9]+)?)")


def write_model(path: Path, megabytes: int, weights: int) -> None:
    """weights/2 times MatMul and Add, every weight of the same size; the values are random but finite."""
    size = round((megabytes * 1e6 / weights / 4) ** 0.5)  # one weight: float32 [K,K]
    value = np.random.default_rng(1).standard_normal((size, size), np.float32)
    nodes, initializers, last = [], [], "x"
    for i in range(weights):
        name, out = f"w{i}", f"h{i}" if i + 1 < weights else "y"
        value[0, 0] = i  # no two weights are equal
        initializers.append(numpy_helper.from_array(value, name))
        nodes.append(onnx.helper.make_node("Add" if i % 2 else "MatMul", [last, name], [out], name=f"node{i}"))
        last = out
    info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [size, size]) for name in "xy"]
    graph = onnx.helper.make_graph(nodes, "load", [info[0]], [info[1]], initializers)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def run(program: str, model: Path) -> tuple[str, dict[str, float]]:
    done = subprocess.run([program, str(model)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{program}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, {name: float(value) for name, value in FIGURE.findall(done.stdout)}


def shown(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description="measure the opening of a large model")
    parser.add_argument("program", help="build/tests/bench_load")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=600)
    parser.add_argument("--weights", type=int, default=400)
    parser.add_argument("--keep", type=Path, help="write the model here, and leave it (reused if it is there)")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        model = options.keep or Path(folder, "load.onnx")
        if not model.exists():
            write_model(model, options.megabytes, options.weights)
        print(f"{model.stat().st_size / 1e6:.1f} MB, {options.weights} weights, {options.runs} runs")
        text, _ = run(options.program, model)
        runs = [run(options.program, model)[1] for _ in range(options.runs)]
    if not runs[0]:
        print(text, end="")
        raise SystemExit("bench_load printed no figure of the form name=number")
    for name in runs[0]:
        values = [figures[name] for figures in runs if name in figures]
        middle, least, most = map(shown, (statistics.median(values), min(values), max(values)))
        print(f"{name}: median {middle}, {least} to {most}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
