"""silu(x) * y, the gated unit of Llama's MLP, becomes swiglu(x, y).

    >>> from minipd.nn.functional import silu
    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("swiglu_fuse_pass", lambda gate, up: silu(gate) * up, (2, 3), (2, 3)))
    before
      a = silu(gate)
      b = multiply(a, up)
      return b
    after
      a = swiglu(gate, up)
      return a

Where silu is written out, `silu_fuse_pass` comes first.
"""

from __future__ import annotations

from minipd.passes.drr import drr
from minipd.passes.formula import ops

__all__: list[str] = []


@drr("swiglu_fuse_pass")
class Swiglu:
    """The gated unit of Llama's MLP; x and y of one shape."""

    def source(x, y):
        return ops.silu(x) * y

    def constraint(x, y):
        return x.shape == y.shape

    def result(x, y):
        return ops.swiglu(x, y)
