"""Two products with numbers, one after the other, become one; so do two `scale`.

    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("remove_redundant_scale_pass", lambda x: (x * 3.0) / 2.0, (2, 3)))
    before
      a = multiply(x, 3.0)
      b = divide(a, 2.0)
      return b
    after
      a = multiply(x, 1.5)
      return a

Rounded once instead of twice, so not equal to the bit; where the product of the numbers is no number of the dtype that
can stand for both (0, infinite, or so small that it has few digits), nothing is changed.

A product and a sum stay two operators, though `scale` is both: its kernel takes longer than theirs together.  (Paddle
has no such pass.)
"""

from __future__ import annotations

from typing import Any

from minipd.passes.drr import drr
from minipd.passes.facts import has_digits
from minipd.passes.formula import ops

__all__: list[str] = []

NAME = "remove_redundant_scale_pass"


def have_digits(x: Any, *numbers: float) -> bool:
    """Whether all of these are numbers of the dtype of x, with all their digits."""
    return all(has_digits(number, x) for number in numbers)


@drr(NAME)
class ProductOfProduct:
    """b (a x) = (a b) x."""

    def source(x, *, a, b):
        return x * a * b

    def constraint(x, a, b):
        return have_digits(x, a, b, a * b)

    def result(x, a, b):
        return x * (a * b)


@drr(NAME)
class QuotientOfProduct:
    """(a x) / b = (a / b) x."""

    def source(x, *, a, b):
        return x * a / b

    def constraint(x, a, b):
        return have_digits(x, a, b) and have_digits(x, a / b)

    def result(x, a, b):
        return x * (a / b)


@drr(NAME)
class ProductOfQuotient:
    """b (x / a) = (b / a) x."""

    def source(x, *, a, b):
        return x / a * b

    def constraint(x, a, b):
        return have_digits(x, a, b) and have_digits(x, b / a)

    def result(x, a, b):
        return x * (b / a)


@drr(NAME)
class ScaleOfScale:
    """(a x + c) b + d = (a b) x + (c b + d)."""

    def source(x, *, a, b, c, d):
        return ops.scale(ops.scale(x, scale=a, bias=c, bias_after_scale=True), scale=b, bias=d, bias_after_scale=True)

    def constraint(x, a, b, c, d):
        bias = c * b + d
        return have_digits(x, a, b, a * b) and (bias == 0 and c == 0 or have_digits(x, bias))

    def result(x, a, b, c, d):
        return ops.scale(x, scale=a * b, bias=c * b + d)
