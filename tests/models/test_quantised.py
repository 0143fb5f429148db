#!/usr/bin/env python3
"""Quantised networks on the cpu: test_quantised.py ORTC

What onnxruntime's quantiser makes of a convolutional network and of a transformer (quantised.py): no product and no convolution of
it is left in numbers, nothing runs on ref, and the results are ref's and onnxruntime's, on every instruction set.

Sums of integers are exact and ref's are nearly so, so that a value on the border between two integers may be rounded to either:
results may be off by some steps of the last scale, which is a few hundredths of their range. onnxruntime runs unoptimised: what it
fuses saturates on processors without VNNI.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from harness import check, finish, packages  # noqa: E402

np, onnx, _ = packages("numpy", "onnx", "onnxruntime")
import peer  # noqa: E402
from quantised import S8, U8, cnn, encoder, gated, joined, quantised  # noqa: E402

ORTC = sys.argv[1]
FORMS = {
    "signed weights per channel": {"weights": S8, "activations": U8, "per_channel": True},
    "all signed, symmetric": {"weights": S8, "activations": S8, "symmetric": True},
    "all unsigned": {"weights": U8, "activations": U8},
}


def run(file: str, x: str, out: str, provider: str, level: str | None = None):
    env = {**os.environ, "ORTC_CPU": level} if level else None
    subprocess.run([ORTC, "run", file, "-q", "-i", x, "-o", out, "--provider", provider], env=env, timeout=120, check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    return np.load(out)


def kernels(file: str) -> list[str]:
    done = subprocess.run([ORTC, "info", file, "--provider", "cpu", "--steps"], capture_output=True, text=True, timeout=120, check=True)
    return [f[3] for f in (line.split() for line in done.stdout.splitlines()) if f[1:2] == ["kernel"] and f[0].isdigit()]


def as_others(model, products: dict[str, int], off: float) -> str | None:
    """products: how many steps each kernel must have, whatever its way; off: of the largest result."""
    with tempfile.TemporaryDirectory() as folder:
        file, x, y = f"{folder}/m.onnx", f"{folder}/x.npy", f"{folder}/y.npy"
        onnx.save(model, file)
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        data = np.random.default_rng(6).standard_normal(shape).astype(np.float32)
        np.save(x, data)
        plan = kernels(file)
        have = {name: sum(k == name or k.startswith(name + ".") for k in plan) for name in products}
        if have != products or any(k.endswith(".ref") or k.endswith("_ref") for k in plan):
            return f"steps: {plan}"
        want = peer.plain(model).run(None, {"x": data})[0]
        ref, best = run(file, x, y, "ref"), run(file, x, y, "cpu")
        most = float(np.abs(want).max())
        for name, other in (("onnxruntime", want), ("ref", ref)):
            if not np.abs(best - other).max() <= off * most:
                return f"off by {np.abs(best - other).max()} of {most} from {name}"
        for level in ("scalar", "avx2"):
            if not np.abs(run(file, x, y, "cpu", level) - best).max() <= off * most:
                return f"{level} gives something else"
    return None


def casts() -> str | None:
    """What is behind a convolution's 8 bits is in its epilogue, whose result may be of any type."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (uint8[1,3,8,9] x) => (%s[1,5,8,9] y)
        <uint8[5,3,3,3] w = {%s}, float xs = {0.02}, uint8 xz = {128}, float ws = {0.01}, uint8 wz = {120}, float ys = {0.05}, uint8 yz = {100}>
        { q = QLinearConv<pads = [1, 1, 1, 1]> (x, xs, xz, w, ws, wz, ys, yz)  y = Cast<to = %d> (q) }"""
    weights = ", ".join(str(v) for v in np.random.default_rng(1).integers(0, 256, 135))
    data = np.random.default_rng(2).integers(0, 256, (1, 3, 8, 9)).astype(np.uint8)
    for name in ("int8", "uint16", "int16", "int32", "uint32", "int64", "uint64", "float16", "float", "double", "bool"):
        with tempfile.TemporaryDirectory() as folder:
            file, x, y = f"{folder}/m.onnx", f"{folder}/x.npy", f"{folder}/y.npy"
            to = onnx.TensorProto.DataType.Value(name.upper())
            onnx.save(onnx.parser.parse_model(text % (name, weights, to)), file)
            np.save(x, data)
            if not np.array_equal(run(file, x, y, "ref"), run(file, x, y, "cpu")):
                return f"to {name}: not what ref gives"
    return None


check("a convolution's 8 bits to any type", casts)
CNN = {"conv_integer": 13, "matmul_integer.packed": 1, "gemm.packed": 0}
GATED = {"conv_integer": 8, "matmul_integer.packed": 1, "gemm.packed": 0, "program": 1, "pool.means": 1}  # x's bytes; else epilogues
for name, how in FORMS.items():
    # two of the four values of a join come from 8 bits of other scales, and, unless they are symmetric, what is added up, too
    joins = {"conv_integer": 8, "matmul_integer.packed": 1, "program": 3 if how.get("symmetric") else 7, "pool.means": 1}
    for form in ("qdq", "qlinear"):
        for what, model, steps in (("convolutions", cnn, CNN), ("gates and residuals", gated, GATED), ("halves and joins", joined, joins)):
            check(f"{what}, {form}, {name}", lambda how=how, m=model, f=form, s=steps: as_others(quantised(m(), f, **how), s, 0.02))
    # twelve linear layers; the scores and their sums, too
    products = {"matmul_integer.packed": 16, "gemm.packed": 0}
    check(f"a transformer, QDQ, {name}", lambda how=how, p=products: as_others(quantised(encoder(), "qdq", **how), p, 0.05))
for name, how in {"signed per channel": {"weights": S8, "per_channel": True}, "unsigned": {"weights": U8}}.items():
    products = {"matmul_integer.packed": 12, "dynamic_quantize.vector": 8}
    check(f"a transformer, dynamic, {name}", lambda how=how, p=products: as_others(quantised(encoder(), "dynamic", **how), p, 1e-4))
sys.exit(finish())
