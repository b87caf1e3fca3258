"""Ranks as processes that talk through MPI (mpi4py).

Start them with `minipd launch -n 4 script.py`, or `mpiexec -n 4 python -m mpi4py script.py`; without `-m mpi4py` an
exception in one rank does not end the others.

A wait never lasts for ever: see `inquest.py`.

What was started (`start`) gets on whenever this rank is in a call of the communicator, or asks `done()`: MPI moves
large messages only while both sides are in a call of MPI.  So compute in pieces and ask in between, as a training step
does that starts the all-reduce of one gradient after the other.  (Two ranks, 16 MB, 27 ms of products of matrices: 41
ms one after the other, 31 ms if asked in between, 40 ms if not.)
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np

from minipd.dist.comm.arguments import MAX_TAG
from minipd.dist.comm.base import Communicator, Group
from minipd.dist.comm.calls import Call, call_text, caller_site
from minipd.dist.comm.errors import CommError, MismatchError
from minipd.dist.comm.handshake import Handshake
from minipd.dist.comm.inquest import Inquest
from minipd.dist.comm.request import Request
from minipd.dist.comm.steps import STEPS, Line, Steps, Unexpected
from minipd.dist.comm.verdict import Alone, Status, Together
from minipd.framework import dtype as dtypes
from minipd.framework.environment import available_cores

__all__: list[str] = []

#: Seconds between two looks at whether a message has come, where ranks outnumber cores: at first, and at most.
NAP, LONGEST_NAP = 20e-6, 500e-6

#: Looks after which other processes may have the core in between, where there is one for each rank.
EAGER = 1000

#: Calls whose tags are kept; batches whose sizes never repeat would be remembered for ever.
REMEMBERED = 4096

#: After so many looks, a look at the clock.
LOOKS = 256

_NP_OF_CODE = {t.code: t.np for t in dtypes.ALL}


class MpiCommunicator(Communicator):
    """The communicator of a process; `connect.py` makes it.

    Args:
        world: mpi4py's communicator of all ranks, from which those of groups are made.
        mail: another one, for `send` and `recv`.
        inquest: finds out why a wait is long.
        handshake: compares calls before they are carried out; None in normal runs.
    """

    def __init__(self, world: Any, mail: Any, inquest: Inquest, handshake: Handshake | None = None):
        super().__init__(world.rank, world.size)
        from mpi4py import MPI
        self._mpi, self._world, self._mail, self._inquest, self._handshake = MPI, world, mail, inquest, handshake
        here = world.Split_type(MPI.COMM_TYPE_SHARED)
        self._crowded = here.size > available_cores()   # more ranks on this machine than cores
        here.Free()
        # where ranks outnumber cores there is no core for a thread that communicates beside the others
        self.threads = MPI.Query_thread() >= MPI.THREAD_SERIALIZED and not self._crowded
        self._closing = False
        self._at_closing: Counter[str] | None = None    # `counts` when it was closed
        self._active: list[_Started] = []               # what was started and has not ended, the oldest first
        self._sent: list[tuple[Any, np.ndarray]] = []   # messages on their way, and the memory they are read from
        self._tags: dict[Call, int] = {}
        self._messages: Counter[tuple[int, int]] = Counter()    # sent, by receiver and tag
        self._received: Counter[tuple[int, int]] = Counter()    # by sender and tag
        inquest.at_the_end(lambda: self._status(None))

    def __enter__(self) -> MpiCommunicator:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:                                # after an error the others do not come here: do not wait
            self.close()

    def close(self, last: bool = True) -> None:
        """Wait for all ranks, and until what they sent each other has been received; nothing, if nothing was sent since
        the last time.

        last: whether this rank will need the others no more.  If it may, it is still heard while it does.

        Raises: CommError if a message to this rank was never received.
        """
        if last and self.counts == self._at_closing:
            return
        for started in list(self._active):
            started.wait()
        self._closing = last
        self.barrier()
        if last:                                        # even if what follows raises: the others do not come again
            self._at_closing = self.counts.copy()
        status = self._mpi.Status()
        if self._mail.Iprobe(self._mpi.ANY_SOURCE, self._mpi.ANY_TAG, status):
            raise CommError(f"all ranks have ended, but rank {self.rank} never received a message from rank "
                            f"{status.source}, tag {status.tag}")
        self._mpi.Request.Waitall([request for request, _ in self._sent])
        self._sent.clear()
        if last:
            self._inquest.close()

    # ---- collectives

    def _link(self, ranks: tuple[int, ...]) -> Line:
        return Line(self._mpi, crowded=self._crowded)

    def _steps(self, group: Group, call: Call, operand: Any) -> Steps:
        """The call, ready to begin."""
        line = group.link
        line.begun += 1
        line.calls.append(call)
        tag = self._tags.get(call)
        if tag is None:
            if len(self._tags) == REMEMBERED:
                self._tags.clear()
            tag = self._tags[call] = crc32(repr(call).encode()) % (MAX_TAG + 1)
        kind, _, _, *parameters = call
        steps = STEPS[kind](line, group, tag, operand, *parameters)
        if line.comm is None:
            steps = self._met(line, group, steps)
        if self._handshake is not None:
            steps = _checked(self._handshake.agreed(group.ranks, call), steps)
        return steps

    def _met(self, line: Line, group: Group, steps: Steps) -> Steps:
        """The steps, once the members have met and MPI has made them a communicator."""
        if line.comm is None:
            # Create_group is called by the members only (Split would need every rank of the world).  It cannot be left
            # once it waits for a member, so they call it when all have come.
            tag = crc32(repr(group.ranks).encode()) % (MAX_TAG + 1)
            others = [r for r in group.ranks if r != self.rank]
            nothing = np.empty(0, np.uint8)
            requests = [self._world.Irecv(nothing, r, tag) for r in others]
            requests += [self._world.Isend(nothing, r, tag) for r in others]
            yield line.all_done(requests), True
            line.comm = self._world.Create_group(self._world.Get_group().Incl(group.ranks))
            here = line.comm.Split_type(self._mpi.COMM_TYPE_SHARED)
            line.here = here.size == group.size
            here.Free()
        return (yield from steps)

    def _collect(self, group: Group, call: Call, operand: Any) -> Any:
        steps = self._steps(group, call, operand)
        line = group.link
        waits = (group.ranks, line.begun - 1, call)
        if self._active:
            return self._add(_Collective(self, line, steps, waits)).wait()
        try:
            while True:
                ready, _ = next(steps)
                self._until(ready, waits)
        except StopIteration as end:
            return end.value
        except (Unexpected, MismatchError) as error:
            raise self._insist(error, waits) from None

    def _agree(self, group: Group, call: Call) -> None:
        if self._handshake is not None:
            self._until(self._handshake.agreed(group.ranks, call), (group.ranks, group.link.begun, call))

    def _begin(self, group: Group, call: Call, operand: Any) -> Request:
        steps = self._steps(group, call, operand)
        return self._add(_Collective(self, group.link, steps, (group.ranks, group.link.begun - 1, call)))

    def _add(self, started: _Started) -> _Started:
        self._active.append(started)
        self._progress()
        return started

    def _progress(self) -> None:
        """Let everything that was started get on as far as it goes."""
        # Whoever takes messages out of one line must do so in the order in which all ranks made their calls: so what
        # may still send or expect something holds up the later ones of its line.
        held = set()
        for started in list(self._active):
            if started.line not in held and not started.advance():
                held.add(started.line)
        self._active = [started for started in self._active if not started.over]

    # ---- waiting

    def _until(self, ready: Callable[[], Any], waits: tuple) -> Any:
        """What `ready` returns once that is true.

        waits: what this is, (ranks, number, call) or (src, tag).

        MPI waits by looking again and again.  On a core that another rank could use, this sleeps in between, the
        longer the longer it waits: a collective takes microseconds, another stage of a pipeline milliseconds.
        """
        looks, nap, limit, late = 0, NAP, 0.0, False
        while not (found := ready()):
            if self._active:
                self._progress()
            looks += 1
            if self._crowded:
                time.sleep(nap)
                nap = min(2 * nap, LONGEST_NAP)
            elif looks > EAGER:
                os.sched_yield()
            if late:
                self._inquest.look(lambda: self._status(waits), first=False)
            elif not looks % LOOKS:
                limit = limit or time.monotonic() + self._inquest.patience
                if time.monotonic() > limit:
                    self._inquest.look(lambda: self._status(waits), first=True)
                    late = True
        return found

    def _status(self, waits: tuple | None) -> Status:
        """What this rank has to say of itself."""
        lines = {ranks: g.link for ranks, g in self._groups.items() if g.link is not None}
        calls = {(ranks, line.begun - 1 - age): call for ranks, line in lines.items()
                 for age, call in enumerate(reversed(line.calls))}
        what: Together | Alone | None = None
        if waits is not None:
            what = Together(*waits) if len(waits) == 3 else Alone(waits[0], waits[1], self._received[waits])
        site = "the end of its script" if self._closing else caller_site()
        begun = {ranks: line.begun for ranks, line in lines.items()}
        return Status(self.rank, what, site, begun, calls, dict(self._messages))

    def _insist(self, error: Exception, waits: tuple) -> CommError:
        """What to raise after something came that does not belong to this rank's call."""
        if not isinstance(error, CommError):
            ranks, number, call = waits
            error = MismatchError(f"rank {self.rank} in {call_text(call, number)} of the group {ranks}, at "
                                  f"{caller_site()}: {error}.  The members of a group must make the same calls in the "
                                  "same order; with MINIPD_COMM_CHECK=1 they compare them before")
        return self._inquest.insist(lambda: self._status(waits), error)

    # ---- between two ranks

    def _send(self, x: np.ndarray, dst: int, tag: int) -> None:
        self._sent = [(request, message) for request, message in self._sent if not request.Test()]
        message = _pack(x)
        self._messages[dst, tag] += 1
        self._sent.append((self._mail.Isend(message, dst, tag), message))

    def _recv(self, src: int, tag: int) -> np.ndarray:
        if self._active:
            return self._begin_recv(src, tag).wait()
        status, waits = self._mpi.Status(), (src, tag)
        found = self._until(lambda: self._mail.Improbe(src, tag, status), waits)
        message = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
        self._until(found.Irecv(message).Test, waits)
        self._received[waits] += 1
        return _unpack(message)

    def _begin_recv(self, src: int, tag: int) -> Request:
        return self._add(_Receive(self, src, tag))


