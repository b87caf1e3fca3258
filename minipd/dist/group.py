"""Ranks that know each other: the start of a parallel program, and groups of ranks (Paddle's names)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

from minipd.dist.comm.mpi import connect
from minipd.dist.interpreter import Dist
from minipd.framework.rank import current

__all__ = ["Group", "destroy_process_group", "get_group", "get_rank", "get_world_size", "init_parallel_env",
           "is_initialized", "new_group"]

#: variables that `minipd launch`, and the mpiexec of MPICH and of Open MPI, give to the processes they start
STARTED = ("MINIPD_RANKS", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")


class Group:
    """Ranks that communicate with each other.

    ranks: global ranks, in the order in which results stand.  rank: this rank's number among them, -1 if it is none of
    them.  id: its number among the groups of this rank; 0 is the group of all ranks.
    """

    def __init__(self, rank_in_group: int, id: int, ranks: list[int], name: str | None = None):
        self.rank, self.id, self.ranks, self.name = rank_in_group, id, ranks, name

    @property
    def nranks(self) -> int:
        return len(self.ranks)

    @property
    def world_size(self) -> int:
        """How many ranks there are; -1 on a rank that is none of them."""
        return self.nranks if self.is_member() else -1

    def is_member(self) -> bool:
        """Whether this rank belongs to the group."""
        return self.rank >= 0

    def get_group_rank(self, rank: int) -> int:
        """The number in the group of a global rank; -1 if it, or this rank, is none of the group."""
        return self.ranks.index(rank) if self.is_member() and rank in self.ranks else -1

    def __repr__(self) -> str:
        return (f"rank: {self.rank}, nranks: {self.nranks}, id: {self.id}, ranks: "
                f"{', '.join(map(str, self.ranks))}; name: {self.name}")


def init_parallel_env(nccl_config: Any = None) -> Group:
    """Join the other ranks; returns the group of all of them.

    A process that `minipd launch` (or `mpiexec ... python -m mpi4py`) started becomes its rank; any other is rank 0 of
    1; a simulated rank is what it is.  Everything else of the process's context, its seed for instance, stays.
    Raises: InputError if there is no MPI to be had although ranks were started.

    >>> init_parallel_env()
    rank: 0, nranks: 1, id: 0, ranks: 0; name: _default_pg
    >>> destroy_process_group()
    """
    ctx = current()
    if not ctx.groups:
        if ctx.comm is None and not os.environ.keys().isdisjoint(STARTED):
            _become(ctx, connect())
        ctx.groups[0] = Group(ctx.rank, 0, list(range(ctx.world_size)), "_default_pg")
    return ctx.groups[0]


def _become(ctx: Any, comm: Any) -> None:
    """The context of a process is that of a rank from now on."""
    ctx.rank, ctx.world_size, ctx.comm = comm.rank, comm.size, comm
    if ctx.middle is not None:
        ctx.middle = Dist(comm.rank)
        ctx.compose()


def is_initialized() -> bool:
    """Whether `init_parallel_env` has been called."""
    return bool(current().groups)


def new_group(ranks: Sequence[int] | None = None, backend: str | None = None, timeout: Any = None,
              nccl_comm_init_option: int = 0, nccl_config: Any = None) -> Group:
    """A group of some ranks (None: of all).  Every rank calls it, also those that are not in the group.

    Raises: ValueError for ranks that are not different numbers of ranks that were started.
    """
    ctx = current()
    everyone = existing(None, "new_group").ranks
    chosen = everyone if ranks is None else [int(r) for r in ranks]
    if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(everyone):
        raise ValueError(f"new_group: expected different ranks of 0 to {len(everyone) - 1}, got {list(chosen)}")
    number = max(ctx.groups) + 1
    at = chosen.index(ctx.rank) if ctx.rank in chosen else -1
    ctx.groups[number] = Group(at, number, list(chosen), f"_default_pg{number}")
    return ctx.groups[number]


def get_group(id: int = 0) -> Group | None:
    """The group with this number; None, with a warning, if there is none."""
    found = current().groups.get(id)
    if found is None:
        warnings.warn(f"Group {id} is not initialized.", stacklevel=2)
    return found


def destroy_process_group(group: Group | None = None) -> None:
    """Forget a group.  Without one, all of them, after waiting for the other ranks: the end of what `init_parallel_env`
    began.

    Raises: CommError if a message to this rank was never received.
    """
    ctx = current()
    given = existing(group, "destroy_process_group")
    if given.id:
        del ctx.groups[given.id]
        return
    ctx.groups.clear()
    close = getattr(ctx.comm, "close", None)
    if close is not None:
        close()


def get_rank(group: Group | None = None) -> int:
    """The number of this rank, from 0; with a group, among its members (-1 if it is none)."""
    return current().rank if group is None else group.rank


def get_world_size(group: Group | None = None) -> int:
    """How many ranks there are; with a group, how many members (-1 on a rank that is none)."""
    return current().world_size if group is None else group.world_size


def existing(group: Group | None, what: str) -> Group:
    """The group meant (None: of all ranks).

    Raises: RuntimeError before `init_parallel_env`, ValueError for a group that was destroyed.
    """
    groups = current().groups
    if not groups:
        raise RuntimeError(f"{what}: expected ranks that know each other; call init_parallel_env() first")
    found = groups.get(0 if group is None else group.id)
    if found is None or group is not None and found is not group:
        raise ValueError(f"{what}: expected a group that exists, got {group}, which was destroyed")
    return found


def entered(group: Group | None, what: str) -> Group | None:
    """The group, on its members; elsewhere None, with a warning, as in Paddle."""
    found = existing(group, what)
    if found.is_member():
        return found
    warnings.warn(f"{what}: rank {current().rank} is not in the group of the ranks {found.ranks}, so it does nothing",
                  stacklevel=3)
    return None
