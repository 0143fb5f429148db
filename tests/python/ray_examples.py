#!/usr/bin/env python3
"""examples/batch_ray.py and serve_ray.py with the real Ray, two workers each, on loopback.

    ray_examples.py        in a Python that has the package ortc and ray[data,serve]

Not part of the checks: Ray and what it needs are large. What the workers say must be what a session here says.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import harness

ortc, ray, _ = harness.packages("ortc", "ray", "ray.serve")
ROOT = Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "models" / "digits.onnx"
ENVIRONMENT = os.environ | {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
rows = np.random.default_rng(0).random((1000, 1, 8, 8), np.float32)
expected = ortc.Session(DIGITS).run({"image": rows})["probabilities"]


def close(got: object, wanted: np.ndarray) -> str | None:
    # Batches of another size may take another kernel.
    return None if np.allclose(got, wanted, rtol=0, atol=1e-5) else f"they differ by {np.abs(np.asarray(got) - wanted).max()}"


def batches(folder: Path) -> None:
    np.save(folder / "rows.npy", rows)
    r = subprocess.run([sys.executable, ROOT / "examples" / "batch_ray.py", DIGITS, folder / "rows.npy", folder / "results.npy"],
                       capture_output=True, text=True, timeout=300, env=ENVIRONMENT)  # fmt: skip
    harness.check("batches", lambda: r.stderr[-3000:] if r.returncode else None)
    harness.check("by two workers", lambda: None if "1000 rows by 2 workers in" in r.stdout else r.stdout)
    harness.check("every row, in its place", lambda: close(np.load(folder / "results.npy"), expected))


def ask(port: int, data: bytes) -> tuple[int, dict]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(f"http://127.0.0.1:{port}/", data=data), timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def listening(port: int) -> set[str]:
    """The addresses, as the kernel writes them, that someone listens on at this port."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {fields[1].split(":")[0] for fields in lines if fields[3] == "0A" and int(fields[1].split(":")[1], 16) == port}


def serving(folder: Path) -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    log = open(folder / "serve.log", "w+")
    server = subprocess.Popen([sys.executable, ROOT / "examples" / "serve_ray.py", DIGITS, "--port", str(port)], env=ENVIRONMENT,
                              stdout=log, stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
    try:
        deadline = time.monotonic() + 240
        while "ready at" not in (said := Path(log.name).read_text()) and server.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        if not harness.check("serve", lambda: None if "ready at" in said else said[-3000:]):
            return
        with ThreadPoolExecutor(32) as pool:
            answers = list(pool.map(lambda row: ask(port, json.dumps(row.tolist()).encode()), rows[:400]))
        harness.check("every request is answered", lambda: None if {code for code, _ in answers} == {200} else f"{answers[:3]}")
        harness.check("with its row", lambda: close([a["result"] for _, a in answers], expected[:400]))
        harness.check("by two replicas", lambda: None if len({a["replica"] for _, a in answers}) == 2 else "not two")
        most = max(a["batch"] for _, a in answers)
        print(f"the largest batch had {most} requests")
        harness.check("in batches", lambda: None if most > 1 else "none had two requests")
        for data in (b"no JSON", b"[[1, 2], [3]]", b'"text"', b"[1, 2, 3]", json.dumps(rows[0].tolist()).encode()[:-1] + b", 1]"):
            code, answer = ask(port, data)
            harness.check(f"{data[:20]!r} is refused", lambda: None if code == 422 and "[1, 8, 8]" in answer["error"] else f"{code} {answer}")
        harness.check("on loopback alone", lambda: None if listening(port) == {"0100007F"} else f"{listening(port)}")
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            code = server.wait(60)
            harness.check("it ends when asked to", lambda: f"{code}" if code else None)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            harness.check("it ends when asked to", lambda: "it went on")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="ortc-ray-") as temporary:
        batches(Path(temporary))
        serving(Path(temporary))
    sys.exit(harness.finish())
