"""What is multiplied and added after a convolution or a product, one number per channel, goes into its weights.

    >>> from minipd import nn
    >>> from minipd.passes.show import before_after, show
    >>> class Net(nn.Layer):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.conv, self.bn = nn.Conv2D(3, 8, 3, bias_attr=False), nn.BatchNorm2D(8)
    ...     def forward(self, x):
    ...         return self.bn(self.conv(x))
    >>> show(before_after("conv2d_bn_fuse_pass", Net().eval(), (1, 3, 6, 6)))               # doctest: +ELLIPSIS
    before
      a = conv2d(x, conv.weight, ...)
      b = add(bn._variance, 1e-05)
      c = rsqrt(b)
      d = reshape(c, shape=(1, 8, 1, 1))
      e = reshape(bn._mean, shape=(1, 8, 1, 1))
      f = subtract(a, e)
      g = multiply(f, d)
      h = reshape(bn.weight, shape=(1, 8, 1, 1))
      i = multiply(g, h)
      j = reshape(bn.bias, shape=(1, 8, 1, 1))
      k = add(i, j)
      return k
    after
      a = add(bn._variance, 1e-05)
      b = rsqrt(a)
      c = reshape(b, shape=(1, 8, 1, 1))
      d = reshape(bn._mean, shape=(1, 8, 1, 1))
      e = scale(d, scale=-1.0)
      f = reshape(c, shape=(8, 1, 1, 1))
      g = multiply(conv.weight, f)
      h = multiply(e, c)
      i = reshape(bn.weight, shape=(1, 8, 1, 1))
      j = reshape(i, shape=(8, 1, 1, 1))
      k = multiply(g, j)
      l = conv2d(x, k, ...)
      m = multiply(h, i)
      n = reshape(bn.bias, shape=(1, 8, 1, 1))
      o = add(m, n)
      p = add(l, o)
      return p

Batch normalisation by running statistics is the case that matters: ((y - mean) * root) * weight + bias, all but y
parameters.  Small rules bring it to y * c + a, and a convolution takes the c; what is computed of weights alone,
constant folding does once.  Rounds otherwise.
"""

from __future__ import annotations

from typing import Any

from minipd.passes.drr import drr
from minipd.passes.facts import per_channel
from minipd.passes.formula import ops
from minipd.passes.library.state_only import depends_on_state_only

__all__: list[str] = []

NAME = "conv2d_bn_fuse_pass"


def weighs(x: Any, *weights: Any) -> bool:
    """Whether these are weights, of a number for each channel or feature, that broadcast to x."""
    return all(1 <= w.ndim <= x.ndim and any(d != 1 for d in w.shape) and depends_on_state_only(w)
               for w in weights) and not depends_on_state_only(x)


# ------------------------------------------------------------------------------------ towards y * c + a
@drr(NAME)
class Minus:
    """x - m."""

    def source(x, m):
        return x - m

    def constraint(x, m):
        return weighs(x, m)

    def result(x, m):
        return x + ops.scale(m, scale=-1.0)


@drr(NAME)
class SumOfSums:
    """(x + a) + b."""

    def source(x, a, b):
        return (x + a) + b

    def constraint(x, a, b):
        return weighs(x, a, b)

    def result(x, a, b):
        return x + (a + b)


@drr(NAME)
class ScaledSum:
    """(x + a) c."""

    def source(x, a, c):
        return (x + a) * c

    def constraint(x, a, c):
        return weighs(x, a, c)

    def result(x, a, c):
        return x * c + a * c


@drr(NAME)
class ScaledTwice:
    """(x c) d."""

    def source(x, c, d):
        return (x * c) * d

    def constraint(x, c, d):
        return weighs(x, c, d)

    def result(x, c, d):
        return x * (c * d)


# ------------------------------------------------------------------------------------ and c into the weights
def of_channels(y: Any, c: Any) -> bool:
    """Whether c has one number for each channel of images y [N, C, H, W]."""
    return per_channel(c, y.shape[1]) and depends_on_state_only(c)


@drr(NAME)
class ScaledConvolution:
    """Each filter makes one channel."""

    def source(x, filter, c, *, s, p, d, g):
        y = ops.conv2d(x, filter, strides=s, paddings=p, dilations=d, groups=g).named("y")
        return y * c

    def constraint(y, filter, c):
        return depends_on_state_only(filter) and of_channels(y, c)

    def result(x, filter, c, s, p, d, g):
        scaled = filter * ops.reshape(c, shape=(filter.shape[0], 1, 1, 1))
        return ops.conv2d(x, scaled, strides=s, paddings=p, dilations=d, groups=g)


@drr(NAME)
class ScaledTransposedConvolution:
    """Its second dimension has the channels that come out."""

    def source(x, filter, c, *, s, p, more, d):
        y = ops.conv2d_transpose(x, filter, strides=s, paddings=p, output_padding=more, dilations=d, groups=1)
        return y.named("y") * c

    def constraint(y, filter, c):
        return depends_on_state_only(filter) and of_channels(y, c)

    def result(x, filter, c, s, p, more, d):
        scaled = filter * ops.reshape(c, shape=(1, filter.shape[1], 1, 1))
        return ops.conv2d_transpose(x, scaled, strides=s, paddings=p, output_padding=more, dilations=d, groups=1)


@drr(NAME)
class ScaledProduct:
    """Each column of the weight makes one feature."""

    def source(x, weight, c):
        y = ops.matmul(x, weight).named("y")
        return y * c

    def constraint(y, x, weight, c):
        return weight.ndim == 2 and depends_on_state_only(weight) and weighs(y, c) and (
            c.shape[-1:] == y.shape[-1:] and all(d == 1 for d in c.shape[:-1]))

    def result(x, weight, c):
        return ops.matmul(x, weight * ops.reshape(c, shape=(1, weight.shape[1])))
