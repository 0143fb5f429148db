#!/usr/bin/env python3
"""GreedySearch, BeamSearch and Sampling of com.microsoft against onnxruntime: test_search.py ORTC.

Decoders are one layer of a GPT-2, and of a T5 with its encoder, with weights from a seed, of which the table of words belongs to the
graph around them. What Sampling draws is compared with the distribution.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import check
from oracle import Case, compare, helper, np
from onnx import TensorProto, numpy_helper

rng = np.random.default_rng(11)
f32, i32 = np.float32, np.int32
F, I, WORDS, WIDTH, HEADS = TensorProto.FLOAT, TensorProto.INT32, 17, 16, 2
SIZE = WIDTH // HEADS
ROOM = [("past_sequence_length", I, [1]), ("beam_width", I, [1]), ("cache_indirection", I, ["lines", "beams", "max"])]


class Graph:
    """Nodes and weights in the making."""

    def __init__(self, tag: str):
        self.tag, self.nodes, self.weights = tag, [], []

    def put(self, op: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes):
        names = [f"{self.tag}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def weight(self, array: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(array, f"{self.tag}w{len(self.weights)}"))
        return self.weights[-1].name

    def linear(self, x: str, rows: int, columns: int, scale: float) -> str:
        return self.put("MatMul", x, self.weight((rng.standard_normal((rows, columns)) * scale).astype(f32)))

    def ints(self, *values: int) -> str:
        return self.weight(np.array(values, np.int64))

    def graph(self, inputs, outputs):
        """outputs: (value, name, type, shape)"""
        nodes = self.nodes + [helper.make_node("Identity", [v], [n]) for v, n, _, _ in outputs]
        return helper.make_graph(nodes, self.tag, [helper.make_tensor_value_info(*i) for i in inputs],
                                 [helper.make_tensor_value_info(n, t, s) for _, n, t, s in outputs], self.weights)  # fmt: skip


def gpt(tag: str = "d", seed: int = 3, shared: int = 0):
    """shared: the present is written into the past's buffer, of which so many inputs tell; with 3 it is for one new token."""
    global rng
    rng = np.random.default_rng(seed)
    g = Graph(tag)
    words = g.weight(rng.standard_normal((WORDS, WIDTH)).astype(f32))
    places = g.weight((rng.standard_normal((40, WIDTH)) * 0.7).astype(f32))
    x = g.put("Add", g.put("Gather", words, "input_ids"), g.put("Gather", places, "position_ids"))
    qkv, bias = (g.weight((rng.standard_normal(s) * 0.4).astype(f32)) for s in ((WIDTH, 3 * WIDTH), (3 * WIDTH,)))
    if shared == 3:
        parts = g.put("Split", "past_0", axis=0, outputs=2)
        old = [g.put("Squeeze", p, g.ints(0)) for p in parts]
        made = g.put("Split", g.put("MatMul", x, qkv), axis=2, outputs=3)
        a, *new = g.put("DecoderMaskedMultiHeadAttention", *made, "attention_mask", "", *old, "past_sequence_length", "beam_width", "cache_indirection", bias, outputs=3,
                        domain="com.microsoft", num_heads=HEADS, past_present_share_buffer=1)  # fmt: skip
        present = g.put("Concat", *(g.put("Unsqueeze", p, g.ints(0)) for p in new), axis=0)
    else:
        more = ("", "past_sequence_length") if shared else ()
        a, present = g.put("Attention", x, qkv, bias, "attention_mask", "past_0", *more, outputs=2, domain="com.microsoft", num_heads=HEADS, unidirectional=1,
                           past_present_share_buffer=shared)  # fmt: skip
    logits = g.linear(g.put("Tanh", g.put("Add", x, a)), WIDTH, WORDS, 1.0)
    past = [2, "rows", HEADS, "past", SIZE]
    return g.graph([("input_ids", I, ["rows", "new"]), ("position_ids", I, ["rows", "new"]), ("attention_mask", I, ["rows", "all"]), ("past_0", F, past),
                    *ROOM[:shared]],
                   [(logits, "logits", F, ["rows", "new", WORDS]), (present, "present_0", F, [2, "rows", HEADS, "max" if shared else "all", SIZE])])  # fmt: skip


