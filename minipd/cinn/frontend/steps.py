"""The steps of clustering, in the order in which they run.

Each is a matcher (which edges of the pattern graph it looks at) and an operation (what it makes of one); whether two
patterns may be one is for the policies to say.  Edges with big values come first, in each step.

    SinkTrivialPattern          element-wise operators go where their results are read
    ReduceLiftReduceTree        a reduction is a tree of one
    ReduceTreeGrown             trees that need each other grow together: max -> sum(exp(x - max))
    ReduceTree_Trivial_Fusion   what is element-wise behind a tree joins it: ... -> / sum
    LiftToAnchorPattern         whatever has one iteration space has an anchor
    AnchorPatternFusion         neighbours with one anchor: the sums for dw beside dx; then patterns as wholes
    SplitRecompute              a cheap producer is computed again where it is read (`recompute`)
    HorizontalFusion            patterns that read the same tensor
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from minipd.cinn.frontend.graph import sources_of
from minipd.cinn.frontend.pattern import Kind
from minipd.cinn.frontend.pattern_graph import Node, PatternGraph, loop_size
from minipd.cinn.frontend.recompute import split_recompute
from minipd.cinn.frontend.traffic import sizes
from minipd.ir.operation import Operation
from minipd.ir.schema import result_values
from minipd.ir.value import Value

__all__ = ["STEPS", "Step"]

#: a pattern with fewer operators than this is tried as a whole, where a part of it did not fit
SMALL = 16
TREES = (Kind.REDUCE, Kind.REDUCE_TREE)
MEMBERS = tuple(kind for kind in Kind if kind is not Kind.UNSUPPORT)


class Step(NamedTuple):
    """run(graph, name) changes the graph."""

    name: str
    run: Callable[[PatternGraph, str], None]


def growing(upstream: tuple[Kind, ...], downstream: tuple[Kind, ...]) -> Callable[[PatternGraph, str], None]:
    """The operation that lets patterns join the only one that reads them, the last first.

    From the end of the program to its start: a gradient that computes a normalisation again joins the gradient's kernel
    that way.  From the start it would join the forward kernel that has the same input, and be kept in between.
    """
    def run(graph: PatternGraph, step: str) -> None:
        for op in reversed(graph.members):
            node = graph.node[op]
            if node.ops[-1] is not op or graph.kind(node) not in upstream or not _in_bulk(op):
                continue
            readers = graph.readers(node.ops)
            if len({graph.node[r] for r in readers}) == 1 and graph.kind(graph.node[readers[0]]) in downstream:
                graph.merge(step, op, readers[0])
    return run


def _in_bulk(op: Operation) -> bool:
    """Whether the results are more than a number."""
    return any(v.shape for v in result_values(op))


def lifting(graph: PatternGraph, step: str) -> None:
    """What is lifted is looked at as more than it is from here on; the graph stays."""


def anchors(graph: PatternGraph, step: str) -> None:
    """All edges that are left, those in the longest loops first, and single numbers last; of equal ones the later
    first.  Then patterns as wholes."""
    edges = [(op, reader) for op in reversed(graph.members) for reader in graph.readers([op])]
    loops = {op: loop_size(op) for op in graph.members}
    edges.sort(key=lambda edge: max(map(loops.__getitem__, edge)) if _in_bulk(edge[0]) else 0, reverse=True)
    for op, reader in edges:
        graph.merge(step, op, reader)
    for node in reversed(graph.patterns()):
        _with_readers(graph, step, node)


def _with_readers(graph: PatternGraph, step: str, node: Node) -> None:
    if len(node.ops) < SMALL:
        op = node.ops[-1]
        for reader in graph.readers(node.ops):
            graph.merge(step, op, reader)


def horizontal(graph: PatternGraph, step: str) -> None:
    for readers in _shared(graph):
        for other in readers[1:]:
            graph.merge(step, readers[0], other)


def _shared(graph: PatternGraph) -> Iterator[list[Operation]]:
    """The members that read one and the same value from outside of their patterns; big values first."""
    readers: dict[Value, list[Operation]] = {}
    for op in graph.members:
        for value in sources_of([op], graph.free)[1]:
            if value.shape:
                readers.setdefault(value, []).append(op)
    for value in sorted(readers, key=lambda v: sizes([v]), reverse=True):
        if len(readers[value]) > 1:
            yield readers[value]


STEPS = (
    Step("SinkTrivialPattern", growing((Kind.TRIVIAL,), MEMBERS)),
    Step("ReduceLiftReduceTree", lifting),
    Step("ReduceTreeGrown", growing(TREES, (*TREES, Kind.REDUCE_TREE_TRIVIAL))),
    Step("ReduceTree_Trivial_Fusion", growing((*TREES, Kind.REDUCE_TREE_TRIVIAL), MEMBERS)),
    Step("LiftToAnchorPattern", lifting),
    Step("AnchorPatternFusion", anchors),
    Step("SplitRecompute", split_recompute),
    Step("HorizontalFusion", horizontal),
)
