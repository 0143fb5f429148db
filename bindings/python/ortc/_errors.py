"""The exceptions of ortc: one class for each status of the library, every one also of the built-in kind that it is."""

from __future__ import annotations


class Error(Exception):
    """What the library refused, with its text: the node, operator or input, what was expected and what came."""

    code = "INTERNAL"  # the library's name of the status


class InvalidArgument(Error, ValueError):
    """A call that its contract forbids: an unknown, missing or repeated name, a wrong option."""

    code = "INVALID_ARGUMENT"


class InvalidModel(Error, ValueError):
    """The file is not a valid ONNX model."""

    code = "INVALID_MODEL"


class Unsupported(Error, NotImplementedError):
    """Valid, but no operator, kernel or build of ortc can do it."""

    code = "UNSUPPORTED"


class NotFound(Error, LookupError):
    """No such file, name, provider or device."""

    code = "NOT_FOUND"


class IOError(Error, OSError):  # noqa: A001  the library's name
    """Reading or writing failed."""

    code = "IO"


class OutOfMemory(Error, MemoryError):
    """Host or device memory could not be had."""

    code = "OUT_OF_MEMORY"


class Limit(Error):
    """A limit of the library's or the caller's was reached."""

    code = "LIMIT"


class ShapeMismatch(Error, ValueError):
    """Shapes do not fit the model or each other."""

    code = "SHAPE_MISMATCH"


class TypeMismatch(Error, TypeError):
    """Element types or kinds of values do not fit."""

    code = "TYPE_MISMATCH"


class Cancelled(Error):
    """An ortc.Cancel was set."""

    code = "CANCELLED"


class Deadline(Error, TimeoutError):
    """The run's timeout passed."""

    code = "DEADLINE"


class DeviceError(Error):
    """A device refused or failed; it may work again."""

    code = "DEVICE_ERROR"


class DeviceLost(Error):
    """A device is gone until the process restarts."""

    code = "DEVICE_LOST"


class IncompatiblePlugin(Error, ImportError):
    """A plugin too new, too old or broken."""

    code = "INCOMPATIBLE_PLUGIN"


class InvalidState(Error):
    """The object is in a state in which the call makes no sense, as a second run with one ortc.State."""

    code = "INVALID_STATE"


class Internal(Error):
    """A bug in ortc: please report it."""

    code = "INTERNAL"


# By the library's numbers (ortc/types.h), which are stable.
BY_CODE = dict(
    enumerate(
        [
            InvalidArgument, InvalidModel, Unsupported, NotFound, IOError, OutOfMemory, Limit, ShapeMismatch, TypeMismatch,
            Cancelled, Deadline, DeviceError, DeviceLost, IncompatiblePlugin, InvalidState, Internal,
        ],
        start=1,
    )
)  # fmt: skip
