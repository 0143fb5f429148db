"""OrtValue, OrtDevice and IOBinding. Everything is on the host: a device's memory is ortc's own affair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

import ortc
from ortc import _convert

if TYPE_CHECKING:
    from ._session import InferenceSession

# onnxruntime's names of element types, by ortc's.
ELEMENT_NAMES = {
    "f32": "float", "u8": "uint8", "i8": "int8", "u16": "uint16", "i16": "int16", "i32": "int32", "i64": "int64",
    "string": "string", "bool": "bool", "f16": "float16", "f64": "double", "u32": "uint32", "u64": "uint64",
    "c64": "complex64", "c128": "complex128", "bf16": "bfloat16", "f8e4m3fn": "float8e4m3fn",
    "f8e4m3fnuz": "float8e4m3fnuz", "f8e5m2": "float8e5m2", "f8e5m2fnuz": "float8e5m2fnuz", "u4": "uint4", "i4": "int4",
}  # fmt: skip


def type_name(text: str) -> str:
    """'tensor(float)', 'seq(map(int64,tensor(float)))' for ortc's 'f32', 'sequence(map(i64, f32))'."""
    for ours, theirs in (("sequence(", "seq("), ("optional(", "optional(")):
        if text.startswith(ours):
            return f"{theirs}{type_name(text[len(ours) : -1])})"
    if text.startswith("map("):
        key, value = text[4:-1].split(", ", 1)
        return f"map({ELEMENT_NAMES.get(key, key)},{type_name(value)})"
    return f"tensor({ELEMENT_NAMES.get(text, text)})"


class OrtDevice:
    def __init__(self, device_type: str = "cpu", memory_type: Any = None, device_id: int = 0, *_: Any) -> None:
        self._type, self._id = device_type, device_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        return OrtDevice(ort_device_name, None, device_id)

    @staticmethod
    def cpu() -> str:
        return "cpu"

    @staticmethod
    def cuda() -> str:
        return "cuda"

    @staticmethod
    def default_memory() -> int:
        return 0

    def device_type(self) -> str:
        return self._type

    def device_id(self) -> int:
        return self._id


class OrtValue:
    """A value of a run's: an array, or a list or dict of them."""

    def __init__(self, data: Any, type_text: str | None = None) -> None:
        self._data = data
        self._type = type_text

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        return cls(np.ascontiguousarray(numpy_obj).reshape(np.shape(numpy_obj)))

    @classmethod
    def ort_value_from_sparse_tensor(cls, *_: Any) -> OrtValue:
        raise TypeError("ortc has no sparse tensors")

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu",
                                     device_id: int = 0, vendor_id: int = -1) -> OrtValue:  # fmt: skip
        if isinstance(element_type, int):  # a number of TensorProto.DataType, which are ortc's
            element_type = _convert.numpy_dtype(element_type)
        return cls(np.empty(tuple(shape), element_type))

    @classmethod
    def from_dlpack(cls, data: Any, is_bool_tensor: bool = False) -> OrtValue:
        array = np.from_dlpack(data)
        return cls(array.astype(bool) if is_bool_tensor else array)

    def _value(self) -> ortc.Value:
        return ortc.Value(self._data)

    def __dlpack__(self, **options: Any) -> Any:
        return self._value().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    to_dlpack = __dlpack__

    def numpy(self) -> np.ndarray:
        if not self.is_tensor():
            raise RuntimeError("only a tensor is made an array")
        return self._data

    def data_ptr(self) -> int:
        return self._data.__array_interface__["data"][0]

    def device_name(self) -> str:
        return "cpu"

    def shape(self) -> list[int]:
        return list(self._data.shape)

    def data_type(self) -> str:
        return type_name(self._type or self._value().type)

    def element_type(self) -> int:
        return _convert.NAMES.index(self._value().dtype)

    def has_value(self) -> bool:
        return self._data is not None

    def is_tensor(self) -> bool:
        return isinstance(self._data, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        return False

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._data, list)

    def update_inplace(self, array: np.ndarray) -> None:
        self._data[...] = array


class IOBinding:
    """Inputs and outputs that are bound once and used by many runs."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, OrtValue | None] = {}  # None: placed by the run
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        self._inputs[name] = arr_on_cpu

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._inputs[name] = ortvalue._data

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int) -> None:
        self._inputs[name] = _array_at(buffer_ptr, element_type, shape, device_type)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:  # fmt: skip
        self._outputs[name] = None
        if buffer_ptr is not None:
            self._outputs[name] = OrtValue(_array_at(buffer_ptr, element_type, shape or (), device_type))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None: ...
    def synchronize_outputs(self) -> None: ...

    def get_outputs(self) -> list[OrtValue]:
        return self._results

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        return self._results

    def copy_outputs_to_cpu(self) -> list[Any]:
        return [r._data for r in self._results]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results = []


def _array_at(address: int, element_type: Any, shape: Sequence[int], device_type: str) -> np.ndarray:
    import ctypes

    if device_type not in ("cpu", "cuda_pinned"):
        raise RuntimeError(f"an address in the memory of '{device_type}' cannot be bound")
    if isinstance(element_type, int):
        element_type = _convert.numpy_dtype(element_type)
    dtype = np.dtype(element_type)
    memory = (ctypes.c_char * (int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape)