def t5(first: bool = True, hidden: bool = True, speech: bool = False, shared: int = 0, tells: bool = False):
    """An encoder, which makes the first token's scores too, where `first`, and a decoder, which takes hidden states, where `hidden`. As
    Whisper's, where `speech`: the encoder takes features, and there are no masks. shared: how many inputs tell of buffers that the presents
    are written into; tells: the decoder has one output more, its scores of what the encoder said."""
    global rng
    rng = np.random.default_rng(5)
    table = rng.standard_normal((WORDS, WIDTH)).astype(f32)
    scales = {n: (rng.standard_normal((WIDTH, WIDTH)) * 0.5).astype(f32) for n in ("q", "k", "v", "cq", "ck", "cv", "h")}
    out = rng.standard_normal((WIDTH, WORDS)).astype(f32)

    def heads(g, x, w):
        return g.put("Transpose", g.put("Reshape", g.put("MatMul", x, g.weight(scales[w])), g.ints(0, 0, HEADS, SIZE)), perm=[0, 2, 1, 3])

    def attend(g, q, k, v, more=None, seen=None):
        scores = g.put("MatMul", q, g.put("Transpose", k, perm=[0, 1, 3, 2]))
        if seen is not None:
            seen.append(scores)
        mixed = g.put("MatMul", g.put("Softmax", scores if more is None else g.put("Add", scores, more), axis=-1), v)
        return g.put("Reshape", g.put("Transpose", mixed, perm=[0, 2, 1, 3]), g.ints(0, 0, WIDTH))

    def decode(g, ids, past, crossed, shared=0, seen=None):
        x = g.put("Gather", g.weight(table), ids)
        if shared:
            flat = [g.put("MatMul", x, g.weight(scales[n])) for n in "qkv"]
            op, kept = ("DecoderMaskedMultiHeadAttention", {"past_present_share_buffer": 1}) if shared == 3 else ("MultiHeadAttention", {})
            ports = [*flat, "", "", *past, "past_sequence_length", "beam_width", "cache_indirection"] if shared == 3 else [*flat, "", "", "", *past, "past_sequence_length"]
            mixed, *own = g.put(op, *ports, outputs=3, domain="com.microsoft", num_heads=HEADS, scale=1.0, **kept)
            a = g.put("Add", x, mixed)
        else:
            own = [heads(g, x, n) if p is None else g.put("Concat", p, heads(g, x, n), axis=2) for n, p in zip("kv", past)]
            a = g.put("Add", x, attend(g, heads(g, x, "q"), *own))
        closed = None
        if not speech:
            mask = g.put("Unsqueeze", g.put("Cast", "encoder_attention_mask", to=F), g.ints(1, 2))
            closed = g.put("Mul", g.put("Sub", mask, g.weight(np.array(1, f32))), g.weight(np.array(1e4, f32)))
        c = g.put("Add", a, attend(g, heads(g, a, "cq"), *crossed, closed, seen))
        return g.put("MatMul", g.put("Tanh", c), g.weight(out)), own

    e = Graph("e")
    heard = e.put("Transpose", "encoder_input_ids", perm=[0, 2, 1]) if speech else e.put("Gather", e.weight(table), "encoder_input_ids")
    h = e.put("Tanh", e.put("MatMul", heard, e.weight(scales["h"])))
    crossed = [heads(e, h, "ck"), heads(e, h, "cv")]
    line, keys = ["batch", "sent"], ["batch", HEADS, "sent", SIZE]
    inputs = [("encoder_input_ids", F, ["batch", WIDTH, "sent"])] if speech else [("encoder_input_ids", I, line), ("encoder_attention_mask", I, line)]
    outputs = []
    if first:
        logits, own = decode(e, "decoder_input_ids", (None, None), crossed)
        inputs.append(("decoder_input_ids", I, ["batch", "new"]))
        outputs = [(logits, "logits", F, ["batch", "new", WORDS]), (h, "encoder_hidden_states", F, ["batch", "sent", WIDTH]),
                   (own[0], "present_key_self_0", F, ["batch", HEADS, "new", SIZE]), (own[1], "present_value_self_0", F, ["batch", HEADS, "new", SIZE])]  # fmt: skip
    outputs += [(crossed[0], "present_key_cross_0", F, keys), (crossed[1], "present_value_cross_0", F, keys)]
    encoder = e.graph(inputs, outputs)
    d = Graph("d")
    seen = []
    logits, own = decode(d, "input_ids", ("past_key_self_0", "past_value_self_0"), ("past_key_cross_0", "past_value_cross_0"), shared, seen)
    if hidden:  # a model that is told what the encoder said; nothing is added to the scores
        none = d.put("Mul", d.put("ReduceMean", "encoder_hidden_states", axes=[1, 2], keepdims=1), d.weight(np.array(0, f32)))
        logits = d.put("Add", logits, none)
    past = [[n, F, ["rows", HEADS, "past" if "self" in n else "sent", SIZE]] for n in ("past_key_self_0", "past_value_self_0", "past_key_cross_0", "past_value_cross_0")]
    states = [("encoder_hidden_states", F, ["rows", "sent", WIDTH])] if hidden else []
    masks = [] if speech else [("encoder_attention_mask", I, ["rows", "sent"])]
    decoder = d.graph([("input_ids", I, ["rows", 1]), *masks, *states, *past, *ROOM[:shared]],
                      [(logits, "logits", F, ["rows", 1, WORDS]), (own[0], "present_key_self_0", F, ["rows", HEADS, "all", SIZE]),
                       (own[1], "present_value_self_0", F, ["rows", HEADS, "all", SIZE]),
                       *([(seen[0], "output_cross_qk_0", F, ["rows", HEADS, 1, "sent"])] if tells else [])])  # fmt: skip
    return {"encoder": encoder, "decoder": decoder, "model_type": 1 + speech, "decoder_start_token_id": 2}


