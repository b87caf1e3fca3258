"""x standardised, scaled and shifted, becomes `layer_norm`; and a sum before a norm goes into it.

    >>> from minipd.nn.functional import layer_norm
    >>> from minipd.passes.show import before_after, show
    >>> def post_norm(x, y, w, b):
    ...     return layer_norm(x + y, 8, w, b)
    >>> show(before_after("add_norm_fuse_pass", post_norm, (2, 8), (2, 8), (8,), (8,)))
    before
      a = add(x, y)
      c, _, _ = standardize(a, axis=(1,))
      d = multiply(c, w)
      e = add(d, b)
      return e
    after
      a = skip_layernorm(x, y, w, b)
      return a

Rounds otherwise.
"""

from __future__ import annotations

from typing import Any

from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.library.rms_norm_fuse import NAME, over_last

__all__: list[str] = []


def fits(x: Any, scale: Any, bias: Any, axis: tuple) -> bool:
    return over_last(x, scale, axis) and bias.shape == scale.shape and x.dtype == scale.dtype == bias.dtype


def layer_norm(x: Any, scale: Any, bias: Any, epsilon: float) -> Any:
    return ops.layer_norm(x, scale, bias, epsilon=epsilon)


@drr(NAME)
class LayerNorm:
    """As `paddle.nn.LayerNorm` composes it."""

    def source(x, scale, bias, *, axis, epsilon):
        n, _, _ = ops.standardize(x, axis=axis, epsilon=epsilon)
        return n * scale + bias

    constraint, result = fits, layer_norm


@drr(NAME)
class LayerNormByHand:
    """(x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + bias: the rms norm of x - mean, which other rules of
    this pass have found by then in any spelling, and a bias."""

    def source(x, scale, bias, *, axis, epsilon):
        return ops.rms_norm(x - ops.mean(x, axis=axis, keepdim=True), scale, epsilon=epsilon) + bias

    constraint, result = fits, layer_norm


# ------------------------------------------------------------------------------------------ of a sum
def alike(x: Any, y: Any) -> bool:
    return x.shape == y.shape and x.dtype == y.dtype


@drr(NAME, benefit=2)
class LayerNormOfSum:
    """The sum is for the norm alone: post-norm."""

    def source(x, y, scale, bias, *, epsilon):
        return ops.layer_norm(x + y, scale, bias, epsilon=epsilon)

    def constraint(x, y):
        return alike(x, y)

    def result(x, y, scale, bias, epsilon):
        return ops.skip_layernorm(x, y, scale, bias, epsilon=epsilon)


@drr(NAME)
class LayerNormAndSum:
    """Others read the sum too: pre-norm."""

    def source(x, residual, scale, bias, *, epsilon):
        total = x + residual
        return ops.layer_norm(total, scale, bias, epsilon=epsilon), total

    def constraint(x, residual):
        return alike(x, residual)

    def result(x, residual, scale, bias, epsilon):
        return ops.fused_bias_residual_layernorm(x, residual, scale, bias, epsilon=epsilon)


@drr(NAME)
class RmsNormAndSum:
    """The same before an rms norm, as in a Llama."""

    def source(x, residual, scale, *, epsilon):
        total = x + residual
        return ops.rms_norm(total, scale, epsilon=epsilon), total

    def constraint(x, residual, scale):
        return alike(x, residual) and scale.ndim == 1

    def result(x, residual, scale, epsilon):
        return ops.fused_rms_norm_residual(x, residual, scale, epsilon=epsilon)
