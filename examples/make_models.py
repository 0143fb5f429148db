#!/usr/bin/env python3
"""Writes the models that the examples run, and what they run on. It needs the packages onnx and numpy.

    python3 make_models.py DIR

detect.onnx      squares of light in a picture: windows' means as scores, a grid of boxes, NonMaxSuppression
detect.ppm       a picture with three such squares
transcribe.onnx  tones to letters, frame by frame; what it has heard of each tone fades in a state
transcribe.wav   a word in tones
generate.onnx    the next character of a text: how often characters follow each other in a sample, and an attention
                 over all that was read so far that copies what followed the same character before
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def write(path: Path, nodes: list, inputs: list, outputs: list, constants: dict) -> None:
    values = lambda ends: [helper.make_tensor_value_info(name, kind, dims) for name, kind, dims in ends]  # noqa: E731
    graph = helper.make_graph(nodes, path.stem, values(inputs), values(outputs),
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    checker.check_model(model)
    save(model, path)


# ---- Detection

SIZE, WINDOW, STRIDE = 64, 12, 2


def detect(folder: Path) -> None:
    cells = (SIZE - WINDOW) // STRIDE + 1
    y, x = np.meshgrid(np.arange(cells) * STRIDE, np.arange(cells) * STRIDE, indexing="ij")
    boxes = np.stack([y, x, y + WINDOW, x + WINDOW], -1).reshape(1, -1, 4).astype(np.float32)
    node = helper.make_node
    nodes = [
        node("ReduceMean", ["image", "channels"], ["grey"], keepdims=1),
        node("AveragePool", ["grey"], ["means"], kernel_shape=[WINDOW, WINDOW], strides=[STRIDE, STRIDE]),
        node("Reshape", ["means", "flat"], ["scores"]),  # [1, 1, cells * cells]
        node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["chosen"]),
        node("Gather", ["chosen", "two"], ["which"], axis=1),
        node("Squeeze", ["boxes", "zero"], ["all"]),
        node("Gather", ["all", "which"], ["found"], axis=0),
        node("Squeeze", ["scores", "zero_one"], ["one_row"]),
        node("Gather", ["one_row", "which"], ["confidence"], axis=0),
    ]
    write(folder / "detect.onnx", nodes, [("image", F32, [1, 3, SIZE, SIZE])],
          [("found", F32, ["count", 4]), ("confidence", F32, ["count"])],
          {"channels": np.array([1]), "flat": np.array([1, 1, -1]), "boxes": boxes, "most": np.array([10]),
           "overlap": np.float32([0.1]), "least": np.float32([0.75]), "two": np.int64(2), "zero": np.array([0]),
           "zero_one": np.array([0, 1])})
    picture = np.full((SIZE, SIZE, 3), 40, np.uint8)
    for top, left in ((6, 8), (30, 44), (46, 10)):
        picture[top : top + WINDOW, left : left + WINDOW] = 250
    (folder / "detect.ppm").write_bytes(b"P6\n%d %d\n255\n" % (SIZE, SIZE) + picture.tobytes())


# ---- Transcription

RATE, FRAME, LETTERS = 8000, 160, "abcdefgh"


def transcribe(folder: Path) -> None:
    pitch = 400 + 200 * np.arange(len(LETTERS))  # whole periods in a frame: tones do not disturb each other
    angle = 2 * np.pi * np.outer(np.arange(FRAME), pitch) / RATE
    node = helper.make_node
    nodes = [
        node("MatMul", ["frame", "cosines"], ["c"]),
        node("MatMul", ["frame", "sines"], ["s"]),
        node("Mul", ["c", "c"], ["cc"]),
        node("Mul", ["s", "s"], ["ss"]),
        node("Add", ["cc", "ss"], ["power"]),
        node("Mul", ["heard", "fade"], ["faded"]),
        node("Add", ["faded", "power"], ["heard_next"]),  # the state: what was heard lately
        node("ArgMax", ["heard_next"], ["letter"], axis=1, keepdims=0),
        node("ReduceMax", ["power"], ["loudness"], keepdims=0),
    ]
    write(folder / "transcribe.onnx", nodes, [("frame", F32, [1, FRAME]), ("heard", F32, [1, len(LETTERS)])],
          [("letter", I64, [1]), ("loudness", F32, []), ("heard_next", F32, [1, len(LETTERS)])],
          {"cosines": (np.cos(angle) * 2 / FRAME).astype(np.float32), "sines": (np.sin(angle) * 2 / FRAME).astype(np.float32),
           "fade": np.float32(0.5)})
    rng = np.random.default_rng(1)
    sound = []
    for letter in "headache":
        t = np.arange(10 * FRAME) / RATE
        sound += [0.5 * np.sin(2 * np.pi * pitch[LETTERS.index(letter)] * t), np.zeros(6 * FRAME)]
    samples = np.concatenate(sound)
    samples = ((samples + rng.normal(0, 0.02, samples.size)).clip(-1, 1) * 32767).astype("<i2").tobytes()
    head = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, RATE, 2 * RATE, 2, 16) + b"data" + struct.pack("<I", len(samples))
    (folder / "transcribe.wav").write_bytes(b"RIFF" + struct.pack("<I", len(head) + len(samples)) + head + samples)


# ---- Generation

SAMPLE = "the quick brown fox jumps over the lazy dog. the dog sleeps. the fox runs. " * 4
SYMBOLS = 128  # ASCII


def generate(folder: Path) -> None:
    follows = np.full((SYMBOLS, SYMBOLS), 0.01)
    for a, b in zip(SAMPLE, SAMPLE[1:]):
        follows[ord(a), ord(b)] += 1
    logits = np.log(follows / follows.sum(1, keepdims=True)).astype(np.float32)
    node = helper.make_node
    nodes = [
        node("OneHot", ["token", "symbols", "off_on"], ["x"], axis=-1),  # [1, 1, SYMBOLS]
        node("Concat", ["past_keys", "before"], ["keys"], axis=1),       # of each place: the character before it
        node("Concat", ["past_values", "x"], ["values"], axis=1),        # and the character there
        node("Identity", ["x"], ["before_next"]),
        node("Transpose", ["keys"], ["keys_t"], perm=[0, 2, 1]),
        node("MatMul", ["x", "keys_t"], ["same"]),                       # 1 where the character here came before
        node("Mul", ["same", "sharpness"], ["scores"]),
        node("Softmax", ["scores"], ["attention"], axis=-1),
        node("MatMul", ["attention", "values"], ["copied"]),
        node("Mul", ["copied", "weight"], ["copy"]),
        node("Gather", ["follows", "token"], ["known"], axis=0),
        node("Add", ["known", "copy"], ["logits"]),
        node("ArgMax", ["logits"], ["next"], axis=-1, keepdims=0),       # [1, 1]
    ]
    write(folder / "generate.onnx", nodes,
          [("token", I64, [1, 1]), ("before", F32, [1, 1, SYMBOLS]), ("past_keys", F32, [1, "past", SYMBOLS]),
           ("past_values", F32, [1, "past", SYMBOLS])],
          [("next", I64, [1, 1]), ("before_next", F32, [1, 1, SYMBOLS]), ("keys", F32, [1, "all", SYMBOLS]),
           ("values", F32, [1, "all", SYMBOLS])],
          {"symbols": np.int64(SYMBOLS), "off_on": np.float32([0, 1]), "sharpness": np.float32(20), "weight": np.float32(8),
           "follows": logits})


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    detect(target)
    transcribe(target)
    generate(target)
