"""Images seen through a grid of coordinates: what spatial transformers compute.   (Jaderberg et al. 2015)

Coordinates run from -1 to 1 across the image, x (along its last dimension) first.  With align_corners -1 and 1 are the
centres of the outermost elements, else their outer edges.
"""

from __future__ import annotations

import itertools
from typing import Any

from minipd.framework.dim import prod, same
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.creation import arange, ones_like
from minipd.ops.embedding import TakeAlongAxis
from minipd.ops.geometry import ints
from minipd.ops.joining import stack
from minipd.ops.linalg import matmul
from minipd.ops.math import abs, maximum, minimum, where
from minipd.ops.reshape import transpose
from minipd.ops.rounding import floor, round

__all__ = ["affine_grid", "grid_sample"]


def affine_grid(theta: Tensor, out_shape: Any, align_corners: bool = True, name: str | None = None) -> Tensor:
    """Where each element of an image comes from under an affine map: theta [N, 2, 3], out_shape [N, C, H, W] ->
    coordinates [N, H, W, 2]; or [N, 3, 4], [N, C, D, H, W] -> [N, D, H, W, 3].

    Raises: ValueError for a theta or out_shape of other sizes.

    >>> from minipd.ops.creation import to_tensor
    >>> affine_grid(to_tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]]]), [1, 1, 1, 2]).tolist()
    [[[[-1.0, 0.5], [1.0, 0.5]]]]
    """
    shape = ints("affine_grid", "out_shape", out_shape)
    n = len(shape) - 2
    if n not in (2, 3) or theta.ndim != 3 or tuple(theta.payload.shape[1:]) != (n, n + 1):
        raise ValueError(f"affine_grid: expected theta [N, 2, 3] for out_shape [N, C, H, W], or [N, 3, 4] for "
                         f"[N, C, D, H, W], got {describe(theta.payload)} for {list(shape)}")
    axes = [_coordinates(size, align_corners, theta).reshape([-1 if i == axis else 1 for i in range(n)])
            for axis, size in enumerate(shape[2:])]
    axes = [a.expand(shape[2:]) for a in reversed(axes)]                    # x first
    base = stack([*axes, ones_like(axes[0])], -1).reshape([1, prod(shape[2:]), n + 1])
    return matmul(base, transpose(theta, (0, 2, 1))).reshape([theta.payload.shape[0], *shape[2:], n])


def _coordinates(size: int, align_corners: bool, like: Tensor) -> Tensor:
    """The coordinates of `size` elements; of a single one 0."""
    odd = arange(1 - size, size, 2, dtype=like.dtype)                       # 2 i + 1 - size
    return odd / float(max(size - 1, 1) if align_corners else size)


def grid_sample(x: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool = True, name: str | None = None) -> Tensor:
    """The image x at the coordinates `grid`: x [N, C, H, W], grid [N, H', W', 2] -> [N, C, H', W']; or
    x [N, C, D, H, W], grid [N, D', H', W', 3] -> [N, C, D', H', W'].

    mode: "bilinear" (of 3-D images trilinear) or "nearest" (halves to the even one).  Outside of the image there are
    zeros, or the edge (padding_mode "border"), or its mirror images ("reflection").
    Raises: ValueError for other modes, or a grid that does not fit x.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([[[[1.0, 3.0]]]])
    >>> grid_sample(x, to_tensor([[[[-1.0, 0.0], [0.0, 0.0], [2.0, 0.0]]]])).tolist()
    [[[[1.0, 2.0, 1.5]]]]
    """
    for what, value, of in (("mode", mode, ("bilinear", "nearest")),
                            ("padding_mode", padding_mode, ("zeros", "border", "reflection"))):
        if value not in of:
            raise ValueError(f"grid_sample: expected {what} {', '.join(map(repr, of))}, got {value!r}")
    n = x.ndim - 2
    if n not in (2, 3) or grid.ndim != n + 2 or not same(grid.payload.shape[-1], n) or not same(
            grid.payload.shape[0], x.payload.shape[0]):
        raise ValueError(f"grid_sample: expected x [N, C, H, W] with grid [N, H', W', 2], or x [N, C, D, H, W] with "
                         f"grid [N, D', H', W', 3], got {describe(x.payload)} with {describe(grid.payload)}")
    sizes = x.payload.shape[2:]
    # where the coordinates are in each dimension of the image, in elements
    at = [_position(grid[..., n - 1 - axis], size, padding_mode, align_corners) for axis, size in enumerate(sizes)]
    if mode == "nearest":
        return _elements(x, [round(p) for p in at])
    low = [floor(p) for p in at]
    total: Any = None
    for corner in itertools.product((0, 1), repeat=n):
        weight: Any = 1.0
        for p, start, up in zip(at, low, corner, strict=True):
            above = p - start
            weight = weight * (above if up else 1.0 - above)
        part = _elements(x, [start + float(up) for start, up in zip(low, corner, strict=True)]) * weight.unsqueeze(1)
        total = part if total is None else total + part
    return total


def _position(g: Tensor, size: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Coordinates as positions in elements, brought into the image unless there are zeros around it."""
    at = (g + 1.0) * ((size - 1) / 2) if align_corners else ((g + 1.0) * float(size) - 1.0) * 0.5
    if padding_mode == "reflection":
        edge, period = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
        if not period:
            return at * 0.0
        away = abs(at - edge)
        folds = floor(away * (1 / period))
        rest = away - folds * period
        odd = folds - floor(folds * 0.5) * 2.0
        at = rest + odd * (period - rest * 2.0) + edge
    if padding_mode != "zeros":
        at = minimum(maximum(at, 0.0), float(size - 1))
    return at


def _elements(x: Tensor, places: list[Tensor]) -> Tensor:
    """x [N, C, *spatial] at whole positions [N, *out] in each spatial dimension -> [N, C, *out]; 0 outside of x."""
    sizes = x.payload.shape[2:]
    index: Any = None
    inside: Any = None
    for place, size in zip(places, sizes, strict=True):
        after = place >= 0.0                            # also not NaN
        here = cast(after, x.dtype) * cast(place <= float(size - 1), x.dtype)
        inside = here if inside is None else inside * here
        whole = cast(where(after, minimum(place, float(size - 1)), 0.0), "int64")
        index = whole if index is None else index * size + whole
    (n, c), out = x.payload.shape[:2], index.payload.shape[1:]
    flat = index.reshape((n, 1, prod(out))).expand((n, c, prod(out)))
    found = TakeAlongAxis(x.reshape((n, c, prod(sizes))), flat, axis=2).reshape((n, c, *out))
    return found * inside.unsqueeze(1)
