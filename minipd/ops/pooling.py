"""Pooling: every window of an image folded to one number.

One implementation for any number of spatial dimensions, for sliding, adaptive and fractional windows (see `bins`).
Rows are Paddle's, of two and three dimensions; one dimension is two of which the first has size 1.  Where we differ:
Paddle's pool2d also takes maxima; here those come with their positions, which the gradient needs anyhow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.dim import is_symbolic, prod
from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops import bins as binning
from minipd.ops.broadcast import as_operand
from minipd.ops.cast import cast
from minipd.ops.embedding import TakeAlongAxisGrad
from minipd.ops.geometry import back, channels_last, counts, first, per_axis, spatial
from minipd.ops.shapes import require_floating

__all__ = ["adaptive_avg_pool1d"]

INT32 = np.dtype("int32")


# ---------------------------------------------------------------------------------------------------- windows
def _sizes(what: str, shape: tuple, kernel_size: tuple, strides: tuple, paddings: tuple, ceil_mode: bool,
           adaptive: bool) -> tuple:
    """The spatial sizes of the result.  Adaptive: `kernel_size` is those."""
    if adaptive:
        _not_empty(what, shape)
        return kernel_size
    return counts(what, shape[2:], kernel_size, strides, paddings, ceil_mode)


def _not_empty(what: str, shape: tuple) -> None:
    if any(not is_symbolic(n) and n == 0 for n in shape[2:]):
        raise ValueError(f"{what}: expected spatial dimensions of at least one element, got shape {list(shape)}")


def _bins(shape: tuple, kernel_size: tuple, strides: tuple, paddings: tuple, ceil_mode: bool,
          adaptive: bool) -> tuple:
    """The bins of each spatial dimension."""
    if adaptive:
        return tuple(map(binning.adaptive, shape[2:], kernel_size))
    return tuple(binning.sliding(n, k, s, b, a, ceil_mode) for n, k, s, b, a in zip(
        shape[2:], kernel_size, strides, paddings[::2], paddings[1::2], strict=True))


# ------------------------------------------------------------------------------------------- sums and averages
class _Pool:
    """x [N, C, *size] -> [N, C, *windows]"""

    traits = (Trait.ALLOCATES,)

    def infer_meta(what, x, *, kernel_size, strides, paddings, ceil_mode=False, exclusive=True, pooling_type="avg",
                   adaptive=False):
        require_floating(what, x)
        sizes = _sizes(what, x.shape, kernel_size, strides, paddings, ceil_mode, adaptive)
        return Meta((*x.shape[:2], *sizes), x.dtype)

    def kernel(xp, x, *, exclusive=True, pooling_type="avg", **windows):
        bins = _bins(x.shape, *_windows(**windows))
        divisor = _divisor(xp, x.shape, bins, exclusive, pooling_type, windows)
        for axis, of_axis in reversed(list(enumerate(bins, 2))):
            x = binning.sums(xp, x, axis, of_axis)
        return _divided(xp, x, divisor)

    def vjp_x(g, x: Meta, kernel_size, strides, paddings, ceil_mode, exclusive, pooling_type, adaptive):
        return POOL_GRADS[len(kernel_size)](g, as_operand(x), kernel_size=kernel_size, strides=strides,
                                            paddings=paddings, ceil_mode=ceil_mode, exclusive=exclusive,
                                            pooling_type=pooling_type, adaptive=adaptive)


class _PoolGrad:
    """g [N, C, *windows] -> [N, C, *size]: each window's gradient shared among its elements"""

    traits = (Trait.ALLOCATES,)

    def infer_meta(g: Any, like: Meta, *, kernel_size, strides, paddings, ceil_mode=False, exclusive=True,
                   pooling_type="avg", adaptive=False):
        return Meta(like.shape, g.dtype)

    def kernel(xp, g, like, *, exclusive=True, pooling_type="avg", **windows):
        bins = _bins(like.shape, *_windows(**windows))
        g = _divided(xp, g, _divisor(xp, like.shape, bins, exclusive, pooling_type, windows))
        for axis, of_axis in enumerate(bins, 2):
            g = binning.sums(xp, g, axis, binning.transposed(of_axis, like.shape[axis]))
        return g

    def vjp_g(gg, kernel_size, strides, paddings, ceil_mode, exclusive, pooling_type, adaptive):
        return POOLS[len(kernel_size)](gg, kernel_size=kernel_size, strides=strides, paddings=paddings,
                                       ceil_mode=ceil_mode, exclusive=exclusive, pooling_type=pooling_type,
                                       adaptive=adaptive)


