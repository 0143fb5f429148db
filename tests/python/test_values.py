#!/usr/bin/env python3
"""Sequences, optionals, strings and ai.onnx.ml against onnxruntime: test_values.py ORTC.

Models of a few nodes, as cases of `ortc test`, on ref and on cpu; what onnxruntime cannot do is compared with Python's own
answer. Then the same models go through `ortc optimize`, which loads what it has written and compares.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import check, finish, packages

np, onnx, onnxruntime = packages("numpy", "onnx", "onnxruntime")
from make_suite import write_values  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

ORTC = sys.argv[1]
F32, I64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
node, value = helper.make_node, helper.make_tensor_value_info
rng = np.random.default_rng(5)


def sequence(name, dtype):
    return helper.make_tensor_sequence_value_info(name, dtype, None)


def ml(op, inputs, outputs, **attributes):
    return node(op, inputs, outputs, domain="ai.onnx.ml", **attributes)


def info_of(name: str, *arrays: np.ndarray):
    """Of a value that has these shapes in turn."""
    dtype = STRING if arrays[0].dtype == object else helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
    same = {a.shape for a in arrays} == {arrays[0].shape}
    return value(name, dtype, arrays[0].shape if same else [None] * arrays[0].ndim)


def text(*words, shape=None) -> np.ndarray:
    array = np.array(words, object)
    return array.reshape(shape) if shape is not None else array


class Case:
    """expected: outputs by feed, where onnxruntime is not to be asked."""

    def __init__(self, name, nodes, feeds, outputs, inputs=None, constants=(), expected=None, rtol=1e-5, ml_opset=3, opset=20):
        feeds = [{n: a if isinstance(a, list) else np.asarray(a) for n, a in f.items()} for f in feeds]
        self.name, self.feeds, self.expected, self.rtol = name, feeds, expected, rtol
        self.inputs = inputs or [info_of(n, *(f[n] for f in feeds)) for n in feeds[0]]
        self.outputs = [helper.make_empty_tensor_value_info(o) if isinstance(o, str) else o for o in outputs]
        graph = helper.make_graph(nodes, "values", self.inputs, self.outputs,
                                  [numpy_helper.from_array(np.asarray(a), n) for n, a in constants])
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", ml_opset)]
        self.model = helper.make_model(graph, opset_imports=opsets, ir_version=9 if opset == 20 else 13)

    def answers(self) -> list[list]:
        if self.expected is not None:
            return self.expected
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(self.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return [session.run(None, feed) for feed in self.feeds]

    def write(self, folder: Path) -> None:
        case = folder / self.name
        case.mkdir(parents=True)
        (case / "model.onnx").write_bytes(self.model.SerializeToString())
        (case / "tolerance.json").write_text(json.dumps({"rtol": self.rtol, "atol": 1e-6}))
        for i, (feed, results) in enumerate(zip(self.feeds, self.answers())):
            data = case / f"test_data_set_{i}"
            data.mkdir()
            write_values(data, "input", [feed.get(x.name) for x in self.inputs], self.inputs)
            infos = [o if o.type.WhichOneof("value") else info_of(o.name, np.asarray(r)) for o, r in zip(self.outputs, results)]
            write_values(data, "output", results, infos)


# ---- Sequences and optionals ---------------------------------------------------------------------------------------------------


def sequences() -> list[Case]:
    x, y = rng.standard_normal((2, 3)).astype(np.float32), rng.standard_normal((2, 1)).astype(np.float32)
    body = helper.make_graph(
        [node("Mul", ["row", "factor"], ["scaled"]), node("SequenceInsert", ["s", "scaled"], ["s_out"]),
         node("SequenceLength", ["s_out"], ["n"]), node("Less", ["n", "limit"], ["more"])],
        "grow", [value("i", I64, []), value("c", BOOL, []), sequence("s", F32)], [value("more", BOOL, []), sequence("s_out", F32)])
    square = helper.make_graph([node("Add", ["e", "bias"], ["a"]), node("Mul", ["a", "a"], ["sq"]), node("Shape", ["e"], ["sh"])], "square",
                               [value("e", F32, None), value("bias", F32, None)], [value("sq", F32, None), value("sh", I64, None)])
    pick = [helper.make_graph([node("SequenceAt", ["s", at], [f"p{at}"])], at, [], [value(f"p{at}", F32, None)]) for at in ("zero", "one")]
    states = helper.make_graph([node("Add", ["sum", "xt"], ["sum_out"]), node("Identity", ["sum_out"], ["kept"])], "sums",
                               [value("sum", F32, [3]), value("xt", F32, [3])], [value("sum_out", F32, [3]), value("kept", F32, [3])])
    small = []
    for name, t in (("u4", TensorProto.UINT4), ("i4", TensorProto.INT4), ("u2", TensorProto.UINT2), ("i2", TensorProto.INT2)):
        turn = helper.make_graph([node("Cast", ["low"], ["f"], to=F32), node("Add", ["f", "by"], ["g"]), node("Cast", ["g"], ["out"], to=t)], name,
                                 [value("low", t, [3])], [value("out", t, [3])])
        data = rng.integers(0, 2, (5, 3)).astype(np.float32) - (name[0] == "i")
        small.append(Case(f"scanned_{name}", [node("Cast", ["x"], ["lows"], to=t), node("Scan", ["lows"], ["all"], body=turn, num_scan_inputs=1, scan_output_directions=[1]),
                                              node("Cast", ["all"], ["y"], to=F32)], [{"x": data, "by": np.float32(1)}], ["y"], expected=[[data[::-1] + 1]], opset=25))
    return small + [
        Case("made_and_read", [
            node("SequenceConstruct", ["x", "y"], ["s"]), node("SequenceAt", ["s", "one"], ["b"]), node("SequenceErase", ["s", "zero"], ["t"]),
            node("SequenceInsert", ["t", "x"], ["u"]), node("ConcatFromSequence", ["u"], ["z"], axis=1), node("Relu", ["b"], ["r"]),
            node("SequenceLength", ["u"], ["n"])], [{"x": x, "y": y}, {"x": -x, "y": y}], [sequence("u", F32), "z", "r", "n"],
            constants=[("zero", np.int64(0)), ("one", np.int64(1))]),
        Case("split_and_joined", [
            node("SplitToSequence", ["x", "parts"], ["s"], axis=1), node("ConcatFromSequence", ["s"], ["z"], axis=1),
            node("SplitToSequence", ["x"], ["rows"], axis=0, keepdims=0), node("ConcatFromSequence", ["rows"], ["w"], axis=0, new_axis=1)],
            [{"x": x, "parts": np.array(p, np.int64)} for p in ([1, 2], [3, 0], [2, 1])], [sequence("s", F32), "z", sequence("rows", F32), "w"]),
        Case("carried_by_a_loop", [
            node("SequenceEmpty", [], ["none"]), node("Loop", ["trips", "", "none"], ["all"], body=body),
            node("ConcatFromSequence", ["all"], ["z"], axis=0)],
            [{"row": x, "factor": np.float32(f), "trips": np.int64(t), "limit": np.int64(m)} for f, t, m in ((2, 5, 99), (3, 9, 4), (2, 1, 1))],
            [sequence("all", F32), "z"]),
        Case("chosen_by_an_if", [
            node("SequenceConstruct", ["x", "y"], ["s"]), node("If", ["c"], ["picked"], then_branch=pick[0], else_branch=pick[1]),
            node("Neg", ["picked"], ["z"])], [{"x": x, "y": y, "c": np.bool_(c)} for c in (True, False, True)], ["z"],
            constants=[("zero", np.int64(0)), ("one", np.int64(1))]),
        Case("mapped", [node("SequenceMap", ["s", "b"], ["t", "shapes"], body=square)],
             [{"s": [x, y], "b": np.float32(1)}, {"s": [], "b": np.float32(1)}], [sequence("t", F32), sequence("shapes", I64)],
             inputs=[sequence("s", F32), value("b", F32, [])],
             expected=[[[(x + 1) ** 2, (y + 1) ** 2], [np.array(x.shape), np.array(y.shape)]], [[], []]]),
        Case("scanned_backwards", [node("Scan", ["start", "x"], ["last", "all"], body=states, num_scan_inputs=1, scan_input_directions=[1],
                                        scan_output_axes=[1])],
             [{"start": np.zeros(3, np.float32), "x": x}, {"start": np.ones(3, np.float32), "x": np.vstack([x, x])}], ["last", "all"],
             inputs=[value("start", F32, [3]), value("x", F32, ["t", 3])]),
        Case("strings_in_sequences", [
            node("SplitToSequence", ["words"], ["s"], axis=0), node("SequenceAt", ["s", "last"], ["w"]), node("ConcatFromSequence", ["s"], ["z"], axis=0)],
            [{"words": text("ä", "", "long enough")}], [sequence("s", STRING), "w", "z"], constants=[("last", np.int64(-1))]),
    ]


# ---- Strings --------------------------------------------------------------------------------------------------------------------


def moved() -> Case:
    """Every operator that moves elements, on strings."""
    nodes = [
        node("Reshape", ["x", "flat"], ["a"]), node("Transpose", ["x"], ["b"]), node("Concat", ["x", "x"], ["c"], axis=1),
        node("Gather", ["x", "picks"], ["d"], axis=1), node("Slice", ["x", "zero", "one"], ["e"]), node("Unsqueeze", ["x", "zero"], ["f"]),
        node("Squeeze", ["f", "zero"], ["g"]), node("Where", ["mask", "x", "other"], ["h"]), node("Equal", ["x", "other"], ["i"]),
        node("Expand", ["e", "wide"], ["j"]), node("Split", ["x"], ["k", "l"], num_outputs=2), node("Shape", ["c"], ["m"]),
        node("Identity", ["a"], ["n"]), node("Flatten", ["f"], ["o"])]
    x = text("a", "bb", "", "ü", "e e", "f", shape=(2, 3))
    mask = np.array([[True, False, True], [False, False, True]])
    e, k, l = x[0:1], x[0:1], x[1:2]
    expected = [x.ravel(), x.T, np.concatenate([x, x], 1), x[:, [2, 0]], e, x[None], x, np.where(mask, x, "f"), x == "f",
                np.broadcast_to(e, (2, 3)), k, l, np.array([2, 6]), x.ravel(), x[None].reshape(1, 6)]
    return Case("moved", nodes, [{"x": x, "mask": mask}] * 2, list("abcdefghijklmno"), expected=[expected] * 2, constants=[
        ("flat", np.array([-1])), ("picks", np.array([2, 0])), ("zero", np.array([0])), ("one", np.array([1])), ("wide", np.array([2, 3])),
        ("other", text("f", shape=()))])


PATTERNS = [r"a*?b", r"(?:ab|cd)+", r"[^a]", r".", r"\d{2,4}-\w+", r"[\]\-^a]", r"[a-c^]", r"é+", r"\.com|\.org", r"(?P<x>a)(b)?", r"a{2}", r"{",
            r"[[:alpha:]]+", r"\S+\s\S+", r"^a$", r"", r"[-^]", r"[^\n]", r"x{0,3}?y", r"\bfoo\b.*", r"[^-\]]+", r"a|b|"]
TEXTS = ["", "a", "b", "ab", "aaab", "abcd", "é", "éé", "12-x", "12345-x", "]", "-", "^", "\n", ".com", "xcom", "aa", "{", "abC", "ab cd", "c",
         "xxy", "xxxxy", "foo bar", "foobar", "a]b", "日本", "日"]


def strings() -> list[Case]:
    words = text("Hello World", "the", "  two  spaces ", "", "a,b,,c", "THE", "straße ÄÖÜ")
    normal = [Case(f"normalizer_{i}", [node("StringNormalizer", ["x"], ["y"], **a)], [{"x": words}, {"x": words[1:2]}], ["y"],
                   expected=[[f(words)], [f(words[1:2])]])
              for i, (a, f) in enumerate((
                  ({"case_change_action": "UPPER"}, lambda w: text(*(s.replace("ß", "\0").upper().replace("\0", "ß") for s in w))),
                  ({"case_change_action": "LOWER", "stopwords": ["The"]},
                   lambda w: text(*([s.lower() for s in w if s.lower() != "the"] or [""]))),
                  ({"stopwords": ["the", ""], "is_case_sensitive": 1}, lambda w: text(*([s for s in w if s not in ("the", "")] or [""])))))]
    full = [Case(f"pattern_{i}", [node("RegexFullMatch", ["x"], ["y"], pattern=p)], [{"x": text(*TEXTS)}], ["y"],
                 expected=[[np.array([bool(re.fullmatch(python_pattern(p), t)) for t in TEXTS])]]) for i, p in enumerate(PATTERNS)]
    cut = [Case(f"split_{i}", [node("StringSplit", ["x"], ["y", "n"], **a)], [{"x": words}, {"x": words[3:4]}], ["y", "n"],
                expected=[split(words, **a), split(words[3:4], **a)])
           for i, a in enumerate(({}, {"delimiter": ","}, {"maxsplit": 1}, {"delimiter": ",", "maxsplit": 2}, {"delimiter": "ß "}))]
    numbers = text("1", "-2.5", "1e3", "NaN", "INF", "-inf")
    return [
        moved(), *normal, *full, *cut,
        Case("joined", [node("StringConcat", ["x", "y"], ["z"])], [{"x": text("a", "", shape=(2, 1)), "y": text("é", "b", "")}], ["z"],
             expected=[[text("aé", "ab", "a", "é", "b", "", shape=(2, 3))]]),
        Case("numbers_of_words", [node("Cast", ["x"], ["f"], to=F32), node("Cast", ["f"], ["s"], to=STRING), node("Cast", ["s"], ["g"], to=F32)],
             [{"x": numbers}], ["f", "s", "g"],
             expected=[[np.array([1, -2.5, 1000, np.nan, np.inf, -np.inf], np.float32), text("1", "-2.5", "1000", "NaN", "INF", "-INF"),
                        np.array([1, -2.5, 1000, np.nan, np.inf, -np.inf], np.float32)]]),
        *[Case(f"ngrams_{mode}_{skips}", [node("TfIdfVectorizer", ["x"], ["y"], mode=mode, min_gram_length=1, max_gram_length=2,
                                               max_skip_count=skips, ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3, 4],
                                               pool_strings=["a", "b", "c", "a", "b", "b", "c"], weights=[1.0, 2.0, 3.0, 4.0, 5.0])],
               [{"x": text(*"abcabxba", shape=(2, 4))}], ["y"]) for mode in ("TF", "IDF", "TFIDF") for skips in (0, 2)],
    ]


def python_pattern(p: str) -> str:
    return p.replace("[[:alpha:]]", "[A-Za-z]").replace(r"{", r"\{") if p == "{" else re.sub(r"\\([dws])", r"(?a:\\\1)", p).replace(
        "[[:alpha:]]", "[A-Za-z]")


def split(words, delimiter=None, maxsplit=-1):
    pieces = [w.split(delimiter, maxsplit) for w in words]
    pieces = [[*p[:-1], p[-1].rstrip()] if p and not delimiter else p for p in pieces]
    most = max(map(len, pieces), default=0)
    return [np.array([p + [""] * (most - len(p)) for p in pieces], object).reshape(len(words), most), np.array([len(p) for p in pieces])]


# ---- ai.onnx.ml -------------------------------------------------------------------------------------------------------------------


def classical() -> list[Case]:
    x = rng.standard_normal((9, 3)).astype(np.float32)
    feeds = [{"x": x}, {"x": x[:1]}]
    cases = []

    def add(name, n, outputs, these=feeds, **more):
        inputs = [value(k, STRING if a.dtype == object else helper.np_dtype_to_tensor_dtype(a.dtype), ["n", *a.shape[1:]])
                  for k, a in these[0].items()]
        cases.append(Case(name, [n], these, outputs, inputs=inputs, **more))

    for post in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        for classes in (1, 3):
            labels = {"classlabels_strings": ["no", "yes", "so"][:max(classes, 2)]} if classes == 1 else {"classlabels_ints": [5, 7, 9]}
            add(f"linear_{post}_{classes}".lower(),
                ml("LinearClassifier", ["x"], ["y", "z"], coefficients=rng.standard_normal(3 * classes).tolist(),
                   intercepts=rng.standard_normal(classes).tolist(), post_transform=post, multi_class=int(classes > 1), **labels), ["y", "z"])
        for kind, ids, weights, labels, base in (
                ("one", [0, 0, 0], [0.1, 0.6, 0.7], [5, 7], []), ("base", [0, 0, 0], [0.1, 0.6, 0.7], [5, 7], [0.25]),
                ("mixed", [0, 0, 0], [-0.4, 0.6, 0.7], [5, 7], []), ("mixed_base", [0, 0, 0], [-0.4, 0.6, 0.7], [5, 7], [0.25]),
                ("second", [1, 1, 1], [0.1, 0.6, 0.7], [5, 7], []), ("three", [0, 2, 1], [0.1, 0.6, -0.7], [5, 7, 9], [0.25, -0.5, 1.0])):
            add(f"tree_{post}_{kind}".lower(),
                ml("TreeEnsembleClassifier", ["x"], ["y", "z"], **TREE, class_treeids=[0, 0, 0], class_nodeids=[2, 3, 4], class_ids=ids,
                   class_weights=weights, classlabels_int64s=labels, post_transform=post, **({"base_values": base} if base else {})), ["y", "z"])
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        add(f"regressor_{aggregate}".lower(), ml("TreeEnsembleRegressor", ["x"], ["y"], **TREE, target_treeids=[0, 0, 0], target_nodeids=[2, 3, 4],
            target_ids=[0, 0, 0], target_weights=[1.5, -2.0, 3.0], n_targets=1, aggregate_function=aggregate, base_values=[0.5]), ["y"])
    for norm in ("MAX", "L1", "L2"):
        add(f"normalizer_{norm}".lower(), ml("Normalizer", ["x"], ["y"], norm=norm), ["y"], expected=[[normalized(f["x"], norm)] for f in feeds])
    add("linear_regressor", ml("LinearRegressor", ["x"], ["y"], coefficients=rng.standard_normal(6).tolist(), intercepts=[1.0, 2.0], targets=2), ["y"])
    for kind, more in (("LINEAR", {}), ("POLY", {"one_class": 0}), ("RBF", {}), ("SIGMOID", {}), ("RBF", {"one_class": 1})):
        add(f"svm_{kind}_{len(more)}{more.get('one_class', 0)}".lower(),
            ml("SVMRegressor", ["x"], ["y"], kernel_type=kind, kernel_params=[0.4, 0.5, 3.0], n_supports=3,
               support_vectors=rng.standard_normal(9).tolist(), coefficients=[0.5, -1.5, 0.7], rho=[0.25], **more), ["y"])
    for classes, per_class in ((2, [2, 1]), (3, [1, 2, 1])):
        vectors, pairs = sum(per_class), classes * (classes - 1) // 2
        for name, more in (("sums", {}), ("logistic", {"post_transform": "LOGISTIC"}), ("softmax", {"post_transform": "SOFTMAX"}),
                           ("chances", {"prob_a": [-1.5] * pairs, "prob_b": [0.2] * pairs})):
            if name == "softmax" and classes == 2:  # onnxruntime's is not that of the two scores
                continue
            add(f"svc_{name}_{classes}",
                ml("SVMClassifier", ["x"], ["y", "z"], kernel_type="RBF", kernel_params=[0.4, 0.5, 3.0], vectors_per_class=per_class,
                   support_vectors=rng.standard_normal(3 * vectors).tolist(), coefficients=rng.standard_normal(vectors * (classes - 1)).tolist(),
                   rho=rng.standard_normal(pairs).tolist(), classlabels_strings=["no", "yes", "so"][:classes], **more), ["y", "z"])
    add("scaler", ml("Scaler", ["x"], ["y"], offset=[1.0, 2.0, 3.0], scale=[0.5, 1.5, -1.0]), ["y"])
    add("extractor", ml("ArrayFeatureExtractor", ["x", "at"], ["y"]), ["y"], constants=[("at", np.array([2, 0]))])
    words = [{"x": text("b", "a", "?", "b")}, {"x": text("a")}]
    add("encoder", ml("LabelEncoder", ["x"], ["y"], keys_strings=["a", "b"], values_floats=[0.5, 1.5], default_float=-1.0), ["y"], words)
    add("mapper", ml("CategoryMapper", ["x"], ["y"], cats_strings=["a", "b"], cats_int64s=[3, 4]), ["y"], words)
    add("one_hot", ml("OneHotEncoder", ["x"], ["y"], cats_strings=["a", "b"]), ["y"], words)
    zipped = helper.make_value_info("z", helper.make_sequence_type_proto(
        helper.make_map_type_proto(STRING, helper.make_tensor_type_proto(F32, None))))
    add("zip_map", ml("ZipMap", ["x"], ["z"], classlabels_strings=["p", "q", "r"]), [zipped])
    return cases


TREE = {"nodes_treeids": [0] * 5, "nodes_nodeids": [0, 1, 2, 3, 4], "nodes_featureids": [0, 2, 0, 0, 0], "nodes_values": [0.3, -0.2, 0.0, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF"], "nodes_truenodeids": [1, 3, 0, 0, 0],
        "nodes_falsenodeids": [2, 4, 0, 0, 0], "nodes_missing_value_tracks_true": [0] * 5, "nodes_hitrates": [1.0] * 5}


def normalized(x, norm):
    size = {"MAX": np.abs(x).max, "L1": np.abs(x).sum, "L2": lambda **k: np.sqrt((x ** 2).sum(**k))}[norm](axis=1, keepdims=True)
    return x / size


# ---- The runs ---------------------------------------------------------------------------------------------------------------------


def run(folder: Path, label: str, provider: str, names: list[str]) -> None:
    done = subprocess.run([ORTC, "test", str(folder), "--json", "--provider", provider], capture_output=True, text=True, timeout=300)
    found = {Path(c["name"]).name: c for c in json.loads(done.stdout)["cases"]} if done.returncode in (0, 1) else {}
    for name in names:
        check(f"{label}{name} on {provider}", lambda: None if found.get(name, {}).get("result") == "passed" else str(found.get(name) or done.stderr))


def optimized(case: Path, target: Path) -> str | None:
    target.mkdir(parents=True)
    done = subprocess.run([ORTC, "optimize", str(case / "model.onnx"), "-o", str(target / "model.onnx"), "--no-check"],
                          capture_output=True, text=True, timeout=300)
    if done.returncode:
        return done.stderr
    try:  # outputs whose rank nobody knows are wrong to the checker
        onnx.checker.check_model(str(case / "model.onnx"))
    except onnx.checker.ValidationError:
        pass
    else:
        onnx.checker.check_model(str(target / "model.onnx"))
    for other in case.iterdir():
        if other.name != "model.onnx":
            other.rename(target / other.name)
    return None


def main() -> int:
    cases = [*sequences(), *strings(), *classical()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written = [c.name for c in cases if check(f"{c.name}, what is expected", lambda: c.write(folder / "cases"))]
        for provider in ("ref", "cpu"):
            run(folder / "cases", "", provider, written)
        good = [n for n in written if check(f"optimize {n}", lambda: optimized(folder / "cases" / n, folder / "optimized" / n))]
        run(folder / "optimized", "optimized ", "ref", good)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
