#!/usr/bin/env python3
"""Networks that went through onnxruntime's tools: test_written.py ORTC DIGITS.ONNX.

A BERT, a LLaMA and a network of convolutions, made by the tests, go through onnxruntime's own optimiser, its optimiser for
transformers, its quantisers (dynamic; static, as QDQ and as QOperator; int4 blocks), and what these write once more through the
first. Every file must load in ortc and give what onnxruntime gives for the same file, on ref and on cpu, and be saved as standard ONNX. Names of the operators that a
file holds beside the standard's are part of the case, so that a tool that stops writing them shows.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))
from harness import check, finish, packages  # noqa: E402

np, onnx, onnxruntime = packages("numpy", "onnx", "onnxruntime")
(quantization, _, _) = packages("onnxruntime.quantization", "sympy", "onnx_ir")  # the others: for its tools
import make_bert  # noqa: E402
import make_llama  # noqa: E402
import peer  # noqa: E402
from make_suite import write_values  # noqa: E402

ORTC, DIGITS = sys.argv[1], Path(sys.argv[2])
logging.disable(logging.CRITICAL)
warnings.filterwarnings("ignore")


def extended(source: Path, to: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED, 4
    options.optimized_model_filepath = str(to)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def transformers(kind: str, heads: int, hidden: int):
    def write(source: Path, to: Path) -> None:
        (optimizer,) = packages("onnxruntime.transformers.optimizer")
        optimizer.optimize_model(str(source), kind, num_heads=heads, hidden_size=hidden, opt_level=0).save_model_to_file(str(to))
    return write


def dynamic(source: Path, to: Path) -> None:
    quantization.quantize_dynamic(str(source), str(to), extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT})


class Samples(quantization.CalibrationDataReader):
    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


def static(form, feeds):
    def write(source: Path, to: Path) -> None:
        quantization.quantize_static(str(source), str(to), Samples([feeds]), quant_format=form, per_channel=False)
    return write


def blocks(source: Path, to: Path) -> None:
    (nbits,) = packages("onnxruntime.quantization.matmul_nbits_quantizer")
    quantizer = nbits.MatMulNBitsQuantizer(onnx.load(source), block_size=16, is_symmetric=False, accuracy_level=0)
    quantizer.process()
    quantizer.model.save_model_to_file(str(to))


def chain(*steps):
    def write(source: Path, to: Path) -> None:
        for i, step in enumerate(steps):
            step(source, out := to if i + 1 == len(steps) else to.with_suffix(f".{i}.onnx"))
            source = out
    return write


def contrib(path: Path) -> set[str]:
    return {n.op_type for n in onnx.load(path).graph.node if n.domain == "com.microsoft"}


def digits_feed():
    return {"image": np.random.default_rng(3).integers(0, 17, (4, 1, 8, 8)).astype(np.float32) * 15}


def cases():
    """name, network, feeds, tool, the operators of com.microsoft that must be in its file, tolerance"""
    bert, llama, image = make_bert.feeds(), make_llama.feeds(), digits_feed()
    base = [("bert", make_bert.model(), bert), ("llama", make_llama.model(), llama), ("digits", onnx.load(DIGITS), image)]
    exact, rounded = (1e-3, 1e-4), (2e-2, 2e-2)
    for name, model, feeds in base:
        yield f"{name}_extended", model, feeds, extended, set(), exact
        yield f"{name}_dynamic", model, feeds, dynamic, set(), rounded
    bert_optimizer, form = transformers("bert", make_bert.TINY.heads, make_bert.TINY.hidden), quantization.QuantFormat
    yield "bert_transformers", base[0][1], bert, bert_optimizer, {"Attention", "SkipLayerNormalization", "BiasGelu"}, exact
    yield "bert_transformers_extended", base[0][1], bert, chain(bert_optimizer, extended), {"Attention"}, exact
    yield "bert_dynamic_extended", base[0][1], bert, chain(dynamic, extended), {"DynamicQuantizeMatMul"}, rounded
    yield "bert_transformers_dynamic", base[0][1], bert, chain(bert_optimizer, dynamic, extended), {"QAttention"}, rounded
    yield "bert_blocks", base[0][1], bert, blocks, {"MatMulNBits"}, exact
    yield "llama_blocks", base[1][1], llama, chain(blocks, extended), {"MatMulNBits"}, exact
    yield "digits_qdq", base[2][1], image, static(form.QDQ, image), set(), rounded
    yield "digits_qdq_extended", base[2][1], image, chain(static(form.QDQ, image), extended), set(), rounded
    yield "digits_qoperator", base[2][1], image, static(form.QOperator, image), set(), rounded
    yield "bert_qoperator", base[0][1], bert, static(form.QOperator, bert), {"QLinearAdd"}, (5e-2, 5e-2)


def write(folder: Path, name: str, model, feeds, tool, holds: set[str], tolerance) -> str | None:
    source, path = folder / f"{name}.onnx", folder / name
    path.mkdir()
    onnx.save(model, source)
    made = folder / f"{name}.made.onnx"
    tool(source, made)
    made.replace(path / "model.onnx")
    for file in folder.glob(f"{name}*.onnx"):
        file.unlink()
    if missing := holds - contrib(path / "model.onnx"):
        return f"{missing} is not in {contrib(path / 'model.onnx')}"
    written = onnx.load(path / "model.onnx")
    data = path / "test_data_set_0"
    data.mkdir()
    results = peer.plain(str(path / "model.onnx")).run(None, feeds)
    (path / "tolerance.json").write_text(json.dumps(dict(zip(("rtol", "atol"), tolerance))))
    write_values(data, "input", [feeds[i.name] for i in written.graph.input], written.graph.input)
    write_values(data, "output", results, written.graph.output)
    return None


def saved(path: Path) -> str | None:
    """What ortc saves of it is the standard's alone, and valid."""
    to = path.parent.with_suffix(".standard.onnx")
    done = subprocess.run([ORTC, "optimize", str(path), "-o", str(to), "--no-check"], capture_output=True, text=True, timeout=60)
    if done.returncode:
        return done.stderr
    model = onnx.load(to)
    onnx.checker.check_model(model, full_check=True)
    to.unlink()
    return f"it has {foreign}" if (foreign := {n.op_type for n in model.graph.node if n.domain}) else None


def main() -> int:
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        for name, *rest in cases():
            check(f"the tool writes {name}", lambda name=name, rest=rest: write(folder, name, *rest))
        for path in sorted(folder.glob("*/model.onnx")):
            check(f"{path.parent.name} is saved as standard ONNX", lambda path=path: saved(path))
        for providers in ("ref", "cpu"):
            done = subprocess.run([ORTC, "test", str(folder), "--provider", providers, "-v"], capture_output=True, text=True, timeout=300)
            lines = {line.split()[1].rstrip(":"): line for line in done.stdout.splitlines() if line.startswith(("pass", "FAIL", "skip"))}
            for path in sorted(p.name for p in folder.iterdir() if (p / "test_data_set_0").is_dir()):
                extra = ", ".join(sorted(contrib(folder / path / "model.onnx")))
                if "-v" in sys.argv:
                    print(f"{path}: {extra}")
                check(f"{path} ({extra}) on {providers}",
                      lambda path=path: "" if lines.get(path, "").startswith("pass") else lines.get(path, "it did not run"))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
