"""Which operands a kernel may write its results over.

`kernel_out(out, *operands)` may be called with `out` the very memory of an operand only if it never reads an element of
that operand after it has written that element (or another one) of `out`.  A ufunc keeps to that for every operand.  Of
the kernels that are written in several steps it is said here, row by row, with the reason; a test calls each of them
over its operand.  All others get memory of their own.
"""

from __future__ import annotations

from minipd.framework.row import Row, ufunc_of

__all__ = ["allow_overwriting", "overwritable"]

#: row -> {result: the operands that it may be written over}
_ALLOWED: dict[str, dict[int, tuple[int, ...]]] = {}


def allow_overwriting(row_name: str, result: int, *operands: int) -> None:
    """State that the row's `kernel_out` may get, as buffer of `result`, the memory of one of `operands`."""
    _ALLOWED.setdefault(row_name, {})[result] = operands


def overwritable(row: Row) -> dict[int, tuple[int, ...]]:
    """Result -> the operands that it may be written over."""
    if row.kernel_out is None:
        return {}
    if ufunc_of(row) is not None:
        return {0: tuple(range(len(row.inputs)))}
    return {**{r: (i,) for r, i in row.inplace.items()}, **_ALLOWED.get(row.name, {})}


allow_overwriting("where", 0, 2)                # y is copied first, then x where the condition holds
allow_overwriting("add_n", 0, 0)                # the first is copied, the others are added
allow_overwriting("scale", 0, 0)                # each step is a ufunc, the first one reads x
allow_overwriting("assign", 0, 0)
allow_overwriting("log", 0, 0)
allow_overwriting("rsqrt", 0, 0)
allow_overwriting("relu", 0, 0)
allow_overwriting("sigmoid", 0, 0)
allow_overwriting("silu", 0, 0)                 # the sigmoid has memory of its own until the last product
allow_overwriting("swiglu", 0, 0, 1)            # likewise
allow_overwriting("dropout", 0, 0)              # the mask is drawn first, then each element is scaled, or zeroed
allow_overwriting("softmax", 0, 0)              # x less its maximum comes first
allow_overwriting("cross_entropy_with_softmax", 0, 0)       # likewise
allow_overwriting("cross_entropy_with_softmax_grad", 0, 1)  # the product with the loss' gradient comes first
allow_overwriting("layer_norm", 0, 0)           # each block of rows is read, for its mean, before it is written
allow_overwriting("skip_layernorm", 0, 0, 1)    # the sum comes first, block by block
allow_overwriting("fused_dropout_add", 0, 0)    # dropout comes first
