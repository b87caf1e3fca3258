"""Policies: each says of a union of two patterns why it is not to be, in words, or None.

They are asked in the order of `POLICIES`, the cheap ones first; all must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from minipd.cinn.frontend.graph import in_order, outputs_of, sources_of
from minipd.cinn.frontend.space import why_no_space
from minipd.ir.operation import Operation
from minipd.ir.value import Value

if TYPE_CHECKING:
    from minipd.cinn.frontend.pattern_graph import Node, PatternGraph

__all__ = ["POLICIES", "Copied", "Policy", "Union"]

#: More operators than this in a kernel take long to compile, and more arrays than this find no registers.
MOST_OPS, MOST_ARRAYS = 64, 32


class Union:
    """Two patterns as if they were one; what policies ask of it is computed once."""

    def __init__(self, graph: PatternGraph, a: Node, b: Node):
        self.graph, self.a, self.b = graph, a, b

    @cached_property
    def ops(self) -> list[Operation]:
        """The members, in order."""
        return sorted((*self.a.ops, *self.b.ops), key=self.graph.position.__getitem__)

    @cached_property
    def sources(self) -> tuple[list[Operation], list[Value]]:
        """The free operations to copy, and what is read."""
        return sources_of(self.ops, self.graph.free)

    @cached_property
    def results(self) -> list[Value]:
        return outputs_of(self.ops, self.graph.free)


class Copied(Union):
    """A pattern with copies of operators that others have, too."""

    def __init__(self, graph: PatternGraph, node: Node, copies: list[Operation]):
        super().__init__(graph, node, node)
        self.copies = copies

    @cached_property
    def ops(self) -> list[Operation]:
        return sorted((*self.b.ops, *self.copies), key=self.graph.position.__getitem__)

    @cached_property
    def results(self) -> list[Value]:
        return outputs_of(self.b.ops, self.graph.free)


class Policy(NamedTuple):
    """why_not(union): the reason against it, None if there is none."""

    name: str
    why_not: Callable[[Union], str | None]


def one_segment(union: Union) -> str | None:
    """What a rank does between two messages stays between them."""
    if union.a.segment == union.b.segment:
        return None
    return "a collective, a branch or a side effect stands between the two"


def sizes(union: Union) -> str | None:
    number = len(union.ops)
    return None if number <= MOST_OPS else f"{number} operators in one kernel: more than {MOST_OPS} take long to build"


def arrays(union: Union) -> str | None:
    number = len(union.sources[1]) + len(union.results)
    return None if number <= MOST_ARRAYS else f"{number} arrays in one kernel: more than {MOST_ARRAYS} are slow"


def general_topo(union: Union) -> str | None:
    """A kernel runs at one time: neither may need, through others, what the other makes."""
    a, b, graph = union.a, union.b, union.graph
    if a is not b and (graph.leads_around(a, b) or graph.leads_around(b, a)):
        between = (graph.between(a, b) or graph.between(b, a)) if graph.tracker.explaining else "another"
        return f"{between} would have to run in the middle of the kernel"
    return None


def one_iteration_space(union: Union) -> str | None:
    copied, operands = union.sources
    return why_no_space(union.graph.calls.of(in_order(copied, union.ops)), operands, union.results)


POLICIES = (Policy("OneSegment", one_segment), Policy("Sizes", sizes), Policy("GeneralTopo", general_topo),
            Policy("Sizes", arrays), Policy("ShardableAxes", one_iteration_space))
