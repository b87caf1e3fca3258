"""x * sigmoid(x) becomes silu(x), and silu(x) * y becomes swiglu(x, y)."""

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


@drr("swiglu_fuse_pass")
class Swiglu:
    """The gated unit of Llama's MLP; x and y of one shape."""

    def source(x, y):
        return ops.silu(x) * y

    def constraint(x, y):
        return x.shape == y.shape

    def result(x, y):
        return ops.swiglu(x, y)
