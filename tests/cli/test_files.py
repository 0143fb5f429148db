#!/usr/bin/env python3
"""What ortc reads and writes: .npy, .npz, .pb and .png, good ones and hostile ones: test_files.py ORTC.

Identity models pass every element type through, so that what is written must equal what was read.
"""

from __future__ import annotations

import random
import struct
import sys
import zipfile
import zlib

from command import check, expect, finish, folder, ortc, put, refused
from files import chunk, f32, identity, model, node, npy, npz, png, read_npy, tensor, tensor_f32, value_info

FUZZ_SEED = 20261121

# type, descr in a file, bytes of six elements (2 x 3)
PLAIN = [
    ("f32", "<f4", struct.pack("<6f", 0, -1.5, 3.25e7, float("inf"), float("nan"), 1e-45)),
    ("f64", "<f8", struct.pack("<6d", 0, -1.5, 0.1, float("inf"), float("nan"), 5e-324)),
    ("f16", "<f2", struct.pack("<6e", 0, -1.5, 65504, float("inf"), float("nan"), 6e-8)),
    ("bf16", "<V2", bytes(range(0x30, 0x3C))),
    ("bool", "|b1", bytes([0, 1, 1, 0, 0, 1])),
    ("u8", "|u1", bytes([0, 1, 127, 128, 254, 255])),
    ("i8", "|i1", bytes([0, 1, 127, 128, 254, 255])),
    ("u16", "<u2", struct.pack("<6H", 0, 1, 2, 3, 32768, 65535)),
    ("i16", "<i2", struct.pack("<6h", 0, 1, 2, -3, -32768, 32767)),
    ("u32", "<u4", struct.pack("<6I", 0, 1, 2, 3, 1 << 31, (1 << 32) - 1)),
    ("i32", "<i4", struct.pack("<6i", 0, 1, 2, 3, -(1 << 31), (1 << 31) - 1)),
    ("u64", "<u8", struct.pack("<6Q", 0, 1, 2, (1 << 53) + 1, 1 << 63, (1 << 64) - 1)),
    ("i64", "<i8", struct.pack("<6q", 0, 1, 2, (1 << 53) + 1, -(1 << 63), (1 << 63) - 1)),
    ("c64", "<c8", struct.pack("<12f", *range(12))),
    ("c128", "<c16", struct.pack("<12d", *range(12))),
    ("f8e4m3fn", "|V1", bytes([0, 1, 127, 128, 254, 255])),
    ("f8e5m2", "|V1", bytes([0, 1, 127, 128, 254, 255])),
    ("f8e8m0", "|V1", bytes([0, 1, 127, 128, 254, 255])),
]


def written(name: str, key: str = "y") -> tuple[str, tuple, bytes]:
    with zipfile.ZipFile(folder / name) as archive:
        assert archive.testzip() is None
        return read_npy(archive.read(f"{key}.npy"))


def same(name: str, want: tuple[str, tuple, bytes]):
    def test(r) -> str | None:
        got = written(name) if name.endswith(".npz") else read_npy((folder / name).read_bytes())
        return None if got == want else f"got {got}, expected {want}"

    return test


def swapped(data: bytes, size: int) -> bytes:
    return b"".join(data[i : i + size][::-1] for i in range(0, len(data), size))


