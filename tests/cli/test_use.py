#!/usr/bin/env python3
"""ortc's commands, options, messages and exit codes, on the digits model: test_use.py ORTC."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time

import command
from command import MODELS, ORTC, check, expect, finish, folder, ortc, put, refused
from files import f32, field, identity, model, node, tensor, tensor_f32, value_info

DIGITS = MODELS / "digits.onnx"
SEVEN = MODELS / "digits" / "7.png"


def general() -> None:
    expect("version", "--version", test=lambda r: None if re.fullmatch(r"ortc \d+\.\d+\.\d+\n", r.out) else "form")
    expect("help", "help", out="usage: ortc COMMAND")
    expect("--help", "--help", out="exit codes:")
    expect("help help", "help", "help", out="usage: ortc COMMAND")
    for command in ("run", "bench", "profile", "compare", "info", "optimize", "test", "providers", "ops", "view",
                    "convert", "completion", "man"):
        expect(f"{command} --help", command, "--help", out=f"usage: ortc {command}")
        expect(f"help {command}", "help", command, out=f"usage: ortc {command}")
        expect(f"{command} -h", command, "-h", out="--json")
        check(f"{command}: lines fit 120 columns", lambda: max(ortc("help", command).out.splitlines(), key=len)[120:])
    refused("no command", err="expects a command: run, bench, profile, compare, info, optimize, test, providers, ops, view, convert, completion, man or help")
    refused("a wrong command", "rnu", err="there is no command 'rnu'; did you mean 'ortc run'?")
    refused("a strange command", "frobnicate", err="expected run, bench, profile, compare, info, optimize, test, providers, ops, view, convert, completion, man or help")
    refused("help for none", "help", "tset", err="did you mean 'ortc test'?")
    refused("an option first", "--json", "run", err="expects a command before options, got '--json'")


def options() -> None:
    run = ("run", DIGITS)
    refused("no model", "run", err="expects one model; usage: ortc run MODEL")
    refused("two models", "run", "a", "b", err="expects one model, got 'b' besides 'a'")
    refused("an argument too many", "providers", "x", err="expects no argument, got 'x'")
    refused("an unknown option", *run, "--inptu", "rand", err="there is no option '--inptu'; did you mean --input?")
    refused("a very unknown option", *run, "--zzzzzz", err="there is no option '--zzzzzz'; 'ortc run --help' lists them")
    refused("the start of an option", *run, "--lab", "x", err="did you mean --labels?")
    refused("a lost dash", *run, "-topk", "3", err="did you mean --topk?")
    refused("an unknown letter", *run, "-z", err="there is no option '-z'")
    refused("no value", *run, "--topk", err="--topk expects K, but nothing follows it")
    refused("an option as value", *run, "--out", "--json", err="--out expects FILE, got the option '--json'")
    refused("a value for a flag", *run, "--json=1", err="--json takes no value, got '1'")
    refused("not a number", *run, "--topk", "abc", err="--topk expects an integer from 1 to 1000000, got 'abc'")
    refused("half a number", *run, "--topk", "3x", err="got '3x'")
    refused("a blank number", *run, "--topk", "", err="got ''")
    refused("too small", *run, "--topk=0", err="got '0'")
    refused("too large", *run, "--threads", "99999999999999999999", err="--threads expects an integer from 0 to 4096")
    refused("no such choice", *run, "--resize", "cubic", err="--resize expects none or bilinear, got 'cubic'")
    refused("no such colour", *run, "--color", "blue", err="--color expects auto, always or never, got 'blue'")
    refused("a bad --set", *run, "--set", "batch", err="--set expects DIM=N with N of at least 0, as in batch=8, got 'batch'")
    refused("a --shape of no input", *run, "--input", "rand", "--shape", "imag=1x1x8x8",
            err="--shape: the model has no input 'imag'; did you mean 'image'?")  # fmt: skip
    expect("an opset of the future", "info", put("future.onnx", model([node("Relu", ["x"], ["y"])], [value_info("x", "f32", (1,))],
           [value_info("y", "f32", (1,))], opset=99)), err="the model's opset is 99, the newest that this ortc knows is")  # fmt: skip
    expect("nothing comes out", "run", put("mute.onnx", model([node("Relu", ["x"], ["y"])], [value_info("x", "f32", (1,))], [])), "--input", "rand",
           err="the model has no outputs: its runs give nothing")
    nameless = model([node("Relu", ["x"], ["y"])], [value_info("x", "f32", ("?", "?"))], [value_info("y", "f32", ("?", "?"))])
    expect("extents called ? are not the same", "run", put("nameless.onnx", nameless), "--input", "rand", "--shape", "x=2x3",
           out="f32[2,3]")  # fmt: skip
    refused("a negative --set", *run, "--set", "N=-1", err="got 'N=-1'")
    refused("a bad --shape", *run, "--shape", "1x2", err="--shape expects NAME=1x3x8x8, got '1x2'")
    for tie in ("h", "=y", "x=", "x=y:-2", "x=y:1:-1"):
        refused(f"a bad --tie {tie}", *run, "--tie", tie, err=f"--tie expects INPUT=OUTPUT, INPUT=OUTPUT:AXIS or INPUT=OUTPUT:AXIS:CAPACITY, got '{tie}'")
    refused("a bad dim in --shape", *run, "-i", "rand", "--shape", "image=1xtwo", err="--shape expects NAME=1x3x8x8")
    refused("a bad --scale", *run, "--scale", "1/0", err="--scale expects a number such as 1/255, got '1/0'")
    refused("a bad --mean", *run, "--mean", "1,,2", err="--mean expects")
    refused("a zero --std", *run, "--std", "0.2,0", err="--std expects values other than 0, got '0.2,0'")
    refused("a bad --out", *run, "--out", "x.txt", err="--out expects a file that ends in .npz, .npy or .pb, got 'x.txt'")
    refused("no labels", *run, "--labels", "none.txt", "-i", "rand", err="--labels: cannot open 'none.txt'")
    expect("the last scalar counts", *run, "-i", SEVEN, "-k", "9", "-k2", test=lambda r: None if r.out.count("%") == 2 else "k")
    expect("letters together", *run, "-i", SEVEN, "-qk1", test=lambda r: None if r.out.count("\n") == 1 else "-q")
    expect("= and a value", *run, f"--input={SEVEN}", "--topk=1", out="7  ")
    expect("-- ends options", "run", "-i", SEVEN, "--", DIGITS)


def environment() -> None:
    refused_with = lambda name, err, **env: expect(name, "providers", code=2, err=err, **env)  # noqa: E731
    refused_with("a wrong ORTC_CPU", "ORTC_CPU expects one of: scalar avx2 avx512 amx-fma amx neon", ORTC_CPU="sse9")
    refused_with("a wrong ORTC_LOG", "ORTC_LOG expects one of: error warning info debug", ORTC_LOG="loud")
    refused_with("a wrong ORTC_THREADS", "ORTC_THREADS expects a number of at least 1, got 'abc'", ORTC_THREADS="abc")
    for level in ("scalar", "avx2", "avx512", "amx-fma", "amx", "neon"):
        expect(f"ORTC_CPU={level}", "providers", out="cpu", ORTC_CPU=level)


def foreign() -> None:
    """Files that are no ONNX models are named for what they are, with the way out."""
    for what, data in {
        "a Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n",
        "a web page": b"\n<!DOCTYPE html><html></html>",
        "compressed by gzip": b"\x1f\x8b\x08\x00" + bytes(20),
        "a GGUF model": b"GGUF\x03\x00\x00\x00" + bytes(20),
        "a TensorFlow Lite model": b"\x1c\x00\x00\x00TFL3" + bytes(20),
        "an HDF5 file": b"\x89HDF\r\n\x1a\n" + bytes(20),
        "a PyTorch file": b"PK\x03\x04" + bytes(26) + b"archive/data.pkl",
        "a NumPy archive": b"PK\x03\x04" + bytes(26) + b"x.npy",
        "a zip archive": b"PK\x03\x04" + bytes(40),
        "a Python pickle": b"\x80\x02}q\x00.",
        "a safetensors file": (8).to_bytes(8, "little") + b'{"a": 1}' + bytes(8),
        "a model in onnxruntime's own format": b"\x20\x00\x00\x00ORTM" + bytes(20),
        "a model of OpenVINO": b'<?xml version="1.0"?>\n<net name="x">',
        "JSON text": b'{"a": 1}',
    }.items():
        refused(what, "info", put("foreign.onnx", data), err=f"not an ONNX model but {what}", code=3)


def exit_codes() -> None:
    refused("no model file", "run", "none.onnx", "-i", "rand", code=3, err="none.onnx")
    refused("a folder for a model", "info", folder, code=3, err=str(folder))
    refused("an empty model", "info", put("empty.onnx", b""), code=3, err="empty.onnx")
    refused("not a model", "info", put("text.onnx", "hello, this is not a model"), code=3, err="text.onnx")
    refused("half a model", "info", put("half.onnx", DIGITS.read_bytes()[:3000]), code=3, err="half.onnx")
    foo = model([node("Foo", ["x"], ["h"]), node("Bar", ["h"], ["y"])], [value_info("x", "f32", ("n",))],
                [value_info("y", "f32", ("n",))])  # fmt: skip
    refused("unknown operators", "run", put("foo.onnx", foo), "-i", "rand", code=4, err="Foo")
    expect("info shows it all the same", "info", folder / "foo.onnx", code=4, out="  Bar (1 node)\n",
           test=lambda r: None if "f32[n]" in r.out and "operators: 2 nodes" in r.out else "the rest")  # fmt: skip
    expect("info --json lists what is missing", "info", folder / "foo.onnx", "--json", code=4,
           test=lambda r: None if r.json()["missing"] == ["Foo (1 node)", "Bar (1 node)"] else "list")  # fmt: skip
    refused("but not how it would run", "info", folder / "foo.onnx", "--placement", code=4, err="Bar")
    expect("ops --missing", "ops", "--missing", folder / "foo.onnx", code=4, out="Foo (1 node)\nBar (1 node)\n")
    expect("ops --missing: nothing", "ops", "--missing", DIGITS, out="nothing is missing: ")
    refused("ops --missing of no model", "ops", "--missing", "none.onnx", code=3, err="none.onnx")
    refused("no such provider", "run", DIGITS, "-i", SEVEN, "--provider", "tpu", code=5, err="tpu")
    refused("--require is not met", "run", DIGITS, "-i", SEVEN, "--provider", "ref", "--require", "cpu", code=5, err="cpu")
    expect("--require is met", "run", DIGITS, "-i", SEVEN, "--provider", "ref", "--require", "ref")
    refused("no such plugin", "run", DIGITS, "-i", SEVEN, "--plugin", "./none.so", code=5, err="plugin './none.so'")
    refused("a text as plugin", "providers", "--plugin", put("text.so", "hello"), code=5, err="text.so")
    refused("nowhere to write", "run", DIGITS, "-i", SEVEN, "-q", "--out", "no/such/folder/x.npz", code=6, err="--out: cannot write")
    refused("said before the run", "run", DIGITS, "-i", "none.npy", "--out", "no/such/folder/x.npz", code=6, err="--out: cannot write")
    refused("a folder to write", "run", DIGITS, "-i", SEVEN, "--profile", folder, code=6, err="Is a directory")
    refused("a deadline", "run", DIGITS, "-i", "zeros", "--shape", "image=20000x1x8x8", "--provider", "ref", "--threads", "1",
            "--deadline", "1", code=8, err="deadline")  # fmt: skip

    refused("more than the memory", "run", DIGITS, "-i", "zeros", "--set", "N=100000000000", code=7, err="image")

    def full() -> str | None:
        with open("/dev/full", "w") as f:
            r = subprocess.run([ORTC, "info", DIGITS], stdout=f, stderr=subprocess.PIPE, text=True)
        return None if r.returncode == 6 and "could not be written" in r.stderr else f"{r.returncode} {r.stderr}"

    check("a full disk on stdout", full)

    def interrupt() -> str | None:
        p = subprocess.Popen([ORTC, "run", DIGITS, "-i", SEVEN, "--repeat", "100000000", "--json"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)  # fmt: skip
        time.sleep(1)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=60)
        return None if p.returncode == 130 and "interrupted after" in err and not out else f"{p.returncode} {out} {err}"

    check("interrupted", interrupt)


def every_exit_code() -> None:
    """What the help lists is what this program has seen, and the other way round."""
    told = {int(n) for n in re.findall(r"(?:^|[:;])\s*(\d+) ", ortc("help").out.split("exit codes", 1)[1].split("environment")[0])}
    seen = command.codes | {130}  # "interrupted" starts its own process
    check("every exit code of the help", lambda: None if told == seen else f"the help has {sorted(told)}, seen were {sorted(seen)}")


def digits() -> None:
    labels = MODELS / "digits" / "labels.txt"
    names = labels.read_text().split()
    for digit in range(10):
        picture = MODELS / "digits" / f"{digit}.png"
        for provider in ("cpu", "ref"):
            expect(f"{digit}.png on {provider}", "run", DIGITS, "--input", picture, "--topk", "3", "--provider", provider,
                   test=lambda r: None if r.out.splitlines()[1].split()[0] == str(digit) else "another digit")  # fmt: skip
        expect(f"{digit}.png with labels", "run", DIGITS, "--input", picture, "--labels", labels, "-q",
               test=lambda r: None if r.out.splitlines()[0].endswith(names[digit]) else "another label")  # fmt: skip

    def batch(r) -> str | None:
        rows = r.json()["outputs"][0]["topk"]
        best = [row["best"][0]["class"] for row in rows]
        sources = [row["source"] for row in rows]
        return None if best == [7, 3, 0] and sources[1].endswith("3.png") else f"{best} {sources}"

    pictures = [x for d in (7, 3, 0) for x in ("-i", MODELS / "digits" / f"{d}.png")]
    expect("pictures as a batch", "run", DIGITS, *pictures, "--topk", "1", "--json", test=batch)
    expect("a batch as text", "run", DIGITS, *pictures, "--topk", "1", out="3.png\n")
    refused("a picture and something else", "run", DIGITS, "-i", SEVEN, "-i", "image=rand", err="is given twice")

    def shape(r) -> str | None:
        j = r.json()
        good = j["schema"] == 1 and j["command"] == "run" and j["outputs"][0]["shape"] == [1, 10] and j["time_ms"]["runs"] == 4
        return None if good and j["outputs"][0]["nan"] == 0 and j["inputs"][0]["source"] == str(SEVEN) else "JSON"

    expect("run --json", "run", DIGITS, "-i", SEVEN, "-n", "4", "--json", test=shape)
    expect("run, as text", "run", DIGITS, "-i", SEVEN, out="probabilities  f32[1,10]  min ")
    expect("run --repeat", "run", DIGITS, "-i", SEVEN, "--repeat", "3", out="(2 runs after the first)")
    put("sum.onnx", model([node("Add", ["h", "x"], ["next"])], [value_info(n, "f32", ("n",)) for n in "xh"], [value_info("next", "f32", ("n",))]))
    expect("run --tie", "run", "sum.onnx", "-i", "ones", "--set", "n=3", "--tie", "h=next", "--repeat", "5", out="[5 5 5]")
    expect("run --tie, and a start", "run", "sum.onnx", "-i", "x=ones", "-i", "h=ones", "--set", "n=2", "--tie", "h=next", out="[2 2]")
    refused("run --tie of no input", "run", "sum.onnx", "-i", "ones", "--set", "n=3", "--tie", "g=next", err="the model has no input 'g'")
    put("chain.onnx", model([node("Add", ["x", "x"], ["sum"]), node("Identity", ["sum"], ["same"]), node("Mul", ["same", "x"], ["y"])],
                            [value_info("x", "f32", (2,))], [value_info("y", "f32", (2,))]))  # fmt: skip
    expect("run --keep", "run", "chain.onnx", "-i", "ones", "--keep", "same", "--keep", "sum", "--keep", "y", out="same  f32[2]",
           test=lambda r: None if r.out.count("f32[2]") == 3 else "three values")  # fmt: skip
    refused("run --keep of nothing", "run", "chain.onnx", "-i", "ones", "--keep", "no", code=5, err="the model has no value 'no'")

    def traced(r) -> str | None:
        events = json.loads((folder / "trace.json").read_text())["traceEvents"]
        steps = [e for e in events if e["cat"] == "step"]
        plans = [e for e in events if e["cat"] == "plan"]
        good = len(plans) == 1 and len(steps) % 3 == 0 and all(e["ph"] == "X" and e["dur"] >= 0 and e["ts"] >= 0 for e in events)
        conv = [e["args"] for e in steps if e["args"]["op"] == "Conv"]
        return None if good and len(conv) == 9 and all(a["flops"] > 0 and a["provider"] == "cpu" for a in conv) else f"{events}"

    expect("run --profile", "run", DIGITS, "-i", SEVEN, "-n", "3", "--profile", "trace.json", test=traced)
    refused("run --profile into nothing", "run", DIGITS, "-i", SEVEN, "--profile", "none/trace.json", code=6, err="--profile: ")
    expect("run -v", "run", DIGITS, "-i", SEVEN, "-v", out="first run")
    expect("run -q is silent", "run", DIGITS, "-i", SEVEN, "-q", test=lambda r: "output" if r.out else None)
    expect("a note about free dims", "run", DIGITS, "-i", "rand", err="free dimensions are 1: N")
    expect("no note with -q", "run", DIGITS, "-i", "rand", "-q")
    expect("no note with --set", "run", DIGITS, "-i", "rand", "--set", "N=3", out="f32[3,10]")
    expect("--shape", "run", DIGITS, "-i", "rand", "--shape", "image=2x1x8x8", out="f32[2,10]")
    refused("--shape that does not fit", "run", DIGITS, "-i", "rand", "--shape", "image=2x1x8x9", err="f32[N,1,8,8]")
    refused("--set of no symbol", "run", DIGITS, "-i", SEVEN, "--set", "M=3", err="no symbolic dimension 'M'; it has N")
    refused("--set that the file contradicts", "run", DIGITS, "-i", SEVEN, "--set", "N=2", err="takes 2 pictures at once, 1 came")
    refused("--set that an array contradicts", "run", DIGITS, "-i", put("one.npy", f32(*[0.0] * 64, shape=(1, 1, 8, 8))), "--set", "N=2",
            err="input 'image' has N = 1 in 'one.npy', --set says 2".replace("one.npy", str(folder / "one.npy")))  # fmt: skip
    expect("an array for a symbolic batch", "run", DIGITS, "-i", put("three.npy", f32(*[0.0] * 192, shape=(3, 1, 8, 8))), out="f32[3,10]")
    refused("an array of another shape", "run", DIGITS, "-i", put("flat.npy", f32(*[0.0] * 64)), err="input 'image' is f32[N,1,8,8]")
    refused("no input", "run", DIGITS, err="input 'image' (f32[N,1,8,8]) has no value: pass --input image=FILE")
    refused("an unknown input", "run", DIGITS, "-i", "imgae=rand", err="no input 'imgae'; it has 'image' (f32[N,1,8,8]); did you mean")
    refused("no such file", "run", DIGITS, "-i", "image=none.npy", err="none.npy")
    refused("no such word", "run", DIGITS, "-i", "random", err="no file 'random', and it is not rand, zeros or ones")
    refused("a bad rand", "run", DIGITS, "-i", "rand:gamma", err="rand:uniform(a,b)")
    same = [ortc("run", DIGITS, "-q", "-i", "rand", "--seed", s, "--json").json()["outputs"][0]["first"] for s in (1, 1, 2)]
    check("--seed", lambda: None if same[0] == same[1] != same[2] else f"{same}")
    run = ("run", "any.onnx", "-i", "nan.npy")
    put("any.onnx", identity("f32", ("n",)))
    put("nan.npy", f32(1, float("nan"), float("-inf"), 3))
    expect("NaN is reported", *run, out="min 1  max 3  mean 2  1 nan, 1 inf of 4  [1 nan -inf 3]")
    expect("NaN in JSON", *run, "--json", test=lambda r: None if r.json()["outputs"][0]["first"] == [1, "NaN", "-Infinity", 3] else "first")
    expect("no colour without a terminal", "info", DIGITS, test=lambda r: "escape" if "\x1b" in r.out else None)
    expect("NO_COLOR", "run", DIGITS, "-i", SEVEN, NO_COLOR="1", TERM="xterm", out="probabilities")
    expect("--color always", "run", DIGITS, "-i", SEVEN, "--color", "always", out="\x1b[1mprobabilities")


def products(n: int, edge: int) -> bytes:
    """x + c ** (n + 1), whose products of constants loading may compute."""
    c = tensor("f32", (edge, edge), bytes(4 * edge * edge), "c")
    nodes = [node("MatMul", [f"c{i}" if i else "c", "c"], [f"c{i + 1}"], name=f"product{i}") for i in range(n)]
    ends = [value_info(name, "f32", (edge, edge)) for name in "xy"]
    return model([*nodes, node("Add", ["x", f"c{n}"], ["y"])], ends[:1], ends[1:], [c])


def info() -> None:
    expect("info", "info", DIGITS, out="image  f32[N,1,8,8]")
    expect("info: operators", "info", DIGITS, out="3  Conv\n")
    expect("info: parameters", "info", DIGITS, out="40,731")

    def described(r) -> str | None:
        j = r.json()
        good = j["operators"]["Conv"] == 3 and j["opsets"] == {"ai.onnx": 18} and j["parameters"] == 40731
        return None if good and j["inputs"][0] == {"name": "image", "type": "f32", "shape": ["N", 1, 8, 8], "optional": False,
                                                   **({"doc": j["inputs"][0]["doc"]} if "doc" in j["inputs"][0] else {})} else "JSON"

    expect("info --json", "info", DIGITS, "--json", test=described)
    expect("info --placement", "info", DIGITS, "--placement", out="cpu")
    expect("info --placement, all on ref", "info", DIGITS, "--placement", "--provider", "ref", "--json",
           test=lambda r: None if {p["provider"] for p in r.json()["placement"]} == {"ref"} else "provider")  # fmt: skip
    expect("info --passes", "info", DIGITS, "--passes", out="normalise")
    expect("info --passes --json", "info", DIGITS, "--passes", "--json", test=lambda r: None if r.json()["normalising_passes"] else "none")
    expect("info --steps", "info", DIGITS, "--steps", err="free dimensions are 1", out="arena")
    small, large = (ortc("info", DIGITS, "--steps", "--set", f"N={n}", "--json").json()["plan"]["arena_bytes"] for n in (1, 64))
    check("info --steps --set", lambda: None if large > small > 0 else f"{small} {large}")
    expect("info --steps, what is chosen", "info", DIGITS, "--steps", "--choose", "conv3=conv.columns", "--json", err="free dimensions are 1",
           test=lambda r: None if {s["node"]: s["kernel"] for s in r.json()["steps"]}["conv3"] == "conv.columns" else "kernel")  # fmt: skip
    expect("info --steps, chosen and not there", "info", DIGITS, "--steps", "--choose", "conv3=conv.fast", code=6, err="conv.fast")
    expect("info --precision", "info", DIGITS, "--placement", "--precision", "bf16", out="fc1")
    expect("info --precision, not known", "info", DIGITS, "--placement", "--precision", "f8", code=2, err="not 'f8'")
    expect("info --no-fusion", "info", DIGITS, "--placement", "--no-fusion", "--json",
           test=lambda r: "fused" if any("Relu" in p["fused"] for p in r.json()["placement"]) else None)  # fmt: skip
    few, many = (put(f"products{n}.onnx", products(n, edge)) for n, edge in ((2, 64), (40, 256)))
    unfolded = lambda n: lambda r: None if r.json()["unfolded"] == n else str(r.json()["unfolded"])  # noqa: E731
    expect("products of constants", "info", few, "--json", test=unfolded(0))
    expect("--fold", "info", few, "--fold", "1", "--json", test=unfolded(1))
    expect("--fold, said", "info", few, "--fold", "1", out="not folded  1")
    expect("--fold of a run", "run", few, "-i", "zeros", "--fold", "1", out="f32[64,64]")
    refused("--start-deadline", "run", many, "-i", "zeros", "--start-deadline", "1", code=8, err="deadline")
    refused("optimize --start-deadline", "optimize", many, "-o", "optimized.onnx", "--start-deadline", "1", code=8, err="deadline")
    expect("providers", "providers", test=lambda r: None if "cpu" in r.out and "ref" in r.out else "list")
    expect("providers --json", "providers", "--json",
           test=lambda r: None if {"cpu", "ref"} <= {p["provider"] for p in r.json()["providers"]} else "list")  # fmt: skip
    nasty = put("nasty.onnx", identity("f32", (2,), x="a\x1b[31mb\nc"))
    expect("names cannot drive the terminal", "info", nasty, test=lambda r: None if "\x1b" not in r.out else "escape")
    expect("names in JSON", "info", nasty, "--json", test=lambda r: None if r.json()["inputs"][0]["name"] == "a\x1b[31mb\nc" else "name")


def optimize() -> None:
    """What is written is the business of tests/python/test_optimize.py; here: files, messages and codes."""

    def files(*names: str) -> str | None:
        found = sorted(p.name for p in (folder / "optimized").iterdir())
        return None if found == sorted(names) else f"files: {found}"

    (folder / "optimized").mkdir()
    small, weights = "optimized/small.onnx", "optimized/w.bin"
    refused("optimize: no model", "optimize", err="expects one model; usage: ortc optimize MODEL -o OUT.onnx")
    refused("optimize: no -o", "optimize", DIGITS, err="expects -o OUT.onnx")
    refused("optimize: itself", "optimize", DIGITS, "-o", DIGITS, err="is the model itself; --force writes over it")
    refused("optimize: no folder", "optimize", DIGITS, "-o", "none/x.onnx", code=6, err="cannot write 'none/x.onnx'")
    refused("optimize: a folder", "optimize", DIGITS, "-o", "optimized", err="-o expects the name of a file, 'optimized' is none")
    refused("optimize: a device", "optimize", DIGITS, "-o", "/dev/null", err="'/dev/null' is none")
    refused("optimize: no pass", "optimize", DIGITS, "-o", small, "--no-pass", "x", code=3, err="there is no normalising pass 'x'")
    refused("optimize: not a model", "optimize", put("bad.onnx", b"no model"), "-o", small, code=3, err="bad.onnx")
    check("optimize: nothing is written then", files)
    expect("optimize", "optimize", DIGITS, "-o", small, "-q", out="checked: same outputs on random inputs, on ref")
    expect("optimize: fewer nodes", "info", small, out="operators: 14 nodes")
    expect("optimize --external", "optimize", DIGITS, "-o", small, "--external", "w.bin", "-q", out=f"in {weights}")
    refused("optimize: the weights are there", "optimize", DIGITS, "-o", small, "--external", "w.bin", err="is there already")
    check("optimize: both files", lambda: files("small.onnx", "w.bin"))
    expect("optimize --json", "optimize", DIGITS, "-o", small, "--json", "--set", "N=3",
           test=lambda r: None if r.json()["nodes_after"] == 14 and r.json()["checked"] else r.out)  # fmt: skip
    expect("optimize --force", "optimize", small, "-o", small, "--force", "--no-check", out="not checked")
    expect("it still runs", "run", small, "--input", SEVEN, "--topk", "1", out="7")
    def no_room() -> str | None:
        def limit() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        r = subprocess.run([ORTC, "optimize", DIGITS, "-o", "optimized/full.onnx"], cwd=folder, capture_output=True, text=True, preexec_fn=limit)
        return None if r.returncode == 6 and "cannot write 'optimized/full.onnx'" in r.stderr and "unchecked" not in r.stderr else f"{r}"

    check("optimize: no room, and no temporary name", no_room)
    sequence = put("sequence.onnx", identity("f32", None, "sequence"))
    refused("optimize: a check that cannot be", "optimize", sequence, "-o", "optimized/s.onnx", err="which only a .pb file can give")
    check("optimize: nothing is written unchecked", lambda: files("small.onnx", "w.bin"))


def case(name: str, expected: bytes, net: bytes | None = None, given: bytes = tensor_f32(1, 2, 3)) -> None:
    put(f"suite/{name}/model.onnx", net or identity("f32", ("n",)))
    put(f"suite/{name}/test_data_set_0/input_0.pb", given)
    put(f"suite/{name}/test_data_set_0/output_0.pb", expected)


def test() -> None:
    case("node/test_good", tensor_f32(1, 2, 3))
    case("node/test_close", tensor_f32(1.0005, 2, 3))
    expect("test", "test", "suite", last="2 passed, 0 failed, 0 skipped")
    expect("test -v", "test", "suite", "-v", out="pass node/test_good")
    expect("test --list", "test", "suite", "--list", test=lambda r: None if r.out == "node/test_close\nnode/test_good\n" else "list")
    expect("a case by itself", "test", "suite/node/test_good", last="1 passed, 0 failed, 0 skipped")
    case("node/test_wrong", tensor_f32(1, 2.5, 3))
    case("node/test_shape", tensor_f32(1, 2, 3, shape=(3, 1)))
    case("node/test_nan", tensor_f32(float("nan"), float("inf")), given=tensor_f32(float("nan"), float("inf")))
    case("node/test_foo", tensor_f32(1), model([node("Foo", ["x"], ["y"])], [value_info("x", "f32", (3,))], [value_info("y", "f32", (3,))]))
    case("node/test_broken", tensor_f32(1), b"no model")
    expect("failures are named", "test", "suite", code=1, last="3 passed, 4 failed, 0 skipped",
           out="FAIL node/test_wrong: output 'y': 1 of 3 values differ, first at [1]: got 2, expected 2.5 (rtol 0.001, atol 1e-07)")  # fmt: skip
    expect("a wrong shape", "test", "suite", "-k", "shape", code=1, out="got f32[3], expected f32[3,1]")
    expect("unsupported is a failure", "test", "suite", "-k", "foo", code=1, out="UNSUPPORTED: ", last="0 passed, 1 failed, 0 skipped")
    expect("unsupported is skipped", "test", "suite", "-k", "foo", "--unsupported=skip", last="0 passed, 0 failed, 1 skipped")
    expect("a glob", "test", "suite", "-k", "test_[gn]*", last="2 passed, 0 failed, 0 skipped")
    refused("nothing matches", "test", "suite", "-k", "none", err="-k: no case matches 'none'")
    refused("no cases", "test", put("nothing/x", "").parent, err="expected folders that hold test cases")
    refused("no folder", "test", "none", err="cannot open the folder 'none'")
    put("suite/node/test_wrong/tolerance.json", '{"rtol": 0.5}')
    put("suite/node/test_shape/tolerance.json", '{"rtol": 1e-3, "atol": 1e-7, "compare": "shape"}')
    expect("tolerance.json", "test", "suite", "-k", "wrong", last="1 passed, 0 failed, 0 skipped")
    put("suite/node/test_good/tolerance.json", '{"rtol": -1}')
    expect("a bad tolerance.json", "test", "suite", "-k", "good", code=1, out="tolerance.json: expected")
    (folder / "suite/node/test_good/tolerance.json").unlink()
    put("skip.txt", "# known\ntest_shape  the test is wrong\nnode/test_foo no Foo yet\nnode/test_broken is no model\n")
    expect("--skip-list", "test", "suite", "--skip-list", "skip.txt", last="4 passed, 0 failed, 3 skipped")
    put("skip2.txt", "test_good it is late\n")
    expect("a listed case that passes", "test", "suite", "-k", "good", "--skip-list", "skip2.txt", code=1,
           out="passes, but the skip list names it: it is late")  # fmt: skip
    put("skip3.txt", "test_good\n")
    refused("a skip list without reasons", "test", "suite", "--skip-list", "skip3.txt", err="line 1: expected a reason behind 'test_good'")
    put("skip4.txt", "test_gone because\n")
    expect("a skip list too long", "test", "suite", "-k", "good", "--skip-list", "skip4.txt", err="1 line of the skip list matches no case")
    expect("test --json", "test", "suite", "-k", "wrong", "--json", test=lambda r: None if r.json()["passed"] == 1 else "count")
    ortc("test", "suite", "--junit", "out.xml")
    check("test --junit", lambda: None if (folder / "out.xml").read_text().count("<testcase ") == 7 else "count")

    def progress() -> str | None:
        ours, theirs = pty.openpty()
        subprocess.run([ORTC, "test", "suite", "-k", "good"], cwd=folder, stdout=subprocess.DEVNULL, stderr=theirs, env={"TERM": "xterm"})
        os.close(theirs)
        shown = b""
        try:  # what a terminal holds comes in pieces, and its end as an error
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:
            pass
        os.close(ours)
        return None if shown == b"\r[0/1] node/test_good\x1b[K\r\x1b[K" else repr(shown)

    check("progress on a terminal", progress)
    expect("on ref alone", "test", "suite", "-k", "good", "--provider", "ref", "--require", "ref", last="1 passed, 0 failed, 0 skipped")
    seq = field(2, 1) + field(3, tensor_f32(1, 2)) + field(3, tensor_f32(3))
    case("seq/test_seq", seq, identity("f32", None, "sequence"), seq)
    expect("sequences", "test", "suite/seq", last="1 passed, 0 failed, 0 skipped")
    case("seq/test_seq2", field(2, 1) + field(3, tensor_f32(1, 2)) + field(3, tensor_f32(4)), identity("f32", None, "sequence"), seq)
    expect("different sequences", "test", "suite/seq", code=1, out="output 'y': element 1: 1 of 1 values differ")
    put("seq.onnx", identity("f32", None, "sequence"))
    put("seq.pb", seq)
    expect("a sequence in and out", "run", "seq.onnx", "-i", "seq.pb", out="y  sequence(f32) of 2")
    put("suite/bad/test_pb/test_data_set_0/input_0.pb", b"\xff\xff\xff\xff")
    put("suite/bad/test_pb/model.onnx", identity("f32", ("n",)))
    expect("a damaged .pb", "test", "suite/bad", code=1, out="input_0.pb")
    put("suite/bad/test_none/model.onnx", identity("f32", ("n",)))
    expect("no data", "test", "suite/bad", "-k", "none", code=1, out="has no test_data_set_* folder")


if __name__ == "__main__":
    general()
    environment()
    foreign()
    options()
    exit_codes()
    digits()
    info()
    optimize()
    test()
    every_exit_code()
    sys.exit(finish())