def _checked(agreed: Callable[[], bool], steps: Steps) -> Steps:
    """The steps, once the members have agreed."""
    yield agreed, True
    return (yield from steps)


class _Started(Request):
    """What a rank has started.  `advance` is called in turn for all of them, the oldest first.

    Attributes:
        line: what takes messages in order: a group's line, or (src, tag).
        over: whether it has ended, well or not.
    """

    def __init__(self, comm: MpiCommunicator, line: Any, waits: tuple):
        super().__init__()
        self._comm, self.line, self._waits, self.over = comm, line, waits, False
        self._result: Any = None
        self._error: Exception | None = None

    def advance(self) -> bool:
        """Get on as far as it goes; whether later ones of the same line may do so, too."""
        raise NotImplementedError

    def _poll(self) -> bool:
        if not self.over:
            self._comm._progress()
        return self.over

    def _finish(self) -> Any:
        self._comm._until(lambda: self.over, self._waits)
        if self._error is not None:
            raise self._comm._insist(self._error, self._waits) from None
        return self._result


class _Collective(_Started):
    def __init__(self, comm: MpiCommunicator, line: Line, steps: Steps, waits: tuple):
        super().__init__(comm, line, waits)
        self._steps = steps
        self._ready: Callable[[], bool] = lambda: True
        self._more = True

    def advance(self) -> bool:
        try:
            while self._ready():
                self._ready, self._more = next(self._steps)
        except StopIteration as end:
            self._result, self.over = end.value, True
        except (Unexpected, MismatchError) as error:
            self._error, self.over = error, True
        return self.over or not self._more


