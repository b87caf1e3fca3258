"""Group norm with the activation after it."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import exact_div, prod
from minipd.framework.meta import Meta, describe
from minipd.framework.row import op
from minipd.framework.tensor import Tensor
from minipd.ops.fused.activations import activate, activate_over, blocks, require_activation
from minipd.ops.fused.composition import pullback
from minipd.ops.norm import Standardize
from minipd.ops.shapes import require_floating, shapes_agree

__all__: list[str] = []

NAME = "add_group_norm_silu"


def composed_group_norm(x: Tensor, scale: Tensor, bias: Tensor, *, groups: int, epsilon: float = 1e-5,
                        activation: str = "silu") -> Tensor:
    """Each sample's channels in groups, standardised over channels and positions; then scale, bias, activation."""
    n, channels, *sizes = x.payload.shape
    parts = x.reshape([n, groups, exact_div(channels, groups, NAME), *sizes])
    out, _, _ = Standardize(parts, axis=tuple(range(2, parts.ndim)), epsilon=epsilon)
    column = [channels, *[1] * len(sizes)]
    return activate(activation, out.reshape([n, channels, *sizes]) * scale.reshape(column) + bias.reshape(column))


@op(NAME)
class AddGroupNormSilu:
    """activation(group norm of x).   x [N, C, ...], scale and bias [C] -> as x   (Wu, He 2018)

    Paddle's operator of this name may add a residual before, and returns the statistics too.
    """

    def infer_meta(x, scale, bias, *, groups, epsilon=1e-5, activation="silu"):
        require_floating(NAME, x)
        require_activation(NAME, activation)
        if len(x.shape) < 2 or any(p.dtype != x.dtype or not shapes_agree(tuple(p.shape), tuple(x.shape[1:2]), NAME)
                                   for p in (scale, bias)):
            raise ValueError(f"{NAME}: expected x [N, C, ...] and scale and bias [C] of one dtype, got {describe(x)}, "
                             f"{describe(scale)} and {describe(bias)}")
        exact_div(x.shape[1], groups, f"{NAME}: the channels of {describe(x)} in {groups} groups")
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, scale, bias, *, groups, epsilon=1e-5, activation="silu"):
        out = xp.empty(x.shape, x.dtype)
        _group_norm(xp, out, x, scale, bias, groups, epsilon, activation)
        return out

    def kernel_out(xp, out, x, scale, bias, *, groups, epsilon=1e-5, activation="silu"):
        if not out.flags.c_contiguous:
            out[...] = AddGroupNormSilu.kernel(x, scale, bias, groups=groups, epsilon=epsilon, activation=activation)
            return
        _group_norm(xp, out, x, scale, bias, groups, epsilon, activation)

    def vjp(g, x, scale, bias, groups, epsilon, activation):
        return pullback(composed_group_norm, g, x, scale, bias, groups=groups, epsilon=epsilon, activation=activation)


def _group_norm(xp: Any, out: Any, x: Any, scale: Any, bias: Any, groups: int, epsilon: float,
                activation: str) -> None:
    """Some groups at a time: standardised, scaled by one number per channel, shifted and activated while near."""
    if not out.size:
        return
    channels = x.shape[1] // groups
    shape = (x.shape[0] * groups, channels, prod(x.shape[2:]))
    x, scale, bias = x.reshape(shape), scale.reshape(groups, channels), bias.reshape(groups, channels)
    number, n = x.dtype.type, shape[1] * shape[2]
    for which, rows in blocks(out.reshape(shape), 2):
        each = xp.arange(shape[0])[which] % groups
        mean = xp.add.reduce(x[which], axis=(1, 2), keepdims=True)
        mean /= number(n)
        xp.subtract(x[which], mean, out=rows)
        r = xp.einsum("rci,rci->r", rows, rows)
        r /= number(n)
        r += number(epsilon)
        xp.sqrt(r, out=r)
        rows *= (scale[each] / r[:, None])[:, :, None]
        rows += bias[each][:, :, None]
        activate_over(xp, rows, activation)
