"""Rules of operators that look at images through windows: convolution, pooling, interpolation, padding.

Images of a batch are independent, and so are channels, unless an operator mixes them.  Spatial dimensions are whole:
a window that reaches over the edge of a shard would need its neighbour's elements.  A convolution whose windows lie
side by side along a dimension (of 1 element, or of patches) may split it, where every rank gets as many windows.
"""

from __future__ import annotations

from math import prod
from typing import Any

from minipd.dist.spmd.notation import Notation, letters, replace
from minipd.dist.spmd.reshape import same_cuts
from minipd.dist.spmd.table import spmd
from minipd.framework.meta import Meta

__all__: list[str] = []

#: letters of spatial dimensions, before and behind the operator, and of a filter
BEFORE, BEHIND, FILTER = "xyz", "uvw", "klm"
WHOLE = BEFORE + BEHIND + FILTER


def _convolution(windows: dict[str, int], groups: int, strides: tuple) -> tuple[str, str, str, dict]:
    """Words of image, filter and result, and what may be split.   windows: as `_side_by_side` gives them.

    Groups of channels are convolutions of their own: they are split together, on both sides, if every rank gets as
    many; the attribute `groups` is then a rank's.
    """
    n = len(strides)
    behind = "".join(x if x in windows else u for x, u in zip(BEFORE[:n], BEHIND, strict=False))
    whole = "".join(letter for letter in WHOLE if letter not in windows)

    def splits(letter: str, ways: tuple[int, ...]) -> bool:
        many = groups if letter == "g" else windows.get(letter)
        return many is None or many % prod(ways) == 0
    if groups == 1:
        words = "bc" + BEFORE[:n], "oc" + FILTER[:n], "bo" + behind
        return *words, {"whole": whole, "prefer": ("b", "o", "c"), "splits": splits}
    words = "bg" + BEFORE[:n], "gd" + FILTER[:n], "bg" + behind         # d: the channels of one group

    def local(attrs: dict, inputs: tuple, outputs: tuple, mesh: Any, rank: int) -> dict:
        ways = prod(size for p, size in zip(inputs[0], mesh.sizes, strict=True) if p.is_shard(1))
        return {**attrs, "groups": groups // ways}

    return *words, {"whole": whole + "d", "prefer": ("b", "g"), "splits": splits, "local": local}


def _side_by_side(image: Any, filter: Any, strides: tuple, paddings: tuple, dilations: tuple) -> dict[str, int]:
    """The dimensions of the larger image along which windows neither overlap nor leave anything out, and how many
    windows there are."""
    sides = zip(BEFORE, image.shape[2:], filter.shape[2:], strides, paddings[::2], paddings[1::2], dilations,
                strict=False)
    return {letter: size // kernel for letter, size, kernel, stride, before, behind, dilation in sides
            if kernel == stride and dilation == 1 and before == behind == 0 and isinstance(size, int)
            and size % kernel == 0}


@spmd("conv2d", "conv3d")
def conv(x: Any, filter: Any, *, strides: tuple, paddings: tuple, dilations: tuple, groups: int) -> Notation:
    windows = _side_by_side(x, filter, strides, paddings, dilations)
    image, weights, result, how = _convolution(windows, groups, strides)
    return Notation((image, weights), (result,), reduce={"c": "sum"} if groups == 1 else {}, **how)


@spmd("conv2d_transpose", "conv3d_transpose")
def conv_transpose(x: Any, filter: Any, *, strides: tuple, paddings: tuple, output_padding: tuple, dilations: tuple,
                   groups: int) -> Notation:
    larger = Meta((*x.shape[:2], *(n * s for n, s in zip(x.shape[2:], strides, strict=True))), x.dtype)
    windows = {} if any(output_padding) else _side_by_side(larger, filter, strides, paddings, dilations)
    image, weights, result, how = _convolution(windows, groups, strides)
    return Notation((result, weights), (image,), reduce={"o": "sum"} if groups == 1 else {}, **how)


@spmd("conv2d_filter_grad", "conv3d_filter_grad")
def conv_filter_grad(x: Any, g: Any, like: Any, *, strides: tuple, paddings: tuple, dilations: tuple,
                     groups: int) -> Notation:
    """Every image adds to the filter's gradient: a batch that is split leaves a Partial, data parallelism's."""
    windows = _side_by_side(x, like, strides, paddings, dilations)
    image, weights, result, how = _convolution(windows, groups, strides)
    return Notation((image, result, weights), (weights,), reduce=dict.fromkeys(("b", *windows), "sum"),
                    shape_only=(2,), **how)


def _windows(operands: int, results: int, n: int, **how: Any) -> Notation:
    """Operands with the sizes before, the others with those behind; all of one batch and the same channels."""
    return Notation(("bc" + BEFORE[:n],) * operands, ("bc" + BEHIND[:n],) * results, whole=WHOLE, **how)


@spmd("pool2d", "pool3d")
def pool(x: Any, *, kernel_size: tuple, strides: tuple, paddings: tuple, ceil_mode: bool = False,
         exclusive: bool = True, pooling_type: str = "avg", adaptive: bool = False) -> Notation:
    return _windows(1, 1, len(kernel_size), linear=((0,),))


@spmd("pool2d_grad", "pool3d_grad")
def pool_grad(g: Any, like: Any, *, kernel_size: tuple, strides: tuple, paddings: tuple, ceil_mode: bool = False,
              exclusive: bool = True, pooling_type: str = "avg", adaptive: bool = False) -> Notation:
    n = len(kernel_size)
    return Notation(("bc" + BEHIND[:n], "bc" + BEFORE[:n]), ("bc" + BEFORE[:n],), whole=WHOLE, shape_only=(1,))


@spmd("max_pool2d_with_index", "max_pool3d_with_index")
def max_pool(x: Any, *, kernel_size: tuple, strides: tuple, paddings: tuple, ceil_mode: bool = False,
             adaptive: bool = False) -> Notation:
    return _windows(1, 2, len(kernel_size))


@spmd("fractional_max_pool2d", "fractional_max_pool3d")
def fractional_max_pool(x: Any, *, output_size: tuple, kernel_size: tuple, random_u: float) -> Notation:
    return _windows(1, 2, len(output_size))


@spmd("unpool")
def unpool(x: Any, indices: Any, *, output_size: tuple) -> Notation:
    return _windows(2, 1, len(output_size))


def _columns(channels: Any, kernel_sizes: tuple) -> dict[str, Any]:
    """Channels and the elements of a window become one dimension, channels outside: both are cut alike, or not."""
    def splits(letter: str, ways: tuple[int, ...]) -> bool:
        return letter != "c" or same_cuts(channels, prod(kernel_sizes), channels * prod(kernel_sizes), 1, ways)

    return {"whole": "xyu", "linear": ((0,),), "splits": splits}


@spmd("unfold")
def unfold(x: Any, *, kernel_sizes: tuple, strides: tuple, paddings: tuple, dilations: tuple) -> Notation:
    return Notation(("bcxy",), ("bcu",), **_columns(x.shape[1], kernel_sizes))


@spmd("fold")
def fold(x: Any, *, output_sizes: tuple, kernel_sizes: tuple, strides: tuple, paddings: tuple,
         dilations: tuple) -> Notation:
    return Notation(("bcu",), ("bcxy",), **_columns(x.shape[1] // prod(kernel_sizes), kernel_sizes))


@spmd("interp")
def interp(x: Any, *, axis: int, size: Any, mode: str, align_corners: bool = False, align_mode: int = 1,
           scale: float = 0.0, antialias: bool = False) -> Notation:
    word = letters(len(x.shape))
    return Notation((replace(word, axis, "x"),), (replace(word, axis, "u"),), whole="xu", linear=((0,),))


@spmd("interp_grad")
def interp_grad(g: Any, like: Any, *, axis: int, mode: str, align_corners: bool = False, align_mode: int = 1,
                scale: float = 0.0, antialias: bool = False) -> Notation:
    word = letters(len(like.shape))
    before, behind = replace(word, axis, "x"), replace(word, axis, "u")
    return Notation((behind, before), (before,), whole="xu", shape_only=(1,))


@spmd("pad")
def pad(x: Any, *, paddings: tuple, pad_value: float = 0.0) -> Notation:
    """A dimension that grows is whole."""
    before = behind = letters(len(x.shape))
    for axis in range(len(x.shape)):
        if any(paddings[2 * axis:2 * axis + 2]):
            behind = replace(behind, axis, before[axis].upper())
    whole = "".join(a + b for a, b in zip(before, behind, strict=True) if a != b)
    return Notation((before,), (behind,), whole=whole, linear=() if pad_value else ((0,),))
