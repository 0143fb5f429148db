#!/usr/bin/env python3
"""The installed Python package as its users meet it: package_use.py MODELS [SIM.so]. Run by test_package.py."""

from __future__ import annotations

import ast
import asyncio
import gc
import inspect
import os
import sys
import tempfile
import threading
import time
import weakref
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx.parser

import harness
import ortc
from ortc import _convert

DIGITS = Path(sys.argv[1]) / "digits.onnx"


def session(text: str, **options) -> ortc.Session:
    """Of a graph as onnx.parser reads it: 'g (float[n] x) => (float[n] y) {y = Neg(x)}'."""
    return ortc.Session(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}').SerializeToString(), **options)


def same(got, expected) -> str | None:
    good = type(got) is type(expected) and np.array_equal(got, expected) and getattr(got, "dtype", 0) == getattr(expected, "dtype", 0)
    return None if good else f"got {got!r}, expected {expected!r}"


def raises(error: type, call, *words: str) -> str | None:
    try:
        result = call()
    except error as e:
        missing = [w for w in words if w not in str(e)]
        return f"no {missing} in {e}" if missing or type(e) not in (error,) else None
    return f"no error, but {result!r}"


def address(x: np.ndarray) -> int:
    return x.__array_interface__["data"][0]


class Tensor:
    """Another library's: DLPack alone."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, **options):
        return self.a.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


def types() -> None:
    rng = np.random.default_rng(0)
    for number, name in enumerate(_convert.NAMES):
        if name in ("absent", "string"):
            continue
        dtype = _convert.numpy_dtype(number)
        codes = rng.integers(0, 256, 60).astype(np.uint8)
        if dtype.itemsize > 1 or dtype.kind == "b":
            x = codes.astype(dtype).reshape(3, 20)
        elif name in _convert._BITS:  # every code of few bits; the signed ones in ml_dtypes' own bytes
            x = np.array([0, 1, 1, 0, 1], np.float32).astype(dtype) if name in ("u2", "i2") else np.arange(5).astype(np.float32).astype(dtype)
        else:
            x = codes.view(dtype).reshape(3, 20)
        value = ortc.Value(x)
        harness.check(f"{name} as a value", lambda: None if (value.dtype, value.shape) == (name, x.shape) else f"{value.dtype} {value.shape}")
        raw = x.view(np.uint8)
        harness.check(f"{name} there and back", lambda: same(value.numpy().view(np.uint8), raw))
    signed = np.array([-8, -1, 0, 7, -3], ml_dtypes.int4)
    harness.check("i4 keeps its sign", lambda: same(ortc.Value(signed).numpy(), signed))
    cast = session("g (float[n] x) => (int4[n] y) {y = Cast <to=22> (x)}")
    harness.check("i4 out of a model", lambda: same(cast.run({"x": np.array([-8, 3, 7], np.float32)})["y"], np.array([-8, 3, 7], ml_dtypes.int4)))
    for x in (np.float32(1.5), np.ones((), np.int64), np.zeros((0, 3), np.float32), np.ones((2, 1, 0), np.bool_)):
        harness.check(f"shape {np.shape(x)}", lambda: same(ortc.Value(x).numpy(), np.asarray(x)))


def arrays() -> None:
    neg = session("g (float[n,m] x) => (float[n,m] y) {y = Neg(x)}")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)

    def run(a):
        return neg.run({"x": a})["y"]

    harness.check("an array", lambda: same(run(x), -x))
    harness.check("columns", lambda: same(run(x.T), -x.T))
    harness.check("every other one", lambda: same(run(x[::2, ::-1]), -x[::2, ::-1]))
    harness.check("big-endian", lambda: same(run(x.astype(">f4")), -x))
    harness.check("lists", lambda: same(run(x.tolist()), -x))
    harness.check("a memoryview", lambda: same(run(memoryview(x)), -x))
    readonly = x.copy()
    readonly.flags.writeable = False
    harness.check("a read-only array", lambda: same(run(readonly), -x))
    harness.check("a result is writable", lambda: None if run(x).flags.writeable else "read-only")
    odd = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(3, 4)
    harness.check("at an odd address", lambda: same(run(odd), -x))
    value = ortc.Value(x)
    harness.check("a value is no copy", lambda: None if address(value.numpy()) == address(x) else "copied")
    harness.check("a value as input", lambda: same(run(value), -x))
    out = np.zeros_like(x)
    harness.check("out", lambda: None if neg.run({"x": x}, out={"y": out})["y"] is out and np.array_equal(out, -x) else f"{out}")
    harness.check("out, read-only", lambda: raises(TypeError, lambda: neg.run({"x": x}, out={"y": readonly}), "writable"))
    harness.check("out, too small", lambda: raises(ortc.ShapeMismatch, lambda: neg.run({"x": x}, out={"y": out[:2]})))

    harness.check("DLPack in", lambda: same(run(Tensor(x)), -x))
    harness.check("DLPack in, no copy", lambda: None if address(ortc.Value(Tensor(x)).numpy()) == address(x) else "copied")
    harness.check("DLPack in, strides", lambda: same(run(Tensor(x.T)), -x.T))
    given = np.zeros_like(x)
    harness.check("DLPack, out", lambda: (neg.run({"x": x}, out={"y": Tensor(given)}), same(given, -x))[1])
    harness.check("DLPack, out, strides", lambda: raises(BufferError, lambda: neg.run({"x": x}, out={"y": Tensor(given.T)}), "contiguous"))
    result = neg.run({"x": x}, values=True)["y"]
    harness.check("values", lambda: None if isinstance(result, ortc.Value) and result.shape == (3, 4) and len(result) == 12 else repr(result))
    harness.check("what it shows", lambda: None if repr(result) == "<ortc.Value f32[3,4]>" and repr(ortc.Value(np.float32(1))) == "<ortc.Value f32[]>" else repr(result))
    harness.check("DLPack out", lambda: same(np.from_dlpack(result), -x))
    harness.check("DLPack out, no copy", lambda: None if address(np.from_dlpack(result)) == address(result.numpy()) else "copied")
    kept = np.from_dlpack(neg.run({"x": x}, values=True)["y"])
    harness.check("DLPack outlives its value", lambda: (gc.collect(), same(kept, -x))[1])
    result.__dlpack__()  # a capsule that nobody takes
    view = memoryview(result)
    harness.check("a buffer", lambda: None if (view.format, view.shape, view.strides) == ("f", (3, 4), (16, 4)) else f"{view.format} {view.shape}")
    before = sys.getrefcount(x)
    for _ in range(100):
        run(x), ortc.Value(x)
    harness.check("inputs are let go", lambda: None if sys.getrefcount(x) == before else f"{sys.getrefcount(x)} {before}")
    alive = ortc.Value(np.full(1000, 7.0))
    gc.collect()
    harness.check("a value keeps its memory", lambda: same(alive.numpy(), np.full(1000, 7.0)))


def devices() -> None:
    """On the device that stands for one in tests: the host cannot touch its memory."""
    if len(sys.argv) < 3:
        return
    ortc.load_plugin(sys.argv[2])
    s = session("g (float[64,64] x) => (float[64,64] y) {h = MatMul(x, x) y = MatMul(h, x)}", providers="sim,cpu", require="sim")
    x = np.random.default_rng(4).integers(-2, 3, (64, 64)).astype(np.float32)
    once, twice = x @ x @ x, 4 * np.eye(64, dtype=np.float32)
    there = s.run({"x": x}, device="sim")["y"]
    harness.check("a result on the device", lambda: None if isinstance(there, ortc.Value) and there.memory and there.shape == (64, 64) else repr(there))
    harness.check("it comes to the host", lambda: same(there.to_host().numpy(), once))
    harness.check("DLPack's device", lambda: None if there.__dlpack_device__() == (12, there.memory) else f"{there.__dlpack_device__()}")
    two = s.run({"x": np.cbrt(twice)}, device="sim")["y"]  # 4 I; of that 64 I
    copied = s.statistics()["bytes_to_devices"]
    more = s.run({"x": Tensor(two)}, device="sim:0")["y"]
    harness.check("DLPack in, on the device", lambda: None if np.allclose(more.to_host().numpy(), 64 * np.eye(64), rtol=1e-5) else f"{more.to_host().numpy()}")
    s.run({"x": Tensor(two)}, out={"y": Tensor(there)})
    harness.check("DLPack out, on the device", lambda: same(there.to_host().numpy(), more.to_host().numpy()))
    harness.check("nothing goes over the host", lambda: None if s.statistics()["bytes_to_devices"] == copied else f"{s.statistics()}")
    harness.check("from the device to an array", lambda: same(s.run({"x": Tensor(two)})["y"], more.to_host().numpy()))
    harness.check("no other device", lambda: raises(BufferError, lambda: there.__dlpack__(dl_device=(1, 0))))
    harness.check("a device that is not there", lambda: raises(ortc.NotFound, lambda: s.run({"x": x}, device="cuda"), "cuda"))
    text = session('g (string[n] x, float[n] z) => (string[n] y, float[n] v) {y = StringNormalizer <case_change_action="UPPER"> (x) v = Neg(z)}', providers="sim,cpu")
    got = text.run({"x": ["ab"], "z": [1.0]}, device="sim")
    harness.check("text stays on the host", lambda: None if got["y"].tolist() == ["AB"] and got["v"].memory else f"{got}")
    kept = Tensor(s.run({"x": x}, device="sim")["y"])
    del s
    gc.collect()
    harness.check("a tensor keeps its device", lambda: same(kept.a.to_host().numpy(), once))


def kinds() -> None:
    text = session("g (string[n] x) => (string[n] y) {y = StringNormalizer <case_change_action=\"UPPER\"> (x)}")
    expected = np.array(["AB", "ÄÖ", ""], dtype=object)
    for x in (["ab", "äö", ""], np.array(["ab", "äö", ""]), np.array(["ab", "äö", ""], dtype=object)):
        harness.check(f"strings of {type(x).__name__}", lambda: same(text.run({"x": x})["y"], expected))
    harness.check("numbers are no strings", lambda: raises(TypeError, lambda: text.run({"x": [1, 2]}), "input 'x'", "str"))
    make = session("g (float[n] a, float[m] b) => (seq(float[k]) s, float[k] first) {s = SequenceConstruct(a, b) zero = Constant <value_int=0> () first = SequenceAt(s, zero)}")
    got = make.run({"a": [1, 2], "b": [3]})
    harness.check("a sequence", lambda: None if [x.tolist() for x in got["s"]] == [[1, 2], [3]] and got["first"].tolist() == [1, 2] else f"{got}")
    harness.check("its elements are read-only", lambda: None if not got["s"][0].flags.writeable else "writable")
    length = session("g (seq(float[k]) s) => (int64 n) {n = SequenceLength(s)}")
    harness.check("a sequence in", lambda: same(length.run({"s": [np.ones(2, np.float32), [1.0, 2, 3]]})["n"], np.array(2)))
    harness.check("an empty sequence", lambda: same(length.run({"s": []})["n"], np.array(0)))
    harness.check("a sequence of what is not", lambda: raises(ortc.TypeMismatch, lambda: length.run({"s": [np.ones(2)]})))
    has = session("g (optional(float[k]) o) => (bool y) {y = OptionalHasElement(o)}")
    harness.check("an optional", lambda: same(has.run({"o": [1.0]})["y"], np.array(True)))
    harness.check("an empty optional", lambda: same(has.run({"o": None})["y"], np.array(False)))
    helper = onnx.helper
    zipmap = helper.make_model(helper.make_graph(
        [helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["a", "b"])], "g",
        [helper.make_tensor_value_info("x", 1, [None, 2])],
        [helper.make_value_info("y", helper.make_sequence_type_proto(helper.make_map_type_proto(8, helper.make_tensor_type_proto(1, []))))],
    ), opset_imports=[helper.make_opsetid("ai.onnx.ml", 1), helper.make_opsetid("", 21)], ir_version=10)  # fmt: skip
    maps = ortc.Session(zipmap.SerializeToString()).run({"x": [[1, 2], [3, 4]]})["y"]
    harness.check("maps", lambda: None if maps == [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 4.0}] else f"{maps}")
    vector = helper.make_model(helper.make_graph(
        [helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", "b", "c"])], "g",
        [helper.make_value_info("x", helper.make_map_type_proto(8, helper.make_tensor_type_proto(1, [])))],
        [helper.make_tensor_value_info("y", 1, [None, 3])],
    ), opset_imports=[helper.make_opsetid("ai.onnx.ml", 1), helper.make_opsetid("", 21)], ir_version=10)  # fmt: skip
    harness.check("a map in", lambda: same(ortc.Session(vector.SerializeToString()).run({"x": {"c": 2.5, "a": 1}})["y"].reshape(-1), np.array([1, 0, 2.5], np.float32)))


def models() -> None:
    data = DIGITS.read_bytes()
    model = ortc.Model(data)
    io = model.inputs[0]
    harness.check("inputs", lambda: None if (io.name, io.dtype, io.shape) == ("image", "f32", ("N", 1, 8, 8)) else f"{io}")
    harness.check("info", lambda: None if model.info["parameters"] == 40731 and model.info["operators"]["Conv"] == 3 and "accuracy" in model.metadata else f"{model.info}")
    made = ortc.Session(model, dims={"N": 2}, providers=["cpu"], require="cpu,ref", threads=1, max_bytes=1 << 24)
    x = np.random.default_rng(1).random((2, 1, 8, 8), np.float32)
    expected = ortc.Session(DIGITS).run({"image": x})["probabilities"]
    del data, model
    gc.collect()
    got = made.run({"image": x})["probabilities"]  # a kernel that suits 2 pictures need not be that which suits any number
    harness.check("a model from memory", lambda: None if np.allclose(got, expected, rtol=1e-5, atol=1e-7) else f"{got}, not {expected}")
    harness.check("dims are fixed", lambda: raises(ortc.ShapeMismatch, lambda: made.run({"image": x[:1]})))
    harness.check("placement", lambda: None if {p["provider"] for p in made.placement()} == {"cpu", "ref"} else f"{made.placement()}")
    with tempfile.TemporaryDirectory() as folder:
        made.model.save(Path(folder) / "saved.onnx")
        harness.check("save", lambda: None if np.allclose(ortc.Session(Path(folder) / "saved.onnx").run({"image": x})["probabilities"], expected, atol=1e-6) else "differs")
    harness.check("statistics", lambda: None if made.statistics()["plans_made"] == 1 and made.trim() > 0 else f"{made.statistics()}")
    inside = session("g (float[n] x) => (float[n] y) {h = Neg(x) y = Exp(h)}", keep=["h"])
    harness.check("keep", lambda: same(inside.run({"x": [1.0]}, ["h"])["h"], np.array([-1], np.float32)))
    harness.check("one output by name", lambda: None if list(inside.run({"x": [1.0]}, "y")) == ["y"] else "others")
    events = ortc.Profiler()
    made.run({"image": x}, profiler=events)
    harness.check("a profiler", lambda: None if events.by_operator()["Conv"][0] == 3 and events.events[-1].duration_ns >= 0 else f"{events.by_operator()}")
    with tempfile.TemporaryDirectory() as folder:
        events.save(Path(folder) / "trace.json")
        harness.check("a trace", lambda: None if b"traceEvents" in (Path(folder) / "trace.json").read_bytes() else "none")
    harness.check("providers", lambda: None if {"cpu", "ref"} <= {p["provider"] for p in ortc.providers()} else f"{ortc.providers()}")
    told = []
    ortc.set_log(lambda level, text: told.append(text), 4)
    newer = onnx.load(DIGITS)
    newer.opset_import[0].version = 99
    ortc.Model(newer.SerializeToString())
    ortc.set_log(None)
    ortc.Model(newer.SerializeToString())
    harness.check("the log", lambda: None if len(told) == 1 and "99" in told[0] else f"{told}")
    harness.check("operators", lambda: None if ("", "Softmax", 13) in ortc.operators() else "no Softmax")


def options() -> None:
    def products(n: int, edge: int) -> bytes:
        """y = x + c ** (n + 1), products of constants, which loading may compute."""
        steps = " ".join(f"c{i + 1} = MatMul(c{i}, c0)" for i in range(n))
        text = f"g (float[n,m] x) => (float[n,m] y) {{s = Constant <value_ints=[{edge}, {edge}]> () c0 = ConstantOfShape <value=float[1] {{0.015625}}> (s) {steps} y = Add(x, c{n})}}"
        return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}').SerializeToString()

    few, many = products(2, 64), products(40, 256)
    whole, part = ortc.Model(few), ortc.Model(few, fold_operations=1)
    harness.check("products are folded", lambda: None if whole.info["unfolded"] == 0 else f"{whole.info}")
    harness.check("fold_operations", lambda: None if part.info["unfolded"] > 0 else f"{part.info}")
    x = np.zeros((64, 64), np.float32)
    harness.check("what is not folded is run", lambda: same(ortc.Session(part).run({"x": x})["y"], ortc.Session(whole).run({"x": x})["y"]))
    long, x = ortc.Model(products(2, 256)), np.zeros((256, 256), np.float32)
    harness.check("long products are folded", lambda: None if long.info["unfolded"] == 0 else f"{long.info}")
    harness.check("and right", lambda: same(ortc.Session(long).run({"x": x})["y"], x + 256.0**2 / 64**3))
    cancel = ortc.Cancel()
    cancel.set()
    harness.check("loading has a deadline", lambda: raises(ortc.Deadline, lambda: ortc.Model(many, timeout=0.001)))
    harness.check("loading is cancelled", lambda: raises(ortc.Cancelled, lambda: ortc.Model(many, cancel=cancel)))
    harness.check("a session has a deadline", lambda: raises(ortc.Deadline, lambda: ortc.Session(whole, timeout=0)))
    harness.check("a session's model, too", lambda: raises(ortc.Deadline, lambda: ortc.Session(many, timeout=0.001)))
    harness.check("a session is cancelled", lambda: raises(ortc.Cancelled, lambda: ortc.Session(whole, cancel=cancel)))
    harness.check("what is no Cancel", lambda: raises(TypeError, lambda: ortc.Model(few, cancel=1), "ortc.Cancel"))
    harness.check("what is no timeout", lambda: raises(ValueError, lambda: ortc.Session(few, timeout=-1), "timeout"))

    rng = np.random.default_rng(3)

    def kernels(s: ortc.Session, feed: dict) -> set[str]:
        profiler = ortc.Profiler()
        s.run(feed, profiler=profiler)
        return {e.kernel for e in profiler.events if e.kind == "step"}

    conv = "g (float[1,16,24,24] x) => (float[1,16,22,22] y) {s = Constant <value_ints=[16, 16, 3, 3]> () w = ConstantOfShape <value=float[1] {0.5}> (s) y = Conv(x, w)}"
    feed = {"x": rng.random((1, 16, 24, 24), np.float32)}
    with_, without = (session(conv, winograd=w, choose=["*=conv.winograd_4x4"]) for w in (True, False))
    harness.check("winograd", lambda: None if "conv.winograd_4x4" in kernels(with_, feed) else f"{kernels(with_, feed)}")
    harness.check("winograd=False", lambda: None if not any("winograd" in k for k in kernels(without, feed)) else f"{kernels(without, feed)}")

    # 9 MB of weights: the first run has them pass, later ones keep them
    large = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g (float[2,1536] x, float[1536,1536] w) => (float[2,1536] y) {y = MatMul(x, w)}')
    large.graph.initializer.append(onnx.numpy_helper.from_array(rng.random((1536, 1536), np.float32), "w"))
    rows = {"x": rng.random((2, 1536), np.float32)}
    sessions = (ortc.Session(large.SerializeToString(), pack_at_once=once) for once in (False, True))
    results = [[s.run(rows)["y"].tobytes() for _ in range(3)] for s in sessions]
    harness.check("pack_at_once", lambda: None if len(set(sum(results, []))) == 1 else "results differ")

    product = "g (float[n,k] a, float[k,m] b) => (float[n,m] c) {c = MatMul(a, b)}"
    a, b = (rng.standard_normal((64, 64), np.float32) for _ in "ab")
    rounded = a.astype(ml_dtypes.bfloat16).astype(np.float64) @ b.astype(ml_dtypes.bfloat16).astype(np.float64)
    machine = Path("/proc/cpuinfo").read_text()
    # Intel's cores that have AMX are slow at products of bf16 without it
    has = "amx_bf16" in machine or ("avx512_bf16" in machine and not ("GenuineIntel" in machine and "avx512_fp16" in machine))

    def distance(precision: str | None, to: np.ndarray) -> float:
        s = session(product, precision=precision, choose=["*=gemm.rounded"])
        return float(np.abs(s.run({"a": a, "b": b})["c"] - to).max())

    exact = a.astype(np.float64) @ b.astype(np.float64)
    harness.check("precision", lambda: None if distance(None, exact) < 1e-4 else "not f32")
    harness.check("precision='bf16'", lambda: None if distance("bf16", rounded if has else exact) < 1e-4 else f"{distance('bf16', rounded)}")
    harness.check("precision='f8'", lambda: raises(ortc.InvalidArgument, lambda: session(product, precision="f8"), "f8"))


def errors() -> None:
    neg = session("g (float[2] x) => (float[2] y) {y = Neg(x)}")
    harness.check("no such file", lambda: raises(ortc.NotFound, lambda: ortc.Session("none.onnx"), "none.onnx"))
    harness.check("no model", lambda: raises(ortc.InvalidModel, lambda: ortc.Model(b"no model")))
    harness.check("an unknown input", lambda: raises(ortc.InvalidArgument, lambda: neg.run({"z": [1, 2]}), "no input 'z'"))
    harness.check("a missing input", lambda: raises(ortc.InvalidArgument, lambda: neg.run({}), "'x'"))
    harness.check("an unknown output", lambda: raises(ortc.InvalidArgument, lambda: neg.run({"x": [1, 2]}, ["z"]), "'z'"))
    harness.check("a wrong type", lambda: raises(ortc.TypeMismatch, lambda: neg.run({"x": np.ones(2)}), "f32[2]", "f64[2]"))
    harness.check("a wrong shape", lambda: raises(ortc.ShapeMismatch, lambda: neg.run({"x": [1, 2, 3]}), "x"))
    harness.check("no array", lambda: raises(TypeError, lambda: neg.run({"x": object()}), "input 'x'"))
    harness.check("no dict", lambda: raises(TypeError, lambda: neg.run([1, 2]), "a dict"))
    harness.check("a date", lambda: raises(TypeError, lambda: neg.run({"x": np.array(["2020-01-01"], "M8[D]")}), "datetime64"))
    harness.check("no provider", lambda: raises(ortc.NotFound, lambda: ortc.Session(DIGITS, providers="tpu"), "tpu"))
    harness.check("require", lambda: raises(ortc.Unsupported, lambda: ortc.Session(DIGITS, providers="ref", require="cpu"), "cpu"))
    harness.check("an option that is none", lambda: raises(TypeError, lambda: ortc.Session(DIGITS, provider="cpu")))
    harness.check("codes", lambda: None if ortc.ShapeMismatch.code == "SHAPE_MISMATCH" and issubclass(ortc.ShapeMismatch, ValueError) else "code")
    harness.check("no plugin", lambda: raises(ortc.IncompatiblePlugin, lambda: ortc.load_plugin(DIGITS)))
    harness.check("unsupported", lambda: raises(ortc.Unsupported, lambda: session("g (float x) => (float y) {y = Nope(x)}"), "Nope"))
    harness.check("no ties", lambda: raises(ortc.InvalidArgument, lambda: ortc.State(neg)))
    harness.check("still usable", lambda: same(neg.run({"x": [1, 2]})["y"], np.array([-1, -2], np.float32)))


def states() -> None:
    text = "g (float[n] x, float[n] h) => (float[n] y, float[n] h_next) {h_next = Add(x, h) y = Neg(h_next)}"
    counter = session(text, ties=[ortc.Tie("h", "h_next")])
    one, two = counter.state(), counter.state()
    results = [counter.run({"x": [1.0, 2.0]}, state=one) for _ in range(3)]
    counter.run({"x": [5.0, 5.0]}, state=two)
    harness.check("a state adds up", lambda: same(results[-1]["y"], np.array([-3, -6], np.float32)))
    harness.check("a tied output stays", lambda: None if set(results[0]) == {"y"} else f"{set(results[0])}")
    harness.check("it is asked for all the same", lambda: same(counter.run({"x": [0.0, 0.0]}, ["h_next"], state=two)["h_next"], np.array([5, 5], np.float32)))
    grow = session("g (float[1] x, float[p] past) => (float[t] present) {present = Concat <axis=0> (past, x)}", ties=[("past", "present", 0, 4)])
    state = grow.state()
    for i in range(3):
        grow.run({"x": [float(i)]}, state=state)
    harness.check("its length", lambda: None if state.length == 3 else f"{state.length}")
    state.truncate(1)
    harness.check("truncated", lambda: same(grow.run({"x": [9.0]}, ["present"], state=state)["present"], np.array([0, 9], np.float32)))
    harness.check("a state of another session", lambda: raises(ortc.InvalidArgument, lambda: counter.run({"x": [1.0, 1.0]}, state=state)))


def slow() -> tuple[ortc.Session, dict]:
    """A run of about a second on one thread, of many steps."""
    steps = " ".join(f"x{i + 1} = MatMul(x{i}, w)" for i in range(200))
    s = session(f"g (float[n,n] x0, float[n,n] w) => (float[n,n] x200) {{{steps}}}", threads=1, providers="ref")
    return s, {"x0": np.eye(96, dtype=np.float32), "w": np.eye(96, dtype=np.float32)}


def threads() -> None:
    s, feed = slow()
    times = []
    ticks = [0, 0]
    running = threading.Event()

    def work() -> None:
        running.set()
        start = time.perf_counter()
        s.run(feed)
        times.append(time.perf_counter() - start)

    t = threading.Thread(target=work)
    t.start()
    running.wait()
    while t.is_alive():  # with the lock held by the run, this would hardly turn
        ticks[0] += 1
        time.sleep(0.001)
    t.join()
    harness.check("the lock is not held", lambda: None if ticks[0] > 100 * times[0] else f"{ticks[0]} ticks in {times[0]:.2f} s")
    digits = ortc.Session(DIGITS)
    pictures = np.random.default_rng(2).random((16, 1, 1, 8, 8), np.float32)
    expected = [digits.run({"image": p})["probabilities"] for p in pictures]
    wrong = []

    def many(k: int) -> None:
        for i in range(100):
            p = (k + i) % 16
            if not np.array_equal(digits.run({"image": pictures[p]})["probabilities"], expected[p]):
                wrong.append((k, i))

    pool = [threading.Thread(target=many, args=(k,)) for k in range(8)]
    [t.start() for t in pool]
    [t.join() for t in pool]
    harness.check("eight threads", lambda: f"{wrong[:5]}" if wrong else None)

    def forked() -> str | None:
        child = os.fork()
        if child == 0:
            good = all(np.array_equal(digits.run({"image": p})["probabilities"], e) for p, e in zip(pictures, expected))
            os._exit(0 if good else 1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return f"the child ended with {code}" if code else None

    harness.check("fork", forked)
    harness.check("a deadline", lambda: raises(ortc.Deadline, lambda: s.run(feed, timeout=0.02)))
    harness.check("a timeout that is none", lambda: raises(ValueError, lambda: s.run(feed, timeout=-1)))
    cancel = ortc.Cancel()
    threading.Timer(0.05, cancel.set).start()
    harness.check("cancel", lambda: raises(ortc.Cancelled, lambda: s.run(feed, cancel=cancel)))

    async def several() -> str | None:
        results = await asyncio.gather(*(digits.run_async({"image": p}) for p in pictures))
        if not all(np.array_equal(r["probabilities"], e) for r, e in zip(results, expected)):
            return "results differ"
        start = time.perf_counter()
        try:
            await asyncio.wait_for(s.run_async(feed), 0.02)
        except asyncio.TimeoutError:
            return None if time.perf_counter() - start < times[0] else "the run went on"
        return "no timeout"

    harness.check("run_async", lambda: asyncio.run(several()))


def loops() -> None:
    class Own(ortc.Session):
        pass

    s = Own(DIGITS)
    s.itself = s
    model = weakref.ref(s.model)
    gone = weakref.ref(s)
    del s
    gc.collect()
    harness.check("a loop is freed", lambda: None if gone() is None and model() is None else "it is still there")
    tied = session("g (float[n] h) => (float[n] k) {k = Neg(h)}", ties=[("h", "k")])
    state = tied.state()
    tied.state_of_mine = state
    gone_state = weakref.ref(tied)
    del tied, state
    gc.collect()
    harness.check("a loop over a state is freed", lambda: None if gone_state() is None else "it is still there")


def stubs() -> None:
    """_ortc.pyi names what the C half has, and nothing else."""
    tree = ast.parse((Path(ortc.__file__).parent / "_ortc.pyi").read_text())
    from ortc import _ortc

    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            harness.check(f"stub {node.name}", lambda: None if callable(getattr(_ortc, node.name, None)) else "not there")
        if isinstance(node, ast.ClassDef):
            cls = getattr(_ortc, node.name)
            named = {n.name if isinstance(n, ast.FunctionDef) else n.target.id for n in node.body}
            have = {n for n in vars(cls) if not n.startswith("__")}
            missing = {n for n in named if not hasattr(cls, n)} - {"__buffer__"}
            harness.check(f"stub {node.name}", lambda: f"{missing} {have - named}" if missing or have - named else None)
            harness.check(f"{node.name} is documented", lambda: None if all(inspect.getdoc(getattr(cls, n)) for n in have if n[0] != "_") else "something is not")
    harness.check("py.typed", lambda: None if (Path(ortc.__file__).parent / "py.typed").exists() else "no py.typed")
    harness.check("__all__", lambda: None if all(hasattr(ortc, n) for n in ortc.__all__) else "names")


if __name__ == "__main__":
    for part in (types, arrays, devices, kinds, models, options, errors, states, threads, loops, stubs):
        part()
    sys.exit(harness.finish())
