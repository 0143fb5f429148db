"""The models that must run before the interfaces are frozen. Each breaks one assumption that runtimes make.

A line for each: a function that returns a Model (model.py). test_models.py runs them all.
"""

from __future__ import annotations

from detector import detector, detector_opset_11
from digits import digits
from growing_loop import growing_loop
from int4 import int4
from pointwise import pointwise
from scan8 import scan8
from sklearn_pipeline import sklearn_pipeline
from transformers import bert, bert_opset_11, decoder
from value_shapes import value_shapes

MODELS = (
    digits,             # 1  a convolutional network: fusion, layouts
    bert,               # 2  batch and length are symbols, the exporter's decomposed form: raising
    bert_opset_11,      #    the same as an older exporter writes it
    decoder,            # 3  a cache for keys and values, here as inputs and outputs
    detector,           # 4  NonZero, NonMaxSuppression, Gather, TopK, If: late extents, segments
    detector_opset_11,  #    the same as an older exporter writes it
    growing_loop,       # 5  Loop with a growing Concat and a scan output: child plans
    sklearn_pipeline,   # 6  strings, label encoders, trees, ZipMap: values that are not tensors
    int4,               # 7  QDQ with four-bit weights, per channel and in blocks: elements below a byte
    value_shapes,       # 8  Reshape by an input's value, Range, Expand, random operators: the plan's key
    pointwise,          # 9  chains and diamonds of elementwise operators: groups as programs
    scan8,              # 10 Scan of version 8, with lengths: a form that became others
)
