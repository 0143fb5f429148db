"""What the recipes of exported networks share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx

FAR = 1e-4  # results may differ by so much of an output's largest value


@dataclass
class File:
    """A model and what it answers: pairs of inputs by name and results in the order of the model's."""

    model: onnx.ModelProto
    sets: list[tuple[dict[str, np.ndarray], list]]
    far: float = FAR


@dataclass(frozen=True)
class Network:
    name: str
    kind: str  # text, vision, ...
    by: str  # who wrote the file
    make: Callable[[], list[File]]  # one file that takes both shapes, or one for each


def theirs(model: onnx.ModelProto, feeds: dict[str, np.ndarray], optimised: bool = True) -> list:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = {i.name for i in session.get_inputs()}
    return session.run(None, {n: a for n, a in feeds.items() if n in wanted})


def differs(got: list, want: list, far: float = 10 * FAR) -> str | None:
    """The largest difference over the largest value of each output; what is no float is equal."""
    if len(got) != len(want):
        return f"{len(got)} results, not {len(want)}"
    for k, (g, w) in enumerate(zip(got, want)):
        g, w = np.asarray(g), np.asarray(w)
        if g.shape != w.shape:
            return f"result {k}: {g.shape}, not {w.shape}"
        if w.dtype.kind != "f":
            if not np.array_equal(g, w):
                return f"result {k}: other values"
        elif w.size and not np.abs(g - w).max() <= far * np.abs(w).max():
            return f"result {k} differs by {np.abs(g - w).max() / np.abs(w).max():.1e} of its largest value"
    return None
