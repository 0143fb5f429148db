#!/usr/bin/env python3
"""The counting that every result of check.sh goes through: tally.py on hand-made test logs."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tally import Count, count_test, count_tree

SYNTHESIS = "[\x1b[0;34m====\x1b[0m] Synthesis: Tested: \x1b[0;34m6\x1b[0m | Passing: 4 | Failing: 1 | Crashing: 1"

CASES = [
    ("plain line", {"result": "OK", "stdout": "ok a\n12 passed, 0 failed, 3 skipped\n"}, Count(12, 0, 3)),
    ("plain line without skips", {"result": "OK", "stdout": "12 passed, 0 failed"}, Count(12, 0, 0)),
    ("last line wins", {"result": "OK", "stdout": "1 passed, 0 failed\n2 passed, 0 failed\nbye\n"}, Count(2)),
    ("inside a sentence is no count", {"result": "OK", "stdout": "so 3 passed, 0 failed"}, Count(1)),
    ("Criterion, colours, on stderr", {"result": "FAIL", "stdout": "", "stderr": SYNTHESIS}, Count(4, 2)),
    ("counted failure but exit 0", {"result": "OK", "stdout": "1 passed, 2 failed"}, Count(1, 2)),
    ("exit status fails, nothing counted", {"result": "FAIL", "stdout": "boom"}, Count(0, 1)),
    ("exit status fails after good counts", {"result": "FAIL", "stdout": "5 passed, 0 failed"}, Count(5, 1)),
    ("timeout", {"result": "TIMEOUT", "stdout": "5 passed, 0 failed"}, Count(5, 1)),
    ("no line, exit 0", {"result": "OK"}, Count(1)),
    ("exit 77", {"result": "SKIP", "stdout": "no onnx\n0 passed, 0 failed"}, Count(0, 0, 1)),
    ("unexpected pass", {"result": "UNEXPECTEDPASS", "stdout": ""}, Count(0, 1)),
]


def main() -> int:
    failures = []
    for name, record, expected in CASES:
        if (got := count_test({"name": name, **record})) != expected:
            failures.append(f"{name}: expected {expected}, got {got}")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        if count_tree(tree)[0] != Count(failed=1):
            failures.append("a tree without a log must fail")
        (tree / "meson-logs").mkdir()
        log = tree / "meson-logs" / "testlog.json"
        log.write_text("")
        if count_tree(tree)[0] != Count(failed=1):
            failures.append("a tree without tests must fail")
        log.write_text("".join(json.dumps({"name": name, **record}) + "\n" for name, record, _ in CASES))
        expected = Count(*map(sum, zip(*(count for _, _, count in CASES))))
        if count_tree(tree)[0] != expected:
            failures.append(f"the tree's sum: expected {expected}, got {count_tree(tree)[0]}")
    print("\n".join(failures), end="\n" if failures else "")
    print(Count(len(CASES) + 3 - len(failures), len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
