"""Where simulated ranks meet: the members of a group, for a collective."""

from __future__ import annotations

from collections import deque
from typing import Any
from zlib import crc32

import numpy as np

from minipd.dist.comm.baton import Baton
from minipd.dist.comm.calls import Call, Made, call_text, mismatch_text
from minipd.dist.comm.combine import WORK
from minipd.dist.comm.errors import CommError, MismatchError
from minipd.dist.comm.faults import Die, Died, Plan, Raise, Slow
from minipd.dist.comm.links import Clock
from minipd.dist.comm.mail import Post
from minipd.dist.comm.record import Record

__all__: list[str] = []


class Room:
    """What the ranks of a run share: a queue of meetings for each group, and the post.

    Args:
        baton: decides who runs.
        records: where to put what is communicated, or None.
        plan: what goes wrong, or None.
        clock: simulated time, or None.
    """

    def __init__(self, baton: Baton, records: list[Record] | None = None, plan: Plan | None = None,
                 clock: Clock | None = None):
        self.baton, self.records, self.plan, self.clock = baton, records, plan, clock
        self.queues: dict[tuple[int, ...], Queue] = {}
        self.post = Post(baton, records, plan, clock)

    def enter(self, rank: int) -> None:
        """The rank makes a call."""
        if self.baton.running != rank:
            raise self.baton.refusal(rank)
        if self.plan is not None:
            for fault in self.plan.of_call(rank):
                if isinstance(fault, Slow) and self.clock is not None:
                    self.clock.now[rank] += fault.seconds
                elif isinstance(fault, Raise):
                    raise fault.exception()
                elif isinstance(fault, Die):
                    raise Died(f"has died in its call number {fault.call}, at {self.baton.site(rank)}")

    def check_empty(self) -> None:
        """All ranks have returned: nothing may be left over.

        Raises: CommError.
        """
        while self.post.deliver_late():
            continue
        left = self.post.left()
        if left:
            raise CommError(f"all ranks have returned, but these were sent and never received: {'; '.join(left)}")
        begun = [f"rank {rank} started what {meeting.explain(rank)}" for queue in self.queues.values()
                 for meeting in queue.open for rank in meeting.present()] + self.post.begun()
        if begun:
            raise CommError(f"all ranks have returned, but not all that was started is over: {'; '.join(begun)}")


class Queue:
    """The collectives of a group that not all members have come to, the oldest first.

    Invariant: each member comes to them in order, so the first to be complete is the first of the queue.
    """

    __slots__ = ("came", "number", "open", "ranks", "room")

    def __init__(self, room: Room, ranks: tuple[int, ...]):
        self.room, self.ranks = room, ranks
        self.number = 0                                 # of the first in the queue, in all that the group ever had
        self.came = [0] * len(ranks)                    # how many collectives each member has come to
        self.open: deque[Meeting] = deque()

    def join(self, group: Any, call: Call, operand: Any) -> Meeting:
        """The member's next meeting, to which it brings a call and an operand; the last to come does the work for all.

        Raises: MismatchError if the calls differ; CommError if a member wrote to what it had given.
        """
        index = group.index
        place = self.came[index] - self.number
        self.came[index] += 1
        if place == len(self.open):
            self.open.append(Meeting(self.room, self.ranks, self.number + place))
        meeting = self.open[place]
        meeting.calls[index] = call
        meeting.operands[index] = operand
        meeting.missing -= 1
        if self.room.clock is not None:
            meeting.came.append(self.room.clock.now[self.ranks[index]])
        if not meeting.missing:
            self.open.popleft()
            self.number += 1
            meeting.carry_out(group)
        return meeting


