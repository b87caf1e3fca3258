"""Operations that give back what they are given are removed.

    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("identity_op_clean_pass", lambda x: x.reshape([2, 3]).transpose([0, 1]) / 1.0 - 0.0, (2, 3)))
    before
      a = reshape(x, shape=(2, 3))
      b = transpose(a, perm=(0, 1))
      c = divide(b, 1.0)
      d = subtract(c, 0.0)
      return d
    after
      return x

A cast to the same dtype, or to a wider one and back; a transposition that moves nothing; a reshape to the same shape;
a list of one tensor put together; a scale by one; a number that changes nothing: 1 in a product, 0 in a difference.
(Not in a sum: -0.0 + 0.0 is 0.0.)

An operation whose result stops a gradient, where its operand does not, stays: it is no identity to a gradient.

On the same programs Paddle's pass of this name leaves `assign`, and reshapes to the same shape; it removes casts there
and back also where the dtype between is narrower and rounds, which is no identity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from minipd.framework.row import Trait
from minipd.ir.operation import Operation
from minipd.ir.schema import constant_of, op_attrs, tensor_operands
from minipd.passes.base import PatternRewritePass
from minipd.passes.pattern import PatternRewriter, RewritePattern
from minipd.passes.table import register_pass

__all__ = ["IdentityOpClean"]


def _always(attrs: dict[str, Any]) -> bool:
    return True


#: operator -> whether a call whose result has the type of its operand changes nothing
IDENTITIES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "assign": _always, "share_data_": _always, "cast": _always, "reshape": _always, "expand": _always,
    "expand_as": _always, "reduce_as": _always, "squeeze": _always, "unsqueeze": _always, "concat": _always,
    "add_n": _always, "slice": _always,
    "transpose": lambda attrs: tuple(attrs["perm"]) == tuple(range(len(attrs["perm"]))),
    "scale": lambda attrs: attrs["scale"] == 1 and attrs["bias"] == 0,
}


class RemoveIdentity(RewritePattern):
    """One operand (of which the values are read), and a result of its type."""

    roots = tuple(f"pd_op.{name}" for name in IDENTITIES)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        row, result = op.row, op.result(0)
        assert row is not None
        try:
            values, attrs = tensor_operands(op), op_attrs(op)
        except ValueError:
            return False
        read = [v for i, v in enumerate(values) if i not in row.shape_only]
        if len(read) != 1 or read[0].type() != result.type() or read[0].stop_gradient != result.stop_gradient:
            return False
        if not IDENTITIES[row.name](attrs):
            return False
        rewriter.replace_op(op, read)
        return True


#: operator -> the number that changes nothing as its second operand
NEUTRAL = {"multiply": 1, "divide": 1, "pow": 1, "subtract": 0}


class RemoveNeutral(RewritePattern):
    """x * 1, 1 * x, x / 1, x ** 1, x - 0."""

    roots = tuple(f"pd_op.{name}" for name in NEUTRAL)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        x, y = tensor_operands(op)
        result, row = op.result(0), op.row
        assert row is not None
        for kept, number in ((x, y), (y, x)) if Trait.COMMUTATIVE in row.traits else ((x, y),):
            if number.ndim == 0 and constant_of(number) == NEUTRAL[row.name] and kept.type() == result.type() and (
                    kept.stop_gradient == result.stop_gradient and not _is_negative_zero(constant_of(number))):
                rewriter.replace_op(op, [kept])
                return True
        return False


def _is_negative_zero(number: Any) -> bool:
    return number == 0 and math.copysign(1.0, number) < 0


@register_pass("identity_op_clean_pass")
class IdentityOpClean(PatternRewritePass):
    """Operations that give back what they are given are removed; their number is that of the changes."""

    opt_level, exact, patterns = 0, True, (RemoveIdentity, RemoveNeutral)
