"""Writes next = h + x for test_wrapper.cpp, by hand: make_sum.py OUT.onnx."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from files import model, node, value_info  # noqa: E402

ends = [value_info(name, "f32", ("n",)) for name in ("h", "x", "next")]
Path(sys.argv[1]).write_bytes(model([node("Add", ["h", "x"], ["next"])], ends[:2], ends[2:]))
