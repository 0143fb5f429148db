"""Model 8: shapes that inputs decide by their values (Reshape, Expand, Range in integers and in floats), arithmetic on shapes,
and random operators, with a seed and without. The feeds have equal shapes and other values: a plan that forgets what decides
a shape gives a wrong answer.
"""

from __future__ import annotations

import numpy as np
from model import F32, I64, Model, make, node, value


def value_shapes() -> Model:
    nodes = [
        node("Reshape", ["x", "target"], ["r"]),
        node("Shape", ["r"], ["s"]),
        node("Gather", ["s", "zero"], ["rows"]),
        node("Unsqueeze", ["rows", "zero1"], ["rows1"]),
        node("Concat", ["rows1", "minus1"], ["flat"], axis=0),
        node("Reshape", ["r", "flat"], ["y"]),
        node("Range", ["zero", "limit", "step"], ["steps"]),
        node("Cast", ["steps"], ["ramp"], to=F32),
        node("Expand", ["ramp", "extent"], ["plane"]),
        node("Range", ["fzero", "flimit", "half"], ["halves"]),
        node("Mul", ["halves", "half"], ["quarters"]),
        node("RandomNormalLike", ["y"], ["noise"], seed=7.0, scale=2.0),
        node("RandomUniformLike", ["plane"], ["own"]),
        node("Add", ["y", "noise"], ["noisy"]),
    ]
    inputs = [value("x", F32, ["n"]), value("target", I64, [2]), value("limit", I64, []), value("extent", I64, [2]),
              value("flimit", F32, [])]
    outputs = [value("y", F32, ["rows", "columns"]), value("plane", F32, ["extent", "ramp"]), value("quarters", F32, ["quarters"]),
               value("noisy", F32, ["rows", "columns"]), value("own", F32, ["extent", "ramp"])]
    constants = [("zero", np.int64(0)), ("zero1", np.array([0], np.int64)), ("minus1", np.array([-1], np.int64)),
                 ("step", np.int64(3)), ("fzero", np.float32(0)), ("half", np.float32(0.5))]
    rng = np.random.default_rng(8)
    feeds = [{"x": rng.standard_normal(12).astype(np.float32), "target": np.array(t, np.int64), "limit": np.array(limit, np.int64),
              "extent": np.array(e, np.int64), "flimit": np.array(f, np.float32)}
             for t, limit, e, f in (([3, 4], 10, [2, 1], 2.0), ([4, 3], 10, [2, 1], 3.5), ([-1, 2], 31, [1, 1], 0.0),
                                    ([12, 1], 3, [5, 4], 9.0), ([3, 4], 0, [2, 1], 2.0))]
    return Model("value_shapes", make(nodes, inputs, outputs, constants), feeds, random=("noisy", "own"))
