"""Model 6: what a scikit-learn pipeline becomes: two columns of strings and three of numbers, one missing here and there; a label
with its probabilities from a logistic regression and from a random forest, and a price from boosted trees.

The models are trained here, on data that is made up, and written operator by operator; onnxruntime must say what
scikit-learn says before anything is compared with it. Strings, ai.onnx.ml, sequences of maps.
"""

from __future__ import annotations

import numpy as np
import onnxruntime
from model import F32, I64, Model, TensorProto, helper, make, node, value
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

STRING = TensorProto.STRING
CITIES, PLANS = ["Bern", "Lima", "Oslo", "Zürich"], ["basic", "plus", "pro"]
CLASSES = ["keeps", "leaves", "wavers"]


def ml(op, inputs, outputs, **attributes):
    return node(op, inputs, outputs, domain="ai.onnx.ml", **attributes)


def people(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    numbers = np.stack([rng.uniform(18, 90, n), rng.gamma(2, 900, n), rng.integers(0, 12, n)], axis=1).astype(np.float32)
    numbers[rng.random(n) < 0.15, 1] = np.nan
    words = (np.array([rng.choice(known + ["?"]) for _ in range(n)], object).reshape(n, 1) for known in (CITIES, PLANS))
    return dict(zip(("city", "plan", "numbers"), (*words, numbers)))


# ---- Features, as numpy has them ---------------------------------------------------------------------------------------------


def fit_features(data):
    """What is missing becomes the mean; then mean 0, deviation 1."""
    fill = np.nanmean(data["numbers"].astype(np.float64), axis=0).astype(np.float32)
    whole = np.where(np.isnan(data["numbers"]), fill, data["numbers"]).astype(np.float64)
    return fill, whole.mean(axis=0).astype(np.float32), (1 / whole.std(axis=0)).astype(np.float32)


def features(data, fill, offset, scale) -> np.ndarray:
    whole = np.where(np.isnan(data["numbers"]), fill, data["numbers"])
    one_hot = (data["city"] == np.array(CITIES, object)).astype(np.float32)
    plan = np.array([[PLANS.index(p) if p in PLANS else -1] for p in data["plan"].ravel()], np.float32)
    return np.concatenate([one_hot, plan, ((whole - offset) * scale).astype(np.float32)], axis=1)


# ---- Trees to attributes -------------------------------------------------------------------------------------------------------


def tree_attributes(trees, prefix: str, weights) -> dict:
    """Nodes of all trees; a leaf's weights are those of weights(tree, node): pairs of id and number."""
    lists: dict[str, list] = {f"nodes_{n}": [] for n in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                                                         "falsenodeids", "missing_value_tracks_true")}
    lists |= {f"{prefix}_{n}": [] for n in ("treeids", "nodeids", "ids", "weights")}
    for t, tree in enumerate(trees):
        for n in range(tree.node_count):
            leaf = tree.children_left[n] < 0
            row = (t, n, 0 if leaf else int(tree.feature[n]), 0.0 if leaf else float(tree.threshold[n]),
                   "LEAF" if leaf else "BRANCH_LEQ", 0 if leaf else int(tree.children_left[n]),
                   0 if leaf else int(tree.children_right[n]), 0)
            for name, item in zip(list(lists)[:8], row):
                lists[name].append(item)
            for i, weight in weights(t, tree, n) if leaf else ():
                for name, item in zip(list(lists)[8:], (t, n, i, float(weight))):
                    lists[name].append(item)
    return lists


# ---- The model ------------------------------------------------------------------------------------------------------------------


def trained():
    data = people(300, 6)
    fitted = fit_features(data)
    x = features(data, *fitted)
    rng = np.random.default_rng(66)
    mood = x @ rng.standard_normal(x.shape[1]) + rng.normal(0, 0.5, len(x))
    y = np.array(CLASSES, object)[np.digitize(mood, np.quantile(mood, [0.4, 0.75]))]
    price = 20 + 3 * x[:, 4] + np.abs(x[:, 5]) + rng.normal(0, 0.2, len(x))
    regression = LogisticRegression(max_iter=500).fit(x, y)
    forest = RandomForestClassifier(12, max_depth=5, random_state=6).fit(x, [CLASSES.index(label) for label in y])
    boosting = GradientBoostingRegressor(n_estimators=20, max_depth=3, random_state=6).fit(x, price)
    return fitted, regression, forest, boosting


