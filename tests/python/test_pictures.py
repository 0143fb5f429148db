#!/usr/bin/env python3
"""ImageDecoder, on the standard's own pictures: test_pictures.py ORTC.

Each format in each pixel format; then every picture damaged in many places, which must end in some picture or in none: the
module runs inside of the program, which a sanitizer may be watching.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from harness import check, finish, packages

np, onnx, pictures = packages("numpy", "onnx", "onnx.backend.test.case.node._image_decoder_data")
from onnx import TensorProto, helper  # noqa: E402

ORTC = sys.argv[1]
DAMAGED = 30  # of each format
rng = np.random.default_rng(3)
formats = {name.split("_")[3]: value for name, value in vars(pictures).items() if name.startswith("image_decoder_decode") and name.endswith("_rgb")}


def decode(streams: list, pixel_format: str) -> list:
    """One run of one model: a decoder for each stream."""
    names = [str(i) for i in range(len(streams))]
    graph = helper.make_graph([helper.make_node("ImageDecoder", [f"x{n}"], [f"y{n}"], pixel_format=pixel_format) for n in names], "g",
                              [helper.make_tensor_value_info(f"x{n}", TensorProto.UINT8, [f"n{n}"]) for n in names],
                              [helper.make_tensor_value_info(f"y{n}", TensorProto.UINT8, None) for n in names])  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), f"{folder}/m.onnx")
        np.savez(f"{folder}/x.npz", **{f"x{n}": np.frombuffer(bytes(s), np.uint8) for n, s in zip(names, streams)})
        inputs = [word for n in names for word in ("-i", f"x{n}={folder}/x.npz")]
        done = subprocess.run([ORTC, "run", f"{folder}/m.onnx", "-q", *inputs, "--out", f"{folder}/y.npz"], capture_output=True, text=True, timeout=250)
        if done.returncode:
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-2000:]}")
        got = np.load(f"{folder}/y.npz")
        return [got[f"y{n}"] for n in names]


def equal(pixel_format: str) -> str:
    wrong = []
    for (name, picture), got in zip(formats.items(), decode([p.data for p in formats.values()], pixel_format)):
        want = picture.output if pixel_format == "RGB" else picture.output[:, :, ::-1]
        if pixel_format == "Grayscale":
            want = ((picture.output.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32) + 32768) >> 16).astype(np.uint8)[:, :, None]
        if got.shape != want.shape or (got != want).any():
            wrong.append(name)
    return ", ".join(wrong)


def damaged(picture) -> str:
    streams = []
    for i in range(DAMAGED):
        s = bytearray(picture.data.tobytes())
        if i % 3 == 0:
            s = s[: rng.integers(0, len(s))]
        for _ in range(1 + i % 4):
            if s:
                s[rng.integers(0, min(len(s), 64 if i % 2 else len(s)))] = rng.integers(0, 256)
        streams.append(s)
    return "" if all(y.ndim == 3 and y.shape[2] == 3 for y in decode(streams, "RGB")) else "a result has another form"


check("all formats are there", lambda: "" if len(formats) >= 7 else f"there are {list(formats)}")
for kind in ("RGB", "BGR", "Grayscale"):
    check(kind, lambda kind=kind: equal(kind))
for name, picture in formats.items():
    check(f"{name}, damaged", lambda picture=picture: damaged(picture))
check("nothing at all", lambda: "" if decode([b""], "RGB")[0].shape == (0, 0, 3) else "another shape")
sys.exit(finish())