def n(value, t=i32):
    return np.array([value], t)


TOKENS = {"one": np.array([[3, 5, 7]], i32), "two": np.array([[3, 5, 7, 4], [0, 0, 9, 8]], i32)}
NUMBERS = {"max_length": 12, "min_length": 0, "num_beams": 3, "num_return_sequences": 2, "length_penalty": 1.0, "repetition_penalty": None}


def greedy():
    def case(name, tokens="two", max_length=12, more=None, **attributes):
        inputs = {"input_ids": TOKENS[tokens], "max_length": n(max_length), "min_length": None, "repetition_penalty": None, "vocab_mask": None,
                  "prefix_vocab_mask": None, "attention_mask": None} | (more or {})  # fmt: skip
        return Case(f"greedy_{name}", "GreedySearch", inputs, decoder=attributes.pop("decoder", gpt()),
                    **({"eos_token_id": 1, "pad_token_id": 0} | attributes))  # fmt: skip

    yield case("one", "one")
    yield case("two")
    for end in (4, 6, 11, 13):
        yield case(f"ends_{end}", eos_token_id=end)
    yield case("shortest", more={"min_length": n(8)}, eos_token_id=6)
    yield case("punished", more={"repetition_penalty": n(1.7, f32)})
    yield case("ngrams", no_repeat_ngram_size=2)
    yield case("single", no_repeat_ngram_size=1)
    some = (np.arange(WORDS) % 3 != 0).astype(i32)
    yield case("words", more={"vocab_mask": some})
    yield case("first_words", more={"prefix_vocab_mask": np.stack([some, 1 - some])})
    yield case("masked", more={"attention_mask": np.array([[0, 1, 1, 1], [0, 0, 1, 1]], i32)})
    yield case("first_run", init_decoder=gpt("i", 4))
    yield case("vocabulary", vocab_size=WORDS)
    for tokens in TOKENS:  # onnxruntime's CPU has no Attention in a buffer: without one the same words come
        same = case("same", tokens, more={"min_length": n(6)})
        made = case(f"buffers_{tokens}", tokens, more={"min_length": n(6)}, decoder=gpt(shared=1))
        made.expected = same.answers()
        yield made


