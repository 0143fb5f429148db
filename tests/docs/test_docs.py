#!/usr/bin/env python3
"""Runs the code of the documentation: every fenced block of README.md and docs/guide, page by page, in order.

    ```sh [fails=N]   bash -e, which must end with 0, or with N
    ```c   ```c++     a whole program, built against the library of the build tree, and run
    ```python onnx    a program for the tests' Python, which has the package onnx
    ```text           lines that stand, in this order, in what the block before it printed

A page's blocks share a folder that holds what docs/guide/README.md says, `build`, and `models`.
usage: test_docs.py BUILD_DIR SOURCE_DIR
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import onnx
    from onnx import TensorProto, helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

build, source = (Path(a).resolve() for a in sys.argv[1:3])
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
count = {"passed": 0, "failed": 0}
environment = os.environ | {"PATH": f"{build}:{os.environ['PATH']}", "ORTC_PYTHON": sys.executable, "LD_LIBRARY_PATH": str(build)}
for name in ("NO_COLOR", "ORTC_LOG"):
    environment.pop(name, None)


def run(words: list, folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run([str(w) for w in words], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120)  # fmt: skip


def execute(kind: str, text: str, folder: Path) -> tuple[str, str | None]:
    """What a block printed, and what is wrong."""
    words = kind.split()
    if words[0] == "sh":
        wanted = int(dict(w.split("=") for w in words[1:]).get("fails", 0))
        r = run(["bash", "-e", "-c", text], folder)
        return r.stdout, None if r.returncode == wanted else f"expected code {wanted}, got {r.returncode}: {r.stdout[-600:]}"
    if words[0] in ("c", "c++"):
        (folder / f"program.{words[0]}").write_text(text)
        compiler = os.environ.get("CC", "cc").split() + ["-std=c11"] if words[0] == "c" else os.environ.get("CXX", "c++").split() + ["-std=c++17"]
        r = run([*compiler, "-x", words[0], "-Wall", "-Wextra", "-Werror", f"program.{words[0]}", f"-I{source}/include", f"-L{build}", "-lortc", "-o", "program"], folder)
        if r.returncode == 0:
            r = run([folder / "program"], folder)
        return r.stdout, r.stdout[-600:] or "it failed" if r.returncode else None
    if words == ["python", "onnx"]:
        r = run([sys.executable, "-c", text], folder)
        return r.stdout, r.stdout[-600:] if r.returncode else None
    return "", f"a block of a kind that is not known: {kind!r}"


def missing(text: str, printed: str) -> str | None:
    """The first line that does not stand behind those before it."""
    at = 0
    for line in text.splitlines():
        # Columns may be wider than on the page.
        found = re.compile(r"\s+".join(re.escape(w) for w in line.split())).search(printed, at)
        if not found:
            return f"expected {line!r} in {printed[-600:]!r}"
        at = found.end()
    return None


def prepare(folder: Path, made: Path) -> None:
    for path in [*made.iterdir(), source / "models" / "digits.onnx", source / "models" / "digits" / "labels.txt"]:
        shutil.copy(path, folder / path.name)
    shutil.copytree(source / "models" / "digits", folder / "digits")
    (folder / "models").symlink_to(source / "models")
    (folder / "examples").symlink_to(source / "examples")
    (folder / "build").symlink_to(build)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Relu6", ["x"], ["y"], domain="test.domain")], "custom", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("test.domain", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), folder / "custom.onnx")


with tempfile.TemporaryDirectory(prefix="ortc-docs-") as temporary:
    made = Path(temporary) / "made"
    subprocess.run([sys.executable, source / "examples" / "make_models.py", made], check=True)
    for page in [source / "README.md", *sorted((source / "docs" / "guide").glob("*.md"))]:
        folder = Path(temporary) / str(page.relative_to(source)).replace("/", "-")
        folder.mkdir()
        prepare(folder, made)
        text, printed = page.read_text(), ""
        for block in FENCE.finditer(text):
            kind, line = block[1].strip(), text.count("\n", 0, block.start()) + 1
            if kind == "text":
                why = missing(block[2], printed)
            else:
                printed, why = execute(kind, block[2], folder)
            count["failed" if why else "passed"] += 1
            if why:
                print(f"FAIL {page.relative_to(source)}:{line}: {why}", flush=True)
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            good = (page.parent / link).exists()
            count["passed" if good else "failed"] += 1
            if not good:
                print(f"FAIL {page.relative_to(source)}: there is no {link}")

print(f"{count['passed']} passed, {count['failed']} failed")
sys.exit(1 if count["failed"] else 0)
