#!/usr/bin/env python3
"""Layouts in whole convolutional networks on the cpu: test_convnets.py ORTC

ResNet-50 and a YOLO-like detector (convnets.py): between their convolutions nothing is reordered, through pooling, residual sums,
concatenations, splits, upsampling and activations; and small ones give what ref gives, with whatever layout is chosen for all, with
Winograd's transforms and without.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from harness import check, finish, packages  # noqa: E402

np, onnx = packages("numpy", "onnx")
import convnets  # noqa: E402

ORTC = sys.argv[1]


def steps(file: str, *options: str, environment: dict[str, str] | None = None) -> list[tuple[str, str, str]]:
    """Node, kernel and the rest of the line, of each step."""
    done = subprocess.run([ORTC, "info", file, "--provider", "cpu", "--steps", *options], capture_output=True, text=True, timeout=120, check=True, env=os.environ | (environment or {}))
    lines = [line.split(None, 4) for line in done.stdout.splitlines()]
    return [(f[2], f[3], f[4]) for f in lines if f[1:2] == ["kernel"] and f[0].isdigit()]


def layouts(model, most: int) -> str | None:
    """Blocked from the first convolution on, and Reorders only behind the last one."""
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/m.onnx")
        plan = steps(f"{folder}/m.onnx")
    convolutions = [i for i, s in enumerate(plan) if s[1].startswith("conv.")]
    reorders = [i for i, s in enumerate(plan) if s[1].startswith("reorder.")]
    if len(reorders) > most:
        return f"{len(reorders)} Reorders: {[plan[i] for i in reorders]}"
    plain = [plan[i][0] for i in convolutions if " aBcd16b " not in plan[i][2]]
    return f"plain: {plain}" if plain else None


def same(model, size: int, *more: list[str]) -> str | None:
    """On ref, and on the cpu as it likes, plain, and in blocks wherever that goes."""
    results = []
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/m.onnx")
        np.save(f"{folder}/x.npy", np.random.default_rng(5).standard_normal((1, 3, size, size)).astype(np.float32))
        for options in (["ref"], ["cpu"], ["cpu", "--no-winograd"], ["cpu", "--choose", "*=@plain"], ["cpu", "--choose", "*=@aBcd16b"], *more):
            subprocess.run([ORTC, "run", f"{folder}/m.onnx", "-q", "-i", f"{folder}/x.npy", "-o", f"{folder}/y.npy", "--provider", *options],
                           timeout=120, check=True, stdout=subprocess.DEVNULL)  # fmt: skip
            results.append(np.load(f"{folder}/y.npy"))
    off = [float(np.abs(r - results[0]).max()) for r in results]
    return None if max(off) <= 1e-4 * float(np.abs(results[0]).max()) else f"{off}"


def over_residuals(large: bool) -> str | None:
    """Sums with a residual: of points, windows and channels by themselves, with a program behind or without, some of them written where
    it was; where numbers are large, tiles compute some of them again."""
    n, c = convnets.Net(7), 32
    x = n.op("Relu", n.conv("image", 3, c, 3))
    pairs = []
    for kernel, group, program in ((1, 1, False), (3, 1, False), (3, c, False), (1, 1, True), (3, 1, True), (3, c, True)):
        skip, y = n.conv(x, c, c), n.conv(x, c, c, kernel, group=group)
        pairs.append((f"/{skip}", f"/{y}"))
        x = n.op("Relu", n.op("Add", n.silu(y) if program else y, n.op("Relu", skip)))  # or one Conv does both
    model = convnets.make(n.nodes, [convnets.value("image", convnets.F32, [2, 3, 20, 20])], [convnets.value(x, convnets.F32, None)], n.weights)
    image = np.random.default_rng(5).standard_normal((2, 3, 20, 20)).astype(np.float32)
    if large:
        image[0, :, 3, 3], image[1, 1, 8, 8], image[1, 1, 17, 17] = 1e19, np.inf, np.nan
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/m.onnx"
        onnx.save(model, file)
        np.save(f"{folder}/x.npy", image)

        def run(isa: str, *options: str):
            subprocess.run([ORTC, "run", file, "-q", "-i", f"{folder}/x.npy", "-o", f"{folder}/y.npy", "--provider", *options],
                           timeout=120, check=True, stdout=subprocess.DEVNULL, env=os.environ | ({"ORTC_CPU": isa} if isa else {}))  # fmt: skip
            return np.load(f"{folder}/y.npy")

        def far(have, want, bound: float) -> str | None:
            """Of an image; what a transform adds to others is as small beside the largest."""
            if not np.array_equal(np.isfinite(have), np.isfinite(want)):
                return "other numbers are finite"
            off = [float(np.abs(h - w)[np.isfinite(w)].max() / np.abs(w[np.isfinite(w)]).max()) for h, w in zip(have, want)]
            return None if max(off) <= bound else f"{off} off"

        want = run("", "ref")
        for isa in ("avx2", "avx512", "amx-fma", "amx"):
            for bound, options in ((1e-5, ()), (5e-2, ("--precision", "bf16"))):
                if options and large:  # what rounded sums overflow to is another matter
                    continue
                if wrong := far(run(isa, "cpu", *options), want, bound):
                    return f"{isa} {options}: {wrong}"
                place = {node: re.search(r" @(\d+)|output", line)[0] for node, _, line in steps(file, *options, environment={"ORTC_CPU": isa})}
                apart = [y for skip, y in pairs[::2][:2] if place.get(skip) != place.get(y)]  # one by one, and a channel by itself
                if apart:
                    return f"{isa} {options}: {apart} are not in place: {place}"
    return None


def winograd() -> str | None:
    """Windows of 3x3 without strides, and none of them where the caller does without; AMX, which takes small images, is left out."""
    avx512 = {"ORTC_CPU": "avx512"}
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(convnets.resnet50(batch=1), f"{folder}/m.onnx")
        by, without = (sum(s[1].startswith("conv.winograd") for s in steps(f"{folder}/m.onnx", *o, environment=avx512)) for o in ((), ("--no-winograd",)))
    return None if by >= 9 and not without else f"{by} steps, {without} without"


check("sums over residuals", lambda: over_residuals(False))
check("sums over residuals: large numbers", lambda: over_residuals(True))
check("ResNet-50: Winograd's transforms, and the switch", winograd)
check("ResNet-50: one Reorder, behind its convolutions", lambda: layouts(convnets.resnet50(batch=1), 1))
check("a detector: one Reorder for each head", lambda: layouts(convnets.yolo(), 3))
check("a small ResNet gives what ref gives", lambda: same(convnets.resnet50(32, 16, (1, 2, 1, 1), 10, batch=1), 32))
check("a small detector gives what ref gives", lambda: same(convnets.yolo(64, 16), 64))
def two_blocks() -> str | None:
    """Blocks of two sizes, between which no kernel moves: through the plain layout."""
    n = convnets.Net()
    x = n.op("Sigmoid", n.op("Relu", n.conv("image", 3, 20, 3)))
    n.op("Reshape", x, n.constant(np.array([1, -1])))
    model = convnets.make(n.nodes, [convnets.value("image", convnets.F32, [1, 3, 9, 9])],
                          [convnets.value(n.nodes[-1].output[0], convnets.F32, None)], n.weights)  # fmt: skip
    chosen = ["cpu", "--no-fusion", "--choose", "Conv=@aBcd16b", "--choose", "Relu=@aBcd8b", "--choose", "Sigmoid=@aBcd16b"]
    return same(model, 9, chosen)


def rows(stride: int, kernel: int, residual: bool) -> str | None:
    """A channel's windows between products over rows of pixels take them as they lie; what is in between is a result, too."""
    n, c = convnets.Net(3), 48
    x = n.op("Transpose", n.conv("image", 3, c, 3, 2), perm=[0, 2, 3, 1])
    x = n.op("Transpose", n.op("Relu", n.op("MatMul", x, n.constant(np.random.default_rng(2).standard_normal((c, c)).astype(np.float32)))), perm=[0, 3, 1, 2])
    y = n.silu(n.conv(x, c, c, kernel, stride, group=c))
    y = n.op("Add", y, n.op("Relu", x)) if residual else y
    out = n.op("MatMul", n.op("Transpose", y, perm=[0, 2, 3, 1]), n.constant(np.random.default_rng(4).standard_normal((c, c)).astype(np.float32)))
    model = convnets.make(n.nodes, [convnets.value("image", convnets.F32, [1, 3, 62, 62])], [convnets.value(out, convnets.F32, None)], n.weights)
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/m.onnx")
        plan = [s[1] for s in steps(f"{folder}/m.onnx")]
    if plan.count("conv.depthwise_rows") != 1 or plan.count("transpose.cpu") != 1 or "reorder.strided" in plan:
        return f"{plan}"
    return same(model, 62, ["cpu", "--choose", "*=@acdb"], ["cpu", "--no-fusion"], ["cpu", "--threads", "1"])


