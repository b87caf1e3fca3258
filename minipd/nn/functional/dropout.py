"""Dropout: of elements, of whole channels, and the kind that keeps mean and variance.

A mask is drawn as the dropout of ones (or of the tensor itself): so it is named by layer and step, and indexed by the
*global* position of an element, and the masks of shards are the parts of the single rank's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.views import write
from minipd.ops import random
from minipd.ops.creation import ones
from minipd.ops.geometry import channels_last
from minipd.ops.shapes import normalize_axes, require_floating

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]


def dropout(x: Tensor, p: float = 0.5, axis: int | Sequence[int] | None = None, training: bool = True,
            inplace: bool = False, mode: str = "upscale_in_train", name: str | None = None) -> Tensor:
    """Each element zeroed with probability p while training; what stays is divided by 1 - p.

    axis: the dimensions along which elements fall or stay one by one; along the others they do so together.  None: all.
    mode: "downscale_in_infer" divides nothing while training, and multiplies by 1 - p outside of it.
    inplace: the result is written into x.
    Raises: ValueError for p outside [0, 1], an unknown mode, or an axis that x has not.
    """
    if inplace:
        return write(x, dropout, p, axis, training, mode=mode)
    if axis is None or not training or p == 0:
        return random.dropout(x, p, None, training, mode)
    require_floating("dropout", x.payload)
    own = normalize_axes("dropout", axis, x.ndim)
    shape = [d if i in own else 1 for i, d in enumerate(x.payload.shape)]
    return x * random.dropout(ones(shape, x.dtype), p, None, True, mode)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of input [N, C, L] or [C, L]."""
    return _of_channels("dropout1d", input, p, training, (2, 3), input.ndim - 2, inplace)


def dropout2d(x: Tensor, p: float = 0.5, training: bool = True, data_format: str = "NCHW",
              name: str | None = None) -> Tensor:
    """`dropout` of whole channels of x [N, C, H, W], or [N, H, W, C] in data_format "NHWC"."""
    return _of_channels("dropout2d", x, p, training, (4,), _channel("dropout2d", data_format, 2))


def dropout3d(x: Tensor, p: float = 0.5, training: bool = True, data_format: str = "NCDHW",
              name: str | None = None) -> Tensor:
    """`dropout` of whole channels of x [N, C, D, H, W], or [N, D, H, W, C] in data_format "NDHWC"."""
    return _of_channels("dropout3d", x, p, training, (5,), _channel("dropout3d", data_format, 3))


def _channel(what: str, data_format: str, n: int) -> int:
    return -1 if channels_last(what, data_format, n) else 1


def _of_channels(what: str, x: Tensor, p: float, training: bool, ranks: tuple[int, ...], channel: int,
                 inplace: bool = False) -> Tensor:
    if x.ndim not in ranks:
        raise ValueError(f"{what}: expected a tensor of {' or '.join(map(str, ranks))} dimensions, got "
                         f"{describe(x.payload)}")
    return dropout(x, p, sorted({0, channel % x.ndim}), training, inplace)


#: where SELU saturates, -scale * alpha: what alpha_dropout puts in place of what it drops
SATURATION = -1.7580993408473766


def alpha_dropout(x: Tensor, p: float = 0.5, training: bool = True, name: str | None = None) -> Tensor:
    """Dropout that keeps mean 0 and variance 1: dropped elements become SELU's saturation value, and a line through the
    results restores both moments.   (Klambauer et al., Self-Normalizing Neural Networks, 2017)"""
    return _saturated("alpha_dropout", x, p, training, tuple(x.payload.shape))


def feature_alpha_dropout(x: Tensor, p: float = 0.5, training: bool = True, name: str | None = None) -> Tensor:
    """`alpha_dropout` of whole channels: x [N, C, ...]."""
    shape = tuple(x.payload.shape)
    return _saturated("feature_alpha_dropout", x, p, training, shape[:2] + (1,) * (x.ndim - 2))


def _saturated(what: str, x: Tensor, p: float, training: bool, mask_shape: tuple) -> Tensor:
    """a (x mask + SATURATION (1 - mask)) + b, with a and b such that the moments are x's if those are 0 and 1."""
    if not 0 <= p <= 1:
        raise ValueError(f"{what}: expected a probability p in [0, 1], got {p}")
    require_floating(what, x.payload)
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0.0
    a = ((1.0 - p) * (1.0 + p * SATURATION ** 2)) ** -0.5
    b = -a * p * SATURATION
    mask: Any = random.dropout(ones(mask_shape, x.dtype), p, None, True, "downscale_in_infer")
    return x * mask * a + ((1.0 - mask) * (a * SATURATION) + b)
