#!/usr/bin/env python3
"""A program written for onnxruntime gives the same on ortc: what PROGRAM prints with either, word for word."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import harness

PROGRAM = r'''
import sys, threading
import numpy as np
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, InvalidProtobuf, NoSuchFile
import importlib.util
import onnx.parser

def model(text):
    return onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> ' + text).SerializeToString()

options = ort.SessionOptions()
options.intra_op_num_threads = 1
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
s = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
print(importlib.util.find_spec("onnxruntime") is not None, "CPUExecutionProvider" in ort.get_available_providers())
for a in s.get_inputs() + s.get_outputs():
    print(a.name, a.type, a.shape)
m = s.get_modelmeta()
print(m.producer_name, m.graph_name, m.domain, m.version, sorted(m.custom_metadata_map.items()))
print(s.get_providers(), s.get_session_options().intra_op_num_threads)
x = np.random.default_rng(0).random((4, 1, 8, 8), np.float32)
y = s.run(None, {"image": x})
print(type(y), y[0].dtype, y[0].shape, np.round(y[0], 4).tolist())
print(s.run(["probabilities"], {s.get_inputs()[0].name: x}, ort.RunOptions())[0].argmax(1).tolist())
for what in (lambda: s.run(None, {"image": x.astype(np.float64)}), lambda: s.run(None, {}), lambda: s.run(None, {"image": x[0]}),
             lambda: s.run(["nope"], {"image": x}), lambda: ort.InferenceSession("none.onnx"), lambda: ort.InferenceSession(b"\xff\xff"),
             lambda: ort.InferenceSession(5)):
    try:
        what()
    except Exception as e:
        print(type(e).__name__)
b = s.io_binding()
b.bind_cpu_input("image", x)
b.bind_output("probabilities")
s.run_with_iobinding(b)
print(np.round(b.copy_outputs_to_cpu()[0], 4).tolist(), b.get_outputs()[0].shape())
v = ort.OrtValue.ortvalue_from_numpy(x)
o = ort.OrtValue.ortvalue_from_shape_and_type([4, 10], np.float32)
b = s.io_binding()
b.bind_ortvalue_input("image", v)
b.bind_output("probabilities", "cpu", 0, np.float32, [4, 10], o.data_ptr())
s.run_with_iobinding(b)
print(np.round(o.numpy(), 4).tolist(), v.data_type(), v.shape(), v.device_name(), v.is_tensor(), v.has_value(), v.element_type())
print([r.numpy().shape for r in s.run_with_ort_values(["probabilities"], {"image": v})])
out = np.empty((4, 10), np.float32)
b.bind_output("probabilities", "cpu", 0, np.float32, (4, 10), out.ctypes.data)
s.run_with_iobinding(b)
print(np.round(out, 4).tolist())
t = ort.InferenceSession(model('g (string[n] x) => (string[n] y) {y = StringConcat(x, x)}'))
print(t.get_inputs()[0].type, t.run(None, {"x": np.array(["ab", "c"])})[0].tolist(), t.run(None, {"x": ["q"]})[0].dtype)
q = ort.InferenceSession(model('g (float[n] a) => (seq(float[k]) s, float[k] c) {s = SequenceConstruct(a, a) c = ConcatFromSequence <axis=0> (s)}'))
r = q.run(None, {"a": np.ones(2, np.float32)})
print(q.get_outputs()[0].type, [e.tolist() for e in r[0]], r[1].tolist())
d = ort.InferenceSession(model('g (float[n] a, float[1] k = {2.0}) => (float[n] y) {y = Mul(a, k)}'))
print([i.name for i in d.get_inputs()], [i.name for i in d.get_overridable_initializers()], d.run(None, {"a": [1.0, 2.0]})[0].tolist())
done = threading.Event()
def told(results, data, error):
    print(results[0].shape, data, repr(error))
    done.set()
options.intra_op_num_threads = 2
two = ort.InferenceSession(sys.argv[1], options)
two.run_async(["probabilities"], {"image": x}, told, "mine")
done.wait()
stop = ort.RunOptions()
stop.terminate = True
try:
    s.run(None, {"image": x}, stop)
except Exception as e:
    print(type(e).__name__)
'''


def main() -> int:
    model = Path(sys.argv[1]).resolve() / "digits.onnx"
    harness.packages("onnxruntime", "onnx")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(PROGRAM)
        said = {}
        for name, how in {"onnxruntime": [], "ortc": ["-m", "ortc.as_onnxruntime"]}.items():
            run = subprocess.run([sys.executable, *how, program, model], capture_output=True, text=True, cwd=folder, timeout=300)
            harness.check(f"the program on {name}", lambda: run.stderr[-3000:] if run.returncode else None)
            said[name] = run.stdout.splitlines()
    a, b = said.values()
    harness.check("as many lines", lambda: None if len(a) == len(b) > 20 else f"{len(a)} {len(b)}")
    for i, (theirs, ours) in enumerate(zip(a, b)):
        harness.check(f"line {i}", lambda: None if theirs == ours else f"\n  onnxruntime {theirs[:300]}\n  ortc        {ours[:300]}")
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
