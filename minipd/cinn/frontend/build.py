"""Moving groups into operations of their own, and back."""

from __future__ import annotations

from minipd.cinn.dialect import FUSION, GROUP
from minipd.cinn.frontend.detect import blocks_of, detect_groups, dissolve
from minipd.cinn.frontend.graph import Graph, in_order, is_free, outputs_of, sources_of
from minipd.cinn.frontend.grouping import Pattern, find_patterns
from minipd.cinn.frontend.tracker import FusionTracker
from minipd.ir.block import Block
from minipd.ir.mapping import IrMapping, clone_operation
from minipd.ir.operation import Operation
from minipd.ir.program import Program

__all__ = ["build_groups", "cluster_groups", "fuse", "inline"]


def build_groups(program: Program, tracker: FusionTracker | None = None) -> list[Operation]:
    """Put all that becomes kernels, in regions too, into a `cinn_op.fusion` each; returns these, in order.

    tracker: takes down every decision on the way.
    """
    detect_groups(program)
    return cluster_groups(program, tracker)


def cluster_groups(program: Program, tracker: FusionTracker | None = None) -> list[Operation]:
    """Turn every `cinn_op.group` of a program into fusions, and what is left of it into what it was."""
    tracker = FusionTracker(explaining=False) if tracker is None else tracker
    found: list[Operation] = []
    for block in blocks_of(program):
        for group in [op for op in block if op.name() == GROUP]:
            graph = Graph(group.regions[0].front())
            for pattern in find_patterns(graph, tracker):
                found.append(fuse(pattern, graph.free))
            dissolve(group)
        _erase_unused(block)
    return found


def fuse(pattern: Pattern, free: set[Operation]) -> Operation:
    """Replace the operations of a pattern, from which no path leads out and back in, by one operation.

    free: the operations of the block that a group copies (see `graph`).
    It stands where the last of them stood.  What stands between and reads a result moves behind it.
    """
    block = pattern.ops[0].parent
    assert block is not None
    block.number()                      # groups made before may have moved some of them
    ops = sorted(pattern.ops, key=lambda op: op.order)
    last = ops[-1]
    copied, operands = sources_of(ops, free)
    results = outputs_of(ops, free)
    late = _readers_between(ops)
    facts = {"pattern": str(pattern.kind), "anchor": None if pattern.anchor is None else pattern.anchor.name(),
             "stop_gradient": [v.stop_gradient for v in results] or None}
    fusion = Operation(FUSION, operands, facts, [v.type() for v in results], num_regions=1)
    block.insert_before(last, fusion)
    place = fusion
    for op in late:
        op.move_after(place)
        place = op
    body = fusion.regions[0].add_block()
    mapping = IrMapping()
    for op in in_order(copied, ops):
        body.append(clone_operation(op, mapping))
    body.append(Operation("cf.yield", [mapping.look_up(v) for v in results]))
    for old, new in zip(results, fusion.results(), strict=True):
        old.replace_all_uses_with(new)
    _erase(ops, free)
    return fusion


def _readers_between(ops: list[Operation]) -> list[Operation]:
    """The operations between the first and the last of `ops`, not of them, that need a result of theirs, in order."""
    block, last, inside = ops[0].parent, ops[-1].order, set(ops)
    found: dict[Operation, None] = {}
    pending = [v for op in ops for v in op.results()]
    while pending:
        for use in pending.pop().uses:
            user: Operation | None = use.owner()
            while user is not None and user.parent is not block:        # a branch reads it
                user = user.get_parent_op()
            if user is not None and user.order < last and user not in inside and user not in found:
                found[user] = None
                pending += user.results()
    return sorted(found, key=lambda op: op.order)


def _erase(ops: list[Operation], free: set[Operation]) -> None:
    """Erase the members, and first the views that only they have read: copies of these are in the group."""
    for op in reversed(ops):
        pending = list(op.results())
        views = []
        while pending:
            for user in pending.pop().all_used_ops():
                if user in free:
                    views.append(user)
                    pending += user.results()
        for view in reversed(list(dict.fromkeys(views))):
            if view.parent is not None:
                view.erase()
        op.erase()


def _erase_unused(block: Block) -> None:
    """Free operations that nobody reads any more, and the constants that were their attributes."""
    for op in reversed(block.ops):
        if all(r.use_empty() for r in op.results()) and op.num_results() and is_free(op):
            op.erase()


def inline(fusion: Operation) -> None:
    """Put the operators of a group back in its place: they are library kernels again."""
    mapping = IrMapping()
    block = fusion.regions[0].front()
    for op in block:
        if op.name() == "cf.yield":
            fusion.replace_all_uses_with([mapping.look_up(v) for v in op.operands_source()])
        else:
            assert fusion.parent is not None
            fusion.parent.insert_before(fusion, clone_operation(op, mapping))
    fusion.erase()
