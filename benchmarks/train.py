"""Tokens per second of a training step: eager, static, compiled; and torch.

    python benchmarks/train.py                                  the default model, each way in a process of its own
    python benchmarks/train.py --model A --torch PYTHON         model A, and torch, eager and with torch.compile
    minipd launch -n 4 benchmarks/train.py --mesh dp=2,tp=2     on 4 ranks, which run all ways in turn

Rounds alternate (eager, static, compiled, eager, ...); medians are printed, and their ratios.  Figures: README.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

from harness import KEEP_MEMORY, Contender, compare
from train_cases import MODELS, WAYS, batch_of, config_of

from minipd.framework.environment import available_cores, rank_environment


def apart(model: str, torch: str | None, threads: int, rounds: int) -> dict[str, float]:
    """Way -> seconds of a step, each in a process of its own."""
    file = Path(__file__).with_name("train_cases.py")
    own = rank_environment(1, threads)
    contenders = [Contender(way, file, f"{model} {way}", threads=threads, environment=own) for way in WAYS]
    for way in ("torch", "torch.compile") if torch else ():
        contenders.append(Contender(way, file, f"{model} {way}", str(torch), threads=threads, environment=KEEP_MEMORY))
    return compare(contenders, rounds, seconds=0)["step"]


def together(model: str, mesh: str, rounds: int) -> dict[str, float] | None:
    """The same on the ranks of a launch; on rank 0, None on the others."""
    from minipd.dist.comm.connect import connect
    from minipd.framework.context import RankContext
    from minipd.framework.rank import enter
    from minipd.models.build import build
    comm = connect()
    enter(RankContext(comm.rank, comm.size, comm))
    steps = {way: build(config_of(model, mesh, way)).step for way in WAYS}
    batch = batch_of(config_of(model, mesh))
    seconds: dict[str, list[float]] = {way: [] for way in steps}
    for n in range(rounds + 1):
        for way, step in steps.items():
            began = time.perf_counter()
            step(*batch)
            comm.barrier()
            if n:                                       # the first step warms up
                seconds[way].append(time.perf_counter() - began)
    return {way: statistics.median(times) for way, times in seconds.items()} if comm.rank == 0 else None


def main() -> None:
    options = argparse.ArgumentParser(description="tokens per second of a training step")
    options.add_argument("--model", choices=list(MODELS), default="default")
    options.add_argument("--mesh", default="dp=1,tp=1", help="of the ranks of a launch")
    options.add_argument("--torch", metavar="PYTHON", help="an interpreter that has torch, for models with all values")
    options.add_argument("--threads", type=int, default=available_cores())
    options.add_argument("--rounds", type=int, default=9)
    given = options.parse_args()
    if given.torch and not MODELS[given.model]:
        options.error("--torch needs a model whose values are written in train_cases.py, such as --model A")
    if "MINIPD_RANKS" in os.environ:
        seconds = together(given.model, given.mesh, given.rounds)
    else:
        seconds = apart(given.model, given.torch, given.threads, given.rounds)
    if seconds is None:
        return
    config = config_of(given.model, given.mesh)
    tokens = config.train.batch * config.data.seq_len
    print(f"model {given.model}, mesh {given.mesh}, {tokens} tokens a step, median of {given.rounds} rounds")
    for way, time_of_step in seconds.items():
        print(f"{way:14}{tokens / time_of_step:10,.0f} tokens/s{time_of_step * 1e3:10.1f} ms"
              f"{time_of_step / seconds['compiled']:8.2f} times compiled")


if __name__ == "__main__":
    main()
