#!/usr/bin/env python3
"""Operators one by one beside onnxruntime and OpenVINO: what is far behind is seen here, however rare it is in the networks that are measured.

usage: bench_operators.py BENCH_MODEL [--threads N] [--exact] [PART OF A NAME]...

A model of one node for each line of the cases below, sizes as networks have them; those of f32 marked so also in f16. By default one thread
and processor time; of several, time. Medians of as many runs as take some milliseconds, after two that are not counted, rounds of all in
turn, the best of each. Told are microseconds of ortc, onnxruntime and OpenVINO, where it is installed, and the best peer's time over ortc's;
`-` where nobody else has the operator. Inputs named in `init` are initializers. Convolutions alone begin and end with values as they lie in
files, which costs what networks pay once.
"""
import argparse
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

try:
    import openvino
except ImportError:
    openvino = None

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


def both(name, inputs, outputs=1, **more):
    """In f32 and in f16."""
    case(name, inputs, outputs, **more)
    halves = [np.asarray(x) for x in inputs]
    case(name + " f16", [x.astype(np.float16) if x.dtype == np.float32 else x for x in halves], outputs, **more)


def ints(*v):
    return np.array(v, np.int64)


def declare_pointwise():
    for op in ("Add", "Mul", "Div", "Sub", "Pow", "Max", "Greater"):
        both(op + " same", [np.abs(f32(1, 64, 112, 112)), np.abs(f32(1, 64, 112, 112))])
    both("Add row", [f32(1, 197, 768), f32(768)])
    both("Add channel", [f32(1, 64, 112, 112), f32(1, 64, 1, 1)])
    both("Mul column", [f32(64, 128, 256), f32(64, 128, 1)])
    both("Add outer", [f32(512, 1), f32(1, 512)])
    for op, t in (("Add", np.int64), ("Mul", np.int32), ("Div", np.int64), ("Equal", np.int64), ("Less", np.int32)):
        case(f"{op} {np.dtype(t)}", [whole(0, 999, 100000, t), whole(1, 9, 100000, t)])
    case("And", [RANDOM.random((512, 512)) > .5] * 2)
    both("Where", [RANDOM.random((1, 8, 128, 128)) > .5, f32(1, 8, 128, 128), f32(1)])
    for op in ("Relu Sigmoid Tanh Erf Exp Log Sqrt Abs Neg Floor Ceil Round Sin Cos Tan Asin Acos Atan Sinh Reciprocal Sign Softplus Softsign HardSwish "
               "HardSigmoid Elu Selu LeakyRelu Gelu Mish IsNaN IsInf Celu ThresholdedRelu Shrink Identity").split():
        both(op, [np.clip(np.abs(f32(64, 3136)), .01, .99)])
    case("Clip", [f32(64, 3136), np.float32(0), np.float32(6)], init=(1, 2))
    both("PRelu", [f32(1, 64, 56, 56), f32(64, 1, 1)])
    both("Sum of three", [f32(64, 3136)] * 3)
    for a, b in (("f4", "f2"), ("f2", "f4"), ("f4", "i8"), ("i8", "f4"), ("u1", "f4"), ("f4", "u1"), ("?", "f4"), ("i4", "i8"), ("i8", "i4"), ("f4", "?"),
                 ("i8", "?"), ("f4", "i4"), ("i1", "f4"), ("?", "i8")):
        case(f"Cast {np.dtype(a)} to {np.dtype(b)}", [whole(0, 2, (256, 1024)).astype(a)], to=helper.np_dtype_to_tensor_dtype(np.dtype(b)))


