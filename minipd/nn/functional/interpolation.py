"""Images in another size."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from minipd.framework.dim import is_symbolic, same
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops import geometry
from minipd.ops.creation import assign
from minipd.ops.creation import sizes as known_sizes
from minipd.ops.geometry import LARGEST, back, first, ints
from minipd.ops.interpolate import Interp
from minipd.ops.pooling import average_to

__all__ = ["interpolate", "upsample"]

#: W is another name for L
FORMATS = geometry.FORMATS | {1: ("NCW", "NCL", "NWC", "NLC")}
#: mode -> (what it is along each axis, for how many spatial dimensions)
MODES = {"nearest": ("nearest", (1, 2, 3)), "linear": ("linear", (1,)), "bilinear": ("linear", (2,)),
         "trilinear": ("linear", (3,)), "bicubic": ("cubic", (2,)), "area": ("area", (1, 2, 3))}


@whole
def interpolate(x: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool = False, align_mode: int = 0, data_format: str | None = None,
                recompute_scale_factor: bool | None = None, antialias: bool = False,
                name: str | None = None) -> Tensor:
    """x [N, C, *spatial] ("NHWC", ...: channels last) resampled to the spatial sizes `size`, or to scale_factor times
    those it has, rounded down; each an int or number for all of them, or a list.

    mode: "nearest"; "linear" (3-D x), "bilinear" (4-D), "trilinear" (5-D); "bicubic" (4-D); "area" (adaptive averages).
    align_corners: the centres of the corner elements stay where they are; else the corners of the image do.
    align_mode (the linear modes): 0 takes elements as squares, with their values at the centres; 1 takes result i from
    i times the ratio of the sizes.  recompute_scale_factor: that ratio is of the rounded sizes where a
    scale_factor is given.  antialias (linear and bicubic modes): a smaller result weighs all elements, not the nearest.
    (A single result of a bilinear or bicubic map is what lies in the middle; Paddle takes the first element.)
    Raises: ValueError for a mode that does not fit x, or neither or both of size and scale_factor.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([[[1.0, 3.0]]])
    >>> interpolate(x, scale_factor=2).tolist(), interpolate(x, size=[3], mode="linear", align_corners=True).tolist()
    ([[[1.0, 1.0, 3.0, 3.0]]], [[[1.0, 2.0, 3.0]]])
    """
    if mode.lower() not in MODES:
        raise ValueError(f"interpolate: expected mode {', '.join(map(repr, MODES))}, got {mode!r}")
    along_axis, ranks = MODES[mode.lower()]
    n = x.ndim - 2
    if n not in ranks:
        raise ValueError(f"interpolate: expected x of {' or '.join(str(r + 2) for r in ranks)} dimensions for mode "
                         f"{mode!r}, got {describe(x.payload)}")
    if data_format is not None and data_format not in FORMATS[n]:
        raise ValueError(f"interpolate: expected data_format {' or '.join(map(repr, FORMATS[n]))} for x "
                         f"{describe(x.payload)}, got {data_format!r}")
    if align_mode not in (0, 1):
        raise ValueError(f"interpolate: expected align_mode 0 or 1, got {align_mode!r}")
    if align_corners and along_axis in ("nearest", "area"):
        raise ValueError(f"interpolate: expected align_corners=False for mode {mode!r}, which has no corners to align")
    if antialias and along_axis not in ("linear", "cubic"):
        raise ValueError(f"interpolate: expected antialias=False for mode {mode!r}")
    last = data_format is not None and data_format[-1] == "C"
    x = first(x, last)
    sizes, scales = _target(x, n, size, scale_factor, bool(recompute_scale_factor))
    if all(map(same, sizes, x.payload.shape[2:])):
        return back(assign(x), last)
    if along_axis == "area":
        return back(average_to("interpolate", n, x, list(sizes), geometry.FORMATS[n][0]), last)
    for axis, (to, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        x = Interp(x, axis=axis, size=to, mode=along_axis, align_corners=bool(align_corners),
                   align_mode=1 if along_axis == "nearest" else align_mode, scale=scale, antialias=bool(antialias))
    return back(x, last)


def _target(x: Tensor, n: int, size: Any, scale_factor: Any, recompute: bool) -> tuple[tuple, tuple]:
    """(spatial sizes of the result, the factors that give the ratio of coordinates, 0.0 for that of the sizes)"""
    if (size is None) == (scale_factor is None):
        raise ValueError(f"interpolate: expected size or scale_factor, got {'both' if size is not None else 'neither'}")
    own = x.payload.shape[2:]
    if any(not is_symbolic(d) and d == 0 for d in own):
        raise ValueError(f"interpolate: expected spatial dimensions that are not empty, got {describe(x.payload)}")
    if size is not None:
        sizes = _sizes(known_sizes(size))
        sizes, scales = sizes * (n if len(sizes) == 1 else 1), (0.0,) * n
    else:
        listed = scale_factor.tolist() if isinstance(scale_factor, Tensor) else scale_factor
        listed = list(listed) if isinstance(listed, (list, tuple)) else [listed]
        factors = [s.item() if isinstance(s, Tensor) else s for s in listed] * (n if len(listed) == 1 else 1)
        if len(factors) != n or not all(isinstance(s, (int, float)) and s > 0 for s in factors):
            raise ValueError(f"interpolate: expected a scale_factor above 0, or {n} of them, got {scale_factor!r}")
        sizes = tuple(_scaled(d, s) for d, s in zip(own, factors, strict=True))
        scales = (0.0,) * n if recompute else tuple(map(float, factors))
    if len(sizes) != n or any(not is_symbolic(s) and not 1 <= s <= LARGEST for s in sizes):
        raise ValueError(f"interpolate: expected {n} spatial sizes from 1 to {LARGEST} for x {describe(x.payload)}, "
                         f"got {list(sizes)}")
    return sizes, scales


def _sizes(given: Any) -> tuple:
    listed = given if isinstance(given, (list, tuple)) else [given]
    return tuple(d if is_symbolic(d) else ints("interpolate", "size", d)[0] for d in listed)


def _scaled(size: Any, factor: float) -> Any:
    if is_symbolic(size):
        exact = Fraction(factor)
        if exact.denominator > 1 << 16:
            raise ValueError(f"interpolate: expected a scale_factor that is a fraction of small numbers (2, 0.5, 1.25) "
                             f"for a dimension of size {size}, which only the run knows, got {factor!r}; give size "
                             "instead")
        return size * exact.numerator // exact.denominator
    return int(size * factor)


def upsample(x: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
             align_corners: bool = False, align_mode: int = 0, data_format: str | None = None,
             name: str | None = None) -> Tensor:
    """The same as interpolate.

    >>> from minipd.ops.creation import ones
    >>> upsample(ones([1, 1, 2, 2]), size=[3, 4]).shape
    paddle.Size([1, 1, 3, 4])
    """
    return interpolate(x, size, scale_factor, mode, align_corners, align_mode, data_format)
