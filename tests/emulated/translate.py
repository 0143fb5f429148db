#!/usr/bin/env python3
"""Turns a .cu of ours into C++ for the host: translate.py ROOT SOURCE OUT DEPFILE, or translate.py --tables OUT SOURCE... for the list
of kernel tables that C files define.

Headers of device code (.cuh) are put in place. Launches become calls, shared memory becomes static; emulated.h explains. Only what our own files use is understood.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def closing(text: str, at: int) -> int:
    """Behind the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i + 1
    raise SystemExit("a launch whose arguments do not end")


def arguments(text: str) -> list[str]:
    parts, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def translate(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)
    text = re.sub(r"extern\s+__shared__\s+(?:__align__\(\d+\)\s+)?([\w ]+?)\s*(\w+)\[\];", r"\1 *\2 = (\1 *)emulated_shared;", text)
    text = re.sub(r"(?<!\w)__shared__(?!\w)", "static", text)
    launch = re.compile(r"(\w+(?:<[^;{}<>]*>)?)\s*<<<(.*?)>>>(?=\()", re.S)
    out = ""
    while found := launch.search(text):
        end = closing(text, found.end())
        grid, block, *rest = arguments(found.group(2))
        shared = rest[0] if rest else "0"
        call = found.group(1) + text[found.end() : end]
        out += text[: found.start()] + f"emulated_launch({grid}, {block}, {shared}, [=] {{ {call}; }})"
        text = text[end:]
    return out + text


def with_headers(path: Path, root: Path, seen: list[Path]) -> str:
    seen.append(path)
    text = path.read_text()
    for name in re.findall(r'#include "([\w/]+\.cuh)"', text):
        inner = "" if root / name in seen else with_headers(root / name, root, seen)
        text = text.replace(f'#include "{name}"', inner)
    return text


def tables(sources: list[str]) -> str:
    names = [n for s in sources for n in re.findall(r"ORTC_KERNELS\(cuda, (\w+)", Path(s).read_text())]
    lines = ['#include "providers/cuda/cuda.h"']
    lines += [f"extern const ortc_kernel_table ortc_kernels_cuda_{n};" for n in names]
    lines += ["static const ortc_kernel_table *const tables[] = {", *(f"    &ortc_kernels_cuda_{n}," for n in names), "};"]
    lines += ['const ortc_family ortc_family_cuda = {.size = sizeof ortc_family_cuda, .op_size = sizeof(ortc_op), .name = "cuda",',
              "    .n_tables = sizeof tables / sizeof *tables, .tables = tables};", ""]  # fmt: skip
    return "\n".join(lines)


def main(words: list[str]) -> None:
    if words[0] == "--tables":
        Path(words[1]).write_text(tables(words[2:]))
        return
    root, source, out, depfile = map(Path, words)
    seen: list[Path] = []
    text = translate(with_headers(source, root, seen))
    out.write_text(f'#include "tests/emulated/emulated.h"\n{text}')
    depfile.write_text(f"{out}: {' '.join(map(str, seen))}\n")


main(sys.argv[1:])
