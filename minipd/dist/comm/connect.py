"""How a process gets its communicator: over all processes that mpiexec has started with it."""

from __future__ import annotations

import io
import os
import sys
import time
from typing import Any

from minipd.dist.comm.calls import caller_site
from minipd.dist.comm.errors import RankDiedError
from minipd.dist.comm.handshake import Handshake
from minipd.dist.comm.inquest import Inquest
from minipd.dist.comm.mpi import MpiCommunicator
from minipd.dist.comm.nccl import NcclCommunicator, load
from minipd.framework.errors import InputError

__all__ = ["connect"]

#: How to get MPI, for whoever lacks it.
INSTALL = "install it (pip install 'minipd[mpi]'), or simulate the ranks in one process (--comm sim)"

#: This process's communicators by backend, once it is connected.
_OURS: dict[str, Any] = {}


def connect(backend: str = "mpi") -> Any:
    """This process's communicator, over all processes that mpiexec started with it (one, if it was started alone).

    backend: "mpi" for arrays of numpy; "nccl" if there are arrays on GPUs as well (see `nccl.py`).

    Every rank calls it; a second call gives the same one.  Use it in a `with` statement: at the end of a rank without
    an error it waits until all messages have been received.  From then on what a rank prints appears line by line:
    mpiexec puts a pipe in the way, into which Python would otherwise write some thousand characters at a time, or (if
    told to be unbuffered) each word by itself, and lines of different ranks would mix.

    Raises: InputError if there is no MPI, or mpiexec and mpi4py belong to different ones; no GPU for "nccl".
    RankDiedError if a rank has failed before it came here.
    """
    if backend not in ("mpi", "nccl"):
        raise InputError("backend \"mpi\" or \"nccl\"", repr(backend), "choose one of them")
    if backend in _OURS:
        return _OURS[backend]
    if backend == "nccl":
        _OURS["nccl"] = over_nccl(connect("mpi"))
        return _OURS["nccl"]
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:        # RuntimeError: mpi4py is here, but no MPI library
        raise InputError("MPI, for ranks in processes of their own", f"none ({error})", INSTALL) from error
    world = MPI.COMM_WORLD
    started = int(os.environ.get("MINIPD_RANKS", world.size))
    if started != world.size:
        library = MPI.Get_library_version().splitlines()[0]
        raise InputError(f"{started} ranks, as mpiexec was told", f"a world of {world.size}",
                         f"mpiexec must come from the MPI that mpi4py uses, which is {library}")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True, write_through=False)
    wait_for_all(world)
    _OURS["mpi"] = communicator_over(world)
    return _OURS["mpi"]


def wait_for_all(world: Any) -> None:
    """Return when all ranks have come.  A rank that has failed before does not; the launcher on its host has noted it.

    (What making communicators waits in cannot be left.)
    """
    failure, looks = os.path.join(os.environ.get("MINIPD_JOB", ""), "failure"), 0
    met = world.Ibarrier()
    while not met.Test():
        looks += 1
        time.sleep(min(looks * 1e-4, 0.02))
        if looks % 20 == 0 and os.path.isfile(failure):
            with open(failure) as file:
                rank, status = file.read().split()
            raise RankDiedError(f"rank {rank} has ended with exit status {status} before all ranks had met, so the "
                                f"others cannot go on:\n  rank {world.rank} waits for all ranks, at {caller_site()}")


def over_nccl(mpi: MpiCommunicator) -> NcclCommunicator:
    """A communicator for arrays on GPUs; the ranks of a machine take its GPUs in turns."""
    cupy = load()
    here = mpi._world.Split_type(mpi._mpi.COMM_TYPE_SHARED)
    local = here.rank
    here.Free()
    return NcclCommunicator(mpi, cupy, local)


def communicator_over(world: Any) -> MpiCommunicator:
    """A communicator of its own over the ranks of an mpi4py communicator.  All of them call this together."""
    return MpiCommunicator(world.Dup(), world.Dup(), Inquest.from_environment(world), Handshake.from_environment(world))
