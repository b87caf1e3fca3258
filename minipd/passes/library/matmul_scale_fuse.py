"""A product that is scaled becomes a product of which one factor is scaled: a weight, or what is smaller.

    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("matmul_scale_fuse_pass", lambda q, k: q.matmul(k, transpose_y=True) / 2.0, (8, 4), (8, 4)))
    before
      a = matmul(q, k, transpose_y=True)
      b = divide(a, 2.0)
      return b
    after
      a = multiply(q, 0.5)
      b = matmul(a, k, transpose_y=True)
      return b

Scaling a weight is folded (`constant_folding_pass` with the parameters), and gone.  Attention scores are larger than
the queries as soon as there are more of them than a head has features: then the queries are scaled instead.  Rounded
elsewhere, so not equal to the bit.

Paddle's pass of this name moves scales to weights only.
"""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import is_symbolic, prod
from minipd.framework.row import ROWS
from minipd.passes.drr import drr
from minipd.passes.facts import has_digits
from minipd.passes.formula import ops
from minipd.passes.library.state_only import depends_on_state_only

__all__: list[str] = []


NAME = "matmul_scale_fuse_pass"


def lighter(x: Any, y: Any, left: bool, right: bool) -> Any:
    """The factor that is scaled rather than the product; None if neither is lighter."""
    for value in (y, x):
        if depends_on_state_only(value):
            return value
    product = ROWS["matmul"].infer_meta(x, y, transpose_x=left, transpose_y=right)
    if any(is_symbolic(v.shape) for v in (x, y, product)):
        return None
    smaller = min(x, y, key=lambda v: prod(v.shape))
    return smaller if prod(smaller.shape) < prod(product.shape) else None


def one_is_lighter(x: Any, y: Any, left: bool, right: bool, c: float) -> bool:
    """Whether it pays, and c is as good a number beside a factor."""
    return x is not y and has_digits(c, x) and lighter(x, y, left, right) is not None


def scaled(x: Any, y: Any, left: bool, right: bool, c: float) -> Any:
    """(c x) y, or x (c y)."""
    if lighter(x.meaning, y.meaning, left, right) is x.meaning:
        return ops.matmul(x * c, y, transpose_x=left, transpose_y=right)
    return ops.matmul(x, y * c, transpose_x=left, transpose_y=right)


@drr(NAME)
class ProductTimesNumber:
    """c (x y) = (c x) y = x (c y)."""

    def source(x, y, *, left, right, c):
        return ops.matmul(x, y, transpose_x=left, transpose_y=right) * c

    constraint = one_is_lighter
    result = scaled


@drr(NAME)
class ProductOverNumber:
    """The scores of attention are often divided, by the square root of the size of a head."""

    def source(x, y, *, left, right, c):
        return ops.matmul(x, y, transpose_x=left, transpose_y=right) / c

    def constraint(x, y, left, right, c):
        return has_digits(1 / c if c else 0.0, x) and one_is_lighter(x, y, left, right, c)

    def result(x, y, left, right, c):
        return scaled(x, y, left, right, 1 / c)


@drr(NAME)
class ScaledProduct:
    """The operator `scale`, without a bias."""

    def source(x, y, *, left, right, c, after):
        return ops.scale(ops.matmul(x, y, transpose_x=left, transpose_y=right), scale=c, bias=0.0,
                         bias_after_scale=after)

    constraint = one_is_lighter
    result = scaled
