#!/usr/bin/env python3
"""A peer of ortc's as bench_model.c runs ortc, with the same answers:
peer_runner.py onnxruntime|openvino MODEL THREADS in=FILE [out=FILE] input=NAME:TYPE:1x3... [tie=INPUT:OUTPUT...] [precision=P] [clock=cpu]

Times and memory begin when everything is imported. Inputs lie ready and results go into the same memory in every run (onnxruntime:
IoBinding; a tied output is bound to the memory of its input, as onnxruntime's own generator does). openvino gets a model without symbols,
one stream, and f32 as the precision unless `precision` names another (or "default": its own choice).
"""

from __future__ import annotations

import sys
import time

import numpy as np

if sys.argv[1] == "openvino":
    import openvino as ov
else:
    import onnxruntime as ort

MODEL, THREADS = sys.argv[2], int(sys.argv[3])
WORDS = [w.split("=", 1) for w in sys.argv[4:]]
FILES = {k: v for k, v in WORDS if k in ("in", "out", "precision", "clock")}
TIES = {v.split(":")[1]: v.split(":")[0] for k, v in WORDS if k == "tie"}  # input by output
INPUTS = [v.rsplit(":", 2) for k, v in WORDS if k == "input"]


def memory_of(key: str) -> int:
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(key))


def inputs() -> dict[str, np.ndarray]:
    made = {}
    with open(FILES["in"], "rb") as f:
        for name, dtype, dims in INPUTS:
            shape = [int(d) for d in dims.split("x") if d]
            made[name] = np.fromfile(f, dtype, int(np.prod(shape))).reshape(shape)
    return made


class OnnxRuntime:
    def __init__(self):
        o = ort.SessionOptions()
        o.intra_op_num_threads = THREADS
        o.log_severity_level = 3
        self.session = ort.InferenceSession(MODEL, o, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.values = {name: ort.OrtValue.ortvalue_from_numpy(a) for name, a in inputs().items()}
        for name, v in self.values.items():
            self.binding.bind_ortvalue_input(name, v)
        self.outputs = [o.name for o in self.session.get_outputs()]
        for name in self.outputs:
            if name in TIES:
                self.binding.bind_ortvalue_output(name, self.values[TIES[name]])
            else:
                self.binding.bind_output(name)

    def run(self) -> None:
        self.session.run_with_iobinding(self.binding)

    def results(self) -> list[np.ndarray]:
        """Of the first run; later ones write to the same memory."""
        made = [(name, v) for name, v in zip(self.outputs, self.binding.get_outputs()) if name not in TIES]
        for name, v in made:
            self.binding.bind_ortvalue_output(name, v)
        return [v.numpy() for _, v in made]


class OpenVino:
    def __init__(self):
        core = ov.Core()
        model, given = core.read_model(MODEL), inputs()
        if model.is_dynamic():
            model.reshape({name: list(a.shape) for name, a in given.items()})
        options = {"INFERENCE_NUM_THREADS": THREADS, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
        if FILES.get("precision") != "default":
            options["INFERENCE_PRECISION_HINT"] = FILES.get("precision", "f32")
        self.model = core.compile_model(model, "CPU", options)
        self.request = self.model.create_infer_request()
        for name, a in given.items():
            self.request.set_tensor(name, ov.Tensor(a))
        self.bare = super(ov.InferRequest, self.request)  # without what Python's interface makes of results

    def run(self) -> None:
        self.bare.start_async({}, None)
        self.bare.wait()

    def results(self) -> list[np.ndarray]:
        return [np.array(self.request.get_tensor(o).data) for o in self.model.outputs if not o.get_names() & set(TIES)]


def main() -> None:
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")  # the highest memory so far was imports'
    own, start = memory_of("VmRSS:"), time.perf_counter()
    peer = OpenVino() if sys.argv[1] == "openvino" else OnnxRuntime()
    loaded = time.perf_counter()
    peer.run()
    first = time.perf_counter()
    print(f"{(loaded - start) * 1e3:.3f} {(first - loaded) * 1e3:.3f} {(first - start) * 1e3:.3f}", flush=True)
    results = peer.results()
    if "out" in FILES:
        with open(FILES["out"], "wb") as f:
            for r in results:
                f.write(r.tobytes())
    clock = time.process_time if "clock" in FILES else time.perf_counter
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begin = clock()
            peer.run()
            times.append((clock() - begin) * 1e6)
        print(" ".join(f"{t:.2f}" for t in times) if times else memory_of("VmHWM:") - own, flush=True)


if __name__ == "__main__":
    main()