def beams():
    def case(name, tokens="two", outputs=3, more=None, model=None, **attributes):
        numbers = NUMBERS | {k: attributes.pop(k) for k in list(attributes) if k in NUMBERS}
        inputs = {"input_ids": TOKENS[tokens]} | {k: None if v is None else n(v, f32 if "penalty" in k else i32) for k, v in numbers.items()}
        inputs |= {"vocab_mask": None, "prefix_vocab_mask": None, "attention_mask": None} | (more or {})
        return Case(f"beams_{name}", attributes.pop("op", "BeamSearch"), inputs, outputs=outputs, atol=1e-4, **(model or {"decoder": gpt()}),
                    **({"eos_token_id": 1, "pad_token_id": 0} | attributes))  # fmt: skip

    yield case("one", "one", 2)
    yield case("two", "two", 2)
    yield case("scores", "two", 3, eos_token_id=16, early_stopping=0, max_length=7)
    for end in (4, 6, 11, 13):
        for early in (0, 1):
            yield case(f"ends_{end}_{early}", "one" if not early else "two", 2, eos_token_id=end, early_stopping=early, max_length=16)
    for penalty in (0.5, 2.0):
        yield case(f"lengths_{penalty}", "one", 2, eos_token_id=6, length_penalty=penalty)
    yield case("single", "two", 2, num_beams=1, num_return_sequences=1)
    yield case("many", "one", 2, num_beams=6, num_return_sequences=6, eos_token_id=6)
    yield case("shortest", "one", 2, min_length=9, eos_token_id=6)
    yield case("punished", "two", 2, repetition_penalty=1.7)
    yield case("ngrams", "two", 2, no_repeat_ngram_size=2)
    some = (np.arange(WORDS) % 3 != 0).astype(i32)
    yield case("words", "two", 2, more={"vocab_mask": some})
    yield case("first_words", "two", 2, more={"prefix_vocab_mask": np.stack([some, 1 - some])})
    yield case("masked", "two", 2, more={"attention_mask": np.array([[0, 1, 1, 1], [0, 0, 1, 1]], i32)})
    yield case("first_run", "two", 2, model={"decoder": gpt(), "init_decoder": gpt("i", 4)})
    sound = np.random.default_rng(2).standard_normal((2, WIDTH, 9)).astype(f32)
    for hidden in (True, False):
        for name, told in (("", None), ("_told", np.array([[2, 5], [2, 9]], i32))):
            yield case(f"whisper_{int(hidden)}{name}", "two", 2, model=t5(True, hidden, True), more={"input_ids": sound, "decoder_input_ids": told})
            tokens = {k: i for i, k in enumerate(("translate_token_id", "transcribe_token_id", "start_of_lm_token_id", "no_timestamps_token_id", "no_speech_token_id",
                                                  "beginning_timestamp_token_id"))}  # fmt: skip
            heard = {"input_ids": sound, "decoder_input_ids": told, "logits_processor": n(0), "cross_qk_layer_head": None, "extra_decoding_ids": None, "temperature": n(0.7, f32)}
            yield case(f"whisper_own_{int(hidden)}{name}", "two", 2, model=t5(True, hidden, True), more=heard, op="WhisperBeamSearch", **tokens)
    ids = {k: 6 + i for i, k in enumerate(("translate_token_id", "transcribe_token_id", "start_of_lm_token_id", "no_timestamps_token_id", "beginning_timestamp_token_id"))}
    for seed in (4, 5, 6, 7, 9, 12, 13, 14, 16):
        sound = np.random.default_rng(seed).standard_normal((1, WIDTH, 9)).astype(f32)
        yield case(f"times_{seed}", "two", 2, model=t5(True, True, True) | {"decoder_start_token_id": 5}, op="WhisperBeamSearch", eos_token_id=4, num_beams=2,
                   more={"input_ids": sound, "decoder_input_ids": None, "logits_processor": n(1)}, no_speech_token_id=7, **ids)
    # pasts in buffers, which rows are moved in or which are told of beams; onnxruntime's CPU has unwritten memory for the latter: without
    # buffers the same sentences come
    def buffered(name, shared, model, **how):
        made = case(name, model=shared, **how)
        made.expected = case("same", model=model, **how).answers()
        return made

    for tokens in TOKENS:
        for end, lasts in ((1, 0), (6, 9), (16, 0)):
            how = {"tokens": tokens, "outputs": 2, "eos_token_id": end, "min_length": lasts}
            yield buffered(f"buffers_{tokens}_{end}", {"decoder": gpt(shared=1)}, {"decoder": gpt()}, **how)
            yield buffered(f"buffers3_{tokens}_{end}", {"decoder": gpt(shared=3), "init_decoder": gpt("i", 3, 1)}, {"decoder": gpt()}, **how)
            for first, hidden in ((True, True), (True, False), (False, False)):
                for shared in (1, 3):
                    yield buffered(f"t5_{int(first)}{int(hidden)}_buffers{shared}_{tokens}_{end}", t5(first, hidden, shared=shared), t5(first, hidden), **how)
    yield from unspoken(case)
    for first, hidden in ((True, True), (True, False), (False, False)):
        model = t5(first, hidden)
        name = f"t5_{int(first)}{int(hidden)}"
        yield case(name, "two", 2, model=model)
        yield case(f"{name}_scores", "two", 3, model=model, eos_token_id=16, max_length=6)
        yield case(f"{name}_ends", "one", 2, model=model, eos_token_id=6, early_stopping=1)
        yield case(f"{name}_single", "two", 2, model=model, num_beams=1, num_return_sequences=1)
        yield case(f"{name}_masked", "two", 2, model=model, more={"attention_mask": np.array([[1, 1, 1, 0], [0, 1, 1, 1]], i32)})


