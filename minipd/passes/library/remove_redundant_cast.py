"""A cast to a wider dtype and from there to another one becomes one cast, or none if it leads back.

    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("remove_redundant_cast_pass", lambda x: x.cast("float64").cast("float16"), "f32[2]"))
    before
      a = cast(x, dtype=float64)
      b = cast(a, dtype=float16)
      return b
    after
      a = cast(x, dtype=float16)
      return a

Wider: it holds every value of the first one exactly.  float32 -> float16 -> float32 rounds, and stays.  (Paddle has no
pass of this name; its `identity_op_clean_pass` removes any pair of casts that leads back, also one that rounds.)
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from minipd.passes.base import PatternRewritePass
from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.table import register_pass

__all__ = ["RemoveRedundantCast"]


def holds(wide: np.dtype, narrow: np.dtype) -> bool:
    """Whether every value of `narrow` is one of `wide`.

    >>> f32, f64, i32, i64 = map(np.dtype, ("float32", "float64", "int32", "int64"))
    >>> holds(f64, f32), holds(f32, f64), holds(f32, i32), holds(f64, i32), holds(f64, i64)
    (True, False, False, True, False)
    """
    if narrow.kind == "b" or wide == narrow:
        return wide.kind in "biuf" or wide == narrow or _is_float(wide)
    if wide.kind in "bc" or narrow.kind == "c":
        return False
    if _is_float(narrow):
        if not _is_float(wide):
            return False
        a, b = ml_dtypes.finfo(narrow), ml_dtypes.finfo(wide)
        return bool(a.nmant <= b.nmant and a.maxexp <= b.maxexp and b.minexp <= a.minexp)
    low, high = int(np.iinfo(narrow).min), int(np.iinfo(narrow).max)
    if not _is_float(wide):
        return int(np.iinfo(wide).min) <= low and high <= int(np.iinfo(wide).max)
    mantissa = ml_dtypes.finfo(wide)
    return max(high, -low - 1).bit_length() <= mantissa.nmant + 1 and high < float(mantissa.max)


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16


@register_pass("remove_redundant_cast_pass")
class RemoveRedundantCast(PatternRewritePass):
    """A cast to a wider dtype and on becomes one cast, or none."""

    exact = True
    opt_level = 1


@drr("remove_redundant_cast_pass", keep=True)
class CastOfCast:
    """What is made wide and nothing else is what it was."""

    def source(x, *, wide, to):
        return ops.cast(ops.cast(x, dtype=wide), dtype=to)

    def constraint(x, wide):
        return holds(wide, x.dtype)

    def result(x, to):
        return x if x.dtype == to else ops.cast(x, dtype=to)


@drr("identity_op_clean_pass", keep=True)
class CastBack:
    """Casts that lead back are an identity."""

    def source(x, *, wide, to):
        return ops.cast(ops.cast(x, dtype=wide), dtype=to)

    def constraint(x, wide, to):
        return x.dtype == to and holds(wide, to)

    def result(x):
        return x