def network(fitted, regression, forest, boosting):
    fill, offset, scale = fitted
    trees = [t.tree_ for t in forest.estimators_]
    boosted = [t.tree_ for t in boosting.estimators_[:, 0]]
    nodes = [
        ml("OneHotEncoder", ["city"], ["city3"], cats_strings=CITIES, zeros=1),
        node("Reshape", ["city3", "rows4"], ["city_hot"]),
        ml("LabelEncoder", ["plan"], ["plan_code"], keys_strings=PLANS, values_int64s=[0, 1, 2], default_int64=-1),
        node("Cast", ["plan_code"], ["plan_number"], to=F32),
        ml("Imputer", ["numbers"], ["whole"], imputed_value_floats=fill.tolist(), replaced_value_float=float("nan")),
        ml("Scaler", ["whole"], ["scaled"], offset=offset.tolist(), scale=scale.tolist()),
        node("Concat", ["city_hot", "plan_number", "scaled"], ["features"], axis=1),
        ml("LinearClassifier", ["features"], ["label", "scores"], classlabels_strings=CLASSES, post_transform="SOFTMAX", multi_class=1,
           coefficients=regression.coef_.ravel().tolist(), intercepts=regression.intercept_.tolist()),
        ml("ZipMap", ["scores"], ["probabilities"], classlabels_strings=CLASSES),
        ml("TreeEnsembleClassifier", ["features"], ["forest_code", "forest_scores"], classlabels_int64s=[0, 1, 2], post_transform="NONE",
           **tree_attributes(trees, "class", lambda t, tree, n: [(i, p / len(trees)) for i, p in enumerate(tree.value[n, 0])])),
        ml("LabelEncoder", ["forest_code"], ["forest_label"], keys_int64s=[0, 1, 2], values_strings=CLASSES),
        ml("ZipMap", ["forest_scores"], ["forest_probabilities"], classlabels_int64s=[0, 1, 2]),
        ml("TreeEnsembleRegressor", ["features"], ["price"], n_targets=1, base_values=[float(boosting.init_.constant_[0, 0])],
           **tree_attributes(boosted, "target", lambda t, tree, n: [(0, boosting.learning_rate * tree.value[n, 0, 0])])),
    ]
    inputs = [value("city", STRING, ["people", 1]), value("plan", STRING, ["people", 1]), value("numbers", F32, ["people", 3])]
    outputs = [value("label", STRING, ["people"]), zipped("probabilities", STRING), value("forest_label", STRING, ["people"]),
               zipped("forest_probabilities", I64), value("price", F32, ["people", 1])]
    proto = make(nodes, inputs, outputs, [("rows4", np.array([-1, 4], np.int64))])
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return proto


def zipped(name: str, key: int):
    """sequence(map(key, f32))"""
    of = helper.make_map_type_proto(key, helper.make_tensor_type_proto(F32, None))
    return helper.make_value_info(name, helper.make_sequence_type_proto(of))


def check_against_sklearn(proto, feed, fitted, regression, forest, boosting) -> None:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    label, probabilities, forest_label, forest_probabilities, price = session.run(None, feed)
    x = features(feed, *fitted)
    assert label.tolist() == regression.predict(x).tolist()
    np.testing.assert_allclose([[p[c] for c in CLASSES] for p in probabilities], regression.predict_proba(x), atol=1e-5)
    assert forest_label.tolist() == [CLASSES[i] for i in forest.predict(x)]
    np.testing.assert_allclose([[p[i] for i in range(3)] for p in forest_probabilities], forest.predict_proba(x), atol=1e-5)
    np.testing.assert_allclose(price.ravel(), boosting.predict(x), rtol=1e-5)


def sklearn_pipeline() -> Model:
    models = trained()
    proto = network(*models)
    feeds = [people(n, seed) for n, seed in ((1, 1), (40, 2), (1, 3), (7, 4))]
    for feed in feeds:
        check_against_sklearn(proto, feed, *models)
    return Model("sklearn_pipeline", proto, feeds)