def unspoken(case):
    """What WhisperBeamSearch gives besides sentences, or is told of them: of onnxruntime's providers CUDA's has it; numpy says it here."""
    sound = np.random.default_rng(2).standard_normal((2, WIDTH, 9)).astype(f32)
    asked = {"input_ids": sound, "decoder_input_ids": None, "logits_processor": n(0), "cross_qk_layer_head": None, "extra_decoding_ids": None, "temperature": n(1, f32)}
    model, how = t5(True, True, True), {"op": "WhisperBeamSearch", "no_speech_token_id": 6}
    plain = case("plain", more=asked, outputs=3, model=model, **how).answers()
    yield case("no_speech", more=asked, outputs=["y", "", "", "", "p"], model=model, expected=[plain[0], np.exp(plain[2][0, :, 0, 6])], **how)
    # forced words are those of a longer beginning, but for how many there may be; -1 forces none
    told = np.array([[2, 5], [2, 9]], i32)
    longer = case("longer", more=asked | {"decoder_input_ids": told}, model=model, **how).answers()[0]
    yield case("forced", more=asked | {"decoder_input_ids": told[:, :1], "extra_decoding_ids": told[:, 1:]}, outputs=["y"], model=model, expected=[longer], **how)
    yield case("not_forced", more=asked | {"extra_decoding_ids": np.array([[-1], [-1]], i32)}, outputs=["y"], model=model, expected=plain[:1], **how)
    # what is crossed: by the words that were said, once more
    rng = np.random.default_rng(5)
    table = rng.standard_normal((WORDS, WIDTH)).astype(f32)
    w = {k: (rng.standard_normal((WIDTH, WIDTH)) * 0.5).astype(f32) for k in ("q", "k", "v", "cq", "ck", "cv", "h")}
    split = lambda x: x.reshape(len(x), HEADS, SIZE).transpose(1, 0, 2)  # noqa: E731

    def crossed(line, words):
        """[heads, words, frames], of all but the first word, whose scores the encoder makes."""
        h = np.tanh(sound[line].T @ w["h"])
        keys = split(h @ w["ck"])
        x = table[words]
        q, k, v = (split(x @ w[m]) for m in "qkv")
        scores = q @ k.transpose(0, 2, 1) + np.triu(np.full((len(words),) * 2, -np.inf), 1)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        a = x + ((e / e.sum(-1, keepdims=True)) @ v).transpose(1, 0, 2).reshape(len(words), WIDTH)
        return (split(a @ w["cq"]) @ keys.transpose(0, 2, 1))[:, 1:]

    for shared in (0, 1, 3):
        for pairs in (None, np.array([[0, 1]], i32), np.array([[0, 1], [0, 0], [0, 1]], i32)):
            kind = t5(True, True, True, shared, True)
            words = case("words", more=asked, model=model, eos_token_id=16, **how).answers()[0]
            runs = words.shape[-1] - 2  # the last word is not given to the decoder
            heads = [0, 1] if pairs is None else pairs[:, 1]
            want = np.zeros((2, 2, len(heads), runs, 9), f32)
            for line in (0, 1):
                for sentence in (0, 1):
                    said = words[line, sentence].tolist()
                    while said and said[-1] == 0:
                        said.pop()  # padding
                    ended = len(said) < words.shape[-1]
                    many = len(said) - 1 if ended else runs
                    want[line, sentence, :, :many] = crossed(line, np.array(said if ended else said[:-1]))[heads][:, :many]
            yield case(f"crossed_{shared}_{0 if pairs is None else len(pairs)}", more=asked | {"cross_qk_layer_head": pairs}, outputs=["y", "", "", "qk"], model=kind,
                       decoder_output_cross_qk=1, eos_token_id=16, expected=[words, want], **how)  # fmt: skip


