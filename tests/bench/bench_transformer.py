#!/usr/bin/env python3
"""What transformers are made of, one node a model, against onnxruntime, alternating in one run.

usage: bench_transformer.py BENCH_MODEL [FILTER] [THREADS...]
Attention as com.microsoft spells it (encoders, prefill, decoding with a cache of keys), products of 4 and 8 bits, and products
of few rows. Prints the medians of both in milliseconds and their ratio (above 1: ortc is faster), and for what is bound by memory
the bytes of weights or cache that ortc reads per second, and a core's rate of reading 256 MiB in this run.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time

import bench_networks
from bench_networks import np, onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

MS = "com.microsoft"


def model(file, nodes, inputs, outputs, constants):
    values = lambda ports: [helper.make_tensor_value_info(n, t, s) for n, t, s in ports]
    graph = helper.make_graph(nodes, "g", values(inputs), values(outputs), [numpy_helper.from_array(v, n) for n, v in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)], ir_version=10)
    onnx.save(made, file)


def attention(file, batch, heads, length, size, causal=0, mask=False, t=T.FLOAT):
    shape = [batch, length, heads * size]
    names = ["q", "k", "v"] + (["", "", "mask"] if mask else [])
    inputs = [(n, t, shape) for n in "qkv"] + ([("mask", t, [batch, 1, length, length])] if mask else [])
    node = helper.make_node("MultiHeadAttention", names, ["y"], domain=MS, num_heads=heads, unidirectional=causal)
    model(file, [node], inputs, [("y", t, shape)], {})
    return 0


def grouped(file, heads, kv, size, past, length, room, t=T.FLOAT):
    total = past + length
    rows = [("q", t, [1, length, heads * size]), ("k", t, [1, length, kv * size]), ("v", t, [1, length, kv * size])]
    caches = [(n, t, [1, kv, room, size]) for n in ("pk", "pv")]
    node = helper.make_node("GroupQueryAttention", ["q", "k", "v", "pk", "pv", "ends", "total"], ["y", "nk", "nv"], domain=MS,
                            num_heads=heads, kv_num_heads=kv)  # fmt: skip
    constants = {"ends": np.array([[total - 1]], np.int32), "total": np.array(total, np.int32)}
    model(file, [node], rows + caches, [("y", t, [1, length, heads * size])] + [(n, t, [1, kv, room, size]) for n in ("nk", "nv")], constants)
    return 2 * kv * total * size * (4 if t == T.FLOAT else 2)


def product(file, m, k, n, t=np.float32):
    r = np.random.default_rng(1)
    weights = (r.standard_normal((k, n), np.float32) / 64).astype(t)
    elem = helper.np_dtype_to_tensor_dtype(np.dtype(t))
    model(file, [helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", elem, [m, k])], [("y", elem, [m, n])], {"w": weights})
    return weights.nbytes


def blocks(file, m, k, n, block=32, bits=4, zeros=False):
    r = np.random.default_rng(1)
    shape = (n, k // block, block * bits // 8)
    constants = {"w": r.integers(0, 256, shape, np.uint8), "s": (r.random(n * (k // block)) / 64).astype(np.float32)}
    if zeros:
        constants["z"] = r.integers(0, 256, n * ((k // block * bits + 7) // 8), np.uint8)
    node = helper.make_node("MatMulNBits", ["x", "w", "s"] + (["z"] if zeros else []), ["y"], domain=MS, K=k, N=n, bits=bits, block_size=block)
    model(file, [node], [("x", T.FLOAT, [m, k])], [("y", T.FLOAT, [m, n])], constants)
    return sum(c.nbytes for c in constants.values())


CASES = {
    "BERT-base 128": (attention, (1, 12, 128, 64)),
    "BERT-base 128 mask": (attention, (1, 12, 128, 64, 0, True)),
    "MiniLM 8x128": (attention, (8, 12, 128, 32)),
    "MiniLM 1x32": (attention, (1, 12, 32, 32)),
    "ViT-B 197": (attention, (1, 12, 197, 64)),
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


def read_rate():
    """GB/s of one core, over more than caches hold."""
    a, best = np.ones(1 << 25, np.int64), 1.0
    for _ in range(5):
        start = time.perf_counter()
        a.max()
        best = min(best, time.perf_counter() - start)
    return a.nbytes / best / 1e9


def main() -> None:
    bench, wanted = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    bench_networks.ROUNDS, bench_networks.SECONDS = 5, float(os.environ.get("SECONDS_A_ROUND", "0.3"))
    print(f"reading: {read_rate():.1f} GB/s\n{'':20} threads   ortc ms    ort ms  ratio   GB/s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, (make, args) in CASES.items():
            if wanted not in name:
                continue
            file = f"{folder}/m.onnx"
            read = make(file, *args)
            for threads in map(int, sys.argv[3:] or ["1", "2"]):
                line = bench_networks.measure(bench, file, threads, {}).split()
                rate = f"{read / float(line[0]) / 1e6:6.1f}" if read else ""
                print(f"{name:20} {threads:7} {line[0]:>9} {line[1]:>9} {line[2]:>6} {rate}", flush=True)


if __name__ == "__main__":
    main()
