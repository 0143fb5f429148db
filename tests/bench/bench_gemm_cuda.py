#!/usr/bin/env python3
"""Products of matrices and softmax of ortc's provider cuda beside PyTorch's (cuBLAS), f16, on one GPU, in one run.

usage: bench_gemm_cuda.py FOLDER [ROUNDS]       FOLDER holds libortc.so and libortc_cuda.so

How it measures. Both compute the same R independent operations on the same tensors, which PyTorch has filled at random (zeros draw less
power and look faster) and which are wrapped for ortc where they lie. Operands rotate through more memory than the L2 cache holds.
ortc: a model of R nodes, one ortc_run, which replays its captured graph. PyTorch: R calls captured into a CUDA graph. One measurement is
the time of one run or replay up to the end of a synchronisation, by the host's clock, over R; R is such that it takes milliseconds. The
two alternate, after a second of warming up, for ROUNDS rounds (default 15), because clocks move under the power limit: only ratios of
one round's neighbours mean much. Told are medians, the extremes of the ratio, and, for what is limited by memory, bytes. Results
are compared first: a wrong one ends the program.
"""
import ctypes
import math
import pathlib
import statistics
import sys
import time

import torch

F16, DTYPE = 10, torch.float16  # of all tensors; gpu_peers.py has others, too
NO_PASSES = 1  # nodes that are alike stay apart


# ---- A model, as bytes of ONNX's protocol buffers ----


def varint(n: int) -> bytes:
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def value_info(name: str, dims: list[int]) -> bytes:
    shape = b"".join(field(1, field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, F16) + field(2, shape)))


def node(op: str, inputs: list[str], output: str) -> bytes:
    return b"".join(field(1, i) for i in inputs) + field(2, output) + field(3, output) + field(4, op)


def tensor(name: str, t: torch.Tensor) -> bytes:
    return b"".join(field(1, d) for d in t.shape) + field(2, F16) + field(8, name) + field(9, t.cpu().numpy().tobytes())


def model(nodes: list[bytes], inputs: dict[str, list[int]], outputs: dict[str, list[int]], constants: dict[str, torch.Tensor]) -> bytes:
    graph = b"".join(field(1, n) for n in nodes) + field(2, "bench") + b"".join(field(5, tensor(*c)) for c in constants.items())
    graph += b"".join(field(11, value_info(*i)) for i in inputs.items()) + b"".join(field(12, value_info(*o)) for o in outputs.items())
    return field(1, 10) + field(7, graph) + field(8, field(2, 20))


# ---- ortc by its C interface (include/ortc/ortc.h) ----


class Error(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("code", ctypes.c_int32), ("text", ctypes.c_char * 1016)]


class ModelOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("max_bytes", ctypes.c_uint64), ("passes_off", ctypes.c_void_p),
                ("n_passes_off", ctypes.c_size_t)]


class SessionOptions(ctypes.Structure):  # the first fields: the library reads as many as `size` says
    _fields_ = [("size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("providers", ctypes.c_char_p), ("require", ctypes.c_char_p),
                ("threads", ctypes.c_uint32), ("max_contexts", ctypes.c_uint32), ("rest", ctypes.c_uint64 * 11)]


class In(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_void_p)]


