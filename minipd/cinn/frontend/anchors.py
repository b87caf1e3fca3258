"""Library calls as anchors: a kernel that finishes what a library call has begun.

    h = matmul(x, w)            the library writes the array
    y = gelu(h + bias)          the kernel, its epilogue, works over the same memory: no other array is made

That is so where nobody but the kernel reads the call's result, and the kernel has a result of its shape and dtype to
put in its place.  (What is written over is up to the executor, which asks `cinn.overwriting`.)
"""

from __future__ import annotations

from minipd.cinn.frontend.graph import outputs_of
from minipd.cinn.frontend.pattern_graph import Node, PatternGraph
from minipd.ir.operation import Operation

__all__ = ["anchor_of"]


def anchor_of(graph: PatternGraph, node: Node) -> Operation | None:
    """The library call whose result a pattern works over; of several the last, whose result is still near."""
    wanted = {v.type() for v in outputs_of(node.ops, graph.free)}
    inside = set(node.ops)
    calls = dict.fromkeys(p for op in node.ops for p in graph.graph.producers[op])
    able = [call for call in calls if graph.node[call].segment is None and call.row is not None
            and call.num_results() == 1 and call.result(0).type() in wanted
            and inside.issuperset(graph.readers_of[call])]
    return max(able, key=graph.position.__getitem__, default=None)
