"""The exceptions that programs catch from onnxruntime, and which of ortc's errors become which."""

from __future__ import annotations

import contextlib
from typing import Iterator

import ortc


class OrtError(Exception):
    """What the others have in common; onnxruntime's have nothing but Exception."""


class Fail(OrtError): ...
class InvalidArgument(OrtError): ...
class NoSuchFile(OrtError): ...
class NoModel(OrtError): ...
class EngineError(OrtError): ...
class RuntimeException(OrtError): ...
class InvalidProtobuf(OrtError): ...
class ModelLoaded(OrtError): ...
class NotImplemented(OrtError): ...  # noqa: A001  onnxruntime's name
class InvalidGraph(OrtError): ...
class EPFail(OrtError): ...
class ModelRequiresCompilation(OrtError): ...
class NotFound(OrtError): ...


# While a model is loaded; what is not here is Fail.
_LOADING = {"NOT_FOUND": NoSuchFile, "IO": NoSuchFile, "INVALID_MODEL": InvalidProtobuf, "UNSUPPORTED": NotImplemented,
            "INVALID_ARGUMENT": InvalidArgument}  # fmt: skip
# While it runs; what is not here is RuntimeException.
_RUNNING = {"INVALID_ARGUMENT": InvalidArgument, "TYPE_MISMATCH": InvalidArgument, "SHAPE_MISMATCH": InvalidArgument,
            "UNSUPPORTED": NotImplemented, "CANCELLED": Fail}  # fmt: skip


@contextlib.contextmanager
def loading() -> Iterator[None]:
    try:
        yield
    except ortc.Error as e:
        raise _LOADING.get(e.code, Fail)(f"[ortc] {e.code}: {e}") from None


def running(e: ortc.Error) -> OrtError:
    return _RUNNING.get(e.code, RuntimeException)(f"[ortc] {e.code}: {e}")
