#!/usr/bin/env python3
"""Kernels of the cpu provider against onnxruntime's own, one thread, by both profilers: medians, alternated.

usage: bench_kernels.py ORTC [PART OF A NAME,...]
For each operator at 4,096 and at 1,048,576 elements: microseconds of the node in ortc and in onnxruntime, their ratio, of
ortc the bytes read and written per second, and at 1M that rate over the smaller of what memcpy reaches on as many bytes and
its own at 4K, where all lies in L1 (its fixed costs included). onnxruntime has few kernels of bf16, and none of f16 for
some operators: there ours stand alone, or its Casts are counted with it.
"""
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

SIZES = {"4K": (64, 64), "1M": (1024, 1024)}


FLOATS = ("f32", "f16", "bf16")
UNARY = ["Exp", "Log", "Sqrt", "Tanh", "Erf", "Sigmoid", "Gelu", "Relu", "HardSwish", "Softplus", "Elu"]
BINARY = ["Add", "Mul", "Div", "Max", "Pow"]


# shape: of all inputs, or a list of shapes; consts: arrays, names of kinds of them, None for one left out
def one(name, op, shape, inputs=1, attrs=None, consts=(), out=None, types=FLOATS, outputs=1):
    return name, op, shape, inputs, attrs or {}, consts, out, types, outputs


