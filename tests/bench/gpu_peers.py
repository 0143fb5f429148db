#!/usr/bin/env python3
"""Products, attention, normalisation and a network of ortc's provider cuda beside PyTorch (cuBLAS, cuDNN, torch.compile), on one GPU, in one run.

usage: gpu_peers.py FOLDER [--rounds N] [--only WORD] [--no-network]       FOLDER holds libortc.so and libortc_cuda.so

How it measures: as bench_gemm_cuda.py, whose parts it uses. Both compute the same R operations on the same random tensors, ortc by one run
of a model that replays its captured graph, PyTorch inside a CUDA graph (the network also by torch.compile, mode max-autotune); operands
rotate through more memory than the cache holds; the two alternate after a second of warming up; told are medians of neighbours' ratios.
Results are compared with f64 (products, attention: f32 sums on the same f16 values) first: a wrong one fails the program. Weights are
constants of the model where networks have constants.
"""
import argparse
import copy
import math
import pathlib
import statistics
import struct
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench_gemm_cuda as base
from bench_gemm_cuda import Ortc, OrtcRun, TorchRun, field, model, node, normal, operands, timed

rows: list[tuple[str, float, float, float]] = []
bad: list[str] = []


def attributed(op: str, inputs: list[str], output: str, **attributes: float) -> bytes:
    data = node(op, inputs, output)
    for name, v in attributes.items():
        kind = field(3, v) + field(20, 2) if isinstance(v, int) else base.varint(2 << 3 | 5) + struct.pack("<f", v) + field(20, 1)
        data += field(5, field(1, name) + kind)
    return data


def opset(data: bytes, version: int) -> bytes:
    return data.replace(field(8, field(2, 20)), field(8, field(2, version)))


def compare(ortc: Ortc, name: str, rounds: int, case, least: float, peers=None, limit: float = 5e-3) -> None:
    data, inputs, outputs, operations, exact = case
    own = OrtcRun(ortc, data, inputs, outputs)
    peers = (peers or {}) | {"graph": TorchRun(operations)} # the first is the one that counts
    last = list(outputs.values())[-1]
    last.fill_(float("nan"))
    own()
    own()
    off = ((last.double() - exact.double()).abs() / (1 + exact.double().abs())).max().item()
    ends = time.perf_counter() + 0.7
    while time.perf_counter() < ends:
        own()
        for p in peers.values():
            p()
    n = len(operations)
    times = [[timed(own) / n] + [timed(p) / n for p in peers.values()] for _ in range(rounds)]
    mine = statistics.median(t[0] for t in times)
    text = f"{name:44} {mine * 1e6:9.2f} us"
    for i, label in enumerate(peers, 1):
        theirs, ratio = statistics.median(t[i] for t in times), statistics.median(t[i] / t[0] for t in times)
        text += f"   {label} {theirs * 1e6:9.2f} us, {ratio:5.2f}"
        if i == 1:
            rows.append((name, mine, ratio, least))
    print(f"{text}   wanted {least:.2f}   error {off:.1e}{'' if off < limit else '  WRONG'}", flush=True)
    if not off < limit:
        bad.append(name)
    own.close()


def product(m: int, n: int, k: int, repeats: int, act: str = ""):
    """B is constant, as weights are: constants of the model, copied to the device once. Every product has an input of its own, though
    their memory is shared: products of one input would go together."""
    count = min(operands(2 * n * k, repeats), 16)
    a, b = [normal(m, k) for _ in range(count)], [normal(k, n) / math.sqrt(k) for _ in range(count)]
    bias, y = normal(n), [f"y{i}" for i in range(repeats)]
    results = {name: torch.empty(m, n, device="cuda", dtype=torch.float16) for name in y}
    out = torch.empty(m, n, device="cuda", dtype=torch.float16)
    nodes = []
    for i in range(repeats):
        j = i % count
        nodes += [node("MatMul", [f"a{i}", f"b{j}"], f"p{i}"), node("Add", [f"p{i}", "bias"], f"s{i}"), node(act, [f"s{i}"], y[i])] if act else [
            node("MatMul", [f"a{i}", f"b{j}"], y[i])]
    inputs = {f"a{i}": a[i % count] for i in range(repeats)}
    constants = {f"b{i}": t for i, t in enumerate(b)} | ({"bias": bias} if act else {})
    data = model(nodes, {n_: list(t.shape) for n_, t in inputs.items()}, {n_: [m, n] for n_ in y}, constants)
    j = (repeats - 1) % count
    exact = a[j].double() @ b[j].double()
    if act:
        exact = F.gelu(exact + bias.double())
        return data, inputs, results, [lambda i=i % count: F.gelu(torch.addmm(bias, a[i], b[i])) for i in range(repeats)], exact
    return data, inputs, results, [lambda i=i % count: torch.matmul(a[i], b[i], out=out) for i in range(repeats)], exact


