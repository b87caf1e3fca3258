"""A check for MPI ranks, `MINIPD_COMM_CHECK=1`: before each collective the members compare their calls.

Where ranks make different calls, MPI may hang; or they see that the calls differ, but not in what.  With the check they
raise a MismatchError that shows both calls; and a rank that waits longer than `MINIPD_COMM_TIMEOUT` seconds (60 if not
set) says in what, and for whom.  It costs a message between each two members for each collective, so it is off in
normal runs.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from minipd.dist.comm.calls import Call, Made, call_text, caller_site, mismatch_text
from minipd.dist.comm.errors import CommError, MismatchError

__all__: list[str] = []

#: Seconds between two looks for a message.
PAUSE = 0.0002


class Handshake:
    """Compares this rank's calls with those of the others.

    Args:
        channel: mpi4py's communicator of all ranks, for nothing but this.
        timeout: seconds to wait for another rank.
    """

    # Each two ranks tell each other of every collective that both take part in, in order.  So what a rank hears from
    # another must be about the call that it is making itself: of the same group, with the same number.

    def __init__(self, channel: Any, timeout: float):
        self.channel, self.timeout = channel, timeout
        self._numbers: Counter[tuple[int, ...]] = Counter()
        self._sent: list[Any] = []

    @classmethod
    def from_environment(cls, world: Any, environ: Mapping[str, str] = os.environ) -> Handshake | None:
        """A handshake over the ranks of `world` if the environment asks for it, else None."""
        if environ.get("MINIPD_COMM_CHECK", "0") in ("", "0"):
            return None
        return cls(world.Dup(), float(environ.get("MINIPD_COMM_TIMEOUT", "60")))

    def agree(self, ranks: tuple[int, ...], call: Call) -> None:
        """Return when every member of the group `ranks` is making this call.

        Raises: MismatchError if one makes another call; CommError if one makes none in time.
        """
        rank = self.channel.rank
        own = Made(rank, ranks, self._numbers[ranks], call, caller_site())
        self._numbers[ranks] += 1
        others = [r for r in ranks if r != rank]
        self._sent = [request for request in self._sent if not request.Test()]
        self._sent += [self.channel.isend(tuple(own), r) for r in others]
        made = {rank: own}
        for other in others:
            self._await(partial(self.channel.Iprobe, other), other,
                        f"{call_text(call, own.number)} of the group {ranks}", own.site)
            made[other] = Made(*self.channel.recv(source=other))
        if not all(m.same(own) for m in made.values()):
            raise MismatchError(mismatch_text([made[r] for r in sorted(made)]))

    def await_message(self, mail: Any, src: int, tag: int) -> None:
        """Return when a message of `recv(src, tag)` is there."""
        self._await(lambda: mail.Iprobe(src, tag), src, f"recv(src={src}, tag={tag})", caller_site())

    def _await(self, there: Callable[[], bool], other: int, what: str, site: str) -> None:
        limit = time.monotonic() + self.timeout
        while not there():
            if time.monotonic() > limit:
                raise CommError(f"rank {self.channel.rank} has waited {self.timeout:g} s for rank {other} in {what}, "
                                f"at {site}; if rank {other} only needs longer, set MINIPD_COMM_TIMEOUT (seconds)")
            time.sleep(PAUSE)
