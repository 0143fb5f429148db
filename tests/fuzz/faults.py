#!/usr/bin/env python3
"""Five networks for faults.c: faults.py FAULTS DIGITS [--all]: convolutions, a transformer with weights beside the file, a loop, a search
with an encoder and a decoder, and what else a model can hold. --all refuses every allocation in turn, not only one of each call site."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "python"), str(HERE.parent / "models")]
from harness import packages  # noqa: E402

np, onnx, _ = packages("numpy", "onnx", "onnxruntime")
import make_bert  # noqa: E402
from growing_loop import growing_loop  # noqa: E402
from test_search import NUMBERS, TOKENS, Case, t5  # noqa: E402

# Strings, sequences, optionals, a function, a branch, integers, recurrence, late extents.
MIXED = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
mixed (float[n, 4] x, string[n] words) => (float[rows, columns] y, string[m] joined, float[s, d, 1, 8] state, int64[r, found] where, float[4] best)
<float[4, 4] w = {0.5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6}, float scale = {0.25}, uint8 zero = {128}>
{
    q = QuantizeLinear (x, scale, zero)
    d = DequantizeLinear (q, scale, zero)
    wq = QuantizeLinear (w, scale, zero)
    wd = DequantizeLinear (wq, scale, zero)
    p = MatMul (d, wd)
    f = own.Twice <by = 2.0> (p)
    axes = Constant <value = int64[1] {1}> ()
    steps = Unsqueeze (f, axes)
    wg = Constant <value_float = 0.125> ()
    shape_w = Constant <value = int64[3] {1, 24, 4}> ()
    shape_r = Constant <value = int64[3] {1, 24, 8}> ()
    gw = Expand (wg, shape_w)
    gr = Expand (wg, shape_r)
    state, last = GRU <hidden_size = 8> (steps, gw, gr)
    sum = ReduceSum <keepdims = 0> (f)
    large = Constant <value_float = 1.0> ()
    c = Greater (sum, large)
    b = If (c) <
        then_branch = t () => (float[i, j] one) {one = Relu (f)},
        else_branch = e () => (float[i, j] two) {two = Neg (f)}
    >
    list = SequenceConstruct (b, f)
    y = ConcatFromSequence <axis = 0> (list)
    joined = StringConcat (words, words)
    where = NonZero (f)
    flat = Constant <value = int64[1] {-1}> ()
    line = Reshape (f, flat)
    four = Constant <value = int64[1] {4}> ()
    best, places = TopK (line, four)
}
<domain: "own", opset_import: ["" : 21]>
Twice <by> (a) => (r) {
    k = Constant <value_float: float = @by> ()
    m = Mul (a, k)
    r = Softmax <axis = -1> (m)
}
"""


def search():
    numbers = {k: np.array([v], np.float32 if "penalty" in k else np.int32) for k, v in NUMBERS.items() if v is not None}
    inputs = {"input_ids": TOKENS["one"]} | {k: numbers.get(k) for k in NUMBERS}
    case = Case("search", "BeamSearch", inputs, constants=list(numbers), eos_token_id=1, pad_token_id=0, **t5())
    return case.model(False, [np.zeros(0, np.int32)])


def main() -> int:
    faults, digits, *more = sys.argv[1:]
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        onnx.save(growing_loop().proto, folder / "loop.onnx")
        onnx.save(search(), folder / "search.onnx")
        onnx.save(onnx.parser.parse_model(MIXED), folder / "mixed.onnx")
        onnx.save(make_bert.model(), folder / "external.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
        return subprocess.run([faults, *more, digits, *(str(folder / f"{n}.onnx") for n in ("loop", "search", "mixed", "external"))], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
