"""Operations that give back what they are given are removed: a cast to the same dtype, a transposition that moves
nothing, a reshape to the same shape, a scale by one.

An operation whose result stops a gradient, where its operand does not, stays: it is no identity to a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, tensor_operands
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


@register_pass("identity_op_clean_pass")
class IdentityOpClean(PatternRewritePass):
    """The number of changes is the number of operations that are gone."""

    opt_level, exact, patterns = 0, True, (RemoveIdentity,)
