"""How far gradients flow: which values lie between the losses and what is asked for."""

from __future__ import annotations

from minipd.framework import dtype as dtypes
from minipd.ir.block import Block
from minipd.ir.builtin import pushed_values, yielded
from minipd.ir.operation import Operation
from minipd.ir.schema import result_values, tensor_operands
from minipd.ir.value import Value

__all__: list[str] = []


def spread(block: Block, reached: set[Value]) -> None:
    """Add to `reached` every value of `block` (and of its regions) that gradients flow through to one of `reached`."""
    for op in block:
        if op.regions:
            enter(op, reached)
        elif op.name() == "cf.tuple_pop":
            reached.update(r for r, v in zip(op.results(), pushed_values(op) or (), strict=True) if v in reached)
        elif op.row is not None and op.row.has_vjp and any(v in reached for v in tensor_operands(op)):
            reached.update(r for r in result_values(op) if not r.stop_gradient and r.dtype in dtypes.INEXACT)


def enter(op: Operation, reached: set[Value]) -> None:
    """`spread` through an operation with regions."""
    if op.name() == "pd_op.while":
        _enter_loop(op, reached)
        return
    for inner in op.blocks():
        spread(inner, reached)
    for inner in op.blocks():
        reached.update(r for r, y in zip(op.results(), yielded(inner), strict=False)
                       if y in reached and not r.stop_gradient)


def _enter_loop(op: Operation, reached: set[Value]) -> None:
    """What one iteration leaves may be reached, and then what the next is given is."""
    body = op.regions[0].front()
    args, inputs = body.args(), op.operands_source()[1:]
    known = -1
    while known != len(reached):
        known = len(reached)
        for arg, *sources in zip(args, inputs, yielded(body)[1:], strict=True):
            if not arg.stop_gradient and arg.dtype in dtypes.INEXACT and not reached.isdisjoint(sources):
                reached.add(arg)
        spread(body, reached)
    reached.update(r for r, arg in zip(op.results(), args, strict=True) if arg in reached and not r.stop_gradient)
