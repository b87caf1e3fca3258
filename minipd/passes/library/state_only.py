"""Which values constant folding can compute once for all runs, if it is given the parameters."""

from __future__ import annotations

from minipd.framework.row import Trait
from minipd.ir.schema import is_pure
from minipd.ir.traits import IrTrait
from minipd.ir.value import Value

__all__ = ["depends_on_state_only"]

#: a weight is no more operations away than these: whoever asks about an activation learns soon that it is none
STEPS = 16


def depends_on_state_only(value: Value) -> bool:
    """Whether `value` is computed from parameters, at least one, and constants, by operators without effects.

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
        if op.name() == "builtin.parameter":
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
