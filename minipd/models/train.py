"""`minipd train`: check what was asked for, then start the ranks of the run."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from minipd.dist.comm.sim import World
from minipd.dist.launch import launch_mpi
from minipd.framework.errors import InputError
from minipd.models.config import RunConfig, from_arguments
from minipd.models.corpus import load_corpus
from minipd.models.trainer import latest_checkpoint, must_go_on, run_rank
from minipd.parallel.checkpoint import read_index

__all__ = ["main"]

#: Seconds in which rank 0 may say for all ranks why they refuse; one that refuses alone says it after them.
GRACE = 2.0


def main(argv: Sequence[str]) -> int:
    """Train as the arguments say; returns the exit status.

    What can be refused is refused here, before any rank starts: one clear line instead of one from every rank.
    Raises: InputError.
    """
    config = from_arguments(argv)
    if started_by_launcher():
        from minipd.dist.comm.connect import connect
        comm = connect()
        try:
            run_rank(comm, config)
        except InputError:
            if comm.rank:                       # mostly all ranks refuse alike: then rank 0 says it, and ends them all
                time.sleep(GRACE)
            raise
        return 0
    check_inputs(config)
    if world := started_by_mpiexec():
        raise InputError("`minipd train` alone, which starts its ranks itself", f"{world} of them, started by mpiexec",
                         "leave mpiexec out and set dist.mesh")
    if config.dist.ranks == 1:
        run_rank(None, config)
        return 0
    if config.dist.comm == "sim":
        World(config.dist.ranks).run(run_rank, config)
        return 0
    return launch_mpi(config.dist.ranks, ["-m", "minipd", "train", *argv])


def started_by_launcher() -> bool:
    """Whether this process is an MPI rank already."""
    return "MINIPD_RANKS" in os.environ


def started_by_mpiexec() -> int:
    """How many processes mpiexec has started with this one, where that is more than one; else 0.

    Each of them would start ranks of its own, and train by itself.
    """
    size = next((os.environ[name] for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE") if name in os.environ), "1")
    return int(size) if int(size) > 1 else 0


def check_inputs(config: RunConfig) -> None:
    """Raise InputError if the corpus or the checkpoint to resume from is not what the run needs.

    Loading the corpus here also learns its tokenizer once, which the ranks then find in the cache.
    """
    load_corpus(config.data.corpus, config.model.vocab_size)
    if config.resume:
        index = read_index(latest_checkpoint(Path(config.resume)))
        _must_say(index, config.resume)
        _must_equal("model", dataclasses.asdict(config.model), index["model"], config.resume)
        _must_equal("train.dtype", config.train.dtype, index["dtype"], config.resume)
        must_go_on(config, index["step"])


def _must_say(index: Mapping[str, Any], where: str) -> None:
    """The index of a checkpoint has what `Trainer` adds to it."""
    for key, kind in (("step", int), ("model", dict), ("dtype", str)):
        found = index.get(key)
        if not isinstance(found, kind) or isinstance(found, int) and found < 0:
            raise InputError("a checkpoint of `minipd train`, whose index.json says step, model and dtype",
                             f"{key} = {found!r} in {where}" if key in index else f"no {key} in {where}",
                             "use another checkpoint")


def _must_equal(what: str, wanted: Any, found: Any, where: str) -> None:
    if wanted == found:
        return
    if isinstance(wanted, dict):
        what, wanted, found = next((f"{what}.{k}", v, found.get(k)) for k, v in wanted.items() if v != found.get(k))
    raise InputError(f"a checkpoint of a run with {what} = {wanted}", f"{found} in {where}",
                     "resume with the configuration that it was written with")
