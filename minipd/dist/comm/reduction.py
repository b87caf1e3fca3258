"""Adding up the members' values: in the order of the group, always.

Floating-point addition is not associative, so a result is only the same on every rank and in every run if the order is
fixed.  Simulated and MPI ranks both call `fold`, hence they agree to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minipd.framework import dtype as dtypes

__all__: list[str] = []

#: By name, how two values become one.  On bool, `sum` is "any" and `prod` is "all", as in NCCL's bindings.
#: max and min pass NaN on.
REDUCTIONS = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}

_FLOAT32 = np.dtype(np.float32)


def fold(values: Sequence[np.ndarray], op: str, out: np.ndarray | None = None) -> np.ndarray:
    """`((values[0] op values[1]) op values[2]) ...` as a C-ordered array of the same shape and dtype: `out`, or a new
    one.  At least two values.

    float16 and bfloat16 are combined in float32 and rounded once, at the end.

    >>> fold([np.array([1.0, 2.0]), np.array([10.0, 20.0]), np.array([100.0, 200.0])], "sum")
    array([111., 222.])
    >>> third = np.array([2.0 ** -10], np.float16)       # lost when added to 1 in float16 one by one, three are not
    >>> fold([np.ones(1, np.float16), third / 2, third / 2], "sum") == 1 + third
    array([ True])
    """
    combine = REDUCTIONS[op]
    first = values[0]
    dtype = first.dtype
    if dtype in dtypes.LOW_PRECISION:
        total = first.astype(_FLOAT32, order="C")
        for x in values[1:]:
            combine(total, x.astype(_FLOAT32), out=total)
        if out is None:
            return total.astype(dtype)
        out[...] = total
        return out
    total = combine(first, values[1], out=np.empty(first.shape, dtype) if out is None else out)
    for x in values[2:]:
        combine(total, x, out=total)
    return total