def attention(batch: int, heads: int, length: int, size: int, causal: bool, repeats: int, keys: int = 0):
    keys = keys or length
    count = operands(base.DTYPE.itemsize * batch * heads * keys * size, repeats)
    q = [normal(batch, heads, length, size) for _ in range(count)]
    k, v = ([normal(batch, heads, keys, size) for _ in range(count)] for _ in range(2))
    y = [f"y{i}" for i in range(repeats)]
    results = {n: torch.empty_like(q[0]) for n in y}
    nodes = [attributed("Attention", [f"q{i % count}", f"k{i % count}", f"v{i % count}"], y[i], is_causal=int(causal)) for i in range(repeats)]
    inputs = {f"{n}{i}": t for n, ts in (("q", q), ("k", k), ("v", v)) for i, t in enumerate(ts)}
    data = opset(model(nodes, {n: list(t.shape) for n, t in inputs.items()}, {n: list(q[0].shape) for n in y}, {}), 23)
    j = (repeats - 1) % count

    def peer(i: int):
        return F.scaled_dot_product_attention(q[i], k[i], v[i], is_causal=causal)

    wide = torch.float32 if base.DTYPE == torch.float16 else torch.float64
    exact = torch.cat([F.scaled_dot_product_attention(*(t[j][b : b + 1, h : h + 1].to(wide) for t in (q, k, v)), is_causal=causal)
                       for b in range(batch) for h in range(heads)]).reshape(q[0].shape)
    return data, inputs, results, [lambda i=i % count: peer(i) for i in range(repeats)], exact


def norm(op: str, m: int, n: int, repeats: int):
    x = [normal(m, n) for _ in range(operands(2 * m * n, repeats))]
    weight, bias, y = normal(n), normal(n), [f"y{i}" for i in range(repeats)]
    results = {name: torch.empty_like(x[0]) for name in y}
    arguments = {"LayerNormalization": ["weight", "bias"], "RMSNormalization": ["weight"], "Softmax": []}[op]
    nodes = [node(op, [f"x{i % len(x)}"] + arguments, y[i]) for i in range(repeats)]
    inputs = {f"x{i}": t for i, t in enumerate(x)}
    data = opset(model(nodes, {n_: [m, n] for n_ in inputs}, {n_: [m, n] for n_ in y}, {a: {"weight": weight, "bias": bias}[a] for a in arguments}), 23)
    peer = {"LayerNormalization": lambda t: F.layer_norm(t, (n,), weight, bias), "RMSNormalization": lambda t: F.rms_norm(t, (n,), weight, 1e-5),
            "Softmax": lambda t: torch.softmax(t, -1)}[op]
    xd = x[(repeats - 1) % len(x)].double()
    exact = {"LayerNormalization": lambda: F.layer_norm(xd, (n,), weight.double(), bias.double()),
             "RMSNormalization": lambda: F.rms_norm(xd, (n,), weight.double(), 1e-5), "Softmax": lambda: torch.softmax(xd, -1)}[op]()
    return data, inputs, results, [lambda t=x[i % len(x)]: peer(t) for i in range(repeats)], exact


class Layer(torch.nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width) for _ in range(4))
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.first, self.second, self.heads = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width), heads

    def forward(self, x):
        b, s, w = x.shape
        q, k, v = (f(x).view(b, s, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = self.first(x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, s, w)))
        return self.second(x + self.down(F.gelu(self.up(x))))


