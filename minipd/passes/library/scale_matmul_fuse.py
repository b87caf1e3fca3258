"""A product with a scaled factor: the scale goes to the other one if that is a weight.

    >>> from minipd.nn import Layer
    >>> from minipd.passes.show import before_after, show
    >>> class Product(Layer):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w = self.create_parameter([4, 3])
    ...     def forward(self, x):
    ...         return (x * 0.125) @ self.w
    >>> show(before_after("scale_matmul_fuse_pass", Product(), (2, 4)))
    before
      a = multiply(x, 0.125)
      b = matmul(a, w)
      return b
    after
      a = multiply(w, 0.125)
      b = matmul(x, a)
      return b

Scaling a weight is folded (`constant_folding_pass` with the parameters), and gone.  Rounded elsewhere, so not equal to
the bit.

Paddle's pass of this name is one of oneDNN's: it makes `onednn_op.fused_matmul`, whose kernel scales on the way, of any
two factors.
"""

from __future__ import annotations

from typing import Any

from minipd.passes.drr import drr
from minipd.passes.facts import has_digits
from minipd.passes.formula import ops
from minipd.passes.library.state_only import depends_on_state_only

__all__: list[str] = []

NAME = "scale_matmul_fuse_pass"


def on_weight(x: Any, w: Any, c: float) -> bool:
    """Whether scaling w costs no run anything, and c is as good a number there."""
    return has_digits(c, x) and depends_on_state_only(w) and not depends_on_state_only(x)


@drr(NAME)
class NumberTimesFactor:
    """(c x) w = x (c w)."""

    def source(x, w, *, left, right, c):
        return ops.matmul(x * c, w, transpose_x=left, transpose_y=right)

    constraint = on_weight

    def result(x, w, left, right, c):
        return ops.matmul(x, w * c, transpose_x=left, transpose_y=right)


@drr(NAME)
class FactorOverNumber:
    """(x / c) w = x (w / c)."""

    def source(x, w, *, left, right, c):
        return ops.matmul(x / c, w, transpose_x=left, transpose_y=right)

    constraint = on_weight

    def result(x, w, left, right, c):
        return ops.matmul(x, w / c, transpose_x=left, transpose_y=right)


@drr(NAME)
class ScaledFactor:
    """The operator `scale`, without a bias."""

    def source(x, w, *, left, right, c, after):
        return ops.matmul(ops.scale(x, scale=c, bias=0.0, bias_after_scale=after), w, transpose_x=left,
                          transpose_y=right)

    constraint = on_weight

    def result(x, w, left, right, c):
        return ops.matmul(x, w * c, transpose_x=left, transpose_y=right)
