"""Pipeline schedules: for each stage the list of its jobs, in order.  Data, known before anything runs.

A step trains on `n_micro` micro-batches.  Micro-batch m goes forward through the stages 0, 1, ..., p-1, and its
gradient back through p-1, ..., 0.  A stage does one job at a time; its schedule says which is next.  With two stages
and three micro-batches (F0 is the forward job of micro-batch 0, B0 its backward job):

    FThenB   stage 0   F0 F1 F2       B0 B1 B2   all forward, then all backward: every micro-batch's activations are
             stage 1      F0 F1 F2 B0 B1 B2      kept at once
    1F1B     stage 0   F0 F1    B0 F2 B1    B2   one forward, one backward: those of p - stage micro-batches are
             stage 1      F0 B0 F1 B1 F2 B2

Why a schedule at all: in whichever order a stage does its jobs, the gradients are the same.  What differs is how many
activations it must keep, and how long it waits.  (`check.py` reckons both.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["SCHEDULES", "Job", "Kind", "Schedule", "schedule"]


class Job(NamedTuple):
    """What a stage does next.

    type: "forward", "backward" or "optimizer".  micro: the micro-batch.  chunk: which of the stage's parts of the
    model, where it has several.
    """

    type: str
    micro: int
    chunk: int = 0

    def __str__(self) -> str:
        """
        >>> str(Job("forward", 2)), str(Job("backward", 0, chunk=1)), str(Job("optimizer", 0))
        ('F2', 'B0 of chunk 1', 'optimizer')
        """
        if self.type == "optimizer":
            return self.type
        return f"{self.type[0].upper()}{self.micro}" + (f" of chunk {self.chunk}" if self.chunk else "")


class Schedule(list[list[Job]]):
    """The jobs of every stage, in order.  (A class, so that a notebook can draw it; plain lists mean the same.)"""


OPTIMIZER = Job("optimizer", 0)


def f_then_b(stage: int, stages: int, n_micro: int) -> list[Job]:
    """All forward jobs, then all backward jobs (GPipe; Huang et al. 2019)."""
    return [*(Job("forward", m) for m in range(n_micro)), *(Job("backward", m) for m in range(n_micro)), OPTIMIZER]


def one_f_one_b(stage: int, stages: int, n_micro: int) -> list[Job]:
    """As soon as a micro-batch can come back, one backward job after each forward job (PipeDream-Flush; Narayanan et
    al. 2021).

    Why the warm-up is stages - 1 - stage forward jobs: micro-batch 0 is that many stages away from the last one, and
    while it goes there and comes back, that many others may follow it.  A shorter warm-up leaves the stage waiting; a
    longer one only keeps more activations.  With fewer micro-batches than that, all of them are warm-up.
    """
    warmup = min(stages - 1 - stage, n_micro)
    jobs = [Job("forward", m) for m in range(warmup)]
    for m in range(n_micro - warmup):
        jobs += [Job("forward", warmup + m), Job("backward", m)]
    return [*jobs, *(Job("backward", m) for m in range(n_micro - warmup, n_micro)), OPTIMIZER]


class Kind(NamedTuple):
    """A kind of schedule.  Both are functions of (stage, stages, n_micro).

    jobs: of one stage.  kept: of how many micro-batches the stage must be able to keep the activations.
    """

    jobs: Callable[[int, int, int], list[Job]]
    kept: Callable[[int, int, int], int]


SCHEDULES = {
    "FThenB": Kind(f_then_b, lambda stage, stages, n_micro: n_micro),
    "1F1B": Kind(one_f_one_b, lambda stage, stages, n_micro: min(stages - stage, n_micro)),
}


def schedule(name: str, stages: int, n_micro: int) -> Schedule:
    """The jobs of every stage.  Paddle's names: FThenB, 1F1B.

    Raises: ValueError for another name, or counts below 1.

    >>> for jobs in schedule("1F1B", stages=2, n_micro=3):
    ...     print(*jobs)
    F0 F1 B0 F2 B1 B2 optimizer
    F0 B0 F1 B1 F2 B2 optimizer
    """
    if name not in SCHEDULES:
        raise ValueError(f"schedule: expected one of {', '.join(SCHEDULES)}, got {name!r}")
    if stages < 1 or n_micro < 1:
        raise ValueError(f"schedule {name}: expected at least one stage and one micro-batch, got {stages} stage(s) and "
                         f"{n_micro} micro-batch(es)")
    return Schedule(SCHEDULES[name].jobs(stage, stages, n_micro) for stage in range(stages))
