#!/usr/bin/env python3
"""The standard's own suite, all that ortc can run of it: test_suite.py ORTC FOLDER.

The cases are written from the installed `onnx` package into FOLDER (once), and `ortc test` runs them in one process. What
ortc refuses as UNSUPPORTED counts as skipped; everything else must pass but for known-failures.txt. FLOOR keeps a change
from turning passes into skips unseen: raise it when more pass.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import harness

FLOOR = 2019
HERE = Path(__file__).resolve().parent


def main() -> int:
    ortc, folder = sys.argv[1], Path(sys.argv[2])
    (onnx,) = harness.packages("onnx")
    stamp, maker = folder / "version", HERE / "make_suite.py"
    made_by = f"{onnx.__version__} {hashlib.sha256(maker.read_bytes()).hexdigest()}"
    if not stamp.is_file() or stamp.read_text() != made_by:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, str(maker), str(folder)], check=True, stdout=subprocess.DEVNULL)
        stamp.write_text(made_by)
    known = HERE.parent / "onnx" / "known-failures.txt"
    done = subprocess.run([ortc, "test", str(folder), "--unsupported=skip", "--skip-list", str(known), "--quiet"],
                          capture_output=True, text=True, timeout=900)
    lines = done.stdout.rstrip().splitlines()
    count = re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped", lines[-1] if lines else "")
    print("\n".join(line for line in lines if line.startswith("FAIL")))
    if not count:
        print(done.stdout[-2000:], done.stderr[-2000:], "0 passed, 1 failed", sep="\n")
        return 1
    passed, failed, skipped = (int(n) for n in count.groups())
    if passed < FLOOR:
        print(f"FAIL only {passed} cases pass, {FLOOR} did before")
        failed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or done.returncode not in (0, 1) else 0


if __name__ == "__main__":
    sys.exit(main())
