"""Moving groups into operations of their own, and back."""

from __future__ import annotations

from minipd.cinn.dialect import FUSION
from minipd.cinn.frontend.graph import Graph, in_order, outputs_of, reads_of, sources_of
from minipd.cinn.frontend.grouping import find_groups
from minipd.cinn.frontend.tracker import FusionTracker
from minipd.ir.block import Block
from minipd.ir.mapping import IrMapping, clone_operation
from minipd.ir.operation import Operation
from minipd.ir.program import Program

__all__ = ["build_groups", "fuse", "inline"]


def build_groups(program: Program) -> list[Operation]:
    """Put every group of the program, those in regions too, into a `cinn_op.fusion`; returns these, in order."""
    found: list[Operation] = []
    blocks = [program.global_block()]
    while blocks:
        block = blocks.pop()
        for op in block:
            if op.name() != FUSION:
                blocks += op.blocks()
        graph = Graph(block)
        for ops in find_groups(graph, FusionTracker()):
            found.append(fuse(ops, graph.free))
        _erase_unused(block, graph.free)
    return found


def fuse(ops: list[Operation], free: set[Operation]) -> Operation:
    """Replace the operations `ops` of one block, from which no path leads out and back in, by one group.

    free: the operations of the block that a group copies (see `graph`).
    It stands where the last of them stood.  What stands between and reads a result moves behind it.
    """
    block = ops[0].parent
    assert block is not None
    block.number()                      # groups made before may have moved some of them
    ops = sorted(ops, key=lambda op: op.order)
    last = ops[-1]
    copied, operands = sources_of(ops, free)
    results = outputs_of(ops, free)
    late = _readers_between(ops)
    fusion = Operation(FUSION, operands, {"stop_gradient": [v.stop_gradient for v in results]} if results else {},
                       [v.type() for v in results], num_regions=1)
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
    inside, needing, found = set(ops), set(ops), []
    op: Operation | None = ops[0]
    while op is not None and op is not ops[-1]:
        if op not in inside and any(v.get_defining_op() in needing for v in reads_of(op)):
            needing.add(op)
            found.append(op)
        op = op.next
    return found


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


def _erase_unused(block: Block, free: set[Operation]) -> None:
    """Free operations that nobody reads any more, and the constants that were their attributes."""
    for op in reversed(block.ops):
        if op in free and all(r.use_empty() for r in op.results()):
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
