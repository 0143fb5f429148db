#!/usr/bin/env python3
"""Runs the code of the documentation, page by page, in order. Every block is fenced, and says what it is:

    ```sh [fails=N]    bash -e, which must end with 0, or with N
    ```c   ```c++      a whole program, built against the library of the build tree, and run
    ```c file=NAME     a file for the blocks that follow; compiled as one of the source tree if it is a .c
    ```LANGUAGE file=NAME   the same of another kind
    ```python onnx     a program for the tests' Python, which has the package onnx
    ```python          on docs/python.md alone: run by tests/python/package_docs.py, which has the package ortc
    ```text            lines that stand, in this order, in what the block before it printed
    ```ANY skip=WHY    it is not run here: it installs, rebuilds, needs a gpu, is a fragment

A page's blocks share a folder that holds what docs/guide/README.md says and looks like a checkout: `build`, `models`,
`examples`, `include`, `kernels/common`.
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
count = {"passed": 0, "failed": 0, "skipped": 0}
environment = os.environ | {"PATH": f"{build}:{os.environ['PATH']}", "ORTC_PYTHON": sys.executable, "LD_LIBRARY_PATH": str(build)}
for name in ("NO_COLOR", "ORTC_LOG"):
    environment.pop(name, None)


def run(words: list, folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run([str(w) for w in words], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120)  # fmt: skip


WHY = {"installs", "rebuilds", "gpu", "fragment"}
PAGES = ["README.md", "CONTRIBUTING.md", "docs/guide/*.md", "docs/python.md", "docs/add-*.md", "docs/performance.md"]


def compile_in_tree(file: Path, folder: Path) -> str | None:
    """As Meson would compile it; nothing is linked."""
    vector = ["-fwrapv", "-DORTC_ISA=scalar", '-DORTC_ISA_HEADER="kernels/common/vector/vec_scalar.h"'] if file.name.endswith("_vec.c") else []
    r = run([*os.environ.get("CC", "cc").split(), "-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function",
             "-Wno-unused-parameter", "-Wno-missing-field-initializers", *vector, f"-I{folder}", f"-I{source}", f"-I{build}", f"-I{source}/include",
             "-include", "ortc/op.h", file], folder)  # fmt: skip
    return r.stdout[-900:] or "it does not compile" if r.returncode else None


def execute(kind: str, text: str, folder: Path) -> tuple[str, str | None]:
    """What a block printed, and what is wrong."""
    words = kind.split()
    options = dict(w.split("=", 1) for w in words[1:] if "=" in w)
    if "skip" in options:
        return "", None if options["skip"] in WHY else f"no reason: {options['skip']!r}"
    if "file" in options:
        file = folder / options["file"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return "", compile_in_tree(file, folder) if file.suffix == ".c" else None
    if words[0] == "sh":
        wanted = int(options.get("fails", 0))
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
    for name in ("models", "examples", "include", "kernels/common"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(source / name)
    (folder / "build").mkdir()
    for path in [p for p in build.iterdir() if p.name not in ("venv", "mine")]:
        (folder / "build" / path.name).symlink_to(path)
    (folder / "build" / "venv").symlink_to(sys.prefix)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Relu6", ["x"], ["y"], domain="test.domain")], "custom", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("test.domain", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), folder / "custom.onnx")


with tempfile.TemporaryDirectory(prefix="ortc-docs-") as temporary:
    made = Path(temporary) / "made"
    subprocess.run([sys.executable, source / "examples" / "make_models.py", made], check=True)
    for page in [p for pattern in PAGES for p in sorted(source.glob(pattern))]:
        folder = Path(temporary) / str(page.relative_to(source)).replace("/", "-")
        folder.mkdir()
        prepare(folder, made)
        text, printed = page.read_text(), ""
        for block in FENCE.finditer(text):
            kind, line = block[1].strip(), text.count("\n", 0, block.start()) + 1
            if kind == "python" and page.name == "python.md":
                continue
            if kind == "text":
                why = missing(block[2], printed)
            else:
                printed, why = execute(kind, block[2], folder)
            count["failed" if why else "skipped" if "skip=" in kind else "passed"] += 1
            if why:
                print(f"FAIL {page.relative_to(source)}:{line}: {why}", flush=True)
        plain = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
        for block in re.finditer(r"\n\n( {4}\S[^\n]*)", plain):
            count["failed"] += 1
            print(f"FAIL {page.relative_to(source)}:{plain.count(chr(10), 0, block.start()) + 3}: code that is not fenced is not run: {block[1][:60]!r}")
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", plain):
            good = (page.parent / link).exists()
            count["passed" if good else "failed"] += 1
            if not good:
                print(f"FAIL {page.relative_to(source)}: there is no {link}")

print(", ".join(f"{n} {word}" for word, n in count.items()))
sys.exit(1 if count["failed"] else 0)
