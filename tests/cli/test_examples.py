#!/usr/bin/env python3
"""The examples as a user builds them: from an installed ortc, with pkg-config and with CMake's find_package, shared and
static, run on the models that examples/make_models.py writes.

usage: test_examples.py BUILD_DIR SOURCE_DIR; needs the package onnx, and cmake for its part
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import onnx  # noqa: F401  make_models.py needs it
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

build, source = (Path(a).resolve() for a in sys.argv[1:3])
examples = source / "examples"
count = {"passed": 0, "failed": 0}


def check(name: str, why: str | None) -> None:
    count["failed" if why else "passed"] += 1
    if why:
        print(f"FAIL {name}: {why}", flush=True)


def run(*words: object, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=100, env=os.environ | environment)


def use(how: str, programs: Path, data: Path, ortc: Path, libraries: str) -> None:
    """Runs every program, and looks at what it says."""

    def says(name: str, wanted: str, *arguments: object) -> None:
        r = run(programs / name, *arguments, LD_LIBRARY_PATH=libraries)
        check(f"{name}, {how}", None if r.returncode == 0 and r.stdout == wanted else f"{r.returncode} {r.stdout!r} {r.stderr!r}")

    digits = source / "models" / "digits.onnx"
    says("hello", "class 1\n", digits)
    r = run(programs / "classify", digits, data / "7.pgm", source / "models" / "digits" / "labels.txt", LD_LIBRARY_PATH=libraries)
    label = (source / "models" / "digits" / "labels.txt").read_text().split("\n")[7]
    check(f"classify, {how}", None if r.returncode == 0 and r.stdout.startswith(label + " ") else f"{r.stdout} {r.stderr}")
    boxes = data / "boxes.ppm"
    says("detect", "0.98 at 6,8 to 18,20\n0.98 at 30,44 to 42,56\n0.98 at 46,10 to 58,22\n", data / "detect.onnx", data / "detect.ppm", boxes)
    drawn = np.frombuffer(boxes.read_bytes()[-64 * 64 * 3 :], np.uint8).reshape(64, 64, 3)
    red = (drawn == [255, 0, 0]).all(-1)
    check(f"what it draws, {how}", None if red.sum() == 3 * 44 and red[6, 8] and red[41, 55] and not red[7, 9] else f"{red.sum()}")
    says("transcribe", "headache\n", data / "transcribe.onnx", data / "transcribe.wav")
    says("generate", "zyxwv. zyxwv. zyxwv.\n", data / "generate.onnx", "zyxwv. zy", 11)
    r = run(programs / "classify", digits, data / "detect.ppm", LD_LIBRARY_PATH=libraries)
    check(f"classify says what is wrong, {how}", None if r.returncode == 1 and "expected a binary PGM" in r.stderr else f"{r.stderr}")
    for plugin in ("operator", "provider"):
        so = next(p for p in (programs / f"{plugin}.so", programs / f"lib{plugin}.so") if p.exists())
        r = run(ortc, "info", digits, "--plugin", so, "--placement", "--provider", "pocket" if plugin == "provider" else "cpu")
        check(f"{plugin}, {how}", None if r.returncode == 0 and (plugin != "provider" or "pocket.relu" in r.stdout) else f"{r.stdout[-600:]} {r.stderr}")


with tempfile.TemporaryDirectory(prefix="ortc-examples-") as temporary:
    root, data = Path(temporary) / "root", Path(temporary) / "data"
    r = run("meson", "install", "-C", build, "--destdir", root, "--no-rebuild")
    check("meson install", r.returncode and r.stderr)
    pc = next(root.rglob("ortc.pc"))
    libraries = pc.parent.parent
    environment = {"PKG_CONFIG_PATH": str(pc.parent)}
    prefix = Path(f"{root}{run('pkg-config', '--variable=prefix', 'ortc', **environment).stdout.strip()}")
    ortc = prefix / "bin" / "ortc"
    r = run(sys.executable, examples / "make_models.py", data)
    check("make_models.py", r.returncode and r.stderr)
    r = run(ortc, "convert", source / "models" / "digits" / "7.png", data / "7.npy")
    (data / "7.pgm").write_bytes(b"P5\n8 8\n255\n" + np.load(data / "7.npy").tobytes())

    programs = Path(temporary) / "plain"
    programs.mkdir()
    flags = run("pkg-config", f"--define-variable=prefix={prefix}", "--cflags", "--libs", "ortc", **environment).stdout.split()
    for name in ("hello.c", "detect.c", "transcribe.c", "generate.c", "classify.cpp"):
        compiler = [os.environ.get("CXX", "c++"), "-std=c++17"] if name.endswith("pp") else [os.environ.get("CC", "cc"), "-std=c11"]
        r = run(*" ".join(compiler).split(), "-O1", "-Wall", "-Wextra", "-Werror", examples / name, *flags, "-o", programs / name.split(".")[0])
        check(f"{name} compiles", r.returncode and r.stderr)
    for name in ("operator.c", "provider.c"):
        r = run(*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", f"-I{prefix}/include", examples / name, "-o", programs / name.replace(".c", ".so"))
        check(f"{name} compiles", r.returncode and r.stderr)
    use("pkg-config", programs, data, ortc, str(libraries))

    if shutil.which("cmake"):
        for static in ("OFF", "ON"):
            tree = Path(temporary) / f"cmake-{static}"
            r = run("cmake", "-S", examples, "-B", tree, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DSTATIC={static}")
            if r.returncode == 0:
                r = run("cmake", "--build", tree, "-j2")
            check(f"cmake, static {static}", r.returncode and r.stdout + r.stderr)
            needs = run("readelf", "-d", tree / "hello").stdout
            check(f"it is linked so, static {static}", None if ("libortc.so.0" in needs) == (static == "OFF") else needs)
            use(f"cmake, static {static}", tree, data, ortc, "")
        other = Path(temporary) / "other"
        other.mkdir()
        for version, found in (("", True), ("0.1", True), ("0.1.0", True), ("0.2", False), ("1.0", False), ("0.0", False)):
            (other / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.13)\nproject(x C)\nfind_package(ortc {version} REQUIRED)\n")
            shutil.rmtree(other / "b", ignore_errors=True)
            r = run("cmake", "-S", other, "-B", other / "b", f"-DCMAKE_PREFIX_PATH={prefix}")
            check(f"find_package(ortc {version})", None if (r.returncode == 0) == found else r.stderr)
    else:
        print("cmake is not here: its part is left out")

    r = run("ninja", "-C", build, "uninstall")
    left = [str(p) for p in root.rglob("*") if p.is_symlink() or p.is_file()]
    check("ninja uninstall leaves nothing", None if r.returncode == 0 and not left else f"{left} {r.stdout[-300:]}")

print(f"{count['passed']} passed, {count['failed']} failed")
sys.exit(1 if count["failed"] else 0)