class Meeting:
    """One collective of a group, from the first member that comes to the last."""

    __slots__ = ("baton", "calls", "came", "end", "missing", "number", "operands", "prints", "ranks", "results", "room",
                 "waiting")

    def __init__(self, room: Room, ranks: tuple[int, ...], number: int):
        self.room, self.baton, self.ranks, self.number = room, room.baton, ranks, number
        size = len(ranks)
        self.calls: list[Any] = [None] * size           # the call of each member that has come
        self.operands: list[Any] = [None] * size
        self.missing = size
        self.results: list[Any] | None = None           # of each member, once all have come
        self.waiting: list[int] = []                    # ranks that have passed the baton on until then
        self.prints: dict[int, int] = {}                # of what a member gave that has not waited since
        self.came: list[float] = []                     # when, if there is a clock
        self.end = 0.0                                  # likewise

    def carry_out(self, group: Any) -> None:
        room, call = self.room, self.calls[0]
        if self.calls.count(call) != len(self.ranks):
            raise self.baton.fail(self.mismatch())
        if self.prints:
            self._compare_prints()
        if room.records is not None or room.clock is not None:
            self._note(call)
        kind, _, _, *parameters = call
        try:
            self.results = WORK[kind](group, self.operands, *parameters)
        except MismatchError as error:
            raise self.baton.fail(error) from None
        self.operands = []
        for rank in self.waiting:
            self.baton.wake(rank)

    def _note(self, call: Call) -> None:
        nbytes = [_sizes(operand) for operand in self.operands]
        begin = 0.0
        if self.room.clock is not None:
            begin, self.end = self.room.clock.collective(call[0], self.ranks, self.came, nbytes)
        if self.room.records is not None:
            given = tuple(map(sum, nbytes))
            self.room.records.append(Record.of_call(self.ranks, self.number, call, given, begin, self.end))

    def wait(self, rank: int) -> None:
        """Return when there are results."""
        if self.results is None:
            self.waiting.append(rank)
            self.baton.wait(rank, self)
        if self.room.clock is not None:
            self.room.clock.reach(rank, self.end)

    def here(self) -> bool:
        return self.results is not None

    def result(self, index: int) -> Any:
        """What the member gets, once: nothing here may keep arrays alive that everybody has done with."""
        assert self.results is not None
        mine, self.results[index] = self.results[index], None
        return mine

    def _compare_prints(self) -> None:
        for index, before in self.prints.items():
            if fingerprint(self.operands[index]) != before:
                rank = self.ranks[index]
                raise self.baton.fail(CommError(
                    f"rank {rank} wrote to the array that it had given to {call_text(self.calls[index], self.number)} "
                    f"of the group {self.ranks}, before it waited for the request"))

    def present(self) -> list[int]:
        return [r for r, call in zip(self.ranks, self.calls, strict=True) if call is not None]

    def awaited(self) -> list[int]:
        return [r for r, call in zip(self.ranks, self.calls, strict=True) if call is None]

    def explain(self, rank: int) -> str:
        absent = self.awaited()
        call = call_text(self.calls[self.ranks.index(rank)], self.number)
        return (f"waits in {call} of the group {self.ranks} for rank{'s' * (len(absent) > 1)} "
                f"{', '.join(map(str, absent))}")

    def mismatch(self) -> MismatchError:
        return MismatchError(mismatch_text([Made(rank, self.ranks, self.number, call, self.baton.site(rank))
                                            for rank, call in zip(self.ranks, self.calls, strict=True)]))


def _sizes(operand: Any) -> list[int]:
    """The bytes of what a member gives, piece by piece."""
    if isinstance(operand, tuple):
        operand = operand[0]
    pieces = operand if isinstance(operand, list) else [operand]
    return [0 if piece is None else len(piece) if isinstance(piece, bytes) else
            int(np.prod(piece.shape, dtype=np.int64)) * piece.dtype.itemsize for piece in pieces]


def fingerprint(operand: Any) -> int:
    """A number that changes when an array in the operand does.

    >>> x = np.zeros(3)
    >>> before = fingerprint([x])
    >>> x[1] = 1
    >>> fingerprint([x]) == before
    False
    """
    if isinstance(operand, np.ndarray):
        return crc32(operand.tobytes())
    if isinstance(operand, list | tuple):
        return crc32(repr([fingerprint(part) for part in operand]).encode())
    return 0
