"""How a process that a launcher started finds the other ranks, when it first needs them, and leaves them at its end."""

from __future__ import annotations

import atexit
import sys
import traceback
from typing import Any

from minipd.dist.comm.base import Communicator
from minipd.dist.comm.connect import connect
from minipd.framework.context import install_join
from minipd.framework.environment import is_started, rank_and_size
from minipd.framework.errors import InputError
from minipd.framework.rank import current

__all__: list[str] = []


def current_comm() -> Communicator:
    """This rank's communicator: the door for whatever needs the other ranks.

    A rank that a launcher started joins them here, if it has not yet; a process alone talks to itself.
    Raises: InputError if there is no MPI to be had, or another launcher started the ranks.
    """
    ctx = current()
    if ctx.comm is not None:
        return ctx.comm
    if is_started():
        return join_ranks(connect())
    rank, size = rank_and_size()
    if size > 1:
        raise InputError("ranks started by `minipd launch`, `python -m minipd.distributed.launch` or mpiexec",
                         f"PADDLE_TRAINERS_NUM={size} and PADDLE_TRAINER_ID={rank} of something else",
                         "use one of these, or unset the variables to run alone")
    return Communicator(0, 1)


def join_ranks(comm: Any) -> Any:
    """The context of this process is that of a rank from now on."""
    ctx = current()
    ctx.rank, ctx.world_size, ctx.comm = comm.rank, comm.size, comm
    if ctx.middle is not None:
        ctx.middle = ctx.middle.of(comm.rank)
        ctx.compose()
    atexit.register(_at_exit)
    return comm


install_join(current_comm)


def leave_ranks() -> None:
    """The end of a rank: wait for the others.  A rank that has never joined them does so now, because others may be
    waiting for it.

    Raises: CommError if a message to this rank was never received, or the others are not at their end.
    """
    atexit.unregister(_at_exit)
    comm = current_comm()
    atexit.unregister(_at_exit)                         # which joining has registered
    end_tasks(current())
    close = getattr(comm, "close", None)
    if close is not None:
        close()


def _at_exit() -> None:
    """`leave_ranks` where no launcher of ours sees to it.  What is wrong must end all ranks, and nobody catches what is
    raised while Python exits."""
    if _is_failing():
        return
    try:
        leave_ranks()
    except Exception:
        traceback.print_exc()
        from mpi4py import MPI
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)


def _is_failing() -> bool:
    """Whether this process ends because of an exception: then the others do not come, and nobody waits for them."""
    return getattr(sys, "last_value", None) is not None


def end_tasks(ctx: Any) -> None:
    """Complete what this rank has begun with `sync_op=False` and never waited for."""
    while ctx.tasks:
        ctx.tasks[0].wait()
