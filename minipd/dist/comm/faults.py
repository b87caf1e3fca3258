"""Things that go wrong on simulated ranks, on purpose: to see that a program, or minipd, takes it as it should.

Each names the rank or the pair of ranks, and which of its calls or messages, counted from 1.

>>> import numpy as np
>>> from minipd.dist.comm.sim import World
>>> def run(comm):
...     if comm.rank == 0:
...         comm.send(np.ones(2), 1)
...     else:
...         comm.recv(0)
>>> World(2, faults=[Truncate(0, 1)]).run(run)
Traceback (most recent call last):
    ...
minipd.dist.comm.errors.CommError: rank 1 in recv(src=0, tag=0): message #0 has 8 bytes instead of the 16 of f64[2]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from minipd.dist.comm.errors import CommError

__all__ = ["Delay", "Die", "Duplicate", "Fault", "Lose", "Raise", "Slow", "Truncate"]


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong."""


@dataclass(frozen=True)
class _OfCall(Fault):
    rank: int
    call: int = 1


@dataclass(frozen=True)
class Raise(_OfCall):
    """The rank raises `error` in its call."""

    error: BaseException | None = None

    def exception(self) -> BaseException:
        return self.error or CommError(f"rank {self.rank} raises this in its call number {self.call}, as it was told")


@dataclass(frozen=True)
class Die(_OfCall):
    """The rank stops in its call, without a word to the others."""


@dataclass(frozen=True)
class Slow(Fault):
    """Each call of the rank (or only one of them) takes so many seconds longer, on the simulated clock."""

    rank: int
    seconds: float
    call: int | None = None


@dataclass(frozen=True)
class _OfMessage(Fault):
    src: int
    dst: int
    message: int = 1
    tag: int | None = None                              # None: messages of all tags are counted together


@dataclass(frozen=True)
class Lose(_OfMessage):
    """The message never comes."""


@dataclass(frozen=True)
class Delay(_OfMessage):
    """The message, and what follows it under its tag, comes as late as possible: when no rank can run without it."""

    seconds: float = 0.0                                # on the simulated clock


@dataclass(frozen=True)
class Duplicate(_OfMessage):
    """The message comes twice."""


@dataclass(frozen=True)
class Truncate(_OfMessage):
    """Only so many bytes of the message come; half of them if None."""

    nbytes: int | None = None


class Died(BaseException):
    """Raised inside a rank that dies.  Not an Exception: the rank's code must not catch it."""


class Plan:
    """The faults of one run, and how far each rank has come."""

    def __init__(self, faults: Sequence[Fault]):
        for fault in faults:
            if not isinstance(fault, Fault):
                raise TypeError(f"a fault is one of {', '.join(__all__)}; got {fault!r}")
        self.faults = tuple(faults)
        self._calls: Counter[int] = Counter()
        self._messages: Counter[tuple[int, int, int | None]] = Counter()

    def of_call(self, rank: int) -> list[Fault]:
        """What goes wrong in the rank's next call."""
        self._calls[rank] += 1
        return [f for f in self.faults if isinstance(f, _OfCall | Slow) and f.rank == rank
                and f.call in (None, self._calls[rank])]

    def of_message(self, src: int, dst: int, tag: int) -> list[_OfMessage]:
        """What goes wrong with the next message."""
        for counted in (None, tag):
            self._messages[src, dst, counted] += 1
        return [f for f in self.faults if isinstance(f, _OfMessage) and (f.src, f.dst) == (src, dst)
                and f.tag in (None, tag) and f.message == self._messages[src, dst, f.tag]]
