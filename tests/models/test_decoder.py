#!/usr/bin/env python3
"""The decoder of make_decoder.py, 64 tokens through the C interface: test_decoder.py DECODER SIM, the program of decoder.c and the
plugin with provider sim, a device with memory of its own.

What the logits should be is computed by onnxruntime where it can run opset 24, else by onnx's reference evaluator.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
import harness  # noqa: E402

np, onnx, ort = harness.packages("numpy", "onnx", "onnxruntime")
import make_decoder as decoder  # noqa: E402

TOKENS, PREFILL = 64, 8


def evaluator(model):
    try:
        options = ort.SessionOptions()
        options.log_severity_level = 3
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run
    except Exception:  # an operator that it has not
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(model).run


def logits_of(model):
    """One pass per token after the prefill, the caches carried along by hand."""
    ids = np.array([[(i * i * 7 + 3) % decoder.VOCABULARY for i in range(TOKENS)]], np.int64)
    run = evaluator(model)
    caches = {f"past.{c}": np.zeros((1, decoder.HEADS, decoder.CAPACITY, decoder.DEPTH), np.float32) for c in decoder.CACHES}
    rows, at = [], 0
    while at < TOKENS:
        n = PREFILL if at == 0 else 1
        positions = np.arange(at, at + n, dtype=np.int64)
        feeds = {"ids": ids[:, positions], "positions": positions[None], "write_indices": positions[:1]}
        logits, *present = run(None, feeds | caches)
        caches = {f"past.{c}": p for c, p in zip(decoder.CACHES, present, strict=True)}
        rows.append(logits[0])
        at += n
    return np.concatenate(rows)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        expected = Path(folder) / "logits.f32"
        expected.write_bytes(logits_of(decoder.make()).astype("<f4").tobytes())
        for seed in (0, 7):
            path = Path(folder) / f"decoder-{seed}.onnx"
            onnx.save(decoder.make(seed), path)
            for providers, plugin in (("cpu", []), ("ref", []), ("sim", sys.argv[2:])):

                def case(path=path, providers=providers, plugin=plugin) -> str | None:
                    done = subprocess.run([sys.argv[1], path, expected, providers, *plugin], capture_output=True, text=True)
                    return None if done.returncode == 0 else f"code {done.returncode}: {done.stdout}{done.stderr}"

                harness.check(f"names {seed}, {providers}", case)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
