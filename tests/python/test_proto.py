#!/usr/bin/env python3
"""Our subset of onnx.proto against the standard's own descriptors, as the onnx package carries them.

usage: test_proto.py graph/onnx/onnx.proto [PROTOC]     (default: protoc-c, which writes descriptors like protoc)

Each message, field and enum value that ours declares must exist there under the same name, with the same
number, type and label. The other direction is not asked: ours is a subset on purpose.

One difference is allowed, because it cannot be seen on the wire: an enum field of theirs may be a plain int32 of
ours, so that values of a newer standard survive.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from harness import check, finish, packages, skip

pb, onnx_ml, onnx_data = packages("google.protobuf.descriptor_pb2", "onnx.onnx_ml_pb2", "onnx.onnx_data_pb2")
Field = pb.FieldDescriptorProto


def file_of(module) -> pb.FileDescriptorProto:
    file = pb.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    return file


def parsed(proto: Path, protoc: str) -> pb.FileDescriptorProto:
    """Our file, as protoc understands it."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "descriptors")
        command = [protoc, f"--proto_path={proto.parent}", f"--descriptor_set_out={out}", str(proto)]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            skip(f"there is no {protoc}")
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        files = pb.FileDescriptorSet.FromString(out.read_bytes())
    (file,) = [f for f in files.file if f.name == proto.name]
    return file


class Index:
    """Messages and enums of some files by their path, such as TensorProto.DataType, whatever the package."""

    def __init__(self, *files: pb.FileDescriptorProto):
        self.messages: dict[str, pb.DescriptorProto] = {}
        self.enums: dict[str, pb.EnumDescriptorProto] = {}
        for file in files:
            self._add("", file.message_type, file.enum_type)

    def _add(self, prefix: str, messages, enums) -> None:
        for enum in enums:
            self.enums[prefix + enum.name] = enum
        for message in messages:
            self.messages[prefix + message.name] = message
            self._add(f"{prefix}{message.name}.", message.nested_type, message.enum_type)


def type_name(file: pb.FileDescriptorProto, field: Field) -> str:
    """The field's type, in words; a message's or an enum's name without the package."""
    kind = Field.Type.Name(field.type).removeprefix("TYPE_").lower()
    return f"{kind} {field.type_name.removeprefix(f'.{file.package}.')}" if field.type_name else kind


def compare_field(ours: Field, our_file, theirs: Field | None, their_file) -> str | None:
    if theirs is None:
        return "the standard has no such field"
    if ours.number != theirs.number:
        return f"number {ours.number}, the standard has {theirs.number}"
    if ours.label != theirs.label:
        return f"{Field.Label.Name(ours.label)}, the standard has {Field.Label.Name(theirs.label)}"
    mine, standard = type_name(our_file, ours), type_name(their_file, theirs)
    if mine != standard and not (mine == "int32" and standard.startswith("enum ")):
        return f"{mine}, the standard has {standard}"
    return None


def compare_enum(ours: pb.EnumDescriptorProto, theirs: pb.EnumDescriptorProto | None) -> str | None:
    if theirs is None:
        return "the standard has no such enum"
    standard = {value.name: value.number for value in theirs.value}
    wrong = [v.name for v in ours.value if standard.get(v.name) != v.number]
    return f"{', '.join(wrong)}: not so in the standard" if wrong else None


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit("usage: test_proto.py graph/onnx/onnx.proto [PROTOC]")
    ours_file = parsed(Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else "protoc-c")
    ml, data = file_of(onnx_ml), file_of(onnx_data)
    ours, theirs = Index(ours_file), Index(ml, data)

    for name, message in ours.messages.items():
        standard = theirs.messages.get(name)
        if not check(name, lambda: None if standard else "the standard has no such message"):
            continue
        their_file = ml if name.split(".")[0] in {m.name for m in ml.message_type} else data
        fields = {field.name: field for field in standard.field}
        for field in message.field:
            check(
                f"{name}.{field.name}",
                lambda: compare_field(field, ours_file, fields.get(field.name), their_file),
            )
    for name, enum in ours.enums.items():
        check(name, lambda: compare_enum(enum, theirs.enums.get(name)))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
