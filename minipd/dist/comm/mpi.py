"""Ranks as processes that talk through MPI (mpi4py).

Start them with `minipd launch -n 4 script.py`, or `mpiexec -n 4 python -m mpi4py script.py`; without `-m mpi4py` an
exception in one rank leaves the others waiting for ever.

What was started (`start`) gets on whenever this rank is in a call of the communicator, or asks `done()`: MPI moves
large messages only while both sides are in a call of MPI.  So compute in pieces and ask in between, as a training step
does that starts the all-reduce of one gradient after the other.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np

from minipd.dist.comm.arguments import MAX_TAG
from minipd.dist.comm.base import Communicator, Group
from minipd.dist.comm.calls import Call, call_text
from minipd.dist.comm.errors import CommError, MismatchError
from minipd.dist.comm.handshake import Handshake
from minipd.dist.comm.request import Request
from minipd.dist.comm.steps import STEPS, Line, Steps, Unexpected
from minipd.framework import dtype as dtypes
from minipd.framework.environment import available_cores
from minipd.framework.errors import InputError

__all__ = ["connect"]

#: How to get MPI, for whoever lacks it.
INSTALL = "install it (pip install 'minipd[mpi]'), or simulate the ranks in one process (--comm sim)"

#: Seconds between two looks at whether a message has come, where ranks outnumber cores: at first, and at most.
NAP, LONGEST_NAP = 20e-6, 500e-6

_NP_OF_CODE = {t.code: t.np for t in dtypes.ALL}


def connect() -> MpiCommunicator:
    """This process's communicator, over all processes that mpiexec started with it (one, if it was started alone).

    Every rank calls it, once.  Use it in a `with` statement: at the end of a rank without an error it waits until all
    messages have been received.  From then on what a rank prints appears line by line: mpiexec puts a pipe in the way,
    into which Python would otherwise write some thousand characters at a time, or (if told to be unbuffered) each word
    by itself, and lines of different ranks would mix.

    Raises: InputError if there is no MPI, or mpiexec and mpi4py belong to different ones.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:        # RuntimeError: mpi4py is here, but no MPI library
        raise InputError("MPI, for ranks in processes of their own", f"none ({error})", INSTALL) from error
    world = MPI.COMM_WORLD
    started = int(os.environ.get("MINIPD_RANKS", world.size))
    if started != world.size:
        library = MPI.Get_library_version().splitlines()[0]
        raise InputError(f"{started} ranks, as mpiexec was told", f"a world of {world.size}",
                         f"mpiexec must come from the MPI that mpi4py uses, which is {library}")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True, write_through=False)
    return MpiCommunicator(world.Dup(), world.Dup(), Handshake.from_environment(world))


class MpiCommunicator(Communicator):
    """The communicator of a process; `connect` makes it.

    Args:
        world: mpi4py's communicator of all ranks, from which those of groups are made.
        mail: another one, for `send` and `recv`.
        handshake: compares calls before they are carried out; None in normal runs.
    """

    def __init__(self, world: Any, mail: Any, handshake: Handshake | None = None):
        super().__init__(world.rank, world.size)
        from mpi4py import MPI
        self._mpi, self._world, self._mail, self._handshake = MPI, world, mail, handshake
        here = world.Split_type(MPI.COMM_TYPE_SHARED)
        self._crowded = here.size > available_cores()   # more ranks on this machine than cores
        here.Free()
        # where ranks outnumber cores there is no core for a thread that communicates beside the others
        self.threads = MPI.Query_thread() >= MPI.THREAD_SERIALIZED and not self._crowded
        self._active: list[_Started] = []               # what was started and has not ended, the oldest first
        self._sent: list[tuple[Any, np.ndarray]] = []   # messages on their way, and the memory they are read from
        self._tags: dict[Call, int] = {}

    def __enter__(self) -> MpiCommunicator:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:                                # after an error the others do not come here: do not wait
            self.close()

    def close(self) -> None:
        """Wait for all ranks, and until what they sent each other has been received."""
        self._until(lambda: not self._active)
        self.barrier()
        status = self._mpi.Status()
        if self._mail.Iprobe(self._mpi.ANY_SOURCE, self._mpi.ANY_TAG, status):
            raise CommError(f"all ranks have ended, but rank {self.rank} never received a message from rank "
                            f"{status.source}, tag {status.tag}")
        self._mpi.Request.Waitall([request for request, _ in self._sent])
        self._sent.clear()

    # ---- collectives

    def _link(self, ranks: tuple[int, ...]) -> None:
        return None                                     # made at the first collective, after the handshake

    def _steps(self, group: Group, call: Call, operand: Any) -> Steps:
        """The call, ready to begin."""
        if self._handshake is not None:
            self._handshake.agree(group.ranks, call)
        if group.link is None:
            # Create_group is called by the members only (Split would need every rank of the world).
            group.link = Line(self._mpi, self._world.Create_group(self._world.Get_group().Incl(group.ranks)))
        tag = self._tags.get(call)
        if tag is None:
            tag = self._tags[call] = crc32(repr(call).encode()) % (MAX_TAG + 1)
        kind, _, _, *parameters = call
        return STEPS[kind](group.link, group, tag, operand, *parameters)

    def _collect(self, group: Group, call: Call, operand: Any) -> Any:
        steps = self._steps(group, call, operand)
        if self._active:
            return self._add(_Collective(self, group, call, steps)).wait()
        try:
            while True:
                ready, _ = next(steps)
                self._until(ready)
        except StopIteration as end:
            return end.value
        except Unexpected as error:
            raise self._mismatch(group, call, error) from error

    def _begin(self, group: Group, call: Call, operand: Any) -> Request:
        return self._add(_Collective(self, group, call, self._steps(group, call, operand)))

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

    def _mismatch(self, group: Group, call: Call, error: Exception) -> MismatchError:
        return MismatchError(f"rank {self.rank} in {call_text(call)} of the group {group.ranks}: {error}.  "
                             "The members made different calls; with MINIPD_COMM_CHECK=1 you see them")

    def _until(self, ready: Callable[[], Any]) -> Any:
        """What `ready` returns once that is true.

        MPI waits by looking again and again.  On a core that another rank could use, this sleeps in between, the
        longer the longer it waits: a collective takes microseconds, another stage of a pipeline milliseconds.
        """
        nap = NAP
        while not (found := ready()):
            if self._active:
                self._progress()
            if self._crowded:
                time.sleep(nap)
                nap = min(2 * nap, LONGEST_NAP)
        return found

    # ---- between two ranks

    def _send(self, x: np.ndarray, dst: int, tag: int) -> None:
        self._sent = [(request, message) for request, message in self._sent if not request.Test()]
        message = _pack(x)
        self._sent.append((self._mail.Isend(_bytes(message), dst, tag), message))

    def _recv(self, src: int, tag: int) -> np.ndarray:
        if self._handshake is not None:
            self._handshake.await_message(self._mail, src, tag)
        if self._active:
            return self._begin_recv(src, tag).wait()
        status = self._mpi.Status()
        found = self._until(lambda: self._mail.Improbe(src, tag, status))
        message = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
        self._until(found.Irecv(_bytes(message)).Test)
        return _unpack(message)

    def _begin_recv(self, src: int, tag: int) -> Request:
        return self._add(_Receive(self, src, tag))


