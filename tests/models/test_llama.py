#!/usr/bin/env python3
"""The tiny LLaMA of make_llama.py: test_llama.py ORTC MANY_SHAPES. Answers are onnxruntime's; what is raised is counted."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import test_bert as bert  # also says where the packages are
from harness import check, finish
import make_llama

onnx, np = bert.onnx, bert.np
SHAPES = [(1, 1), (2, 7), (3, 16), (4, 5)]


def placement_case(path: Path) -> str | None:
    ops = [n["op"] for n in bert.info(path, "--placement", "--provider", "ref")["placement"]]
    layers = make_llama.TINY.layers
    want = {"Attention": layers, "RotaryEmbedding": 2 * layers, "RMSNormalization": 2 * layers + 1, "Swish": layers, "Softmax": 0,
            "Sigmoid": 0, "Neg": 0, "Slice": 2}  # the halves of cos and sin, for all layers
    return next((f"{ops.count(op)} of {op} for {n}" for op, n in want.items() if ops.count(op) != n), None)


def optimize_case(path: Path, folder: Path, *words: str) -> str | None:
    """As a file of its own opset, and with everything that is raised; both are the same model."""
    out = folder / "optimized.onnx"
    np.savez(folder / "tokens.npz", **make_llama.feeds())
    bert.ortc("optimize", path, "-o", out, "--input", folder / "tokens.npz", *words)
    model = onnx.load(out)
    onnx.checker.check_model(model, full_check=True)
    feeds = make_llama.feeds(3, 16)
    (want,) = bert.expected(path, feeds)
    if not words:
        opset = model.opset_import[0].version
        return f"opset {opset}" if opset != 18 else bert.differs(bert.expected(out, feeds)[0], want)  # ReduceMean-18
    (have,) = bert.reference.ReferenceEvaluator(model).run(None, feeds)
    return bert.differs(have, want)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "llama.onnx"
        onnx.save(make_llama.model(), path)
        onnx.checker.check_model(onnx.load(path), full_check=True)
        for where, words in bert.PLACED.items():
            for batch, length in SHAPES:
                feeds = make_llama.feeds(batch, length)
                check(f"{where}, [{batch}, {length}]", lambda: bert.run_case(path, feeds, words, folder))
        check("placement", lambda: placement_case(path))
        check("optimize", lambda: optimize_case(path, folder))
        check("optimize --raised", lambda: optimize_case(path, folder, "--raised"))
        check("many shapes", lambda: bert.many_shapes_case(path, "cpu"))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