def _windows(kernel_size: tuple, strides: tuple, paddings: tuple, ceil_mode: bool = False,
             adaptive: bool = False) -> tuple:
    return kernel_size, strides, paddings, ceil_mode, adaptive


def _divisor(xp: Any, shape: tuple, bins: tuple, exclusive: bool, pooling_type: str, windows: dict) -> Any:
    """What the sum of each window of images of `shape` is divided by: its number of elements, where not `exclusive`
    with the padding's."""
    if pooling_type == "sum":
        return 1
    kernel, strides, paddings, ceil, adaptive = _windows(**windows)
    if exclusive or adaptive:
        have = tuple(map(binning.lengths, bins))
    else:
        have = tuple(binning.padded_lengths(n, k, s, b, a, ceil) for n, k, s, b, a in zip(
            shape[2:], kernel, strides, paddings[::2], paddings[1::2], strict=True))
    product: Any = 1
    for axis, of_axis in enumerate(have, 2):
        same = len(set(of_axis)) == 1
        product = product * (of_axis[0] if same else binning.along(xp, of_axis, len(shape), axis))
    return product


def _divided(xp: Any, x: Any, divisor: Any) -> Any:
    if isinstance(divisor, int) and divisor == 1:
        return x
    with xp.errstate(divide="ignore", invalid="ignore"):        # a window of padding only has no average: NaN
        return x / xp.asarray(divisor, dtype=x.dtype)


@op("pool2d")
class Pool2d(_Pool):
    """The average of every window (pooling_type "sum": the sum): images [N, C, H, W] -> [N, C, H', W'].

    kernel_size: of a window; adaptive: H' and W', each window an equal share.  exclusive: padding does not count.
    """


@op("pool3d")
class Pool3d(_Pool):
    """pool2d in three spatial dimensions."""


@op("pool2d_grad")
class Pool2dGrad(_PoolGrad):
    """The adjoint of pool2d, in the shape of `like`."""


@op("pool3d_grad")
class Pool3dGrad(_PoolGrad):
    """The adjoint of pool3d, in the shape of `like`."""


# ----------------------------------------------------------------------------------------------------- maxima
class _Maxima:
    """x [N, C, *size] -> out and mask [N, C, *windows]; mask: the position in [*size], row-major, int32."""

    traits = (Trait.MULTI, Trait.EXACT, Trait.ALLOCATES)
    outputs = ("out", "mask")


class _MaxPool(_Maxima):
    def infer_meta(what, x, *, kernel_size, strides, paddings, ceil_mode=False, adaptive=False):
        shape = (*x.shape[:2], *_sizes(what, x.shape, kernel_size, strides, paddings, ceil_mode, adaptive))
        return Meta(shape, x.dtype), Meta(shape, INT32)

    def kernel(xp, x, **windows):
        return binning.maxima(xp, x, _bins(x.shape, *_windows(**windows)))

    def vjp_x(gs: Any, mask, x: Meta, kernel_size, strides, paddings, ceil_mode, adaptive):
        empty = not is_symbolic(x.shape) and not all(
            start < end for bins in _bins(x.shape, kernel_size, strides, paddings, ceil_mode, adaptive)
            for start, end in bins)
        return placed(gs[0], mask, x, empty)


class _FractionalMaxPool(_Maxima):
    def infer_meta(what, x, *, output_size, kernel_size, random_u):
        _not_empty(what, x.shape)
        shape = (*x.shape[:2], *output_size)
        return Meta(shape, x.dtype), Meta(shape, INT32)

    def kernel(xp, x, *, output_size, kernel_size, random_u):
        return binning.maxima(xp, x, tuple(binning.fractional(n, m, k, random_u) for n, m, k in zip(
            x.shape[2:], output_size, kernel_size, strict=True)))

    def vjp_x(gs: Any, mask, x: Meta):
        return placed(gs[0], mask, x)