class _Started(Request):
    """What a rank has started.  `advance` is called in turn for all of them, the oldest first.

    Attributes:
        line: what takes messages in order: a group's line, or (src, tag).
        over: whether it has ended, well or not.
    """

    def __init__(self, comm: MpiCommunicator, line: Any):
        super().__init__()
        self._comm, self.line, self.over = comm, line, False
        self._result: Any = None
        self._error: BaseException | None = None

    def advance(self) -> bool:
        """Get on as far as it goes; whether later ones of the same line may do so, too."""
        raise NotImplementedError

    def _poll(self) -> bool:
        if not self.over:
            self._comm._progress()
        return self.over

    def _finish(self) -> Any:
        self._comm._until(lambda: self.over)
        if self._error is not None:
            raise self._error
        return self._result


class _Collective(_Started):
    def __init__(self, comm: MpiCommunicator, group: Group, call: Call, steps: Steps):
        super().__init__(comm, group.link)
        self._group, self._call, self._steps = group, call, steps
        self._ready: Callable[[], bool] = lambda: True
        self._more = True

    def advance(self) -> bool:
        try:
            while self._ready():
                self._ready, self._more = next(self._steps)
        except StopIteration as end:
            self._result, self.over = end.value, True
        except Unexpected as error:
            self._error, self.over = self._comm._mismatch(self._group, self._call, error), True
        return self.over or not self._more


class _Receive(_Started):
    def __init__(self, comm: MpiCommunicator, src: int, tag: int):
        super().__init__(comm, (src, tag))
        self._src, self._tag = src, tag
        self._request: Any = None                       # of MPI, once the message has been seen

    def advance(self) -> bool:
        comm = self._comm
        if self._request is None:
            status = comm._mpi.Status()
            found = comm._mail.Improbe(self._src, self._tag, status)
            if found is None:
                return False
            self._message = np.empty(status.Get_count(comm._mpi.BYTE), np.uint8)
            self._request = found.Irecv(_bytes(self._message))
        if self._request.Test():
            self._result, self.over = _unpack(self._message), True
        return True                                     # the next one may look for the next message


def _pack(x: np.ndarray) -> np.ndarray:
    """x as bytes that say what they are: int64 dtype code, number of dimensions and shape, then the elements."""
    head = np.array([dtypes.of(x.dtype).code, x.ndim, *x.shape], np.int64).view(np.uint8)
    message = np.empty(head.nbytes + x.nbytes, np.uint8)
    message[:head.nbytes] = head
    message[head.nbytes:].view(x.dtype).reshape(x.shape)[...] = x
    return message


def _bytes(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1).view(np.uint8)


def _unpack(message: np.ndarray) -> np.ndarray:
    """The array that `_pack` was given, in the memory of the message.

    >>> _unpack(_pack(np.array([[1.5, 2.0]])))
    array([[1.5, 2. ]])
    """
    code, ndim = message[:16].view(np.int64)
    shape = tuple(message[16:16 + 8 * ndim].view(np.int64))
    return message[16 + 8 * ndim:].view(_NP_OF_CODE[int(code)]).reshape(shape)
