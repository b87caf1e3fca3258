"""Whether a reshape shares memory with what it is a reshape of.

As in Paddle, a reshape is a view where that is possible, and a copy where the elements do not stand in memory in the
new order: of a transposed tensor, or of a slice of columns.  Which of the two it is decides what an in-place write
changes, so it must not depend on what happens to run below.  The rule: *the memory of a result that is no view is
row-major*; with that, the views through which a tensor was made say how its elements stand.  Eager arrays are brought
to the rule where it matters (`views.share_view`); a traced or distributed tensor, without an array, is asked here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from minipd.framework.dim import is_symbolic

__all__: list[str] = []

#: views of a row-major tensor that are row-major
KEEP = ("reshape", "squeeze", "unsqueeze", "share_data_")


def reshape_shares(base: Any, shape: tuple) -> bool | None:
    """Whether `reshape(base, shape)` is a view, for a Tensor without an array; None if that depends on the value of a
    symbolic dimension."""
    views, root = [], base
    while root.view_of is not None:
        views.append(root.view_of)
        root = root.view_of[0]
    if all(row.name in KEEP for _, row, *_ in views):
        return True
    if is_symbolic((root.payload.shape, shape, [tuple(attrs.values()) for _, _, attrs, _ in views])):
        return None
    # strides alone decide, so one byte stands for the memory: nothing reads it
    sizes = root.payload.shape
    memory = as_strided(np.empty((), np.bool_), sizes, [math.prod(sizes[i + 1:]) for i in range(len(sizes))])
    for _, row, attrs, _ in reversed(views):
        memory = row.kernel(memory, **attrs)
    try:
        np.reshape(memory, shape, copy=False)
    except ValueError:
        return False
    return True
