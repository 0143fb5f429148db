#!/usr/bin/env python3
"""The decoder and BERT on a device that is no GPU: test_device.py DECODE ORTC DEVICE PLUGIN"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
DECODE, ORTC, DEVICE, PLUGIN = sys.argv[1:5]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(HERE.parent / "models" / "write_decoder.py"), folder], check=True)
        decoded = subprocess.run([DECODE, f"{folder}/decoder.onnx", f"{folder}/logits.f32", DEVICE, PLUGIN], check=False)
    bert = subprocess.run([sys.executable, str(HERE / "test_bert.py"), ORTC, DEVICE, PLUGIN], check=False)
    return decoded.returncode or bert.returncode


sys.exit(main())
