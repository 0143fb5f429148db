#!/usr/bin/env python3
"""Builds a module of GPU kernels that run emulated on the host (see cuda_runtime.h), or a program when a main() is among the sources.

.cu and .cuh files are copied below DIR with their launches and dynamic shared memory turned into C++, kernels/gemm/mma.cuh is replaced, and
everything is compiled by the host's compilers.

usage: build.py OUT DIR ROOT CUDA_INCLUDE SOURCE...      sources relative to ROOT
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys


def until_closed(text: str, at: int) -> int:
    """The end of what an opened parenthesis before `at` encloses."""
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at


def arguments(text: str) -> list[str]:
    parts, depth = [""], 0
    for c in text:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def translate(text: str) -> str:
    text = re.sub(r"extern __shared__ __align__\((\d+)\) (\w+) (\w+)\[\];", r"\2 *\3 = (\2 *)(void *)emulated_shared;", text)
    out, at = "", 0
    for launch in re.finditer(r"([\w:]+(?:<[^<>;]*>)?)\s*<<<(.*?)>>>\(", text, re.S):
        grid, block = arguments(launch.group(2))[:2]
        end = until_closed(text, launch.end())
        out += f"{text[at:launch.start()]}emulate({grid}, {block}, [&] {{ {launch.group(1)}({text[launch.end():end - 1]}); }})"
        at = end
    return out + text[at:]


def main() -> None:
    out, folder, root, cuda = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
    here = pathlib.Path(__file__).resolve().parent
    for source in root.glob("kernels/*/*.cu*"):
        to = folder / source.relative_to(root)
        to.parent.mkdir(parents=True, exist_ok=True)
        replaced = here / "mma.cuh" if source.relative_to(root).as_posix() == "kernels/gemm/mma.cuh" else source
        to.write_text(translate(replaced.read_text()))
    includes = [f"-I{folder}", f"-I{here}", f"-I{root}", f"-I{root}/include", f"-isystem{cuda}"]
    objects, is_program = [], False
    for name in sys.argv[5:]:
        path = folder / name if name.endswith(".cu") else root / name
        is_program |= "int main(" in path.read_text()
        objects.append(str(folder / (name.replace("/", "_") + ".o")))
        language = ["cc", "-std=c11", "-D_GNU_SOURCE"] if name.endswith(".c") else shlex.split(os.environ.get("CXX", "c++")) + ["-std=c++17", "-x", "c++"]
        subprocess.run(language + ["-O1", "-w", "-fPIC", "-fvisibility=hidden", "-c", str(path), "-o", objects[-1]] + includes, check=True)
    subprocess.run(shlex.split(os.environ.get("CXX", "c++")) + ([] if is_program else ["-shared"]) + objects + ["-o", out], check=True)


if __name__ == "__main__":
    main()
