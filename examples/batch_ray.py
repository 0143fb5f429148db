#!/usr/bin/env python3
"""Runs a model over the rows of an array on the workers of a Ray cluster: each worker has one session, Ray Data gives
it batches.

    pip install ortc 'ray[data]'
    python3 batch_ray.py digits.onnx pictures.npy probabilities.npy --workers 2 --batch 64

The model has one input, whose first axis is the batch; its first output is written, rows in the order of the input's.
Without --address Ray starts on this machine and listens on loopback alone; on a cluster the model's file must lie at
the same place on every machine. Larger data is read where it lies: ray.data.read_parquet, read_images, ...
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # before ray is there: it asks when it starts

import numpy as np
import ray
import ray.data

import ortc


class Model:
    """What a worker keeps: made once, called for every batch."""

    def __init__(self, path: str, threads: int) -> None:
        self.session = ortc.Session(path, threads=threads)
        self.input, self.output = self.session.inputs[0].name, self.session.outputs[0].name

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        result = self.session.run({self.input: batch["data"]}, [self.output])[self.output]
        return {"result": result, "worker": np.full(len(result), os.getpid())}


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs a model over the rows of an array by Ray Data.")
    parser.add_argument("model")
    parser.add_argument("rows", help="an .npy file")
    parser.add_argument("results", help="the .npy file to write")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each worker (1)")
    parser.add_argument("--batch", type=int, default=64, help="rows of one run (64)")
    parser.add_argument("--address", help="of a Ray cluster that runs")
    options = parser.parse_args()

    if options.address:
        ray.init(address=options.address)
    else:
        ray.init(include_dashboard=False, _node_ip_address="127.0.0.1", num_cpus=options.workers * options.threads + 1)
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    rows = np.load(options.rows)
    blocks = np.array_split(rows, max(1, min(len(rows) // options.batch, 4 * options.workers)))
    start = time.perf_counter()
    done = ray.data.from_numpy(blocks).map_batches(
        Model,
        fn_constructor_args=(os.path.abspath(options.model), options.threads),
        batch_size=options.batch,
        num_cpus=options.threads,
        compute=ray.data.ActorPoolStrategy(size=options.workers),
    )
    parts = list(done.iter_batches(batch_size=None))
    np.save(options.results, np.concatenate([p["result"] for p in parts]))
    workers = len(set(np.concatenate([p["worker"] for p in parts]).tolist()))
    print(f"{len(rows)} rows by {workers} workers in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
