"""x * sigmoid(x) becomes silu(x).

    >>> from minipd.nn.functional import sigmoid
    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("silu_fuse_pass", lambda x: sigmoid(x) * x, (2, 3)))
    before
      a = sigmoid(x)
      b = multiply(a, x)
      return b
    after
      a = silu(x)
      return a

As Paddle's pass of this name.
"""

from __future__ import annotations

from minipd.passes.drr import drr
from minipd.passes.formula import ops

__all__: list[str] = []


@drr("silu_fuse_pass")
class Silu:
    """x * sigmoid(x)."""

    def source(x):
        return x * ops.sigmoid(x)

    def result(x):
        return ops.silu(x)
