"""What constraints of several rules ask of a value."""

from __future__ import annotations

import math

from minipd.framework.dim import same
from minipd.framework.row import Trait
from minipd.ir.operation import Operation
from minipd.ir.schema import constant_of, is_pure, op_attrs, tensor_operands
from minipd.ir.traits import IrTrait
from minipd.ir.value import Value

__all__: list[str] = []

#: how many operations may stand between a weight and a parameter
DEEP = 12


def is_weight(value: Value) -> bool:
    """Whether a value is made of parameters and constants alone, at least one parameter or constant tensor among them:
    what is computed of it, constant folding computes once for all runs.
    """
    leaves: list[Operation] = []
    return _is_fixed(value, leaves, DEEP) and any(leaf.name() in ("builtin.parameter", "builtin.constant")
                                                  for leaf in leaves)


def _is_fixed(value: Value, leaves: list[Operation], deep: int) -> bool:
    op = value.get_defining_op()
    if op is None or not deep:
        return False
    if op.name() in ("builtin.parameter", "builtin.constant") or IrTrait.CONSTANT in op.info.traits:
        leaves.append(op)
        return True
    return (op.row is not None and is_pure(op) and not op.info.traits & {Trait.RANDOM, Trait.COMM}
            and op.num_operands() > 0 and all(_is_fixed(v, leaves, deep - 1) for v in op.operands_source()))


def per_channel(value: Value, channels: object) -> bool:
    """Whether it has one number for each channel of images [N, C, H, W]: [C, 1, 1], or [1, C, 1, 1]."""
    shape = value.shape
    return 3 <= len(shape) <= 4 and same(shape[-3], channels) and all(same(d, 1) for d in (*shape[:-3], *shape[-2:]))


def is_causal(seen: Value) -> bool:
    """Whether a bool mask [queries, keys] is written as  arange(queries) of a column >= arange(keys)."""
    op = seen.get_defining_op()
    if op is None or op.row is None or op.row.name not in ("greater_equal", "less_equal"):
        return False
    rows, columns = tensor_operands(op) if op.row.name == "greater_equal" else reversed(tensor_operands(op))
    return _counts_from_zero(rows, 1) and _counts_from_zero(columns, 0)


def _counts_from_zero(value: Value, ones: int) -> bool:
    """Whether it is 0, 1, 2, ... along its dimension before the last `ones`, which have size 1."""
    op = value.get_defining_op()
    while op is not None and op.row is not None and op.row.name in ("unsqueeze", "reshape"):
        value = tensor_operands(op)[0]
        if value.ndim != 1:
            return False
        op = value.get_defining_op()
        if ones == 0 or op is None:
            return False
        ones -= 1
    if ones or op is None or op.row is None or op.row.name != "arange":
        return False
    attrs = op_attrs(op)
    return attrs["start"] == 0 and attrs["step"] == 1


def is_visible(numbers: Value, seen: Value) -> bool:
    """Whether these are 1 where `seen` is true, and 0 elsewhere."""
    return _made_by("cast", numbers) and tensor_operands(numbers.get_defining_op())[0] is seen     # type: ignore[arg-type]


def is_finite_mask(seen: Value, mask: Value) -> bool:
    """Whether `seen` is true where an added mask is not -inf."""
    if not _made_by("greater_than", seen):
        return False
    low, nothing = tensor_operands(seen.get_defining_op())      # type: ignore[arg-type]
    return low is mask and constant_of(nothing) == -math.inf


def _made_by(row: str, value: Value) -> bool:
    op = value.get_defining_op()
    return op is not None and op.row is not None and op.row.name == row
