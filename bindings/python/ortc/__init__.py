"""ortc runs ONNX models.

    import ortc
    session = ortc.Session("model.onnx")
    y = session.run({"x": x})["y"]

Model is a loaded file, Session a model made ready for this machine, State what a conversation keeps between its runs, Value a
tensor (sequence, map, optional) of the library's. Errors are subclasses of ortc.Error. See docs/python.md.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple, Sequence

from . import _ortc
from ._errors import (
    Cancelled,
    Deadline,
    DeviceError,
    DeviceLost,
    Error,
    IncompatiblePlugin,
    Internal,
    InvalidArgument,
    InvalidModel,
    InvalidState,
    IOError,  # noqa: A004
    Limit,
    NotFound,
    OutOfMemory,
    ShapeMismatch,
    TypeMismatch,
    Unsupported,
)
from ._ortc import OPSET, Cancel, State, Value, __version__, load_plugin, operators, providers, set_log

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._ortc import Results

__all__ = [
    "OPSET", "Cancel", "Cancelled", "Deadline", "DeviceError", "DeviceLost", "Error", "IO", "IOError", "IncompatiblePlugin",
    "Internal", "InvalidArgument", "InvalidModel", "InvalidState", "Limit", "Model", "NotFound", "OutOfMemory", "Profiler",
    "Event", "Session", "ShapeMismatch", "State", "Tie", "TypeMismatch", "Unsupported", "Value", "__version__", "load_plugin",
    "operators", "providers", "set_log",
]  # fmt: skip


class IO(NamedTuple):
    """An input or output of a model."""

    name: str
    type: str  # "f32", "sequence(f32)", "map(i64, f32)", "optional(f32)"
    dtype: str | None  # a tensor's element type
    shape: tuple[int | str | None, ...] | None  # extents, names of symbols, None for one without; None: rank not known
    optional: bool  # it may be left out
    doc: str


class Model(_ortc.Model):
    """A loaded model: immutable, to be shared by sessions and threads.

    source: a path, or the bytes of a model (which are not copied). passes=False leaves the graph as the file has it.
    max_bytes limits constants in memory. follow_links: external data may lie behind symbolic links. fold_operations: what folding
    of constants may do, in operations of about a nanosecond; what is more is left to the runs (info["unfolded"]); 0: 500
    million, and 500 for each byte of the weights. timeout: seconds, after which ortc.Deadline is raised; cancel: an ortc.Cancel.
    interleave: packed weights lie over all memory nodes of the machine in turn.
    """

    @functools.cached_property
    def inputs(self) -> tuple[IO, ...]:
        return tuple(IO(*x) for x in self._inputs())

    @functools.cached_property
    def outputs(self) -> tuple[IO, ...]:
        return tuple(IO(*x) for x in self._outputs())

    @functools.cached_property
    def info(self) -> dict[str, Any]:
        """producer, opsets, metadata, operators with their counts, parameters, weight_bytes, unfolded, passes with their edits, ..."""
        return self._describe()

    @property
    def metadata(self) -> dict[str, str]:
        metadata: dict[str, str] = self.info["metadata"]
        return metadata

    def __repr__(self) -> str:
        return f"<ortc.Model {self.info['graph_name']!r}: {', '.join(map(_shown, self.inputs))} -> {', '.join(map(_shown, self.outputs))}>"


def _shown(io: IO) -> str:
    shape = "" if io.shape is None else "[" + ",".join("?" if d is None else str(d) for d in io.shape) + "]"
    return f"{io.name} {io.type}{shape}"


class Tie(NamedTuple):
    """An output that is an input of the next run with the same State. axis -1: the value is replaced as a whole; else of
    positions: fixed where input and output have one extent there, growing where the output is longer, up to capacity."""

    input: str
    output: str
    axis: int = -1
    capacity: int = 0


class Session(_ortc.Session):
    """A model made ready to run: shared by threads, whose runs are concurrent.

    model: an ortc.Model, a path or bytes. providers: in order of preference ("cuda", "cpu"); ref is always the last resort.
    require: every node must run on one of these. threads: of one run; 0: all that the process may use. dims: symbols fixed
    for this session, {"batch": 8}. ties: for runs with a State. keep: names of values inside the graph that runs may ask for.
    max_contexts, plan_cache_bytes, max_bytes: limits; 0: none of ours. fusion=False: one kernel per node. winograd=False: no
    convolution by Winograd's transforms, which round more. precision="bf16": products of f32 may round their operands, and
    what lies between them be kept so. pack_at_once=True: weights of 4 MB and more are packed for good by the first run, whose
    result comes later for it, not by the second. choose: which kernel where there are several, "NODE=KERNEL". timeout, cancel:
    of making the session, as of Model.
    """

    model: Model
    ties: tuple[Tie, ...]
    _untied_outputs: list[str]  # what a run with a State gives by default

    def __new__(cls, model: Model | str | os.PathLike[str] | bytes, *, providers: str | Iterable[str] = "cpu",
                require: str | Iterable[str] | None = None, threads: int = 0, dims: Mapping[str, int] = {},
                ties: Iterable[Tie | tuple[Any, ...]] = (), keep: Iterable[str] = (), max_contexts: int = 0,
                plan_cache_bytes: int = 0, max_bytes: int = 0, fusion: bool = True, winograd: bool = True,
                pack_at_once: bool = False, precision: str | None = None, choose: Iterable[str] = (),
                timeout: float | None = None, cancel: Cancel | None = None) -> Self:  # fmt: skip
        if not isinstance(model, _ortc.Model):
            model = Model(model, timeout=timeout, cancel=cancel)
        tied = [Tie(*t) for t in ties]
        if isinstance(dims, str) or isinstance(keep, str) or isinstance(choose, str):
            raise TypeError("dims expects a dict, keep and choose lists of str")
        self = super().__new__(cls, model, _joined(providers), _joined(require), threads, max_contexts, plan_cache_bytes,
                               max_bytes, fusion, winograd, pack_at_once, list(dims), list(dims.values()), tied, list(keep),
                               list(choose), precision, timeout, cancel)  # fmt: skip
        self.ties = tuple(tied)
        outputs = {t.output for t in tied}
        self._untied_outputs = [io.name for io in self.outputs if io.name not in outputs]
        return self

    @property
    def inputs(self) -> tuple[IO, ...]:
        return self.model.inputs

    @property
    def outputs(self) -> tuple[IO, ...]:
        return self.model.outputs

    def state(self) -> State:
        """A new, empty state of this session's ties."""
        return State(self)

    async def run_async(self, inputs: Mapping[str, Any], outputs: Sequence[str] | None = None, **options: Any) -> Results:
        """run, awaited: on a thread of the event loop's executor. Cancelling the task cancels the run."""
        cancel = options.setdefault("cancel", None)
        if cancel is None:
            cancel = options["cancel"] = Cancel()
        future = asyncio.get_running_loop().run_in_executor(None, functools.partial(self.run, inputs, outputs, **options))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            cancel.set()
            await asyncio.wait([future])
            future.exception()  # looked at: it is the run's own end, and told nobody
            raise

    def placement(self) -> list[dict[str, Any]]:
        """Every node in the order of execution: its provider and kernel, what is fused into it, why others declined."""
        return self._placement()

    def passes(self) -> dict[str, int]:
        """The session's graph passes, with the edits that each made."""
        return self._passes()

    def __repr__(self) -> str:
        return f"<ortc.Session of {self.model!r}>"


