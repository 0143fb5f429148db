"""onnxruntime's Python interface on ortc, for programs that are written for it.

    import ortc.onnxruntime as onnxruntime

or, for programs that cannot be changed, `python -m ortc.as_onnxruntime program.py` (see ortc/as_onnxruntime.py). What is here
is what programs use of it: sessions, options, values and bindings on the host, metadata, exceptions. Training, sparse tensors,
custom operators of onnxruntime's own and its quantization tools are not.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import ortc

from ._errors import *  # noqa: F403  the exceptions: programs catch them by these names
from ._session import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    InferenceSession,
    ModelMetadata,
    NodeArg,
    RunOptions,
    SessionOptions,
    get_all_providers,
    get_available_providers,
)
from ._values import IOBinding, OrtDevice, OrtValue

Session = InferenceSession
SessionIOBinding = IOBinding
# The version whose interface this is: programs ask for the least that they need.
__version__ = f"1.23.0+ortc{ortc.__version__}"

__all__ = [
    "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata", "NodeArg",
    "OrtDevice", "OrtValue", "RunOptions", "SessionIOBinding", "SessionOptions", "get_all_providers",
    "get_available_providers", "get_build_info", "get_device", "get_version_string", "set_default_logger_severity",
    "set_default_logger_verbosity", "set_seed",
]  # fmt: skip


def get_device() -> str:
    return "GPU" if "CUDAExecutionProvider" in get_available_providers() else "CPU"


def get_build_info() -> str:
    return f"ortc {ortc.__version__}"


def get_version_string() -> str:
    return __version__


def _ignored(*_: Any, **__: Any) -> None:
    """The library writes no log and sends no telemetry unless it is told to."""


set_default_logger_severity = set_default_logger_verbosity = set_seed = preload_dlls = _ignored
disable_telemetry_events = enable_telemetry_events = _ignored


def _submodules() -> dict[str, types.ModuleType]:
    """onnxruntime.capi and what is in it, which hold the same names."""
    here = sys.modules[__name__]
    modules = {"capi": types.ModuleType(f"{__name__}.capi")}
    for name in ("onnxruntime_pybind11_state", "_pybind_state", "onnxruntime_inference_collection"):
        module = modules[f"capi.{name}"] = types.ModuleType(f"{__name__}.capi.{name}")
        for key, value in vars(here).items():
            if not key.startswith("_"):
                setattr(module, key, value)
        setattr(modules["capi"], name, module)
    return modules


SUBMODULES = _submodules()
capi = SUBMODULES["capi"]
for _name, _module in SUBMODULES.items():
    sys.modules[f"{__name__}.{_name}"] = _module
