"""Keras networks as tf2onnx writes them, weights from a seed."""

from __future__ import annotations

import os

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
import numpy as np
import tensorflow as tf
import tf2onnx
from network import File, Network, differs, theirs

K, L = tf.keras, tf.keras.layers


def files(make, shapes, ints: int = 0) -> list[File]:
    tf.keras.utils.set_random_seed(1)
    model = make()
    spec = tf.TensorSpec([a if a == b else None for a, b in zip(*shapes)], tf.int32 if ints else tf.float32, name="x")
    call = tf.function(lambda x: model(x, training=False), input_signature=[spec])
    onx, _ = tf2onnx.convert.from_function(call, input_signature=[spec], opset=17)
    sets = []
    for k, shape in enumerate(shapes):
        rng = np.random.default_rng(k)
        x = rng.integers(0, ints, shape).astype(np.int32) if ints else rng.standard_normal(shape).astype(np.float32)
        want = [np.asarray(model(x, training=False))]
        feeds = {onx.graph.input[0].name: x}
        if problem := differs(theirs(onx, feeds), want):
            raise ValueError(f"onnxruntime does not say what TensorFlow says: {problem}")
        sets.append((feeds, want))
    return [File(onx, sets)]


def recurrent(cell) -> K.Model:
    return K.Sequential([L.Embedding(50, 16), L.Bidirectional(cell(12, return_sequences=True)), cell(8), L.Dense(5, activation="softmax")])


def attention() -> K.Model:
    x = K.Input((None,), dtype="int32")
    h = L.Embedding(50, 32)(x)
    for _ in range(2):
        h = L.LayerNormalization()(h + L.MultiHeadAttention(4, 8)(h, h, use_causal_mask=True))
        h = L.LayerNormalization()(h + L.Dense(32)(L.Dense(64, activation=lambda v: tf.nn.gelu(v, approximate=True))(h)))
    return K.Model(x, L.Dense(50)(h))


def unet() -> K.Model:
    x = K.Input((32, 32, 3))
    a = L.Conv2D(8, 3, padding="same", activation="relu")(x)
    b = L.SeparableConv2D(16, 3, strides=2, padding="same", activation="swish")(a)
    c = L.UpSampling2D(interpolation="bilinear")(L.GroupNormalization(4)(b))
    d = L.Conv2DTranspose(8, 3, strides=2, padding="same")(b)
    return K.Model(x, L.Conv2D(2, 1)(L.Concatenate()([a, c, d])))


PICTURE = ((1, 64, 64, 3), (2, 64, 64, 3))
MADE = {
    "MobileNetV2": lambda: files(lambda: K.applications.MobileNetV2((64, 64, 3), 0.35, weights=None, classes=10), PICTURE),
    "MobileNetV3": lambda: files(lambda: K.applications.MobileNetV3Small((64, 64, 3), 0.75, minimalistic=True, weights=None, classes=10, include_preprocessing=False), PICTURE),
    "LSTM": lambda: files(lambda: recurrent(L.LSTM), ((2, 7), (3, 12)), 50),
    "GRU": lambda: files(lambda: recurrent(L.GRU), ((2, 7), (3, 12)), 50),
    "transformer": lambda: files(attention, ((2, 7), (3, 12)), 50),
    "U-Net": lambda: files(unet, ((1, 32, 32, 3), (2, 32, 32, 3))),
}
NETWORKS = [Network(f"{n} of Keras", "TensorFlow", "tf2onnx", m) for n, m in MADE.items()]
