"""Pooling to a size that is asked for: windows of equal shares, or of irregular ones."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Tensor
from minipd.ops.geometry import per_axis, spatial
from minipd.ops.pooling import FRACTIONAL, MAX_POOLS, adaptive_avg_pool1d, average_to, kept
from minipd.ops.random import uniform

__all__ = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
           "adaptive_max_pool2d", "adaptive_max_pool3d", "fractional_max_pool2d", "fractional_max_pool3d"]


def adaptive_avg_pool2d(x: Tensor, output_size: Any, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """The averages of H' x W' windows of (nearly) equal size: x [N, C, H, W] ("NHWC": channels last).

    output_size: [H', W'], or one int for both; None keeps a dimension.  Window i of a dimension of size n reaches from
    floor(i n / n') to ceil((i + 1) n / n').
    Raises: ValueError for an output_size below 1, or an empty image.

    >>> from minipd.ops.creation import arange
    >>> adaptive_avg_pool2d(arange(6.0).reshape([1, 1, 2, 3]), [1, 2]).tolist()
    [[[[2.0, 3.0]]]]
    """
    return average_to("adaptive_avg_pool2d", 2, x, output_size, data_format)


def adaptive_avg_pool3d(x: Tensor, output_size: Any, data_format: str = "NCDHW", name: str | None = None) -> Tensor:
    """adaptive_avg_pool2d in three spatial dimensions."""
    return average_to("adaptive_avg_pool3d", 3, x, output_size, data_format)


def adaptive_max_pool1d(x: Tensor, output_size: Any, return_mask: bool = False, name: str | None = None) -> Any:
    """The largest element of each of L' windows of (nearly) equal size: x [N, C, L].  See adaptive_max_pool2d."""
    return _max_to("adaptive_max_pool1d", 1, x, output_size, return_mask)


def adaptive_max_pool2d(x: Tensor, output_size: Any, return_mask: bool = False, name: str | None = None) -> Any:
    """The largest element of each of H' x W' windows, those of adaptive_avg_pool2d: x [N, C, H, W].

    return_mask: (result, positions): int32, row-major in [H, W], of the first of equal ones.

    >>> from minipd.ops.creation import arange
    >>> adaptive_max_pool2d(arange(6.0).reshape([1, 1, 2, 3]), [1, 2]).tolist()
    [[[[4.0, 5.0]]]]
    """
    return _max_to("adaptive_max_pool2d", 2, x, output_size, return_mask)


def adaptive_max_pool3d(x: Tensor, output_size: Any, return_mask: bool = False, name: str | None = None) -> Any:
    """adaptive_max_pool2d in three spatial dimensions."""
    return _max_to("adaptive_max_pool3d", 3, x, output_size, return_mask)


def _max_to(what: str, n: int, x: Tensor, output_size: Any, return_mask: bool) -> Any:
    spatial(what, x, n)
    sizes = kept(what, output_size, x, n)
    if n == 1:
        x, sizes = x.unsqueeze(2), (1, *sizes)
    ones = (1,) * len(sizes)
    out, mask = MAX_POOLS[len(sizes)](x, kernel_size=sizes, strides=ones, paddings=(0, 0) * len(sizes), adaptive=True)
    if n == 1:
        out, mask = out.squeeze(2), mask.squeeze(2)
    return (out, mask) if return_mask else out


def fractional_max_pool2d(x: Tensor, output_size: Any, kernel_size: Any = None, random_u: float | None = None,
                          return_mask: bool = False, name: str | None = None) -> Any:
    """The largest element of each of H' x W' windows of irregular places: x [N, C, H, W].   (Graham 2014)

    output_size: [H', W'], or one int for both; None keeps a dimension.  kernel_size: of a window; None: they share out
    the image.  random_u in (0, 1) selects the windows; drawn anew for each call unless given.
    Raises: ValueError for another random_u, or windows that do not fit; TypeError while tracing without random_u.

    >>> from minipd.ops.creation import arange
    >>> fractional_max_pool2d(arange(7.0).reshape([1, 1, 1, 7]), [1, 5], random_u=0.3).tolist()
    [[[[0.0, 2.0, 3.0, 5.0, 6.0]]]]
    """
    return _fractional("fractional_max_pool2d", 2, x, output_size, kernel_size, random_u, return_mask)


def fractional_max_pool3d(x: Tensor, output_size: Any, kernel_size: Any = None, random_u: float | None = None,
                          return_mask: bool = False, name: str | None = None) -> Any:
    """fractional_max_pool2d in three spatial dimensions."""
    return _fractional("fractional_max_pool3d", 3, x, output_size, kernel_size, random_u, return_mask)


def _fractional(what: str, n: int, x: Tensor, output_size: Any, kernel_size: Any, random_u: Any,
                return_mask: bool) -> Any:
    spatial(what, x, n)
    sizes = kept(what, output_size, x, n)
    kernel = (0,) * n if kernel_size is None else per_axis(what, "kernel_size", kernel_size, n)
    for size, k, of_x in zip(sizes, kernel, x.payload.shape[2:], strict=True):
        if max(size, k) > of_x:
            raise ValueError(f"{what}: expected output_size and kernel_size within x's {list(x.shape[2:])}, got "
                             f"{output_size!r} and {kernel_size!r}")
    if random_u is None:
        random_u = uniform([1], "float32", 1e-6, 1.0).item()
    if not 0 < random_u < 1:
        raise ValueError(f"{what}: expected random_u between 0 and 1, got {random_u!r}")
    out, mask = FRACTIONAL[n](x, output_size=sizes, kernel_size=kernel, random_u=float(random_u))
    return (out, mask) if return_mask else out
