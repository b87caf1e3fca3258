"""Which operators become one kernel: the steps, and which patterns pay.

A union is always worth it: what one part writes and the other reads need not be read again, and not even be written if
nobody else reads it.  At the end a pattern stays a group if it moves fewer bytes than its operators one by one do.  A
lone operator moves the same either way, and its library kernel stays (a lone add of big arrays is as fast in numpy as
it can be), unless that kernel goes over its arrays several times, as adamw's and swiglu's do: those of rows that have a
decomposition.
"""

from __future__ import annotations

from typing import NamedTuple

from minipd.cinn.frontend.anchors import anchor_of
from minipd.cinn.frontend.edges import explained
from minipd.cinn.frontend.graph import Graph, outputs_of, sources_of
from minipd.cinn.frontend.pattern import Kind
from minipd.cinn.frontend.pattern_graph import Node, PatternGraph
from minipd.cinn.frontend.steps import STEPS
from minipd.cinn.frontend.tracker import NAME, FusionTracker, Group
from minipd.cinn.frontend.traffic import bytes_of_op, sizes
from minipd.decomposition.table import stands_for_several
from minipd.ir.operation import Operation

__all__ = ["Pattern", "find_patterns"]


class Pattern(NamedTuple):
    """The members of a kernel, in order.  anchor: the library call that it finishes."""

    ops: list[Operation]
    kind: Kind
    anchor: Operation | None


def find_patterns(block_graph: Graph, tracker: FusionTracker) -> list[Pattern]:
    """The patterns of a block that become kernels."""
    graph = PatternGraph(block_graph, tracker)
    before = -1
    while graph.merges > before:            # what was in the way of a union may have gone into one itself
        before = graph.merges
        for step in STEPS:
            step.run(graph, step.name)
    chosen = {node: anchor_of(graph, node) for node in graph.patterns() if _gains(graph, node.ops)}
    found = [Pattern(node.ops, _kind(graph, node, anchor), anchor) for node, anchor in chosen.items()]
    tracker.groups += [Group(p.kind, tuple(map(graph.name, p.ops)), "" if p.anchor is None else graph.name(p.anchor))
                       for p in found]
    if tracker.explaining:
        tracker.edges += explained(graph, chosen)
        for op in graph.node:
            op.set_str_attr(NAME, graph.name(op))
    return found


def _kind(graph: PatternGraph, node: Node, anchor: Operation | None) -> Kind:
    kind = graph.kind(node)
    return Kind.ANCHOR if anchor is not None and kind is Kind.TRIVIAL else kind


def _gains(graph: PatternGraph, ops: list[Operation]) -> bool:
    if len(ops) == 1:
        row = ops[0].row
        return row is not None and stands_for_several(row)
    fused = sizes(sources_of(ops, graph.free)[1]) + sizes(outputs_of(ops, graph.free))
    return fused < sum(map(bytes_of_op, ops))