class Out(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_void_p), ("memory", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


class RunArgs(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("in_", ctypes.POINTER(In)), ("n_in", ctypes.c_size_t),
                ("out", ctypes.POINTER(Out)), ("n_out", ctypes.c_size_t), ("rest", ctypes.c_uint64 * 9)]


class Ortc:
    def __init__(self, folder: pathlib.Path):
        self.lib = ctypes.CDLL(str(folder / "libortc.so"))
        self.error = Error(ctypes.sizeof(Error), 0, b"")

    def __call__(self, name: str, *args):
        if getattr(self.lib, name)(*args, ctypes.byref(self.error)):
            raise SystemExit(f"{name}: {self.error.text.decode()}")


class OrtcRun:
    """A model whose inputs and outputs are tensors of PyTorch's."""

    def __init__(self, ortc: Ortc, data: bytes, inputs: dict[str, torch.Tensor], outputs: dict[str, torch.Tensor]):
        self.ortc, self.keep = ortc, (data, inputs, outputs)
        loaded, self.session, self.memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint32()
        options = ModelOptions(ctypes.sizeof(ModelOptions), NO_PASSES, 0, None, 0)
        ortc("ortc_model_load_memory", data, ctypes.c_size_t(len(data)), ctypes.byref(options), ctypes.byref(loaded))
        options = SessionOptions(ctypes.sizeof(SessionOptions), 0, b"cuda", b"cuda", 1, 0)
        ortc("ortc_session_create", loaded, ctypes.byref(options), ctypes.byref(self.session))
        ortc.lib.ortc_model_release(loaded)
        ortc("ortc_session_memory", self.session, b"cuda", ctypes.byref(self.memory))
        self.inputs = (In * len(inputs))(*[In(n.encode(), self.wrap(t)) for n, t in inputs.items()])
        self.outputs = (Out * len(outputs))(*[Out(n.encode(), self.wrap(t)) for n, t in outputs.items()])
        self.args = RunArgs(ctypes.sizeof(RunArgs), 0, self.inputs, len(inputs), self.outputs, len(outputs))

    def wrap(self, t: torch.Tensor) -> int:
        value, dims = ctypes.c_void_p(), (ctypes.c_int64 * t.dim())(*t.shape)
        self.ortc("ortc_value_wrap_in", self.memory, ctypes.c_void_p(t.data_ptr()), ctypes.c_int32(F16), ctypes.c_int32(t.dim()), dims, None, None,
                  ctypes.byref(value))
        return value.value

    def __call__(self) -> None:
        self.ortc("ortc_run", self.session, ctypes.byref(self.args))

    def close(self) -> None:
        for v in list(self.inputs) + list(self.outputs):
            self.ortc.lib.ortc_value_release(ctypes.c_void_p(v.value))
        self.ortc.lib.ortc_session_release(self.session)


class TorchRun:
    def __init__(self, operations):
        self.graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                for f in operations:
                    f()
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph, stream=stream):
            for f in operations:
                f()

    def __call__(self) -> None:
        self.graph.replay()
        torch.cuda.synchronize()


# ---- What is measured ----


def normal(*dims: int) -> torch.Tensor:
    return torch.randn(dims, device="cuda", dtype=DTYPE)


def operands(bytes_each: int, repeats: int) -> int:
    """How many different tensors: more than 128 MB of them, at most one for each operation."""
    return max(1, min(repeats, math.ceil((128 << 20) / bytes_each)))


def product(m: int, n: int, k: int, repeats: int, fused: bool):
    count = operands(2 * n * k, repeats)
    a, b = [normal(m, k) for _ in range(count)], [normal(k, n) / math.sqrt(k) for _ in range(count)]
    bias = normal(n)
    results, expected = [torch.empty(m, n, device="cuda", dtype=torch.float16) for _ in range(repeats)], torch.empty(m, n, device="cuda", dtype=torch.float16)
    nodes, y = [], [f"y{i}" for i in range(repeats)]
    for i in range(repeats):
        pair = [f"a{i % count}", f"b{i % count}"]
        nodes += [node("MatMul", pair, f"p{i}"), node("Add", [f"p{i}", "bias"], f"s{i}"), node("Gelu", [f"s{i}"], y[i])] if fused else [
            node("MatMul", pair, y[i])]
    inputs = {f"a{i}": t for i, t in enumerate(a)} | {f"b{i}": t for i, t in enumerate(b)}
    data = model(nodes, {n: list(t.shape) for n, t in inputs.items()}, {n: [m, n_] for n, n_ in zip(y, [n] * repeats)}, {"bias": bias} if fused else {})

    def peer(i: int):
        if fused:
            return lambda: torch.nn.functional.gelu(torch.addmm(bias, a[i], b[i]))
        return lambda: torch.matmul(a[i], b[i], out=expected)

    exact = a[(repeats - 1) % count].double() @ b[(repeats - 1) % count].double()
    if fused:
        exact = torch.nn.functional.gelu(exact + bias.double())
    return data, inputs, dict(zip(y, results)), [peer(i % count) for i in range(repeats)], exact


