"""Small files that the command line's tests feed it: .npy, .npz, .pb, .png, .jpg and .onnx, written by hand.

Only Python's standard library: so a test needs no packages, and can write what a library would refuse to.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

# ONNX's numbers of element types, by ortc's names.
DTYPES = {
    "f32": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "i32": 6, "i64": 7, "string": 8, "bool": 9, "f16": 10, "f64": 11,
    "u32": 12, "u64": 13, "c64": 14, "c128": 15, "bf16": 16, "f8e4m3fn": 17, "f8e4m3fnuz": 18, "f8e5m2": 19,
    "f8e5m2fnuz": 20, "u4": 21, "i4": 22, "f4e2m1": 23, "f8e8m0": 24, "u2": 25, "i2": 26,
}  # fmt: skip

# ---- npy and npz


def npy(descr: str, shape: tuple, data: bytes, version: int = 1, fortran: bool = False) -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape!r}, }}"
    length = "<H" if version == 1 else "<I"
    start = 8 + struct.calcsize(length)
    text = header.encode("utf-8" if version == 3 else "latin-1")
    text += b" " * (-(start + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack(length, len(text)) + text + data


def f32(*values: float, shape: tuple | None = None) -> bytes:
    return npy("<f4", shape if shape is not None else (len(values),), struct.pack(f"<{len(values)}f", *values))


def read_npy(data: bytes) -> tuple[str, tuple, bytes]:
    """descr, shape, bytes of a version 1 file."""
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    length = struct.unpack_from("<H", data, 8)[0]
    assert (10 + length) % 64 == 0, "numpy aligns its data"
    header = eval(data[10 : 10 + length].decode(), {"__builtins__": {}})  # written by the program under test
    assert not header["fortran_order"]
    return header["descr"], header["shape"], data[10 + length :]


def npz(arrays: dict[str, bytes], method: int = zipfile.ZIP_STORED, zip64: bool = False) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=zip64) as member:
                member.write(data)
    return out.getvalue()


# ---- Protocol Buffers


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(dtype: str, shape: tuple, data: bytes, name: str = "") -> bytes:
    out = b"".join(field(1, d) for d in shape) + field(2, DTYPES[dtype])
    return out + (field(8, name) if name else b"") + field(9, data)


def tensor_f32(*values: float, shape: tuple | None = None) -> bytes:
    return tensor("f32", shape if shape is not None else (len(values),), struct.pack(f"<{len(values)}f", *values))


def sequence(tensors: list[bytes]) -> bytes:
    """A SequenceProto of tensors."""
    return field(2, 1) + b"".join(field(3, t) for t in tensors)


def value_info(name: str, dtype: str, shape: tuple | None, kind: str = "tensor") -> bytes:
    """shape: numbers and names of symbols; None: the rank is not known."""
    tensor_type = field(1, DTYPES[dtype])
    if shape is not None:
        dims = b"".join(field(1, field(1 if isinstance(d, int) else 2, d)) for d in shape)
        tensor_type += field(2, dims)
    type_proto = field(1, tensor_type)
    if kind == "sequence":
        type_proto = field(4, field(1, type_proto))
    return field(1, name) + field(2, type_proto)


def node(op: str, inputs: list[str], outputs: list[str], domain: str = "", name: str = "") -> bytes:
    out = b"".join(field(1, x) for x in inputs) + b"".join(field(2, x) for x in outputs)
    return out + field(3, name or op.lower()) + field(4, op) + (field(7, domain) if domain else b"")


def model(nodes: list[bytes], inputs: list[bytes], outputs: list[bytes], initializers: list[bytes] = [],
          opset: int = 21, ir: int = 10, domains: tuple = ()) -> bytes:  # fmt: skip
    graph = b"".join(field(1, n) for n in nodes) + field(2, "graph") + b"".join(field(5, t) for t in initializers)
    graph += b"".join(field(11, x) for x in inputs) + b"".join(field(12, x) for x in outputs)
    opsets = field(8, field(2, opset)) + b"".join(field(8, field(1, d) + field(2, 1)) for d in domains)
    return field(1, ir) + field(2, "tests/cli") + field(7, graph) + opsets


def identity(dtype: str, shape: tuple | None, kind: str = "tensor", x: str = "x") -> bytes:
    return model([node("Identity", [x], ["y"])], [value_info(x, dtype, shape, kind)], [value_info("y", dtype, shape, kind)],
                 opset=25, ir=12)  # fmt: skip


# ---- PNG


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, color: int, depth: int, rows: list[bytes], palette: bytes = b"", extra: bytes = b"",
        claim: tuple[int, int] | None = None) -> bytes:  # fmt: skip
    """rows: packed samples of each row. color: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA."""
    w, h = claim or (width, height)
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, color, 0, 0, 0))
    if palette:
        out += chunk(b"PLTE", palette)
    out += extra + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))
    return out + chunk(b"IEND", b"")


# ---- JPEG


def jpeg(colors: list[tuple[int, ...]]) -> bytes:
    """A row of blocks of 8x8 pixels, each of one colour: grey (y,), or (y, cb, cr)."""
    def segment(marker: int, data: bytes) -> bytes:
        return struct.pack(">BBH", 255, marker, len(data) + 2) + data

    n = len(colors[0])
    ids = bytes(range(1, n + 1))
    out = b"\xff\xd8" + segment(0xDB, b"\0" + bytes([8] * 64))  # all steps 8: the mean's coefficient is the level - 128
    out += segment(0xC0, struct.pack(">BHHB", 8, 8, 8 * len(colors), n) + b"".join(bytes([i, 0x11, 0]) for i in ids))
    out += segment(0xC4, b"\x00" + bytes([0, 0, 0, 9] + [0] * 12) + bytes(range(9)))  # sizes 0 to 8, codes of four bits
    out += segment(0xC4, b"\x10" + bytes([1] + [0] * 15) + b"\0")  # end of block: one bit
    bits, last = "", [0] * n
    for color in colors:
        for c, level in enumerate(color):
            step = level - 128 - last[c]
            last[c] = level - 128
            size = abs(step).bit_length()
            bits += f"{size:04b}" + (f"{step if step > 0 else step + (1 << size) - 1:0{size}b}" if size else "") + "0"
    bits += "1" * (-len(bits) % 8)
    data = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)).replace(b"\xff", b"\xff\0")
    scan = segment(0xDA, bytes([n]) + b"".join(bytes([i, 0]) for i in ids) + bytes([0, 63, 0])) + data
    return out + scan + b"\xff\xd9"
