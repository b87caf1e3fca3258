"""Simulated ranks: all in this process, one running at a time (see `baton.py`).

>>> import numpy as np
>>> World(2).run(lambda comm: comm.all_reduce(np.array([1.0, comm.rank]), group=(0, 1)))
[array([2., 1.]), array([2., 1.])]

Deterministic: the same program runs in the same order and gives the same bits every time.  A collective that the
members call differently raises in all of them and shows the calls; a deadlock raises and shows who waits for what.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.dist.comm.base import Communicator, Group
from minipd.dist.comm.baton import Baton
from minipd.dist.comm.calls import Call, Made, array_text, call_text, mismatch_text
from minipd.dist.comm.errors import CommError, MismatchError
from minipd.dist.comm.reduction import fold

__all__ = ["World"]


class World:
    """`size` ranks that can run a function together.

    Args:
        size: the number of ranks.
        record: keep a line for every collective and message, in `log`.

    Attributes:
        comms: the ranks' communicators in the last `run`: what they counted is read here.
        log: with `record`, what the last `run` communicated, in the order in which it happened.
    """

    def __init__(self, size: int, record: bool = False):
        if size < 1:
            raise ValueError(f"a world has at least one rank, got {size}")
        self.size, self.record = size, record
        self.comms: list[Communicator] = []
        self.log: list[str] = []

    def run(self, fn: Callable[..., Any], *args: Any) -> list[Any]:
        """Call `fn(comm, *args)` on every rank; returns the results by rank.

        Raises: what a rank raised, with a note that names the rank; the others are stopped where they wait (their
        `finally` blocks run).  MismatchError, DeadlockError, and CommError for a message that nobody received.
        """
        baton = Baton(self.size)
        self.log = []
        room = _Room(baton, self.log if self.record else None)
        self.comms = [SimCommunicator(rank, self.size, room) for rank in range(self.size)]
        results = baton.run(lambda rank: fn(self.comms[rank], *args))
        room.check_empty()
        return results


class _Room:
    """What the ranks of one run share: a meeting for each group, a mailbox for each (sender, receiver, tag)."""

    def __init__(self, baton: Baton, log: list[str] | None):
        self.baton, self.log = baton, log
        self.meetings: dict[tuple[int, ...], _Meeting] = {}
        self.mail: dict[tuple[int, int, int], deque[np.ndarray]] = {}
        self.awaited: dict[tuple[int, int, int], _Mail] = {}

    def check_empty(self) -> None:
        left = [f"{array_text(x.shape, x.dtype)} from rank {src} to rank {dst}, tag {tag}"
                for (src, dst, tag), messages in self.mail.items() for x in messages]
        if left:
            raise CommError(f"all ranks have returned, but these were sent and never received: {'; '.join(left)}")


class _Meeting:
    """Where the members of a group meet for a collective; when the last has come, it does the work for all.

    Invariant: nobody comes to the next collective before all have come to this one, so one set of places is enough.
    """

    __slots__ = ("baton", "calls", "missing", "number", "operands", "ranks")

    def __init__(self, baton: Baton, ranks: tuple[int, ...]):
        self.baton, self.ranks, self.number = baton, ranks, 0
        self.empty()

    def empty(self) -> None:
        size = len(self.ranks)
        self.calls: list[Any] = [None] * size           # the call of each member that has come
        self.operands: list[Any] = [None] * size
        self.missing = size

    def explain(self, rank: int) -> str:
        absent = [str(r) for r, call in zip(self.ranks, self.calls, strict=True) if call is None]
        call = call_text(self.calls[self.ranks.index(rank)], self.number)
        return f"waits in {call} of the group {self.ranks} for rank{'s' * (len(absent) > 1)} {', '.join(absent)}"

    def mismatch(self) -> MismatchError:
        return MismatchError(mismatch_text([Made(rank, self.ranks, self.number, call, self.baton.site(rank))
                                            for rank, call in zip(self.ranks, self.calls, strict=True)]))


class _Mail:
    """A rank that waits for a message."""

    def __init__(self, src: int, tag: int):
        self.src, self.tag = src, tag

    def explain(self, rank: int) -> str:
        return f"waits in recv(src={self.src}, tag={self.tag}) for a message from rank {self.src}"


class SimCommunicator(Communicator):
    """The communicator of a simulated rank; `World.run` makes them."""

    def __init__(self, rank: int, size: int, room: _Room):
        super().__init__(rank, size)
        self._room, self._baton = room, room.baton

    def _link(self, ranks: tuple[int, ...]) -> _Meeting:
        return self._room.meetings.setdefault(ranks, _Meeting(self._baton, ranks))

    def _collect(self, group: Group, call: Call, operand: Any) -> Any:
        baton, meeting = self._baton, group.link
        if baton.running != self.rank:
            raise baton.refusal(self.rank)
        meeting.calls[group.index] = call
        meeting.operands[group.index] = operand
        meeting.missing -= 1
        if meeting.missing:
            return baton.wait(self.rank, meeting)
        if meeting.calls.count(call) != group.size:
            raise baton.fail(meeting.mismatch())
        if self._room.log is not None:
            self._room.log.append(f"{call_text(call, meeting.number)} by {group.ranks}")
        kind, _, _, *parameters = call
        try:
            results = _WORK[kind](group, meeting.operands, *parameters)
        except MismatchError as error:
            raise baton.fail(error) from None
        meeting.empty()
        meeting.number += 1
        baton.wake(group.ranks, results)
        return results[group.index]

    def _send(self, x: np.ndarray, dst: int, tag: int) -> None:
        if self._baton.running != self.rank:
            raise self._baton.refusal(self.rank)
        key, room = (self.rank, dst, tag), self._room
        if room.log is not None:
            room.log.append(f"send({array_text(x.shape, x.dtype)}, tag={tag}) from {self.rank} to {dst}")
        if room.awaited.pop(key, None) is not None:
            self._baton.wake((dst,), (x.copy(),))
        else:
            room.mail.setdefault(key, deque()).append(x.copy())

    def _recv(self, src: int, tag: int) -> np.ndarray:
        if self._baton.running != self.rank:
            raise self._baton.refusal(self.rank)
        key, room = (src, self.rank, tag), self._room
        if room.mail.get(key):
            return room.mail[key].popleft()
        room.awaited[key] = mail = _Mail(src, tag)
        return self._baton.wait(self.rank, mail)


# The work of each collective, done once for all members: (group, the members' operands, *parameters) -> their results.
# All results are copies, because ranks run one after the other: by the time the next looks, this one may have written.

def _all_reduce(group: Group, arrays: list[np.ndarray], op: str) -> list[np.ndarray]:
    return _for_each(fold(arrays, op), group.size)


def _all_gather(group: Group, arrays: list[np.ndarray], axis: int, sizes: tuple[int, ...]) -> list[np.ndarray]:
    return _for_each(_join(arrays, axis), group.size)


def _reduce_scatter(group: Group, chunks: list[list[np.ndarray]], axis: int, sizes: tuple[int, ...],
                    op: str) -> list[np.ndarray]:
    return [fold(mine, op) for mine in zip(*chunks, strict=True)]


def _all_to_all(group: Group, operands: list[tuple], split_axis: int, concat_axis: int, *_: Any) -> list[np.ndarray]:
    results = []
    for i, (_, expected) in enumerate(operands):
        mine = [pieces[i] for pieces, _ in operands]
        if (got := tuple(piece.shape[concat_axis] for piece in mine)) != expected:
            raise MismatchError(f"all_to_all: rank {group.ranks[i]} expects {expected} along axis {concat_axis} from "
                                f"the ranks {group.ranks}, but they give it {got}")
        results.append(_join(mine, concat_axis))
    return results


def _broadcast(group: Group, arrays: list[Any], root: int) -> list[np.ndarray]:
    return _for_each(arrays[group.ranks.index(root)].copy(), group.size)


def _all_gather_object(group: Group, texts: list[bytes]) -> list[list[bytes]]:
    return [texts] * group.size


def _barrier(group: Group, nothing: list[None]) -> list[None]:
    return nothing


_WORK: dict[str, Callable[..., list[Any]]] = {
    "all_reduce": _all_reduce, "all_gather": _all_gather, "reduce_scatter": _reduce_scatter, "all_to_all": _all_to_all,
    "broadcast": _broadcast, "all_gather_object": _all_gather_object, "barrier": _barrier,
}


def _for_each(x: np.ndarray, size: int) -> list[np.ndarray]:
    return [x, *(x.copy() for _ in range(size - 1))]


def _join(chunks: Sequence[np.ndarray], axis: int) -> np.ndarray:
    return np.ascontiguousarray(np.concatenate(chunks, axis))
