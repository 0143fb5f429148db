#!/usr/bin/env python3
"""Sums what Meson's tests counted: tally.py BUILD_DIR...

Reads meson-logs/testlog.json of each build directory, prints one line for each and at the end, alone, the total:

    N passed, N failed[, N skipped]

A test program counts its own cases; the last line of its output that has one of these forms is believed:

    [====] Synthesis: Tested: 5 | Passing: 5 | Failing: 0 | Crashing: 0       (Criterion, colours or not)
    5 passed, 0 failed, 1 skipped                                             (the last part optional)

A program that exits with 77 is one skipped test. One that fails as a whole (by exit status, signal or timeout)
without having counted a failure is one failure more. One that counts nothing is one test. A directory without a test
log did not get as far as testing, which is a failure too. Exits with 1 if anything failed.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
SYNTHESIS = re.compile(r"Synthesis: Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)\s*$")
PLAIN = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")


class Count(NamedTuple):
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def plus(self, other: Count) -> Count:
        return Count(*(a + b for a, b in zip(self, other)))

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def counted(output: str) -> Count | None:
    """What the program says of itself, if it says anything."""
    for line in reversed(COLOUR.sub("", output).splitlines()):
        line = line.strip()
        if match := SYNTHESIS.search(line):
            _, passing, failing, crashing = map(int, match.groups())
            return Count(passing, failing + crashing)
        if match := PLAIN.match(line):
            return Count(*(int(group or 0) for group in match.groups()))
    return None


def count_test(record: dict) -> Count:
    """One line of testlog.json."""
    result = record["result"]
    if result == "SKIP":
        return Count(skipped=1)
    own = counted("\n".join(filter(None, (record.get("stdout"), record.get("stderr")))))
    if result in ("OK", "EXPECTEDFAIL"):
        return own or Count(passed=1)
    own = own or Count()
    return own if own.failed else own.plus(Count(failed=1))


def count_tree(tree: Path) -> tuple[Count, str]:
    """The tree's sum, and a remark with the names of its failed tests."""
    log = tree / "meson-logs" / "testlog.json"
    if not log.is_file():
        return Count(failed=1), "did not get as far as testing"
    total, failed = Count(), []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        record = json.loads(line)
        count = count_test(record)
        total = total.plus(count)
        if count.failed:
            failed.append(record["name"])
    if total == Count():
        return Count(failed=1), "no test ran"
    return total, ", ".join(failed)


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit("usage: tally.py BUILD_DIR...")
    total = Count()
    for tree in sys.argv[1:]:
        count, remark = count_tree(Path(tree))
        total = total.plus(count)
        print(f"{tree}: {count}" + (f" ({remark})" if remark else ""))
    print(total, flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
