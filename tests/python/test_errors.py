#!/usr/bin/env python3
"""What ortc says of broken models and calls: test_errors.py ORTC [--update].

Every case has its text in tests/errors/expected.txt, so that a change of words is seen and read: it should name the node, its
operator, the input, what was expected, what came, and a way out where there is one. --update writes the file anew. What is
wrong with a node must name the node and its operator whatever the file says.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from harness import check, finish, packages

np, onnx = packages("numpy", "onnx")
from make_suite import write_values  # noqa: E402
from onnx import TensorProto as T  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

ORTC = str(Path(sys.argv[1]).resolve())
EXPECTED = Path(__file__).resolve().parents[1] / "errors" / "expected.txt"
F, I, S = T.FLOAT, T.INT64, T.STRING
value, node = helper.make_tensor_value_info, helper.make_node
models: dict[str, tuple[bytes, dict, bool]] = {}  # name -> file, inputs of a run, whether a node is to blame
calls: dict[str, tuple[str, ...]] = {}


def model(nodes, inputs, outputs, weights=(), opset=21, domains=(), **more) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(*d) for d in domains)]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, weights), opset_imports=opsets, ir_version=10, **more)


def file(name: str, m, feeds=None, of_node=False) -> None:
    models[name] = m if isinstance(m, bytes) else m.SerializeToString(), feeds or {}, of_node


def one(name: str, op: str, *inputs, feeds=None, opset=21, outputs=1, domain="", out=F, named=True, **attributes) -> None:
    """A model of one node: an input is (type, shape), None where it is left out, or an array, which is a constant."""
    names = ["" if i is None else f"x{k}" for k, i in enumerate(inputs)]
    infos = [value(n, *i) for n, i in zip(names, inputs) if isinstance(i, tuple)]
    constants = [numpy_helper.from_array(i, n) for n, i in zip(names, inputs) if isinstance(i, np.ndarray)]
    ys = [f"y{k}" for k in range(outputs)]
    n = node(op, names, ys, name="the_node", domain=domain, **attributes)
    file(name, model([n], infos, [value(y, *(out[k], None) if isinstance(out, tuple) else (out, None)) for k, y in enumerate(ys)], constants, opset,
                      [(domain, 1)] if domain else []), feeds, named)


def ints(*v):
    return np.array(v, np.int64)


def nodes() -> None:
    x = (F, [2, 3])
    # operators, versions, attributes
    one("an unknown operator", "Frobnicate", x, named=False) # they are counted, by operator
    one("an unknown domain", "Gelu", x, domain="my.ops", named=False)
    one("an operator of a later opset", "Gelu", x, opset=13, named=False)
    one("an unknown attribute", "Relu", x, slope=0.5)
    one("an attribute of another kind", "Softmax", x, axis=1.5)
    one("a required attribute is missing", "Cast", x)
    one("no such cast", "Cast", x, to=99)
    one("an attribute of another value", "DepthToSpace", (F, [1, 4, 2, 2]), blocksize=0)
    one("a mode that is none", "Resize", (F, [1, 1, 2, 2]), None, np.array([1, 1, 2, 2], np.float32), mode="sharp")
    one("an equation that is none", "Einsum", x, equation="ij-")
    one("an equation for more inputs", "Einsum", x, equation="ij,jk->ik")
    # how many inputs and outputs
    one("an input too few", "Add", x)
    one("an input too many", "Relu", x, x)
    one("a required input is left out", "Add", None, x)
    one("an output too many", "Relu", x, outputs=2)
    one("no inputs at all", "Concat", axis=0)
    # types
    one("another type", "Relu", (S, [2]), out=S)
    one("two types for one", "Add", x, (I, [2, 3]))
    one("an index of floats", "Gather", x, (F, [1]))
    one("a condition of numbers", "Where", x, x, x)
    one("a result of another type", "Relu", x, out=I)
    one("bits of floats", "BitwiseAnd", x, x)
    # shapes
    one("shapes that do not broadcast", "Add", x, (F, [4]))
    one("a product that does not fit", "MatMul", x, (F, [2, 3]))
    one("a product with a scalar", "MatMul", x, (F, []))
    one("a Gemm that does not fit", "Gemm", x, (F, [3, 4]), (F, [5]))
    one("a Gemm of three dims", "Gemm", (F, [1, 2, 3]), (F, [3, 4]))
    one("channels that differ", "Conv", (F, [1, 3, 8, 8]), (F, [4, 2, 3, 3]))
    one("groups that do not divide", "Conv", (F, [1, 3, 8, 8]), (F, [4, 1, 3, 3]), group=2)
    one("a window larger than its image", "Conv", (F, [1, 3, 2, 2]), (F, [4, 3, 5, 5]))
    one("a window of another rank", "Conv", (F, [1, 3, 8]), (F, [4, 3, 3, 3]))
    one("pads that are too few", "Conv", (F, [1, 3, 8, 8]), (F, [4, 3, 3, 3]), pads=[1, 1])
    one("a bias of another length", "Conv", (F, [1, 3, 8, 8]), (F, [4, 3, 3, 3]), (F, [5]))
    one("strides of zero", "MaxPool", (F, [1, 3, 8, 8]), kernel_shape=[2, 2], strides=[0, 1])
    one("a pool of a vector", "MaxPool", (F, [8]), kernel_shape=[2])
    one("an axis outside", "Softmax", x, axis=2)
    one("an axis outside, negative", "Concat", x, x, axis=-3)
    one("what is joined differs", "Concat", x, (F, [2, 4]), axis=0)
    one("ranks that differ", "Concat", x, (F, [2]), axis=0)
    one("a shape of other elements", "Reshape", x, ints(4, 2))
    one("a shape with two free dims", "Reshape", x, ints(-1, -1))
    one("a shape with a dim of -2", "Reshape", x, ints(-2, 3))
    one("a shape that copies what is not there", "Reshape", x, ints(2, 3, 0))
    one("what cannot be expanded", "Expand", x, ints(2, 4))
    one("a permutation that is none", "Transpose", x, perm=[0, 0])
    one("a permutation of another rank", "Transpose", x, perm=[0, 1, 2])
    one("what cannot be squeezed", "Squeeze", x, ints(0))
    one("an axis given twice", "Unsqueeze", x, ints(1, 1))
    one("parts that do not add up", "Split", x, ints(1, 3), outputs=2, axis=1)
    one("more parts than elements", "Split", x, outputs=4, num_outputs=4, axis=0)
    one("a slice of step zero", "Slice", x, ints(0), ints(2), ints(0), ints(0))
    one("ends without starts", "Slice", x, ints(0), ints(1, 2))
    one("pads of another rank", "Pad", x, ints(1, 1))
    one("pads that cut away too much", "Pad", x, ints(-2, 0, -1, 0))
    one("repeats of another rank", "Tile", x, ints(2))
    one("a reduction along no axis", "ReduceSum", x, ints(5))
    one("scales of another length", "LayerNormalization", x, (F, [4]))
    one("channels of another number", "BatchNormalization", (F, [1, 3, 2, 2]), (F, [4]), (F, [4]), (F, [4]), (F, [4]))
    one("groups of channels that do not divide", "GroupNormalization", (F, [1, 3, 2, 2]), (F, [3]), (F, [3]), num_groups=2)
    one("gates that do not fit", "LSTM", (F, [5, 1, 3]), (F, [1, 15, 3]), (F, [1, 16, 4]), hidden_size=4)
    one("a direction that is none", "GRU", (F, [5, 1, 3]), (F, [1, 12, 3]), (F, [1, 12, 4]), hidden_size=4, direction="sideways")
    one("heads that do not divide", "Attention", (F, [1, 2, 10]), (F, [1, 2, 10]), (F, [1, 2, 10]), q_num_heads=3, kv_num_heads=3, opset=23)
    one("a depth below one", "OneHot", (I, [2]), ints(-1), np.zeros(2, np.float32))
    one("a matrix that is not square", "Det", x)
    one("a convolution's zero point of another type", "ConvInteger", (T.UINT8, [1, 1, 3, 3]), (T.UINT8, [1, 1, 2, 2]), (T.INT8, []), out=T.INT32)
    one("a scale for other channels", "DequantizeLinear", (T.INT8, [2, 3]), (F, [4]), axis=1)
    one("scores of another rank", "NonMaxSuppression", (F, [1, 4, 4]), (F, [1, 4]), out=I)
    one("a branch that is missing", "If", (T.BOOL, []))
    # what only a run can know
    v = np.zeros
    one("an index outside", "Gather", x, (I, [1]), feeds={"x0": v((2, 3), np.float32), "x1": ints(2)})
    one("an index outside, of many", "GatherND", x, (I, [1, 2]), feeds={"x0": v((2, 3), np.float32), "x1": ints(0, 3).reshape(1, 2)})
    one("an index outside, to write to", "ScatterElements", x, (I, [1, 1]), (F, [1, 1]), feeds={"x0": v((2, 3), np.float32), "x1": ints(-4).reshape(1, 1), "x2": v((1, 1), np.float32)})
    one("a run's shape of other elements", "Reshape", x, (I, [2]), feeds={"x0": v((2, 3), np.float32), "x1": ints(5, 5)})
    one("a run's axis outside", "ReduceSum", x, (I, [1]), feeds={"x0": v((2, 3), np.float32), "x1": ints(9)})
    one("a run's pads that cut away too much", "Pad", x, (I, [4]), feeds={"x0": v((2, 3), np.float32), "x1": ints(-5, 0, 0, 0)})
    one("shapes that do not broadcast after all", "Add", (F, ["n"]), (F, ["m"]), feeds={"x0": v(2, np.float32), "x1": v(3, np.float32)})
    one("a product that does not fit after all", "MatMul", (F, ["n", "k"]), (F, ["j", "m"]), feeds={"x0": v((2, 3), np.float32), "x1": v((2, 3), np.float32)})
    one("more largest than elements", "TopK", x, (I, [1]), outputs=2, out=(F, I), feeds={"x0": v((2, 3), np.float32), "x1": ints(7)})
    one("a text that is no number", "Cast", (S, [1]), to=1, feeds={"x0": np.array(["two"], object)})
    one("a sequence longer than its batch", "ReverseSequence", (F, [2, 3]), (I, [3]), feeds={"x0": v((2, 3), np.float32), "x1": ints(1, 2, 3)})
    one("a class that is none", "NegativeLogLikelihoodLoss", (F, [1, 3]), (I, [1]), feeds={"x0": v((1, 3), np.float32), "x1": ints(3)})
    one("a range without an end", "Range", (I, []), (I, []), (I, []), out=I, feeds={"x0": np.array(0), "x1": np.array(5), "x2": np.array(0)})
    one("an offset into a string tensor", "GatherElements", (S, [2]), (I, [1]), out=S, feeds={"x0": np.array(["a", "b"], object), "x1": ints(5)})
    one("a ratio that is none", "Dropout", x, np.array(1.5, np.float32), np.array(True), feeds={"x0": v((2, 3), np.float32)})


def graphs() -> None:
    x, y = value("x", F, [2, 3]), value("y", F, None)
    relu = node("Relu", ["x"], ["y"], name="the_node")
    file("not a model", b"hello, this is no model at all")
    file("an empty file", b"")
    file("a pointer of Git LFS", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n")
    whole = model([relu], [x], [y]).SerializeToString()
    file("a file that ends too early", whole[:-9])
    file("no graph", onnx.ModelProto(ir_version=10, opset_import=[helper.make_opsetid("", 21)]))
    unsaid = model([relu], [x], [y])
    del unsaid.opset_import[:]
    file("no operator set", unsaid)
    file("an opset of zero", model([relu], [x], [y], opset=0))
    file("a value that nobody makes", model([node("Relu", ["z"], ["y"], name="the_node")], [x], [y]), of_node=True)
    file("a result that nobody makes", model([relu], [x], [value("z", F, None)]))
    file("a value made twice", model([relu, node("Abs", ["x"], ["y"], name="again")], [x], [y]))
    file("a circle", model([node("Relu", ["b"], ["a"], name="first"), node("Abs", ["a"], ["b"], name="second"), relu], [x], [y]))
    file("an input without a type", model([relu], [helper.make_empty_tensor_value_info("x")], [y]))
    file("an input of a type that is none", model([relu], [value("x", 99, [2])], [y]))
    file("an input given twice", model([relu], [x, x], [y]))
    short = onnx.TensorProto(name="w", data_type=F, dims=[2, 3], raw_data=b"1234")
    add = node("Add", ["x", "w"], ["y"], name="the_node")
    file("a weight with too few bytes", model([add], [x], [y], [short]))
    file("a weight with a negative dim", model([add], [x], [y], [onnx.TensorProto(name="w", data_type=F, dims=[-1])]))
    file("a weight of a huge shape", model([add], [x], [y], [onnx.TensorProto(name="w", data_type=F, dims=[1 << 40, 1 << 40])]))
    file("a weight without a name", model([add], [x], [y], [onnx.TensorProto(data_type=F, dims=[0])]))
    file("a weight of a type that is none", model([add], [x], [y], [onnx.TensorProto(name="w", data_type=77, dims=[1], raw_data=b"1234")]))
    away = onnx.TensorProto(name="w", data_type=F, dims=[1], data_location=T.EXTERNAL)
    away.external_data.add(key="location", value="weights.bin")
    file("weights in a file that is not there", model([add], [x], [y], [away]))
    out = onnx.TensorProto.FromString(away.SerializeToString())
    out.external_data[0].value = "../../etc/passwd"
    file("weights in a file outside", model([add], [x], [y], [out]))
    twice = [onnx.TensorProto(name="w", data_type=F, dims=[1], raw_data=b"1234")] * 2
    file("a weight given twice", model([add], [x], [y], twice))
    body = helper.make_graph([node("Identity", ["x"], ["z"])], "b", [], [value("z", F, None)])
    empty = helper.make_graph([], "b", [], [])
    file("a branch without results", model([node("If", ["c"], ["y"], name="the_node", then_branch=body, else_branch=empty)], [x, value("c", T.BOOL, [])], [y]),
         {"x": np.zeros((2, 3), np.float32), "c": np.array(False)}, of_node=True)
    file("a loop whose body takes too few", model([node("Loop", ["n", "", "x"], ["y"], name="the_node", body=empty)], [x, value("n", I, [])], [y]),
         {"x": np.zeros((2, 3), np.float32), "n": np.array(2)}, of_node=True)
    call = onnx.helper.make_function("own", "F", ["a"], ["b"], [node("F", ["a"], ["b"], domain="own")], [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)])
    file("a function that calls itself", model([node("F", ["x"], ["y"], name="the_node", domain="own")], [x], [y], domains=[("own", 1)], functions=[call]))


def wrong_calls(folder: str) -> None:
    good = model([node("Relu", ["x"], ["y"], name="the_node")], [value("x", F, ["n", 3])], [value("y", F, ["n", 3])])
    text = model([node("Identity", ["x"], ["y"], name="the_node")], [value("x", S, [1])], [value("y", S, [1])])
    onnx.save(good, f"{folder}/good.onnx")
    onnx.save(text, f"{folder}/text.onnx")
    np.save(f"{folder}/flat.npy", np.zeros(3, np.float32))
    np.save(f"{folder}/wide.npy", np.zeros((2, 4), np.float32))
    np.save(f"{folder}/real.npy", np.full((2, 3), 0.5))
    np.save(f"{folder}/complex.npy", np.full((2, 3), 1j, np.complex64))
    for name, *words in (
        ("no input", "run", "good.onnx"), ("an input of another name", "run", "good.onnx", "-i", "z=zeros"),
        ("a file that is not there", "run", "good.onnx", "-i", "nowhere.npy"), ("a model that is not there", "run", "nowhere.onnx"),
        ("an input of another rank", "run", "good.onnx", "-i", "flat.npy"), ("an input of another shape", "run", "good.onnx", "-i", "wide.npy"),
        ("an input of another kind", "run", "good.onnx", "-i", "complex.npy"), ("a word that is none", "run", "good.onnx", "-i", "some"),
        ("a symbol that is none", "run", "good.onnx", "-i", "rand", "--set", "m=3"), ("an extent that is none", "run", "good.onnx", "-i", "rand", "--set", "n=-3"),
        ("a provider that is not there", "run", "good.onnx", "-i", "rand", "--provider", "npu"),
        ("a device that is not there", "run", "good.onnx", "-i", "rand", "--provider", "cpu:7"),
        ("an option that is none", "run", "good.onnx", "--frobnicate"), ("an option without its value", "run", "good.onnx", "--provider"),
        ("a number that is none", "run", "good.onnx", "-i", "rand", "--repeat", "often"), ("a command that is none", "walk", "good.onnx"),
        ("a tie to nothing", "run", "good.onnx", "-i", "rand", "--tie", "h=y"), ("random strings", "run", "text.onnx", "-i", "rand"),
        ("a plugin that is not there", "run", "good.onnx", "-i", "rand", "--plugin", "./nothing.so"),
        ("a folder that cannot be written to", "run", "good.onnx", "-i", "rand", "--set", "n=1", "--out", "nowhere/y.npy"),
    ):  # fmt: skip
        calls[name] = tuple(words)


def written(folder: Path) -> dict[str, str]:
    """What is said of each, on one line; paths of this run are cut out."""
    said = {}
    for name, (data, feeds, _) in models.items():
        path = folder / "cases" / name.replace(" ", "_")
        (path / "test_data_set_0").mkdir(parents=True)
        (path / "model.onnx").write_bytes(data)
        if feeds:
            m = onnx.ModelProto.FromString(data)
            write_values(path / "test_data_set_0", "input", [feeds[i.name] for i in m.graph.input], m.graph.input)
            dtype = helper.tensor_dtype_to_np_dtype(m.graph.output[0].type.tensor_type.elem_type)
            write_values(path / "test_data_set_0", "output", [np.array([""] if dtype == object else [0], dtype)], m.graph.output[:1])
    done = subprocess.run([ORTC, "test", str(folder / "cases"), "--provider", "cpu"], capture_output=True, text=True, timeout=120)
    for line in done.stdout.splitlines():
        if line.startswith("FAIL "):
            name, _, why = line[5:].partition(": ")
            said["model: " + name.rsplit("/")[-1].replace("_", " ")] = why
    wrong_calls(str(folder))
    for name, words in calls.items():
        done = subprocess.run([ORTC, *words], capture_output=True, text=True, timeout=60, cwd=folder)
        said["call: " + name] = f"exit {done.returncode}: " + " / ".join(line for line in done.stderr.splitlines() if "error:" in line)
    return {name: why.replace(str(folder), "DIR").replace("cpu, cuda, ref", "cpu, ref") for name, why in said.items()}


def main() -> int:
    nodes()
    graphs()
    with tempfile.TemporaryDirectory() as base:
        said = written(Path(base).resolve())
    if "--update" in sys.argv:
        EXPECTED.write_text("".join(f"{name}\n    {why}\n" for name, why in said.items()))
    lines = EXPECTED.read_text().splitlines() if EXPECTED.is_file() else []
    expected = dict(zip(lines[::2], (line[4:] for line in lines[1::2])))
    check("a hundred at least", lambda: "" if len(models) + len(calls) >= 100 else f"there are {len(models) + len(calls)}")
    for name in [f"model: {m}" for m in models] + [f"call: {c}" for c in calls]:
        check(f"{name}, refused", lambda name=name: "it is not" if "has no output_" in said.get(name, "") else "")
        check(name, lambda name=name: "" if name in said and said[name] == expected.get(name) else f"it says\n    {said.get(name, 'nothing')}\nand should\n    {expected.get(name)}")
    for name, (data, _, of_node) in models.items():
        why = said.get(f"model: {name}", "")
        operator = onnx.ModelProto.FromString(data).graph.node[0].op_type if of_node else ""
        if of_node:
            check(f"{name}: the node is named", lambda: "" if "the_node" in why and operator in why else why)
    check("nothing else is expected", lambda: ", ".join(set(expected) - set(said)))
    return finish()


sys.exit(main())