def ranks() -> str | None:
    """Inputs of no known rank: the cpu runs what kernel_shape gives up to eight dims, ref any other; a rank that is not its length is refused."""
    said = []
    for kernel, x, w, provider in [([3, 3], [1, 2, 5, 5], [3, 2, 3, 3], "cpu"), ([], [1, 2, 5, 5], [3, 2, 3, 3], "ref"),
                                   ([1] * 9, [1, 2, *[1] * 7, 3, 3], [2, 2, *[1] * 9], "ref"), ([1], [1, 2, 5, 5], [3, 2, 1, 1], None)]:  # fmt: skip
        node = onnx.helper.make_node("Conv", ["x", "w"], ["y"], **({"kernel_shape": kernel} if kernel else {}))
        model = convnets.make([node], [convnets.value(n, convnets.F32, None) for n in "xw"], [convnets.value("y", convnets.F32, None)], [])
        made = np.random.default_rng(7)
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(model, f"{folder}/m.onnx")
            for name, shape in (("x", x), ("w", w)):
                np.save(f"{folder}/{name}.npy", made.standard_normal(shape).astype(np.float32))
            run = [ORTC, "run", f"{folder}/m.onnx", "-q", "-i", f"x={folder}/x.npy", "-i", f"w={folder}/w.npy", "--provider"]
            done = [subprocess.run([*run, p, "-o", f"{folder}/{p}.npy"], capture_output=True, text=True, timeout=120) for p in ("ref", "cpu")]
            placed = subprocess.run([ORTC, "info", f"{folder}/m.onnx", "--placement", "--provider", "cpu"], capture_output=True, text=True, check=True).stdout
            results = [np.load(f"{folder}/{p}.npy") for p in ("ref", "cpu") if provider]
        if any((d.returncode == 0) != bool(provider) or (not provider and "kernel_shape" not in d.stderr) for d in done):
            said.append(f"{kernel}: {[(d.returncode, d.stderr) for d in done]}")
        elif provider and (placed.splitlines()[1].split()[3] != provider or not np.allclose(*results, rtol=1e-5, atol=1e-5)):
            said.append(f"{kernel}: {placed}")
    return "; ".join(said) or None


check("dims that no type says", ranks)
check("blocks of two sizes", two_blocks)
check("rows of pixels", lambda: rows(1, 3, False))
check("rows of pixels: two apart, and wide windows", lambda: rows(2, 7, False))
check("rows of pixels: with a residual", lambda: rows(1, 5, True))
check("channels that fill no block", lambda: same(convnets.yolo(64, 8, classes=7), 64))
sys.exit(finish())
