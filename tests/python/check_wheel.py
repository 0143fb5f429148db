#!/usr/bin/env python3
"""A wheel as it is published: check_wheel.py WHEEL, with the package abi3audit. Its tags, and that the extension module takes
nothing from CPython but the stable interface of the oldest Python that the tag names, and what py.h says of buffers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import harness

BUFFERS = {"PyObject_CheckBuffer", "PyObject_GetBuffer", "PyBuffer_Release"}  # stable since 3.11, there since 3.3


def main() -> int:
    wheel = Path(sys.argv[1])
    tags = re.fullmatch(r"ortc-[\d.]+-cp39-abi3-manylinux_2_(\d+)_\w+\.whl", wheel.name)
    harness.check("one wheel for every Python and many Linuxes", lambda: None if tags and int(tags[1]) <= 36 else wheel.name)
    said = subprocess.run([sys.executable, "-m", "abi3audit", "--report", wheel], capture_output=True, text=True)
    modules = [m for spec in json.loads(said.stdout)["specs"].values() for m in spec["wheel"]]
    harness.check("it has one extension module", lambda: None if [m["name"] for m in modules] == ["_ortc.abi3.so"] else f"{modules}")
    for m in modules:
        harness.check("nothing outside of the stable interface", lambda: f"{m}" if m["result"]["non_abi3_symbols"] else None)
        newer = set(m["result"]["future_abi3_objects"])
        harness.check("nothing newer but buffers", lambda: f"{newer}" if newer - BUFFERS else None)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
