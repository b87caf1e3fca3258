"""Tokens per second of the default model, eager and static, interleaved in one run.

    python benchmarks/train.py                          on one rank, in this process
    minipd launch -n 4 benchmarks/train.py --mesh dp=2,tp=2

Rounds alternate (eager, static, eager, static, ...); medians are printed, and their ratio.  Figures: README.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

if "MINIPD_RANKS" not in os.environ:                    # before numpy: one thread, as each rank of a launch has
    from minipd.framework.environment import rank_environment
    os.environ.update(rank_environment(os.cpu_count() or 1))

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


def make_step(config: RunConfig, mesh: ProcessMesh, static: bool) -> Step:
    """A fresh model and its step."""
    model = LlamaForCausalLM(config.model)
    shard_model(model, mesh, parameter_placements)
    optimizer = AdamW(config.train.lr, parameters=model.parameters(), grad_clip=ClipGradByGlobalNorm(1.0))
    if static:
        return StaticStep(model, optimizer, mesh, batch_placements(mesh), (config.train.batch, config.data.seq_len))
    return EagerStep(model, optimizer, mesh, batch_placements(mesh))


def main() -> None:
    options = argparse.ArgumentParser(description="tokens per second, eager and static")
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
    steps = {name: make_step(config, mesh, name == "static") for name in ("eager", "static")}
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
        print(f"static / eager {speed['static'] / speed['eager']:.2f}")


if __name__ == "__main__":
    main()
