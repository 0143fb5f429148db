"""Networks as onnxruntime's tools leave them: its transformer optimiser, its quantisers, its own optimiser's saved graphs.

What the tool made is asked of onnxruntime itself, since a quantised network is another network.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))
import numpy as np
import onnx
import onnxruntime
import torch_networks as t
from network import File, Network, differs, theirs
from onnxruntime import quantization as q
from onnxruntime.quantization import matmul_nbits_quantizer as nbits
from onnxruntime.transformers import optimizer
from onnxruntime.transformers.fusion_options import FusionOptions

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
RECIPES = {f"{r.name} {r.exporter}": r for r in t.RECIPES}


def source(name: str) -> tuple[onnx.ModelProto, list[dict[str, np.ndarray]], list[list]]:
    """A network of PyTorch, with its data."""
    (file,) = t.files(RECIPES[name])
    return file.model, [f for f, _ in file.sets], [w for _, w in file.sets]


def optimised(name: str, kind: str, half: bool = False, opt_level: int = 0):
    """By the tool; it changes no results but for rounding."""

    def make() -> list[File]:
        model, feeds, wants = source(name)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            onnx.save(model, f"{folder}/m.onnx")
            made = optimizer.optimize_model(f"{folder}/m.onnx", kind, num_heads=4, hidden_size=32, opt_level=opt_level, optimization_options=FusionOptions(kind))
            if half:
                made.convert_float_to_float16(keep_io_types=True)
            out = made.model
        for f, w in zip(feeds, wants):
            if problem := differs(theirs(out, f), w, 3e-2 if half else 1e-3):
                raise ValueError(f"the tool's network is not the one it was given: {problem}")
        return [File(out, list(zip(feeds, wants)), far=1e-2 if half else 1e-4)]

    return make


class Calibration(q.CalibrationDataReader):
    def __init__(self, feeds: list[dict]):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


def quantised(name: str, how: str, **options):
    def make() -> list[File]:
        model, feeds, _ = source(name)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            before, after = f"{folder}/m.onnx", f"{folder}/q.onnx"
            onnx.save(model, before)
            if how == "int4":
                made = nbits.MatMulNBitsQuantizer(onnx.load(before), block_size=16, is_symmetric=False, **options)
                made.process()
                out = made.model.model
            elif how == "dynamic":
                q.quantize_dynamic(before, after, weight_type=q.QuantType.QInt8, **options)
                out = onnx.load(after)
            else:
                q.quantize_static(before, after, Calibration(feeds), quant_format=q.QuantFormat.QDQ if how == "qdq" else q.QuantFormat.QOperator,
                                  activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8, **options)  # fmt: skip
                out = onnx.load(after)
        want = [theirs(out, f, optimised=False) for f in feeds]
        return [File(out, list(zip(feeds, want)), far=1e-4 if how == "int4" else max(2 / 255, 2 * apart(out, feeds, want)))]

    return make


def apart(model: onnx.ModelProto, feeds: list[dict], want: list[list]) -> float:
    """How far onnxruntime's own optimised graph is from the graph as it is: sums between two steps of 8 bits go either way, and
    with the rounding that follows a result may be some steps away."""
    pairs = [(g, w) for f, ws in zip(feeds, want) for g, w in zip(theirs(model, f), ws)]
    return max(float(np.abs(g - w).max() / np.abs(w).max()) for g, w in pairs)


def saved(name: str, level: onnxruntime.GraphOptimizationLevel):
    """What onnxruntime writes of its own optimised graph."""

    def make() -> list[File]:
        model, feeds, wants = source(name)
        with tempfile.TemporaryDirectory() as folder:
            options = onnxruntime.SessionOptions()
            options.log_severity_level, options.graph_optimization_level, options.optimized_model_filepath = 4, level, f"{folder}/o.onnx"
            onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            out = onnx.load(f"{folder}/o.onnx")
        return [File(out, list(zip(feeds, wants)))]

    return make


OPTIMISED = {
    "BERT optimised": optimised("BERT eager script", "bert"),
    "BERT optimised f16": optimised("BERT eager script", "bert", half=True),
    "BERT dynamo optimised": optimised("BERT dynamo", "bert"),
    "RoBERTa optimised": optimised("RoBERTa script", "bert"),
    "DistilBERT optimised": optimised("DistilBERT script", "bert"),
    "GPT-2 optimised": optimised("GPT-2 eager script", "gpt2"),
    "T5 optimised": optimised("T5 script", "t5"),
    "BART optimised": optimised("BART script", "bart"),
    "Swin optimised": optimised("Swin-T script", "swin"),
    "BEiT optimised": optimised("BEiT script", "vit"),
    "SegFormer optimised": optimised("SegFormer script", "vit"),
    "CLIP optimised": optimised("CLIP dynamo", "clip"),
    "SigLIP optimised f16": optimised("SigLIP script", "vit", half=True),
}
QUANTISED = {
    "ResNet-18 QDQ": quantised("ResNet-18 script", "qdq"),
    "ResNet-18 QDQ per channel": quantised("ResNet-18 script", "qdq", per_channel=True),
    "ResNet-18 QOperator": quantised("ResNet-18 script", "qoperator"),
    "SqueezeNet QOperator": quantised("SqueezeNet script", "qoperator"),
    "GhostNet QDQ": quantised("GhostNet script", "qdq"),
    "BERT QDQ": quantised("BERT eager script", "qdq"),
    "BERT dynamic": quantised("BERT eager script", "dynamic"),
    "GPT-2 dynamic": quantised("GPT-2 script", "dynamic", per_channel=True),
    "Llama int4": quantised("Llama script", "int4"),
    "Llama dynamo int4": quantised("Llama dynamo", "int4"),
    "Qwen3 int8 blocks": quantised("Qwen3 script", "int4", bits=8),
    "LSTM dynamic": quantised("LSTM script", "dynamic"),
}
ALL = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
EXTENDED = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
SAVED = {
    "BERT saved, extended": saved("BERT eager script", EXTENDED),
    "ResNet-18 saved, all": saved("ResNet-18 script", ALL),
    "MobileNetV3 saved, all": saved("MobileNetV3-small dynamo", ALL),
    "DenseNet saved, all": saved("DenseNet-121 script", ALL),
}
NETWORKS = (
    [Network(n, "transformers", "onnxruntime's transformer optimiser", m) for n, m in OPTIMISED.items()]
    + [Network(n, "quantised", "onnxruntime's quantisers", m) for n, m in QUANTISED.items()]
    + [Network(n, "saved", "onnxruntime's own optimiser", m) for n, m in SAVED.items()]
)
