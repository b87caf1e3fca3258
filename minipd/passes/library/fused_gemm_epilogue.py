"""A matrix product with what follows it: its bias, and an activation.

    >>> from minipd import nn
    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("fused_gemm_epilogue_pass", nn.Sequential(nn.Linear(8, 4), nn.GELU()), (2, 8)))
    before
      a = matmul(input, 0.weight)
      b = add(a, 0.bias)
      c = gelu(b)
      return c
    after
      a = fused_gemm_epilogue(input, 0.weight, 0.bias, activation='gelu')
      return a
"""

from __future__ import annotations

from minipd.framework import dtype as dtypes
from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.library.activated import activated

__all__: list[str] = []

NAME = "fused_gemm_epilogue_pass"


@drr(NAME)
class ProductWithBias:
    """x y + bias."""

    def source(x, y, bias, *, tx, ty):
        product = ops.matmul(x, y, transpose_x=tx, transpose_y=ty).named("product")
        return product + bias

    def constraint(product, bias):
        return (bias.dtype == product.dtype and product.dtype in dtypes.FLOATS and 1 <= bias.ndim <= product.ndim
                and bias.shape[-1] == product.shape[-1] and all(d == 1 for d in bias.shape[:-1]))

    def result(x, y, bias, tx, ty):
        flat = bias if bias.ndim == 1 else ops.reshape(bias, shape=bias.shape[-1:])
        return ops.fused_gemm_epilogue(x, y, flat, trans_x=tx, trans_y=ty)


@activated(NAME)
def product(x, y, bias, *, tx, ty, activation):
    """activation(x y + bias)."""
    return ops.fused_gemm_epilogue(x, y, bias, trans_x=tx, trans_y=ty, activation=activation)
