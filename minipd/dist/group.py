"""Ranks that know each other: the start of a parallel program, and groups of ranks (Paddle's names).

A process that a launcher started is a rank, and joins the others when it first needs them (`joining.py`): a script need
not call `init_parallel_env`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from minipd.dist.joining import current_comm, end_tasks
from minipd.dist.parallel_env import own_rank
from minipd.framework.environment import is_started
from minipd.framework.rank import current

__all__ = ["Group", "create_nccl_config", "destroy_process_group", "get_backend", "get_group", "get_rank",
           "get_world_size", "init_parallel_env", "is_available", "is_initialized", "new_group",
           "restart_process_group", "shutdown_process_group"]

#: The names by which Paddle knows backends; whatever a group is asked to use, it uses this rank's communicator.
BACKENDS = ("auto", "gloo", "nccl", "bkcl", "xccl", "heter", "flagcx")
#: How long Paddle lets ranks wait for each other; here a wait that cannot end is found out, whatever it is told.
PATIENCE = timedelta(minutes=30)
#: The number of the first group beyond that of all ranks, as in Paddle.
FIRST_GROUP = 10


class Group:
    """Ranks that communicate with each other.

    ranks: global ranks, ascending: the order in which results stand.  rank: this rank's number among them, -1 if it is
    none of them.  id: its number among the groups of this rank; 0 is the group of all ranks.
    """

    def __init__(self, rank_in_group: int, id: int, ranks: list[int], pg: Any = None, name: str | None = None):
        self.rank, self.id, self.ranks, self.name = rank_in_group, id, ranks, name
        self.shut = False

    @property
    def nranks(self) -> int:
        return len(self.ranks)

    @property
    def world_size(self) -> int:
        """How many ranks there are; -1 on a rank that is none of them."""
        return self.nranks if self.is_member() else -1

    @property
    def process_group(self) -> Group:
        """Paddle's handle of what communicates; here the group itself."""
        return self

    @property
    def backend(self) -> str:
        """`NCCL` between GPUs, `GLOO` between CPUs: what Paddle says, so that a script takes the same way here."""
        return getattr(current().comm, "backend", "GLOO")

    def is_member(self) -> bool:
        """Whether this rank belongs to the group."""
        return self.rank >= 0

    def get_group_rank(self, rank: int) -> int:
        """The number in the group of a global rank; -1 if it, or this rank, is none of the group."""
        return self.ranks.index(rank) if self.is_member() and rank in self.ranks else -1

    def get_global_rank(self, rank: int) -> int:
        """The global rank that has this number in the group; -1 on a rank that is none of the group."""
        return self.ranks[rank] if self.is_member() else -1

    def __repr__(self) -> str:
        return (f"rank: {self.rank}, nranks: {self.nranks}, id: {self.id}, ranks: "
                f"{', '.join(map(str, self.ranks))}; name: {self.name}")


def init_parallel_env(nccl_config: Any = None) -> Group:
    """Join the other ranks; returns the group of all of them.

    A process that `minipd launch` (or `mpiexec ... python -m mpi4py`) started becomes its rank; any other is rank 0 of
    1, with a warning; a simulated rank is what it is.  Everything else of the process's context, its seed for instance,
    stays.
    Raises: InputError if there is no MPI to be had although ranks were started.

    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> init_parallel_env()
    rank: 0, nranks: 1, id: 0, ranks: 0; name: _default_pg
    >>> destroy_process_group()
    """
    ctx = current()
    if 0 not in ctx.groups:
        if current_comm().size < 2:
            warnings.warn("Currently not a parallel execution environment: init_parallel_env finds this rank alone "
                          "(`minipd launch -n 2 script.py` starts two)", stacklevel=2)
        ctx.groups[0] = Group(ctx.rank, 0, list(range(ctx.world_size)), name="_default_pg")
    return ctx.groups[0]


def is_initialized() -> bool:
    """Whether this rank and others have joined each other (`init_parallel_env`); False for a process alone."""
    ctx = current()
    return bool(ctx.groups) and ctx.world_size > 1


def is_available() -> bool:
    """Whether ranks can communicate: always (without MPI, simulated ones)."""
    return True


def new_group(ranks: Sequence[int] | None = None, backend: str | None = None, timeout: timedelta = PATIENCE,
              nccl_comm_init_option: int = 0, nccl_config: Any = None) -> Group:
    """A group of some ranks (None: of all), in ascending order.  Every rank calls it, also those that are not in it.

    Raises: ValueError for ranks that are not different numbers of ranks that were started, or an unknown backend.
    """
    ctx = current()
    everyone = existing(None, "new_group").ranks
    chosen = everyone if ranks is None else sorted(int(r) for r in ranks)
    if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(everyone):
        raise ValueError(f"new_group: expected different ranks of 0 to {len(everyone) - 1}, got {list(chosen)}")
    if backend is not None and backend not in BACKENDS:
        raise ValueError(f"new_group: expected a backend of {', '.join(BACKENDS)}, got {backend!r}")
    number = ctx.counters["_process_group"] + FIRST_GROUP
    ctx.counters["_process_group"] += 1
    at = chosen.index(ctx.rank) if ctx.rank in chosen else -1
    ctx.groups[number] = Group(at, number, list(chosen), name=f"_default_pg{number}")
    return ctx.groups[number]


