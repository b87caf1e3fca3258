"""What constraints of several rules ask of a value."""

from __future__ import annotations

import math

import ml_dtypes

from minipd.framework import dtype as dtypes
from minipd.framework.dim import same
from minipd.ir.schema import constant_of, op_attrs, tensor_operands
from minipd.ir.value import Value

__all__: list[str] = []


def has_digits(number: float, value: Value) -> bool:
    """Whether a number is one of the dtype of `value`, floats, with all its digits: as a constant beside `value` it is
    what it says, and its inverse is about 1 / number.  (Not 0, nor what is infinite or loses digits there.)
    """
    if value.dtype not in dtypes.FLOATS:
        return False
    limits = ml_dtypes.finfo(value.dtype)
    return float(limits.smallest_normal) <= abs(number) <= float(limits.max)


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