def cases():
    for size, (r, c) in SIZES.items():
        img = (1, 16, 16, 16) if size == "4K" else (1, 64, 128, 128)
        t3 = (4, 32, 32) if size == "4K" else (16, 256, 256)
        i64 = lambda *v: np.array(v, np.int64)
        yield size, one("Softmax", "Softmax", (r, c))
        yield size, one("Softmax axis 0", "Softmax", (r, c), attrs={"axis": 0})
        yield size, one("LogSoftmax", "LogSoftmax", (r, c))
        yield size, one("LayerNormalization", "LayerNormalization", (r, c), consts=("row", "row"))
        yield size, one("InstanceNormalization", "InstanceNormalization", img, consts=("ch", "ch"))
        yield size, one("BatchNormalization", "BatchNormalization", img, consts=("ch", "ch", "ch", "pos"))
        yield size, one("LpNormalization", "LpNormalization", (r, c))
        yield size, one("ReduceSum inner", "ReduceSum", (r, c), consts=(i64(1),))
        yield size, one("ReduceSum outer", "ReduceSum", (r, c), consts=(i64(0),))
        yield size, one("ReduceMean middle", "ReduceMean", t3, consts=(i64(1),))
        yield size, one("ReduceMax all", "ReduceMax", (r, c))
        yield size, one("ReduceMean 2 of 4", "ReduceMean", img, consts=(i64(2, 3),))
        yield size, one("ReduceMax outer", "ReduceMax", (r, c), consts=(i64(0),))
        yield size, one("ReduceMax inner", "ReduceMax", (r, c), consts=(i64(1),))
        yield size, one("ReduceMax middle", "ReduceMax", t3, consts=(i64(1),))
        yield size, one("ReduceL2 inner", "ReduceL2", (r, c), consts=(i64(1),))
        yield size, one("ReduceLogSumExp inner", "ReduceLogSumExp", (r, c), consts=(i64(1),))
        yield size, one("ArgMax", "ArgMax", (r, c), attrs={"axis": -1}, out=TensorProto.INT64)
        yield size, one("MaxPool 3x3/2", "MaxPool", img, attrs={"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4})
        yield size, one("AveragePool 2x2/2", "AveragePool", img, attrs={"kernel_shape": [2, 2], "strides": [2, 2]})
        yield size, one("GlobalAveragePool", "GlobalAveragePool", img)
        yield size, one("Transpose 2D", "Transpose", (r, c))
        yield size, one("Transpose 0213", "Transpose", (1, 16, 4, 64) if size == "4K" else (8, 128, 16, 64), attrs={"perm": [0, 2, 1, 3]})
        yield size, one("Concat axis 1", "Concat", (r, c), inputs=2, attrs={"axis": 1})
        yield size, one("Split axis 1", "Split", (r, c), attrs={"axis": 1, "num_outputs": 2}, outputs=2)
        yield size, one("Slice step 2", "Slice", (r, c), consts=(i64(0), i64(c), i64(1), i64(2)))
        yield size, one("Expand", "Expand", (1, c), consts=(i64(r, c),))
        yield size, one("Pad", "Pad", img, consts=(i64(0, 0, 1, 1, 0, 0, 1, 1),))
        yield size, one("Gather rows", "Gather", (r, c), consts=(np.arange(r, dtype=np.int64)[::-1].copy(),))
        yield size, one("Where", "Where", (r, c), inputs=3)
        for op in UNARY:
            yield size, one(op, op, (r, c))
        yield size, one("Gelu tanh", "Gelu", (r, c), attrs={"approximate": "tanh"})
        for op in BINARY:
            yield size, one(op, op, (r, c), inputs=2)
        yield size, one("Add [C,1,1]", "Add", img, consts=("planes",))
        yield size, one("Mul [C,1,1]", "Mul", img, consts=("planes",))
        yield size, one("Add [row]", "Add", (r, c), consts=("row",))
        yield size, one("Less", "Less", (r, c), inputs=2, out=TensorProto.BOOL, types=("f32", "f16"))
        yield size, one("Cast f32 f16", "Cast", (r, c), attrs={"to": TensorProto.FLOAT16}, out=TensorProto.FLOAT16, types=("f32",))
        yield size, one("Cast f32 i64", "Cast", (r, c), attrs={"to": TensorProto.INT64}, out=TensorProto.INT64, types=("f32",))
        yield from ((size, case) for case in movers(size, r, c))
        yield size, one("Cast i64 f32", "Cast", (r, c), attrs={"to": TensorProto.FLOAT}, out=TensorProto.FLOAT, types=("i64",))


def movers(size, r, c):
    """What resizes, moves by index, and adds up along an axis."""
    small, rng = size == "4K", np.random.default_rng(2)
    i64 = lambda *v: np.array(v, np.int64)
    f32 = lambda *s: rng.standard_normal(s).astype(np.float32)
    side, channels = (16, 16) if small else (64, 64)
    img = (1, channels, side, side)
    resized = [("nearest x2", "nearest", 2, {}), ("linear x2", "linear", 2, {}), ("linear x1.6", "linear", 1.6, {}),
               ("cubic x2", "cubic", 2, {}), ("linear /2.5 antialias", "linear", 0.4, {"antialias": 1})]
    for name, mode, scale, more in resized:
        sizes = i64(1, channels, int(side * scale), int(side * scale))
        floor = {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"} if mode == "nearest" else {}
        yield one("Resize " + name, "Resize", img, attrs={"mode": mode, **floor, **more}, consts=(None, None, sizes),
                  types=("f32", "f16", "u8") if mode != "cubic" else ("f32",))
    yield one("GridSample", "GridSample", (1, 32, side, side), types=("f32",),
              consts=(rng.uniform(-1.1, 1.1, (1, side, side, 2)).astype(np.float32),))
    yield one("CumSum axis 0", "CumSum", (r, c), consts=(np.array(0, np.int64),))
    yield one("CumSum axis 1", "CumSum", (r, c), consts=(np.array(1, np.int64),))
    half = (r // 2, c // 2)
    yield one("Tile 2x2", "Tile", half, consts=(i64(2, 2),))
    yield one("GatherElements", "GatherElements", (r, c), attrs={"axis": 1}, consts=(rng.integers(-c, c, (r, c)),))
    yield one("GatherElements axis 0", "GatherElements", (r, c), attrs={"axis": 0}, consts=(rng.integers(-r, r, (r, c)),))
    yield one("ScatterElements", "ScatterElements", (r, c), attrs={"axis": 1}, types=("f32",),
              consts=(rng.integers(-c, c, (r, c)), f32(r, c)))
    yield one("GatherND", "GatherND", (r, c), consts=(rng.integers(0, r, (r * c // 16, 2)),))
    yield one("ScatterND rows", "ScatterND", (r, c), types=("f32",), consts=(rng.integers(0, r, (r // 2, 1)), f32(r // 2, c)))
    yield one("OneHot", "OneHot", (r,), attrs={"axis": -1}, consts=(np.array(c, np.int64), np.array([0, 1], np.float32)),
              out=TensorProto.FLOAT, types=("i64",))
    yield one("TopK 5 of 1000", "TopK", (max(r * c // 1000, 1), 1000), consts=(i64(5),), outputs=2, types=("f32", "f16", "i64"))
    yield one("TopK 100 of all", "TopK", (r * c,), consts=(i64(100),), outputs=2, types=("f32", "f16", "i64"))
    yield one("NonZero", "NonZero", (r, c), out=TensorProto.INT64, types=("f32",))
    yield one("Trilu", "Trilu", (r, c))
    yield one("DepthToSpace", "DepthToSpace", img, attrs={"blocksize": 2})
    b, h, s, d = (1, 4, 16, 16) if small else (1, 12, 128, 64)
    yield one("Einsum bqhd,bkhd->bhqk", "Einsum", [(b, s, h, d)] * 2, attrs={"equation": "bqhd,bkhd->bhqk"})
    yield one("Einsum bsd,dhk->bshk", "Einsum", (b, s, h * d), attrs={"equation": "bsd,dhk->bshk"}, types=("f32",),
              consts=(f32(h * d, h, d),))
    yield one("Einsum bi,bi->b", "Einsum", [(r, c)] * 2, attrs={"equation": "bi,bi->b"})
    yield one("Einsum bijk->bki", "Einsum", (4, 4, 16, 16) if small else (16, 16, 64, 64), attrs={"equation": "bijk->bki"})
    if not small:
        yield one("GRU 100 steps, batch 1", "GRU", (100, 1, 128), attrs={"hidden_size": 256, "direction": "bidirectional"},
                  consts=(f32(2, 768, 128) / 16, f32(2, 768, 256) / 16), types=("f32",))


ELEM = {"u8": (TensorProto.UINT8, np.uint8), "f32": (TensorProto.FLOAT, np.float32), "f16": (TensorProto.FLOAT16, np.float16),
        "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16), "i64": (TensorProto.INT64, np.int64)}


def build(case, dtype):
    _, op, shape, n_in, attrs, consts, out, _, n_out = case
    elem, np_type = ELEM[dtype]
    rng = np.random.default_rng(1)
    names, inputs, init, feeds = [], [], [], {}
    shapes = shape if isinstance(shape, list) else [shape] * n_in
    for i, shape in enumerate(shapes):
        boolean = op == "Where" and i == 0
        inputs.append(helper.make_tensor_value_info(f"x{i}", TensorProto.BOOL if boolean else elem, shape))
        feeds[f"x{i}"] = rng.random(shape) > 0.5 if boolean else (rng.standard_normal(shape) * (9 if dtype in ("i64", "u8") else 1)).astype(np_type)
        if op in ("Log", "Sqrt", "Pow"):
            feeds[f"x{i}"] = np.abs(feeds[f"x{i}"])
        names.append(f"x{i}")
    for i, c in enumerate(consts):
        if c is None:
            names.append("")
            continue
        if isinstance(c, str):
            n = shape[-1] if c == "row" else (shape[1], 1, 1) if c == "planes" else shape[1]
            c = (np.abs(rng.standard_normal(n)) + 0.5).astype(np_type)
        init.append(onnx.numpy_helper.from_array(c, f"c{i}"))
        names.append(f"c{i}")
    # A node behind, so that results lie in memory that both use again in every run.
    ys = [f"y{i}" for i in range(n_out)]
    nodes = [helper.make_node(op, names, ys, name="node", **attrs)]
    ends = []
    for i, y in enumerate(ys):
        kind = TensorProto.INT64 if op == "TopK" and i == 1 else out or elem
        end = "Transpose" if out == TensorProto.BOOL else "ReduceMax"  # neither is fused with what is before it
        nodes.append(helper.make_node(end, [y], [f"z{i}"], name=f"end{i}", **({"keepdims": 0} if end == "ReduceMax" else {})))
        ends.append(helper.make_tensor_value_info(f"z{i}", kind, shape[::-1] if end == "Transpose" else []))
    graph = helper.make_graph(nodes, "g", inputs, ends, init)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    model.ir_version = 10
    return model, feeds


def ort_us(session_file, feeds, runs):
    o = ort.SessionOptions()
    o.intra_op_num_threads = 1
    o.enable_profiling = True
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    o.log_severity_level = 4
    o.profile_file_prefix = session_file + ".ort"
    s = ort.InferenceSession(session_file, o, providers=["CPUExecutionProvider"])
    for _ in range(runs):
        s.run(None, feeds)
    trace = s.end_profiling()
    with open(trace, encoding="utf-8") as f:
        events = json.load(f)
    os.remove(trace)
    t = [e["dur"] for e in events if e.get("cat") == "Node" and e["name"].endswith("_kernel_time") and not e["name"].startswith("end")]
    per_run = len(t) // runs  # f16 may be a Cast, the node, and a Cast
    return statistics.median(sum(t[i * per_run:(i + 1) * per_run]) for i in range(runs)) if t else float("nan")


def ortc_us(ortc, file, feeds, runs, folder):
    args = [ortc, "run", file, "-q", "-t", "1", "-n", str(runs), "--profile", folder + "/p.json"]
    for k, v in feeds.items():
        np.save(f"{folder}/{k}.npy", v.astype(np.float32) if v.dtype == ml_dtypes.bfloat16 else v)
        args += ["--cast", "-i", f"{k}={folder}/{k}.npy"]
    subprocess.run(args, check=True, stdout=subprocess.DEVNULL)
    with open(folder + "/p.json", encoding="utf-8") as f:
        events = json.load(f)
    events = events["traceEvents"] if isinstance(events, dict) else events
    return statistics.median(e["dur"] for e in events if e["name"] == "node")


def result_bytes(model):
    total = 0
    for value in onnx.shape_inference.infer_shapes(model, data_prop=True).graph.value_info:
        t = value.type.tensor_type
        if value.name.startswith("y"):
            total += math.prod(d.dim_value for d in t.shape.dim) * helper.tensor_dtype_to_np_dtype(t.elem_type).itemsize
    return total


def copy_rate(total):
    """GB/s, read and written, of a copy that touches `total` bytes."""
    a, b = np.ones(total // 2, np.uint8), np.zeros(total // 2, np.uint8)
    times = []
    for _ in range(60):
        t = time.perf_counter()
        np.copyto(b, a)
        times.append(time.perf_counter() - t)
    return total / statistics.median(times) / 1e9


def main():
    ortc, wanted = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    print(f"{'operator':22} {'type':4} {'size':4} {'ortc us':>9} {'ort us':>9} {'ort/ortc':>8} {'GB/s':>6} {'copy':>6} {'share':>6}")
    in_l1 = {}
    with tempfile.TemporaryDirectory() as folder:
        for size, case in cases():
            if wanted and not any(w in case[0] for w in wanted.split(",")):
                continue
            for dtype in case[7]:
                model, feeds = build(case, dtype)
                file = folder + "/m.onnx"
                onnx.save(model, file)
                runs = 400 if size == "4K" else 40
                ours, theirs = [], []
                for _ in range(3):
                    ours.append(ortc_us(ortc, file, feeds, runs, folder))
                    try:
                        theirs.append(ort_us(file, feeds, runs))
                    except Exception:  # a type that it does not do
                        theirs.append(float("nan"))
                a, b = statistics.median(ours), statistics.median(theirs)
                moved = sum(v.nbytes for v in feeds.values()) + result_bytes(model)
                rate, key = moved / a / 1e3, (case[0], dtype)
                if size == "4K":
                    in_l1[key] = rate
                    more = ""
                else:
                    copy = copy_rate(moved)
                    more = f" {copy:6.1f} {rate / min(copy, in_l1.get(key, copy)):6.2f}"
                print(f"{case[0]:22} {dtype:4} {size:4} {a:9.1f} {b:9.1f} {b / a:8.2f} {rate:6.1f}{more}", flush=True)


main()
