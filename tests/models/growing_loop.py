"""Model 5: a Loop that concatenates (carried shapes grow), with a scan output, an outer value and an early end."""

from __future__ import annotations

import numpy as np
from model import BOOL, F32, I64, Model, helper, make, node, value


def growing_loop() -> Model:
    body = helper.make_graph(
        [node("Concat", ["grown", "x"], ["grown_out"], axis=0), node("Cast", ["i"], ["fi"], to=F32),
         node("Mul", ["fi", "x"], ["scan"]), node("ReduceSum", ["grown_out"], ["sum"], keepdims=0),
         node("Less", ["sum", "limit"], ["go"])],
        "body", [value("i", I64, []), value("c", BOOL, []), value("grown", F32, ["rows", 3])],
        [value("go", BOOL, []), value("grown_out", F32, ["more", 3]), value("scan", F32, ["n", 3])])
    made = make([node("Loop", ["trips", "", "start"], ["grown_last", "scans"], body=body),
                 node("ReduceMean", ["grown_last"], ["y"], axes=[0], keepdims=0)],
                [value("trips", I64, []), value("x", F32, ["n", 3]), value("start", F32, [1, 3]), value("limit", F32, [])],
                [value("y", F32, [3]), value("grown_last", F32, ["all", 3]), value("scans", F32, ["runs", "n", 3])])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    start = np.ones((1, 3), np.float32)
    return Model("growing_loop", made, [
        {"trips": np.array(n, np.int64), "x": x[:rows], "start": start, "limit": np.array(limit, np.float32)}
        for n, rows, limit in ((5, 2, 1e9), (3, 2, 1e9), (7, 2, 40.0), (0, 2, 1e9), (1, 1, 0.0))])
