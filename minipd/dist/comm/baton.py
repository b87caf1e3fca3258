"""One rank runs at a time: it holds the baton, and passes it on only where it must wait for another rank.

Ranks are greenlets: functions that can be left in the middle and resumed, at a fortieth of the cost of changing
threads.  Since nothing runs in between, the interleaving is the same in every run; and when the rank that must wait
finds no other that can run, that is a deadlock, seen at once.

Each rank has a contextvars.Context of its own (a copy of the caller's), so what it sets in a ContextVar, such as its
RankContext or numpy's error state, stays with it when the baton moves.
"""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import greenlet

from minipd.dist.comm.calls import call_site
from minipd.dist.comm.errors import CommError, DeadlockError, RankDiedError, RankStopped
from minipd.dist.comm.faults import Died
from minipd.dist.comm.verdict import deadlock_text, died_text

__all__: list[str] = []

#: How often a rank may ask whether something is over while nothing happens at all.
PATIENCE = 20_000


class Reason(Protocol):
    """Why a rank does not run."""

    def explain(self, rank: int) -> str:
        """`"waits in ... for ..."`, said of this rank."""


    def awaited(self) -> Sequence[int]:
        """The ranks without which it cannot go on."""


class _Ended:
    def __init__(self, how: str):
        self.how = how

    def awaited(self) -> Sequence[int]:
        return ()

    def explain(self, rank: int) -> str:
        return self.how


class Baton:
    """Runs `body(rank)` for `size` ranks, in turns.  For one use.

    `running` is the rank that has the baton; None before the ranks begin, and for ever once one has failed.
    """

    # Invariant: a rank that could go on has `waits[rank] is None`; for one that could not, it says why.  Only the
    # running rank changes this, so nothing here needs a lock.

    def __init__(self, size: int):
        self.size = size
        self.running: Any = None
        self._failure: BaseException | None = None      # what ends this run
        self._failed: int | None = None                 # the rank that raised it
        self._common = False                            # a failure of all ranks together: a mismatch or a deadlock
        self._waits: list[Reason | None] = [None] * size
        self._dead: dict[int, str] = {}                 # ranks that have died, and how
        self.idle: Callable[[], bool] = lambda: False   # asked when no rank can run; whether that has changed
        self._fruitless = 0                             # how often ranks have asked since one was woken
        self._turns = [tuple((r + i) % size for i in range(1, size)) for r in range(size)]  # who is asked after r
        self._ranks: list[greenlet.greenlet] = []

    def run(self, body: Callable[[int], Any]) -> list[Any]:
        """What `body` returned on each rank.  If a rank raises, the others are stopped and its exception goes on."""
        hub = greenlet.getcurrent()
        results = [None] * self.size

        def guarded(rank: int) -> None:
            try:
                results[rank] = body(rank)
            except Died as end:
                self._waits[rank], self._dead[rank] = _Ended(str(end)), str(end)
                return
            except BaseException as error:
                if self._failure is None:
                    self._failure, self._failed = error, rank
            self._waits[rank] = _Ended("has returned")

        for rank in range(self.size):
            self._ranks.append(greenlet.greenlet(partial(guarded, rank), hub))
            self._ranks[rank].gr_context = contextvars.copy_context()
        # A rank that ends comes back here, because the hub is every rank's parent.
        turns: tuple[int, ...] = tuple(range(self.size))
        while (following := self._next(turns)) is not None:
            self.running = following
            self._ranks[following].switch()
            if self._failure is not None:
                break
            turns = self._turns[self.running]           # of the rank that has just ended
        if self._failure is None and (self._dead or not all(ranklet.dead for ranklet in self._ranks)):
            self.fail(self._deadlock())
        self.running = None
        if self._failure is None:
            return results
        self._stop()
        if self._failed is not None:
            self._failure.add_note(f"raised by rank {self._failed} of {self.size}")
        raise self._failure

    def wait(self, rank: int, reason: Reason) -> None:
        """Pass the baton on; return when another rank has called `wake` and the baton comes back."""
        if greenlet.getcurrent() is not self._ranks[rank]:
            raise self.refusal(rank)
        waits = self._waits
        waits[rank] = reason
        for following in self._turns[rank]:
            if waits[following] is None:
                break
        else:
            found = self._next((*self._turns[rank], rank))          # something may come late
            if found is None:
                raise self.fail(self._deadlock())
            if found == rank:
                return
            following = found
        self.running = following
        self._ranks[following].switch()

    def wake(self, rank: int) -> None:
        """Let a waiting rank go on when its turn comes."""
        self._waits[rank] = None
        self._fruitless = 0

    def pause(self, rank: int) -> None:
        """Let the others that can run have their turns first.

        Raises: DeadlockError if ranks do nothing but ask.
        """
        if self.running != rank or greenlet.getcurrent() is not self._ranks[rank]:
            raise self.refusal(rank)
        self._fruitless += 1
        if self._fruitless > 2 * self.size and self.idle():
            self._fruitless = 0
        if self._fruitless > PATIENCE * self.size:
            raise self.fail(self._deadlock())
        following = self._next(self._turns[rank])
        if following is not None:
            self.running = following
            self._ranks[following].switch()

    def fail(self, error: CommError) -> CommError:
        """Note a failure that concerns all ranks; the caller raises it."""
        self._failure, self._common, self.running = error, True, None
        return error

    def refusal(self, rank: int) -> BaseException:
        """Why `rank` may not communicate, when it is not the running one."""
        if self._failure is not None and not self._ranks[rank].dead:
            if self._common:
                return type(self._failure)(*self._failure.args)
            return RankStopped(f"rank {self._failed} raised {self._failure!r}")
        return CommError(f"the communicator of rank {rank} was used outside of that rank's own function: by another "
                         "rank, inside of another world, or after World.run had returned")

    def site(self, rank: int) -> str:
        """Where in the user's code a rank is."""
        ranklet = self._ranks[rank]
        return call_site(sys._getframe(1) if ranklet is greenlet.getcurrent() else ranklet.gr_frame)

    def _next(self, turns: tuple[int, ...]) -> int | None:
        """The first of the ranks that can run, now or after something has come late."""
        while True:
            for rank in turns:
                if self._waits[rank] is None:
                    return rank
            if not self.idle():
                return None

    def _deadlock(self) -> CommError:
        lines = []
        for rank, reason in enumerate(self._waits):
            what = "asks again and again whether something is done" if reason is None else reason.explain(rank)
            where = "" if self._ranks[rank].dead else f", at {self.site(rank)}"
            lines.append(f"rank {rank} {what}{where}")
        if self._dead:
            dead = [lines[rank] for rank in self._dead]
            return RankDiedError(died_text(dead, [line for line in lines if line not in dead]))
        return DeadlockError(deadlock_text(lines, {rank: () if reason is None else reason.awaited()
                                                   for rank, reason in enumerate(self._waits)}))

    def _stop(self) -> None:
        """End every rank that has begun: its wait raises, so that its `finally` blocks run."""
        for rank, ranklet in enumerate(self._ranks):
            if ranklet:                                 # it has begun, and has not ended
                ranklet.throw(self.refusal(rank))