def encoder(batch: int, length: int, layers: int = 12, width: int = 768, heads: int = 12):
    """BERT-base's encoder in the operators that raising arrives at: MatMul, Add, Attention, LayerNormalization, Gelu."""
    torch.manual_seed(3)
    net = torch.nn.Sequential(*[Layer(width, heads) for _ in range(layers)]).cuda().half().eval()
    x, y = normal(batch, length, width), torch.empty(batch, length, width, device="cuda", dtype=torch.float16)
    nodes, constants, at = [], {}, "x"

    def linear(source: str, f, name: str, residual: str = "") -> str:
        constants[f"{name}.w"], constants[f"{name}.b"] = f.weight.detach().t().contiguous(), f.bias.detach()
        nodes.extend([node("MatMul", [source, f"{name}.w"], f"{name}.p"), node("Add", [f"{name}.p", f"{name}.b"], f"{name}.s")])
        if residual:
            nodes.append(node("Add", [f"{name}.s", residual], f"{name}.r"))
        return f"{name}.r" if residual else f"{name}.s"

    def normalised(source: str, f, name: str) -> str:
        constants[f"{name}.w"], constants[f"{name}.b"] = f.weight.detach(), f.bias.detach()
        nodes.append(attributed("LayerNormalization", [source, f"{name}.w", f"{name}.b"], name, epsilon=1e-5))
        return name

    for i, layer in enumerate(net):
        q, k, v = (linear(at, f, f"{i}.{n}") for n, f in (("q", layer.q), ("k", layer.k), ("v", layer.v)))
        nodes.append(attributed("Attention", [q, k, v], f"{i}.a", q_num_heads=heads, kv_num_heads=heads))
        first = normalised(linear(f"{i}.a", layer.o, f"{i}.o", at), layer.first, f"{i}.n1")
        up = linear(first, layer.up, f"{i}.up")
        nodes.append(node("Gelu", [up], f"{i}.g"))
        at = normalised(linear(f"{i}.g", layer.down, f"{i}.down", first), layer.second, f"{i}.n2" if i + 1 < layers else "y")
    data = opset(model(nodes, {"x": list(x.shape)}, {"y": list(y.shape)}, constants), 23)
    with torch.no_grad():
        compiled = torch.compile(net, mode="max-autotune")
        for _ in range(3):
            compiled(x)
        torch.cuda.synchronize()

        def run_compiled() -> None:
            with torch.no_grad():
                compiled(x)
            torch.cuda.synchronize()

        exact = copy.deepcopy(net).float()(x.float())

    def plain():
        with torch.no_grad():
            net(x)
    return (data, {"x": x}, {"y": y}, [plain], exact), {"compiled": run_compiled}


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--rounds", type=int, default=15)
    words.add_argument("--only", default="")
    words.add_argument("--no-network", action="store_true")
    a = words.parse_args()
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        return 77
    base.NO_PASSES = 1
    ortc = Ortc(a.folder)
    torch.manual_seed(1)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, f16, medians of {a.rounds} alternating rounds; the ratio is the peer's time over ortc's")

    def wants(name: str) -> bool:
        return a.only in name

    shapes = [(4096, 4096, 4096, 8, 0.9), (8192, 8192, 8192, 2, 0.9), (2048, 2048, 2048, 32, 0.9), (2048, 4096, 11008, 8, 0.9), (2048, 11008, 4096, 8, 0.9),
              (512, 768, 768, 128, 1.0), (512, 3072, 768, 128, 1.0), (1024, 1024, 1024, 128, 1.0), (4096, 768, 768, 64, 0.9), (4096, 768, 3072, 32, 0.9),
              (128, 768, 768, 128, 1.0), (128, 3072, 768, 128, 1.0), (128, 768, 3072, 128, 1.0),
              (1, 4096, 4096, 64, 1.25), (2, 4096, 4096, 64, 1.25), (8, 4096, 4096, 64, 1.25), (16, 4096, 4096, 64, 1.25), (32, 4096, 4096, 64, 1.25), (64, 4096, 4096, 64, 1.25)]
    for m, n, k, repeats, least in shapes:
        if wants("product"):
            compare(ortc, f"product {m} x {n} x {k}", a.rounds, product(m, n, k, repeats), least)
    for m, n, k, repeats in [(4096, 3072, 768, 32), (128, 3072, 768, 64), (2048, 11008, 4096, 4)]:
        if wants("product"):
            compare(ortc, f"product {m} x {n} x {k}, bias, gelu", a.rounds, product(m, n, k, repeats, "Gelu"), 0.9)
    halves = [(1, 12, 128, 64, False, 64), (32, 12, 128, 64, False, 32), (4, 32, 2048, 64, False, 4), (2, 16, 4096, 128, False, 4),
              (2, 16, 4096, 128, True, 4), (1, 16, 16384, 128, True, 2)]
    singles = [(1, 12, 128, 64, False, 32), (32, 12, 128, 64, False, 8), (8, 12, 512, 64, False, 8), (4, 16, 2048, 64, False, 2),
               (2, 16, 4096, 128, False, 1), (2, 16, 4096, 128, True, 1)]
    for kind, base.F16, base.DTYPE, cases, least, limit in [("f16", 10, torch.float16, halves, 0.75, 1e-2), ("f32", 1, torch.float32, singles, 1.0, 2e-6)]:
        for batch, heads, length, size, causal, repeats in cases:
            if wants(f"attention {kind}"):
                compare(ortc, f"attention {kind} {batch} x {heads} x {length} x {size}{' causal' if causal else ''}", a.rounds,
                        attention(batch, heads, length, size, causal, repeats), least, limit=limit)
    base.F16, base.DTYPE = 10, torch.float16
    for batch, keys in [(1, 2048), (16, 2048)]:
        if wants("decode"):
            compare(ortc, f"decode {batch} x 32 x 1 x 128, {keys} keys", a.rounds, attention(batch, 32, 1, 128, False, 16, keys), 1.2)
    for op, m, n, repeats, least in [("LayerNormalization", 128, 768, 64, 1.2), ("RMSNormalization", 128, 768, 64, 1.2), ("Softmax", 128, 768, 64, 1.2),
                                     ("LayerNormalization", 8192, 4096, 8, 1.0), ("Softmax", 8192, 4096, 8, 1.0)]:
        if wants(op.lower()):
            compare(ortc, f"{op} {m} x {n}", a.rounds, norm(op, m, n, repeats), least)
    base.NO_PASSES = 0
    if not a.no_network and wants("encoder"):
        for batch, least in [(1, 1 / 1.08), (32, 1 / 1.05)]:
            case, peers = encoder(batch, 128)
            compare(ortc, f"encoder of BERT-base, {batch} x 128", a.rounds, case, least, peers, limit=3e-2)
    met = sum(ratio >= least for _, _, ratio, least in rows)
    print(f"{met} of {len(rows)} ratios as wanted; {'all results agree' if not bad else 'WRONG: ' + ', '.join(bad)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
