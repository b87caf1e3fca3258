"""Windows that slide over the spatial dimensions of a tensor: what strides, paddings, dilations and formats mean.

Rows know one form: channels first, [N, C, *spatial]; strides and dilations one int per spatial dimension; paddings
flat, (before, after) of the first spatial dimension, then of the next.  What a user may write instead is brought to
that form here, before dispatch.
"""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import ceil_div, is_symbolic, maximum, require_at_least
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ops.reshape import transpose

__all__: list[str] = []

#: no size, stride or padding is larger: tables of windows are lists, which must end
LARGEST = 1 << 24
FORMATS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
CHANNELS_SECOND = ("NC", *(second for second, _ in FORMATS.values()))
CHANNELS_LAST = tuple(last for _, last in FORMATS.values())


def spatial(what: str, x: Any, n: int) -> None:
    """Raise ValueError unless x is a batch of things with n spatial dimensions."""
    if x.ndim != n + 2:
        raise ValueError(f"{what}: expected x of {n + 2} dimensions, [N, C, {', '.join('DHW'[3 - n:])}] in the order "
                         f"of its data_format, got {describe(x.payload)}; x.unsqueeze(0) makes a batch of one")


def channels_last(what: str, data_format: str, n: int) -> bool:
    """Whether the channels come last.  ValueError for a data_format that is not of n spatial dimensions."""
    if data_format not in FORMATS[n]:
        raise ValueError(f"{what}: expected data_format {' or '.join(map(repr, FORMATS[n]))}, got {data_format!r}")
    return data_format == FORMATS[n][1]


def channel_axis(what: str, x: Tensor, data_format: str) -> int:
    """Where the channels of x are.

    Raises: ValueError for an unknown data_format, or fewer than 2 dimensions.
    """
    if data_format not in CHANNELS_SECOND + CHANNELS_LAST:
        raise ValueError(f"{what}: expected a data_format among {', '.join(CHANNELS_SECOND + CHANNELS_LAST)}, got "
                         f"{data_format!r}")
    if x.ndim < 2:
        raise ValueError(f"{what}: expected a tensor [N, C, ...] of at least 2 dimensions, got {describe(x.payload)}")
    return x.ndim - 1 if data_format in CHANNELS_LAST else 1


def first(x: Tensor, last: bool) -> Tensor:
    """x with its channels first, whichever format it has: a view."""
    return transpose(x, (0, x.ndim - 1, *range(1, x.ndim - 1))) if last else x


def back(x: Tensor, last: bool) -> Tensor:
    """The opposite of `first`."""
    return transpose(x, (0, *range(2, x.ndim), 1)) if last else x


def per_axis(what: str, name: str, value: Any, n: int, least: int = 1) -> tuple[int, ...]:
    """One int for each of n spatial dimensions; a single int stands for all.

    Raises: ValueError for another number of them, or one below `least`; TypeError for something else.

    >>> per_axis("conv2d", "stride", 2, 2), per_axis("conv2d", "stride", [1, 3], 2)
    ((2, 2), (1, 3))
    """
    values = ints(what, name, value)
    if len(values) == 1:
        values *= n
    if len(values) != n or min(values) < least:
        raise ValueError(f"{what}: expected {name} to be an int of at least {least}, or {n} of them, got {value!r}")
    return values


def ints(what: str, name: str, value: Any) -> tuple[int, ...]:
    """An int, a list of ints (0-D tensors among them), or a 1-D tensor, as a tuple.

    Raises: TypeError for something else, ValueError for an int beyond any image (LARGEST).
    """
    listed = value.tolist() if isinstance(value, Tensor) else value
    if not isinstance(listed, (list, tuple)):
        listed = [listed]
    try:
        found = () if any(isinstance(v, bool) for v in listed) else tuple(v.__index__() for v in listed)
    except (AttributeError, TypeError):
        found = ()
    if len(found) != len(listed):
        raise TypeError(f"{what}: expected {name} to be an int or a list of ints, got {value!r}")
    if any(abs(v) > LARGEST for v in found):
        raise ValueError(f"{what}: expected {name} of at most {LARGEST}, got {value!r}")
    return found


