"""A schedule, checked and timed as data: what is wrong with it is said before a rank runs, and not by ranks that hang.

The interpreter (`simulate`) is what a schedule means.  A stage does its jobs in their order; before each it waits for
what the job needs of another one (a receive that blocks), after it the result goes out without waiting.  A forward job
needs the same micro-batch forward on the part of the model before; a backward job needs it backward on the part after,
and forward on its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from minipd.parallel.pipeline.schedule import Job

__all__ = ["Timed", "bubble", "check", "in_flight", "simulate"]

COSTS = {"forward": 1, "backward": 1, "optimizer": 0}

Place = tuple[int, Job]                 # (stage, job)


class Timed(NamedTuple):
    """A job of a stage, from `start` to `end`."""

    stage: int
    job: Job
    start: int
    end: int


def simulate(schedule: list[list[Job]], costs: Mapping[str, int] = COSTS) -> list[Timed]:
    """When each job would run if nothing but jobs took time, by stage.

    costs: per type of job; a backward job takes about twice as long as a forward one.
    Raises: ValueError if the stages wait for each other.

    >>> from minipd.parallel.pipeline.schedule import schedule
    >>> for t in simulate(schedule("1F1B", stages=2, n_micro=2)):
    ...     print(t.stage, t.job, t.start, t.end)
    0 F0 0 1
    0 F1 1 2
    0 B0 3 4
    0 B1 5 6
    0 optimizer 6 6
    1 F0 1 2
    1 B0 2 3
    1 F1 3 4
    1 B1 4 5
    1 optimizer 5 5
    """
    ends: dict[Place, int] = {}
    found: list[list[Timed]] = [[] for _ in schedule]
    parts = _parts(schedule)
    while any(len(done) < len(jobs) for done, jobs in zip(found, schedule, strict=True)):
        before = len(ends)
        for stage, jobs in enumerate(schedule):
            for job in jobs[len(found[stage]):]:
                needed = _needs(stage, job, len(schedule), parts)
                if any(n not in ends for n in needed):
                    break
                free = found[stage][-1].end if found[stage] else 0
                start = max([free, *(ends[n] for n in needed)])
                ends[stage, job] = start + costs[job.type]
                found[stage].append(Timed(stage, job, start, ends[stage, job]))
        if len(ends) == before:
            raise ValueError(_deadlock(schedule, found, ends, parts))
    return [t for timed in found for t in timed]


def _parts(schedule: list[list[Job]]) -> int:
    """In how many parts the model is cut; part i is chunk i // stages of stage i % stages."""
    return len(schedule) * (1 + max((job.chunk for jobs in schedule for job in jobs), default=0))


def _needs(stage: int, job: Job, stages: int, parts: int) -> list[Place]:
    """What must be done before a job, but for the jobs before it on its own stage."""
    if job.type == "optimizer":
        return []
    part, needed = job.chunk * stages + stage, []
    if job.type == "backward":
        needed.append((stage, job._replace(type="forward")))
    near = part - 1 if job.type == "forward" else part + 1
    if 0 <= near < parts:
        needed.append((near % stages, job._replace(chunk=near // stages)))
    return needed


def _deadlock(schedule: list[list[Job]], found: list[list[Timed]], ends: Mapping[Place, int], parts: int) -> str:
    waits = []
    for stage, jobs in enumerate(schedule):
        if len(found[stage]) < len(jobs):
            job = jobs[len(found[stage])]
            at, missing = next(n for n in _needs(stage, job, len(schedule), parts) if n not in ends)
            waits.append(f"stage {stage} waits in {job} for {missing} of stage {at}")
    return f"schedule: expected an order in which every stage goes on, got a deadlock: {'; '.join(waits)}"


def in_flight(jobs: list[Job]) -> int:
    """Of how many micro-batches a stage keeps the activations at once, at most."""
    now = most = 0
    for job in jobs:
        now += {"forward": 1, "backward": -1}.get(job.type, 0)
        most = max(most, now)
    return most


def bubble(schedule: list[list[Job]], costs: Mapping[str, int] = COSTS) -> float:
    """The part of all stages' time in which they wait.

    With p stages and m micro-batches it is (p - 1) / (m + p - 1), for FThenB and 1F1B alike:

    >>> from minipd.parallel.pipeline.schedule import schedule
    >>> bubble(schedule("1F1B", stages=2, n_micro=4))
    0.2
    """
    timed = simulate(schedule, costs)
    whole = len(schedule) * max(t.end for t in timed)
    return (whole - sum(t.end - t.start for t in timed)) / whole


def check(schedule: list[list[Job]], n_micro: int, kept: list[int] | None = None) -> None:
    """Raise ValueError, naming stage and job, unless the schedule is right.

    Every stage does each micro-batch forward once and backward once, forward first, and the optimizer once, last.  No
    stages wait for each other.  kept: per stage, of how many micro-batches it may keep activations at once.

    >>> check([[Job("backward", 0), Job("forward", 0), Job("optimizer", 0)]], n_micro=1)
    Traceback (most recent call last):
    ...
    ValueError: schedule, stage 0: expected F0 before B0, which needs what F0 keeps; got B0 as job 0 and F0 as job 1
    """
    chunks = _parts(schedule) // max(len(schedule), 1)
    for stage, jobs in enumerate(schedule):
        _check_stage(f"schedule, stage {stage}", jobs, n_micro, chunks)
    simulate(schedule)
    for stage, most in enumerate(kept or []):
        if in_flight(schedule[stage]) > most:
            raise ValueError(f"schedule, stage {stage}: expected activations of at most {most} micro-batch(es) at "
                             f"once, got {in_flight(schedule[stage])}; do backward jobs earlier")


def _check_stage(where: str, jobs: list[Job], n_micro: int, chunks: int) -> None:
    wanted = [Job(kind, m, c) for kind in ("forward", "backward") for m in range(n_micro) for c in range(chunks)]
    for job in wanted:
        if jobs.count(job) != 1:
            raise ValueError(f"{where}: expected {job} once, got it {jobs.count(job)} times")
    for job in jobs:
        if job.type != "optimizer" and job not in wanted:
            raise ValueError(f"{where}: expected jobs of the micro-batches 0 to {n_micro - 1}, got {job!r}")
        if job.type == "backward":
            forward = job._replace(type="forward")
            if jobs.index(forward) > jobs.index(job):
                raise ValueError(f"{where}: expected {forward} before {job}, which needs what {forward} keeps; got "
                                 f"{job} as job {jobs.index(job)} and {forward} as job {jobs.index(forward)}")
    if not jobs or jobs[-1].type != "optimizer" or sum(job.type == "optimizer" for job in jobs) != 1:
        raise ValueError(f"{where}: expected the optimizer's job once, last, when all gradients are there; got "
                         f"{', '.join(map(str, jobs))}")
