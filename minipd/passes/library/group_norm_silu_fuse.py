"""A group norm, and the silu after it, become one operator.

    >>> from minipd import nn
    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("group_norm_silu_fuse_pass", nn.Sequential(nn.GroupNorm(2, 4), nn.Silu()), (1, 4, 3, 3)))
    before
      a = reshape(input, shape=(1, 2, 2, 3, 3))
      b, _, _ = standardize(a, axis=(2, 3, 4))
      c = reshape(b, shape=(1, 4, 3, 3))
      d = reshape(0.weight, shape=(1, 4, 1, 1))
      e = multiply(c, d)
      f = reshape(0.bias, shape=(1, 4, 1, 1))
      g = add(e, f)
      h = silu(g)
      return h
    after
      a = reshape(0.weight, shape=(1, 4, 1, 1))
      b = reshape(0.bias, shape=(1, 4, 1, 1))
      c = reshape(a, shape=(4,))
      d = reshape(b, shape=(4,))
      e = add_group_norm_silu(input, c, d, groups=2)
      return e

Rounds otherwise.
"""

from __future__ import annotations

from minipd.passes.drr import drr
from minipd.passes.facts import per_channel
from minipd.passes.formula import ops

__all__: list[str] = []

NAME = "group_norm_silu_fuse_pass"


@drr(NAME)
class GroupNorm:
    """As `paddle.nn.GroupNorm` composes it, of images."""

    def source(x, scale, bias, *, parts, axis, epsilon, shape):
        n, _, _ = ops.standardize(ops.reshape(x, shape=parts), axis=axis, epsilon=epsilon)
        return ops.reshape(n, shape=shape) * scale + bias

    def constraint(x, scale, bias, parts, axis, shape):
        images = x.ndim == 4 and len(parts) == 5 and axis == (2, 3, 4) and shape == x.shape
        return images and parts[0] == x.shape[0] and parts[3:] == x.shape[2:] and isinstance(parts[1], int) and all(
            per_channel(v, x.shape[1]) and v.dtype == x.dtype for v in (scale, bias))

    def result(x, scale, bias, parts, epsilon):
        flat = x.shape[1],
        return ops.add_group_norm_silu(x, ops.reshape(scale, shape=flat), ops.reshape(bias, shape=flat),
                                       groups=parts[1], epsilon=epsilon, activation="none")


@drr(NAME)
class GroupNormSilu:
    """silu(group norm of x)."""

    def source(x, scale, bias, *, g, epsilon):
        return ops.silu(ops.add_group_norm_silu(x, scale, bias, groups=g, epsilon=epsilon, activation="none"))

    def result(x, scale, bias, g, epsilon):
        return ops.add_group_norm_silu(x, scale, bias, groups=g, epsilon=epsilon)
