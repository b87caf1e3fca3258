"""A product with a number and a sum with one become one `scale`, which rounds the same.

    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("remove_redundant_scale_pass", lambda x: x * 2.0 + 1.0, (2, 3)))
    before
      a = multiply(x, 2.0)
      b = add(a, 1.0)
      return b
    after
      a = scale(x, bias=1.0, scale=2.0)
      return a

So do two scales of which one only adds.  Two products are left alone: 0.1 (0.3 x) is rounded twice, and 0.03 x once;
so is low precision, where a `scale` rounds its sum only.  (Paddle has no such pass.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.passes.base import PatternRewritePass
from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.table import register_pass

__all__ = ["RemoveRedundantScale"]

NAME = "remove_redundant_scale_pass"


@register_pass(NAME)
class RemoveRedundantScale(PatternRewritePass):
    """A product with a number and a sum with one become one operator."""

    exact = True
    opt_level = 1


def rounds_in_between(x: Any, b: float) -> bool:
    """Whether kernels compute in the dtype of x, and add b: -0.0 + 0.0 is 0.0, and a `scale` without a bias -0.0."""
    return x.dtype in (np.float32, np.float64) and b != 0


@drr(NAME)
class ProductPlusNumber:
    """a x + b."""

    def source(x, *, a, b):
        return x * a + b

    constraint = rounds_in_between

    def result(x, a, b):
        return ops.scale(x, scale=a, bias=b)


@drr(NAME)
class ProductMinusNumber:
    """a x - b."""

    def source(x, *, a, b):
        return x * a - b

    constraint = rounds_in_between

    def result(x, a, b):
        return ops.scale(x, scale=a, bias=-b)


@drr(NAME)
class SumTimesNumber:
    """(x + b) a."""

    def source(x, *, a, b):
        return (x + b) * a

    constraint = rounds_in_between

    def result(x, a, b):
        return ops.scale(x, scale=a, bias=b, bias_after_scale=False)


@drr(NAME)
class SumOfScale:
    """(a x) + b, as Paddle writes it."""

    def source(x, *, a, b, some, other):
        return ops.scale(ops.scale(x, scale=a, bias=0.0, bias_after_scale=some), scale=1.0, bias=b,
                         bias_after_scale=other)

    constraint = rounds_in_between

    def result(x, a, b):
        return ops.scale(x, scale=a, bias=b)


@drr(NAME)
class ScaleOfSum:
    """(x + b) a, as Paddle writes it."""

    def source(x, *, a, b, some, other):
        return ops.scale(ops.scale(x, scale=1.0, bias=b, bias_after_scale=some), scale=a, bias=0.0,
                         bias_after_scale=other)

    constraint = rounds_in_between

    def result(x, a, b):
        return ops.scale(x, scale=a, bias=b, bias_after_scale=False)
