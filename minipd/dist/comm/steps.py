"""The collectives of MPI ranks, each as a sequence of steps between which a rank may do something else.

A function here is a generator.  It sends and expects something, and yields `(ready, more)`: a function that says
whether that has happened, and whether it is going to send more afterwards.  Whoever runs it goes on once `ready()` is
true.  What it returns is the collective's result.

Why not MPI's own collectives.  MPI only advises its implementations to give all ranks the same bits from `Allreduce`,
and their order of additions depends on sizes and algorithms.  Here every collective is an exchange of pieces between
pairs of ranks, and additions happen in `fold`, in the order of the group: the same bits as on simulated ranks.  A large
all-reduce is a reduce-scatter and an all-gather, 2 (n-1)/n of the array sent per rank, as in the best algorithms.  With
more ranks than cores, MPICH's Allgatherv and Alltoallv (which uneven chunks would need) are also 3 to 30 times slower.

Everything travels as bytes, so that bfloat16, which MPI does not know, needs no case of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from minipd.dist.comm import shared
from minipd.dist.comm.arguments import cut
from minipd.dist.comm.base import Group
from minipd.dist.comm.calls import Call
from minipd.dist.comm.reduction import fold

__all__: list[str] = []

#: What a collective does on one rank.
Steps = Generator[tuple[Callable[[], bool], bool], None, Any]

#: Bytes up to which an all-reduce sends whole arrays, in one round instead of two.
ONE_ROUND = 262144


class Unexpected(Exception):
    """A member sent what does not belong to this rank's call."""


class Line:
    """How a rank exchanges bytes with the other members of a group.

    Args:
        mpi: the module `mpi4py.MPI`.
        comm: mpi4py's communicator of the group, for its collectives only; None until the members have met.
        crowded: whether more ranks than cores are on this machine.

    Attributes:
        begun: how many collectives this rank has begun.
        calls: the latest of them.
    """

    # The messages of a collective carry a checksum of the call as their tag, and a receiver takes whatever comes next
    # and compares it: so ranks whose calls differ, if only in dtype, do not take one's bytes for the other's.  This
    # needs all members to send and to expect in the same order, which the communicator sees to.

    def __init__(self, mpi: Any, comm: Any = None, crowded: bool = False):
        self.mpi, self.comm, self.crowded = mpi, comm, crowded
        self.here = False                               # whether all members are on this machine, once they have met
        self.window: shared.Window | bool | None = None # memory that they share; False: they cannot have any
        self.begun = 0
        self.calls: deque[Call] = deque(maxlen=16)

    def exchange(self, g: Group, tag: int, outgoing: Sequence[np.ndarray], incoming: Sequence[np.ndarray],
                 more: bool = False) -> Steps:
        """Give outgoing[i] to member i, and fill incoming[i] with what it gives.

        All receives are posted before anything is sent, so nothing is copied on the way and no order can lock up.
        """
        mpi, comm = self.mpi, self.comm
        landing = [x if x.flags.c_contiguous else np.empty(x.shape, x.dtype) for x in incoming]
        leaving = [np.ascontiguousarray(x) for x in outgoing]
        others = [i for i in range(g.size) if i != g.index]
        requests = [comm.Irecv(self.bytes(landing[i]), i) for i in others]      # with whatever tag
        requests += [comm.Isend(self.bytes(leaving[i]), i, tag) for i in others]
        if incoming[g.index] is not outgoing[g.index]:
            incoming[g.index][...] = outgoing[g.index]
        statuses = [mpi.Status() for _ in requests]
        yield self.all_done(requests, statuses, [g.ranks[i] for i in others]), more
        for i, status in zip(others, statuses, strict=False):
            got = status.Get_count(mpi.BYTE)
            if got != landing[i].nbytes or status.tag != tag:
                raise Unexpected(f"rank {g.ranks[i]} sent {got} bytes of another call, where {landing[i].nbytes} of "
                                 "this one were expected")
            if landing[i] is not incoming[i]:
                incoming[i][...] = landing[i]

    def all_done(self, requests: list, statuses: list | None = None, peers: Sequence[int] = ()) -> Callable[[], bool]:
        """Whether all of MPI's requests are over; the first ones are receives from the ranks `peers`.

        Raises: Unexpected if more came than there is room for.
        """
        def ready() -> bool:
            try:
                return test(requests, statuses)
            except self.mpi.Exception as error:
                bad = [str(r) for r, status in zip(peers, statuses or (), strict=False) if status.error]
                raise Unexpected(f"rank {', '.join(bad) or '?'} sent more bytes than this call takes") from error
        test = self.mpi.Request.Testall
        return ready

    def bytes(self, x: np.ndarray) -> list:
        """A contiguous array as a buffer of MPI."""
        return [x.reshape(-1).view(np.uint8), self.mpi.BYTE]


# What each collective does: (line, group, tag of the call, operand, *parameters) -> the result.

