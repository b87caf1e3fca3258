"""A convolution with what follows it: its bias, a residual, an activation."""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import Meta, describe
from minipd.framework.row import op
from minipd.framework.tensor import Tensor
from minipd.ops.conv import Conv2d, convolve_into
from minipd.ops.fused.activations import activate, activate_over, require_activation
from minipd.ops.fused.composition import pullback
from minipd.ops.shapes import shapes_agree

__all__: list[str] = []


def composed_conv(input: Tensor, filter: Tensor, bias: Tensor, *, strides: tuple, paddings: tuple, dilations: tuple,
                  groups: int, activation: str = "none") -> Tensor:
    """activation(conv2d(input, filter) + bias)."""
    return activate(activation, _with_bias(input, filter, bias, strides, paddings, dilations, groups))


def composed_conv_residual(input: Tensor, filter: Tensor, bias: Tensor, residual_data: Tensor, *, strides: tuple,
                           paddings: tuple, dilations: tuple, groups: int, activation: str = "none") -> Tensor:
    """activation(conv2d(input, filter) + bias + residual_data)."""
    out = _with_bias(input, filter, bias, strides, paddings, dilations, groups) + residual_data
    return activate(activation, out)


def _with_bias(input: Tensor, filter: Tensor, bias: Tensor, strides: tuple, paddings: tuple, dilations: tuple,
               groups: int) -> Tensor:
    out = Conv2d(input, filter, strides=strides, paddings=paddings, dilations=dilations, groups=groups)
    return out + bias.reshape([bias.payload.shape[0], 1, 1])


def _shape(what: str, input: Any, filter: Any, bias: Any, activation: str, **attrs: Any) -> Meta:
    require_activation(what, activation)
    out = Conv2d.infer_meta(input, filter, **attrs)
    if bias.dtype != out.dtype or not shapes_agree(tuple(bias.shape), (out.shape[1],), what):
        raise ValueError(f"{what}: expected a bias of one number for each channel of the result {describe(out)}, got "
                         f"{describe(bias)}")
    return out


@op("fused_conv2d_add_act")
class FusedConv2dAddAct:
    """out = activation(conv2d(input, filter) + bias).   bias [O]; attributes as of `conv2d`."""

    def infer_meta(input, filter, bias, *, strides, paddings, dilations, groups, activation="none"):
        return _shape("fused_conv2d_add_act", input, filter, bias, activation, strides=strides, paddings=paddings,
                      dilations=dilations, groups=groups)

    def kernel(xp, input, filter, bias, *, activation="none", **attrs):
        out = xp.empty(Conv2d.infer_meta(input, filter, **attrs).shape, input.dtype)
        _convolve(xp, out, input, filter, bias, None, activation, **attrs)
        return out

    def kernel_out(xp, out, input, filter, bias, *, activation="none", **attrs):
        _convolve(xp, out, input, filter, bias, None, activation, **attrs)

    def vjp(g, input, filter, bias, strides, paddings, dilations, groups, activation):
        return pullback(composed_conv, g, input, filter, bias, strides=strides, paddings=paddings, dilations=dilations,
                        groups=groups, activation=activation)


@op("fused_conv2d_residual_add_act")
class FusedConv2dResidualAddAct:
    """out = activation(conv2d(input, filter) + bias + residual_data), the end of a residual block.

    residual_data: as the result.  (In Paddle an optional operand of `fused_conv2d_add_act`.)
    """

    def infer_meta(input, filter, bias, residual_data, *, strides, paddings, dilations, groups, activation="none"):
        what = "fused_conv2d_residual_add_act"
        out = _shape(what, input, filter, bias, activation, strides=strides, paddings=paddings, dilations=dilations,
                     groups=groups)
        if residual_data.dtype != out.dtype or not shapes_agree(tuple(residual_data.shape), tuple(out.shape), what):
            raise ValueError(f"{what}: expected a residual like the result {describe(out)}, got "
                             f"{describe(residual_data)}")
        return out

    def kernel(xp, input, filter, bias, residual_data, *, activation="none", **attrs):
        out = xp.empty(Conv2d.infer_meta(input, filter, **attrs).shape, input.dtype)
        _convolve(xp, out, input, filter, bias, residual_data, activation, **attrs)
        return out

    def kernel_out(xp, out, input, filter, bias, residual_data, *, activation="none", **attrs):
        _convolve(xp, out, input, filter, bias, residual_data, activation, **attrs)

    def vjp(g, input, filter, bias, residual_data, strides, paddings, dilations, groups, activation):
        return pullback(composed_conv_residual, g, input, filter, bias, residual_data, strides=strides,
                        paddings=paddings, dilations=dilations, groups=groups, activation=activation)


def _convolve(xp: Any, out: Any, input: Any, filter: Any, bias: Any, residual: Any, activation: str, *, strides: tuple,
              paddings: tuple, dilations: tuple, groups: int) -> None:
    """Each few images are finished as soon as they are there."""
    column = bias[:, None]

    def finish(some: Any, rows: Any, flat: Any) -> None:
        flat += column
        if residual is not None:
            rows += residual[some]
        activate_over(xp, flat, activation)
    convolve_into(xp, out, input, filter, strides, paddings, dilations, groups, finish)