#: What can be said about NCCL in Paddle.
NCCL_SETTINGS = ("commName", "ll_buffsize", "ll128_buffsize", "simple_buffsize", "buffsize_align", "nchannels",
                 "algoStr", "protoStr")


def create_nccl_config(nccl_config: dict[str, int | str] | None = None) -> dict[str, int | str] | None:
    """Settings of NCCL for `new_group` and `init_parallel_env`, which take them; without effect here.

    Raises: ValueError for one that Paddle does not have.
    """
    unknown = set(nccl_config or ()) - set(NCCL_SETTINGS)
    if unknown:
        raise ValueError(f"create_nccl_config: expected {', '.join(NCCL_SETTINGS)}; got {', '.join(sorted(unknown))}")
    return None if nccl_config is None else dict(nccl_config)


def get_group(id: int = 0) -> Group | None:
    """The group with this number; None, with a warning, if there is none."""
    found = current().groups.get(id)
    if found is None:
        warnings.warn(f"Group {id} is not initialized.", stacklevel=2)
    return found


def destroy_process_group(group: Group | None = None) -> None:
    """Forget a group.  Without one, all of them, after waiting for the other ranks: the end of what `init_parallel_env`
    began.

    Raises: CommError if a message to this rank was never received; RuntimeError before `init_parallel_env`.
    """
    ctx = current()
    if not ctx.groups:
        raise RuntimeError(NOT_INITIALIZED.format("destroy_process_group"))
    given = existing(group, "destroy_process_group")
    if given.id:
        del ctx.groups[given.id]
        return
    end_tasks(ctx)
    ctx.groups.clear()
    close = getattr(ctx.comm, "close", None)
    if close is not None:
        close(last=False)                               # the rank may go on, and begin again


def shutdown_process_group(group: Group | None = None) -> None:
    """Let a group (None: all but that of all ranks) rest; its collectives raise until `restart_process_group`."""
    _shut(group, True, "shutdown_process_group")


def restart_process_group(group: Group | None = None) -> None:
    """Let a group (None: all) communicate again after `shutdown_process_group`."""
    _shut(group, False, "restart_process_group")


def _shut(group: Group | None, shut: bool, what: str) -> None:
    end_tasks(current())
    for g in [existing(group, what)] if group is not None else current().groups.values():
        g.shut = shut and (group is not None or g.id != 0)


def get_rank(group: Group | None = None) -> int:
    """The number of this rank, from 0; with a group, among its members (-1 if it is none).

    A rank that a launcher started knows it from the beginning.
    """
    return own_rank()[0] if group is None else group.rank


def get_world_size(group: Group | None = None) -> int:
    """How many ranks there are; with a group, how many members (-1 on a rank that is none)."""
    return own_rank()[1] if group is None else group.world_size


def get_backend(group: Group | None = None) -> str:
    """What a group (None: of all ranks) communicates through, in Paddle's words: "GLOO" on CPUs, "NCCL" on GPUs.

    Raises: RuntimeError on a rank that is none of the group.
    """
    given = existing(group, "get_backend")
    if not given.is_member():
        raise RuntimeError(f"get_backend: Invalid group specified: rank {current().rank} is not in {given.ranks}")
    return given.backend


NOT_INITIALIZED = ("{}: The global group is not initialized: this process is alone.  Start ranks (minipd launch -n 2 "
                   "script.py), or call init_parallel_env() for a group of one")


def existing(group: Group | None, what: str) -> Group:
    """The group meant (None: of all ranks, which a rank joins here if it has not yet).

    Raises: RuntimeError in a process alone before `init_parallel_env`, ValueError for a group that was destroyed.
    """
    ctx = current()
    if group is None and 0 not in ctx.groups:
        if ctx.comm is None and not is_started():
            raise RuntimeError(NOT_INITIALIZED.format(what))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")             # that a world of one is alone: it was asked for
            return init_parallel_env()
    found = ctx.groups.get(0 if group is None else group.id)
    if found is None or group is not None and found is not group:
        raise ValueError(f"{what}: expected a group that exists, got {group}, which was destroyed")
    return found


def entered(group: Group | None, what: str) -> Group | None:
    """The group, on its members; elsewhere None, with a warning, as in Paddle."""
    found = existing(group, what)
    if found.shut:
        raise RuntimeError(f"{what}: expected a group that communicates, got {found}, which was shut down; call "
                           "restart_process_group")
    if found.is_member():
        return found
    warnings.warn(f"Current global rank {current().rank} is not in group {found.name} of the ranks {found.ranks}: "
                  f"{what} does nothing", stacklevel=3)
    return None
