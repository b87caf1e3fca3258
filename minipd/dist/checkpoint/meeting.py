"""The ranks that save or load together: what one of them cannot do, none does."""

from __future__ import annotations

from typing import Any

from minipd.dist.group import Group
from minipd.dist.joining import current_comm

__all__: list[str] = []


class Meeting:
    """The ranks of a group (None: all), seen from one of them.   leader: the rank that does what one does for all."""

    def __init__(self, group: Group | None, leader: int):
        self.comm = current_comm()
        self.ranks = tuple(range(self.comm.size)) if group is None else tuple(group.ranks)
        self.rank = self.comm.rank
        self.leader = leader if leader in self.ranks else self.ranks[0]

    @property
    def is_member(self) -> bool:
        return self.rank in self.ranks

    @property
    def leads(self) -> bool:
        return self.rank == self.leader

    def all(self, x: Any) -> list[Any]:
        """What every rank says, in order."""
        return self.comm.all_gather_object(x, self.ranks) if len(self.ranks) > 1 else [x]

    def agree(self, problem: Exception | None) -> None:
        """Raise, on every rank, what one of them has met with; else go on together."""
        for rank, met in zip(self.ranks, self.all(problem), strict=True):
            if met is not None:
                if len(self.ranks) > 1:
                    met.add_note(f"met with by rank {rank} of {list(self.ranks)}")
                raise met