def declare_norms_and_reductions():
    for name, shape, more in (("last", (12, 128, 128), {}), ("1000", (8, 1000), {}), ("axis 1", (1, 21, 64, 64), {"axis": 1}), ("long", (4, 50000), {}),
                              ("tiny", (4096, 8), {})):
        both("Softmax " + name, [f32(*shape)], **more)
    both("LogSoftmax", [f32(128, 1000)])
    both("LayerNormalization", [f32(1, 197, 768), f32(768), f32(768)])
    both("RMSNormalization", [f32(1, 197, 768), f32(768)], opset=23)
    both("InstanceNormalization", [f32(1, 64, 64, 64), f32(64), f32(64)])
    both("GroupNormalization", [f32(1, 64, 64, 64), f32(64), f32(64)], num_groups=8)
    both("BatchNormalization", [f32(1, 64, 56, 56), f32(64), f32(64), f32(64), np.abs(f32(64))])
    both("LRN", [f32(1, 96, 27, 27)], size=5)
    both("LpNormalization", [f32(128, 512)])
    both("MeanVarianceNormalization", [f32(1, 64, 56, 56)])
    for op in "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSumExp ReduceSumSquare".split():
        for name, shape, axes in (("last", (128, 1024), (1,)), ("first", (128, 1024), (0,)), ("image", (1, 64, 56, 56), (2, 3)), ("middle", (16, 64, 196), (1,))):
            both(f"{op} {name}", [f32(*shape), ints(*axes)], init=(1,))
        both(op + " all", [f32(100000)])
    for op, t in (("ReduceSum", np.int64), ("ReduceMax", np.int32)):
        case(f"{op} {np.dtype(t)}", [whole(0, 9, (128, 1024), t), ints(1)], init=(1,))
    both("ArgMax last", [f32(128, 1000)], axis=1)
    both("ArgMax first", [f32(21, 4096)], axis=0)
    for name, shape, k, axis in (("5", (1, 1000), 5, 1), ("100 of 25200", (1, 25200), 100, 1), ("50 of 50257", (1, 50257), 50, 1), ("of rows", (1000, 64), 8, 1),
                                 ("all", (1, 5000), 5000, 1), ("axis 1", (16, 300, 20), 10, 1)):
        both("TopK " + name, [f32(*shape), ints(k)], 2, axis=axis)


def declare_moves():
    for perm in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3), (0, 1, 3, 2), (3, 2, 1, 0)):
        both(f"Transpose {perm}", [f32(1, 128, 12, 64) if perm == (0, 2, 1, 3) else f32(2, 64, 56, 56)], perm=perm)
    both("Transpose square", [f32(1024, 1024)], perm=(1, 0))
    case("Transpose picture", [whole(0, 255, (224, 224, 3), np.uint8)], perm=(2, 0, 1))
    both("Transpose windows", [f32(8, 7, 8, 7, 96)], perm=(0, 2, 1, 3, 4))
    for name, a, b, axis in (("channels", (1, 64, 56, 56), (1, 64, 56, 56), 1), ("last", (1024, 64), (1024, 64), 1), ("odd", (1024, 3), (1024, 1), 1)):
        both("Concat " + name, [f32(*a), f32(*b)], axis=axis)
    both("Split channels", [f32(1, 128, 56, 56)], 2, axis=1, num_outputs=2)
    both("Split last", [f32(197, 2304)], 3, axis=1, num_outputs=3)
    for name, shape, *slices in (("rows", (1, 64, 56, 56), (4, 4), (52, 52), (2, 3)), ("step", (1, 64, 56, 56), (0, 0), (56, 56), (2, 3), (2, 2)),
                                 ("back", (128, 1024), (-1,), (-2000,), (1,), (-1,)), ("last", (1024, 64), (0,), (32,), (1,))):
        both("Slice " + name, [f32(*shape)] + [ints(*v) for v in slices], init=tuple(range(1, len(slices) + 1)))
    for mode in ("constant", "reflect", "edge", "wrap"):
        both("Pad " + mode, [f32(1, 64, 56, 56), ints(0, 0, 1, 1, 0, 0, 1, 1)], init=(1,), mode=mode)
    both("Expand", [f32(1, 1, 128, 64), ints(8, 16, 128, 64)], init=(1,))
    both("Expand last", [f32(512, 1), ints(512, 512)], init=(1,))
    both("Tile", [f32(8, 16, 64), ints(1, 4, 2)], init=(1,))
    both("Gather rows", [f32(30522, 384), whole(0, 30522, (1, 128))], init=(0,))
    both("Gather last", [f32(1024, 64), whole(0, 64, 32)], axis=1)
    both("GatherElements", [f32(128, 1024), whole(0, 128, (128, 1024))])
    both("GatherND", [f32(128, 128, 16), whole(0, 128, (1000, 2))])
    both("ScatterElements", [f32(128, 1024), whole(0, 128, (64, 1024)), f32(64, 1024)])
    both("ScatterElements add", [f32(128, 1024), whole(0, 128, (64, 1024)), f32(64, 1024)], reduction="add")
    both("ScatterND", [f32(1024, 64), whole(0, 1024, (256, 1)), f32(256, 64)])
    both("ScatterND points", [f32(256, 256), whole(0, 256, (2000, 2)), f32(2000)])
    both("ScatterND sums", [f32(1024, 64), whole(0, 1024, (256, 1)), f32(256, 64)], reduction="add")
    case("OneHot", [whole(0, 100, 1000), ints(100), np.array([0, 1], np.float32)], init=(1, 2))
    case("NonZero", [(RANDOM.random((256, 256)) > .7).astype(np.float32)])
    both("CumSum last", [f32(128, 1024), np.int64(1)], init=(1,))
    both("CumSum first", [f32(128, 1024), np.int64(0)], init=(1,))
    both("Trilu", [f32(8, 128, 128)])
    both("DepthToSpace", [f32(1, 256, 32, 32)], blocksize=2)
    both("SpaceToDepth", [f32(1, 64, 64, 64)], blocksize=2)


