"""Ranks as processes that talk through MPI (mpi4py).

Start them with `minipd launch -n 4 script.py`, or `mpiexec -n 4 python -m mpi4py script.py`; without `-m mpi4py` an
exception in one rank leaves the others waiting for ever.

Why not MPI's own collectives.  MPI only advises its implementations to give all ranks the same bits from `Allreduce`,
and their order of additions depends on sizes and algorithms.  Here every collective is an exchange of pieces between
pairs of ranks, and additions happen in `fold`, in the order of the group: the same bits as on simulated ranks.  A large
all-reduce is a reduce-scatter and an all-gather, 2 (n-1)/n of the array sent per rank, as in the best algorithms.  With
more ranks than cores, MPICH's Allgatherv and Alltoallv (which uneven chunks would need) are also 3 to 30 times slower.

Everything travels as bytes, so that bfloat16, which MPI does not know, needs no case of its own.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from minipd.dist.comm.arguments import MAX_TAG, cut
from minipd.dist.comm.base import Communicator, Group
from minipd.dist.comm.calls import Call, call_text
from minipd.dist.comm.errors import CommError, MismatchError
from minipd.dist.comm.handshake import Handshake
from minipd.dist.comm.reduction import fold
from minipd.framework import dtype as dtypes
from minipd.framework.environment import available_cores
from minipd.framework.errors import InputError

__all__ = ["connect"]

#: How to get MPI, for whoever lacks it.
INSTALL = "install it (pip install 'minipd[mpi]'), or simulate the ranks in one process (--comm sim)"

#: Bytes up to which an all-reduce sends whole arrays, in one round instead of two.
ONE_ROUND = 262144

#: Seconds between two looks at whether a message has come, where ranks outnumber cores: at first, and at most.
NAP, LONGEST_NAP = 20e-6, 500e-6

_NP_OF_CODE = {t.code: t.np for t in dtypes.ALL}


def connect() -> MpiCommunicator:
    """This process's communicator, over all processes that mpiexec started with it (one, if it was started alone).

    Every rank calls it, once.  Use it in a `with` statement: at the end of a rank without an error it waits until all
    messages have been received.  From then on what a rank prints appears line by line: mpiexec puts a pipe in the way,
    into which Python would otherwise write some thousand characters at a time, or (if told to be unbuffered) each word
    by itself, and lines of different ranks would mix.

    Raises: InputError if there is no MPI, or mpiexec and mpi4py belong to different ones.
    """
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
    return MpiCommunicator(world.Dup(), world.Dup(), Handshake.from_environment(world))


class MpiCommunicator(Communicator):
    """The communicator of a process; `connect` makes it.

    Args:
        world: mpi4py's communicator of all ranks, from which those of groups are made.
        mail: another one, for `send` and `recv`.
        handshake: compares calls before they are carried out; None in normal runs.
    """

    def __init__(self, world: Any, mail: Any, handshake: Handshake | None = None):
        super().__init__(world.rank, world.size)
        from mpi4py import MPI
        self._mpi, self._world, self._mail, self._handshake = MPI, world, mail, handshake
        here = world.Split_type(MPI.COMM_TYPE_SHARED)
        self._crowded = here.size > available_cores()   # more ranks on this machine than cores
        here.Free()
        # where ranks outnumber cores there is no core for a thread that communicates beside the others
        self.threads = MPI.Query_thread() >= MPI.THREAD_SERIALIZED and not self._crowded
        self._sent: list[tuple[Any, np.ndarray]] = []   # messages on their way, and the memory they are read from
        # The messages of a collective carry a checksum of the call as their tag, and a receiver compares it: so ranks
        # whose calls differ, if only in dtype, do not take one's bytes for the other's.
        self._tag = 0
        self._tags: dict[Call, int] = {}

    def __enter__(self) -> MpiCommunicator:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:                                # after an error the others do not come here: do not wait
            self.close()

    def close(self) -> None:
        """Wait for all ranks, and until what they sent each other has been received."""
        self.barrier()
        status = self._mpi.Status()
        if self._mail.Iprobe(self._mpi.ANY_SOURCE, self._mpi.ANY_TAG, status):
            raise CommError(f"all ranks have ended, but rank {self.rank} never received a message from rank "
                            f"{status.source}, tag {status.tag}")
        self._mpi.Request.Waitall([request for request, _ in self._sent])
        self._sent.clear()

    # ---- collectives

    def _link(self, ranks: tuple[int, ...]) -> None:
        return None                                     # made at the first collective, after the handshake

    def _collect(self, group: Group, call: Call, operand: Any) -> Any:
        if self._handshake is not None:
            self._handshake.agree(group.ranks, call)
        if group.link is None:
            # Create_group is called by the members only (Split would need every rank of the world).
            group.link = self._world.Create_group(self._world.Get_group().Incl(group.ranks))
        self._tag = self._tags.get(call) or self._tags.setdefault(call, crc32(repr(call).encode()) % (MAX_TAG + 1))
        kind, _, _, *parameters = call
        try:
            return getattr(self, "_" + kind)(group, operand, *parameters)
        except (_Unexpected, self._mpi.Exception) as error:
            raise MismatchError(f"rank {self.rank} in {call_text(call)} of the group {group.ranks}: {error}.  "
                                "The members made different calls; with MINIPD_COMM_CHECK=1 you see them") from error

    def _all_reduce(self, g: Group, x: np.ndarray, op: str) -> np.ndarray:
        flat = x.reshape(-1)                            # C order, whatever the order in memory
        if x.nbytes <= ONE_ROUND:
            return self._reduce(g, [flat] * g.size, op).reshape(x.shape)
        each, more = divmod(flat.size, g.size)
        sizes = [each + (i < more) for i in range(g.size)]
        mine = self._reduce(g, cut(flat, 0, sizes), op)
        return self._all_gather(g, mine, 0, sizes).reshape(x.shape)

    def _all_gather(self, g: Group, x: np.ndarray, axis: int, sizes: Sequence[int]) -> np.ndarray:
        out = np.empty((*x.shape[:axis], sum(sizes), *x.shape[axis + 1:]), x.dtype)
        self._exchange(g, [np.ascontiguousarray(x)] * g.size, cut(out, axis, sizes))
        return out

    def _reduce_scatter(self, g: Group, chunks: list[np.ndarray], axis: int, sizes: Sequence[int],
                        op: str) -> np.ndarray:
        return self._reduce(g, chunks, op)

    def _all_to_all(self, g: Group, operand: tuple, split_axis: int, concat_axis: int, *_: Any) -> np.ndarray:
        pieces, sizes = operand
        shape = pieces[g.index].shape
        out = np.empty((*shape[:concat_axis], sum(sizes), *shape[concat_axis + 1:]), pieces[0].dtype)
        self._exchange(g, pieces, cut(out, concat_axis, sizes))
        return out

    def _broadcast(self, g: Group, x: Any, root: int) -> np.ndarray:
        out = np.array(x, order="C") if root == self.rank else np.empty(x.shape, x.dtype)
        g.link.Bcast(self._bytes(out), g.ranks.index(root))
        return out

    def _all_gather_object(self, g: Group, text: bytes) -> list[bytes]:
        return g.link.allgather(text)

    def _barrier(self, g: Group, _: None) -> None:
        g.link.Barrier()

    def _reduce(self, g: Group, chunks: list[np.ndarray], op: str) -> np.ndarray:
        """Give chunk i to member i; what comes for this rank, combined."""
        mine = chunks[g.index]
        arrivals = list(np.empty((g.size, *mine.shape), mine.dtype))
        self._exchange(g, chunks, arrivals)
        return fold(arrivals, op)

    def _exchange(self, g: Group, outgoing: Sequence[np.ndarray], incoming: Sequence[np.ndarray]) -> None:
        """Give outgoing[i] to member i, and fill incoming[i] with what it gives.

        All receives are posted before anything is sent, so nothing is copied on the way and no order can lock up.
        """
        landing = [x if x.flags.c_contiguous else np.empty(x.shape, x.dtype) for x in incoming]
        others = [i for i in range(g.size) if i != g.index]
        receives = [g.link.Irecv(self._bytes(landing[i]), i) for i in others]       # with whatever tag
        sends = [g.link.Isend(self._bytes(np.ascontiguousarray(outgoing[i])), i, self._tag) for i in others]
        incoming[g.index][...] = outgoing[g.index]
        statuses = [self._mpi.Status() for _ in others]
        try:
            self._wait(receives, statuses)
        except self._mpi.Exception as error:
            raise _Unexpected("a member sent more bytes than this call takes") from error
        self._wait(sends)
        for i, status in zip(others, statuses, strict=True):
            got = status.Get_count(self._mpi.BYTE)
            if got != landing[i].nbytes or status.tag != self._tag:
                raise _Unexpected(f"rank {g.ranks[i]} sent {got} bytes of another call, where {landing[i].nbytes} of "
                                  "this one were expected")
            if landing[i] is not incoming[i]:
                incoming[i][...] = landing[i]

    def _wait(self, requests: list, statuses: list | None = None) -> None:
        """Until all requests are done."""
        if self._crowded:
            _look_and_nap(lambda: self._mpi.Request.Testall(requests, statuses))
        else:
            self._mpi.Request.Waitall(requests, statuses)

    def _bytes(self, x: np.ndarray) -> list:
        """A contiguous array as a buffer of MPI."""
        return [x.reshape(-1).view(np.uint8), self._mpi.BYTE]

    # ---- between two ranks

    def _send(self, x: np.ndarray, dst: int, tag: int) -> None:
        self._sent = [(request, message) for request, message in self._sent if not request.Test()]
        message = _pack(x)
        self._sent.append((self._mail.Isend(self._bytes(message), dst, tag), message))

    def _recv(self, src: int, tag: int) -> np.ndarray:
        if self._handshake is not None:
            self._handshake.await_message(self._mail, src, tag)
        status = self._mpi.Status()
        if self._crowded:
            found = _look_and_nap(lambda: self._mail.Improbe(src, tag, status))
        else:
            found = self._mail.Mprobe(src, tag, status)
        message = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
        found.Recv(self._bytes(message))
        return _unpack(message)


def _look_and_nap(look: Callable[[], Any]) -> Any:
    """What `look` returns once that is true.

    MPI waits by looking again and again.  On a core that another rank could use, this sleeps in between, the longer
    the longer it waits: a collective takes microseconds, another stage of a pipeline milliseconds.
    """
    nap = NAP
    while not (found := look()):
        time.sleep(nap)
        nap = min(2 * nap, LONGEST_NAP)
    return found


class _Unexpected(Exception):
    """A member sent what does not belong to this rank's call."""


def _pack(x: np.ndarray) -> np.ndarray:
    """x as bytes that say what they are: int64 dtype code, number of dimensions and shape, then the elements."""
    head = np.array([dtypes.of(x.dtype).code, x.ndim, *x.shape], np.int64).view(np.uint8)
    message = np.empty(head.nbytes + x.nbytes, np.uint8)
    message[:head.nbytes] = head
    message[head.nbytes:].view(x.dtype).reshape(x.shape)[...] = x
    return message


def _unpack(message: np.ndarray) -> np.ndarray:
    """The array that `_pack` was given, in the memory of the message.

    >>> _unpack(_pack(np.array([[1.5, 2.0]])))
    array([[1.5, 2. ]])
    """
    code, ndim = message[:16].view(np.int64)
    shape = tuple(message[16:16 + 8 * ndim].view(np.int64))
    return message[16 + 8 * ndim:].view(_NP_OF_CODE[int(code)]).reshape(shape)
