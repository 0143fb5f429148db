"""Model 4: what follows a detector's network, for one image.

Boxes of all classes go through NonMaxSuppression; what it takes is gathered, put in order by TopK (at most `most`, a number
that is computed), scaled by an If whose branches differ in shape, and counted against NonZero's count of good scores. How many
there are is known only while it runs, none among them.
"""

from __future__ import annotations

import numpy as np
from model import F32, I64, Model, helper, make, node, value


def graph(opset: int):
    """Axes are attributes below 13."""
    def squeeze(x, y, axis):
        return node("Squeeze", [x], [y], axes=[axis]) if opset < 13 else node("Squeeze", [x, f"axis{axis}"], [y])

    def unsqueeze(x, y, axis):
        return node("Unsqueeze", [x], [y], axes=[axis]) if opset < 13 else node("Unsqueeze", [x, f"axis{axis}"], [y])

    some = helper.make_graph([node("Mul", ["best", "scale"], ["scaled"])], "some", [], [value("scaled", F32, ["kept", 4])])
    none = helper.make_graph([node("Constant", [], ["empty"], value=helper.make_tensor("e", F32, [1, 4], [-1.0] * 4))], "none", [],
                             [value("empty", F32, [1, 4])])
    nodes = [
        node("NonMaxSuppression", ["boxes", "scores", "per_class", "overlap", "least"], ["selected"]),
        node("Gather", ["selected", "two"], ["which"], axis=1),      # which box
        node("Slice", ["selected", "zero1", "two1", "one1"], ["pair"]),  # image and class
        unsqueeze("which", "which1", 1),
        node("Concat", ["pair", "which1"], ["places"], axis=1),
        node("GatherND", ["scores", "places"], ["taken"]),
        squeeze("boxes", "flat", 0),
        node("Gather", ["flat", "which"], ["candidates"], axis=0),
        node("Shape", ["taken"], ["found"]),
        node("Concat", ["found", "most"], ["bounds"], axis=0),
        node("ReduceMin", ["bounds"], ["k"], keepdims=1),
        node("TopK", ["taken", "k"], ["best_scores", "order"], axis=0),
        node("Gather", ["candidates", "order"], ["best"], axis=0),
        squeeze("k", "count", 0),
        node("Greater", ["count", "zero"], ["any"]),
        node("If", ["any"], ["result"], then_branch=some, else_branch=none),
        node("Greater", ["scores", "good"], ["is_good"]),
        node("NonZero", ["is_good"], ["good_places"]),
        node("Shape", ["good_places"], ["good_count"]),
    ]
    constants = [("per_class", np.array([3], np.int64)), ("overlap", np.array([0.4], np.float32)), ("least", np.array([0.3], np.float32)),
                 ("two", np.int64(2)), ("zero", np.int64(0)), ("zero1", np.array([0], np.int64)), ("one1", np.array([1], np.int64)),
                 ("two1", np.array([2], np.int64)), ("most", np.array([5], np.int64)), ("scale", np.float32(640)),
                 ("good", np.float32(0.7))]
    if opset >= 13:
        constants += [("axis0", np.array([0], np.int64)), ("axis1", np.array([1], np.int64))]
    inputs = [value("boxes", F32, [1, "boxes", 4]), value("scores", F32, [1, "classes", "boxes"])]
    outputs = [value("result", F32, ["rows", 4]), value("best_scores", F32, ["kept"]), value("good_places", I64, [3, "good"]),
               value("good_count", I64, [2])]
    return make(nodes, inputs, outputs, constants, opset=opset)


def feeds() -> list[dict]:
    """Two shapes, and within one shape as many boxes found as may be, fewer, and none."""
    rng = np.random.default_rng(4)
    made = []
    for n, classes, scale in ((40, 3, 1.0), (40, 3, 0.4), (40, 3, 0.2), (7, 1, 1.0), (40, 3, 1.0), (7, 1, 0.0)):
        corner = rng.random((1, n, 2)).astype(np.float32)
        boxes = np.concatenate([corner, corner + 0.05 + 0.4 * rng.random((1, n, 2)).astype(np.float32)], axis=2)
        made.append({"boxes": boxes, "scores": rng.random((1, classes, n)).astype(np.float32) * np.float32(scale)})
    return made


def detector() -> Model:
    return Model("detector", graph(17), feeds())


def detector_opset_11() -> Model:
    return Model("detector_opset_11", graph(11), feeds())
