"""Who touched an element last: finds iterations that meet although they may run at once.

A *place* says within which iterations of concurrent loops (parallel, or bound to a GPU axis) something happens: for
each such loop around it, outermost first, (which execution of which loop, iteration, whether of threads).  Two places
are in no order if they differ, at the outermost loop in which they do, only in the iteration; threads are in order all
the same if a barrier was in between, that is, if the *phases* differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Access", "Log", "Place", "meet"]

Place = tuple[tuple[int, int, bool], ...]
#: where something happened, and in which phase
Access = tuple[Place, int]


def meet(a: Access, b: Access) -> bool:
    """Whether nothing says which of two accesses comes first.

    >>> meet((((1, 0, False),), 0), (((1, 5, False),), 0))          # two iterations of one loop
    True
    >>> meet((((1, 0, False),), 0), (((2, 5, False),), 0))          # of two loops, one behind the other
    False
    >>> meet((((1, 0, True),), 3), (((1, 5, True),), 4))            # two threads, with a barrier in between
    False
    """
    for (loop, i, threads), (other, j, _) in zip(a[0], b[0], strict=False):
        if loop != other:
            return False
        if i != j:
            return not threads or a[1] == b[1]
    return False


@dataclass
class Log:
    """The last accesses to each element of one buffer: its last write, and since then a read or two, from different
    places if there were such (a later write meets one of them if it meets any)."""

    writes: dict[tuple[int, ...], Access] = field(default_factory=dict)
    reads: dict[tuple[int, ...], list[Access]] = field(default_factory=dict)

    def read(self, at: tuple[int, ...], access: Access) -> bool:
        """Note a read; False if it meets a write."""
        reads = self.reads.setdefault(at, [])
        if len(reads) < 2 and access not in reads:
            reads.append(access)
        return at not in self.writes or not meet(self.writes[at], access)

    def write(self, at: tuple[int, ...], access: Access) -> bool:
        """Note a write; False if it meets a read or a write."""
        before = [*self.reads.pop(at, ()), *([self.writes[at]] if at in self.writes else ())]
        self.writes[at] = access
        return not any(meet(other, access) for other in before)
