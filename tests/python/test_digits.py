#!/usr/bin/env python3
"""The digits model through the command line, on every image that its training kept for testing.

usage: test_digits.py BUILD/ortc [PROVIDER...]        (default: ref and cpu)

For each provider: the accuracy that training stored in the file, onnxruntime's probabilities within 1e-5, the same
for other batch sizes, and the digit named for each of the ten PNG files.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import check, finish, packages, skip

np, onnx, onnxruntime, _ = packages("numpy", "onnx", "onnxruntime", "sklearn")

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "digits.onnx"
sys.path.insert(0, str(ROOT / "models"))
import train_digits  # noqa: E402

TOLERANCE = 1e-5
LEAST_ACCURACY = 0.97


class Ortc:
    """The command line on one provider; `ref` takes what the provider has no kernel for."""

    def __init__(self, program: str, provider: str):
        self.command = [program, "run", str(MODEL), "--provider", provider]

    def run(self, *options: str) -> str:
        command = [*self.command, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def probabilities(self, images: np.ndarray) -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            image, result = Path(folder, "image.npy"), Path(folder, "result.npz")
            np.save(image, images)
            self.run("--input", f"image={image}", "--out", str(result))
            with np.load(result) as arrays:
                if arrays.files != ["probabilities"]:
                    raise RuntimeError(f"the .npz holds {arrays.files}, not just 'probabilities'")
                return arrays["probabilities"]


def compare(got: np.ndarray, expected: np.ndarray) -> str | None:
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{list(got.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if not np.isfinite(got).all():
        return "NaN or infinity"
    worst = float(np.abs(got - expected).max())
    return None if worst <= TOLERANCE else f"differs from onnxruntime by {worst:.3g}, allowed is {TOLERANCE:g}"


def accuracy(got: np.ndarray, digits: np.ndarray, promised: float) -> str | None:
    share = float((got.argmax(axis=1) == digits).mean())
    if share < LEAST_ACCURACY or share < promised - 1e-6:
        return f"accuracy {share:.4f}, training printed {promised:.4f}, {LEAST_ACCURACY} is the least"
    return None


def named(ortc: Ortc, digit: int, expected: np.ndarray) -> str | None:
    """--topk 3 --json for one PNG: the digit first, and three classes in falling order with their probabilities."""
    text = ortc.run("--input", str(MODEL.parent / "digits" / f"{digit}.png"), "--topk", "3", "--json")
    top = top_classes(json.loads(text))
    want = list(np.argsort(-expected, kind="stable")[:3])
    if [index for index, _ in top] != want:
        return f"classes {[index for index, _ in top]} instead of {want}"
    worst = max(abs(value - float(expected[index])) for index, value in top)
    return None if worst <= TOLERANCE else f"probabilities differ from onnxruntime's by {worst:.3g}"


def top_classes(answer: dict) -> list[tuple[int, float]]:
    """(class, probability) pairs, best first, out of the answer of ortc run --topk --json for one image."""
    (output,) = [output for output in answer["outputs"] if output["name"] == "probabilities"]
    (row,) = output["topk"]
    return [(entry["class"], entry["value"]) for entry in row["best"]]


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit("usage: test_digits.py BUILD/ortc [PROVIDER...]")
    program, providers = sys.argv[1], sys.argv[2:] or ["ref", "cpu"]
    if not Path(program).exists():
        skip(f"{program} is not built")

    _, _, grey, digits = train_digits.load_split()
    images = grey.astype(np.float32)
    properties = {p.key: p.value for p in onnx.load(MODEL).metadata_props}
    promised = float(properties["accuracy"])
    session = onnxruntime.InferenceSession(str(MODEL), providers=["CPUExecutionProvider"])

    def theirs(x: np.ndarray) -> np.ndarray:
        return session.run(None, {"image": x})[0]

    pngs = {}  # the PNG files hold the first image of each digit that training got right
    right = theirs(images).argmax(axis=1) == digits
    for digit in range(10):
        first = np.flatnonzero((digits == digit) & right)[0]
        pngs[digit] = theirs(images[first : first + 1])[0]

    for provider in providers:
        ortc = Ortc(program, provider)
        all_images = None

        def whole_split() -> str | None:
            nonlocal all_images
            all_images = ortc.probabilities(images)
            return compare(all_images, theirs(images))

        if check(f"{provider}: test split against onnxruntime", whole_split):
            check(f"{provider}: accuracy", lambda: accuracy(all_images, digits, promised))
        else:
            check(f"{provider}: accuracy", lambda: "there are no probabilities")
        for batch in (1, 7):
            some = images[:batch]
            check(f"{provider}: batch {batch}", lambda: compare(ortc.probabilities(some), theirs(some)))
        for digit, expected in pngs.items():
            check(f"{provider}: {digit}.png", lambda: named(ortc, digit, expected))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
