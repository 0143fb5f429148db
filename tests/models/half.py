"""A model in f16, as a module that was made .half() is exported: weights, constants, inputs and outputs, and what Casts went to f32."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

F32, F16 = TensorProto.FLOAT, TensorProto.FLOAT16


def half_tensor(t: TensorProto) -> None:
    if t.data_type == F32:
        wide = np.clip(numpy_helper.to_array(t), -65504, 65504)
        t.CopyFrom(numpy_helper.from_array(wide.astype(np.float16), t.name))


def half(model: onnx.ModelProto) -> onnx.ModelProto:
    """Changes the model, and returns it. Resize's scales stay f32, as the standard says."""
    graph = model.graph
    scales = {name for n in graph.node if n.op_type == "Resize" for name in n.input[1:3]}
    for t in graph.initializer:
        if t.name not in scales:
            half_tensor(t)
    for n in graph.node:
        for a in n.attribute:
            if n.op_type == "Cast" and a.name == "to" and a.i == F32:
                a.i = F16
            elif a.type == onnx.AttributeProto.TENSOR:
                half_tensor(a.t)
    for info in [*graph.input, *graph.output, *graph.value_info]:
        if info.type.tensor_type.elem_type == F32:
            info.type.tensor_type.elem_type = F16
    return model
