"""The graph that fusion works on: a node for each pattern, and for each operation that stays outside of all.

At the start every member is a pattern of its own.  A step (`steps`) unites two; a union is never undone.
"""

from __future__ import annotations

from minipd.cinn.frontend.graph import Graph
from minipd.cinn.frontend.pattern import Kind, kind_of
from minipd.cinn.frontend.policies import POLICIES, Copied, Union
from minipd.cinn.frontend.space import Calls
from minipd.cinn.frontend.tracker import Decision, FusionTracker
from minipd.cinn.frontend.traffic import sizes
from minipd.ir.operation import Operation
from minipd.ir.schema import result_values, tensor_operands
from minipd.ir.sizes import nbytes
from minipd.ir.value import Value

__all__ = ["Node", "PatternGraph"]


class Node:
    """A pattern, or one operation outside of all patterns.

    ops: in order.  first, last: positions of the first and the last of them in the block.  segment: see `graph`; None
    for what is no member.  readers: the operations of other nodes that read it; None where that has to be found out.
    """

    __slots__ = ("_kind", "first", "last", "ops", "readers", "segment")

    def __init__(self, op: Operation, position: float, segment: int | None):
        self.ops = [op]
        self.first = self.last = position
        self.segment = segment
        self.readers: list[Operation] | None = None
        self._kind: Kind | None = None

    def take(self, ops: list[Operation], first: float, last: float) -> None:
        self.ops, self.first, self.last, self.readers, self._kind = ops, first, last, None, None