def _joined(names: str | Iterable[str] | None) -> str | None:
    return names if names is None or isinstance(names, str) else ",".join(names)


class Event(NamedTuple):
    """What a run with a profiler tells: a step of the plan, a phase of a step, or the making of a plan."""

    kind: str  # "step", "phase", "plan"
    step: int
    name: str
    op: str
    provider: str
    kernel: str
    start_ns: int  # CLOCK_MONOTONIC
    duration_ns: int
    flops: float  # as the kernel estimates them; 0: not known
    bytes: float
    clocks: float


class Profiler(_ortc.Profiler):
    """Collects what runs do that are given it: session.run(..., profiler=profiler). Any thread."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    @property
    def events(self) -> list[Event]:
        self._events += [Event(*e) for e in self._take()]
        return self._events

    def clear(self) -> None:
        self._take()
        self._events = []

    def by_operator(self) -> dict[str, tuple[int, int]]:
        """Steps and nanoseconds of every operator, the longest first."""
        sums: dict[str, tuple[int, int]] = {}
        for e in self.events:
            if e.kind == "step":
                n, ns = sums.get(e.op or e.name, (0, 0))
                sums[e.op or e.name] = n + 1, ns + e.duration_ns
        return dict(sorted(sums.items(), key=lambda item: -item[1][1]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a trace for Perfetto or chrome://tracing."""
        start = min((e.start_ns for e in self.events), default=0)
        trace = [{"name": e.name, "cat": e.kind, "ph": "X", "ts": (e.start_ns - start) / 1e3, "dur": e.duration_ns / 1e3,
                  "pid": 1, "tid": 1, "args": {k: v for k, v in e._asdict().items() if k not in ("name", "kind") and v}}
                 for e in self.events]  # fmt: skip
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"displayTimeUnit": "ns", "traceEvents": trace}, f)
