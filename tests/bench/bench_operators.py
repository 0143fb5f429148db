#!/usr/bin/env python3
"""Operators one by one beside onnxruntime: what is far behind is seen here, however rare it is in the networks that are measured.

usage: bench_operators.py BENCH_MODEL [PART OF A NAME]...

A model of one node for each line of `CASES`, sizes as networks have them. One thread each, processor time: medians of as many runs as
take some 50 ms, three rounds of ortc and onnxruntime in turn, the best of each. Told are microseconds and onnxruntime's time over ortc's;
`-` where onnxruntime has no such operator. Inputs named in `init` are initializers.
"""
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(0)
ML, MS = "ai.onnx.ml", "com.microsoft"
CASES = {}


def f32(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def f64(*shape):
    return RANDOM.standard_normal(shape)


def whole(low, high, shape, t=np.int64):
    return RANDOM.integers(low, high, shape).astype(t)


def case(name, inputs, outputs=1, opset=22, domain="", init=(), op=None, **attributes):
    """The operator is the name's first word."""
    CASES[name] = (op or name.split()[0], [np.asarray(x) for x in inputs], outputs, opset, domain, init, attributes)


def declare_cases():
    square = (1000, 1000)
    case("Hardmax", [f32(128, 1000)], axis=-1)
    case("ReverseSequence", [f32(100, 8, 256), np.full(8, 100)], batch_axis=1, time_axis=0)
    case("Compress", [f32(1000, 256), RANDOM.random(1000) > .5], axis=0)
    case("Compress flat", [f32(*square), RANDOM.random(1000000) > .5])
    case("Unique", [whole(0, 1000, 100000)], 4)
    case("Unique f32", [f32(100000)], 4)
    case("Col2Im", [f32(1, 64 * 9, 56 * 56), [58, 58], [3, 3]], init=(1, 2))
    case("CenterCropPad", [f32(3, 256, 256), [224, 224]], init=(1,), axes=[1, 2])
    case("MaxUnpool", [f32(1, 64, 28, 28), RANDOM.permutation(64 * 56 * 56)[:64 * 28 * 28].reshape(1, 64, 28, 28)], kernel_shape=[2, 2],
         strides=[2, 2])
    case("LpPool", [f32(1, 64, 56, 56)], kernel_shape=[3, 3], strides=[2, 2])
    case("GlobalLpPool", [f32(1, 512, 28, 28)], opset=15)
    case("EyeLike", [f32(*square)])
    case("ConstantOfShape", [[1000, 1000]], value=numpy_helper.from_array(np.zeros(1, np.float32)))
    case("BitwiseAnd", [whole(0, 1000, square, np.int32)] * 2)
    case("BitShift", [whole(0, 1000, square, np.uint32), whole(0, 8, square, np.uint32)], direction="RIGHT")
    case("Not", [RANDOM.random(square) > .5])
    case("Mod", [f32(*square), f32(*square)], fmod=1)
    case("Mod i64", [whole(0, 255, square), whole(1, 255, square)])
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Pow", "Less"):
        case(op + " f64", [np.abs(f64(*square)), np.abs(f64(*square))])
    for op in ("Neg", "Relu", "Sqrt", "Floor", "Exp", "Log", "Sigmoid", "Tanh", "IsNaN"):
        case(op + " f64", [np.abs(f64(*square))])
    case("Where f64", [RANDOM.random(square) > .5, f64(*square), f64(*square)])
    case("Cast i64 to f64", [whole(0, 9, square)], to=TensorProto.DOUBLE)
    case("Add u64", [whole(0, 9, square, np.uint64)] * 2)
    case("Less u64", [whole(0, 9, square, np.uint64)] * 2)
    case("Div u32", [whole(1, 9, square, np.uint32)] * 2)
    for t in (np.float64, np.int32, np.int64):
        case(f"MatMul {np.dtype(t)}", [whole(0, 255, (256, 256), t)] * 2)
    case("MatMul f64, one row", [f64(1, 1024), f64(1024, 1024)])
    case("Gemm f64", [f64(256, 256), f64(256, 256), f64(256)], transB=1)
    case("ReduceMax u8", [whole(0, 255, square, np.uint8), [1]], init=(1,))
    case("ReduceMean i32", [whole(0, 255, square, np.int32), [1]], init=(1,))
    case("ReduceProd", [f32(*square), [1]], init=(1,))
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2"):
        case(op + " f64", [f64(*square), [1]], init=(1,))
    case("ArgMax i64", [whole(0, 255, square)], axis=1)
    case("ArgMax i32, first axis", [whole(0, 255, square, np.int32)], axis=0)
    case("ArgMax f64", [f64(*square)], axis=1)
    case("Softmax f64", [f64(128, 1000)])
    case("LayerNormalization f64", [f64(128, 768), f64(768)])
    case("BatchNormalization f64", [f64(1, 64, 56, 56), f64(64), f64(64), f64(64), np.abs(f64(64))], opset=15)
    case("SoftmaxCrossEntropyLoss", [f32(128, 1000), whole(0, 1000, 128)])
    case("NegativeLogLikelihoodLoss", [f32(8, 100, 64, 64), whole(0, 100, (8, 64, 64))])
    case("ScatterND add", [f32(10000, 64), whole(0, 10000, (5000, 1)), f32(5000, 64)], reduction="add")
    case("AffineGrid", [f32(4, 2, 3), [4, 3, 224, 224]], init=(1,))
    case("Multinomial", [f32(8, 32000)], opset=15, sample_size=1)
    case("Bernoulli", [np.abs(f32(*square)) % 1], opset=15)
    case("RandomNormalLike", [f32(*square)], opset=15)
    case("RandomUniformLike", [f32(*square)], opset=15)
    case("Inverse", [f32(16, 32, 32)], domain=MS, opset=1)
    case("Scaler", [f32(10000, 30)], domain=ML, opset=1, offset=[0.] * 30, scale=[1.] * 30)
    case("Normalizer", [f32(10000, 30)], domain=ML, opset=1, norm="L2")
    case("LinearRegressor", [f32(10000, 30)], domain=ML, opset=1, coefficients=[.1] * 30, intercepts=[1.], targets=1)
    case("LinearClassifier", [f32(10000, 30)], 2, domain=ML, opset=1, coefficients=[.1] * 90, intercepts=[1.] * 3,
         classlabels_ints=[0, 1, 2], multi_class=1, post_transform="SOFTMAX")
    case("Imputer", [f32(10000, 30)], domain=ML, opset=1, imputed_value_floats=[1.] * 30, replaced_value_float=float("nan"))
    case("LabelEncoder", [whole(0, 100, 100000)], domain=ML, opset=2, keys_int64s=list(range(100)), values_int64s=list(range(100)))
    case("OneHotEncoder", [whole(0, 100, 10000)], domain=ML, opset=1, cats_int64s=list(range(100)))
    case("TreeEnsembleRegressor", [f32(10000, 30)], domain=ML, opset=1, n_targets=1, **trees(100, 6))
    case("TreeEnsembleRegressor, one row", [f32(1, 30)], domain=ML, opset=1, n_targets=1, op="TreeEnsembleRegressor", **trees(100, 6))
    case("SVMRegressor", [f32(1000, 20)], domain=ML, opset=1, coefficients=[.1] * 200, support_vectors=[.1] * 4000,
         kernel_params=[.1, 0., 3.], kernel_type="RBF", n_supports=200, rho=[.5], one_class=0)


def trees(count, depth):
    """The attributes of full binary trees over 30 features."""
    nodes = {key: [] for key in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")}
    targets = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(count):
        for i in range(2 ** (depth + 1) - 1):
            leaf = i >= 2 ** depth - 1
            line = (tree, i, int(RANDOM.integers(0, 30)), float(RANDOM.standard_normal()), "LEAF" if leaf else "BRANCH_LEQ",
                    0 if leaf else 2 * i + 1, 0 if leaf else 2 * i + 2)
            for values, value in zip(nodes.values(), line):
                values.append(value)
            for values, value in zip(targets.values(), (tree, i, 0, .5) if leaf else ()):
                values.append(value)
    return {f"nodes_{k}": v for k, v in nodes.items()} | {f"target_{k}": v for k, v in targets.items()}


def model_of(op, inputs, outputs, opset, domain, init, attributes):
    names = [f"i{k}" for k in range(len(inputs))]
    node = helper.make_node(op, names, [f"o{k}" for k in range(outputs)], domain=domain, **attributes)
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in zip(names, inputs)]
    graph = helper.make_graph([node], "g", [p for k, p in enumerate(ports) if k not in init],
                              [onnx.ValueInfoProto(name=f"o{k}") for k in range(outputs)],
                              [numpy_helper.from_array(inputs[k], names[k]) for k in init])
    imports = [helper.make_opsetid("", 18 if domain else opset)] + ([helper.make_opsetid(domain, opset)] if domain else [])
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=imports, ir_version=10))
    for o in model.graph.output:
        if not o.type.tensor_type.elem_type:
            o.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(inputs[0].dtype)
    return model


