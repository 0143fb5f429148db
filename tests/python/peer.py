"""onnxruntime as a judge of results: with products of 8 bits that are exact, as the standard has them.

On a processor without VNNI (AVX2) it multiplies u8 with s8 by pairs whose sums saturate at 16 bits, unless its option x64quantprecision is
set; that holds for constant weights only, and only in graphs that it may optimise.
"""

from __future__ import annotations

import functools

import onnx
import onnxruntime

LEVELS = onnxruntime.GraphOptimizationLevel


def options(level: LEVELS = LEVELS.ORT_ENABLE_ALL) -> onnxruntime.SessionOptions:
    made = onnxruntime.SessionOptions()
    made.log_severity_level = 4
    made.graph_optimization_level = level
    made.add_session_config_entry("session.x64quantprecision", "1")
    return made


def session(model: onnx.ModelProto | str, level: LEVELS = LEVELS.ORT_ENABLE_ALL) -> onnxruntime.InferenceSession:
    """Of a model or a file."""
    what = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(what, options(level), providers=["CPUExecutionProvider"])


@functools.cache
def saturates() -> bool:
    """Whether products of 8 bits that it does not optimise are wrong on this processor: 2 * 255 * 127 does not fit 16 bits."""
    import numpy as np

    text = '<ir_version: 8, opset_import: ["": 17]> g (uint8[1, 4] x, int8[4, 1] w) => (int32[1, 1] y) { y = MatMulInteger (x, w) }'
    feeds = {"x": np.full((1, 4), 255, np.uint8), "w": np.full((4, 1), 127, np.int8)}
    return session(onnx.parser.parse_model(text), LEVELS.ORT_DISABLE_ALL).run(None, feeds)[0].item() != 4 * 255 * 127


def plain(model: onnx.ModelProto | str) -> onnxruntime.InferenceSession:
    """Of the graph as it is (some of its fusions round coarsely), where that is exact."""
    if saturates():
        try:
            return session(model)
        except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
            pass  # it made of s8 x s8, which does not saturate, what it has no kernel for
    return session(model, LEVELS.ORT_DISABLE_ALL)
