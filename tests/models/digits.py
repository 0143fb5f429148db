"""Model 1: models/digits.onnx, on images of noise; tests/python/test_digits.py has the real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from model import Model

FILE = Path(__file__).resolve().parents[2] / "models" / "digits.onnx"


def digits() -> Model:
    rng = np.random.default_rng(1)
    images = [rng.integers(0, 256, (n, 1, 8, 8)).astype(np.float32) for n in (1, 3, 1, 7)]
    return Model("digits", onnx.load(FILE), [{"image": x} for x in images])
