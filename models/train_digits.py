#!/usr/bin/env python3
"""Trains the digits model and writes models/digits.onnx and ten test images.

The data are the 1,797 handwritten digits of 8x8 pixels that come with scikit-learn. The network is small enough to
be trained here in plain numpy, forward and backward, in well under two minutes on one core. What is written:

  digits.onnx       image [N,1,8,8] float32, grey values 0..255  ->  probabilities [N,10]
  digits/D.png      for each digit D the first image of the test split that shows it and that the model gets right
  digits/labels.txt the names of the ten classes, one a line

Everything is seeded and runs on one thread, so the same machine writes the same bytes again. Scaling of the grey
values is the model's first node: a caller feeds what the PNG holds. Batch normalisation stays a node of its own, in
its inference form, so that the file looks like an exporter's and not like one prepared for us.

Names: N batch, C channels, H and W image size, K kernel size. Arrays are N,C,H,W.
"""

from __future__ import annotations

import os

for _pool in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")  # before numpy: sums must not depend on the number of cores

import argparse
import struct
import time
import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 20
TEST_IMAGES = 360
EPOCHS = 30
BATCH = 64
PEAK_RATE = 3e-3
WEIGHT_DECAY = 1e-4
BN_EPSILON = 1e-5
BN_MOMENTUM = 0.9
OPSET = 18
IR_VERSION = 8
LABELS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def load_split() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Train and test images (uint8, N,1,8,8, as in the PNG files) and their digits; stratified and seeded."""
    data = load_digits()
    grey = np.round(data.images * (255.0 / 16.0)).astype(np.uint8)[:, None]  # 17 grey levels -> 8 bits
    digit = data.target.astype(np.int64)
    x_train, x_test, y_train, y_test = train_test_split(
        grey, digit, test_size=TEST_IMAGES, stratify=digit, random_state=SEED
    )
    return x_train, y_train, x_test, y_test


# Layers. Each has forward(x, training), backward(gradient) and params: name -> [value, gradient].


class Conv:
    """KxK convolution, stride 1, padding K/2, no bias: a BatchNorm follows."""

    def __init__(self, rng: np.random.RandomState, c_in: int, c_out: int, k: int = 3):
        weight = rng.standard_normal((c_out, c_in, k, k)) * np.sqrt(2.0 / (c_in * k * k))
        self.params = {"weight": [weight.astype(np.float32), None]}
        self.k = k

    def _columns(self, x: np.ndarray) -> np.ndarray:
        pad = self.k // 2
        x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        windows = np.lib.stride_tricks.sliding_window_view(x, (self.k, self.k), axis=(2, 3))  # N,C,H,W,K,K
        n, c, h, w = windows.shape[:4]
        return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * self.k * self.k)

    def forward(self, x: np.ndarray, training: bool) -> np.ndarray:
        self.shape = x.shape
        self.columns = self._columns(x)
        weight = self.params["weight"][0]
        y = self.columns @ weight.reshape(len(weight), -1).T
        n, _, h, w = x.shape
        return np.ascontiguousarray(y.reshape(n, h, w, -1).transpose(0, 3, 1, 2))

    def backward(self, grad: np.ndarray) -> np.ndarray:
        n, c, h, w = self.shape
        weight = self.params["weight"][0]
        rows = grad.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        self.params["weight"][1] = (rows.T @ self.columns).reshape(weight.shape)
        taps = (rows @ weight.reshape(len(weight), -1)).reshape(n, h, w, c, self.k, self.k)
        pad = self.k // 2
        out = np.zeros((n, c, h + 2 * pad, w + 2 * pad), np.float32)
        for i in range(self.k):
            for j in range(self.k):
                out[:, :, i : i + h, j : j + w] += taps[..., i, j].transpose(0, 3, 1, 2)
        return out[:, :, pad : pad + h, pad : pad + w]


class BatchNorm:
    """Per channel over N, H, W; keeps running statistics for inference."""

    def __init__(self, channels: int):
        self.params = {
            "scale": [np.ones(channels, np.float32), None],
            "bias": [np.zeros(channels, np.float32), None],
        }
        self.mean = np.zeros(channels, np.float32)
        self.var = np.ones(channels, np.float32)

    def forward(self, x: np.ndarray, training: bool) -> np.ndarray:
        if training:
            mean, var = x.mean(axis=(0, 2, 3)), x.var(axis=(0, 2, 3))
            self.mean = BN_MOMENTUM * self.mean + (1 - BN_MOMENTUM) * mean
            self.var = BN_MOMENTUM * self.var + (1 - BN_MOMENTUM) * var
        else:
            mean, var = self.mean, self.var
        channel = (1, -1, 1, 1)
        self.inverse = (1.0 / np.sqrt(var + BN_EPSILON)).astype(np.float32).reshape(channel)
        self.normal = (x - mean.reshape(channel)) * self.inverse
        return self.normal * self.params["scale"][0].reshape(channel) + self.params["bias"][0].reshape(channel)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        axes, channel = (0, 2, 3), (1, -1, 1, 1)
        count = grad.size // grad.shape[1]
        sum_grad, sum_normal = grad.sum(axes), (grad * self.normal).sum(axes)
        self.params["scale"][1], self.params["bias"][1] = sum_normal, sum_grad
        inner = grad - (sum_grad.reshape(channel) + self.normal * sum_normal.reshape(channel)) / count
        return inner * self.inverse * self.params["scale"][0].reshape(channel)


class Relu:
    params: dict = {}

    def forward(self, x: np.ndarray, training: bool) -> np.ndarray:
        self.mask = x > 0
        return x * self.mask

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad * self.mask


class MaxPool:
    """2x2, stride 2."""

    params: dict = {}

    def forward(self, x: np.ndarray, training: bool) -> np.ndarray:
        n, c, h, w = x.shape
        tiles = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
        self.choice = tiles.argmax(-1)
        self.shape = x.shape
        return tiles.max(-1)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        n, c, h, w = self.shape
        tiles = np.zeros(grad.shape + (4,), np.float32)
        np.put_along_axis(tiles, self.choice[..., None], grad[..., None], -1)
        return tiles.reshape(n, c, h // 2, w // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h, w)


class Flatten:
    params: dict = {}

    def forward(self, x: np.ndarray, training: bool) -> np.ndarray:
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad.reshape(self.shape)


class Gemm:
    """x · weightᵀ + bias, the weight stored [outputs, inputs] as torch exports it."""

    def __init__(self, rng: np.random.RandomState, inputs: int, outputs: int):
        weight = rng.standard_normal((outputs, inputs)) * np.sqrt(2.0 / inputs)
        self.params = {
            "weight": [weight.astype(np.float32), None],
            "bias": [np.zeros(outputs, np.float32), None],
        }

    def forward(self, x: np.ndarray, training: bool) -> np.ndarray:
        self.x = x
        return x @ self.params["weight"][0].T + self.params["bias"][0]

    def backward(self, grad: np.ndarray) -> np.ndarray:
        self.params["weight"][1], self.params["bias"][1] = grad.T @ self.x, grad.sum(0)
        return grad @ self.params["weight"][0]


SCALE = np.float32(1.0 / 255.0)


class Network:
    """The layers in order, under the names that their nodes get in the file."""

    def __init__(self, rng: np.random.RandomState):
        self.layers: dict[str, object] = {
            "conv1": Conv(rng, 1, 16),
            "bn1": BatchNorm(16),
            "relu1": Relu(),
            "conv2": Conv(rng, 16, 32),
            "bn2": BatchNorm(32),
            "relu2": Relu(),
            "pool2": MaxPool(),
            "conv3": Conv(rng, 32, 64),
            "bn3": BatchNorm(64),
            "relu3": Relu(),
            "pool3": MaxPool(),
            "flatten": Flatten(),
            "fc1": Gemm(rng, 64 * 2 * 2, 64),
            "relu4": Relu(),
            "fc2": Gemm(rng, 64, 10),
        }

    def logits(self, grey: np.ndarray, training: bool = False) -> np.ndarray:
        x = grey.astype(np.float32) * SCALE
        for layer in self.layers.values():
            x = layer.forward(x, training)
        return x

    def loss_and_gradients(self, grey: np.ndarray, digit: np.ndarray) -> float:
        """Mean cross-entropy; leaves each parameter's gradient in params."""
        p = softmax(self.logits(grey, training=True))
        rows = np.arange(len(digit))
        loss = -np.log(np.maximum(p[rows, digit], 1e-12)).mean()
        p[rows, digit] -= 1
        grad = p / np.float32(len(digit))
        for layer in reversed(self.layers.values()):
            grad = layer.backward(grad)
        return float(loss)

    def params(self) -> list[list[np.ndarray]]:
        return [param for layer in self.layers.values() for param in layer.params.values()]


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def shifted(grey: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Each image moved by -1, 0 or 1 pixel down and across: handwriting is not centred to the pixel."""
    padded = np.pad(grey, ((0, 0), (0, 0), (1, 1), (1, 1)))
    dy, dx = rng.choice(3, (2, len(grey)), p=(0.2, 0.6, 0.2))
    rows = (dy[:, None] + np.arange(8))[:, :, None]
    cols = (dx[:, None] + np.arange(8))[:, None, :]
    return padded[np.arange(len(grey))[:, None, None], 0, rows, cols][:, None]


def train(network: Network, x: np.ndarray, y: np.ndarray, rng: np.random.RandomState) -> None:
    """AdamW with a one-cycle learning rate."""
    params = network.params()
    first = [np.zeros_like(p[0]) for p in params]
    second = [np.zeros_like(p[0]) for p in params]
    steps = EPOCHS * (len(x) // BATCH)
    step = 0
    for epoch in range(EPOCHS):
        order = rng.permutation(len(x))
        losses = []
        for start in range(0, len(x) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            losses.append(network.loss_and_gradients(shifted(x[batch], rng), y[batch]))
            step += 1
            warm = 0.2 * steps
            rate = PEAK_RATE * (step / warm if step < warm else (steps - step) / (steps - warm))
            for i, param in enumerate(params):
                value, grad = param
                first[i] = 0.9 * first[i] + 0.1 * grad
                second[i] = 0.999 * second[i] + 0.001 * grad * grad
                move = (first[i] / (1 - 0.9**step)) / (np.sqrt(second[i] / (1 - 0.999**step)) + 1e-8)
                decay = WEIGHT_DECAY * value if value.ndim > 1 else 0.0
                param[0] = (value - rate * (move + decay)).astype(np.float32)
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1:2d} of {EPOCHS}: loss {np.mean(losses):.4f}", flush=True)


def export(network: Network, accuracy: float) -> onnx.ModelProto:
    nodes, initializers = [], []

    def constant(name: str, value: np.ndarray) -> str:
        initializers.append(numpy_helper.from_array(np.ascontiguousarray(value, np.float32), name))
        return name

    def node(op: str, name: str, inputs: list[str], output: str, **attributes) -> str:
        nodes.append(helper.make_node(op, inputs, [output], name=name, **attributes))
        return output

    x = node("Mul", "scale", ["image", constant("scale.factor", SCALE)], "scale.out")
    for name, layer in network.layers.items():
        weights = [constant(f"{name}.{key}", param[0]) for key, param in layer.params.items()]
        out = f"{name}.out"
        if isinstance(layer, Conv):
            k, pad = layer.k, layer.k // 2
            x = node("Conv", name, [x, *weights], out, kernel_shape=[k, k], pads=[pad] * 4, strides=[1, 1])
        elif isinstance(layer, BatchNorm):
            weights += [constant(f"{name}.mean", layer.mean), constant(f"{name}.var", layer.var)]
            x = node("BatchNormalization", name, [x, *weights], out, epsilon=BN_EPSILON)
        elif isinstance(layer, MaxPool):
            x = node("MaxPool", name, [x], out, kernel_shape=[2, 2], strides=[2, 2])
        elif isinstance(layer, Gemm):
            x = node("Gemm", name, [x, *weights], out, transB=1)
        elif isinstance(layer, Flatten):
            x = node("Flatten", name, [x], out, axis=1)
        else:
            x = node("Relu", name, [x], out)
    node("Softmax", "softmax", [x], "probabilities", axis=1)

    image = helper.make_tensor_value_info(
        "image", TensorProto.FLOAT, ["N", 1, 8, 8], doc_string="grey values 0 (background) to 255 (ink)"
    )
    probabilities = helper.make_tensor_value_info(
        "probabilities", TensorProto.FLOAT, ["N", 10], doc_string="one probability per digit, 0 to 9"
    )
    graph = helper.make_graph(nodes, "digits", [image], [probabilities], initializers)
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="ortc models/train_digits.py",
        producer_version="1",
        model_version=1,
        doc_string="Names the digit in an 8x8 grey image. Convolutional network of three layers, trained from the "
        "handwritten digits that come with scikit-learn.",
    )
    helper.set_model_props(
        model,
        {
            "accuracy": f"{accuracy:.6f}",
            "seed": str(SEED),
            "source": "UCI Optical Recognition of Handwritten Digits, as sklearn.datasets.load_digits()",
            "split": f"stratified, {TEST_IMAGES} images for testing",
        },
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def write_png(path: Path, grey: np.ndarray) -> None:
    """8-bit grey, no interlace, filter 0 on every row."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    h, w = grey.shape
    rows = b"".join(b"\0" + row.tobytes() for row in grey)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


def main() -> None:
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="train and export the digits model")
    parser.add_argument("--out", type=Path, default=here, help="folder to write to (default: models/)")
    out = parser.parse_args().out

    started = time.monotonic()
    x_train, y_train, x_test, y_test = load_split()
    print(f"{len(x_train)} images to train on, {len(x_test)} to test on")
    rng = np.random.RandomState(SEED)
    network = Network(rng)
    train(network, x_train, y_train, rng)

    right = network.logits(x_test).argmax(1) == y_test
    model = export(network, float(right.mean()))
    (by_file,) = ReferenceEvaluator(model).run(None, {"image": x_test.astype(np.float32)})
    if not np.array_equal(by_file.argmax(1) == y_test, right):
        raise SystemExit("the exported file does not compute what was trained")
    images = out / "digits"
    images.mkdir(parents=True, exist_ok=True)
    (out / "digits.onnx").write_bytes(model.SerializeToString(deterministic=True))
    (images / "labels.txt").write_text("".join(f"{name}\n" for name in LABELS))
    for digit in range(10):
        first = np.flatnonzero((y_test == digit) & right)[0]
        write_png(images / f"{digit}.png", x_test[first, 0])
    print(f"test accuracy {right.mean():.4f} ({right.sum()} of {len(right)})")
    print(f"wrote {out / 'digits.onnx'} in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
