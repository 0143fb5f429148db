"""Between Python objects and tensors, where NumPy is needed: lists and numbers, text, strides and byte orders, the types of
ml_dtypes, elements smaller than a byte. The C half (convert.c) calls in here for what is not plain dense memory."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy import ndarray  # noqa: F401  asked for by name

STRING = 8
# ortc's names of element types, by number (ortc/types.h).
NAMES = ["absent", "f32", "u8", "i8", "u16", "i16", "i32", "i64", "string", "bool", "f16", "f64", "u32", "u64", "c64", "c128",
         "bf16", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "u4", "i4", "f4e2m1", "f8e8m0", "u2", "i2", "f6e2m3", "f6e3m2"]  # fmt: skip
_NUMPY = {"f32": "float32", "u8": "uint8", "i8": "int8", "u16": "uint16", "i16": "int16", "i32": "int32", "i64": "int64",
          "bool": "bool", "f16": "float16", "f64": "float64", "u32": "uint32", "u64": "uint64", "c64": "complex64",
          "c128": "complex128"}  # fmt: skip
# Those that NumPy has from ml_dtypes.
_ML_DTYPES = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
              "f8e5m2fnuz": "float8_e5m2fnuz", "u4": "uint4", "i4": "int4", "f4e2m1": "float4_e2m1fn",
              "f8e8m0": "float8_e8m0fnu", "u2": "uint2", "i2": "int2", "f6e2m3": "float6_e2m3fn", "f6e3m2": "float6_e3m2fn"}  # fmt: skip
# Bits of those that are smaller than a byte; ml_dtypes has a byte for each element, ortc packs them, the first one low.
_BITS = {"u4": 4, "i4": 4, "f4e2m1": 4, "u2": 2, "i2": 2, "f6e2m3": 6, "f6e3m2": 6}

# By ortc's number: what results have whose memory an array can show as it is; None for the others.
DTYPES = [np.dtype(_NUMPY[name]) if name in _NUMPY else None for name in NAMES]
_BY_DTYPE = {d: i for i, d in enumerate(DTYPES) if d is not None}
_BY_NAME = {_ML_DTYPES[name]: i for i, name in enumerate(NAMES) if name in _ML_DTYPES}


def numpy_dtype(number: int) -> np.dtype:
    """NumPy's type for ortc's number of one."""
    if DTYPES[number] is not None:
        return DTYPES[number]
    if number == STRING:
        return np.dtype(object)
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError(f"arrays of {NAMES[number]} need the package ml_dtypes; "
                          "run(..., values=True) gives ortc.Value without it") from None  # fmt: skip
    return np.dtype(getattr(ml_dtypes, _ML_DTYPES[NAMES[number]]))


def _pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Elements of `bits` bits, one in each byte, as a stream of bits from the lowest on."""
    stream = np.unpackbits(np.ascontiguousarray(codes).reshape(-1, 1), axis=1, count=bits, bitorder="little")
    return np.packbits(stream.reshape(-1), bitorder="little")


def _unpack(stream: np.ndarray, bits: int, count: int, signed: bool) -> np.ndarray:
    codes = np.unpackbits(stream, count=count * bits, bitorder="little").reshape(count, bits)
    if signed:  # the highest bit is that of all above
        codes = np.concatenate([codes, np.repeat(codes[:, -1:], 8 - bits, axis=1)], axis=1)
    return np.packbits(codes, axis=1, bitorder="little").reshape(-1)


def _bytes(item: object) -> bytes:
    if isinstance(item, bytes):
        return item
    if isinstance(item, str):
        return item.encode("utf-8", "surrogateescape")
    raise TypeError(f"a tensor of strings is made of str, not of {type(item).__name__}")


def _text(x: object) -> tuple[list[bytes], int, tuple[int, ...]]:
    array = np.asarray(x)
    if array.dtype.kind not in "OSUT":
        raise TypeError(f"a tensor of strings is made of str, not of {array.dtype}")
    return [_bytes(item) for item in array.reshape(-1).tolist()], STRING, array.shape


def tensor(x: object, wanted: int) -> tuple[object, int, tuple[int, ...]]:
    """Dense memory (or a list of bytes: strings), its element type, its shape. `wanted`: the model's element type, 0: not
    known; what has none of its own (lists, numbers) becomes that."""
    if wanted == STRING:
        return _text(x)
    if not isinstance(x, (np.ndarray, np.generic)):
        if hasattr(x, "__array__"):
            x = np.asarray(x)
        elif hasattr(x, "__dlpack__"):
            x = np.from_dlpack(x)
        elif isinstance(x, memoryview):
            x = np.asarray(x)
        elif isinstance(x, dict) or x is None:
            raise TypeError(f"expected an array of {NAMES[wanted] if wanted else 'numbers'}, got {type(x).__name__}")
        else:  # lists and numbers; those of Python have no width of their own
            x = np.asarray(x) if not wanted else np.asarray(x, dtype=numpy_dtype(wanted))
    if x.dtype.kind in "OSUT":
        return _text(x)
    if x.dtype.byteorder == (">" if sys.byteorder == "little" else "<"):
        x = x.astype(x.dtype.newbyteorder("="))
    shape = x.shape
    number = _BY_DTYPE.get(x.dtype)
    if number is None:
        number = _BY_NAME.get(x.dtype.name)
        if number is None:
            raise TypeError(f"ortc has no element type for NumPy's {x.dtype}")
        x = np.ascontiguousarray(x).view(np.uint16 if x.dtype.itemsize == 2 else np.uint8)
        if NAMES[number] in _BITS:
            x = _pack(x, _BITS[NAMES[number]])
    return np.ascontiguousarray(x), number, shape


def array(value: Any, number: int) -> np.ndarray:
    """An array of a tensor whose type NumPy does not have of its own. `value`: its bytes."""
    dtype, shape = numpy_dtype(number), value.shape
    name = NAMES[number]
    if name in _BITS:
        count = int(np.prod(shape, dtype=np.int64))
        stream = np.frombuffer(value, np.uint8)
        return _unpack(stream, _BITS[name], count, signed=name in ("i4", "i2")).view(dtype).reshape(shape)
    return np.ndarray(shape, dtype, value)


def strings(items: list[str], shape: tuple[int, ...]) -> np.ndarray:
    result = np.empty(len(items), dtype=object)
    result[:] = items
    return result.reshape(shape)
