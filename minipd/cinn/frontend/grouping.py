"""Which operators become one kernel.

Greedy, from the end of the program to its start: every member starts as a group of its own and joins the groups that
read from it, then groups that read the same tensors join, as long as the union

* is one nest of loops (`fits`: one iteration space, hard case C1),
* has no cycle: no path leads out of it and back in,
* crosses no barrier.

(From the end, because a gradient that computes a normalisation again joins the gradient's kernel that way.  From the
start it would join the forward kernel that has the same input, and its result would have to be kept in between.)

A union is never undone, and is always worth it: what one part writes and the other reads need not be read again, and
not even be written if nobody else reads it.  At the end a group stays if it moves fewer bytes than its operators one by
one do.  A lone operator moves the same either way, and its library kernel stays (a lone add of big arrays is as fast in
numpy as it can be), unless that kernel goes over its arrays several times, as adamw's and swiglu's do: those of rows
that have a decomposition.
"""

from __future__ import annotations

from collections.abc import Iterable

from minipd.cinn.frontend.fits import Calls, fits
from minipd.cinn.frontend.graph import Graph, outputs_of, sources_of
from minipd.cinn.frontend.traffic import bytes_of_op, sizes
from minipd.decomposition.table import COLUMN
from minipd.ir.operation import Operation
from minipd.ir.value import Value

__all__ = ["find_groups"]

#: More operators than this in a kernel take long to compile, and more arrays than this find no registers.
MOST_OPS, MOST_ARRAYS = 64, 32
#: rows whose decomposition only makes an attribute of a shape
SHAPES = ("expand_as", "full_like", "reduce_as")


def find_groups(graph: Graph) -> list[list[Operation]]:
    """The groups of a block: the members of each, in order.  The block is left as it is."""
    return _Grouping(graph).groups()


class _Node:
    """A group, or one operation outside of all groups.  first, last: positions of its operations in the block."""

    __slots__ = ("first", "last", "ops")

    def __init__(self, op: Operation, position: int):
        self.ops = [op]
        self.first = self.last = position


class _Grouping:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.calls = Calls()
        self.refused: set[tuple[int, int, int, int]] = set()
        self.node = {op: _Node(op, graph.position[op]) for op in graph.readers}

    def groups(self) -> list[list[Operation]]:
        for op in reversed(self.graph.members):
            for reader in self._readers([op]):
                self._join(op, reader)
            if len(self.node[op].ops) < MOST_OPS // 4:      # what a part could not join, the whole may
                for reader in self._readers(self.node[op].ops):
                    self._join(op, reader)
        for readers in self._shared():
            for other in readers[1:]:
                self._join(readers[0], other)
        found = dict.fromkeys(self.node[op] for op in self.graph.members)
        return [node.ops for node in found if self._gains(node.ops)]

    def _readers(self, ops: list[Operation]) -> list[Operation]:
        """Who reads what a group makes, the makers of big results first."""
        found = dict.fromkeys(reader for op in ops for reader in self.graph.readers[op])
        return sorted((r for r in found if self.node[r] is not self.node[ops[0]]), key=_result_size, reverse=True)

    def _shared(self) -> Iterable[list[Operation]]:
        """The members that read one and the same value from outside of their groups; big values first."""
        readers: dict[Value, list[Operation]] = {}
        for op in self.graph.members:
            for value in sources_of([op], self.graph.free)[1]:
                if value.shape:
                    readers.setdefault(value, []).append(op)
        return [readers[v] for v in sorted(readers, key=lambda v: sizes([v]), reverse=True) if len(readers[v]) > 1]

    # ------------------------------------------------------------------------------------------------- joining
    def _join(self, one: Operation, other: Operation) -> None:
        """Unite the groups of two operations if that is right."""
        segment = self.graph.segment
        a, b = self.node[one], self.node[other]
        if a is b or segment.get(one) is None or segment[one] != segment.get(other):
            return
        pair = (id(a), len(a.ops), id(b), len(b.ops))
        if pair in self.refused:
            return
        self.refused.add(pair)              # (as they are now; if they are united, the pair never comes again)
        if len(a.ops) + len(b.ops) > MOST_OPS or self._cycle(a, b) or self._cycle(b, a):
            return
        ops = sorted((*a.ops, *b.ops), key=self.graph.position.__getitem__)
        copied, operands = sources_of(ops, self.graph.free)
        results = outputs_of(ops, self.graph.free)
        if len(operands) + len(results) > MOST_ARRAYS:
            return
        if not fits(self.calls.of(in_order(copied, ops)), operands, results):
            return
        a.ops, a.first, a.last = ops, min(a.first, b.first), max(a.last, b.last)
        for op in ops:
            self.node[op] = a

    def _cycle(self, a: _Node, b: _Node) -> bool:
        """Whether a path leads from a to b by way of others, so that neither could run first if the two were one."""
        seen = {a, b}
        pending = [n for n in self._successors(a) if n is not b]
        while pending:
            node = pending.pop()
            if node in seen or node.first > b.last:     # what starts after b has ended leads nowhere into b
                continue
            seen.add(node)
            for follower in self._successors(node):
                if follower is b:
                    return True
                pending.append(follower)
        return False

    def _successors(self, node: _Node) -> list[_Node]:
        return [self.node[reader] for op in node.ops for reader in self.graph.readers[op]]

    # --------------------------------------------------------------------------------------------------- gains
    def _gains(self, ops: list[Operation]) -> bool:
        if len(ops) == 1:
            row = ops[0].row
            return row is not None and COLUMN in row.columns and row.name not in SHAPES
        fused = sizes(sources_of(ops, self.graph.free)[1]) + sizes(outputs_of(ops, self.graph.free))
        return fused < sum(map(bytes_of_op, ops))


def in_order(copied: list[Operation], ops: list[Operation]) -> list[Operation]:
    """Copies of free operations and the members, what is read before who reads it."""
    where = {v: op for op in (*copied, *ops) for v in op.results()}
    done: dict[Operation, None] = {}

    def visit(op: Operation) -> None:
        if op in done:
            return
        for value in op.operands_source():
            if value in where:
                visit(where[value])
        done[op] = None
    for op in ops:
        visit(op)
    return list(done)


def _result_size(op: Operation) -> int:
    return sizes(v for v in op.results() if hasattr(v.type(), "shape"))