@op("max_pool2d_with_index")
class MaxPool2dWithIndex(_MaxPool):
    """The largest element of every window, the first of equal ones, and where it is: images [N, C, H, W].

    A window of padding only gives the lowest number and position -1.
    """


@op("max_pool3d_with_index")
class MaxPool3dWithIndex(_MaxPool):
    """max_pool2d_with_index in three spatial dimensions."""


@op("fractional_max_pool2d")
class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest element of every one of output_size irregular windows, which random_u selects; and where it is.

    kernel_size: of a window; 0 along a dimension that the windows share out among them.
    """


@op("fractional_max_pool3d")
class FractionalMaxPool3d(_FractionalMaxPool):
    """fractional_max_pool2d in three spatial dimensions."""


POOLS, POOL_GRADS, MAX_POOLS, FRACTIONAL = ({2: a, 3: b} for a, b in (
    (Pool2d, Pool3d), (Pool2dGrad, Pool3dGrad), (MaxPool2dWithIndex, MaxPool3dWithIndex),
    (FractionalMaxPool2d, FractionalMaxPool3d)))


def placed(g: Tensor, mask: Tensor, x: Any, empty: bool = False) -> Tensor:
    """g [N, C, *windows] added up in zeros like x [N, C, *size], at the positions in `mask`.

    empty: some positions are -1, which is nowhere.
    """
    if empty:
        some = mask >= 0
        g, mask = g * cast(some, g.dtype), mask * cast(some, mask.dtype)
    lead, size = x.shape[:2], prod(x.shape[2:])
    flat = TakeAlongAxisGrad(flattened(g), flattened(mask), as_operand(Meta((*lead, size), x.dtype)), axis=2)
    return flat.reshape(x.shape)


def flattened(x: Tensor) -> Tensor:
    """[N, C, *spatial] -> [N, C, all of them]"""
    s = x.payload.shape
    return x.reshape((*s[:2], prod(s[2:])))


# ------------------------------------------------------------------------------------------- public functions
def adaptive_avg_pool1d(x: Tensor, output_size: Any, name: str | None = None) -> Tensor:
    """The averages of L' windows of (nearly) equal size: x [N, C, L] -> [N, C, L'].

    (The other poolings are in `nn.functional`; Paddle has this one among its root's names too.)
    Raises: ValueError for an output_size below 1, or no elements to average.

    >>> from minipd.ops.creation import to_tensor
    >>> adaptive_avg_pool1d(to_tensor([[[1.0, 2.0, 6.0]]]), 2).tolist()
    [[[1.5, 4.0]]]
    """
    return average_to("adaptive_avg_pool1d", 1, x, output_size, "NCL")


def average_to(what: str, n: int, x: Tensor, output_size: Any, data_format: str) -> Tensor:
    """The adaptive average over n spatial dimensions, from what a user may write."""
    require_floating(what, x.payload)
    spatial(what, x, n)
    last = channels_last(what, data_format, n)
    x = first(x, last)
    sizes = kept(what, output_size, x, n)
    if n == 1:
        x, sizes = x.unsqueeze(2), (1, *sizes)
    ones = (1,) * len(sizes)
    out = POOLS[len(sizes)](x, kernel_size=sizes, strides=ones, paddings=(0, 0) * len(sizes), adaptive=True)
    return back(out.squeeze(2) if n == 1 else out, last)


def kept(what: str, output_size: Any, x: Tensor, n: int) -> tuple:
    """The output size of an adaptive pooling of x [N, C, *spatial]: one int for all, or for each an int or None, which
    keeps the size of x."""
    _not_empty(what, x.payload.shape)
    listed = output_size if isinstance(output_size, (list, tuple)) else [output_size]
    listed = list(listed) * (n if len(listed) == 1 else 1)
    if len(listed) != n:
        raise ValueError(f"{what}: expected an output_size of one int, or {n} of them, got {output_size!r}")
    return tuple(size if wanted is None else per_axis(what, "output_size", wanted, 1)[0]
                 for wanted, size in zip(listed, x.payload.shape[2:], strict=True))
