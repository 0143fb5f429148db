#!/usr/bin/env python3
"""Whole networks on the cpu against onnxruntime, alternating in one run: bench_networks.py BENCH_MODEL [FILTER] [THREADS...]

ResNet-50, a YOLO-like detector at 640 and BERT-base at 128 tokens, batch 1, f32, with weights from a seed. Prints for each network
and number of threads the medians of both in milliseconds, their ratio (above 1: ortc is faster), and the time to the first result.
Alternated in rounds of about a second, medians over all rounds, so that both see the same machine.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / d) for d in ("python", "models")]
from harness import packages  # noqa: E402

np, onnx, ort = packages("numpy", "onnx", "onnxruntime")
import convnets  # noqa: E402
import make_bert  # noqa: E402

ROUNDS, SECONDS = 7, 1.0


def bert_base():
    for name, number in {"LAYERS": 12, "HIDDEN": 768, "HEADS": 12, "VOCABULARY": 30522, "POSITIONS": 512, "INNER": 3072, "SIZE": 64}.items():
        setattr(make_bert, name, number)
    return make_bert.model(17)


NETWORKS = {"ResNet-50": (lambda: convnets.resnet50(batch=1), {}), "YOLO-n 640": (lambda: convnets.yolo(), {}),
            "BERT-base 128": (bert_base, {"batch": 1, "length": 128})}  # fmt: skip


def theirs(file: str, threads: int, dims: dict):
    o = ort.SessionOptions()
    o.intra_op_num_threads = threads
    start = time.perf_counter()
    s = ort.InferenceSession(file, o, providers=["CPUExecutionProvider"])
    feeds = {}
    for i in s.get_inputs():
        shape = [d if isinstance(d, int) else dims.get(d, 1) for d in i.shape]
        feeds[i.name] = np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float16 if "16" in i.type else np.float32) if "float" in i.type else np.ones(shape, np.int64)
    s.run(None, feeds)
    return s, feeds, (time.perf_counter() - start) * 1e3


def measure(bench: str, file: str, threads: int, dims: dict) -> str:
    ours = subprocess.Popen([bench, file, "cpu", str(threads), *(f"{k}={v}" for k, v in dims.items())],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
    load, first = map(float, ours.stdout.readline().split())
    session, feeds, their_first = theirs(file, threads, dims)
    a, b, runs = [], [], 1
    for turn in range(ROUNDS + 1):
        ours.stdin.write(f"{runs}\n")
        ours.stdin.flush()
        mine = [float(v) * 1e-3 for v in ours.stdout.readline().split()]
        their = []
        for _ in range(runs):
            start = time.perf_counter()
            session.run(None, feeds)
            their.append((time.perf_counter() - start) * 1e3)
        if turn:
            a += mine
            b += their
        runs = max(1, int(SECONDS * 1e3 / max(statistics.median(mine), statistics.median(their))))
    ours.stdin.close()
    ours.wait()
    mine, their = statistics.median(a), statistics.median(b)
    return f"{mine:9.3f} {their:9.3f} {their / mine:6.2f} {load + first:9.0f} {their_first:9.0f}"


def main() -> None:
    bench, wanted = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    print(f"{'network':16} threads   ortc ms    ort ms  ratio  first ms  ort first", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, (model, dims) in NETWORKS.items():
            if wanted not in name:
                continue
            file = f"{folder}/m.onnx"
            onnx.save(model(), file)
            for threads in [int(t) for t in sys.argv[3:]] or [1, 2]:
                print(f"{name:16} {threads:7} {measure(bench, file, threads, dims)}", flush=True)


if __name__ == "__main__":
    main()
