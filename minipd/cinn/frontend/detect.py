"""Sub-graph detection: the parts of a program that the compiler looks at as wholes, each a `cinn_op.group`.

    (%5) = "cinn_op.group" (%0, %1) {} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> {
        (%2) = "pd_op.exp" (%0) {} : ...
        (%3) = "pd_op.matmul" (%2, %1) {} : ...
        (%4) = "pd_op.tanh" (%3) {} : ...
        () = "cf.yield" (%4) {} : ...
    }

A group is convex: no path leads out of it and back in, because it is all that stands between two *barriers*, which are
collectives, operations with regions, and side effects.  Nothing is ever fused across one, so that what a rank does
between two messages stays between them.  Groups that hold nothing which could be in a loop are not made.

What has no loops may be inside: a library call (matmul) is an anchor that patterns join or stop at.  (CINN leaves it
outside, and gets several small groups where this gets one.)  Clustering turns a group into fusions and dissolves it.
"""

from __future__ import annotations

from collections.abc import Iterator

from minipd.cinn.compute.table import Fill, compute_of
from minipd.cinn.dialect import FUSION, GROUP
from minipd.cinn.frontend.graph import is_barrier, is_free, is_member
from minipd.ir.block import Block
from minipd.ir.mapping import IrMapping, clone_operation
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import tensor_operands
from minipd.ir.value import Value

__all__ = ["blocks_of", "detect_groups", "dissolve"]


def detect_groups(program: Program) -> list[Operation]:
    """Put every part that may have loops, those in regions too, into a `cinn_op.group`; returns these, in order."""
    found: list[Operation] = []
    for block in blocks_of(program):
        last_first = [_enclose(run) for run in reversed(list(_runs(block))) if any(map(is_member, run))]
        found += reversed(last_first)           # (a later one takes copies of what stands in front of an earlier one)
    return found


def blocks_of(program: Program) -> list[Block]:
    """The blocks that may have groups: those of groups and fusions are not among them."""
    found = [program.global_block()]
    for block in found:
        found += [inner for op in block if op.name() not in (FUSION, GROUP) for inner in op.blocks()]
    return found


def _runs(block: Block) -> Iterator[list[Operation]]:
    """What stands between barriers, without what is no operator (data, parameters: those stand in front of it)."""
    run: list[Operation] = []
    for op in block:
        if is_barrier(op) or op.name() in (FUSION, GROUP):
            yield run
            run = []
        elif op.num_operands() or op.row is not None:
            run.append(op)
    yield run


def _enclose(run: list[Operation]) -> Operation:
    """One operation in the place of all."""
    block = run[0].parent
    assert block is not None
    inside = set(run)
    run = [*_needed_from_before(run, inside), *run]
    run = [each for op in run for each in _one_for_each_use(op)]
    inside.update(run)
    results = [v for op in run for v in op.results() if any(user not in inside for user in v.all_used_ops())]
    operands = dict.fromkeys(v for op in run for v in op.operands_source() if v.get_defining_op() not in inside)
    group = Operation(GROUP, list(operands), {"stop_gradient": [v.stop_gradient for v in results]} if results else {},
                      [v.type() for v in results], num_regions=1)
    block.insert_before(run[-1].next, group)
    body = group.regions[0].add_block()
    for op in run:
        if op.parent is not None:
            block.remove(op)
        body.append(op)
    for old, new in zip(results, group.results(), strict=True):
        for use in old.uses:
            if use.owner() not in inside:
                use.set_source(new)
    body.append(Operation("cf.yield", results))
    return group


def _needed_from_before(run: list[Operation], inside: set[Operation]) -> list[Operation]:
    """Copies of the free operations, from before a barrier, that `run` reads, which then reads the copies."""
    copies: dict[Operation, Operation] = {}
    mapping = IrMapping()

    def copied(value: Value) -> Value:
        op = value.get_defining_op()
        if op is None or op in inside or not is_free(op):
            return value
        if op not in copies:
            for v in op.operands_source():
                copied(v)
            copies[op] = clone_operation(op, mapping)
        return mapping.look_up(value)
    for op in run:
        for operand in op.operands():
            operand.set_source(copied(operand.source()))
    return list(copies.values())


def _one_for_each_use(op: Operation) -> list[Operation]:
    """Copies of a constant tensor, so that each reader has its own: positions along the rows and along the columns of a
    mask (`i.unsqueeze(1) >= i`) are not to be one loop because they are one arange."""
    if op.row is None or not isinstance(compute_of(op.row), Fill) or tensor_operands(op) or not op.result(0).shape:
        return [op]
    made = [op]
    for use in op.result(0).uses[1:]:
        copy = clone_operation(op, IrMapping())
        use.set_source(copy.result(0))
        made.append(copy)
    return made


def dissolve(group: Operation) -> None:
    """Put what a group holds in its place."""
    block, parent = group.regions[0].front(), group.parent
    assert parent is not None
    end = block.back()
    assert end is not None
    group.replace_all_uses_with(end.operands_source())
    end.erase()
    parent.take_over(block, group)
    group.erase()
