"""Whether a reshape shares memory with what it is a reshape of.

As in Paddle, a reshape is a view where that is possible, and a copy where the elements do not stand in memory in the
new order: of a transposed tensor, or of a slice of columns.  Which of the two it is decides what an in-place write
changes, so it must not depend on what happens to run below.  The rule: *the memory of a result that is no view is
row-major*; with that, the views through which a tensor was made say how its elements stand.  Eager arrays are brought
to the rule where it matters (`views.share_view`); a traced or distributed tensor, without an array, is asked here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from minipd.framework.dim import is_symbolic, prod

__all__: list[str] = []

#: views of a row-major tensor that are row-major
KEEP = ("reshape", "squeeze", "unsqueeze", "share_data_")


def row_major(shape: tuple) -> tuple:
    """The strides, in elements, of a tensor of that shape whose elements stand row by row, without gaps.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(prod(shape[i + 1:]) for i in range(len(shape)))


def view_strides(shape: tuple, strides: tuple, target: tuple) -> tuple | None:
    """The strides with which the elements of a tensor of `shape` and `strides` read, in their row-major order, as a
    tensor of the shape `target`, where they stand; None if no strides do that, so that a reshape has to copy.

    Both shapes have the same number of elements.  Along a dimension of size 1, or if there are no elements, any stride
    will do.  Strides count elements; they may be negative, or 0.

    >>> view_strides((2, 6), (6, 1), (4, 3)), view_strides((3,), (-2,), (1, 3))
    ((3, 1), (-6, -2))
    >>> view_strides((3, 2), (1, 3), (6,)) is None                  # a transposed matrix, flat
    True
    """
    if not prod(shape):
        return row_major(target)
    runs: list[tuple] = []              # (size, stride) of dimensions through which one step leads on
    for n, s in zip(shape, strides, strict=True):
        if runs and runs[-1][1] == n * s:
            runs[-1] = (runs[-1][0] * n, s)
        elif n != 1:
            runs.append((n, s))
    found = []
    left, s = 1, 1                      # how much of the current run is to be shared out, and the step through it
    for n in reversed(target):
        if n != 1 and left == 1:
            left, s = runs.pop()
        if left % n:
            return None                 # the dimension would begin in one run and end in another
        found.append(s)
        left, s = left // n, s * n
    return tuple(reversed(found))


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
    memory = as_strided(np.empty((), np.bool_), sizes, row_major(sizes))
    for _, row, attrs, _ in reversed(views):
        memory = row.kernel(memory, **attrs)
    return view_strides(memory.shape, memory.strides, shape) is not None
