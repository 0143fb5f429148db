#!/usr/bin/env python3
"""What transformers are made of, one node a model, measured as peers.py measures networks, with its words: bench_transformer.py BUILD

Attention as com.microsoft spells it (encoders, prefill, decoding with a cache of keys), products of 4 and 8 bits, and products
of few rows.
"""

from __future__ import annotations

import sys

import peers
from networks import Network, np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

MS = "com.microsoft"
PAST, PRESENT = (tuple(f"{kind}.{part}" for part in ("key", "value")) for kind in ("past_key_values", "present"))


def model(nodes, inputs, outputs, constants):
    values = lambda ports: [helper.make_tensor_value_info(n, t, s) for n, t, s in ports]
    graph = helper.make_graph(nodes, "g", values(inputs), values(outputs), [numpy_helper.from_array(v, n) for n, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)], ir_version=10)


def attention(batch, heads, length, size, causal=0, mask=False, t=T.FLOAT):
    shape = [batch, length, heads * size]
    names = ["q", "k", "v"] + (["", "", "mask"] if mask else [])
    inputs = [(n, t, shape) for n in "qkv"] + ([("mask", t, [batch, 1, length, length])] if mask else [])
    node = helper.make_node("MultiHeadAttention", names, ["y"], domain=MS, num_heads=heads, unidirectional=causal)
    return model([node], inputs, [("y", t, shape)], {})


def grouped(heads, kv, size, past, length, room, t=T.FLOAT):
    total = past + length
    rows = [("q", t, [1, length, heads * size]), ("k", t, [1, length, kv * size]), ("v", t, [1, length, kv * size])]
    caches = [(n, t, [1, kv, room, size]) for n in PAST]
    node = helper.make_node("GroupQueryAttention", ["q", "k", "v", *PAST, "ends", "total"], ["y", *PRESENT], domain=MS,
                            num_heads=heads, kv_num_heads=kv)  # fmt: skip
    constants = {"ends": np.array([[total - 1]], np.int32), "total": np.array(total, np.int32)}
    return model([node], rows + caches, [("y", t, [1, length, heads * size])] + [(n, t, [1, kv, room, size]) for n in PRESENT], constants)


def product(m, k, n, t=np.float32):
    r = np.random.default_rng(1)
    weights = (r.standard_normal((k, n), np.float32) / 64).astype(t)
    elem = helper.np_dtype_to_tensor_dtype(np.dtype(t))
    return model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", elem, [m, k])], [("y", elem, [m, n])], {"w": weights})


def blocks(m, k, n, block=32, bits=4, zeros=False):
    r = np.random.default_rng(1)
    shape = (n, k // block, block * bits // 8)
    constants = {"w": r.integers(0, 256, shape, np.uint8), "s": (r.random(n * (k // block)) / 64).astype(np.float32)}
    if zeros:
        constants["z"] = r.integers(0, 256, n * ((k // block * bits + 7) // 8), np.uint8)
    node = helper.make_node("MatMulNBits", ["x", "w", "s"] + (["z"] if zeros else []), ["y"], domain=MS, K=k, N=n, bits=bits, block_size=block)
    return model([node], [("x", T.FLOAT, [m, k])], [("y", T.FLOAT, [m, n])], constants)


CASES = {
    "BERT-base 128": (attention, (1, 12, 128, 64)),
    "BERT-base 128 mask": (attention, (1, 12, 128, 64, 0, True)),
    "MiniLM 8x128": (attention, (8, 12, 128, 32)),
    "MiniLM 1x32": (attention, (1, 12, 32, 32)),
    "ViT-B 197": (attention, (1, 12, 197, 64)),
    "Swin 64 x 49": (attention, (64, 3, 49, 32)),
    "Swin 4 x 49": (attention, (4, 12, 49, 32)),
    "Whisper 1500": (attention, (1, 6, 1500, 64)),
    "1024 causal": (attention, (1, 12, 1024, 64, 1)),
    "4096": (attention, (1, 4, 4096, 64)),
    "512 x 128": (attention, (1, 8, 512, 128)),
    "GQA decode 512": (grouped, (16, 4, 64, 511, 1, 1024)),
    "GQA decode 4096": (grouped, (32, 8, 128, 4095, 1, 4096)),
    "MHA decode 4096": (grouped, (16, 16, 64, 4095, 1, 4096)),
    "GQA prefill 512": (grouped, (16, 4, 64, 0, 512, 512)),
    "int4 1x4096x4096": (blocks, (1, 4096, 4096)),
    "int4 1x4096x4096 z": (blocks, (1, 4096, 4096, 32, 4, True)),
    "int4 1x4096 b128": (blocks, (1, 4096, 4096, 128)),
    "int8 1x4096x4096": (blocks, (1, 4096, 4096, 32, 8)),
    "int4 4x4096x4096": (blocks, (4, 4096, 4096)),
    "int4 8x4096x4096": (blocks, (8, 4096, 4096)),
    "int4 128x2048x2048": (blocks, (128, 2048, 2048)),
    "int4 512x2048x2048": (blocks, (512, 2048, 2048)),
    "f32 1x4096x4096": (product, (1, 4096, 4096)),
    "f32 2x4096x4096": (product, (2, 4096, 4096)),
    "f32 4x768x3072": (product, (4, 768, 3072)),
    "f32 4x4096x4096": (product, (4, 4096, 4096)),
    "f32 8x4096x4096": (product, (8, 4096, 4096)),
    "f16 1x4096x4096": (product, (1, 4096, 4096, np.float16)),
    "f16 8x4096x4096": (product, (8, 4096, 4096, np.float16)),
}


def network(name, make, arguments):
    tied = make == grouped
    dims = {"total": arguments[3] + arguments[4], "capacity": arguments[5]} if tied else {}
    return Network(make.__name__, name, lambda: make(*arguments), lambda: make(*arguments), dims, tied=tied, far=2e-2 if np.float16 in arguments else 1e-3)


if __name__ == "__main__":
    sys.exit(peers.main(tuple(network(name, *case) for name, case in CASES.items())))
