"""What the Python tests share: cases with names, a count at the end, and the way to skip.

A test calls check() for each case and returns finish() as its exit status. The last line it prints is the one that
tally.py reads. Files that need packages from build/venv import them through packages().
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable

SKIPPED = 77
_passed = 0
_failed = 0
_skipped = 0


class Skipped(Exception):
    """What a case raises that cannot be tried here, with the reason."""


def skip(reason: str) -> None:
    """Ends the whole test as skipped."""
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def packages(*names: str) -> list:
    """The named modules; without one of them the test is skipped."""
    try:
        return [importlib.import_module(name) for name in names]
    except ImportError as error:
        skip(f"{error} (./check.sh makes build/venv, which has it)")
        raise  # not reached


def check(name: str, case: Callable[[], str | None]) -> bool:
    """Runs one case. It passes when it returns None or ""; a text or an exception says why it fails."""
    global _passed, _failed, _skipped
    try:
        why = case()
    except Skipped as reason:
        _skipped += 1
        print(f"skipped {name}: {reason}", flush=True)
        return False
    except Exception:  # a broken case is a failed case, and the others still run
        why = traceback.format_exc()
    if why:
        _failed += 1
        print(f"FAIL {name}: {why}", flush=True)
    else:
        _passed += 1
    return not why


def finish() -> int:
    print(f"{_passed} passed, {_failed} failed" + (f", {_skipped} skipped" if _skipped else ""), flush=True)
    return 1 if _failed or not _passed else 0
