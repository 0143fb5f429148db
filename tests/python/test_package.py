#!/usr/bin/env python3
"""The Python package: test_package.py BUILD SOURCE. pip installs it from the source tree into a fresh environment, on the
library of BUILD; then the programs package_*.py run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import harness

HERE = Path(__file__).resolve().parent


def main() -> int:
    build, source = (Path(a).resolve() for a in sys.argv[1:3])
    onnx, *_ = harness.packages("onnx", "mesonpy")
    folder = build / "package"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    # What the tests need besides is where this program found it.
    site = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], check=True,
                          capture_output=True, text=True).stdout.strip()  # fmt: skip
    (Path(site) / "tests.pth").write_text(str(Path(onnx.__file__).parent.parent))
    # Debian 12's meson knows no limited API: that of the tests' environment comes first.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PKG_CONFIG_PATH": str(build / "meson-uninstalled"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run([python, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", source,
                           f"--config-settings=builddir={folder / 'build'}", "--config-settings=setup-args=-Dinstalled_library=true"],
                          env=environment, capture_output=True, text=True)  # fmt: skip
    harness.check("pip install", lambda: done.stdout[-3000:] + done.stderr[-3000:] if done.returncode else None)
    tag = "".join(p.read_text() for p in Path(site).glob("ortc-*/WHEEL"))
    harness.check("one wheel for every Python", lambda: None if "-abi3-linux_" in tag and "Root-Is-Purelib: false" in tag else tag)
    checked = subprocess.run([python, "-m", "pip", "check"], env=environment, capture_output=True, text=True)
    harness.check("pip check", lambda: checked.stdout if checked.returncode else None)
    sim = [p for p in [build / "providers" / "sim" / "sim_c.so"] if p.exists()]
    passed, failed, skipped = 0, 0, 0
    for program in ("use", "onnxruntime", "backend", "docs"):
        run = subprocess.run([python, HERE / f"package_{program}.py", source / "models", *sim], cwd=folder, capture_output=True, text=True,
                             timeout=600)  # fmt: skip
        lines = run.stdout.rstrip().splitlines()
        print(*lines[:-1], sep="\n", end="\n" if lines[1:] else "")
        count = re.fullmatch(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?", lines[-1] if lines else "")
        if not count or (run.returncode != 0) != (int(count[2]) > 0):
            print(f"FAIL package_{program}: ended with {run.returncode}: {run.stderr[-3000:]}")
            failed += 1
        if count:
            passed, failed, skipped = passed + int(count[1]), failed + int(count[2]), skipped + int(count[3] or 0)
    print(f"{passed + harness._passed} passed, {failed + harness._failed} failed, {skipped} skipped")
    return 1 if failed or harness._failed else 0


if __name__ == "__main__":
    sys.exit(main())
