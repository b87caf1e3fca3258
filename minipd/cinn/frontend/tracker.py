"""What the fusion passes decided, and why: a record to read, to draw, and to test.

    SinkTrivialPattern      exp_0 -> multiply_1: merged
    AnchorPatternFusion     multiply_1 -> add_3: GeneralTopo: matmul_2 stands between: ...
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from minipd.cinn.frontend.pattern import Kind

__all__ = ["NAME", "Decision", "Edge", "FusionTracker", "Group"]

#: the attribute that an operator keeps its name in, if the tracker is explaining
NAME = "fusion_name"


@dataclass(frozen=True)
class Decision:
    """A step that tried to unite the patterns of two operators, and what came of it.

    upstream, downstream: the operators, as `exp_3`: the row's name and the number of the operation among all that
    were looked at.
    policy, reason: who refused, and why, in words; for what was merged, "" and what it is good for.
    """

    step: str
    upstream: str
    downstream: str
    merged: bool
    policy: str = ""
    reason: str = ""

    def __str__(self) -> str:
        what = "merged" if self.merged else f"refused by {self.policy}"
        return f"{self.step}: {self.upstream} -> {self.downstream}: {what}{f': {self.reason}' if self.reason else ''}"


@dataclass(frozen=True)
class Edge:
    """A value that one operator makes and another reads, in the end: in one kernel, or through memory.

    step: of the merge that put the two into one kernel; "" if they are in two, or in none.
    """

    upstream: str
    downstream: str
    value: str
    fused: bool
    step: str = ""
    policy: str = ""
    reason: str = ""

    def __str__(self) -> str:
        how = f"fused by {self.step}" if self.fused else f"not fused: {self.policy}: {self.reason}"
        return f"{self.upstream} -> {self.downstream} ({self.value}): {how}"


@dataclass(frozen=True)
class Group:
    """A kernel to be: its operators by name, its kind, and the library call over whose result it works, if any."""

    kind: Kind
    operators: tuple[str, ...]
    anchor: str = ""


@dataclass
class FusionTracker:
    """The decisions in order, and the edges and groups that they led to.

    explaining: False leaves out the edges, which cost as much again as the decisions; and operators do not keep the
    names that they have here (as an attribute, which copies of them have too).  seen: operations in the parts so far.
    """

    explaining: bool = True
    decisions: list[Decision] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    seen: int = 0

    def merges(self, step: str = "") -> Iterator[Decision]:
        """What was merged, by one step or by any."""
        return (d for d in self.decisions if d.merged and step in ("", d.step))

    def refusals(self, policy: str = "") -> Iterator[Decision]:
        """What was refused, by one policy or by any."""
        return (d for d in self.decisions if not d.merged and policy in ("", d.policy))

    def __str__(self) -> str:
        lines = [f"group {i}, {g.kind}{f' over {g.anchor}' if g.anchor else ''}: {', '.join(g.operators)}"
                 for i, g in enumerate(self.groups)]
        return "\n".join([*map(str, self.decisions), *lines, *map(str, self.edges)])