def measure(program, path, data, feed):
    """Microseconds of ortc and of onnxruntime, None where it does not run."""
    session = None
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        session.run(None, feed)
    except Exception:  # pylint: disable=broad-except
        session = None
    with subprocess.Popen([program, path, "cpu", "1", f"in={data}", "clock=cpu"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as ours:
        line = ours.stdout.readline()
        if not line:
            return ours.stderr.read().strip(), None
        runs = max(1, min(50, int(50 / max(float(line.split()[1]), .01))))
        mine, theirs = [], []
        for _ in range(3):
            ours.stdin.write(f"{runs}\n")
            ours.stdin.flush()
            mine.append(statistics.median(map(float, ours.stdout.readline().split())))
            begin = time.process_time()
            for _ in range(runs if session else 0):
                session.run(None, feed)
            theirs.append((time.process_time() - begin) / runs * 1e6)
        ours.stdin.close()
    return min(mine), min(theirs) if session else None


def main():
    declare_cases()
    wanted = sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        path, data = str(pathlib.Path(folder) / "one.onnx"), pathlib.Path(folder) / "in.bin"
        for name, (op, inputs, outputs, opset, domain, init, attributes) in CASES.items():
            if wanted and not any(part in name for part in wanted):
                continue
            onnx.save(model_of(op, inputs, outputs, opset, domain, init, attributes), path)
            given = {f"i{k}": x for k, x in enumerate(inputs) if k not in init}
            data.write_bytes(b"".join(np.ascontiguousarray(x).tobytes() for x in given.values()))
            mine, theirs = measure(sys.argv[1], path, data, given)
            if isinstance(mine, str):
                print(f"{name:32s} {mine}", flush=True)
            else:
                print(f"{name:32s} {mine:10.1f} {theirs or 0:10.1f} {f'{theirs / mine:6.2f}' if theirs else '     -'}", flush=True)


if __name__ == "__main__":
    main()
