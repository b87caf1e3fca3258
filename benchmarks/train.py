"""Tokens per second of a training step: eager, static, compiled; and other frameworks.

    python benchmarks/train.py                                  the default model, each way in a process of its own
    python benchmarks/train.py --model A --torch PYTHON --jax PYTHON --paddle PYTHON      model A, and others
    minipd launch -n 4 benchmarks/train.py --mesh dp=2,tp=2     on 4 ranks, which run all ways in turn

Rounds alternate (eager, static, compiled, eager, ...); medians are printed, and their ratios; the most memory that each
process held, libraries included; and the goals, for model A.  Figures: README.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

from harness import KEEP_MEMORY, Contender, compare
from train_cases import MODELS, WAYS, batch_of, config_of
from train_peers import PEERS

from minipd.framework.environment import available_cores, rank_environment

#: of model A: how many times as long as the compiled step the others' must take
GOALS = {"torch": 1.0, "jax": 1.6, "paddle.to_static": 2.0, "paddle": 3.5}
#: of model A: the compiled step's peak of memory, in that of torch.compile
MEMORY_GOAL = 0.85


def apart(model: str, pythons: dict[str, str], threads: int, rounds: int) -> tuple[dict[str, float], dict[str, int]]:
    """Way -> seconds of a step, and way -> bytes that it held at most, each in a process of its own.

    pythons: framework -> its interpreter.
    """
    file = Path(__file__).with_name("train_cases.py")
    own = rank_environment(1, threads)
    contenders = [Contender(way, file, f"{model} {way}", threads=threads, environment=own) for way in WAYS]
    for way in PEERS:
        if python := pythons.get(way.split(".")[0]):
            contenders.append(Contender(way, file, f"{model} {way}", python, threads=threads, environment=KEEP_MEMORY))
    return compare(contenders, rounds, seconds=0)["step"], {c.label: c.peak for c in contenders}


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
    for peer in ("torch", "jax", "paddle"):
        options.add_argument(f"--{peer}", metavar="PYTHON", help=f"an interpreter that has {peer}, for models A and B")
    options.add_argument("--threads", type=int, default=available_cores())
    options.add_argument("--rounds", type=int, default=9)
    given = options.parse_args()
    pythons = {peer: getattr(given, peer) for peer in ("torch", "jax", "paddle") if getattr(given, peer)}
    if pythons and not MODELS[given.model]:
        options.error(f"--{next(iter(pythons))} needs a model whose values are written in train_cases.py, such as "
                      "--model A")
    peaks: dict[str, int] = {}
    if "MINIPD_RANKS" in os.environ:
        seconds = together(given.model, given.mesh, given.rounds)
    else:
        seconds, peaks = apart(given.model, pythons, given.threads, given.rounds)
    if seconds is None:
        return
    config = config_of(given.model, given.mesh)
    tokens = config.train.batch * config.data.seq_len
    print(f"model {given.model}, mesh {given.mesh}, {tokens} tokens a step, median of {given.rounds} rounds")
    for way, time_of_step in seconds.items():
        memory = f"{peaks[way] / 2**20:8.0f} MB" if way in peaks else ""
        goal = f", goal {GOALS[way]}" if given.model == "A" and way in GOALS else ""
        print(f"{way:17}{tokens / time_of_step:10,.0f} tokens/s{time_of_step * 1e3:10.1f} ms{memory}"
              f"{time_of_step / seconds['compiled']:8.2f} times compiled{goal}")
    if given.model == "A" and "torch.compile" in peaks:
        part = peaks["compiled"] / peaks["torch.compile"]
        print(f"memory at most: {part:.2f} of torch.compile's, goal {MEMORY_GOAL}")


if __name__ == "__main__":
    main()
