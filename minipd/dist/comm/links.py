"""What communication would take: a simulated clock for each rank, advanced by the cost of each link.

A message of b bytes takes  alpha + beta b  seconds on its link.  A collective is reckoned as a ring (all_reduce,
all_gather, reduce_scatter), as an exchange in rounds (all_to_all), or as a tree (broadcast, barrier), each round as
slow as the slowest of its links.  It begins when all members have come, and when each is through with its collective
before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Clock", "Link", "Links"]


class Link(NamedTuple):
    """alpha: seconds for a message of no bytes.  beta: seconds for each byte more."""

    alpha: float
    beta: float


class Links:
    """The links between ranks.

    Args:
        every: the link between any two ranks.
        special: those that differ, by (src, dst).

    >>> slow = Links(Link(1e-6, 1e-9), {(0, 1): Link(5e-6, 1e-8)})
    >>> slow.between(0, 1).alpha, slow.between(1, 0).alpha
    (5e-06, 1e-06)
    """

    def __init__(self, every: Link, special: Mapping[tuple[int, int], Link] | None = None):
        self.every, self.special = Link(*every), {pair: Link(*link) for pair, link in (special or {}).items()}

    def between(self, src: int, dst: int) -> Link:
        """The link from one rank to another."""
        return self.special.get((src, dst), self.every)

    def seconds(self, src: int, dst: int, nbytes: float) -> float:
        """What a message takes."""
        alpha, beta = self.between(src, dst)
        return alpha + beta * nbytes

    def collective(self, kind: str, ranks: Sequence[int], nbytes: Sequence[Sequence[float]]) -> float:
        """What a collective takes once all have come.

        nbytes: for each member what it gives: [its array], or its pieces for each member (reduce_scatter, all_to_all).

        >>> ring = Links(Link(1.0, 0.5))
        >>> ring.collective("all_reduce", (0, 1, 2, 3), [[8]] * 4)          # 6 rounds of 2 bytes
        12.0
        >>> ring.collective("all_gather", (0, 1), [[4], [6]])               # one round, the larger chunk
        4.0
        >>> ring.collective("barrier", (0, 1, 2, 3, 4), [[0]] * 5)          # 3 rounds
        3.0
        """
        n = len(ranks)

        def round_of(step: int, size: Sequence[float]) -> float:
            return max(self.seconds(ranks[i], ranks[(i + step) % n], size[i]) for i in range(n))
        if kind == "all_reduce":
            return 2 * (n - 1) * round_of(1, [nbytes[0][0] / n] * n)
        if kind in ("all_gather", "all_gather_object"): # in round s, member i passes on what member i - s gave
            return sum(round_of(1, [nbytes[(i - s) % n][0] for i in range(n)]) for s in range(n - 1))
        if kind == "reduce_scatter":                    # in round s, member i passes on the sum for member i - 1 - s
            return sum(round_of(1, [nbytes[0][(i - 1 - s) % n] for i in range(n)]) for s in range(n - 1))
        if kind == "all_to_all":
            return sum(round_of(s, [nbytes[i][(i + s) % n] for i in range(n)]) for s in range(1, n))
        rounds = (n - 1).bit_length()                   # broadcast and barrier
        return sum(round_of(2 ** k, [nbytes[0][0]] * n) for k in range(rounds))


class Clock:
    """The simulated time of each rank, in seconds since the beginning."""

    def __init__(self, size: int, links: Links):
        self.links = links
        self.now = [0.0] * size
        self._busy = [0.0] * size                       # until when a rank's collectives keep its links busy
        self._free: dict[tuple[int, int], float] = {}   # from when a link can take another message

    def collective(self, kind: str, ranks: Sequence[int], came: Sequence[float],
                   nbytes: Sequence[Sequence[float]]) -> tuple[float, float]:
        """When it begins and ends, if the members came at these times."""
        begin = max(*came, *(self._busy[r] for r in ranks))
        end = begin + self.links.collective(kind, ranks, nbytes)
        for r in ranks:
            self._busy[r] = end
        return begin, end

    def message(self, src: int, dst: int, nbytes: int, delay: float = 0.0) -> tuple[float, float]:
        """When one that is sent now leaves, and when it arrives."""
        alpha, beta = self.links.between(src, dst)
        begin = max(self.now[src], self._free.get((src, dst), 0.0))
        self._free[src, dst] = begin + beta * nbytes
        return begin, begin + alpha + beta * nbytes + delay

    def reach(self, rank: int, moment: float) -> None:
        """The rank goes on at that moment, or later."""
        self.now[rank] = max(self.now[rank], moment)
