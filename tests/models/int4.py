"""Model 7: a quantized network of two layers. The weights are int4 with a scale per column, then uint4 in blocks of 16 with a
zero point for each; inputs go through QuantizeLinear and back. Odd extents, so that rows begin within a byte.
"""

from __future__ import annotations

import numpy as np
from model import F32, Model, TensorProto, helper, make, node, value

K, HIDDEN, N, BLOCK = 24, 33, 5, 16


def packed(name: str, dtype: int, array: np.ndarray) -> TensorProto:
    return helper.make_tensor(name, dtype, array.shape, array.flatten().tolist())


def int4() -> Model:
    rng = np.random.default_rng(7)
    blocks = -(-HIDDEN // BLOCK)
    constants = [
        ("w1", packed("w1", TensorProto.INT4, rng.integers(-8, 8, (K, HIDDEN)))),
        ("w1_scale", rng.uniform(0.02, 0.1, HIDDEN).astype(np.float32)),
        ("w1_zero", packed("w1_zero", TensorProto.INT4, rng.integers(-2, 3, HIDDEN))),
        ("w2", packed("w2", TensorProto.UINT4, rng.integers(0, 16, (HIDDEN, N)))),
        ("w2_scale", rng.uniform(0.02, 0.1, (blocks, N)).astype(np.float32)),
        ("w2_zero", packed("w2_zero", TensorProto.UINT4, rng.integers(6, 10, (blocks, N)))),
        ("x_scale", np.float32(0.03)), ("x_zero", np.uint8(128)), ("bias", rng.standard_normal(HIDDEN).astype(np.float32)),
    ]
    nodes = [
        node("QuantizeLinear", ["x", "x_scale", "x_zero"], ["x_q"]),
        node("DequantizeLinear", ["x_q", "x_scale", "x_zero"], ["x_d"]),
        node("DequantizeLinear", ["w1", "w1_scale", "w1_zero"], ["w1_d"], axis=1),
        node("MatMul", ["x_d", "w1_d"], ["h"]),
        node("Add", ["h", "bias"], ["h_b"]),
        node("Relu", ["h_b"], ["h_r"]),
        node("DequantizeLinear", ["w2", "w2_scale", "w2_zero"], ["w2_d"], axis=0, block_size=BLOCK),
        node("MatMul", ["h_r", "w2_d"], ["y"]),
        node("DynamicQuantizeLinear", ["x"], ["d", "d_scale", "d_zero"]),
    ]
    inputs = [value("x", F32, ["batch", K])]
    outputs = [value("y", F32, ["batch", N]), value("d", TensorProto.UINT8, ["batch", K]), value("d_scale", F32, [])]
    proto = make(nodes, inputs, outputs, constants, opset=21, ir_version=10)
    return Model("int4", proto, [{"x": rng.standard_normal((n, K)).astype(np.float32)} for n in (1, 4, 1, 9)], rtol=1e-4, atol=1e-4)
