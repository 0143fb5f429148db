#!/usr/bin/env python3
"""The benchmark networks (networks.py) at small sizes: test_networks.py ORTC

Their results are onnxruntime's, on the cpu no node that is left to ref takes more than 1 % of the time, and arenas take at most 1.15 times
what is in use at one time, workspaces included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import networks  # also says where the packages are
from harness import check, finish, packages

np, onnx, _ = packages("numpy", "onnx", "onnxruntime")
import peer  # noqa: E402
ORTC = sys.argv[1]
RUNS = 20


def ortc(*words: object) -> str:
    done = subprocess.run([ORTC, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{words}: {done.returncode}: {done.stderr}"
    return done.stdout


def differs(network: networks.Network, model: onnx.ModelProto, feeds: dict, folder: Path) -> str | None:
    """The largest difference over the largest value of each output. Behind the last position a cache holds what it likes."""
    session = peer.session(model)
    ortc("run", folder / "m.onnx", "-q", "-i", folder / "in.npz", "-o", folder / "out.npz")
    results = np.load(folder / "out.npz")
    for o, want in zip(session.get_outputs(), session.run(None, feeds), strict=True):
        have = results[o.name]
        if network.tied and o.name.startswith("present."):
            total = network.small_dims["total"]
            have, want = have[:, :, :total], want[:, :, :total]
        if have.shape != want.shape or have.dtype != want.dtype:
            return f"{o.name}: {have.dtype} {have.shape}, not {want.dtype} {want.shape}"
        far = np.abs(have.astype(np.float64) - want.astype(np.float64)).max() / np.abs(want).astype(np.float64).max()
        if not far < network.far:
            return f"{o.name} differs by {far:.1e} of its largest value"
    return None


def left_to_ref(folder: Path) -> str | None:
    told = json.loads(ortc("profile", folder / "m.onnx", "-i", folder / "in.npz", "--by", "node", "--json", "-n", RUNS, "-t", 1))
    slow = [f"{n['op']} {n['node']} {n['share']:.1%}" for n in told["lines"] if n["provider"] == "ref" and n["share"] > 0.01]
    return ", ".join(slow)


def wasted(folder: Path) -> str | None:
    """Blocks begin at multiples of 256 bytes; a dozen small ones are let off for that."""
    told = json.loads(ortc("info", folder / "m.onnx", "--steps", "-i", folder / "in.npz", "--json", "-t", 1))
    arena, live = told["plan"]["arena_bytes"], max((s["live_bytes"] for s in told["steps"]), default=0)
    return f"{arena} bytes for {live}" if arena > 1.15 * live + 12 * 256 else None


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for network in networks.NETWORKS:
            model = network.model(small=True)
            feeds = network.feeds(model, small=True)
            onnx.save(model, folder / "m.onnx")
            np.savez(folder / "in.npz", **feeds)
            check(f"{network.group}/{network.name}: results", lambda: differs(network, model, feeds, folder))
            check(f"{network.group}/{network.name}: arena", lambda: wasted(folder))
            if "NETWORKS_NO_TIMES" not in os.environ:  # which are nobody's under a sanitizer
                check(f"{network.group}/{network.name}: on ref", lambda: left_to_ref(folder))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
