"""A convolution with what follows it: its bias, a residual, an activation.

    >>> from minipd import nn
    >>> from minipd.passes.show import before_after, show
    >>> net = nn.Sequential(nn.Conv2D(3, 8, 1), nn.ReLU())
    >>> show(before_after("conv2d_add_act_fuse_pass", net, (1, 3, 6, 6)))         # doctest: +ELLIPSIS
    before
      a = conv2d(input, 0.weight, ...)
      b = reshape(0.bias, shape=(1, 8, 1, 1))
      c = add(a, b)
      d = relu(c)
      return d
    after
      a = reshape(0.bias, shape=(1, 8, 1, 1))
      b = reshape(a, shape=(8,))
      c = fused_conv2d_add_act(input, 0.weight, b, ..., activation='relu')
      return c
"""

from __future__ import annotations

from minipd.passes.drr import drr
from minipd.passes.facts import per_channel
from minipd.passes.formula import ops
from minipd.passes.library.activated import activated

__all__: list[str] = []

NAME = "conv2d_add_act_fuse_pass"


@drr(NAME)
class ConvolutionWithBias:
    """conv2d + bias."""

    def source(x, filter, bias, *, s, p, d, g):
        y = ops.conv2d(x, filter, strides=s, paddings=p, dilations=d, groups=g).named("y")
        return y + bias

    def constraint(y, bias):
        return per_channel(bias, y.shape[1]) and bias.dtype == y.dtype

    def result(x, filter, bias, s, p, d, g):
        flat = ops.reshape(bias, shape=(filter.shape[0],))
        return ops.fused_conv2d_add_act(x, filter, flat, strides=s, paddings=p, dilations=d, groups=g)


@drr(NAME)
class ConvolutionWithResidual:
    """(conv2d + bias) + residual."""

    def source(x, filter, bias, residual, *, s, p, d, g):
        y = ops.fused_conv2d_add_act(x, filter, bias, strides=s, paddings=p, dilations=d, groups=g).named("y")
        return y + residual

    def constraint(y, residual):
        return residual.shape == y.shape and residual.dtype == y.dtype

    def result(x, filter, bias, residual, s, p, d, g):
        return ops.fused_conv2d_residual_add_act(x, filter, bias, residual, strides=s, paddings=p, dilations=d,
                                                 groups=g)


@activated(NAME)
def convolution(x, filter, bias, *, s, p, d, g, activation):
    """activation(conv2d + bias)."""
    return ops.fused_conv2d_add_act(x, filter, bias, strides=s, paddings=p, dilations=d, groups=g,
                                    activation=activation)


@activated(NAME)
def convolution_with_residual(x, filter, bias, residual, *, s, p, d, g, activation):
    """activation(conv2d + bias + residual)."""
    return ops.fused_conv2d_residual_add_act(x, filter, bias, residual, strides=s, paddings=p, dilations=d, groups=g,
                                             activation=activation)
