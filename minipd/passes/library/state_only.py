"""Which values constant folding can compute once for all runs, if it is given the parameters."""

from __future__ import annotations

from minipd.framework.row import Trait
from minipd.ir.schema import is_pure
from minipd.ir.traits import IrTrait
from minipd.ir.value import Value

__all__ = ["depends_on_state_only"]

#: a weight is made of no more values than these (with three batch norms moved into it, of about 40); whoever asks about
#: an activation of a deep network learns soon that it is none
STEPS = 64


def depends_on_state_only(value: Value) -> bool:
    """Whether `value` is computed from parameters or constant tensors, at least one, and from numbers, by operators
    without effects.

    >>> from minipd.ir.builder import Builder
    >>> from minipd.ir.program import Program
    >>> from minipd.framework.row import ROWS
    >>> build = Builder(Program().global_block())
    >>> w, x = build.parameter("w", (2,), "float32"), build.data("x", (2,), "float32")
    >>> depends_on_state_only(build.call(ROWS["exp"], (w,), {})[0]), depends_on_state_only(x)
    (True, False)
    """
    pending, seen, state = [value], {value}, False
    while pending:
        if len(seen) > STEPS:
            return False
        op = pending.pop().get_defining_op()
        if op is None:
            return False
        if op.name() in ("builtin.parameter", "builtin.constant"):
            state = True
            continue
        if IrTrait.CONSTANT in op.info.traits:
            continue
        if op.row is None and op.name() != "builtin.combine" or not is_pure(op) or op.regions or (
                op.info.traits & {Trait.RANDOM, Trait.COMM}):
            return False
        for operand in op.operands_source():
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return state
