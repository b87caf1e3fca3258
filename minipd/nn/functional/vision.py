"""Images rearranged: pixels and channels shuffled, windows as columns, a shift through time."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import exact_div
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops.fold import Fold, Unfold
from minipd.ops.geometry import back, channels_last, first, ints, per_axis, spatial
from minipd.ops.joining import concat
from minipd.ops.padding import Pad
from minipd.ops.reshape import transpose
from minipd.ops.slicing import take_part

__all__ = ["channel_shuffle", "fold", "pixel_shuffle", "pixel_unshuffle", "temporal_shift", "unfold"]


def _image(what: str, x: Tensor, data_format: str) -> tuple[Tensor, bool]:
    """(x [N, C, H, W], whether its channels came last)"""
    spatial(what, x, 2)
    last = channels_last(what, data_format, 2)
    return first(x, last), last


@whole
def pixel_shuffle(x: Tensor, upscale_factor: int, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Channels become pixels: x [N, C r^2, H, W] -> [N, C, H r, W r] with r = upscale_factor.

    Raises: ValueError if r^2 does not divide the channels.

    >>> from minipd.ops.creation import arange
    >>> pixel_shuffle(arange(4.0).reshape([1, 4, 1, 1]), 2).tolist()
    [[[[0.0, 1.0], [2.0, 3.0]]]]
    """
    (r,) = per_axis("pixel_shuffle", "upscale_factor", upscale_factor, 1)
    x, last = _image("pixel_shuffle", x, data_format)
    n, c, h, w = x.payload.shape
    c = exact_div(c, r * r, f"pixel_shuffle: the channels of x {describe(x.payload)}, channels first")
    x = transpose(x.reshape((n, c, r, r, h, w)), (0, 1, 4, 2, 5, 3))
    return back(x.reshape((n, c, h * r, w * r)), last)


@whole
def pixel_unshuffle(x: Tensor, downscale_factor: int, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Pixels become channels, the opposite of pixel_shuffle: x [N, C, H r, W r] -> [N, C r^2, H, W].

    Raises: ValueError if r = downscale_factor does not divide the sizes.
    """
    (r,) = per_axis("pixel_unshuffle", "downscale_factor", downscale_factor, 1)
    x, last = _image("pixel_unshuffle", x, data_format)
    n, c, h, w = x.payload.shape
    h, w = (exact_div(size, r, f"pixel_unshuffle: a size of x {describe(x.payload)}") for size in (h, w))
    x = transpose(x.reshape((n, c, h, r, w, r)), (0, 1, 3, 5, 2, 4))
    return back(x.reshape((n, c * r * r, h, w)), last)


@whole
def channel_shuffle(x: Tensor, groups: int, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """The first channel of every group, then the second of every group, ...: x [N, C, H, W].

    Raises: ValueError if `groups` does not divide the channels.

    >>> from minipd.ops.creation import arange
    >>> channel_shuffle(arange(6.0).reshape([1, 6, 1, 1]), 3).flatten().tolist()
    [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]
    """
    (groups,) = per_axis("channel_shuffle", "groups", groups, 1)
    x, last = _image("channel_shuffle", x, data_format)
    n, c, h, w = x.payload.shape
    each = exact_div(c, groups, f"channel_shuffle: the channels of x {describe(x.payload)}, channels first")
    x = transpose(x.reshape((n, groups, each, h, w)), (0, 2, 1, 3, 4))
    return back(x.reshape((n, c, h, w)), last)


def temporal_shift(x: Tensor, seg_num: int, shift_ratio: float = 0.25, name: str | None = None,
                   data_format: str = "NCHW") -> Tensor:
    """Some channels of every frame come from the frame before, some from the one after.   (Lin et al. 2019, TSM)

    x [N T, C, H, W], T = seg_num frames of each video.  The first C * shift_ratio channels are those of the frame
    before, the next as many those of the frame after, zeros where there is no such frame; the rest stay.
    Raises: ValueError for a shift_ratio outside of [0, 0.5], or a number of frames that T does not divide.
    """
    if not 0 <= shift_ratio <= 0.5:
        raise ValueError(f"temporal_shift: expected a shift_ratio between 0 and 0.5, got {shift_ratio!r}")
    (frames,) = per_axis("temporal_shift", "seg_num", seg_num, 1)
    x, last = _image("temporal_shift", x, data_format)
    shape = n, c, h, w = x.payload.shape
    videos = exact_div(n, frames, f"temporal_shift: the frames of x {describe(x.payload)}")
    x = x.reshape((videos, frames, c, h, w))
    one, two = int(c * shift_ratio), int(c * 2 * shift_ratio)

    def channels(start: int, end: int, shift: int) -> Tensor:
        """These channels, `shift` frames later."""
        part = take_part(x, [1, 2], [(max(-shift, 0), frames - max(shift, 0), 1), (start, end, 1)])
        return Pad(part, paddings=(0, 0, max(shift, 0), max(-shift, 0), 0, 0, 0, 0, 0, 0)) if shift else part

    parts = [channels(0, one, 1), channels(one, two, -1), channels(two, c, 0)]
    return back(concat(parts, 2).reshape(shape), last)


def unfold(x: Tensor, kernel_sizes: Any, strides: Any = 1, paddings: Any = 0, dilations: Any = 1,
           name: str | None = None) -> Tensor:
    """Every window of an image as a column: x [N, C, H, W] -> [N, C h w, L], L windows in row-major order.   (im2col)

    paddings: an int, [height, width], or [top, left, bottom, right].
    Raises: ValueError for a window larger than the padded image.

    >>> from minipd.ops.creation import arange
    >>> unfold(arange(6.0).reshape([1, 1, 2, 3]), 2).tolist()
    [[[0.0, 1.0], [1.0, 2.0], [3.0, 4.0], [4.0, 5.0]]]
    """
    spatial("unfold", x, 2)
    return Unfold(x, **_windows("unfold", kernel_sizes, strides, paddings, dilations))


def fold(x: Tensor, output_sizes: Any, kernel_sizes: Any, strides: Any = 1, paddings: Any = 0, dilations: Any = 1,
         name: str | None = None) -> Tensor:
    """Columns added up where unfold takes its windows from: x [N, C h w, L] -> [N, C, *output_sizes].   (col2im)

    Raises: ValueError if L is not the number of windows of such an image, or h w does not divide the channels.

    >>> from minipd.ops.creation import ones
    >>> fold(ones([1, 4, 2]), [2, 3], 2).tolist()
    [[[[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]]]
    """
    if x.ndim != 3:
        raise ValueError(f"fold: expected x [N, C h w, L], got {describe(x.payload)}")
    return Fold(x, output_sizes=per_axis("fold", "output_sizes", output_sizes, 2),
                **_windows("fold", kernel_sizes, strides, paddings, dilations))


def _windows(what: str, kernel_sizes: Any, strides: Any, paddings: Any, dilations: Any) -> dict:
    given = ints(what, "paddings", paddings)
    if len(given) == 4:
        top, left, bottom, right = given
    else:
        top, left = bottom, right = per_axis(what, "paddings", paddings, 2, least=0)
    if min(top, left, bottom, right) < 0:
        raise ValueError(f"{what}: expected paddings of at least 0, got {paddings!r}")
    return dict(kernel_sizes=per_axis(what, "kernel_sizes", kernel_sizes, 2),
                strides=per_axis(what, "strides", strides, 2), paddings=(top, bottom, left, right),
                dilations=per_axis(what, "dilations", dilations, 2))
