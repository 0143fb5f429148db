"""Model 10: Scan of version 8: samples of a batch with a length each, forwards and backwards, and an outer value."""

from __future__ import annotations

import numpy as np
from model import F32, I64, Model, helper, make, node, value


def scan8() -> Model:
    body = helper.make_graph(
        [node("Mul", ["state", "decay"], ["less"]), node("Add", ["less", "first"], ["sum"]), node("Add", ["sum", "second"], ["state_out"]),
         node("Sub", ["state_out", "first"], ["kept"])],
        "body", [value("state", F32, [3]), value("first", F32, [3]), value("second", F32, [3])],
        [value("state_out", F32, [3]), value("kept", F32, [3])])
    lines = node("Scan", ["lengths", "start", "x", "z"], ["last", "all"], body=body, num_scan_inputs=2, directions=[0, 1])
    whole = node("Scan", ["", "start", "z", "x"], ["last_whole", "all_whole"], body=body, num_scan_inputs=2, directions=[1, 0])
    one = node("Scan", ["", "start_one", "one", "one"], ["last_one", "all_one"], body=body, num_scan_inputs=2)
    made = make([lines, whole, one],
                [value("lengths", I64, ["n"]), value("start", F32, ["n", 3]), value("x", F32, ["n", "t", 3]), value("z", F32, ["n", "t", 3]),
                 value("start_one", F32, [1, 3]), value("one", F32, [1, "u", 3]), value("decay", F32, [])],
                [value("last", F32, ["n", 3]), value("all", F32, ["n", "t", 3]), value("last_whole", F32, ["n", 3]),
                 value("all_whole", F32, ["n", "t", 3]), value("last_one", F32, [1, 3]), value("all_one", F32, [1, "u", 3])],
                opset=8, ir_version=4)
    rng = np.random.default_rng(0)
    feeds = []
    for lengths, most in (([2, 5, 3], 5), ([4], 4), ([1, 3], 6), ([2, 2, 2, 1], 2)):
        shapes = {"start": (len(lengths), 3), "x": (len(lengths), most, 3), "z": (len(lengths), most, 3), "start_one": (1, 3), "one": (1, most, 3)}
        feeds.append({"lengths": np.array(lengths, np.int64), "decay": np.array(0.5, np.float32),
                      **{n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}})
    return Model("scan8", made, feeds)