def pairs(what: str, padding: Any, sizes: tuple, reach: tuple, strides: tuple, last: bool = False) -> tuple[int, ...]:
    """Paddings in the rows' form, from what a user may write for n spatial dimensions:

    an int; n ints (the same on both sides); 2 n ints; n + 2 pairs in the order of the format, of which those of batch
    and channels are 0; "VALID" (none); "SAME", which gives ceil(size / stride) windows, the odd element after.

    sizes: of the spatial dimensions; reach: the extent of a window, dilation included.
    Raises: ValueError for anything else.

    >>> pairs("conv2d", [1, 2], (5, 5), (3, 3), (1, 1)), pairs("conv2d", "SAME", (5, 6), (3, 3), (2, 2))
    ((1, 1, 2, 2), (1, 1, 0, 1))
    """
    n = len(sizes)
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(f"{what}: expected padding 'SAME' or 'VALID' or ints, got {padding!r}")
        if padding.upper() == "VALID":
            return (0,) * (2 * n)
        return sum((_same(*of_axis) for of_axis in zip(sizes, reach, strides, strict=True)), ())
    listed = list(padding) if isinstance(padding, (list, tuple)) else padding
    if isinstance(listed, list) and listed and all(isinstance(p, (list, tuple)) for p in listed):
        if len(listed) == n + 2:
            outer = (listed[0], listed.pop(n + 1 if last else 1))
            if all(len(p) == 2 for p in listed) and all(list(p) == [0, 0] for p in outer):
                listed = [v for p in listed[1:] for v in p]
    found = () if isinstance(listed, list) and any(isinstance(p, (list, tuple)) for p in listed) else ints(
        what, "padding", listed)
    if len(found) == 1 and not isinstance(padding, (list, tuple)) or len(found) == 1 == n:
        found *= 2 * n
    elif len(found) == n:
        found = tuple(v for v in found for _ in range(2))
    if len(found) != 2 * n or min(found) < 0:
        raise ValueError(f"{what}: expected padding to be an int of at least 0, {n} of them, {2 * n} of them, {n + 2} "
                         f"pairs of which those of batch and channels are [0, 0], 'SAME' or 'VALID', got {padding!r}")
    return found


def _same(size: Any, reach: int, stride: int) -> tuple[Any, Any]:
    if stride == 1:
        total = reach - 1
    else:
        total = maximum((ceil_div(size, stride) - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2


def extent(size: Any, dilation: int) -> Any:
    """How far a window of `size` elements reaches."""
    return dilation * (size - 1) + 1


def count(what: str, size: Any, before: int, after: int, reach: Any, stride: int, ceil: bool = False) -> Any:
    """How many windows start in a padded dimension; with `ceil`, the last one may reach beyond it.

    A symbolic size is assumed to be large enough for one window.
    Raises: ValueError if not even one window fits.

    >>> count("pool", 5, 0, 0, 2, 2), count("pool", 5, 0, 0, 2, 2, ceil=True)
    (2, 3)
    """
    spare = size + before + after - reach
    if is_symbolic(spare):
        require_at_least(spare, 0, f"{what}: what a window of {reach} leaves of {size}")
    elif spare < 0:
        padded = f" padded by {before} and {after}" if before or after else ""
        raise ValueError(f"{what}: expected a window no larger than the input, got a window that reaches over {reach} "
                         f"elements along a dimension of size {size}{padded}")
    if stride == 1:
        return spare + 1
    return -(-spare // stride) + 1 if ceil else spare // stride + 1


def counts(what: str, sizes: tuple, reach: tuple, strides: tuple, paddings: tuple, ceil: bool = False) -> tuple:
    """`count` of each spatial dimension.   reach: the extent of a window along each."""
    return tuple(count(what, n, b, a, r, s, ceil) for n, b, a, r, s in zip(
        sizes, paddings[::2], paddings[1::2], reach, strides, strict=True))
