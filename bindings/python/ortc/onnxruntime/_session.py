"""InferenceSession with its options, and what it says of a model."""

from __future__ import annotations

import enum
import os
import time
import warnings
from typing import Any, Callable, Iterable, Mapping, Sequence

import ortc

from ._errors import InvalidArgument, loading, running
from ._values import IOBinding, OrtValue, type_name

# onnxruntime's names of providers, by ortc's.
_PROVIDERS = {"cuda": "CUDAExecutionProvider", "cpu": "CPUExecutionProvider"}


def get_available_providers() -> list[str]:
    there = {p["provider"] for p in ortc.providers() if p["device"]}
    return [theirs for ours, theirs in _PROVIDERS.items() if ours in there]


def get_all_providers() -> list[str]:
    return list(_PROVIDERS.values())


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Entries:
    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def _get(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"no configuration entry '{key}'")
        return self._entries[key]


class SessionOptions(_Entries):
    """What has a meaning here: intra_op_num_threads, graph_optimization_level (ORT_DISABLE_ALL), free dimensions,
    enable_profiling, optimized_model_filepath. The rest is kept and changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self._dims: dict[str, int] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        return self._get(key)

    def has_session_config_entry(self, key: str) -> bool:
        return key in self._entries

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        self._dims[name] = value

    def add_free_dimension_override_by_denotation(self, name: str, value: int) -> None:
        raise NotImplementedError("dimensions are overridden by name")

    def register_custom_ops_library(self, path: str) -> None:
        """Plugins of ortc's; those of onnxruntime have another interface, and are refused."""
        with loading():
            ortc.load_plugin(path)

    def add_initializer(self, name: str, value: Any) -> None:
        raise NotImplementedError("initializers come from the model")

    def add_external_initializers(self, names: list[str], values: list[Any]) -> None:
        raise NotImplementedError("initializers come from the model")


