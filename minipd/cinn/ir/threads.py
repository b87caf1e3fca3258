"""The threads of a GPU block, run one after the other from barrier to barrier.

Each thread is a Python generator, which hands over at each SyncThreads, and at each further loop over threads, of which
every iteration becomes a thread of its own (its maker waits until these have ended).  When all that can run have come
to a barrier, it must be the same one, and no thread may have ended that was made together with one of those that wait:
on hardware, that would hang, or not, depending on the hardware.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from minipd.cinn.ir.ast import For, Seq, SyncThreads
from minipd.cinn.ir.printer import text

if TYPE_CHECKING:
    from minipd.cinn.ir.interpreter import _Run

__all__ = ["Event", "Threads"]

#: what a thread hands over at: a barrier, or a loop over more threads with its extent
Event = SyncThreads | tuple[For, int]
State = dict[str, Any]


@dataclass
class _Fork:
    """The threads that one loop has made."""

    loop: For
    maker: _Thread | None
    running: int = 0
    ended: int = 0


@dataclass
class _Thread:
    steps: Iterator[Event]
    state: State
    fork: _Fork


class Threads:
    """The threads of one interpreter.  phase: how many barriers there have been, and ends of thread loops."""

    def __init__(self, run: _Run) -> None:
        self.run = run
        self.phase = 0
        self.active = False

    def loop(self, s: For, extent: int) -> Iterator[Event]:
        """Run a loop over threads; within threads, leave that to the one who runs these."""
        if self.active:
            yield s, extent
            return
        self.active = True
        around = self._state()
        waiting = self._made(s, extent, None, around)
        while waiting:
            waiting = self._until_barrier(waiting)
            self.phase += 1
        self._resume(around)
        self.run.enter(around["axes"])
        self.active = False

    def _until_barrier(self, ready: list[_Thread]) -> list[_Thread]:
        """Run threads until each has ended or waits; returns those that wait."""
        waiting: list[tuple[_Thread, SyncThreads]] = []
        if self.run.rng is not None:
            ready = [ready[k] for k in self.run.rng.permutation(len(ready))]
        while ready:
            thread = ready.pop(0)
            self._resume(thread.state)
            event = next(thread.steps, None)
            thread.state = self._state()
            if isinstance(event, SyncThreads):
                waiting.append((thread, event))
            elif event is not None:
                made = self._made(*event, thread, thread.state)
                ready += made or [thread]
            else:
                fork = thread.fork
                fork.ended += 1
                if fork.ended == fork.running and fork.maker is not None:
                    self.phase += 1             # who goes on has waited for them
                    ready.append(fork.maker)
        for thread, barrier in waiting:
            self._check_barrier(thread, barrier, waiting[0][1])
        return [thread for thread, _ in waiting]

    def _check_barrier(self, thread: _Thread, barrier: SyncThreads, first: SyncThreads) -> None:
        from minipd.cinn.ir.interpreter import LoopError
        fork: _Fork | None = thread.fork
        while fork is not None:
            if fork.ended:
                raise LoopError(f"{text(fork.loop).splitlines()[0]}: {fork.ended} of {fork.running} threads have ended "
                                "while others wait at a __syncthreads()")
            fork = fork.maker.fork if fork.maker else None
        if barrier is not first:
            raise LoopError(f"{text(thread.fork.loop).splitlines()[0]}: threads wait at different __syncthreads()")

    def _made(self, s: For, extent: int, maker: _Thread | None, state: State) -> list[_Thread]:
        run = self.run
        run.executions += 1
        fork = _Fork(s, maker, extent)
        threads = []
        for i in range(extent):
            own: State = {name: x.copy() if isinstance(x, dict | set) else x for name, x in state.items()}
            own["scalars"][s.var] = np.int64(i)
            own["loop_vars"].add(s.var)
            own["place"] = (*own["place"], (run.executions, i, True))
            own["axes"] = (*own["axes"], (s.kind, run.executions, i))
            threads.append(_Thread(run.steps(Seq((s.body,))), own, fork))
        return threads

    def _state(self) -> State:
        run = self.run
        return {name: getattr(run, name) for name in ("buffers", "written", "logs", "own", "scalars", "accumulators",
                                                      "loop_vars", "place", "axes")}

    def _resume(self, state: State) -> None:
        for name, value in state.items():
            setattr(self.run, name, value)
        self.run.enter(self.run.axes)
