"""A check for MPI ranks, `MINIPD_COMM_CHECK=1`: before each collective the members compare their calls.

Where ranks make different calls, MPI may mix up their bytes, or wait, until the ranks look for the reason
(`inquest.py`).  With the check they raise a MismatchError at once, before anything has been sent.  It costs a message
between each two members for each collective, so it is off in normal runs.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from minipd.dist.comm.calls import Call, Made, caller_site, mismatch_text
from minipd.dist.comm.errors import MismatchError

__all__: list[str] = []


class Handshake:
    """Compares this rank's calls with those of the others.

    Args:
        channel: mpi4py's communicator of all ranks, for nothing but this.
    """

    def __init__(self, channel: Any):
        self.channel = channel
        self._numbers: Counter[tuple[int, ...]] = Counter()
        self._sent: list[Any] = []
        self._heard: dict[tuple[int, tuple[int, ...], int], Made] = {}      # by (rank, group, number)

    @classmethod
    def from_environment(cls, world: Any, environ: Mapping[str, str] = os.environ) -> Handshake | None:
        """A handshake over the ranks of `world` if the environment asks for it, else None."""
        return None if environ.get("MINIPD_COMM_CHECK", "0") in ("", "0") else cls(world.Dup())

    def agreed(self, ranks: tuple[int, ...], call: Call) -> Callable[[], bool]:
        """Tell the other members of this rank's next call; whether all of them are making the same.

        The answer raises: MismatchError if one makes another call.
        """
        rank = self.channel.rank
        own = Made(rank, ranks, self._numbers[ranks], call, caller_site())
        self._numbers[ranks] += 1
        others = [r for r in ranks if r != rank]
        self._sent = [request for request in self._sent if not request.Test()]
        self._sent += [self.channel.isend(own, r) for r in others]

        def all_agree() -> bool:
            while self.channel.Iprobe():
                made = self.channel.recv()
                self._heard[made.rank, made.group, made.number] = made
            keys = [(r, ranks, own.number) for r in others]
            if not all(key in self._heard for key in keys):
                return False
            made = [own, *map(self._heard.pop, keys)]
            if not all(m.same(own) for m in made):
                raise MismatchError(mismatch_text(sorted(made)))
            return True
        return all_agree
