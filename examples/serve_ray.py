#!/usr/bin/env python3
"""Serves a model over HTTP by Ray Serve: replicas on one machine or many, requests that come together run as one batch.

    pip install ortc 'ray[serve]'
    python3 serve_ray.py digits.onnx --replicas 2 --port 8000
    curl -d '[[[0, 0, 0, 0, 0, 0, 0, 0], ...]]' http://127.0.0.1:8000/

A request is one row of the model's only input, without the batch's axis, as JSON; the answer has the row of the first
output, and of how many the batch was. Ray starts on this machine and listens on loopback; --address joins a cluster.
"""

from __future__ import annotations

import argparse
import os
import signal

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # before ray is there: it asks when it starts

import numpy as np
import ray
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse

import ortc


@serve.deployment
class Model:
    def __init__(self, path: str) -> None:
        self.session = ortc.Session(path, threads=1)
        self.input, self.output = self.session.inputs[0], self.session.outputs[0].name

    @serve.batch(max_batch_size=32, batch_wait_timeout_s=0.005)
    async def run(self, rows: list[list]) -> list[dict]:
        results = await self.session.run_async({self.input.name: rows}, [self.output])
        return [{"result": r, "batch": len(rows), "replica": os.getpid()} for r in results[self.output].tolist()]

    async def __call__(self, request: Request) -> JSONResponse:
        wanted = self.input.shape[1:]
        try:  # here, so that what one sends does not spoil the batch of others
            row = await request.json()
            shape = np.asarray(row, np.float64).shape
        except (ValueError, TypeError):  # no JSON, ragged, no numbers
            shape = None
        if shape is None or len(shape) != len(wanted) or any(isinstance(w, int) and s != w for s, w in zip(shape, wanted)):
            return JSONResponse({"error": f"expected numbers of shape {list(wanted)}, as nested lists"}, 422)
        return JSONResponse(await self.run(row))


def main() -> None:
    parser = argparse.ArgumentParser(description="Serves a model over HTTP by Ray Serve.")
    parser.add_argument("model")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--address", help="of a Ray cluster that runs")
    options = parser.parse_args()
    if options.address:
        ray.init(address=options.address)
    else:
        ray.init(include_dashboard=False, _node_ip_address="127.0.0.1", num_cpus=options.replicas + 2)
    serve.start(http_options={"host": "127.0.0.1", "port": options.port})
    serve.run(Model.options(num_replicas=options.replicas, max_ongoing_requests=64).bind(os.path.abspath(options.model)))
    print(f"ready at http://127.0.0.1:{options.port}/", flush=True)
    signal.sigwait({signal.SIGINT, signal.SIGTERM})
    serve.shutdown()


if __name__ == "__main__":
    main()
