#!/usr/bin/env python3
"""Layouts that a device's kernels like, on provider sim: test_layout.py ORTC PLUGIN DIGITS

digits has three convolutions and two poolings: all of them, and what is between them, stay in the device's layout.
"""

from __future__ import annotations

import subprocess
import sys

from harness import check, finish

ORTC, PLUGIN, DIGITS = sys.argv[1:4]


def listing(device: str, *options: str) -> list[str]:
    done = subprocess.run([ORTC, "info", DIGITS, "--plugin", PLUGIN, "--provider", device, "--steps", *options],
                          capture_output=True, text=True, timeout=60, check=True)  # fmt: skip
    return done.stdout.splitlines()


def refused(*options: str) -> str:
    done = subprocess.run([ORTC, "info", DIGITS, "--plugin", PLUGIN, "--provider", "sim", "--steps", *options],
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    return done.stderr if done.returncode else ""


def steps(device: str, *options: str) -> list[str]:
    """The kernels of the plan, in order."""
    return [line.split()[3] for line in listing(device, *options) if line.split()[1:2] == ["kernel"]]


def twice(option: str, tag: str) -> str | None:
    kernels = steps(f"sim:layout={option}")
    at = [i for i, k in enumerate(kernels) if k == "reorder.ref"]
    inside = kernels[at[0] + 1 : at[1]] if len(at) == 2 else []
    wanted = ["conv.ref", "activation.ref"] * 2 + ["pool.ref", "conv.ref", "activation.ref", "pool.ref"]
    if inside != wanted:
        return f"{kernels}"
    laid_out = [line for line in listing(f"sim:layout={option}") if f" {tag} " in line]
    return None if len(laid_out) == len(wanted) + 1 else f"{laid_out}"


def run(device: str, *options: str) -> str:
    """What the whole model gives, as text, with random inputs of one seed."""
    done = subprocess.run([ORTC, "run", DIGITS, "--plugin", PLUGIN, "--provider", device, "--seed", "7", "-i", "rand", *options],
                          capture_output=True, text=True, timeout=60, check=True)  # fmt: skip
    return done.stdout


for option, tag in (("1", "acdb"), ("2", "aBcd4b")):
    check(f"one Reorder in, one out, everything between in {tag}", lambda o=option, t=tag: twice(o, t))
check("none where the device likes none", lambda: None if "reorder.ref" not in steps("sim") else "there is one")
check("none where the device has no Reorder", lambda: None if "reorder.ref" not in steps("sim:layout=1:only=Conv") else "there is one")
check("a choice of layout keeps a node plain", lambda: None if [line for line in listing("sim:layout=2", "--choose", "conv2=@plain") if " conv2 " in line and "f32[1,32,8,8] @" in line] else "it is not")
for device in ("sim:layout=1", "sim:layout=2", "sim:layout=2,cpu"):
    check(f"{device} gives what ref gives", lambda d=device: None if run(d) == run("ref") else run(d))
check("a layout that is none", lambda: None if "is no layout" in refused("--choose", "conv1=@abCb4c") else "accepted")
sys.exit(finish())
