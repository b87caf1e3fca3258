"""Where simulated ranks meet: the members of a group for a collective, a sender and a receiver for a message."""

from __future__ import annotations

from collections import deque
from typing import Any
from zlib import crc32

import numpy as np

from minipd.dist.comm.baton import Baton
from minipd.dist.comm.calls import Call, Made, array_text, call_text, mismatch_text
from minipd.dist.comm.combine import WORK
from minipd.dist.comm.errors import CommError, MismatchError

__all__: list[str] = []


class Room:
    """What the ranks of a run share: a queue of meetings for each group, a mailbox for each (sender, receiver, tag)."""

    def __init__(self, baton: Baton, log: list[str] | None):
        self.baton, self.log = baton, log
        self.queues: dict[tuple[int, ...], Queue] = {}
        self.mail: dict[tuple[int, int, int], deque[np.ndarray]] = {}           # sent, and nobody asked yet
        self.awaited: dict[tuple[int, int, int], deque[Mail]] = {}              # asked for, and not yet sent

    def send(self, x: np.ndarray, src: int, dst: int, tag: int) -> None:
        key = (src, dst, tag)
        if self.log is not None:
            self.log.append(f"send({array_text(x.shape, x.dtype)}, tag={tag}) from {src} to {dst}")
        if self.awaited.get(key):
            self.awaited[key].popleft().arrive(x.copy())
        else:
            self.mail.setdefault(key, deque()).append(x.copy())

    def expect(self, src: int, dst: int, tag: int) -> Mail:
        """The next message of the three, there or not."""
        key = (src, dst, tag)
        mail = Mail(self.baton, src, dst, tag)
        if self.mail.get(key):
            mail.arrive(self.mail[key].popleft())
        else:
            self.awaited.setdefault(key, deque()).append(mail)
        return mail

    def check_empty(self) -> None:
        """All ranks have returned: nothing may be left over.

        Raises: CommError.
        """
        left = [f"{array_text(x.shape, x.dtype)} from rank {src} to rank {dst}, tag {tag}"
                for (src, dst, tag), messages in self.mail.items() for x in messages]
        if left:
            raise CommError(f"all ranks have returned, but these were sent and never received: {'; '.join(left)}")
        begun = [f"rank {rank} started what {meeting.explain(rank)}" for queue in self.queues.values()
                 for meeting in queue.open for rank in meeting.present()]
        begun += [f"rank {dst} started what {mail.explain(dst)}" for (_, dst, _), mails in self.awaited.items()
                  for mail in mails]
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

    def join(self, index: int, call: Call, operand: Any) -> Meeting:
        """The member's next meeting, to which it brings a call and an operand."""
        place = self.came[index] - self.number
        self.came[index] += 1
        if place == len(self.open):
            self.open.append(Meeting(self.room.baton, self.ranks, self.number + place))
        meeting = self.open[place]
        meeting.calls[index] = call
        meeting.operands[index] = operand
        meeting.missing -= 1
        return meeting

    def carry_out(self, group: Any, log: list[str] | None) -> None:
        """The last member has come to the first meeting: do the work for all.

        Raises: MismatchError if the calls differ; CommError if a member wrote to what it had given.
        """
        meeting = self.open.popleft()
        baton, call = self.room.baton, meeting.calls[0]
        if meeting.calls.count(call) != len(self.ranks):
            raise baton.fail(meeting.mismatch())
        if meeting.prints:
            meeting.compare_prints()
        if log is not None:
            log.append(f"{call_text(call, meeting.number)} by {self.ranks}")
        kind, _, _, *parameters = call
        try:
            meeting.results = WORK[kind](group, meeting.operands, *parameters)
        except MismatchError as error:
            raise baton.fail(error) from None
        meeting.operands = []
        self.number += 1
        for rank in meeting.waiting:
            baton.wake(rank)


class Meeting:
    """One collective of a group, from the first member that comes to the last."""

    __slots__ = ("baton", "calls", "missing", "number", "operands", "prints", "ranks", "results", "waiting")

    def __init__(self, baton: Baton, ranks: tuple[int, ...], number: int):
        self.baton, self.ranks, self.number = baton, ranks, number
        size = len(ranks)
        self.calls: list[Any] = [None] * size           # the call of each member that has come
        self.operands: list[Any] = [None] * size
        self.missing = size
        self.results: list[Any] | None = None           # of each member, once all have come
        self.waiting: list[int] = []                    # ranks that have passed the baton on until then
        self.prints: dict[int, int] = {}                # of what a member gave that has not waited since

    def wait(self, rank: int) -> None:
        """Return when there are results."""
        if self.results is None:
            self.waiting.append(rank)
            self.baton.wait(rank, self)

    def result(self, index: int) -> Any:
        """What the member gets, once: nothing here may keep arrays alive that everybody has done with."""
        assert self.results is not None
        mine, self.results[index] = self.results[index], None
        return mine

    def compare_prints(self) -> None:
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


class Mail:
    """A message that a rank asks for."""

    __slots__ = ("baton", "dst", "here", "src", "tag", "waiting", "x")

    def __init__(self, baton: Baton, src: int, dst: int, tag: int):
        self.baton, self.src, self.dst, self.tag = baton, src, dst, tag
        self.here = self.waiting = False
        self.x: Any = None

    def arrive(self, x: np.ndarray) -> None:
        self.x, self.here = x, True
        if self.waiting:
            self.baton.wake(self.dst)

    def wait(self) -> None:
        if not self.here:
            self.waiting = True
            self.baton.wait(self.dst, self)

    def result(self) -> np.ndarray:
        """The message, once."""
        x, self.x = self.x, None
        return x

    def awaited(self) -> list[int]:
        return [self.src]

    def explain(self, rank: int) -> str:
        return f"waits in recv(src={self.src}, tag={self.tag}) for a message from rank {self.src}"


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