class PatternGraph:
    """node: of each operation that is not free.  merges: how many there were.  step_of: which step put the two ends of
    an edge into one pattern, if the tracker wants to know."""

    def __init__(self, graph: Graph, tracker: FusionTracker):
        self.graph, self.tracker = graph, tracker
        self.free, self.position, self.readers_of = graph.free, graph.position, graph.readers
        self.calls = Calls()
        self.node = {op: Node(op, graph.position[op], graph.segment.get(op)) for op in graph.readers}
        self.step_of: dict[tuple[Operation, Operation], str] = {}
        self.merges = 0
        self._first, tracker.seen = tracker.seen, tracker.seen + len(self.position)
        self._tried: set[tuple] = set()

    # ------------------------------------------------------------------------------------------------------ reading
    @property
    def members(self) -> list[Operation]:
        """The operators that may be in a kernel, in order."""
        return self.graph.members

    def patterns(self) -> list[Node]:
        """The patterns, in the order of their first operators."""
        return list(dict.fromkeys(self.node[op] for op in self.members))

    def kind(self, node: Node) -> Kind:
        if node.segment is None:
            return Kind.UNSUPPORT
        if node._kind is None:
            node._kind = kind_of(node.ops, self.readers_of)
        return node._kind

    def readers(self, ops: list[Operation]) -> list[Operation]:
        """The members of other patterns that read what `ops`, all of one pattern, make; makers of big results first."""
        own = self.node[ops[0]]
        found = dict.fromkeys(reader for op in ops for reader in self.readers_of[op])
        return sorted((r for r in found if self.node[r] is not own and self.node[r].segment is not None),
                      key=result_size, reverse=True)

    def maker(self, value: Value) -> Node | None:
        """The node of the operation whose result a value is."""
        op = value.get_defining_op()
        return None if op is None else self.node.get(op)

    def name(self, op: Operation) -> str:
        """The operator in words: `exp_3` is at place 3 of all that is looked at."""
        return f"{op.name().split('.')[-1]}_{self._first + int(self.position[op])}"

    # ------------------------------------------------------------------------------------------------------ merging
    def merge(self, step: str, upstream: Operation, downstream: Operation) -> bool:
        """Unite the patterns of two members if no policy has anything against it."""
        a, b = self.node[upstream], self.node[downstream]
        if a is b:
            return False
        if not self.is_new(upstream, downstream):
            return False
        union = Union(self, a, b)
        refusal = self.why_not(union)
        if refusal is not None:
            self._record(step, upstream, downstream, *refusal)
            return False
        if self.tracker.explaining:
            self.step_of.update((edge, step) for edge in (*self._edges(a, b), *self._edges(b, a)))
        a.take(union.ops, min(a.first, b.first), max(a.last, b.last))
        for op in b.ops:
            self.node[op] = a
        self.merges += 1
        self._record(step, upstream, downstream)
        return True

    def _edges(self, a: Node, b: Node) -> list[tuple[Operation, Operation]]:
        return [(op, reader) for op in a.ops for reader in self.readers_of[op] if self.node[reader] is b]

    def is_new(self, upstream: Operation, downstream: Operation, step: str = "") -> bool:
        """Whether the patterns of two operators are looked at for the first time as they are, by a step of its own or
        by any that unites them."""
        a, b = self.node[upstream], self.node[downstream]
        pair = (step, id(a), len(a.ops), id(b), len(b.ops)) + ((id(upstream),) if step else ())
        if pair in self._tried:
            return False
        self._tried.add(pair)
        return True

    def why_not(self, union: Union) -> tuple[str, str] | None:
        """The first policy that is against a union, and its reason."""
        for policy in POLICIES:
            reason = policy.why_not(union)
            if reason is not None:
                return policy.name, reason
        return None

    def _record(self, step: str, upstream: Operation, downstream: Operation, policy: str = "",
                reason: str = "") -> None:
        self.tracker.decisions.append(
            Decision(step, self.name(upstream), self.name(downstream), not policy, policy, reason))

    def refuse(self, step: str, upstream: Operation, downstream: Operation, policy: str, reason: str) -> None:
        """Note why an edge stays."""
        self._record(step, upstream, downstream, policy, reason)

    def copy(self, step: str, ops: list[Operation], upstream: Operation, downstream: Operation) -> bool:
        """Give the pattern of `downstream` copies of the operators `ops`, in order, of the pattern of `upstream`, the
        last of them; what nobody reads any more is gone."""
        b = self.node[downstream]
        refusal = self.why_not(Copied(self, b, ops))
        if refusal is not None:
            self.refuse(step, upstream, downstream, *refusal)
            return False
        copies = self.graph.copy(ops, b.ops)
        for node in self.node.values():
            node.readers = None
        for op in copies:
            self.node[op] = b
        b.take(sorted((*b.ops, *copies), key=self.position.__getitem__), b.first, b.last)
        b.first = min(b.first, self.position[copies[0]])
        self.merges += 1
        self._record(step, upstream, downstream)
        for op in reversed(ops):
            if self.graph.remove_unused(op):
                a = self.node.pop(op)
                a.take([x for x in a.ops if x is not op], a.first, a.last)
        return True

    # ------------------------------------------------------------------------------------------------------- cycles
    def leads_around(self, a: Node, b: Node) -> bool:
        """Whether a path leads from a to b by way of others, so that neither could run first if the two were one."""
        seen = {a, b}
        pending = [n for n in self.successors(a) if n is not b]
        while pending:
            node = pending.pop()
            if node in seen or node.first > b.last:     # what starts after b has ended leads nowhere into b
                continue
            seen.add(node)
            for follower in self.successors(node):
                if follower is b:
                    return True
                pending.append(follower)
        return False

    def successors(self, node: Node) -> list[Node]:
        """The other nodes that read from a node."""
        if node.readers is None:
            found = dict.fromkeys(reader for op in node.ops for reader in self.readers_of[op])
            node.readers = [reader for reader in found if self.node[reader] is not node]
        return [self.node[reader] for reader in node.readers]

    def between(self, a: Node, b: Node) -> str:
        """The operators on a path from a to b by way of others, in words; "" if there is none."""
        ways: dict[Node, Node | None] = {n: None for n in self.successors(a) if n is not a and n is not b}
        pending = list(ways)
        for node in pending:
            for follower in self.successors(node):
                if follower is b:
                    way: list[Node] = []
                    last: Node | None = node
                    while last is not None:
                        way.append(last)
                        last = ways[last]
                    return ", ".join(self.name(n.ops[0]) for n in reversed(way))
                if follower is not a and follower not in ways:
                    ways[follower] = node
                    pending.append(follower)
        return ""


def result_size(op: Operation) -> int:
    return sizes(v for v in op.results() if hasattr(v.type(), "shape"))


def loop_size(op: Operation) -> int:
    """The size of the biggest tensor that the operator reads or writes."""
    return max((nbytes(v) for v in (*tensor_operands(op), *result_values(op))), default=0)
