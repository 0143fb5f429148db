#!/usr/bin/env python3
"""BERT with symbolic batch and length wholly on a device: test_bert.py ORTC DEVICE [PLUGIN]

--require holds it to the device; every kernel of the plan is the device's, and the only copies are those of inputs and results. Equal to
ref within 1e-4 at several shapes, in one session each (`ortc run` reads one set of inputs; plans for more shapes are the C tests').
A layer of BERT-base in f16 is at most eight kernels.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "python"), str(HERE.parent / "models")]
from harness import check, finish, packages  # noqa: E402

np, onnx = packages("numpy", "onnx")
import make_bert  # noqa: E402
from half import half  # noqa: E402

ORTC, DEVICE = sys.argv[1:3]
PLUGIN = ["--plugin", sys.argv[3]] if len(sys.argv) > 3 else []
PROVIDER = DEVICE.split(":")[0]


def ortc(*words: object) -> str:
    done = subprocess.run([ORTC, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{words}: {done.returncode}: {done.stderr}"
    return done.stdout


def answers(path: Path, folder: Path, feeds: dict, *words: str) -> dict:
    np.savez(folder / "in.npz", **feeds)
    ortc("run", path, "--input", folder / "in.npz", "--out", folder / "out.npz", "--quiet", *words)
    with np.load(folder / "out.npz") as arrays:
        return dict(arrays)


def equal(path: Path, folder: Path, batch: int, length: int) -> str | None:
    feeds = make_bert.feeds(batch, length)
    have = answers(path, folder, feeds, "--provider", DEVICE, "--require", PROVIDER, *PLUGIN)
    for name, want in answers(path, folder, feeds, "--provider", "ref").items():
        worst = float(np.max(np.abs(have[name] - want)))
        if not worst < 1e-4:
            return f"{name} differs by {worst}"
    return None


def on_device(path: Path) -> str | None:
    steps = json.loads(ortc("info", path, "--json", "--steps", "--provider", DEVICE, *PLUGIN))["steps"]
    kernels = [s for s in steps if s["kind"] == "kernel"]
    strangers = [s["node"] for s in kernels if s["provider"] != PROVIDER]
    copies = [s for s in steps if s["kind"] != "kernel"]
    if strangers:
        return f"on the host: {strangers}"
    return None if len(copies) <= 3 + 2 and len(kernels) > 10 else f"{len(copies)} copies, {len(kernels)} kernels"


def kernels(folder: Path, layers: int) -> int:
    """Of a BERT of f16 with so many layers of BERT-base's sizes, at 1 x 128."""
    sizes = make_bert.Sizes(layers=layers, hidden=768, heads=12, inner=3072, positions=128)
    path = folder / f"layers{layers}.onnx"
    onnx.save(half(make_bert.model(17, sizes=sizes)), path)
    words = ["--set", "batch=1", "--set", "length=128", "--provider", DEVICE, *PLUGIN]
    steps = json.loads(ortc("info", path, "--json", "--steps", *words))["steps"]
    path.unlink()
    return sum(s["kind"] == "kernel" for s in steps)


def a_layer(folder: Path, most: int) -> str | None:
    """One more layer adds no more kernels than these."""
    more = kernels(folder, 2) - kernels(folder, 1)
    return None if 1 <= more <= most else f"{more} kernels a layer, more than {most}"


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for opset in (11, 17):
            path = folder / f"bert{opset}.onnx"
            onnx.save(make_bert.model(opset), path)
            check(f"opset {opset}: every kernel is on {PROVIDER}", lambda path=path: on_device(path))
            for batch, length in ((1, 1), (2, 7), (3, 16), (1, 64), (5, 33)):
                check(f"opset {opset}, {batch} x {length}", lambda p=path, b=batch, n=length: equal(p, folder, b, n))
        if PROVIDER == "cuda":  # what others join is their own affair
            check("at most 8 kernels a layer", lambda: a_layer(folder, 8))
    return finish()


sys.exit(main())
