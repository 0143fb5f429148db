#!/usr/bin/env python3
"""Blocks of many architectures (make_attention.py): test_attention.py ORTC. All that the table says is raised, in f32 and f16, in both
exporters' forms; answers are onnxruntime's, within a few steps of the type at the largest element.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from harness import check, finish, packages  # noqa: E402

np, onnx, ort = packages("numpy", "onnx", "onnxruntime")
import make_attention as made  # noqa: E402

ORTC = sys.argv[1]
STEPS = 6  # of the type, at the largest element: two norms, two products in a row and an activation round


def ortc(*words: object) -> str:
    done = subprocess.run([ORTC, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{words}: {done.returncode}: {done.stderr}"
    return done.stdout


def raised(path: Path) -> dict[str, int]:
    passes = json.loads(ortc("info", path, "--json", "--passes"))["normalising_passes"]
    return {p["name"].removeprefix("raise-"): p["edits"] for p in passes}


def answer(path: Path, feeds: dict) -> np.ndarray:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, feeds)[0]


def case(name: str, form: str, half: bool, folder: Path) -> str | None:
    path, proto = folder / "block.onnx", made.model(name, form, half)
    onnx.save(proto, path)
    have, want = raised(path), made.expected(name, form)
    row = {k: have[k] for k in want}
    print(f"| {name} | {form} | {'f16' if half else 'f32'} | {want['attention']} | {row['attention']} |")
    if row != want:
        return f"raised {row}, expected {want}"
    feeds = made.feeds(proto, half)
    np.savez(folder / "in.npz", **feeds)
    y = answer(path, feeds).astype(np.float64)
    bound = STEPS * float(np.finfo(np.float16 if half else np.float32).eps) * np.max(np.abs(y))
    for provider in ("ref", "cpu"):
        ortc("run", path, "--input", folder / "in.npz", "--out", folder / "out.npz", "--provider", provider)
        (out,) = np.load(folder / "out.npz").values()
        worst = np.max(np.abs(out.astype(np.float64) - y))
        if not worst <= bound:
            return f"{provider}: differs by {worst}, {bound} is allowed"
    return None


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        for architecture in made.ARCHITECTURES:
            for form in made.FORMS:
                for half in (False, True):
                    check(f"{architecture}, {form}, {'f16' if half else 'f32'}", lambda: case(architecture, form, half, Path(name)))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
