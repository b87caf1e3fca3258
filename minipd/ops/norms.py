"""Slices kept to a largest norm."""

from __future__ import annotations

from minipd.framework.tensor import Tensor
from minipd.ops.math import abs, where
from minipd.ops.promotion import as_tensor
from minipd.ops.reduce import Max, Sum
from minipd.ops.shapes import a_number, normalize_axis, require_floating

__all__ = ["renorm"]


def renorm(x: Tensor, p: float, axis: int, max_norm: float) -> Tensor:
    """x with every slice along `axis` whose p-norm is above `max_norm` scaled down to it.

    p: positive, infinity too.
    Raises: ValueError for p or max_norm that are not positive.

    >>> from minipd.ops.creation import to_tensor
    >>> renorm(to_tensor([[6.0, 8.0], [0.25, 0.0]]), 2.0, 0, 5.0).tolist()
    [[3.0, 4.0], [0.25, 0.0]]
    """
    x = as_tensor("renorm", x)
    require_floating("renorm", x.payload)
    p, max_norm = a_number("renorm", "p", p), a_number("renorm", "max_norm", max_norm)
    if p <= 0 or max_norm < 0:
        raise ValueError(f"renorm: expected a positive p and a max_norm that is not negative, got p={p}, "
                         f"max_norm={max_norm}")
    axis = normalize_axis("renorm", axis, x.ndim)
    others = tuple(i for i in range(x.ndim) if i != axis)
    if p == float("inf"):
        norms = Max(abs(x), axis=others, keepdim=True)
    else:
        total = Sum(abs(x) ** float(p), axis=others, keepdim=True)
        norms = where(total > 0.0, total, 1.0) ** (1.0 / p) * (total > 0.0).astype(x.dtype)
    return x * where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
