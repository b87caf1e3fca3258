"""What tactics have in common, and how they name the loops of a block to each other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from minipd.cinn.schedule.config import ScheduleConfig
from minipd.cinn.schedule.ir_schedule import IRSchedule
from minipd.cinn.schedule.tactics.arrangement import Arrangement, size
from minipd.cinn.schedule.tactics.group import INIT, BlockInfo

__all__ = ["Group", "Key", "Tactic", "axis_of"]

#: what a loop is, the same for loops that are to be one: ("rows", "i"), (pass, axes of the pass, "j"); with "chunk" and
#: "step" behind it, or "block" and "lane", if it has been cut
Key = tuple[Hashable, ...]


def axis_of(key: Key) -> str:
    """The axis that a loop runs along, or along a part of."""
    return str(key[2] if isinstance(key[0], int) else key[1])


@dataclass
class Group:
    """A function that is being scheduled, as the tactics see it.

    Attributes:
        arrangement: which nests there are to be.
        order: for each nest, its blocks as they are to run.
        paths: for each block, its loops from outside: what each is, and its name.
        partial: for each block that `rfactor` has made, the one whose partial results it has.
    """

    arrangement: Arrangement
    order: list[list[str]] = field(default_factory=list)
    paths: dict[str, list[tuple[Key, str]]] = field(default_factory=dict)
    partial: dict[str, str] = field(default_factory=dict)

    # ---------------------------------------------------------------------------------------------------- facts
    def keys(self, block: str) -> list[Key]:
        return [key for key, _ in self.paths[block]]

    def loop(self, block: str, key: Key) -> str:
        """The name of a block's loop."""
        return next(name for k, name in self.paths[block] if k == key)

    def info(self, block: str) -> BlockInfo:
        """What the block was when it was lowered."""
        while block in self.partial:
            block = self.partial[block]
        return self.arrangement.blocks[block]

    def folds(self, block: str, key: Key) -> bool:
        """Whether a block is a reduction that folds a loop."""
        return not block.endswith(INIT) and axis_of(key) in self.info(block).folded and (
            key not in self.keys(block + INIT))

    def worth_threads(self, n: int, config: ScheduleConfig) -> bool:
        """Whether a nest has rows, and may run over many elements."""
        a = self.arrangement
        elements = [size(a.blocks[name].extents, a.blocks[name].axes) for name in a.nests[n].passes]
        return bool(a.nests[n].rows) and any(e is None or e >= config.parallel_elements for e in elements)

    # -------------------------------------------------------------------------------------------------- changes
    def split(self, block: str, key: Key, parts: Sequence[str], loops: Sequence[str]) -> None:
        """A loop of the block has been cut into these."""
        new = [((*key, part), loop) for part, loop in zip(parts, loops, strict=True)]
        self.paths[block] = [x for own in self.paths[block] for x in (new if own[0] == key else [own])]

    def rfactor(self, s: IRSchedule, block: str, key: Key) -> str:
        """Give a reduction partial results for each iteration of a loop.  Returns the block that makes these."""
        path, start = self.keys(block), self.keys(block + INIT)
        part = s.rfactor(self.loop(block, key))
        self.partial[part] = block
        around = [k for k in path[:path.index(key)] if k in start]
        rest = [k for k in start if k not in around]
        for name, keys in ((part, path), (part + INIT, [*around, key, *((part + INIT, *k[1:]) for k in rest)]),
                           (block, [*around, key, *rest])):
            self.paths[name] = list(zip(keys, s.get_loops(name), strict=True))
        return part


class Tactic(Protocol):
    """A rule that applies primitives wherever it holds."""

    def apply(self, s: IRSchedule, group: Group, config: ScheduleConfig) -> None:
        """Schedule on; what the tactic does not do is not an error."""