def drawn(folder: Path, provider: str, case: Case, seed: int = 3) -> np.ndarray:
    model, file = case.model(False, [np.zeros(0, i32)]), folder / "m.onnx"
    file.write_bytes(model.SerializeToString())
    np.savez(folder / "x.npz", **{k: v for k, v in case.feeds.items() if k != "seed"}, seed=n(seed))
    subprocess.run([sys.argv[1], "run", str(file), "-q", "--provider", provider, "-i", str(folder / "x.npz"), "-o", str(folder / "y.npz")], check=True, timeout=60)
    return np.load(folder / "y.npz")["y0"]


def sampling() -> None:
    """One token for each of many equal lines: how often each word comes is as often as onnxruntime's, and what top_p leaves out never."""
    lines = np.tile(TOKENS["one"], (6000, 1))
    some, odd = (np.arange(WORDS) % 3 != 0).astype(i32), np.tile((np.arange(WORDS) % 2).astype(i32), (6000, 1))
    for name, more, masks in (("plain", {"top_p": 1.0}, {}), ("most", {"top_p": 0.7, "min_tokens_to_keep": 1}, {}), ("custom", {"top_p": 0.7, "custom": 1}, {}),
                              ("few", {"top_p": 0.01, "min_tokens_to_keep": 3}, {}), ("one", {"top_p": 0.01, "custom": 1}, {}),
                              ("words", {"top_p": 0.9, "custom": 1}, {"vocab_mask": some}),
                              ("present", {"top_p": 1.0, "presence_penalty": 5.0}, {"presence_mask": odd})):  # fmt: skip
        inputs = {"input_ids": lines, "max_length": n(4), "min_length": n(0), "repetition_penalty": n(1, f32), "vocab_mask": None, "prefix_vocab_mask": None,
                  "attention_mask": None, "presence_mask": None, "seed": n(3)} | masks  # fmt: skip
        case = Case(name, "Sampling", inputs, decoder=gpt(), eos_token_id=1, pad_token_id=1, temperature=3.0, **more)

        def compared(provider: str) -> str:
            with tempfile.TemporaryDirectory() as base:
                mine, theirs = (np.bincount(y[:, 3], minlength=WORDS) / len(lines) for y in (drawn(Path(base), provider, case), case.answers()[0]))
                if masks.get("presence_mask") is not None:  # onnxruntime 1.31.1 takes it off the very first score alone
                    theirs = theirs * np.exp(-more["presence_penalty"] * odd[0])
                    theirs /= theirs.sum()
                away = np.abs(mine - theirs).sum() / 2
                return f"{away} away: {mine} and {theirs}" if away > 0.04 or ((mine > 0.002) != (theirs > 0.002))[np.maximum(mine, theirs) > 0.004].any() else ""

        for provider in ("ref", "cpu"):
            check(f"sampling {name} on {provider}", lambda provider=provider: compared(provider))
    with tempfile.TemporaryDirectory() as base:
        first, again, other = (drawn(Path(base), "cpu", case, seed) for seed in (3, 3, 4))
        check("a seed draws the same", lambda: "" if (first == again).all() else "it differs")
        check("another seed does not", lambda: "" if (first != other).any() else "it does")


if __name__ == "__main__":
    # Of a Whisper's encoder that says no words onnxruntime reads memory that it has not written: here that is 0 wherever it comes from
    ctypes.CDLL(None).mallopt(-6, 255)  # M_PERTURB: malloc gives bytes of ~255
    sampling()
    sys.exit(compare(case for family in (greedy, beams) for case in family()))
