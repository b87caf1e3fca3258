"""Matrix products."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import prod, require_equal
from minipd.framework.meta import Meta, describe
from minipd.framework.row import op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import reduce_to
from minipd.ops.making import into
from minipd.ops.promotion import promoted
from minipd.ops.shapes import broadcast_shapes, common_dtype

__all__ = ["matmul"]


@op("matmul")
class Matmul:
    """[..., M, K] x [..., K, N] -> [..., M, N], leading dimensions broadcast.

    The gradient of a weight, y of two dimensions, flattens the leading dimensions of x and g into one: a batched
    product and a sum over the batch would build [batch, K, N] first.
    """

    def infer_meta(x, y, *, transpose_x=False, transpose_y=False):
        if len(x.shape) < 2 or len(y.shape) < 2:
            raise ValueError(f"matmul: expected operands of at least 2 dimensions, got {describe(x)} and {describe(y)}")
        m, k = x.shape[-2:][::-1] if transpose_x else x.shape[-2:]
        k2, n = y.shape[-2:][::-1] if transpose_y else y.shape[-2:]
        require_equal(k2, k, f"matmul of {describe(x)}{'^T' if transpose_x else ''} and "
                             f"{describe(y)}{'^T' if transpose_y else ''}: the inner sizes")
        return Meta((*broadcast_shapes("matmul", x.shape[:-2], y.shape[:-2]), m, n), common_dtype("matmul", x, y))

    def kernel(xp, x, y, *, transpose_x=False, transpose_y=False):
        y = y.swapaxes(-1, -2) if transpose_y else y
        if y.ndim == 2 and x.ndim > 2 and not transpose_x:      # one product instead of one per leading index
            return xp.matmul(x.reshape(prod(x.shape[:-1]), x.shape[-1]), y).reshape(*x.shape[:-1], y.shape[-1])
        return xp.matmul(x.swapaxes(-1, -2) if transpose_x else x, y)

    def kernel_out(xp, out, x, y, *, transpose_x=False, transpose_y=False):
        y = y.swapaxes(-1, -2) if transpose_y else y
        if y.ndim == 2 and x.ndim > 2 and not transpose_x and out.flags.c_contiguous:
            x, out = x.reshape(prod(x.shape[:-1]), x.shape[-1]), out.reshape(prod(out.shape[:-1]), out.shape[-1])
        xp.matmul(x.swapaxes(-1, -2) if transpose_x else x, y, out=out)

    def vjp_x(g, x: Meta, y, transpose_x, transpose_y):
        gx = (Matmul(y, g, transpose_x=transpose_y, transpose_y=True) if transpose_x else
              Matmul(g, y, transpose_y=not transpose_y))
        return reduce_to(gx, x)

    def vjp_y(g, x, y: Meta, transpose_x, transpose_y):
        if len(y.shape) == 2 and x.ndim > 2 and not transpose_x:
            x, g = _rows(x), _rows(g)
        gy = (Matmul(g, x, transpose_x=True, transpose_y=transpose_x) if transpose_y else
              Matmul(x, g, transpose_x=not transpose_x))
        return reduce_to(gy, y)


def _rows(x: Tensor) -> Tensor:
    """[..., K] -> [all leading, K]."""
    s = x.payload.shape
    return x.reshape((prod(s[:-1]), s[-1]))


def matmul(x: Tensor, y: Tensor, transpose_x: bool = False, transpose_y: bool = False, name: str | None = None, *,
           out: Tensor | None = None) -> Tensor:
    """Paddle's matmul.  A 1-D operand is a row on the left, a column on the right, and leaves no dimension behind.

    Raises: ValueError if the inner sizes differ.

    >>> from minipd.ops.creation import to_tensor
    >>> matmul(to_tensor([[1.0, 2.0]]), to_tensor([[3.0], [4.0]])).tolist()
    [[11.0]]
    """
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        raise TypeError(f"matmul: expected two Tensors, got {type(x).__name__} and {type(y).__name__}")
    if x.payload.dtype is not y.payload.dtype:
        x, y = promoted("matmul", x, y)
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError(f"matmul: expected operands of at least 1 dimension, got {describe(x)} and {describe(y)}")
    left, right = x.ndim == 1, y.ndim == 1
    if left:
        x, transpose_x = x.unsqueeze(0), False
    if right:
        y, transpose_y = y.unsqueeze(1), False
    attrs: dict[str, Any] = {}
    if transpose_x:
        attrs["transpose_x"] = True
    if transpose_y:
        attrs["transpose_y"] = True
    product = Matmul(x, y, **attrs)
    if left:
        product = product.squeeze(-2)
    if right:
        product = product.squeeze(-1)
    return product if out is None else into(out, product)
