#!/usr/bin/env python3
"""Writes the decoder and its expected logits: write_decoder.py FOLDER makes decoder.onnx and logits.f32 (f32[64,50])."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
import harness  # noqa: E402

(onnx,) = harness.packages("onnx")
import make_decoder  # noqa: E402
from test_decoder import logits_of  # noqa: E402

folder = Path(sys.argv[1])
onnx.save(make_decoder.make(), folder / "decoder.onnx")
(folder / "logits.f32").write_bytes(logits_of(make_decoder.make()).astype("<f4").tobytes())
