#!/usr/bin/env python3
"""Writes the standard's own test suite, out of the installed onnx package, as folders that `ortc test` runs.

usage: make_suite.py DIR [--kinds node,simple,...] [--ops Conv,Relu,ai.onnx.ml::Scaler,...] [--list]

    DIR/node/test_relu/model.onnx
    DIR/node/test_relu/tolerance.json                  {"rtol": 0.001, "atol": 1e-07}
    DIR/node/test_relu/test_data_set_0/input_0.pb      TensorProto, SequenceProto, OptionalProto or MapProto, as
    DIR/node/test_relu/test_data_set_0/output_0.pb     the type of the model's input or output says

The node cases exist in the package's memory only; simple, pytorch-converted and pytorch-operator lie in its data
folder; real is nine image networks with constant weights, whose input is arange(n)/n.

--ops keeps the cases whose model, with its subgraphs and functions, holds no other operators: names of domain ai.onnx
plain, others as domain::Name. With @FILE the names are read from a file, one a line.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness import packages

np, onnx, numpy_helper, loader = packages("numpy", "onnx", "onnx.numpy_helper", "onnx.backend.test.loader")
DATA = Path(loader.DATA_DIR)
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
DEFAULT_TOLERANCE = (1e-3, 1e-7)  # the standard's, for what is only a folder
RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}  # outputs are anyone's


def operators(model: onnx.ModelProto) -> set[str]:
    """All operators of the model, but for calls of its own functions, which count as what their bodies hold."""
    functions = {(function.domain, function.name) for function in model.functions}

    def names(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
        for node in nodes:
            if (node.domain, node.op_type) not in functions:
                yield node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}"
            for attribute in node.attribute:
                for graph in (attribute.g, *attribute.graphs):
                    yield from names(graph.node)

    found = set(names(model.graph.node))
    for function in model.functions:
        found |= set(names(function.node))
    return found


def to_map(value: dict, map_type) -> onnx.MapProto:
    """A dict of scalars; numpy_helper's from_dict knows no strings as keys."""
    proto = onnx.MapProto(key_type=map_type.key_type)
    (proto.string_keys if map_type.key_type == onnx.TensorProto.STRING else proto.keys).extend(
        key.encode() if isinstance(key, str) else int(key) for key in value)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(map_type.value_type.tensor_type.elem_type)
    proto.values.elem_type = onnx.SequenceProto.TENSOR
    proto.values.tensor_values.extend(numpy_helper.from_array(np.array(v, dtype)) for v in value.values())
    return proto


def to_proto(value, info: onnx.ValueInfoProto):
    """A test value as the message that info's type asks for."""
    if isinstance(value, onnx.TensorProto):
        return value
    kind = info.type.WhichOneof("value")
    if kind == "map_type":
        return to_map(value, info.type.map_type)
    if kind == "sequence_type" and info.type.sequence_type.elem_type.WhichOneof("value") == "map_type":
        maps = [to_map(v, info.type.sequence_type.elem_type.map_type) for v in value]
        return onnx.SequenceProto(name=info.name, elem_type=onnx.SequenceProto.MAP, map_values=maps)
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    return numpy_helper.from_array(np.asarray(value), info.name)


class Suite:
    """The folder being written, the filter, and how many cases of each kind it holds."""

    def __init__(self, folder: Path, allowed: set[str] | None, only_list: bool):
        self.folder, self.allowed, self.only_list = folder, allowed, only_list
        self.written: Counter[str] = Counter()
        self.all: Counter[str] = Counter()

    def case(self, kind: str, name: str, model: onnx.ModelProto, tolerance: tuple[float, float]) -> Path | None:
        """The case's new folder with model and tolerance, or None when it is filtered out."""
        self.all[kind] += 1
        if self.allowed is not None and not operators(model) <= self.allowed:
            return None
        self.written[kind] += 1
        if self.only_list:
            print(f"{kind}/{name}: {', '.join(sorted(operators(model)))}")
            return None
        path = self.folder / kind / name
        path.mkdir(parents=True)
        (path / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
        terms = dict(zip(("rtol", "atol"), tolerance)) | ({"compare": "shape"} if operators(model) & RANDOM else {})
        (path / "tolerance.json").write_text(json.dumps(terms) + "\n")
        return path


def write_values(path: Path, prefix: str, values: Iterable, infos) -> None:
    for i, (value, info) in enumerate(zip(values, infos, strict=True)):
        if value is not None:  # an absent optional input has no file
            (path / f"{prefix}_{i}.pb").write_bytes(to_proto(value, info).SerializeToString(deterministic=True))


def write_node_cases(suite: Suite) -> None:
    with np.errstate(all="ignore"):  # the cases make infinities and NaN on purpose
        cases = loader.load_node_model_tests()
    for case in cases:
        path = suite.case("node", case.name, case.model, (case.rtol, case.atol))
        if path is None:
            continue
        for i, (inputs, outputs) in enumerate(case.data_sets):
            data = path / f"test_data_set_{i}"
            data.mkdir()
            write_values(data, "input", inputs, case.model.graph.input)
            write_values(data, "output", outputs, case.model.graph.output)


def write_stored_cases(suite: Suite, kind: str) -> None:
    for source in sorted((DATA / kind).iterdir()):
        if (source / "model.onnx").is_file():
            path = suite.case(kind, source.name, onnx.load(source / "model.onnx"), DEFAULT_TOLERANCE)
            if path is not None:
                shutil.copytree(source, path, dirs_exist_ok=True)


def write_real_cases(suite: Suite) -> None:
    """The nine networks of data/light: model and expected output are stored, the input is known by rule."""
    for source in sorted((DATA / "light").glob("*.onnx")):
        name, model = source.stem, onnx.load(source)
        rtol = 2e-3 if "densenet121" in name else DEFAULT_TOLERANCE[0]
        path = suite.case("real", name, model, (rtol, DEFAULT_TOLERANCE[1]))
        if path is None:
            continue
        constants = {initializer.name for initializer in model.graph.initializer}
        (info,) = [i for i in model.graph.input if i.name not in constants]
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        size = int(np.prod(shape))
        value = (np.arange(size, dtype=np.float32) / np.float32(size)).reshape(shape)
        data = path / "test_data_set_0"
        data.mkdir()
        write_values(data, "input", [value], [info])
        shutil.copy(DATA / "light" / f"{name}_output_0.pb", data / "output_0.pb")


def read_ops(text: str) -> set[str]:
    names = Path(text[1:]).read_text().split() if text.startswith("@") else text.split(",")
    return {name.strip() for name in names if name.strip()}


def main() -> int:
    parser = argparse.ArgumentParser(description="write the ONNX backend test suite as folders")
    parser.add_argument("dir", type=Path, help="folder to write to; the kinds written are made anew in it")
    parser.add_argument("--kinds", default=",".join(KINDS[:-1]), help=f"of {', '.join(KINDS)} (default: all but real)")
    parser.add_argument("--ops", type=read_ops, help="keep the cases that hold only these operators (@FILE: a list)")
    parser.add_argument("--list", action="store_true", help="write nothing, name the cases and their operators")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"unknown kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")

    suite = Suite(options.dir, options.ops, options.list)
    for kind in kinds:
        if not options.list:
            shutil.rmtree(options.dir / kind, ignore_errors=True)
        if kind == "node":
            write_node_cases(suite)
        elif kind == "real":
            write_real_cases(suite)
        else:
            write_stored_cases(suite, kind)
    for kind in kinds:
        print(f"{kind}: {suite.written[kind]} of {suite.all[kind]} cases", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
