"""Simulated ranks: all in this process, one running at a time (see `baton.py`).

>>> import numpy as np
>>> World(2).run(lambda comm: comm.all_reduce(np.array([1.0, comm.rank]), group=(0, 1)))
[array([2., 1.]), array([2., 1.])]

Deterministic: the same program runs in the same order and gives the same bits every time.  A collective that the
members call differently raises in all of them and shows the calls; a deadlock raises and shows who waits for what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.dist.comm.base import Communicator, Group
from minipd.dist.comm.baton import Baton
from minipd.dist.comm.calls import Call
from minipd.dist.comm.faults import Fault, Plan
from minipd.dist.comm.links import Clock, Links
from minipd.dist.comm.meeting import Queue, Room, fingerprint
from minipd.dist.comm.record import Record
from minipd.dist.comm.request import Request

__all__ = ["World"]


class World:
    """`size` ranks that can run a function together.

    Args:
        size: the number of ranks.
        record: keep a record of every collective and message.
        faults: what goes wrong (see `faults.py`).
        links: what communication takes; each rank then has a simulated clock (see `links.py`).

    Attributes:
        comms: the ranks' communicators in the last `run`: what they counted, and their clocks, are read here.
        records: with `record`, what the last `run` communicated, in the order in which it happened.
    """

    def __init__(self, size: int, record: bool = False, faults: Sequence[Fault] = (), links: Links | None = None):
        if size < 1:
            raise ValueError(f"a world has at least one rank, got {size}")
        self.size, self.record, self.faults, self.links = size, record, tuple(faults), links
        self.comms: list[SimCommunicator] = []
        self.records: list[Record] = []

    @property
    def log(self) -> list[str]:
        """The records as lines of text."""
        return [str(record) for record in self.records]

    def run(self, fn: Callable[..., Any], *args: Any) -> list[Any]:
        """Call `fn(comm, *args)` on every rank; returns the results by rank.

        Raises: what a rank raised, with a note that names the rank; the others are stopped where they wait (their
        `finally` blocks run).  MismatchError, DeadlockError, and CommError for a message that nobody received.
        """
        baton = Baton(self.size)
        self.records = []
        room = Room(baton, self.records if self.record else None, Plan(self.faults) if self.faults else None,
                    Clock(self.size, self.links) if self.links else None)
        self.comms = [SimCommunicator(rank, self.size, room) for rank in range(self.size)]
        results = baton.run(lambda rank: fn(self.comms[rank], *args))
        room.check_empty()
        return results


class SimCommunicator(Communicator):
    """The communicator of a simulated rank; `World.run` makes them."""

    def __init__(self, rank: int, size: int, room: Room):
        super().__init__(rank, size)
        self._room, self._baton = room, room.baton

    def _link(self, ranks: tuple[int, ...]) -> Queue:
        return self._room.queues.setdefault(ranks, Queue(self._room, ranks))

    @property
    def clock(self) -> float:
        """Seconds on this rank's simulated clock; 0 in a world without links."""
        return self._room.clock.now[self.rank] if self._room.clock else 0.0

    def spend(self, seconds: float) -> None:
        """Let that much time pass on this rank's simulated clock, for work that is not communication."""
        if self._room.clock:
            self._room.clock.now[self.rank] += seconds

    def _collect(self, group: Group, call: Call, operand: Any) -> Any:
        self._room.enter(self.rank)
        meeting = group.link.join(group, call, operand)
        meeting.wait(self.rank)
        return meeting.result(group.index)

    def _begin(self, group: Group, call: Call, operand: Any) -> Request:
        self._room.enter(self.rank)
        meeting = group.link.join(group, call, operand)
        if meeting.missing:
            meeting.prints[group.index] = fingerprint(operand)
        return _Started(self, meeting.here, lambda: meeting.wait(self.rank), lambda: meeting.result(group.index))

    def _send(self, x: np.ndarray, dst: int, tag: int) -> None:
        self._room.enter(self.rank)
        self._room.post.send(x, self.rank, dst, tag)

    def _recv(self, src: int, tag: int) -> np.ndarray:
        self._room.enter(self.rank)
        mail = self._room.post.expect(src, self.rank, tag)
        mail.wait()
        return mail.result()

    def _begin_recv(self, src: int, tag: int) -> Request:
        self._room.enter(self.rank)
        mail = self._room.post.expect(src, self.rank, tag)
        return _Started(self, lambda: mail.here, mail.wait, mail.result)


class _Started(Request):
    """A communication of a simulated rank: it is over when the others have come.  Asking gives them a turn."""

    def __init__(self, comm: SimCommunicator, here: Callable[[], bool], wait: Callable[[], None],
                 result: Callable[[], Any]):
        super().__init__()
        self._baton, self._rank, self._here, self._await = comm._baton, comm.rank, here, wait
        self._take: Callable[[], Any] | None = result
        self._result: Any = None

    def _finish(self) -> Any:
        if self._take is not None:
            self._await()
            self._result, self._take = self._take(), None
        return self._result

    def _poll(self) -> bool:
        if self._take is not None and not self._here():
            self._baton.pause(self._rank)
        return self._take is None or self._here()