class RunOptions(_Entries):
    def __init__(self) -> None:
        super().__init__()
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.training_mode = False
        self._cancel = ortc.Cancel()
        self._terminate = False

    @property
    def terminate(self) -> bool:
        """Set from any thread, it ends the runs that were given these options."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._terminate = value
        (self._cancel.set if value else self._cancel.reset)()

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        return self._get(key)


class NodeArg:
    def __init__(self, io: ortc.IO) -> None:
        self.name = io.name
        self.type = type_name(io.type)
        self.shape = None if io.shape is None else list(io.shape)
        if io.dtype and io.shape is None:
            self.shape = []
        self._io = io

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    __str__ = __repr__


class ModelMetadata:
    def __init__(self, info: Mapping[str, Any]) -> None:
        self.producer_name = info["producer"]
        self.graph_name = info["graph_name"]
        self.domain = info["domain"]
        self.description = info["doc"]
        self.graph_description = ""
        self.version = info["version"]
        self.custom_metadata_map = dict(info["metadata"])


def _providers(providers: Iterable[Any] | None, options: Sequence[Mapping[str, Any]] | None) -> tuple[list[str], list[str]]:
    """ortc's and onnxruntime's names of those that are asked for and there, the processor last."""
    theirs_of = {theirs: ours for ours, theirs in _PROVIDERS.items()}
    available, ours, theirs = get_available_providers(), [], []
    for i, item in enumerate(providers or available):
        name, own = item if isinstance(item, (tuple, list)) else (item, options[i] if options else {})
        if name not in available:
            known = ", ".join(f"'{a}'" for a in available)
            warnings.warn(f"Specified provider '{name}' is not in available provider names. Available providers: {known}",
                          stacklevel=4)  # fmt: skip
            continue
        device = str((own or {}).get("device_id", "0"))
        ours.append(theirs_of[name] + (f":{device}" if device != "0" else ""))
        theirs.append(name)
    if "cpu" not in ours:
        ours.append("cpu")
        theirs.append(_PROVIDERS["cpu"])
    return ours, theirs


class InferenceSession:
    """A model made ready to run, with onnxruntime's interface. path_or_bytes: a path, or the model itself."""

    def __init__(self, path_or_bytes: Any, sess_options: SessionOptions | None = None, providers: Sequence[Any] | None = None,
                 provider_options: Sequence[Mapping[str, Any]] | None = None, **kwargs: Any) -> None:  # fmt: skip
        if not isinstance(path_or_bytes, (str, bytes, bytearray, os.PathLike)):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        o = sess_options or SessionOptions()
        ours, self._provider_names = _providers(providers, provider_options)
        plain = int(o.graph_optimization_level) == GraphOptimizationLevel.ORT_DISABLE_ALL
        with loading():
            self._model = ortc.Model(path_or_bytes, passes=not plain, follow_links=True)
            self._session = ortc.Session(self._model, providers=ours, threads=max(0, o.intra_op_num_threads), dims=o._dims,
                                         fusion=not plain)  # fmt: skip
            if o.optimized_model_filepath:
                self._model.save(o.optimized_model_filepath)
        self._options = o
        self._inputs = [NodeArg(io) for io in self._model.inputs if not (io.optional and io.type == io.dtype)]
        self._defaults = [NodeArg(io) for io in self._model.inputs if io.optional and io.type == io.dtype]
        self._outputs = [NodeArg(io) for io in self._model.outputs]
        self._required = {io.name for io in self._model.inputs if not io.optional}
        self._profiler = ortc.Profiler() if o.enable_profiling else None
        self._profile_start = time.monotonic_ns()
        self._model_path = None if isinstance(path_or_bytes, (bytes, bytearray)) else os.fspath(path_or_bytes)

    def _run(self, names: Sequence[str] | None, feed: Mapping[str, Any], options: RunOptions | None,
             out: Mapping[str, Any] | None = None) -> list[Any]:  # fmt: skip
        feed = dict(feed)
        missing = self._required - feed.keys()
        if missing:
            raise ValueError(f"Required inputs ({sorted(missing)}) are missing from input feed ({list(feed)}).")
        names = list(names) if names else [o.name for o in self._outputs]
        try:
            results = self._session.run(feed, list(dict.fromkeys(names)), out=out, profiler=self._profiler,
                                        cancel=options._cancel if options else None)  # fmt: skip
        except ortc.Error as e:
            raise running(e) from None
        return [results[name] for name in names]

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None) -> list[Any]:
        return self._run(output_names, {k: v._data if isinstance(v, OrtValue) else v for k, v in input_feed.items()}, run_options)

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], callback: Callable[..., None],
                  user_data: Any, run_options: RunOptions | None = None) -> None:  # fmt: skip
        """callback(results, user_data, error text) on another thread."""
        import threading

        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as e:
                results, error = [], str(e)
            callback(results, user_data, error)

        threading.Thread(target=work, daemon=True).start()

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:  # fmt: skip
        feed = {k: v._data for k, v in input_dict_ort_values.items()}
        return [OrtValue(r) for r in self._run(output_names, feed, run_options)]

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        bound = iobinding._outputs
        out = {name: value._data for name, value in bound.items() if value is not None}
        iobinding._results = [OrtValue(r) for r in self._run(list(bound) or None, iobinding._inputs, run_options, out)]

    def get_inputs(self) -> list[NodeArg]:
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        return self._defaults

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(self._model.info)

    def get_providers(self) -> list[str]:
        return self._provider_names

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: {} for name in self._provider_names}

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Sequence[Mapping[str, Any]] | None = None) -> None:
        ours, self._provider_names = _providers(providers, provider_options)
        with loading():
            self._session = ortc.Session(self._model, providers=ours, threads=max(0, self._options.intra_op_num_threads),
                                         dims=self._options._dims)  # fmt: skip

    def get_session_options(self) -> SessionOptions:
        return self._options

    def disable_fallback(self) -> None: ...
    def enable_fallback(self) -> None: ...

    def end_profiling(self) -> str:
        if not self._profiler:
            raise InvalidArgument("profiling is not enabled")
        path = f"{self._options.profile_file_prefix}{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
        self._profiler.save(path)
        return path

    def get_profiling_start_time_ns(self) -> int:
        return self._profile_start
