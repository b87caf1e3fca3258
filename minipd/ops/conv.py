"""Convolutions: three operators that are each other's gradients.

The sum  <g, conv(x, w)> = sum g[n, o, p] w[o, c, k] x[n, c, p stride + k dilation - padding]  is linear in x, in w and
in g.  Leaving out one of the three gives an operator: the convolution (without g), the transposed one (without x), and
the gradient of the filter (without w).  So each rule below is one of the other operators, and derivatives of any order
exist.

Each operator is written once, for any number of spatial dimensions, as one product of matrices per group (see
`windows`).  Rows are Paddle's, of two and of three dimensions; one dimension is two of which the first has size 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.framework.dim import exact_div, modulo, prod
from minipd.framework.meta import Meta, describe
from minipd.framework.row import op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import as_operand
from minipd.ops.geometry import back, channels_last, counts, extent, first, ints, pairs, per_axis, spatial
from minipd.ops.shapes import agree, common_dtype, require_floating
from minipd.ops.windows import add_columns, batches, columns, padded, window_bytes

__all__ = ["conv1d", "conv2d", "conv3d"]


class _Convolution:
    """x [N, C, *size], filter [O, C / groups, *kernel] -> [N, O, *windows]"""

    def infer_meta(what, x, filter, *, strides, paddings, dilations, groups):
        _check(what, x, filter, x.shape[1], filter.shape[1] * groups, groups)
        return Meta((x.shape[0], filter.shape[0], *_counts(what, x, filter, strides, paddings, dilations)), x.dtype)

    def kernel(xp, x, filter, *, strides, paddings, dilations, groups):
        common_dtype("conv", x, filter)
        sizes = _counts("conv", x, filter, strides, paddings, dilations)
        out = xp.empty((x.shape[0], filter.shape[0], *sizes), x.dtype)
        _convolve(xp, out, x, filter, strides, paddings, dilations, groups)
        return out

    def kernel_out(xp, out, x, filter, *, strides, paddings, dilations, groups):
        _convolve(xp, out, x, filter, strides, paddings, dilations, groups)

    def vjp_x(g: Any, x: Meta, filter, strides, paddings, dilations, groups):
        return transposed(g, filter, rests(x, filter, strides, paddings, dilations), strides=strides,
                          paddings=paddings, dilations=dilations, groups=groups)

    def vjp_filter(g, x, filter: Meta, strides, paddings, dilations, groups):
        return _of_rank(FILTER_GRADS, x)(x, g, as_operand(filter), strides=strides, paddings=paddings,
                                         dilations=dilations, groups=groups)


class _Transposed:
    """x [N, O, *windows], filter [O, C / groups, *kernel] -> [N, C, *size]

    The adjoint of the convolution: every element of x spreads over a window.  `output_padding` < strides says how many
    elements behind the last window there are.
    """

    def infer_meta(what, x, filter, *, strides, paddings, output_padding, dilations, groups):
        _check(what, x, filter, x.shape[1], filter.shape[0], groups)
        sizes = tuple((n - 1) * s - b - a + extent(k, d) + more for n, s, b, a, k, d, more in zip(
            x.shape[2:], strides, paddings[::2], paddings[1::2], filter.shape[2:], dilations, output_padding,
            strict=True))
        return Meta((x.shape[0], filter.shape[1] * groups, *sizes), x.dtype)

    def kernel(xp, x, filter, **attrs):
        common_dtype("conv_transpose", x, filter)
        out = xp.empty(_Transposed.infer_meta("conv_transpose", x, filter, **attrs).shape, x.dtype)
        _spread(xp, out, x, filter, attrs["strides"], attrs["paddings"], attrs["dilations"], attrs["groups"])
        return out

    def kernel_out(xp, out, x, filter, *, strides, paddings, output_padding, dilations, groups):
        _spread(xp, out, x, filter, strides, paddings, dilations, groups)

    def vjp_x(g, filter, strides, paddings, dilations, groups):
        return _of_rank(CONVOLUTIONS, g)(g, filter, strides=strides, paddings=paddings, dilations=dilations,
                                         groups=groups)

    def vjp_filter(g, x, filter: Meta, strides, paddings, dilations, groups):
        return _of_rank(FILTER_GRADS, g)(g, x, as_operand(filter), strides=strides, paddings=paddings,
                                         dilations=dilations, groups=groups)


class _FilterGrad:
    """x [N, C, *size], g [N, O, *windows] -> like [O, C / groups, *kernel], summed over images and windows"""

    def infer_meta(x: Any, g, like: Meta, *, strides, paddings, dilations, groups):
        return Meta(like.shape, x.dtype)

    def kernel(xp, x, g, like, *, strides, paddings, dilations, groups):
        out = xp.empty(like.shape, x.dtype)
        _correlate(xp, out, x, g, strides, paddings, dilations, groups)
        return out

    def kernel_out(xp, out, x, g, like, *, strides, paddings, dilations, groups):
        _correlate(xp, out, x, g, strides, paddings, dilations, groups)

    def vjp_x(gg: Any, x: Meta, g, strides, paddings, dilations, groups):
        return transposed(g, gg, rests(x, gg.payload, strides, paddings, dilations), strides=strides,
                          paddings=paddings, dilations=dilations, groups=groups)

    def vjp_g(gg, x, strides, paddings, dilations, groups):
        return _of_rank(CONVOLUTIONS, x)(x, gg, strides=strides, paddings=paddings, dilations=dilations, groups=groups)


@op("conv2d")
class Conv2d(_Convolution):
    """out[n, o] = sum over c of x[n, c] correlated with filter[o, c]: x [N, C, H, W], filter [O, C / groups, h, w]."""


@op("conv3d")
class Conv3d(_Convolution):
    """conv2d in three spatial dimensions: x [N, C, D, H, W], filter [O, C / groups, d, h, w]."""


@op("conv2d_transpose")
class Conv2dTranspose(_Transposed):
    """The adjoint of conv2d: x [N, O, H, W], filter [O, C / groups, h, w] -> [N, C, H', W']."""


@op("conv3d_transpose")
class Conv3dTranspose(_Transposed):
    """The adjoint of conv3d: x [N, O, D, H, W], filter [O, C / groups, d, h, w] -> [N, C, D', H', W']."""


@op("conv2d_filter_grad")
class Conv2dFilterGrad(_FilterGrad):
    """The gradient of conv2d with respect to its filter, in the shape of `like`."""


@op("conv3d_filter_grad")
class Conv3dFilterGrad(_FilterGrad):
    """The gradient of conv3d with respect to its filter, in the shape of `like`."""


CONVOLUTIONS, TRANSPOSED, FILTER_GRADS = ({2: a, 3: b} for a, b in (
    (Conv2d, Conv3d), (Conv2dTranspose, Conv3dTranspose), (Conv2dFilterGrad, Conv3dFilterGrad)))


def _of_rank(rows: dict, x: Any) -> Any:
    """The row for as many spatial dimensions as x has."""
    return rows[len(x.payload.shape) - 2]


def transposed(x: Tensor, filter: Tensor, output_padding: tuple, **attrs: Any) -> Tensor:
    """The transposed convolution of any rank."""
    return _of_rank(TRANSPOSED, x)(x, filter, output_padding=output_padding, **attrs)


# ---------------------------------------------------------------------------------------------------- kernels
def _convolve(xp: Any, out: Any, x: Any, filter: Any, strides: tuple, paddings: tuple, dilations: tuple,
              groups: int) -> None:
    convolve_into(xp, out, x, filter, strides, paddings, dilations, groups)


def convolve_into(xp: Any, out: Any, x: Any, filter: Any, strides: tuple, paddings: tuple, dilations: tuple,
                  groups: int, finish: Callable[[slice, Any, Any], None] | None = None) -> None:
    """finish(some, rows, flat): told of each few images as they come, `rows` [images, O, *windows] and, in order of
    memory, `flat` [O, images * windows], the same numbers, which it may change.

    A single image is computed where it belongs; several are columns of one product, and then moved there.
    """
    outputs, kernel, sizes = filter.shape[0], filter.shape[2:], out.shape[2:]
    weights = filter.reshape(groups, outputs // groups, prod(filter.shape[1:]))
    for some in batches(x.shape[0], window_bytes(x.shape[1], kernel, sizes, x.itemsize)):
        windows = columns(xp, padded(xp, x[some], paddings), kernel, sizes, strides, dilations)
        n = windows.shape[-1 - len(sizes)]
        windows = windows.reshape(groups, weights.shape[2], n * prod(sizes))
        if n == 1 and out.flags.c_contiguous:
            rows = out[some]
            made = rows.reshape(groups, outputs // groups, prod(sizes))
            xp.matmul(weights, windows, out=made)
        else:
            made = xp.matmul(weights, windows)
            rows = made.reshape(outputs, n, *sizes).swapaxes(0, 1)
        if finish is not None:
            finish(some, rows, made.reshape(outputs, n * prod(sizes)))
        if n != 1 or not out.flags.c_contiguous:
            out[some] = rows


def _spread(xp: Any, out: Any, x: Any, filter: Any, strides: tuple, paddings: tuple, dilations: tuple,
            groups: int) -> None:
    inputs, kernel, sizes = filter.shape[0], filter.shape[2:], x.shape[2:]
    weights = filter.reshape(groups, inputs // groups, prod(filter.shape[1:])).swapaxes(1, 2)
    for some in batches(x.shape[0], window_bytes(out.shape[1], kernel, sizes, x.itemsize)):
        rows = x[some].swapaxes(0, 1)
        n = rows.shape[1]
        windows = xp.matmul(weights, rows.reshape(groups, inputs // groups, n * prod(sizes)))
        add_columns(xp, out[some], windows.reshape(out.shape[1], *kernel, n, *sizes), paddings, strides, dilations)


def _correlate(xp: Any, out: Any, x: Any, g: Any, strides: tuple, paddings: tuple, dilations: tuple,
               groups: int) -> None:
    outputs, kernel, sizes = out.shape[0], out.shape[2:], g.shape[2:]
    total = xp.zeros((groups, outputs // groups, prod(out.shape[1:])), x.dtype)
    for some in batches(x.shape[0], window_bytes(x.shape[1], kernel, sizes, x.itemsize)):
        windows = columns(xp, padded(xp, x[some], paddings), kernel, sizes, strides, dilations)
        n = windows.shape[-1 - len(sizes)]
        windows = windows.reshape(groups, total.shape[2], n * prod(sizes))
        rows = g[some].swapaxes(0, 1).reshape(groups, outputs // groups, n * prod(sizes))
        total += xp.matmul(rows, windows.swapaxes(1, 2))
    out[...] = total.reshape(out.shape)


# ----------------------------------------------------------------------------------------------------- shapes
def _check(what: str, x: Any, filter: Any, channels: Any, expected: Any, groups: int) -> None:
    require_floating(what, x)
    common_dtype(what, x, filter)
    if len(x.shape) != len(filter.shape):
        raise ValueError(f"{what}: expected a filter of {len(x.shape)} dimensions for x {describe(x)}, got "
                         f"{describe(filter)}")
    if not agree(channels, expected, f"{what}: channels"):
        raise ValueError(f"{what}: expected x of {expected} channels for a filter {describe(filter)} with groups="
                         f"{groups}, got x {describe(x)}, channels first")
    exact_div(filter.shape[0], groups, f"{what}: the first size of filter {describe(filter)} in {groups} groups")


def _counts(what: str, x: Any, filter: Any, strides: tuple, paddings: tuple, dilations: tuple) -> tuple:
    """How many windows there are along each spatial dimension."""
    return counts(what, x.shape[2:], tuple(map(extent, filter.shape[2:], dilations)), strides, paddings)


def rests(x: Any, filter: Any, strides: tuple, paddings: tuple, dilations: tuple) -> tuple:
    """How many elements of x, or of the padding behind it, the last window leaves over: the transposed convolution must
    be told, to give x's size back."""
    return tuple(modulo(n + b + a - extent(k, d), s) if s > 1 else 0 for n, b, a, k, d, s in zip(
        x.shape[2:], paddings[::2], paddings[1::2], filter.shape[2:], dilations, strides, strict=True))


# ------------------------------------------------------------------------------------------- public functions
def conv1d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1, data_format: str = "NCL", name: str | None = None) -> Tensor:
    """Each output channel: windows of length L along x, times its filter, summed; plus its bias.

    x [N, C, L] ("NLC": [N, L, C]), weight [O, C / groups, l], bias [O] -> [N, O, L'].  padding: an int, a pair, pairs
    of all dimensions, "SAME" or "VALID".
    Raises: ValueError for sizes that do not fit, TypeError for operands that are not of one floating dtype.

    >>> from minipd.ops.creation import to_tensor
    >>> conv1d(to_tensor([[[1.0, 2.0, 3.0]]]), to_tensor([[[1.0, -1.0]]])).tolist()
    [[[-1.0, -1.0]]]
    """
    return convolve("conv1d", 1, x, weight, bias, stride, padding, dilation, groups, data_format)


def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Each output channel: h x w windows of all channels of its group, times its filter, summed; plus its bias.

    x [N, C, H, W] ("NHWC": channels last), weight [O, C / groups, h, w], bias [O] -> [N, O, H', W'] with
    H' = (H + padding - dilation * (h - 1) - 1) // stride + 1.  stride, dilation: an int, or one for each dimension.
    padding: also [top, bottom, left, right], pairs of all dimensions, "SAME" (H' = ceil(H / stride)) or "VALID" (none).
    (Paddle ignores the dilation where padding is "SAME"; here it counts.)
    Raises: ValueError for sizes that do not fit, TypeError for operands that are not of one floating dtype.

    >>> from minipd.ops.creation import ones
    >>> conv2d(ones([1, 2, 3, 3]), ones([1, 2, 3, 3]), padding=1).tolist()
    [[[[8.0, 12.0, 8.0], [12.0, 18.0, 12.0], [8.0, 12.0, 8.0]]]]
    """
    return convolve("conv2d", 2, x, weight, bias, stride, padding, dilation, groups, data_format)


def conv3d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1, data_format: str = "NCDHW", name: str | None = None) -> Tensor:
    """conv2d in three spatial dimensions: x [N, C, D, H, W] ("NDHWC": channels last), weight [O, C / groups, d, h, w].

    >>> from minipd.ops.creation import ones
    >>> conv3d(ones([1, 1, 3, 3, 3]), ones([1, 1, 2, 2, 2]), stride=2).tolist()
    [[[[[8.0]]]]]
    """
    return convolve("conv3d", 3, x, weight, bias, stride, padding, dilation, groups, data_format)


def convolve(what: str, n: int, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
             dilation: Any, groups: int, data_format: str) -> Tensor:
    """The convolution over n spatial dimensions, from what a user may write."""
    last, strides, dilations, groups = arguments(what, n, x, weight, stride, dilation, groups, data_format)
    x = first(x, last)
    reach = tuple(map(extent, weight.payload.shape[2:], dilations))
    attrs = dict(strides=strides, paddings=pairs(what, padding, x.payload.shape[2:], reach, strides, last),
                 dilations=dilations, groups=groups)
    if n == 1:
        out = Conv2d(x.unsqueeze(2), weight.unsqueeze(2), **with_a_dimension(attrs)).squeeze(2)
    else:
        out = CONVOLUTIONS[n](x, weight, **attrs)
    return finished(what, out, bias, last)


def arguments(what: str, n: int, x: Tensor, weight: Tensor, stride: Any, dilation: Any, groups: int,
              data_format: str) -> tuple[bool, tuple, tuple, int]:
    """(channels last, strides, dilations, groups), after checking what can be said of them and of the operands."""
    if not isinstance(x, Tensor) or not isinstance(weight, Tensor):
        raise TypeError(f"{what}: expected Tensors x and weight, got {type(x).__name__} and {type(weight).__name__}")
    require_floating(what, x.payload)
    spatial(what, x, n)
    if weight.ndim != n + 2:
        raise ValueError(f"{what}: expected a weight of {n + 2} dimensions, got {describe(weight.payload)}")
    (groups,) = per_axis(what, "groups", ints(what, "groups", groups), 1)
    return (channels_last(what, data_format, n), per_axis(what, "stride", stride, n),
            per_axis(what, "dilation", dilation, n), groups)


def with_a_dimension(attrs: dict) -> dict:
    """The attributes of a one-dimensional window for the same with a first dimension of size 1."""
    nothing = {"strides": (1,), "dilations": (1,), "paddings": (0, 0), "output_padding": (0,)}
    return {k: nothing.get(k, ()) + v if k in nothing else v for k, v in attrs.items()}


def finished(what: str, out: Tensor, bias: Tensor | None, last: bool) -> Tensor:
    """With the bias of each channel, in the format of the input."""
    if bias is not None:
        if tuple(bias.payload.shape) != (channels := out.payload.shape[1],) and bias.payload.shape != (1,):
            raise ValueError(f"{what}: expected a bias of shape [{channels}], one for each output channel, got "
                             f"{describe(bias.payload)}")
        out = out + bias.reshape([1, -1, *[1] * (out.ndim - 2)])
    return back(out, last)
