#!/usr/bin/env python3
"""Writes networks in the forms that onnxruntime's tools give them: forms.py FORM FOLDER FILE ...

FORM: qdq (its static quantiser: weights s8 by channel, activations u8, calibrated with one input of random numbers, integers being 1),
dynamic (weights s8), or f16 (inputs and outputs stay f32). FOLDER/NAME.FORM.onnx; files that exist stay as they are, what a tool refuses
is told and left out. Of random weights the numbers say nothing, the time that they take does: for tests/bench/peers.py BUILD --files.

Needs numpy, onnx and onnxruntime.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

import numpy as np
import onnx
from onnxruntime import quantization as q


class Once(q.CalibrationDataReader):
    """One input of random numbers."""

    def __init__(self, model: onnx.ModelProto):
        random = np.random.default_rng(5)
        weights = {t.name for t in model.graph.initializer}
        feeds = {}
        for port in model.graph.input:
            if port.name in weights:
                continue
            kind = port.type.tensor_type
            dims = [d.dim_value or 1 for d in kind.shape.dim]
            number = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
            floats = np.issubdtype(number, np.floating)
            feeds[port.name] = random.standard_normal(dims).astype(number) if floats else np.ones(dims, number)
        self.feeds = iter([feeds])

    def get_next(self):
        return next(self.feeds, None)


def write(form: str, file: Path, out: Path) -> None:
    if form == "dynamic":
        q.quantize_dynamic(file, out, weight_type=q.QuantType.QInt8)
    elif form == "qdq":
        q.quantize_static(file, out, Once(onnx.load(file)), weight_type=q.QuantType.QInt8, activation_type=q.QuantType.QUInt8,
                          quant_format=q.QuantFormat.QDQ, per_channel=True)  # fmt: skip
    else:
        from onnxruntime.transformers.float16 import convert_float_to_float16

        onnx.save(convert_float_to_float16(onnx.load(file), keep_io_types=True), out)


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    words.add_argument("form", choices=("qdq", "dynamic", "f16"))
    words.add_argument("folder", type=Path)
    words.add_argument("file", type=Path, nargs="+")
    a = words.parse_args()
    logging.disable(logging.WARNING)  # it recommends steps that these networks do not need
    a.folder.mkdir(parents=True, exist_ok=True)
    refused = 0
    for file in a.file:
        out, part = (a.folder / f"{file.stem}.{a.form}.{end}" for end in ("onnx", "part"))
        if out.exists():
            continue
        try:
            write(a.form, file, part)
            part.rename(out)
            print(f"{out}  {out.stat().st_size / 1e6:.1f} MB", flush=True)
        except Exception as e:  # of any tool
            refused += 1
            part.unlink(missing_ok=True)
            print(f"{file.stem}: refused: {type(e).__name__}: {str(e).splitlines()[0][:120] if str(e) else ''}", file=sys.stderr, flush=True)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
