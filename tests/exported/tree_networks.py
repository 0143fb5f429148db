"""What skl2onnx and onnxmltools make of models of scikit-learn, XGBoost and LightGBM, trained here on data from a seed."""

from __future__ import annotations

import warnings

import lightgbm
import numpy as np
import onnxmltools
import skl2onnx
import sklearn.ensemble
import sklearn.gaussian_process
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.neighbors
import sklearn.neural_network
import sklearn.svm
import xgboost
from network import File, Network, differs, theirs
from onnxmltools.convert.common.data_types import FloatTensorType as OtherFloat
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, PolynomialFeatures, StandardScaler

warnings.filterwarnings("ignore")
rng = np.random.default_rng(3)
X = rng.standard_normal((300, 6)).astype(np.float32)
SCORES = X @ rng.standard_normal((6, 3)) + np.sin(3 * X[:, :3])
CLASSES, NUMBER = SCORES.argmax(1), SCORES[:, 0] + X[:, 1] ** 2
ROWS = (5, 11)


def rows(k: int) -> np.ndarray:
    return np.random.default_rng(10 + k).standard_normal((ROWS[k], 6)).astype(np.float32)


def files(onx, fitted, given=lambda k: {"x": rows(k)}, matrix=lambda f: f["x"]) -> list[File]:
    """Labels and probabilities, or numbers, as the model itself says them."""
    sets = []
    for k in range(2):
        feeds = given(k)
        data = matrix(feeds)
        if hasattr(fitted, "predict_proba"):
            want = [fitted.predict(data), fitted.predict_proba(data).astype(np.float32)]
        elif hasattr(fitted, "predict"):
            want = [np.asarray(fitted.predict(data), np.float32).reshape(ROWS[k], -1)]
        else:
            want = [np.asarray(fitted.transform(data), np.float32)]
        got = theirs(onx, feeds)
        if problem := differs(got, [w.astype(g.dtype) if w.dtype.kind in "iu" else w for g, w in zip(got, want)]):
            raise ValueError(f"onnxruntime does not say what the model says: {problem}")
        sets.append((feeds, [np.asarray(w, g.dtype) if g.dtype.kind != "O" else w for g, w in zip(got, want)]))
    return [File(onx, sets)]


def sk(model, y=CLASSES, **options):
    def make() -> list[File]:
        fitted = model.fit(X, y)
        more = {id(fitted): {"zipmap": False}} if hasattr(fitted, "predict_proba") else None
        return files(skl2onnx.convert_sklearn(fitted, initial_types=[("x", FloatTensorType([None, 6]))], options=more, target_opset={"": 17, "ai.onnx.ml": 3}, **options), fitted)

    return make


def boosted(model, y, convert) -> callable:
    def make() -> list[File]:
        fitted = model.fit(X, y)
        return files(convert(fitted, initial_types=[("x", OtherFloat([None, 6]))], target_opset=15), fitted)

    return make


WORDS = np.array("the quick brown fox jumps over a lazy dog while cats sleep".split())


def sentences(k: int, n: int) -> np.ndarray:
    r = np.random.default_rng(20 + k)
    return np.array([" ".join(r.choice(WORDS, r.integers(3, 9))) for _ in range(n)], object)


def words() -> list[File]:
    data = sentences(9, 100)
    fitted = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), lowercase=False, token_pattern="[a-z]+"), sklearn.linear_model.LogisticRegression()).fit(data, ["fox" in s for s in data])
    onx = skl2onnx.convert_sklearn(fitted, initial_types=[("x", StringTensorType([None, 1]))], options={id(fitted): {"zipmap": False}}, target_opset=17)
    return files(onx, fitted, lambda k: {"x": sentences(k, ROWS[k]).reshape(-1, 1)}, lambda f: f["x"].ravel())


