"""Which operators become one kernel: the steps, and which patterns pay.

A union is always worth it: what one part writes and the other reads need not be read again, and not even be written if
nobody else reads it.  At the end a pattern stays a group if it moves fewer bytes than its operators one by one do.  A
lone operator moves the same either way, and its library kernel stays (a lone add of big arrays is as fast in numpy as
it can be), unless that kernel goes over its arrays several times, as adamw's and swiglu's do: those of rows that have a
decomposition.
"""

from __future__ import annotations

from minipd.cinn.frontend.graph import Graph, outputs_of, sources_of
from minipd.cinn.frontend.pattern_graph import PatternGraph
from minipd.cinn.frontend.steps import STEPS
from minipd.cinn.frontend.tracker import FusionTracker
from minipd.cinn.frontend.traffic import bytes_of_op, sizes
from minipd.decomposition.table import COLUMN
from minipd.ir.operation import Operation

__all__ = ["find_groups"]

#: rows whose decomposition only makes an attribute of a shape
SHAPES = ("expand_as", "full_like", "reduce_as")


def find_groups(block_graph: Graph, tracker: FusionTracker) -> list[list[Operation]]:
    """The groups of a block: the members of each, in order.  The block is left as it is."""
    graph = PatternGraph(block_graph, tracker)
    for step in STEPS:
        step.run(graph, step.name)
    return [node.ops for node in graph.patterns() if _gains(graph, node.ops)]


def _gains(graph: PatternGraph, ops: list[Operation]) -> bool:
    if len(ops) == 1:
        row = ops[0].row
        return row is not None and COLUMN in row.columns and row.name not in SHAPES
    fused = sizes(sources_of(ops, graph.free)[1]) + sizes(outputs_of(ops, graph.free))
    return fused < sum(map(bytes_of_op, ops))
