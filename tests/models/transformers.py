"""Models 2 and 3 in the harness: BERT at several batches and lengths in one session, and the decoder with its caches untied, as inputs
and outputs. The rest of their stories (what is raised, tied caches) is told by test_bert.py and test_decoder.py.
"""

from __future__ import annotations

import make_bert
import make_decoder
import numpy as np
from model import Model


def bert() -> Model:
    feeds = [make_bert.feeds(batch, length, seed) for seed, (batch, length) in enumerate(((2, 7), (1, 1), (3, 16), (2, 7)))]
    return Model("bert", make_bert.model(), feeds, rtol=1e-4, atol=1e-5)


def bert_opset_11() -> Model:
    return Model("bert_opset_11", make_bert.model(11), [make_bert.feeds(2, 7), make_bert.feeds(1, 5)], rtol=1e-4, atol=1e-5)


def decoder() -> Model:
    rng = np.random.default_rng(3)
    shape = (1, make_decoder.HEADS, make_decoder.CAPACITY, make_decoder.DEPTH)
    feeds = []
    for at, n in ((0, 8), (8, 1), (40, 1)):
        caches = {f"past.{c}": rng.standard_normal(shape).astype(np.float32) for c in make_decoder.CACHES}
        positions = np.arange(at, at + n, dtype=np.int64)
        feeds.append({"ids": rng.integers(0, make_decoder.VOCABULARY, (1, n)), "positions": positions[None],
                      "write_indices": positions[:1], **caches})
    return Model("decoder", make_decoder.make(), feeds, rtol=1e-4, atol=1e-5)
