"""Why each edge was fused, or was not: asked once more when all is decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from minipd.cinn.compute.table import Broadcast, Indexed, compute_of
from minipd.cinn.frontend.graph import why_not_lowered
from minipd.cinn.frontend.pattern_graph import Node, PatternGraph
from minipd.cinn.frontend.policies import Union
from minipd.cinn.frontend.tracker import Edge
from minipd.ir.operation import Operation

__all__ = ["explained"]


def explained(graph: PatternGraph, chosen: Mapping[Node, Operation | None]) -> Iterator[Edge]:
    """The edges of the graph, but for what is only read outside of it.  chosen: the patterns that become kernels, with
    the library calls over whose results they work."""
    for op, readers in graph.readers_of.items():
        for reader in readers:
            if reader.name() == "cf.yield":
                continue
            fused, policy, reason = _fate(graph, op, reader, chosen)
            yield Edge(graph.name(op), graph.name(reader), _between(op, reader), fused,
                       graph.step_of.get((op, reader), "") if fused else "", policy, reason)


def _fate(graph: PatternGraph, op: Operation, reader: Operation,
          kernels: Mapping[Node, Operation | None]) -> tuple[bool, str, str]:
    a, b = graph.node[op], graph.node[reader]
    if kernels.get(b) is op:
        return False, "Anchor", f"the kernel works over the array that {graph.name(op)} writes; no other is made"
    for node, which in ((a, op), (b, reader)):
        if node.segment is None:
            return False, "Unsupport", f"{graph.name(which)} is {_outside(which)}"
    if a is b:
        if a in kernels:
            return True, "", ""
        return False, "Worth", "one kernel would move as many bytes as the library does"
    return False, *(graph.why_not(Union(graph, a, b)) or ("Order", "it could be, but nobody asked again"))


def _outside(op: Operation) -> str:
    """What stays outside of all kernels, in words."""
    compute = None if op.row is None else compute_of(op.row)
    if compute is None:
        return "a library call"
    problem = why_not_lowered(op)
    if problem is not None:
        return f"a library call: {problem}"
    if isinstance(compute, Broadcast):
        return "a view with its rows turned over, which is made outside"
    return "a small part, which is taken outside" if isinstance(compute, Indexed) else "a library call"


def _between(op: Operation, reader: Operation) -> str:
    """The type of what the reader reads of op's."""
    own = [v for v in op.results() if reader in v.all_used_ops()] or op.results()
    return str(own[0].type())
