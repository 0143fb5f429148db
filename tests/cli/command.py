"""Runs ortc for the tests of tests/cli: what came out, with what code, and checks of both in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ORTC = Path(sys.argv[1]).resolve()
MODELS = Path(__file__).resolve().parent.parent.parent / "models"
_temporary = tempfile.TemporaryDirectory(prefix="ortc-cli-")
folder = Path(_temporary.name)
_clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "ORTC_LOG")}
# gcc 12's LeakSanitizer crashes over what libjpeg keeps per thread, in a module that dlopen has brought: without such memory it
# misses what dlerror keeps there.
_kept = folder / "leaks.txt"
_kept.write_text("leak:_dlerror_run\n")
_clean["LSAN_OPTIONS"] = f"use_tls=0:print_suppressions=0:suppressions={_kept}"
# Running out of memory is tested; a sanitizer would end the process there.
_clean["ASAN_OPTIONS"] = _clean.get("ASAN_OPTIONS", "") + ":allocator_may_return_null=1"


codes: set[int] = set()  # that ortc has ended with
_count = {"passed": 0, "failed": 0, "skipped": 0}


def check(name: str, case: Callable[[], str | None], later: str = "") -> None:
    """Runs one case: None or "" is good, a text or an exception says why not. `later`: why it cannot pass yet; then it
    is skipped, and a failure when it passes after all."""
    try:
        why = case()
    except Exception:  # a broken case is a failed one, and the others still run
        why = traceback.format_exc()
    if later:
        why, result = (None, "skipped") if why else (f"passes, though it is listed for later: {later}", "failed")
    else:
        result = "failed" if why else "passed"
    _count[result] += 1
    if why:
        print(f"FAIL {name}: {why}", flush=True)


def skip(name: str, why: str) -> None:
    _count["skipped"] += 1
    print(f"skipped {name}: {why}", flush=True)


def finish() -> int:
    print(", ".join(f"{n} {word}" for word, n in _count.items()), flush=True)
    return 1 if _count["failed"] else 0


class Result(NamedTuple):
    code: int
    out: str
    err: str

    def json(self) -> dict:
        return json.loads(self.out)

    def last(self) -> str:
        return self.out.rstrip("\n").rsplit("\n", 1)[-1]


def ortc(*arguments: object, **environment: str) -> Result:
    done = subprocess.run([str(ORTC), *map(str, arguments)], cwd=folder, env=_clean | environment, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=300)  # fmt: skip
    codes.add(done.returncode)
    return Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def put(name: str, data: bytes | str) -> Path:
    """A file in the test's folder."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def _show(arguments: tuple, r: Result) -> str:
    return f"ortc {' '.join(map(str, arguments))}\n  code {r.code}\n  out {r.out[:600]!r}\n  err {r.err[:600]!r}"


def expect(name: str, *arguments: object, code: int = 0, out: str | None = None, err: str = "", last: str | None = None,
           test=None, later: str = "", **environment: str) -> None:  # fmt: skip
    """One case: the exit code; `out` and `err` stand in what was printed; nothing on stderr unless `err` says so;
    `test(result)` gives a text if something else is wrong."""

    def case() -> str | None:
        r = ortc(*arguments, **environment)
        if r.code != code:
            return f"expected code {code}: {_show(arguments, r)}"
        if out is not None and out not in r.out:
            return f"expected {out!r} on stdout: {_show(arguments, r)}"
        if err not in r.err or (not err and r.err):
            return f"expected {err!r} on stderr: {_show(arguments, r)}"
        if last is not None and r.last() != last:
            return f"expected the last line {last!r}: {_show(arguments, r)}"
        why = test(r) if test else None
        return f"{why}: {_show(arguments, r)}" if why else None

    check(name, case, later)


def refused(name: str, *arguments: object, err: str, code: int = 2) -> None:
    """One line on stderr that begins like every message, nothing on stdout, the exit code."""

    def one_line(r: Result) -> str | None:
        lines = [line for line in r.err.splitlines() if ": note: " not in line and "AddressSanitizer failed to" not in line]
        if len(lines) != 1 or not lines[0].startswith("ortc") or ": error: " not in lines[0]:
            return "expected one line of error"
        return "expected nothing on stdout" if r.out else None

    expect(name, *arguments, code=code, err=err, test=one_line)
