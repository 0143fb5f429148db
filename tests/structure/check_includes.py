#!/usr/bin/env python3
"""Checks the direction of includes (docs/design.md, "The folders are the architecture").

base <- graph <- registry, device, call <- place <- plan <- execute <- session <- tools. kernels/ and providers/ see
include/ortc and kernels/common (and another family's internal header); the command line and the examples see
include/ortc only (and the interface of the module of pictures). What the files include in fact must be free of circles, folder by folder.
usage: check_includes.py ROOT
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

# Folder -> folders (besides itself) that it may include from. The longest matching prefix counts.
MAY = {
    "include/ortc": [],
    "base": ["include/ortc"],
    "graph/ir": ["include/ortc", "base"],
    "graph/onnx": ["include/ortc", "base", "graph/ir"],
    "graph/normalise": ["include/ortc", "base", "graph/ir"],
    "graph/specialise": ["include/ortc", "base", "graph/ir"],
    "runtime/registry": ["include/ortc", "base", "graph/ir", "kernels/families.h", "providers/providers.h"],
    "runtime/device": ["include/ortc", "base", "graph", "runtime/registry"],
    "runtime/profile": ["include/ortc", "base", "graph"],
    "runtime/call": ["include/ortc", "base", "graph/ir", "runtime/profile"],
    "runtime/place": ["include/ortc", "base", "graph/ir", "runtime/registry", "runtime/device"],
    "runtime/plan": ["include/ortc", "base", "graph/ir", "runtime/registry", "runtime/device", "runtime/call", "runtime/place"],
    "runtime/execute": ["include/ortc", "base", "graph/ir", "runtime/device", "runtime/profile", "runtime/call",
                        "runtime/place", "runtime/plan"],
    "runtime/session": ["include/ortc", "base", "graph", "runtime"],
    "providers": ["include/ortc", "kernels/common"],
    "kernels": ["include/ortc", "kernels/common", "kernels"],
    "kernels/common": ["include/ortc"],
    "tools": ["include/ortc", "kernels/image/codec.h"],
    "examples": ["include/ortc"],
}


def folder_of(path: str) -> str | None:
    """The longest key of MAY that is a prefix of the path."""
    best = None
    for key in MAY:
        if (path == key or path.startswith(key + "/")) and (best is None or len(key) > len(best)):
            best = key
    return best


def resolve(root: pathlib.Path, source: pathlib.Path, name: str) -> str | None:
    for base in (source.parent, root, root / "include"):
        if (base / name).is_file():
            return (base / name).resolve().relative_to(root).as_posix()
    return None  # generated, or the system's


def circle_of(edges: dict[str, dict[str, str]]) -> list[str]:
    """Folders that include each other in a circle, the first again at the end; [] when there is none."""
    state: dict[str, int] = {}  # 1: on the way, 2: done
    way: list[str] = []

    def visit(folder: str) -> list[str]:
        if state.get(folder) == 2:
            return []
        if state.get(folder) == 1:
            return way[way.index(folder):] + [folder]
        state[folder] = 1
        way.append(folder)
        for target in sorted(edges.get(folder, {})):
            found = visit(target)
            if found:
                return found
        way.pop()
        state[folder] = 2
        return []

    for folder in sorted(edges):
        found = visit(folder)
        if found:
            return found
    return []


def main() -> int:
    root = pathlib.Path(sys.argv[1]).resolve()
    checked, wrong = 0, []
    edges: dict[str, dict[str, str]] = {}  # folder -> folder that it includes from -> for example
    for source in sorted(root.rglob("*")):
        path = source.relative_to(root).as_posix()
        if source.suffix not in {".c", ".h", ".inc", ".in", ".cu", ".cuh"} or path.startswith("build"):
            continue
        own = folder_of(path)
        if own is None:
            continue
        for name in INCLUDE.findall(source.read_text(encoding="utf-8")):
            target = resolve(root, source, name)
            if target is None:
                continue
            checked += 1
            here, there = path.rpartition("/")[0], target.rpartition("/")[0]
            if here != there:
                edges.setdefault(here, {}).setdefault(there, f"{path} includes {target}")
            allowed = MAY[own] + [own]
            if own == "kernels" and target.startswith("kernels/") and target.count("/") == 2:
                family, other = path.split("/")[1], target.split("/")[1]
                if other not in (family, "common") and not target.endswith((".h", ".cuh")):
                    wrong.append(f"{path}: includes {target}, which is another family's source")
                continue
            if not any(target == a or target.startswith(a + "/") for a in allowed):
                wrong.append(f"{path}: may not include {target}")
    circle = circle_of(edges)
    if circle:
        wrong.append("a circle of folders: " + "; ".join(edges[a][b] for a, b in zip(circle, circle[1:])))
    for line in wrong:
        print(line)
    print(f"{checked - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