def declare_pictures():
    none = np.array([], np.float32)
    for mode, how in (("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners"), ("cubic", "half_pixel")):
        case(f"Resize {mode} {how}", [f32(1, 32, 40, 40), none, np.array([1, 1, 2, 2], np.float32)], init=(1, 2), mode=mode, coordinate_transformation_mode=how)
    case("Resize down", [f32(1, 3, 480, 640), none, none, ints(1, 3, 224, 224)], init=(1, 2, 3), mode="linear")
    case("Resize antialias", [f32(1, 3, 480, 640), none, none, ints(1, 3, 224, 224)], init=(1, 2, 3), mode="linear", antialias=1)
    for mode in ("linear", "nearest", "cubic"):
        both("GridSample " + mode, [f32(1, 32, 64, 64), np.tanh(f32(1, 64, 64, 2))], mode=mode)
    case("RoiAlign", [f32(1, 64, 50, 50), np.abs(f32(50, 4)) * 10 + np.array([0, 0, 20, 20], np.float32), np.zeros(50, np.int64)], output_height=7,
         output_width=7, sampling_ratio=2)
    case("NonMaxSuppression", [np.abs(f32(1, 1000, 4)).cumsum(2), RANDOM.random((1, 1, 1000)).astype(np.float32), ints(100), np.float32(.5), np.float32(.3)])
    for name, shape, more in (("3x3", (1, 64, 112, 112), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
                              ("2x2", (1, 64, 112, 112), {"kernel_shape": [2, 2], "strides": [2, 2]}), ("5x5", (1, 256, 20, 20), {"kernel_shape": [5, 5], "pads": [2] * 4}),
                              ("3d", (1, 32, 8, 28, 28), {"kernel_shape": [2] * 3, "strides": [2] * 3}), ("1d", (1, 64, 1000), {"kernel_shape": [3], "strides": [2]})):
        both("MaxPool " + name, [f32(*shape)], **more)
    both("MaxPool places", [f32(1, 64, 56, 56)], 2, kernel_shape=[2, 2], strides=[2, 2])
    both("AveragePool 3x3", [f32(1, 64, 56, 56)], kernel_shape=[3, 3], pads=[1] * 4)
    both("GlobalAveragePool", [f32(1, 512, 7, 7)])


def declare_products():
    for name, x, w, more in (
            ("1x1", (1, 64, 56, 56), (256, 64, 1, 1), {}), ("3x3", (1, 64, 56, 56), (64, 64, 3, 3), {"pads": [1] * 4}),
            ("3x3, stride 2", (1, 64, 56, 56), (128, 64, 3, 3), {"pads": [1] * 4, "strides": [2, 2]}),
            ("7x7, stride 2", (1, 3, 224, 224), (64, 3, 7, 7), {"pads": [3] * 4, "strides": [2, 2]}),
            ("depthwise 3x3", (1, 96, 56, 56), (96, 1, 3, 3), {"pads": [1] * 4, "group": 96}),
            ("depthwise 7x7", (1, 96, 56, 56), (96, 1, 7, 7), {"pads": [3] * 4, "group": 96}),
            ("grouped", (1, 128, 28, 28), (128, 4, 3, 3), {"pads": [1] * 4, "group": 32}),
            ("dilated", (1, 64, 56, 56), (64, 64, 3, 3), {"pads": [2] * 4, "dilations": [2, 2]}),
            ("1d", (1, 64, 1000), (64, 64, 3), {"pads": [1, 1]}), ("of a wave", (1, 1, 16000), (64, 1, 400), {"strides": [160]}),
            ("depthwise 1d", (1, 128, 1000), (128, 1, 31), {"pads": [15, 15], "group": 128}),
            ("3d", (1, 16, 8, 28, 28), (32, 16, 3, 3, 3), {"pads": [1] * 6}), ("patches", (1, 3, 224, 224), (192, 3, 16, 16), {"strides": [16, 16]}),
            ("small image", (1, 512, 7, 7), (512, 512, 3, 3), {"pads": [1] * 4}), ("9x9 to 3", (1, 64, 64, 64), (3, 64, 9, 9), {"pads": [4] * 4})):
        both("Conv " + name, [f32(*x), f32(*w)], init=(1,), **more)
    for name, x, w, more in (
            ("2x2", (1, 64, 28, 28), (64, 32, 2, 2), {"strides": [2, 2]}), ("4x4", (1, 64, 28, 28), (64, 32, 4, 4), {"strides": [2, 2], "pads": [1] * 4}),
            ("3x3", (1, 64, 28, 28), (64, 32, 3, 3), {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}),
            ("3x3, large", (1, 256, 64, 64), (256, 128, 3, 3), {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}),
            ("depthwise", (1, 64, 64, 64), (64, 1, 4, 4), {"strides": [2, 2], "pads": [1] * 4, "group": 64}),
            ("bilinear, stride 8", (1, 21, 34, 34), (21, 1, 16, 16), {"strides": [8, 8], "group": 21}),
            ("1d", (1, 64, 200), (64, 32, 16), {"strides": [8], "pads": [4, 4]})):
        both("ConvTranspose " + name, [f32(*x), f32(*w)], init=(1,), **more)
    for name, a, b in (("128x768x768", (1, 128, 768), (768, 768)), ("one row", (1, 1, 768), (768, 768)), ("4 rows", (4, 768), (768, 768)),
                       ("thin n", (1024, 512), (512, 8)), ("tall", (4096, 64), (64, 64)), ("vocabulary", (1, 768), (768, 30522))):
        both("MatMul " + name, [f32(*a), f32(*b)], init=(1,))
    for name, a, b in (("heads", (12, 128, 64), (12, 64, 128)), ("heads back", (12, 128, 128), (12, 128, 64)), ("512, computed", (512, 512), (512, 512)),
                       ("small", (64, 16, 16), (64, 16, 16)), ("vector", (1024, 1024), (1024,)), ("outer", (1024, 1), (1, 1024)), ("thin k", (1024, 4), (4, 1024))):
        both("MatMul " + name, [f32(*a), f32(*b)])
    both("Gemm transB", [f32(128, 768), f32(768, 768), f32(768)], init=(1, 2), transB=1)
    for equation, a, b in (("bhqd,bhkd->bhqk", (1, 12, 128, 64), (1, 12, 128, 64)), ("bhqk,bhkd->bhqd", (1, 12, 128, 128), (1, 12, 128, 64)),
                           ("bchw,bkc->bkhw", (1, 64, 14, 14), (1, 32, 64)), ("ij,ij->i", (512, 512), (512, 512))):
        both("Einsum " + equation, [f32(*a), f32(*b)], equation=equation)
    case("LSTM", [f32(50, 1, 64), f32(1, 512, 64), f32(1, 512, 128)], 3, init=(1, 2), hidden_size=128)
    case("GRU", [f32(50, 1, 64), f32(1, 384, 64), f32(1, 384, 128)], 2, init=(1, 2), hidden_size=128)
    both("Attention", [f32(1, 12, 128, 64)] * 3, opset=23)
    both("RotaryEmbedding", [f32(1, 12, 128, 64), f32(1, 128, 32), f32(1, 128, 32)], opset=23)
    scale, zero = np.float32(.02), np.uint8(128)
    case("QuantizeLinear", [f32(1, 64, 56, 56), scale, zero], init=(1, 2))
    case("QuantizeLinear, channels", [f32(1, 64, 56, 56), np.abs(f32(64)), np.zeros(64, np.int8)], init=(1, 2), op="QuantizeLinear", axis=1)
    case("DequantizeLinear", [whole(0, 255, (1, 64, 56, 56), np.uint8), scale, zero], init=(1, 2))
    case("DynamicQuantizeLinear", [f32(128, 768)], 3)
    case("MatMulInteger", [whole(0, 255, (128, 768), np.uint8), whole(-127, 127, (768, 768), np.int8)], init=(1,))


def declare_signals():
    for name, shape, more in (("512", (64, 512, 2), {}), ("384", (64, 384, 2), {}), ("of 997", (32, 997, 2), {}), ("real", (64, 512, 1), {"onesided": 1}),
                              ("inverse", (32, 1000, 2), {"inverse": 1}), ("axis 1", (1, 512, 256, 2), {}), ("long", (1, 65536, 2), {})):
        both("DFT " + name, [f32(*shape), ints(shape[1]).reshape(()), ints(1).reshape(())], opset=20, init=(1, 2), **more)
    for length, step in ((400, 160), (1024, 256)):
        both(f"STFT {length}", [f32(1, 160000, 1), ints(step).reshape(()), np.hanning(length).astype(np.float32), ints(length).reshape(())], init=(1, 2, 3))


def declare_seldom():
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
    left_out = [k for k in init if not inputs[k].size]
    node = helper.make_node(op, ["" if k in left_out else n for k, n in enumerate(names)], [f"o{k}" for k in range(outputs)], domain=domain, **attributes)
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in zip(names, inputs)]
    graph = helper.make_graph([node], "g", [p for k, p in enumerate(ports) if k not in init],
                              [onnx.ValueInfoProto(name=f"o{k}") for k in range(outputs)],
                              [numpy_helper.from_array(inputs[k], names[k]) for k in init if k not in left_out])
    imports = [helper.make_opsetid("", 18 if domain else opset)] + ([helper.make_opsetid(domain, opset)] if domain else [])
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=imports, ir_version=10))
    for o in model.graph.output:
        if not o.type.tensor_type.elem_type:
            o.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(inputs[0].dtype)
    return model


