#!/usr/bin/env python3
"""bench, profile and compare: what they measure adds up, what they tell is readable, what is wrong is refused.

usage: test_measure.py ORTC
"""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import sys
import time

from command import MODELS, ORTC, check, expect, finish, folder, ortc, put, refused
from files import f32, field, model, node, tensor, value_info

DIGITS = MODELS / "digits.onnx"
NOTE = "free dimensions are 1: N"


def bench() -> None:
    def adds_up(r) -> str | None:
        j = r.json()
        t = j["latency_ms"]
        order = [t[k] for k in ("min", "p50", "p90", "p95", "p99", "p99.9", "max")]
        good = order == sorted(order) and t["min"] <= t["mean"] <= t["max"] and j["runs"] == 120 and j["callers"] == 3
        good = good and abs(j["throughput"] * j["seconds"] / j["runs"] - 1) < 1e-6 and all(v > 0 for v in j["start_ms"].values())
        return None if good and 0 < j["base_bytes"] < j["peak_bytes"] and j["arena_bytes"] > 0 and j["noise"] >= 0 else "numbers"

    expect("bench --json", "bench", DIGITS, "--runs", "40", "--callers", "3", "--set", "N=2", "--json", test=adds_up)
    expect("bench", "bench", DIGITS, "--runs", "5", err=NOTE, out="latency, ms  min ",
           test=lambda r: None if "of 5 runs" in r.out and "too few runs to say" in r.out else "lines")  # fmt: skip
    started = time.monotonic()
    expect("bench --seconds", "bench", DIGITS, "--seconds", "0.5", "-q", out="runs/s from 1 caller ")
    check("it takes so long", lambda: None if 0.5 <= time.monotonic() - started < 20 else "time")
    expect("bench --range", "bench", DIGITS, "--range", "N=1..9", "--runs", "32", "--json", "-q",
           test=lambda r: None if r.json()["shapes"] == 16 and 1 < r.json()["plans"] <= 9 else "plans")  # fmt: skip
    expect("bench --save", "bench", DIGITS, "--runs", "100", "-q", "--save", "saved.json")
    expect("bench --against", "bench", DIGITS, "--runs", "100", "-q", "--against", "saved.json", out="against")
    expect("bench --against --json", "bench", DIGITS, "--runs", "100", "-q", "--against", "saved.json", "--json",
           test=lambda r: None if r.json()["against"]["p50_ms"] == json.loads((folder / "saved.json").read_text())["latency_ms"]["p50"] else "p50")  # fmt: skip

    def faster(by: float) -> str:
        j = json.loads((folder / "saved.json").read_text())
        j["latency_ms"]["p50"] /= by
        put("faster.json", json.dumps(j, indent=2))
        return "faster.json"

    expect("much slower than before", "bench", DIGITS, "--runs", "100", "-q", "--against", faster(1e4), "--fail-above", "20", code=1, out="slower")
    expect("much faster than before", "bench", DIGITS, "--runs", "100", "-q", "--against", faster(1e-4), "--fail-above", "20", out="faster")
    refused("bench: not saved by it", "bench", DIGITS, "--against", put("other.json", '{"command": "run"}'), err="is not what 'ortc bench --save' writes")
    refused("bench: nothing saved", "bench", DIGITS, "--against", "none.json", err="none.json")
    refused("bench: nothing to fail by", "bench", DIGITS, "--fail-above", "5", err="expects --against FILE")
    refused("bench: no time", "bench", DIGITS, "--seconds", "soon", err="--seconds expects a number of at least 0, got 'soon'")
    for text in ("N", "N=3", "N=5..2", "=1..2", "N=a..b"):
        refused(f"bench: --range {text}", "bench", DIGITS, "--range", text, err=f"--range expects DIM=LOW..HIGH, as in length=1..128, got '{text}'")
    refused("bench: --range of no symbol", "bench", DIGITS, "--range", "M=1..2", err="--range: the model has no symbolic dimension 'M'; it has N")
    expect("bench: nowhere to save", "bench", DIGITS, "--runs", "1", "-q", "--save", "no/such/x.json", err="--save: cannot write", code=6)

    def interrupted() -> str | None:
        p = subprocess.Popen([ORTC, "bench", DIGITS, "--seconds", "1000", "-q"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=60)
        return None if p.returncode == 130 and "latency" in out else f"{p.returncode} {out} {err}"

    check("bench: interrupted, what was measured is told", interrupted)


def profile() -> None:
    def by_node(r) -> str | None:
        j = r.json()
        lines = {line["node"]: line for line in j["lines"]}
        shares = sum(line["share"] for line in j["lines"])
        good = abs(shares - 1) < 1e-6 and lines["conv2"]["calls"] == 1 and lines["conv2"]["flops"] > 1e5 and j["runs"] == 7
        good = good and j["steps_ms"] <= j["run_ms"] and [line["ms"] for line in j["lines"]] == sorted((line["ms"] for line in j["lines"]), reverse=True)
        return None if good else "sums"

    expect("profile --by node", "profile", DIGITS, "--by", "node", "--runs", "7", "-q", "--json", test=by_node)
    expect("profile", "profile", DIGITS, "-q", out="operator",
           test=lambda r: None if any(line.split()[-1] == "Conv" for line in r.out.splitlines()) else "no Conv")  # fmt: skip
    expect("profile --top", "profile", DIGITS, "-q", "--by", "kernel", "--top", "2", out="more\n")
    expect("profile --trace", "profile", DIGITS, "-q", "--runs", "2", "--trace", "t.json",
           test=lambda r: None if len(json.loads((folder / "t.json").read_text())["traceEvents"]) >= 20 else "events")  # fmt: skip
    expect("profile: nowhere for the trace", "profile", DIGITS, "-q", "--trace", "none/t.json", code=6, err="--trace: cannot write")
    # A loop's steps are inside it: together they are no longer than the run.
    body = field(1, node("Add", ["acc", "acc"], ["next"])) + field(1, node("Identity", ["go"], ["on"])) + field(2, "body")
    body += b"".join(field(11, value_info(n, t, s)) for n, t, s in (("i", "i64", ()), ("go", "bool", ()), ("acc", "f32", (256,))))
    body += field(12, value_info("on", "bool", ())) + field(12, value_info("next", "f32", (256,)))
    loop = node("Loop", ["n", "", "x"], ["y"]) + field(5, field(1, "body") + field(6, body) + field(20, 5))
    put("loop.onnx", model([loop], [value_info("x", "f32", (256,))], [value_info("y", "f32", (256,))],
                           [tensor("i64", (), struct.pack("<q", 50), "n")]))  # fmt: skip

    def inner(r) -> str | None:
        j = r.json()
        calls = {line["op"]: line["calls"] for line in j["lines"]}
        return None if calls.get("Loop") == 1 and calls.get("Add") == 50 and j["steps_ms"] <= j["run_ms"] else "calls"

    expect("profile of a loop", "profile", "loop.onnx", "--provider", "ref", "--json", test=inner)


def compare() -> None:
    one = struct.pack("<2f", 1, 2)
    add = [value_info("x", "f32", (2,))], [value_info("y", "f32", (2,))]

    def chain(third: str):
        return model([node("Add", ["x", "c"], ["a"], name="first"), node("Mul", ["a", "a"], ["b"], name="second"),
                      node(third, ["b"], ["y"], name="third")], *add, [tensor("f32", (2,), one, "c")])  # fmt: skip

    a, b = put("a.onnx", chain("Neg")), put("b.onnx", chain("Abs"))
    expect("compare: the same", "compare", a, a, out="0 of 2", test=lambda r: None if "equal 2" in r.out else "histogram")
    expect("compare: two providers", "compare", DIGITS, "-q", "--nodes", out="0 of 14 values inside differ")
    expect("compare: two files", "compare", a, b, "-i", "ones", code=1, out="2 of 2")
    expect("compare: the first that differs", "compare", a, b, "-i", "ones", "--nodes", "--provider", "ref", code=1,
           out="1 of 3 values inside differ; the first is 'y', of Neg 'third'")  # fmt: skip

    def ulps(r) -> str | None:
        (y,) = r.json()["outputs"]
        return None if y["ulp_histogram"][:2] == [1, 1] and y["max_ulp"] == 1 and y["differ"] == 0 and y["count"] == 2 else f"{y}"

    s, t = (put(f"{n}.onnx", model([node("Identity", ["c"], ["h"]), node("Add", ["x", "h"], ["y"])], *add, [tensor("f32", (2,), c, "c")]))
            for n, c in (("s", one), ("t", struct.pack("<fI", 1, 0x40000001))))  # fmt: skip
    expect("compare: one unit in the last place", "compare", s, t, "-i", "zeros", "--json", test=ulps)
    expect("compare: no tolerance", "compare", s, t, "-i", "zeros", "--rtol", "0", "--atol", "0", code=1, out="1 of 2")
    nan = put("nan.onnx", model([node("Log", ["x"], ["y"])], *add))
    put("neg.npy", f32(-1, -2))
    expect("compare: NaN and NaN", "compare", nan, nan, "-i", "x=neg.npy", out="0 of 2")
    expect("compare: NaN and a number", "compare", nan, a, "-i", "x=neg.npy", code=1, out="more 2")
    wide = put("wide.onnx", model([node("Concat", ["x", "x"], ["y"]) + field(5, field(1, "axis") + field(3, 0) + field(20, 2))],
                                  add[0], [value_info("y", "f32", (4,))]))  # fmt: skip
    expect("compare: another shape", "compare", a, wide, code=1, out="got f32[2], expected f32[4]")
    refused("compare: no model", "compare", err="expects one model, or two")
    refused("compare: a bad tolerance", "compare", a, "--rtol", "-1", err="--rtol expects a number of at least 0, got '-1'")
    refused("compare: no such provider", "compare", a, "--against", "tpu", code=5, err="tpu")


if __name__ == "__main__":
    bench()
    profile()
    compare()
    sys.exit(finish())