def _all_reduce(line: Line, g: Group, tag: int, x: np.ndarray, op: str) -> Steps:
    flat = x.reshape(-1)                                # C order, whatever the order in memory
    if line.here and shared.LEAST <= x.nbytes <= shared.MOST:
        if line.window is None:
            yield from _make_window(line, g, tag)
        if isinstance(line.window, shared.Window):
            return (yield from shared.all_reduce(line.window, g, tag, x, op, Unexpected))
    if x.nbytes <= ONE_ROUND:
        total = yield from _reduce(line, g, tag, [flat] * g.size, op)
        return total.reshape(x.shape)
    each, rest = divmod(flat.size, g.size)
    sizes = [each + (i < rest) for i in range(g.size)]
    out = np.empty(flat.size, x.dtype)
    totals = cut(out, 0, sizes)
    yield from _reduce(line, g, tag, cut(flat, 0, sizes), op, totals[g.index], more=True)
    yield from line.exchange(g, tag, [totals[g.index]] * g.size, totals)
    return out.reshape(x.shape)


def _make_window(line: Line, g: Group, tag: int) -> Steps:
    """If all members would gain by it and have room.  MPI's call cannot be left once it waits, so they call it when all
    have come."""
    room = np.empty((g.size, 1), np.int64)
    own = np.array([line.crowded and shared.room_for(g.size)], np.int64)
    yield from line.exchange(g, tag, [own] * g.size, list(room), more=True)
    line.window = shared.Window(line.mpi, line.comm) if room.all() else False


def _all_gather(line: Line, g: Group, tag: int, x: np.ndarray, axis: int, sizes: Sequence[int]) -> Steps:
    out = np.empty((*x.shape[:axis], sum(sizes), *x.shape[axis + 1:]), x.dtype)
    yield from line.exchange(g, tag, [np.ascontiguousarray(x)] * g.size, cut(out, axis, sizes))
    return out


def _reduce_scatter(line: Line, g: Group, tag: int, chunks: list[np.ndarray], axis: int, sizes: Sequence[int],
                    op: str) -> Steps:
    return (yield from _reduce(line, g, tag, chunks, op))


def _all_to_all(line: Line, g: Group, tag: int, operand: tuple, split_axis: int, concat_axis: int, *_: Any) -> Steps:
    pieces, sizes = operand
    shape = pieces[g.index].shape
    out = np.empty((*shape[:concat_axis], sum(sizes), *shape[concat_axis + 1:]), pieces[0].dtype)
    yield from line.exchange(g, tag, pieces, cut(out, concat_axis, sizes))
    return out


def _broadcast(line: Line, g: Group, tag: int, x: Any, root: int) -> Steps:
    """Down a binomial tree: whoever has the array gives it to the member half of what is left of the group away."""
    first = g.ranks.index(root)
    me = (g.index - first) % g.size                     # counted from the root
    out = np.array(x, order="C") if not me else np.empty(x.shape, x.dtype)
    reach = 1
    while reach < g.size:
        reach *= 2
    low = me & -me if me else reach                     # this member's own part of the tree: me to me + low - 1
    if me:
        source = (me - low + first) % g.size
        status = line.mpi.Status()
        request = line.comm.Irecv(line.bytes(out), source)
        yield line.all_done([request], [status], [g.ranks[source]]), low > 1 and me + 1 < g.size
        got = status.Get_count(line.mpi.BYTE)
        if got != out.nbytes or status.tag != tag:
            raise Unexpected(f"rank {g.ranks[source]} sent {got} bytes of another call, where {out.nbytes} of this "
                             "one were expected")
    sends = []
    while (low := low // 2):
        if me + low < g.size:
            sends.append(line.comm.Isend(line.bytes(out), (me + low + first) % g.size, tag))
    if sends:
        yield line.all_done(sends), False
    return out


def _all_gather_object(line: Line, g: Group, tag: int, text: bytes) -> Steps:
    """First how long each is, then all of them."""
    lengths = np.empty((g.size, 1), np.int64)
    own = np.array([len(text)])
    yield from line.exchange(g, tag, [own] * g.size, list(lengths), more=True)
    texts = [np.empty(int(n), np.uint8) for n in lengths[:, 0]]
    yield from line.exchange(g, tag, [np.frombuffer(text, np.uint8)] * g.size, texts)
    return [t.tobytes() for t in texts]


def _barrier(line: Line, g: Group, tag: int, _: None) -> Steps:
    """In round k, tell the member 2^k further on, and hear from the one 2^k before."""
    nothing, step = np.empty(0, np.uint8), 1
    while step < g.size:
        status, source = line.mpi.Status(), g.ranks[(g.index - step) % g.size]
        requests = [line.comm.Irecv(line.bytes(np.empty(0, np.uint8)), (g.index - step) % g.size),
                    line.comm.Isend(line.bytes(nothing), (g.index + step) % g.size, tag)]
        yield line.all_done(requests, [status, line.mpi.Status()], [source]), 2 * step < g.size
        if status.tag != tag:
            raise Unexpected(f"rank {source} sent something of another call")
        step *= 2


def _reduce(line: Line, g: Group, tag: int, chunks: list[np.ndarray], op: str, out: np.ndarray | None = None,
            more: bool = False) -> Steps:
    """Give chunk i to member i; what comes for this rank, combined (into `out`)."""
    mine = chunks[g.index]
    arrivals = [mine if i == g.index else np.empty(mine.shape, mine.dtype) for i in range(g.size)]
    yield from line.exchange(g, tag, chunks, arrivals, more)
    return fold(arrivals, op, out)


STEPS: dict[str, Callable[..., Steps]] = {
    "all_reduce": _all_reduce, "all_gather": _all_gather, "reduce_scatter": _reduce_scatter, "all_to_all": _all_to_all,
    "broadcast": _broadcast, "all_gather_object": _all_gather_object, "barrier": _barrier,
}
