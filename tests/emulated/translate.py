#!/usr/bin/env python3
"""Turns a .cu of ours into C++ for the host: translate.py ROOT SOURCE OUT DEPFILE

Headers of device code (.cuh) are put in place, tests/emulated/mma.cuh for the instructions of tensor cores. Launches become calls, shared
memory becomes static; emulated.h explains. Only what our own files use is understood.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

INSTRUCTIONS = Path(__file__).resolve().parent / "mma.cuh"


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
    launch = re.compile(r"([\w:]+(?:<[^;{}<>]*>)?)\s*<<<(.*?)>>>(?=\()", re.S)
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
    if path == root / "kernels/gemm/mma.cuh":
        seen.append(INSTRUCTIONS)
        text = INSTRUCTIONS.read_text()
    for name in re.findall(r'#include "([\w/]+\.cuh)"', text):
        inner = "" if root / name in seen else with_headers(root / name, root, seen)
        text = text.replace(f'#include "{name}"', inner)
    return text


def main(words: list[str]) -> None:
    root, source, out, depfile = map(Path, words)
    seen: list[Path] = []
    text = translate(with_headers(source, root, seen))
    out.write_text(f'#include "tests/emulated/emulated.h"\n{text}')
    depfile.write_text(f"{out}: {' '.join(map(str, seen))}\n")


main(sys.argv[1:])