def runtime_of_onnxruntime(path, feed, threads):
    """What runs the model once, without allocations; None where it cannot."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    try:
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        session.run(None, feed)
        bound = session.io_binding()
        for name, value in feed.items():
            bound.bind_cpu_input(name, value)
        for output in session.get_outputs():
            bound.bind_output(output.name, "cpu")
        session.run_with_iobinding(bound)
        return lambda: session.run_with_iobinding(bound)
    except Exception:  # pylint: disable=broad-except
        return None


def runtime_of_openvino(path, feed, threads):
    if openvino is None:
        return None
    config = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    if all(x.dtype != np.float16 for x in feed.values()):
        config["INFERENCE_PRECISION_HINT"] = "f32"
    try:
        request = openvino.Core().compile_model(path, "CPU", config).create_infer_request()
        for k, value in enumerate(feed.values()):
            request.set_input_tensor(k, openvino.Tensor(np.ascontiguousarray(value)))
        request.infer()
        return request.infer
    except Exception:  # pylint: disable=broad-except
        return None


def timed(run, clock, seconds):
    run(), run()
    begin = clock()
    run()
    count = max(2, min(3000, int(seconds / max(clock() - begin, 1e-6))))
    begin = clock()
    for _ in range(count):
        run()
    return (clock() - begin) / count * 1e6


def measure(program, path, data, feed, threads):
    """Microseconds of ortc, and of its peers, None where one does not run; or why ortc does not."""
    peers = [runtime_of_onnxruntime(path, feed, threads), runtime_of_openvino(path, feed, threads)]
    clock = time.process_time if threads == 1 else time.perf_counter
    command = [program, path, "cpu", str(threads), f"in={data}"] + (["clock=cpu"] if threads == 1 else [])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ours:
        if not ours.stdout.readline():
            return ours.stderr.read().strip(), None

        def median(runs):
            ours.stdin.write(f"{runs + 2}\n")
            ours.stdin.flush()
            return statistics.median([float(v) for v in ours.stdout.readline().split()][2:])

        runs = max(2, min(3000, int(10e3 / max(median(3), 1))))
        mine, theirs = [], [[], []]
        for _ in range(4):
            mine.append(median(runs))
            for times, run in zip(theirs, peers):
                if run:
                    times.append(timed(run, clock, .01))
        ours.stdin.close()
    return min(mine), [min(times) if times else None for times in theirs]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="BENCH_MODEL")
    parser.add_argument("parts", nargs="*", metavar="PART OF A NAME")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--exact", action="store_true", help="the parts are whole names")
    a = parser.parse_intermixed_args()
    for declare in (declare_pointwise, declare_norms_and_reductions, declare_moves, declare_pictures, declare_products, declare_signals, declare_seldom):
        declare()
    with tempfile.TemporaryDirectory() as folder:
        path, data = str(pathlib.Path(folder) / "one.onnx"), pathlib.Path(folder) / "in.bin"
        for name, (op, inputs, outputs, opset, domain, init, attributes) in CASES.items():
            if a.parts and not (name in a.parts if a.exact else any(part in name for part in a.parts)):
                continue
            onnx.save(model_of(op, inputs, outputs, opset, domain, init, attributes), path)
            given = {f"i{k}": x for k, x in enumerate(inputs) if k not in init}
            data.write_bytes(b"".join(np.ascontiguousarray(x).tobytes() for x in given.values()))
            mine, theirs = measure(a.program, path, data, given, a.threads)
            if isinstance(mine, str):
                print(f"{name:32s} {mine}", flush=True)
                continue
            best = min((t for t in theirs if t), default=None)
            told = " ".join(f"{t:10.1f}" if t else f"{'-':>10s}" for t in theirs)
            print(f"{name:32s} {mine:10.1f} {told} {f'{best / mine:6.2f}' if best else '     -'}", flush=True)


if __name__ == "__main__":
    main()
