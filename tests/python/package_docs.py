"""The Python of docs/python.md, block by block in one namespace: package_docs.py MODELS, in the environment that
test_package.py makes."""

import os
import re
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

models = Path(sys.argv[1]).resolve()
page = models.parent / "docs" / "python.md"
passed = failed = 0

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.symlink(models, "models")
    # A decoder whose cache grows along axis 2; its logits are sums over what it has read.
    ends = {"token": [1, 1, 1, 4], "past": [1, 1, "n", 4], "present": [1, 1, "all", 4], "logits": [1, 1, 4]}
    value = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in ends.items()}
    nodes = [helper.make_node("Concat", ["past", "token"], ["present"], axis=2),
             helper.make_node("ReduceSum", ["present", "axis"], ["logits"], keepdims=0)]  # fmt: skip
    graph = helper.make_graph(nodes, "decoder", [value["token"], value["past"]], [value["logits"], value["present"]],
                              [helper.make_tensor("axis", TensorProto.INT64, [1], [2])])  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), "decoder.onnx")
    names = {"tokens": [np.full((1, 1, 1, 4), i, np.float32) for i in range(5)]}
    text = page.read_text()
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S):
        line = text.count("\n", 0, block.start()) + 2
        try:
            exec(compile("\n" * (line - 1) + block[1], str(page), "exec"), names)
            passed += 1
        except Exception:
            failed += 1
            print(f"FAIL docs/python.md:{line}: {traceback.format_exc()}")
    wrong = None if names.get("logits", np.zeros(1)).sum() == 4 * (0 + 1 + 2 + 3 + 4) else names.get("logits")
    passed, failed = passed + (wrong is None), failed + (wrong is not None)
    if wrong is not None:
        print(f"FAIL the decoder's state: {wrong}")
    os.chdir("/")

print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