def element_types() -> None:
    for dtype, descr, data in PLAIN:
        put(f"id_{dtype}.onnx", identity(dtype, ("n", 3)))
        put(f"{dtype}.npy", npy(descr, (2, 3), data))
        run = ("run", f"id_{dtype}.onnx", "-q", "-o", "out.npz", "-i")
        expect(f"{dtype}", *run, f"{dtype}.npy", test=same("out.npz", (descr, (2, 3), data)))
        expect(f"{dtype} as text", "run", f"id_{dtype}.onnx", "-i", f"{dtype}.npy", out=f"y  {dtype}[2,3]")
        expect(f"{dtype} as JSON", "run", f"id_{dtype}.onnx", "-i", f"{dtype}.npy", "--json",
               test=lambda r: None if len(r.json()["outputs"][0]["first"]) == 6 else "values")  # fmt: skip
        size = len(data) // 6
        fortran = b"".join(data[i * size : (i + 1) * size] for i in (0, 3, 1, 4, 2, 5))
        put("fortran.npy", npy(descr, (2, 3), fortran, fortran=True))
        expect(f"{dtype}, Fortran order", *run, "fortran.npy", test=same("out.npz", (descr, (2, 3), data)))
        part = size // 2 if dtype[0] == "c" else size
        if part > 1:
            put("big.npy", npy(">" + descr[1:], (2, 3), swapped(data, part)))
            expect(f"{dtype}, big-endian", *run, "big.npy", test=same("out.npz", (descr, (2, 3), data)))
        put(f"{dtype}.pb", tensor(dtype, (2, 3), data))
        expect(f"{dtype}.pb", *run, f"{dtype}.pb", test=same("out.npz", (descr, (2, 3), data)))
        for fill in ("zeros", "ones", "rand", "rand:uniform(0,3)", "rand:normal"):
            expect(f"{dtype}: {fill}", "run", f"id_{dtype}.onnx", "-q", "-i", fill)
    for dtype, bits, descr in (("u4", 4, "|u1"), ("i4", 4, "|i1"), ("u2", 2, "|u1"), ("i2", 2, "|i1"), ("f4e2m1", 4, "|V1")):
        put(f"id_{dtype}.onnx", identity(dtype, ("n", 3)))
        packed = bytes([0xE4, 0x1B, 0xA5][: (6 * bits + 7) // 8])
        codes = [packed[i * bits // 8] >> i * bits % 8 & (1 << bits) - 1 for i in range(6)]
        if dtype[0] == "i":
            codes = [c - (1 << bits) if c >> bits - 1 else c for c in codes]
        plain = bytes(c & 255 for c in codes)
        put(f"{dtype}.pb", tensor(dtype, (2, 3), packed))
        expect(f"{dtype}.pb", "run", f"id_{dtype}.onnx", "-q", "-i", f"{dtype}.pb", "-o", "out.npy",
               test=same("out.npy", (descr, (2, 3), plain)))  # fmt: skip
        expect(f"{dtype}: what was written is read", "run", f"id_{dtype}.onnx", "-q", "-i", "out.npy", "-o", "again.npy",
               test=same("again.npy", (descr, (2, 3), plain)))  # fmt: skip


def strings() -> None:
    put("id_string.onnx", identity("string", ("n",)))
    run = ("run", "id_string.onnx", "-q", "-o", "out.npz", "-i")
    text = "".join(w.ljust(4, "\0") for w in ("ab", "", "żółw")).encode("utf-32-le")
    put("u.npy", npy("<U4", (3,), text))
    expect("strings", *run, "u.npy", test=same("out.npz", ("<U4", (3,), text)))
    expect("strings as text", "run", "id_string.onnx", "-i", "u.npy", out='["ab" "" "żółw"]')
    put("s.npy", npy("|S2", (2,), b"ab\0\0"))
    expect("byte strings", *run, "s.npy", test=same("out.npz", ("<U2", (2,), "ab\0\0".encode("utf-32-le"))))
    put("ub.npy", npy(">U2", (1,), "zö".encode("utf-32-be")))
    expect("big-endian strings", *run, "ub.npy", test=same("out.npz", ("<U2", (1,), "zö".encode("utf-32-le"))))
    put("surrogate.npy", npy("<U1", (1,), struct.pack("<I", 0xD800)))
    expect("a surrogate", *run, "surrogate.npy", test=same("out.npz", ("<U1", (1,), "\ufffd".encode("utf-32-le"))))
    refused("numbers for strings", *run, "f32.npy", err="input 'x' is string[n], 'f32.npy' holds f32[2,3]".split(",")[0])
    refused("strings for numbers", "run", "id_f32.onnx", "-i", "u.npy", err="'u.npy' holds string")
    refused("random strings", *run, "rand", err="strings can only be filled with zeros")


def shapes() -> None:
    put("any.onnx", identity("f32", None))
    put("scalar.onnx", identity("f32", ()))
    put("scalar.npy", f32(2.5, shape=()))
    expect("a scalar", "run", "scalar.onnx", "-q", "-i", "scalar.npy", "-o", "o.npz", test=same("o.npz", ("<f4", (), struct.pack("<f", 2.5))))
    put("none.npy", f32(shape=(0, 3)))
    expect("no elements", "run", "id_f32.onnx", "-q", "-i", "none.npy", "-o", "o.npz", test=same("o.npz", ("<f4", (0, 3), b"")))
    put("v2.npy", npy("<f4", (1, 3), struct.pack("<3f", 1, 2, 3), version=2))
    put("v3.npy", npy("<f4", (1, 3), struct.pack("<3f", 1, 2, 3), version=3))
    for version in ("v2", "v3"):
        expect(f"npy {version}", "run", "id_f32.onnx", "-i", f"{version}.npy", out="[1 2 3]")
    put("long.npy", npy("<f4", (1, 3), b"").replace(b"(1, 3), }  ", b"(1L, 3L,) }") + struct.pack("<3f", 1, 2, 3))
    expect("a shape by Python 2", "run", "id_f32.onnx", "-i", "long.npy", out="f32[1,3]")
    put("flat.npy", f32(1, 2, 3))
    refused("a wrong rank", "run", "id_f32.onnx", "-i", "flat.npy", err="input 'x' is f32[n,3], 'flat.npy' holds f32[3]")
    put("wide.npy", f32(1, 2, 3, 4, shape=(1, 4)))
    refused("a wrong extent", "run", "id_f32.onnx", "-i", "wide.npy", err="input 'x' is f32[n,3], 'wide.npy' holds f32[1,4]")
    refused("no rank to fill", "run", "any.onnx", "-i", "rand", err="the model does not say its rank; give --shape x=1x3x8x8")
    expect("a rank given", "run", "any.onnx", "-i", "rand", "--shape", "x=2x2", out="f32[2,2]")
    two = model([node("MatMul", ["a", "b"], ["y"])], [value_info("a", "f32", (2, "k")), value_info("b", "f32", ("k", 2))],
                [value_info("y", "f32", (2, 2))])  # fmt: skip
    put("two.onnx", two)
    put("a.npy", f32(1, 2, 3, 4, shape=(2, 2)))
    put("b.npy", f32(*range(6), shape=(3, 2)))
    expect("two inputs", "run", "two.onnx", "-i", "a=a.npy", "-i", "b=a.npy", out="[7 10 15 22]")
    refused("a symbol with two values", "run", "two.onnx", "-i", "a=a.npy", "-i", "b=b.npy", err="input 'b' has k = 3 where input 'a' has k = 2")
    refused("one value for two inputs", "run", "two.onnx", "-i", "a.npy", err="say for which input")
    refused("one input is missing", "run", "two.onnx", "-i", "a=a.npy", err="input 'b' (f32[k,2]) has no value")
    refused("an input twice", "run", "two.onnx", "-i", "a=a.npy", "-i", "a=ones", err="input 'a' is given twice")
    expect("a fill for what is left", "run", "two.onnx", "--set", "k=2", "-i", "ones", "-i", "b=a.npy", out="[4 6 4 6]")
    put("ab.npz", npz({"a": f32(1, 2, 3, 4, shape=(2, 2)), "b": f32(1, 0, 0, 1, shape=(2, 2))}))
    expect("an .npz by names", "run", "two.onnx", "-i", "ab.npz", out="[1 2 3 4]")
    expect("an .npz for one of two", "run", "two.onnx", "-i", "a=ab.npz", "-i", "b=ab.npz:a", out="[7 10 15 22]")
    put("ac.npz", npz({"a": f32(1), "c": f32(1)}))
    refused("an .npz that does not match", "run", "two.onnx", "-i", "ac.npz", err="the arrays of 'ac.npz' (a, c) do not match the inputs")
    expect("one of its arrays", "run", "two.onnx", "-i", "a=ab.npz:a", "-i", "b=ab.npz", out="[1 2 3 4]")
    refused("no such array", "run", "two.onnx", "-i", "a=ab.npz:z", "-i", "b=a.npy", err="has no array 'z'; it has a.npy, b.npy")


def conversions() -> None:
    run = ("run", "id_f32.onnx", "-i")
    i64 = lambda *v: npy("<i8", (1, 3), struct.pack("<3q", *v))  # noqa: E731
    put("i64.npy", i64(1, -2, 1 << 24))
    expect("i64 that fits f32", *run, "i64.npy", out="[1 -2 1.67772e+07]", err="note: input 'x': converted from i64 to f32, exactly")
    put("i64x.npy", i64(1, (1 << 24) + 1, 3))
    refused("i64 that does not", *run, "i64x.npy", err="element 1 (16777217) does not fit exactly: save it with .astype(np.float32), or pass --cast")
    expect("i64, rounded", *run, "i64x.npy", "--cast", err="rounded")
    put("f64.npy", npy("<f8", (1, 3), struct.pack("<3d", 0.5, 0.25, 3)))
    expect("f64 that fits", *run, "f64.npy", out="[0.5 0.25 3]", err="exactly")
    put("f64x.npy", npy("<f8", (1, 3), struct.pack("<3d", 0.5, 0.1, 3)))
    refused("f64 that does not", *run, "f64x.npy", err="element 1 (0.1) does not fit exactly")
    put("to_i64.onnx", identity("i64", ("n", 3)))
    put("floats.npy", f32(1, 2, 3, shape=(1, 3)))
    expect("f32 for i64", "run", "to_i64.onnx", "-i", "floats.npy", out="i64[1,3]", err="exactly")
    put("half.npy", f32(1, 2.5, 3, shape=(1, 3)))
    refused("fractions for i64", "run", "to_i64.onnx", "-i", "half.npy", err=".astype(np.int64)")
    put("to_u8.onnx", identity("u8", ("n", 3)))
    put("neg.npy", npy("|i1", (1, 3), b"\1\2\xff"))
    refused("-1 for u8", "run", "to_u8.onnx", "-i", "neg.npy", err="element 2 (-1) does not fit")
    put("big64.npy", npy("<u8", (1, 3), struct.pack("<3Q", 1, 2, (1 << 64) - 1)))
    refused("u64 for i64", "run", "to_i64.onnx", "-i", "big64.npy", err="element 2 (18446744073709551615) does not fit")
    put("to_f16.onnx", identity("f16", ("n", 3)))
    expect("f32 for f16", "run", "to_f16.onnx", "-i", "floats.npy", "-o", "o.npz", err="exactly",
           test=same("o.npz", ("<f2", (1, 3), struct.pack("<3e", 1, 2, 3))))  # fmt: skip
    values = [0.1, 65519.9, 65520.0, 5.9e-8, 2.9e-8, -1e-3]
    put("round.npy", f32(*values, shape=(2, 3)))
    half = b"".join(struct.pack("<e", v) if abs(v) < 65519.9 else b"\xff\x7b" if v < 65520 else b"\0\x7c" for v in values)
    expect("rounding to f16", "run", "to_f16.onnx", "-i", "round.npy", "--cast", "-o", "o.npz", err="rounded",
           test=same("o.npz", ("<f2", (2, 3), half)))  # fmt: skip


def archives() -> None:
    x = f32(1, 2, 3, shape=(1, 3))
    for name, data in (("stored", npz({"x": x})), ("deflated", npz({"x": x}, zipfile.ZIP_DEFLATED)),
                       ("zip64", npz({"x": x}, zip64=True)), ("deflated zip64", npz({"x": x}, zipfile.ZIP_DEFLATED, True)),
                       ("another name", npz({"arr_0": x})), ("a comment", npz({"x": x})[:-2] + b"\x05\0hello")):  # fmt: skip
        put("x.npz", data)
        expect(f"npz: {name}", "run", "id_f32.onnx", "-i", "x.npz", out="[1 2 3]")
    run = ("run", "id_f32.onnx", "-q", "-i", "ones", "--shape", "x=100x3", "-o")
    expect("writing stored", *run, "w.npz", test=same("w.npz", ("<f4", (100, 3), struct.pack("<f", 1) * 300)))
    stored = (folder / "w.npz").stat().st_size
    expect("writing deflated", *run, "w.npz", "--compress", test=same("w.npz", ("<f4", (100, 3), struct.pack("<f", 1) * 300)))
    check("deflated is smaller", lambda: None if (folder / "w.npz").stat().st_size < stored / 2 else "it is not")
    expect("writing .npy", *run, "w.npy", test=same("w.npy", ("<f4", (100, 3), struct.pack("<f", 1) * 300)))
    expect("writing .pb", *run, "w.pb")
    expect("what was written is read", "run", "id_f32.onnx", "-q", "-i", "w.pb", "-o", "w.npy",
           test=same("w.npy", ("<f4", (100, 3), struct.pack("<f", 1) * 300)))  # fmt: skip
    good = npz({"x": x}, zipfile.ZIP_DEFLATED)
    refused("no archive", "run", "id_f32.onnx", "-i", put("t.npz", b"hello"), err="is not a zip archive")
    central = good.index(b"PK\1\2")
    bomb = bytearray(good)
    bomb[central + 24 : central + 28] = struct.pack("<I", 0xFFFFFFF0)
    refused("a size that deflate cannot reach", "run", "id_f32.onnx", "-i", put("t.npz", bomb), err="sizes contradict")
    zeros = npz({"x": npy("<f4", (400 << 20,), b"") }, zipfile.ZIP_STORED)
    refused("a header without its elements", "run", "any.onnx", "-i", put("t.npz", zeros), err="should have 1677721600 bytes")
    crc = bytearray(good)
    crc[central + 16] ^= 1
    refused("a wrong checksum", "run", "id_f32.onnx", "-i", put("t.npz", crc), err="checksum is wrong")
    secret = bytearray(good)
    secret[central + 8] |= 1
    refused("an encrypted member", "run", "id_f32.onnx", "-i", put("t.npz", secret), err="is encrypted")
    refused("another method", "run", "id_f32.onnx", "-i", put("t.npz", npz({"x": x}, zipfile.ZIP_BZIP2)), err="packed by method 12")


def real_bomb() -> None:
    """2 GiB of zeros in 2 MB: one packed mebibyte, again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    mebibyte = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    bomb = bytearray(npz({"x": mebibyte * 2048 + b"\3\0"}))
    central = bomb.index(b"PK\1\2")
    bomb[central + 10 : central + 12] = struct.pack("<H", zipfile.ZIP_DEFLATED)
    bomb[central + 24 : central + 28] = struct.pack("<I", 2 << 30)
    refused("a bomb", "run", "any.onnx", "-i", put("bomb.npz", bomb), err="more than the 1073741824 that are read")
    for size, why in ((1 << 30, "cannot be unpacked"), (1, "cannot be unpacked")):
        bomb[central + 24 : central + 28] = struct.pack("<I", size)
        refused(f"a bomb that says it has {size}", "run", "any.onnx", "-i", put("bomb.npz", bomb), err=why)


def pictures() -> None:
    put("u8.onnx", identity("u8", (1, "c", "h", "w")))
    put("u8_1.onnx", identity("u8", (1, 1, "h", "w")))
    put("u8_3.onnx", identity("u8", (1, 3, "h", "w")))
    put("u8_last.onnx", identity("u8", (1, "h", "w", 3)))
    put("f32_1.onnx", identity("f32", (1, 1, "h", "w")))
    put("f32_3.onnx", identity("f32", (1, 3, 4, 4)))

    def values(name: str, picture: bytes, net: str, want: tuple, shape: tuple, *more: str) -> None:
        put("p.png", picture)
        expect(name, "run", net, "-q", "-i", "p.png", "-o", "p.npy", *more, test=same("p.npy", ("|u1", shape, bytes(want))))

    values("grey 8", png(2, 1, 0, 8, [b"\x10\xf0"]), "u8.onnx", (16, 240), (1, 1, 1, 2))
    values("grey 1", png(3, 1, 0, 1, [b"\xa0"]), "u8.onnx", (255, 0, 255), (1, 1, 1, 3))
    values("grey 2", png(4, 1, 0, 2, [b"\x1b"]), "u8.onnx", (0, 85, 170, 255), (1, 1, 1, 4))
    values("grey 4", png(2, 1, 0, 4, [b"\x1f"]), "u8.onnx", (17, 255), (1, 1, 1, 2))
    values("grey 16", png(2, 1, 0, 16, [struct.pack(">2H", 257 * 7, 257 * 200)]), "u8.onnx", (7, 200), (1, 1, 1, 2))
    values("grey and alpha", png(2, 1, 4, 8, [bytes([9, 0, 8, 255])]), "u8.onnx", (9, 8), (1, 1, 1, 2))
    values("grey and alpha 16", png(1, 1, 4, 16, [struct.pack(">2H", 257 * 7, 0)]), "u8.onnx", (7,), (1, 1, 1, 1))
    rgb = png(2, 1, 2, 8, [bytes([1, 2, 3, 255, 0, 0])])
    values("RGB", rgb, "u8.onnx", (1, 255, 2, 0, 3, 0), (1, 3, 1, 2))
    values("RGB 16", png(1, 1, 2, 16, [struct.pack(">3H", 257, 514, 65535)]), "u8.onnx", (1, 2, 255), (1, 3, 1, 1))
    values("RGBA", png(1, 1, 6, 8, [bytes([1, 2, 3, 0])]), "u8.onnx", (1, 2, 3), (1, 3, 1, 1))
    values("RGBA 16", png(1, 1, 6, 16, [struct.pack(">4H", 257, 514, 771, 5)]), "u8.onnx", (1, 2, 3), (1, 3, 1, 1))
    colors = bytes([10, 20, 30, 40, 50, 60])
    values("palette 1", png(2, 1, 3, 1, [b"\x40"], colors), "u8.onnx", (10, 40, 20, 50, 30, 60), (1, 3, 1, 2))
    values("palette 8", png(1, 1, 3, 8, [b"\1"], colors), "u8.onnx", (40, 50, 60), (1, 3, 1, 1))
    clear = png(1, 1, 3, 8, [b"\1"], colors, extra=chunk(b"tRNS", b"\0\0"))
    values("palette with transparency", clear, "u8.onnx", (40, 50, 60), (1, 3, 1, 1))
    key = png(1, 1, 0, 8, [b"\7"], extra=chunk(b"tRNS", b"\0\7"))
    values("grey with a transparent value", key, "u8.onnx", (7,), (1, 1, 1, 1))
    values("with text and a profile", png(1, 1, 0, 8, [b"\7"], extra=chunk(b"tEXt", b"a\0b") + chunk(b"gAMA", b"\0\1\0\0")), "u8.onnx", (7,), (1, 1, 1, 1))
    adam7 = b"\0\1" + b"\0\2" + b"\0\3\4"  # of 2 x 2 pixels: the first, the rest of its line, the other line
    header = struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 1)
    woven = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(adam7)) + chunk(b"IEND", b"")
    values("interlaced", woven, "u8.onnx", (1, 2, 3, 4), (1, 1, 2, 2))
    values("colour to grey", rgb, "u8_1.onnx", (2, 76), (1, 1, 1, 2))
    values("grey to colour", png(2, 1, 0, 8, [b"\x10\xf0"]), "u8_3.onnx", (16, 240) * 3, (1, 3, 1, 2))
    values("channels last", rgb, "u8_last.onnx", (1, 2, 3, 255, 0, 0), (1, 1, 2, 3))
    values("--layout", rgb, "u8.onnx", (1, 2, 3, 255, 0, 0), (1, 1, 2, 3), "--layout", "nhwc")
    values("resized to one pixel", png(2, 2, 0, 8, [b"\0\x64", b"\x64\xc8"]), "u8_1.onnx", (100,), (1, 1, 1, 1), "--resize", "bilinear",
           "--shape", "x=1x1x1x1")  # fmt: skip
    values("resized up", png(2, 1, 0, 8, [b"\0\x64"]), "u8_1.onnx", (0, 25, 75, 100), (1, 1, 1, 4), "--resize", "bilinear", "--set", "w=4")
    values("resized to the same", rgb, "u8_3.onnx", (1, 255, 2, 0, 3, 0), (1, 3, 1, 2), "--resize", "bilinear")
    put("p.png", png(2, 1, 0, 8, [b"\0\xff"]))
    expect("floats as in the file", "run", "f32_1.onnx", "-i", "p.png", out="[0 255]")
    expect("--scale", "run", "f32_1.onnx", "-i", "p.png", "--scale", "1/255", out="[0 1]")
    expect("--mean and --std", "run", "f32_1.onnx", "-i", "p.png", "--scale", "1/255", "--mean", "0.5", "--std", "0.25", out="[-2 2]")
    refused("--mean of three for one", "run", "f32_1.onnx", "-i", "p.png", "--mean", "1,2,3", err="expect 1 or 1 values here")
    refused("--scale for integers", "run", "u8_1.onnx", "-i", "p.png", "--scale", "2", err="are for float inputs")
    refused("another size", "run", "f32_3.onnx", "-i", "p.png", err="the picture is 2 x 1 pixels, the input takes 4 x 4: pass --resize bilinear")
    expect("resized", "run", "f32_3.onnx", "-i", "p.png", "--resize", "bilinear", out="f32[1,3,4,4]")
    put("flat.onnx", identity("f32", ("n",)))
    refused("no place for a picture", "run", "flat.onnx", "-i", "p.png", err="needs an input of rank 2 to 4")
    put("five.onnx", identity("f32", (1, 5, 8, 8)))
    refused("five channels", "run", "five.onnx", "-i", "p.png", err="1 or 3 channels")
    put("huge.png", png(1, 1, 0, 8, [b"\0"], claim=(1 << 20, 1 << 20)))
    refused("a huge picture", "run", "u8_1.onnx", "-i", "huge.png", err="more than the 67108864 that are read")
    put("huge.png", png(1, 1, 0, 8, [b"\0"], claim=((1 << 31) - 1, 1)))
    refused("a very wide picture", "run", "u8_1.onnx", "-i", "huge.png", err="huge.png")
    refused("no picture", "run", "u8_1.onnx", "-i", put("t.png", b"hello"), err="'" + str(folder / "t.png") + "' cannot be read: it is not PNG, ")

    bmp = b"BM" + struct.pack("<IIIIiiHHIIIIII", 70, 0, 54, 40, 2, 2, 1, 24, 0, 16, 0, 0, 0, 0) + bytes([3, 2, 1, 6, 5, 4, 0, 0, 9, 8, 7, 12, 11, 10, 0, 0])
    values("BMP", bmp, "u8_last.onnx", (7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6), (1, 2, 2, 3), "--layout", "nhwc")
    small = b"BM" + struct.pack("<IIIIiiHHIIIIII", 66, 0, 62, 40, 3, -1, 1, 1, 0, 4, 0, 0, 2, 0) + bytes([0, 0, 0, 0, 9, 9, 9, 0, 0xA0, 0, 0, 0])
    values("BMP of a bit a pixel", small, "u8_1.onnx", (9, 0, 9), (1, 1, 1, 3))
    values("PPM", b"P6 # made by hand\n2 1 255\n" + bytes(range(6)), "u8_last.onnx", (0, 1, 2, 3, 4, 5), (1, 1, 2, 3), "--layout", "nhwc")
    values("PGM of 16 bits", b"P5 2 1 65535\n" + struct.pack(">2H", 257 * 7, 65535), "u8_1.onnx", (7, 255), (1, 1, 1, 2))
    values("PBM in text", b"P1\n3 2\n101 0 1 0", "u8_1.onnx", (0, 255, 0, 255, 0, 255), (1, 1, 2, 3))
    for what, start in (("BMP", bmp), ("PNM", b"P6 2 2 255\n" + bytes(12)), ("PNM in text", b"P3 1 1 9 1 2 3"), ("TIFF", b"II*\0" + bytes(20)), ("JPEG", b"\xff\xd8\xff\xe0\0\x10JFIF"),
                        ("WebP", b"RIFF\x20\0\0\0WEBPVP8 "), ("JPEG 2000", b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(9))):  # fmt: skip
        refused(f"half of a {what}", "run", "u8_1.onnx", "-i", put("half.png", start[:-1]), err="cannot be read")
    for what, start in (("BMP", bmp[:18] + struct.pack("<ii", 1 << 30, 1 << 30) + bmp[26:]), ("PNM", b"P6 999999999 999999999 255\n"), ("PNM in text", b"P1 99999 99999 1")):
        refused(f"a huge {what}", "run", "u8_1.onnx", "-i", put("huge.png", start), err="cannot be read")


def hostile() -> None:
    refused("objects", "run", "any.onnx", "-i", put("o.npy", npy("|O", (1,), b"cos\nsystem\n")), err="Python objects (a pickle)")
    refused("a record", "run", "any.onnx", "-i", put("o.npy", npy("X", (1,), b"1234").replace(b"'X'", b"[('a', '<f4')]")), err="a record")
    refused("dates", "run", "any.onnx", "-i", put("o.npy", npy("<M8[s]", (1,), bytes(8))), err="dtype '<M8[s]'")
    refused("no such version", "run", "any.onnx", "-i", put("o.npy", b"\x93NUMPY\x09\0\x10\0{}"), err="npy version 9.0")
    refused("a shape that overflows", "run", "any.onnx", "-i", put("o.npy", npy("<f4", (1 << 40, 1 << 40), b"")), err="overflows")
    refused("a shape too large for its file", "run", "any.onnx", "-i", put("o.npy", npy("<f4", (1 << 40,), b"1234")), err="should have 4398046511104 bytes")
    refused("a negative shape", "run", "any.onnx", "-i", put("o.npy", npy("<f4", (-1,), b"1234")), err="not understood")
    refused("empty strings without end", "run", "id_string.onnx", "-i", put("o.npy", npy("<U0", (1 << 40,), b"")), err="empty strings")
    refused("a header without end", "run", "any.onnx", "-i", put("o.npy", b"\x93NUMPY\x02\0\xff\xff\xff\xff{'descr"), err="ends within its npy header")

    good = {
        "npy": (f32(1, 2, 3, shape=(1, 3)), "id_f32.onnx"),
        "npz": (npz({"x": f32(1, 2, 3, shape=(1, 3))}, zipfile.ZIP_DEFLATED, True), "id_f32.onnx"),
        "pb": (tensor_f32(1, 2, 3, shape=(1, 3)), "id_f32.onnx"),
        "png": (png(4, 4, 3, 4, [b"\1\2"] * 4, bytes(range(48))), "u8.onnx"),
    }

    def survives(name: str, data: bytes, net: str, what: str) -> str | None:
        r = ortc("run", net, "-q", "-i", put(f"fuzz.{name}", data))
        return None if r.code in (0, 2) and "Sanitizer" not in r.err else f"{what}: code {r.code}: {r.err[-2000:]}"

    def cut(name: str, data: bytes, net: str) -> str | None:
        step = max(1, len(data) // 30)
        return next(filter(None, (survives(name, data[:n], net, f"cut to {n}") for n in range(0, len(data), step))), None)

    def mutated(name: str, data: bytes, net: str) -> str | None:
        r = random.Random(FUZZ_SEED)
        for i in range(80):
            b = bytearray(data)
            for _ in range(r.randint(1, 4)):
                b[r.randrange(len(b))] = r.choice((0, 1, 127, 128, 255, r.randrange(256)))
            if why := survives(name, bytes(b), net, f"mutation {i} of seed {FUZZ_SEED}"):
                return why
        return None

    for name, (data, net) in good.items():
        check(f".{name} cut short anywhere", lambda: cut(name, data, net))
        check(f".{name} with wrong bytes", lambda: mutated(name, data, net))


if __name__ == "__main__":
    element_types()
    strings()
    shapes()
    conversions()
    archives()
    real_bomb()
    pictures()
    hostile()
    sys.exit(finish())
