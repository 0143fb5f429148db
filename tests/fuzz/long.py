#!/usr/bin/env python3
"""Hours of fuzzing on many cores: long.py WORKER --plugin SIM [--differential N] [--hostile N] [--mutants MUTANTS --plugins N --commands N]
--out FOLDER ...

Each process runs differential.py, hostile.py or mutants over seeds of its own: of process i they begin at --first + i * 10^8. What they
say and what they find lies in FOLDER; the last lines are the sums. Everything ends by itself within --seconds for each of the kinds.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
STRIDE = 10**8
MUTANTS = ("plugin", "command")
GRACE = 60  # seconds for reading seeds and for ending


def start(kind: str, number: int, n: int, options) -> subprocess.Popen:
    first, keep = options.first + number * STRIDE, options.out / "found" / kind
    if kind in MUTANTS:
        keep.mkdir(parents=True, exist_ok=True)
        words = [str(options.mutants), kind, "--first", str(first), "--seconds", str(options.seconds), "--keep", str(keep), "--executions", str(n)]
        return launched(words, kind, number, options)
    words = [sys.executable, str(HERE / f"{kind}.py"), options.worker, "--first", str(first), "--seconds", str(options.seconds),
             "--keep", str(keep), "--no-shrink"]
    words += ["--plugin", options.plugin] if options.plugin else []
    words += ["--graphs", str(n)] if kind == "differential" else ["--executions", str(n)]
    words += ["--seeds", str(options.seeds)] if kind == "hostile" and options.seeds else []
    return launched(words, kind, number, options)


def launched(words: list[str], kind: str, number: int, options) -> subprocess.Popen:
    return subprocess.Popen(words, stdout=(options.out / f"{kind}{number}.log").open("w"), stderr=subprocess.STDOUT, env={**os.environ, "ORTC_THREADS": "1"})


def summed(kind: str, texts: list[str]) -> str:
    """The lines that each process ends with, added up."""
    n, failed, runs, findings = 0, 0, Counter(), 0
    for text in texts:
        if m := re.search(r"^(\d+) (graphs|executions) of", text, re.M):
            n += int(m[1])
        if m := re.search(r"(\d+) findings", text):
            findings += int(m[1])
        for key, count in re.findall(r"'?([\w ]+)'?: (\d+)[,}]", " ".join(re.findall(r"(?:runs|answered|statuses):? ({[^}]*})", text))):
            runs[key] += int(count)
        failed += len(re.findall(r"^FAIL ", text, re.M))
    return f"{kind}: {n} of {len(texts)} processes, {failed} failures, {findings} findings; {dict(sorted(runs.items()))}"


def run(kind: str, total: int, options) -> str:
    begun = time.monotonic()
    each = -(-total // options.processes)
    running = [start(kind, i, each, options) for i in range(options.processes)]
    for p in running:
        try:
            p.wait(max(1, options.seconds + GRACE - (time.monotonic() - begun)))
        except subprocess.TimeoutExpired:
            p.kill()
    texts = [(options.out / f"{kind}{i}.log").read_text(errors="replace") for i in range(options.processes)]
    for text in texts:
        print("\n".join(line for line in text.splitlines() if line.startswith(("FAIL ", "Traceback")))[:2000], end="")
    return f"{summed(kind, texts)}, in {time.monotonic() - begun:.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worker")
    parser.add_argument("--plugin", help="the module of provider sim")
    parser.add_argument("--differential", type=int, default=0, help="graphs in all")
    parser.add_argument("--hostile", type=int, default=0, help="executions in all")
    parser.add_argument("--mutants", type=Path, help="the program for the next two")
    parser.add_argument("--plugins", type=int, default=0, help="executions of descriptors in all")
    parser.add_argument("--commands", type=int, default=0, help="executions of the command line in all")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--first", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=3600.0, help="of each kind at most")
    parser.add_argument("--seeds", type=Path, help="hostile.py's file of seeds")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    kinds = {"differential": options.differential, "hostile": options.hostile, "plugin": options.plugins, "command": options.commands}
    lines = [run(kind, total, options) for kind, total in kinds.items() if total]
    print("", *lines, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
