#!/usr/bin/env python3
"""Layouts that a device wishes, on provider sim: test_layout.py ORTC PLUGIN DIGITS

digits has three convolutions and two poolings: all of them, and what is between them, stay in the device's layout.
"""

from __future__ import annotations

import subprocess
import sys

from harness import check, finish

ORTC, PLUGIN, DIGITS = sys.argv[1:4]


def steps(device: str, *options: str) -> list[str]:
    """The kernels of the plan, in order."""
    done = subprocess.run([ORTC, "info", DIGITS, "--plugin", PLUGIN, "--provider", device, "--steps", *options],
                          capture_output=True, text=True, timeout=60, check=True)  # fmt: skip
    return [line.split()[3] for line in done.stdout.splitlines() if line.split()[1:2] == ["kernel"]]


def twice() -> str | None:
    kernels = steps("sim:layout=1")
    at = [i for i, k in enumerate(kernels) if k == "reorder.ref"]
    inside = kernels[at[0] + 1 : at[1]] if len(at) == 2 else []
    wanted = ["conv.ref", "activation.ref"] * 2 + ["pool.ref", "conv.ref", "activation.ref", "pool.ref"]
    return None if inside == wanted else f"{kernels}"


check("one Reorder in, one out, everything between in one layout", twice)
check("none without the wish", lambda: None if "reorder.ref" not in steps("sim") else "there is one")
check("none where the device has no Reorder", lambda: None if "reorder.ref" not in steps("sim:layout=1:only=Conv") else "there is one")
sys.exit(finish())
