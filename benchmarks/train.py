"""Tokens per second of the default model, eager, static and compiled, interleaved in one run.

    python benchmarks/train.py                          on one rank, in this process
    minipd launch -n 4 benchmarks/train.py --mesh dp=2,tp=2

Rounds alternate (eager, static, compiled, eager, ...); medians are printed, and their ratios.  Figures: README.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

from minipd.framework.environment import missing, rank_environment

if __name__ == "__main__" and (variables := missing(rank_environment(os.cpu_count() or 1))):
    # one thread and a tuned malloc, as each rank of a launch has; importing minipd has loaded numpy: start anew
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **variables})

import numpy as np

from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.framework.context import RankContext
from minipd.framework.rank import enter
from minipd.models.config import RunConfig, resolve, with_values
from minipd.models.llama import LlamaForCausalLM
from minipd.models.placements import batch_placements, parameter_placements
from minipd.nn.clip import ClipGradByGlobalNorm
from minipd.optimizer import AdamW
from minipd.parallel.static_step import StaticStep
from minipd.parallel.step import EagerStep, Step, shard_model

WAYS = ("eager", "static", "compiled")


def make_step(config: RunConfig, mesh: ProcessMesh, way: str) -> Step:
    """A fresh model and its step."""
    model = LlamaForCausalLM(config.model)
    shard_model(model, mesh, parameter_placements)
    optimizer = AdamW(config.train.lr, parameters=model.parameters(), grad_clip=ClipGradByGlobalNorm(1.0))
    placements = batch_placements(mesh)
    if way == "eager":
        return EagerStep(model, optimizer, mesh, placements)
    return StaticStep(model, optimizer, mesh, placements, (config.train.batch, config.data.seq_len),
                      cinn=way == "compiled")


def main() -> None:
    options = argparse.ArgumentParser(description="tokens per second, eager, static and compiled")
    options.add_argument("--mesh", default="dp=1,tp=1")
    options.add_argument("--rounds", type=int, default=9)
    given = options.parse_args()
    config = resolve(with_values(RunConfig(), {"dist.mesh": given.mesh}, "--mesh"))
    comm = None
    if "MINIPD_RANKS" in os.environ:
        from minipd.dist.comm.mpi import connect
        comm = connect()
    enter(RankContext() if comm is None else RankContext(comm.rank, comm.size, comm))
    mesh = parse_mesh(given.mesh)
    steps = {way: make_step(config, mesh, way) for way in WAYS}
    r = np.random.default_rng(0)
    shape = config.train.batch, config.data.seq_len
    ids, labels = r.integers(0, config.model.vocab_size, shape), r.integers(0, config.model.vocab_size, shape)
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        step(ids, labels)                               # warm-up
    for _ in range(given.rounds):
        for name, step in steps.items():
            began = time.perf_counter()
            step(ids, labels)
            if comm is not None:
                comm.barrier()
            seconds[name].append(time.perf_counter() - began)
    if comm is None or comm.rank == 0:
        speed = {name: ids.size / statistics.median(times) for name, times in seconds.items()}
        print(f"mesh {given.mesh}, {ids.size} tokens a step, median of {given.rounds} rounds")
        for name, tokens in speed.items():
            print(f"{name:8}{tokens:10,.0f} tokens/s")
        print(", ".join(f"{way} / eager {speed[way] / speed['eager']:.2f}" for way in WAYS[1:]))


if __name__ == "__main__":
    main()
