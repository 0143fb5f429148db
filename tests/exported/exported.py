#!/usr/bin/env python3
"""Networks as other programs export them, against the framework that they come from.

usage: exported.py make FOLDER [FILTER]            writes the networks that this Python's packages can make, and what they answer
       exported.py check ORTC FOLDER [FILTER]      runs them on ref, cpu, cpu without fusion, and after `ortc optimize`
       exported.py table FOLDER DOCUMENT           writes what the last check found into docs/conformance.md

Nothing is downloaded: configurations are small, weights come from a seed. `make` wants an environment of its own (requirements.txt
beside this, and requirements-tensorflow.txt for a second one, which TensorFlow needs); `check` wants numpy and onnx. A network is a
folder in the layout of the standard's suite, with data of two shapes; one that cannot be exported with free dims is two folders. An
attention is a Softmax whose result is multiplied with something, or an operator of that name; it counts as raised where
`ortc optimize --raised` leaves Attention in its place.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from make_suite import write_values  # noqa: E402

PACKAGES = ("torch", "torchvision", "transformers", "timm", "diffusers", "scikit-learn", "skl2onnx", "onnxmltools", "xgboost", "lightgbm",
            "onnxruntime", "tensorflow-cpu", "tf2onnx", "onnx")  # fmt: skip
HEADING = "## Exported networks"
MODULES = ("torch_networks", "tree_networks", "treated_networks", "tensorflow_networks")
CONFIGURATIONS = {"ref": ("--provider", "ref"), "cpu": ("--provider", "cpu"), "unfused": ("--provider", "cpu", "--no-fusion")}


# ---- make


def write(folder: Path, file) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    onnx.save(file.model, folder / "model.onnx")
    each = zip(*(want for _, want in file.sets))  # the results of an output, at both shapes
    tops = [max(float(np.abs(w).max()) for w in ws if w.size) for ws in each if ws[0].dtype.kind == "f" and any(w.size for w in ws)]
    (folder / "tolerance.json").write_text(json.dumps({"rtol": 10 * file.far, "atol": file.far * min(tops, default=0)}))
    for k, (feeds, want) in enumerate(file.sets):
        data = folder / f"test_data_set_{k}"
        data.mkdir()
        write_values(data, "input", [feeds[i.name] for i in file.model.graph.input], file.model.graph.input)
        write_values(data, "output", want, file.model.graph.output)


def remember_versions(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "versions.txt"
    known = dict(line.split() for line in file.read_text().splitlines()) if file.is_file() else {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            known[name] = importlib.metadata.version(name)
    file.write_text("".join(f"{n} {known[n]}\n" for n in PACKAGES if n in known))


def make(folder: Path, wanted: str) -> int:
    failed = 0
    remember_versions(folder)
    for module in MODULES:
        try:
            networks = importlib.import_module(module).NETWORKS
        except ImportError as error:
            print(f"{module}: {error}")
            continue
        for network in networks:
            if wanted not in f"{network.kind} {network.name}":
                continue
            name, began = re.sub(r"[^a-z0-9]+", "_", network.name.lower()), time.time()
            try:
                files = network.make()
                for k, file in enumerate(files):
                    write(folder / (name if len(files) == 1 else f"{name}.{k}"), file)
                about = {"name": network.name, "kind": network.kind, "by": network.by, "files": len(files)}
                (folder / f"{name}.json").write_text(json.dumps(about))
                print(f"made {network.name}: {len(files)} in {time.time() - began:.1f} s", flush=True)
            except Exception as error:  # named, and the others are made
                failed += 1
                (folder / f"{name}.log").write_text(traceback.format_exc())
                print(f"NOT MADE {network.name}: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}", flush=True)
    return 1 if failed else 0


# ---- check

PASSING = {"Cast", "Where", "Dropout", "Identity", "Mul", "Reshape", "Transpose", "Expand", "Unsqueeze", "QuantizeLinear", "DequantizeLinear", "Concat", "Slice"}


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for a in node.attribute:
            for g in (a.g, *a.graphs):
                if g.node:
                    yield from graphs(g)


def attentions(model: onnx.ModelProto) -> tuple[int, int]:
    """How many there are in all, and how many are a node of that name."""
    count, named = 0, 0
    for graph in graphs(model.graph):
        readers: dict[str, list[onnx.NodeProto]] = {}
        for node in graph.node:
            for name in node.input:
                readers.setdefault(name, []).append(node)
        for node in graph.node:
            if node.op_type.endswith("Attention"):
                named += 1
            elif node.op_type == "Softmax":
                names, seen = list(node.output), set()
                while names:
                    name = names.pop()
                    seen.add(name)
                    for reader in readers.get(name, ()):
                        if reader.op_type.endswith("MatMul") or reader.op_type in ("Einsum", "QLinearMatMul", "MatMulInteger"):
                            count, names = count + 1, []
                            break
                        if reader.op_type in PASSING and reader.output[0] not in seen:
                            names.append(reader.output[0])
    return count + named, named


def run(ortc: str, *words) -> subprocess.CompletedProcess:
    return subprocess.run([ortc, *map(str, words)], capture_output=True, text=True, timeout=1200)


def tested(ortc: str, folder: Path, options: tuple[str, ...]) -> dict[str, str]:
    """By case: "" where it passes."""
    done, found = run(ortc, "test", folder, "-v", *options), {}
    for line in done.stdout.splitlines():
        if match := re.match(r"(pass|FAIL|skip)\w* +(\S+?):?(?: (.*))?$", line):
            found[match[2].split("/")[-1]] = "" if match[1] == "pass" else match[3] or match[1]
    return found


def check(ortc: str, folder: Path, wanted: str) -> int:
    abouts = {p.stem: json.loads(p.read_text()) for p in sorted(folder.glob("*.json")) if p.stem != "results"}
    abouts = {n: a for n, a in abouts.items() if wanted in f"{a['kind']} {a['name']}"}
    cases = {(n if a["files"] == 1 else f"{n}.{k}"): n for n, a in abouts.items() for k in range(a["files"])}
    after = folder / "optimised"
    shutil.rmtree(after, ignore_errors=True)
    problems: dict[str, list[str]] = {n: [] for n in abouts}
    for case, name in cases.items():
        model = onnx.load(folder / case / "model.onnx")
        (after / case).mkdir(parents=True)
        raised = folder / "raised.onnx"
        for target, more in ((after / case / "model.onnx", ()), (raised, ("--raised",))):
            done = run(ortc, "optimize", folder / case / "model.onnx", "-o", target, "--no-check", "-q", *more)
            if done.returncode:
                problems[name].append(f"optimize {' '.join(more)}: {done.stderr.strip()[:300]}")
        for path in (folder / case).iterdir():
            if path.name != "model.onnx":
                (after / case / path.name).symlink_to(path.resolve())
        if raised.is_file():
            abouts[name] |= {"attentions": attentions(model)[0], "raised": attentions(onnx.load(raised))[1], "nodes": len(model.graph.node)}
            raised.unlink()
    for what, (where, options) in ({w: (folder, o) for w, o in CONFIGURATIONS.items()} | {"optimised": (after, ("--provider", "cpu"))}).items():
        found = tested(ortc, where, options)
        for case, name in cases.items():
            why = found.get(case, "it did not run")
            if why:
                problems[name].append(f"{what}: {why}")
    for name, about in abouts.items():
        about["problems"] = problems[name]
        print(f"{'FAIL' if problems[name] else 'pass'} {about['name']} ({about.get('raised')} of {about.get('attentions')} attentions raised)",
              *problems[name], sep="\n     ", flush=True)
    (folder / "results.json").write_text(json.dumps(abouts))
    failed = sum(map(bool, problems.values()))
    print(f"{len(abouts) - failed} passed, {failed} failed")
    return 1 if failed or not abouts else 0


# ---- table


def table(folder: Path, document: Path) -> int:
    abouts = list(json.loads((folder / "results.json").read_text()).values())
    right = sum(not a["problems"] for a in abouts)
    versions = ", ".join((folder / "versions.txt").read_text().splitlines())
    lines = [
        HEADING,
        "",
        "Written by `tests/exported/exported.py table`, which says how they are made and checked: small configurations, weights from a seed, each at two shapes,",
        f"on ref, cpu, cpu unfused and after `ortc optimize`, against what they were exported from: {right} of {len(abouts)} are equal. {versions}.",
        "",
        "| kind | written by | equal | of | of these two shapes in one file |",
        "|---|---|---|---|---|",
    ]
    for (kind, by), n in sorted(Counter((a["kind"], a["by"]) for a in abouts).items()):
        mine = [a for a in abouts if (a["kind"], a["by"]) == (kind, by)]
        lines.append(f"| {kind} | {by} | {sum(not a['problems'] for a in mine)} | {n} | {sum(a['files'] == 1 for a in mine)} |")
    lines += ["", "Attentions in them, and how many are raised to one node:", "", "| network | attentions | raised |", "|---|---|---|"]
    lines += [f"| {a['name']} | {a['attentions']} | {a['raised']} |" for a in sorted(abouts, key=lambda a: a["name"].lower()) if a["attentions"]]
    document.write_text(document.read_text().partition(HEADING)[0].rstrip() + "\n\n" + "\n".join(lines) + "\n")
    return 0


def main() -> int:
    what, *rest = sys.argv[1:] or [""]
    if what == "make" and rest:
        return make(Path(rest[0]), rest[1] if len(rest) > 1 else "")
    if what == "check" and len(rest) > 1:
        return check(rest[0], Path(rest[1]), rest[2] if len(rest) > 2 else "")
    if what == "table" and len(rest) == 2:
        return table(Path(rest[0]), Path(rest[1]))
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