class _Receive(_Started):
    def __init__(self, comm: MpiCommunicator, src: int, tag: int):
        super().__init__(comm, (src, tag), (src, tag))
        self._request: Any = None                       # of MPI, once the message has been seen

    def advance(self) -> bool:
        comm = self._comm
        if self._request is None:
            status = comm._mpi.Status()
            found = comm._mail.Improbe(*self.line, status)
            if found is None:
                return False
            self._message = np.empty(status.Get_count(comm._mpi.BYTE), np.uint8)
            self._request = found.Irecv(self._message)
        if self._request.Test():
            comm._received[self.line] += 1
            self._result, self.over = _unpack(self._message), True
        return True                                     # the next one may look for the next message


def _pack(x: np.ndarray) -> np.ndarray:
    """x as bytes that say what they are: int64 dtype code, number of dimensions and shape, then the elements."""
    head = np.array([dtypes.of(x.dtype).code, x.ndim, *x.shape], np.int64).view(np.uint8)
    message = np.empty(head.nbytes + x.nbytes, np.uint8)
    message[:head.nbytes] = head
    message[head.nbytes:].view(x.dtype).reshape(x.shape)[...] = x
    return message


def _unpack(message: np.ndarray) -> np.ndarray:
    """The array that `_pack` was given, in the memory of the message.

    >>> _unpack(_pack(np.array([[1.5, 2.0]])))
    array([[1.5, 2. ]])
    """
    code, ndim = message[:16].view(np.int64)
    shape = tuple(message[16:16 + 8 * ndim].view(np.int64))
    return message[16 + 8 * ndim:].view(_NP_OF_CODE[int(code)]).reshape(shape)