def softmax(rows: int, columns: int, repeats: int):
    x = [normal(rows, columns) for _ in range(operands(2 * rows * columns, repeats))]
    results = {f"y{i}": torch.empty_like(x[0]) for i in range(repeats)}
    nodes = [node("Softmax", [f"x{i % len(x)}"], f"y{i}") for i in range(repeats)]
    inputs = {f"x{i}": t for i, t in enumerate(x)}
    data = model(nodes, {n: list(t.shape) for n, t in inputs.items()}, {n: [rows, columns] for n in results}, {})
    return data, inputs, results, [lambda t=x[i % len(x)]: torch.softmax(t, -1) for i in range(repeats)], x[(repeats - 1) % len(x)].double().softmax(-1)


def timed(f) -> float:
    begin = time.perf_counter()
    f()
    return time.perf_counter() - begin


def compare(ortc: Ortc, name: str, rounds: int, flops: float, moved: float, case) -> bool:
    data, inputs, outputs, operations, exact = case
    own, peer = OrtcRun(ortc, data, inputs, outputs), TorchRun(operations)
    torch.cuda.synchronize()
    own()
    off = ((list(outputs.values())[-1].double() - exact).abs() / (1 + exact.abs())).max().item()
    ends = time.perf_counter() + 1
    while time.perf_counter() < ends:
        own(), peer()
    times = [(timed(own) / len(operations), timed(peer) / len(operations)) for _ in range(rounds)]
    a, b = statistics.median(t[0] for t in times), statistics.median(t[1] for t in times)
    ratios = [t[1] / t[0] for t in times]
    rate = (lambda t: f"{flops / t / 1e12:7.1f} TFLOP/s") if flops / moved > 100 else (lambda t: f"{moved / t / 1e9:7.0f} GB/s   ")
    print(f"{name:30} {a * 1e6:9.2f} {rate(a)} {b * 1e6:9.2f} {rate(b)}  {statistics.median(ratios):6.3f}  ({min(ratios):.3f} to {max(ratios):.3f})  "
          f"error {off:.1e}{'' if off < 5e-3 else '  WRONG'}", flush=True)
    own.close()
    return off < 5e-3


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        return 77
    ortc, rounds = Ortc(pathlib.Path(sys.argv[1])), int(sys.argv[2]) if len(sys.argv) > 2 else 15
    torch.manual_seed(1)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, f16, medians of {rounds} alternating rounds")
    print(f"{'':30} {'ortc us':>9} {'':>15} {'torch us':>9} {'':>15}   torch / ortc")
    good = True
    shapes = [(4096, 4096, 4096, 8), (1024, 1024, 1024, 128), (512, 3072, 768, 128), (1, 4096, 4096, 128), (8, 4096, 4096, 128)]
    for m, n, k, repeats in shapes:
        good &= compare(ortc, f"{m} x {n} x {k}", rounds, 2.0 * m * n * k, 2.0 * (m * k + k * n + m * n), product(m, n, k, repeats, False))
    m, n, k = 4096, 3072, 768
    good &= compare(ortc, f"{m} x {n} x {k} + bias, gelu", rounds, 2.0 * m * n * k, 2.0 * (m * k + k * n + m * n), product(m, n, k, 32, True))
    good &= compare(ortc, "softmax 8192 x 4096", rounds, 1.0, 4.0 * 8192 * 4096, softmax(8192, 4096, 16))
    print("all results agree" if good else "results are wrong")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
