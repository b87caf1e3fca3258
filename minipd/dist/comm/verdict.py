"""Ranks that wait for each other: is it only slow, or will it never end?  The judgement, from what each rank says.

A rank that has waited long says where it is, in a `Status`: what it waits for, and how much it has done so far.  It
cannot go on before another has done something.  So a set of ranks each of which needs another of the set will wait for
ever, and `judge` looks for such a set.  A rank that has said nothing is taken to be at work.

Statuses are of different moments; why is there no false alarm?  Suppose ranks of such a set have gone on since they
spoke, and take the first that did.  It went on because another of the set did something.  If that was before the other
spoke, the other's counts show it, and `judge` would not have taken the one to be waiting for it.  If it was after, the
other had gone on before, and was not the second but the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from minipd.dist.comm.calls import Call, Made, call_text, mismatch_text
from minipd.dist.comm.errors import CommError, DeadlockError, MismatchError, RankDiedError

__all__: list[str] = []

#: Said at the end of what a deadlock is.
RULE = "All members of a group must make the same calls in the same order; every recv needs its send."


class Together(NamedTuple):
    """Waiting for the other members of a group: its ranks, how many collectives it had before, and the call."""

    ranks: tuple[int, ...]
    number: int
    call: Call


class Alone(NamedTuple):
    """Waiting for a message from rank `src` under `tag`, of which `received` have come before."""

    src: int
    tag: int
    received: int


class Status(NamedTuple):
    """What a rank that has waited long says of itself.

    waits: for what; None if it has ended.  site: the line.  begun: how many collectives of each group it has begun.
    calls: the latest of them, by group and number.  sent: how many messages it has sent, by receiver and tag.
    """

    rank: int
    waits: Together | Alone | None
    site: str
    begun: Mapping[tuple[int, ...], int]
    calls: Mapping[tuple[tuple[int, ...], int], Call]
    sent: Mapping[tuple[int, int], int]

    def __str__(self) -> str:
        if self.waits is None:
            return f"rank {self.rank} has ended"
        if isinstance(self.waits, Alone):
            what = (f"recv(src={self.waits.src}, tag={self.waits.tag}) for a message from rank {self.waits.src}")
        else:
            what = f"{call_text(self.waits.call, self.waits.number)} of the group {self.waits.ranks}"
        return f"rank {self.rank} waits in {what}, at {self.site}"

    def needs(self, others: Mapping[int, Status]) -> list[int]:
        """Those of the others without whom it cannot go on, as far as they have said where they are."""
        if self.waits is None:
            return []
        if isinstance(self.waits, Alone):
            src, tag, received = self.waits
            there = others.get(src)
            return [src] if there is not None and there.sent.get((self.rank, tag), 0) <= received else []
        ranks, number, _ = self.waits
        return [r for r in ranks if r != self.rank and r in others and others[r].begun.get(ranks, 0) <= number]


def judge(statuses: Mapping[int, Status], dead: Mapping[int, str]) -> tuple[CommError, tuple[int, ...]] | None:
    """The error that these ranks must end with, and which of them it concerns; None if they may only be slow.

    dead: ranks that are gone, and what is known of them.
    """
    waiting = [s for s in statuses.values() if s.waits is not None]
    if dead:
        text = died_text([f"rank {r} {what}" for r, what in sorted(dead.items())], [str(s) for s in sorted(waiting)])
        return RankDiedError(text), tuple(s.rank for s in waiting)
    for status in sorted(waiting):
        if isinstance(status.waits, Together) and (made := _made(status.waits, statuses)):
            return MismatchError(mismatch_text(made)), tuple(s.rank for s in waiting)
    stuck = dict(statuses)
    while free := [r for r, s in stuck.items() if s.waits is not None and not s.needs(stuck)]:
        for rank in free:
            del stuck[rank]
    if not any(s.waits is not None for s in stuck.values()):
        return None
    text = deadlock_text([str(s) for _, s in sorted(statuses.items())], {r: s.needs(stuck) for r, s in stuck.items()})
    return DeadlockError(text), tuple(sorted(r for r, s in stuck.items() if s.waits is not None))


def _made(waits: Together, statuses: Mapping[int, Status]) -> list[Made]:
    """The members' calls, if two of them differ where they should be the same."""
    made = []
    for rank in waits.ranks:
        status = statuses.get(rank)
        call = None if status is None else status.calls.get((waits.ranks, waits.number))
        if status is not None and call is not None:
            there = isinstance(status.waits, Together) and status.waits[:2] == waits[:2]
            made.append(Made(rank, waits.ranks, waits.number, call, status.site if there else "a line it has left"))
    return made if any(m.call != made[0].call for m in made) else []


def deadlock_text(lines: Sequence[str], needs: Mapping[int, Iterable[int]]) -> str:
    """What a DeadlockError says: a line for each rank, and the circle in which they wait, if there is one.

    >>> print(deadlock_text(["rank 0 waits in recv(src=1, tag=0)", "rank 1 waits in recv(src=0, tag=0)"],
    ...                     {0: [1], 1: [0]}))
    no rank can run:
      rank 0 waits in recv(src=1, tag=0)
      rank 1 waits in recv(src=0, tag=0)
    They wait in a circle: 0 -> 1 -> 0.
    All members of a group must make the same calls in the same order; every recv needs its send.
    """
    found = circle(needs)
    drawn = [f"They wait in a circle: {' -> '.join(map(str, (*found, found[0])))}."] if found else []
    return "\n".join(["no rank can run:", *(f"  {line}" for line in lines), *drawn, RULE])


def died_text(dead: Sequence[str], lines: Sequence[str]) -> str:
    """What a RankDiedError says.

    >>> print(died_text(["rank 1 (process 7) has died"], ["rank 0 waits in barrier#0() of the group (0, 1)"]))
    rank 1 (process 7) has died, so the others cannot go on:
      rank 0 waits in barrier#0() of the group (0, 1)
    """
    return "\n".join([f"{'; '.join(dead)}, so the others cannot go on:", *(f"  {line}" for line in lines)])


def circle(needs: Mapping[int, Iterable[int]]) -> list[int]:
    """The ranks of a shortest way that leads back to where it began, from the lowest rank that has one; else none.

    >>> circle({0: [1], 1: [2, 3], 2: [1], 3: []})
    [1, 2]
    """
    for start in sorted(needs):
        ways: dict[Any, list[int]] = {start: [start]}
        queue = [start]
        for rank in queue:                              # grows while it is read
            for other in needs.get(rank, ()):
                if other == start:
                    return ways[rank]
                if other not in ways:
                    ways[other] = [*ways[rank], other]
                    queue.append(other)
    return []