def columns() -> list[File]:
    towns = np.array(["Bern", "Lima", "Oslo"], object)
    r = np.random.default_rng(5)
    table = np.concatenate([X[:, :2].astype(object), towns[r.integers(0, 3, (300, 1))]], 1)
    fitted = make_pipeline(ColumnTransformer([("n", StandardScaler(), [0, 1]), ("t", OneHotEncoder(handle_unknown="ignore"), [2])]),
                           sklearn.linear_model.LogisticRegression()).fit(table, CLASSES)
    kinds = [("n", FloatTensorType([None, 2])), ("t", StringTensorType([None, 1]))]
    onx = skl2onnx.convert_sklearn(fitted, initial_types=kinds, options={id(fitted): {"zipmap": False}}, target_opset=17)

    def given(k: int) -> dict:
        towns_and_one = np.array(["Bern", "Lima", "Oslo", "Rome"], object)
        return {"n": rows(k)[:, :2].copy(), "t": towns_and_one[np.random.default_rng(k).integers(0, 4, (ROWS[k], 1))]}

    return files(onx, fitted, given, lambda f: np.concatenate([f["n"].astype(object), f["t"]], 1))


LM, E, NB = sklearn.linear_model, sklearn.ensemble, sklearn.naive_bayes
SKL = {
    "logistic regression": sk(make_pipeline(StandardScaler(), LM.LogisticRegression())),
    "ridge on polynomials": sk(make_pipeline(PolynomialFeatures(2), LM.Ridge()), NUMBER),
    "random forest": sk(E.RandomForestClassifier(12, max_depth=6, random_state=1)),
    "random forest regressor": sk(E.RandomForestRegressor(12, max_depth=6, random_state=1), NUMBER),
    "gradient boosting": sk(E.GradientBoostingClassifier(n_estimators=10, random_state=1)),
    "neighbours": sk(sklearn.neighbors.KNeighborsClassifier(5)),
    "neighbours regressor": sk(sklearn.neighbors.KNeighborsRegressor(4), NUMBER),
    "support vectors": sk(sklearn.svm.SVC(probability=True, random_state=1)),
    "support vector regressor": sk(sklearn.svm.SVR(), NUMBER),
    "perceptron": sk(sklearn.neural_network.MLPClassifier((16, 8), max_iter=100, random_state=1)),
    "Gaussian naive Bayes": sk(NB.GaussianNB()),
    "stack": sk(E.StackingClassifier([("t", E.ExtraTreesClassifier(5, max_depth=4, random_state=1)), ("l", LM.LogisticRegression())])),
    "vote over components": sk(make_pipeline(PCA(4), E.VotingClassifier([("a", LM.LogisticRegression()), ("b", NB.GaussianNB())], voting="soft", flatten_transform=False))),
    "Gaussian process": sk(sklearn.gaussian_process.GaussianProcessRegressor(random_state=1, alpha=0.1), NUMBER),
    "bins": sk(make_pipeline(KBinsDiscretizer(4, encode="onehot-dense", strategy="quantile"), LM.LogisticRegression())),
    "words": words,
    "columns": columns,
}
OTHERS = {
    "XGBoost": boosted(xgboost.XGBClassifier(n_estimators=8, max_depth=4), CLASSES, onnxmltools.convert_xgboost),
    "XGBoost regressor": boosted(xgboost.XGBRegressor(n_estimators=8, max_depth=4), NUMBER, onnxmltools.convert_xgboost),
    "LightGBM": boosted(lightgbm.LGBMClassifier(n_estimators=8, num_leaves=15, verbose=-1), CLASSES, lambda m, **o: onnxmltools.convert_lightgbm(m, zipmap=False, **o)),
    "LightGBM regressor": boosted(lightgbm.LGBMRegressor(n_estimators=8, num_leaves=15, verbose=-1), NUMBER, onnxmltools.convert_lightgbm),
}
NETWORKS = [Network(n, "trees and the like", "skl2onnx", m) for n, m in SKL.items()] + [Network(n, "trees and the like", "onnxmltools", m) for n, m in OTHERS.items()]
