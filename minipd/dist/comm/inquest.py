"""When a wait gets long, MPI ranks find out why.

A rank that has waited for `MINIPD_COMM_PATIENCE` seconds (2 if not set) tells all others where it is, over a channel of
its own, and listens to what they say.  Once what has been said shows that this can never end (`verdict.judge`: calls
that do not match, ranks that wait for each other, a rank that has died), each of them raises the same error.  A rank
that says nothing is at work, and may take as long as it likes.  As long as no wait is that long, nothing is sent.

How a rank learns that another has died: on its own machine it looks for the process.  mpiexec must not end the others
at once (Hydra: `-disable-auto-cleanup`, which `minipd launch` gives it); it then tells them with SIGUSR1, which would
end them, too, and is ignored.  Ranks on other machines are for mpiexec to look after.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from minipd.dist.comm.errors import CommError
from minipd.dist.comm.verdict import Status, judge

__all__: list[str] = []

#: Seconds between two looks at what others say, and at most between the first and the last rank that raises an error.
PAUSE, GRACE = 0.02, 3.0

#: Seconds for which a rank that has waited, and knows how it ends, waits for those that have not spoken.
SETTLE = 0.5


class Inquest:
    """What a rank knows of the others' waits.

    Args:
        channel: mpi4py's communicator of all ranks, for nothing but this.
        patience: seconds after which a wait is long.
    """

    def __init__(self, channel: Any, patience: float):
        self.patience = patience
        self._channel = channel
        self._statuses: dict[int, Status] = {}
        self._sent: list[Any] = []
        self._settled: float | None = None              # when to conclude
        self._error: CommError | None = None            # that this rank has raised
        self._concerned: tuple[int, ...] = ()           # ranks that raise it, too
        self._gone: set[int] = set()                    # those of them that have ended
        here = _place()
        everyone = channel.allgather((here, os.getpid()))
        self._processes = {r: pid for r, (place, pid) in enumerate(everyone) if place == here and r != channel.rank}
        if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL:
            _ignore_usr1()
        atexit.register(self._leave)

    @classmethod
    def from_environment(cls, world: Any, environ: Mapping[str, str] = os.environ) -> Inquest:
        """An inquest over the ranks of `world`."""
        return cls(world.Dup(), float(environ.get("MINIPD_COMM_PATIENCE") or "2"))

    def look(self, status: Callable[[], Status], first: bool, settle: float = SETTLE) -> None:
        """This rank waits; `status` says for what.  Returns if it may be worth to wait on.

        settle: for how long it waits for those that have not spoken, once it knows how it ends.
        Raises: the error with which all ranks concerned must end.
        """
        if first:
            own = self._statuses[self._channel.rank] = status()
            self._tell(("status", own))
        self._listen()
        if self._error is None:
            dead = self._dead()
            judged = judge(self._statuses, dead)
            if judged is None:
                self._settled = None
            else:
                # what is known says enough; what is still on its way makes the message complete
                now = time.monotonic()
                self._settled = self._settled or now + settle
                if now > self._settled or self._statuses.keys() | dead.keys() >= set(range(self._channel.size)):
                    self._conclude(*judged)
        if self._error is not None:
            raise self._error
        time.sleep(PAUSE)

    def insist(self, status: Callable[[], Status], error: CommError) -> CommError:
        """Something came that does not belong here.  The error that says most of it, once the others have spoken."""
        limit = time.monotonic() + self.patience + GRACE
        first = True
        while time.monotonic() < limit:
            try:
                self.look(status, first, self.patience + SETTLE)        # others speak when they have waited as long
            except CommError as better:
                return better
            first = False
        self._conclude(error, tuple(self._statuses))
        return error

    def _conclude(self, error: CommError, concerned: tuple[int, ...]) -> None:
        self._error, self._concerned = error, concerned
        self._tell(("verdict", type(error), error.args, concerned))

    def _tell(self, message: tuple) -> None:
        self._sent = [request for request in self._sent if not request.Test()]
        text = pickle.dumps(message)
        self._sent += [self._channel.Isend(text, r) for r in range(self._channel.size) if r != self._channel.rank]

    def _listen(self) -> None:
        """Take in what the others have said."""
        while self._channel.Iprobe():
            kind, *said = pickle.loads(self._receive())
            if kind == "status":
                self._statuses[said[0].rank] = said[0]
            elif kind == "gone":
                self._gone.add(said[0])
            elif self._error is None:
                error, arguments, self._concerned = said
                self._error = error(*arguments)

    def _receive(self) -> bytes:
        from mpi4py import MPI
        status = MPI.Status()
        found = self._channel.Improbe(status=status)
        text = bytearray(status.Get_count(MPI.BYTE))
        found.Recv([text, MPI.BYTE])
        return bytes(text)

    def _dead(self) -> dict[int, str]:
        """Ranks of this machine that are gone and had not ended as they should."""
        return {r: f"(process {pid}) has died" for r, pid in self._processes.items()
                if not _alive(pid) and not self._has_ended(r)}

    def _has_ended(self, rank: int) -> bool:
        return rank in self._gone or rank in self._statuses and self._statuses[rank].waits is None

    def at_the_end(self, status: Callable[[], Status]) -> None:
        """At the end of the process, tell the others that it has come; `status` then says what it did."""
        self._at_the_end = status

    def close(self) -> None:
        """All ranks have ended as they should: nobody needs to be told."""
        atexit.unregister(self._leave)

    def _leave(self) -> None:
        """The end of the process: say so; and if there was an error, let the others show theirs before MPI ends all.

        The first rank that leaves with an error makes MPI end all others, in the middle of what they print.
        """
        if self._error is None:
            self._tell(("status", self._at_the_end()))
            return
        rank = self._channel.rank
        self._tell(("gone", rank))
        limit = time.monotonic() + GRACE
        while not {*self._concerned, rank} <= {rank, *self._gone, *self._dead()} and time.monotonic() < limit:
            self._listen()
            time.sleep(PAUSE)


def _place() -> tuple[str, str]:
    """The machine, and what of its processes can be seen from here: containers of one name may have their own."""
    try:
        return socket.gethostname(), os.readlink("/proc/self/ns/pid")
    except OSError:
        return socket.gethostname(), ""


def _ignore_usr1() -> None:
    # Where this thread may not: whoever runs the main thread keeps what it has.
    try:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    except ValueError:
        return


def _alive(pid: int) -> bool:
    """Whether a process of this machine runs: it exists, and is not only waiting to be buried."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        if os.path.exists("/proc/self/stat"):
            return False
    try:
        os.kill(pid, 0)                                 # where there is no /proc
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
