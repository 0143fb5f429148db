#!/usr/bin/env python3
"""The regret of the cost model: how much longer the chosen kernel takes than the best of all: bench_regret.py ORTC [FILTER]

For each node of the shapes below (convolutions of the benchmark networks and some beside them), every offer that `ortc info
--steps` lists is forced once (--choose) and the whole model, with the Reorders that come of it, is timed by the profiler; all
kernels of a shape alternate. Prints the time of the chosen one over that of the best, and the geometric mean.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / d) for d in ("python", "models")]
from harness import packages  # noqa: E402

np, onnx, _ = packages("numpy", "onnx", "onnxruntime")
from convnets import Net  # noqa: E402
from model import F32, make, value  # noqa: E402

# channels, filters, height and width, window, stride, groups
CONVOLUTIONS = [(3, 64, 224, 7, 2, 1), (64, 64, 56, 1, 1, 1), (64, 64, 56, 3, 1, 1), (64, 256, 56, 1, 1, 1), (256, 128, 56, 1, 1, 1),
                (128, 128, 56, 3, 2, 1), (256, 512, 56, 1, 2, 1), (128, 128, 28, 3, 1, 1), (256, 256, 14, 3, 1, 1), (512, 512, 7, 3, 1, 1),
                (1024, 2048, 14, 1, 2, 1), (512, 2048, 7, 1, 1, 1), (3, 16, 640, 3, 2, 1), (16, 32, 320, 3, 2, 1), (32, 32, 160, 1, 1, 1),
                (16, 16, 160, 3, 1, 1), (64, 64, 40, 3, 1, 1), (128, 128, 20, 3, 1, 1), (384, 128, 40, 1, 1, 1), (80, 80, 80, 3, 1, 1),
                (64, 64, 112, 3, 1, 64), (240, 240, 28, 5, 2, 240), (128, 128, 56, 3, 1, 32), (24, 20, 31, 3, 1, 1), (17, 33, 19, 5, 1, 1)]  # fmt: skip
ROUNDS, RUNS = 5, 9


def model_of(shape) -> onnx.ModelProto:
    """The convolution between two pointwise nodes, as it stands in networks."""
    c, f, size, window, stride, group = shape
    n = Net()
    x = n.op("Relu", n.conv(n.op("Relu", "image"), c, f, window, stride, group))
    n.op("ReduceMax", x, keepdims=0)
    return make(n.nodes, [value("image", F32, [1, c, size, size])], [value(n.nodes[-1].output[0], F32, None)], n.weights, opset=18)


def offers(ortc: str, file: str) -> list[str]:
    """What the convolution's kernels offer, the chosen one first."""
    out = subprocess.run([ortc, "info", file, "--provider", "cpu", "--steps"], capture_output=True, text=True, check=True).stdout
    columns = re.split(r"\s{2,}", next(line for line in out.splitlines() if " /conv_1 " in line).strip())
    at = next(i for i, c in enumerate(columns) if c.startswith("f32["))
    chosen = next(c for c in columns if c.startswith("conv."))
    tag = columns[at].split()[1]  # its layout, or its place
    names = [part.split()[0] for part in columns[at + 1].split("; ")] if len(columns) > at + 1 else [chosen]
    first = chosen if tag.startswith("@") or tag == "output" else f"{chosen}@{tag}"
    return [first] + [n for n in names if n != first]


def run_us(ortc: str, file: str, choice: str, folder: str) -> float:
    subprocess.run([ortc, "run", file, "-q", "-t", "1", "-n", str(RUNS), "-i", "rand", "--provider", "cpu", "--choose", f"/conv_1={choice}",
                    "--profile", f"{folder}/p.json"], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    events = json.loads(Path(f"{folder}/p.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    return sum(e["dur"] for e in events if e.get("cat") == "step") / RUNS


def main() -> None:
    ortc, wanted = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    regrets = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in CONVOLUTIONS:
            name = "x".join(map(str, shape))
            if wanted not in name:
                continue
            file = f"{folder}/m.onnx"
            onnx.save(model_of(shape), file)
            all_offers = offers(ortc, file)
            times: dict[str, list[float]] = {o: [] for o in all_offers}
            for _ in range(ROUNDS):
                for o in all_offers:
                    times[o].append(run_us(ortc, file, o if "@" in o else o + "@plain", folder))
            us = {o: statistics.median(t) for o, t in times.items()}
            best = min(us, key=us.get)
            regrets.append(us[all_offers[0]] / us[best])
            print(f"{name:24} {all_offers[0]:26} {us[all_offers[0]]:9.1f} us  best {best:26} {us[best]:9.1f} us  {regrets[-1]:.3f}", flush=True)
    print(f"geometric mean of chosen over best: {math.exp(statistics.mean(map(math.log, regrets))):.3f}, largest {max(regrets):.3f}")


main()
