"""An all-reduce among ranks of one machine that has fewer cores than ranks, through memory that they share.

Every rank copies a chunk of its array into its part of the memory.  When all have done so, each adds up its own share
of the chunk, from all parts, in the order of the group: as ever, the same bits on every rank.  When all have done that,
each takes the total out of everybody's shares.  The three stages of chunks in a row overlap, so ranks wait for each
other once per chunk.

A message from process to process needs both, one after the other, and each time the one may have to wait for a core
that the other has; here nobody waits for more than that all have come.  For arrays of a middling size that is two to
three times as fast (benchmarks/README.md).  Of smaller ones a message takes no longer, and of larger ones the chunks
leave the caches; and where every rank has a core of its own, messages are as fast at any size.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from typing import Any

import numpy as np

from minipd.dist.comm.base import Group
from minipd.dist.comm.reduction import fold

__all__: list[str] = []

#: Bytes of arrays that take this way.
LEAST, MOST = 8_192, 4_194_304

#: Bytes of a chunk; the memory holds two of them, and two of their totals, for each rank.
CHUNK = 1_048_576

#: Where the memory comes from, and what part of what is free there it may take.
PLACE, PART = "/dev/shm", 0.25


def room_for(size: int, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the machine has the memory for a group of that size, and its user wants it used (MINIPD_COMM_SHARED=0:
    not).  Writing to shared memory that the system cannot supply would kill the rank."""
    if environ.get("MINIPD_COMM_SHARED", "1") in ("", "0"):
        return False
    try:
        free = os.statvfs(PLACE)
    except OSError:
        return False
    return size * Window.bytes_each() < PART * free.f_bavail * free.f_frsize


class Window:
    """The memory, as one of the ranks sees it.  All members make it together.

    Ranks go through numbered turns.  In a turn a rank writes only what no other still reads, then announces the turn;
    once all have announced it, everything that was written in it can be read.
    """

    # Of each rank: two notes (turn, tag), two chunks, two shares; a turn uses those of its parity.
    # A chunk written before turn t is announced is read in t, so it may be written again before t + 2.  Nobody is more
    # than one turn ahead, because announcing t + 1 comes after all have announced t.

    def __init__(self, mpi: Any, comm: Any):
        self._window = mpi.Win.Allocate_shared(self.bytes_each(), 1, comm=comm)
        self._window.Lock_all()                         # a beginning without an end: access to memory, not messages
        self.turn = 0
        self._index = comm.rank
        parts = [memoryview(self._window.Shared_query(i)[0]).cast("B") for i in range(comm.size)]
        self._notes = [part[:32].cast("q") for part in parts]
        whole = [np.frombuffer(part, np.uint8)[64:] for part in parts]
        self._chunks = [[part[p * CHUNK:(p + 1) * CHUNK] for part in whole] for p in (0, 1)]
        self._shares = [[part[p * CHUNK:(p + 1) * CHUNK] for part in whole] for p in (2, 3)]

    @staticmethod
    def bytes_each() -> int:
        return 64 + 4 * CHUNK

    def announce(self, tag: int) -> Callable[[], bool]:
        """Begin the next turn, in the call with this tag; whether all others have."""
        self.turn += 1
        turn, at = self.turn, 2 * (self.turn % 2)
        self._notes[self._index][at + 1] = tag
        self._window.Sync()                             # what was written until now is seen before what follows
        self._notes[self._index][at] = turn

        def all_have() -> bool:
            for notes in self._notes:
                if notes[at] != turn:
                    return False
            self._window.Sync()
            return True
        return all_have

    def strangers(self, tag: int) -> list[int]:
        """Members whose turn belongs to a call with another tag."""
        at = 2 * (self.turn % 2) + 1
        return [i for i, notes in enumerate(self._notes) if notes[at] != tag]

    def chunks(self, later: int = 0) -> list[np.ndarray]:
        """Each member's chunk of this turn, or of a later one, as bytes."""
        return self._chunks[(self.turn + later) % 2]

    def shares(self, later: int = 0) -> list[np.ndarray]:
        """Each member's share of a total, likewise."""
        return self._shares[(self.turn + later) % 2]


def all_reduce(window: Window, g: Group, tag: int, x: np.ndarray, op: str,
               unexpected: type) -> Generator[Any, None, np.ndarray]:
    """The steps of an all-reduce (see `steps.py`)."""
    flat, out = x.reshape(-1), np.empty(x.size, x.dtype)
    each = CHUNK // x.itemsize
    ends = [min(start + each, x.size) for start in range(0, x.size, each)]

    def put(k: int, later: int) -> None:
        chunk = flat[k * each:ends[k]]
        window.chunks(later)[g.index][:chunk.nbytes].view(x.dtype)[...] = chunk

    def bounds(k: int) -> list[int]:
        """Where the members' shares of chunk k begin, and the last ends."""
        return [(ends[k] - k * each) * i // g.size for i in range(g.size + 1)]

    def add(k: int) -> None:
        begin, end = bounds(k)[g.index:g.index + 2]
        size = x.itemsize
        values = [chunk[begin * size:end * size].view(x.dtype) for chunk in window.chunks()]
        fold(values, op, out=window.shares()[g.index][:(end - begin) * size].view(x.dtype))

    def take(k: int, later: int) -> None:
        edges, total = bounds(k), out[k * each:ends[k]]
        for i, share in enumerate(window.shares(later)):
            total[edges[i]:edges[i + 1]] = share[:(edges[i + 1] - edges[i]) * x.itemsize].view(x.dtype)

    put(0, later=1)
    for k in range(len(ends)):
        yield window.announce(tag), True
        if strangers := window.strangers(tag):
            raise unexpected(f"rank {', '.join(str(g.ranks[i]) for i in strangers)} made another call")
        add(k)
        if k + 1 < len(ends):
            put(k + 1, later=1)
        if k:
            take(k - 1, later=-1)
    yield window.announce(tag), True                    # others may not begin: they would overwrite what is taken now
    take(len(ends) - 1, later=-1)
    return out.reshape(x.shape)
