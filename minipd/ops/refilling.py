"""In-place draws: `x.normal_()` fills a tensor with new numbers; what it held, and its history, are gone."""

from __future__ import annotations

import math
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.views import check_writable, rebind
from minipd.ops.cast import cast
from minipd.ops.distributions import success
from minipd.ops.elementary import cos, exp, log, sin
from minipd.ops.random import gaussian, randint, uniform

__all__ = ["bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_", "uniform_"]


def _fill(x: Tensor, values: Tensor, what: str) -> Tensor:
    check_writable(x, what)
    rebind(x, cast(values, x.dtype), what)
    return x


def _evenly(x: Tensor, what: str, seed: int = 0) -> Tensor:
    """Numbers in [0, 1) in the shape of x, in its dtype or, where that is narrow, in float32."""
    d = x.payload.dtype
    if d not in dtypes.FLOATS:
        raise TypeError(f"{what}: expected a floating tensor, got {describe(x)}; see random_ for ints")
    return uniform(x.payload.shape, dtypes.float32 if d in dtypes.LOW_PRECISION else d, seed=seed)


def uniform_(x: Tensor, min: float = 0, max: float = 1.0, seed: int = 0, name: str | None = None) -> Tensor:
    """Numbers in [min, max), evenly, in place.  `seed` other than 0 fixes the draw.

    >>> from minipd.ops.creation import ones
    >>> uniform_(ones([2]), 3.0, 3.0).tolist()
    [3.0, 3.0]
    """
    if x.payload.dtype not in dtypes.FLOATS:
        _evenly(x, "uniform_")
    return _fill(x, uniform(x.payload.shape, x.dtype, min, max, seed), "uniform_")


def normal_(x: Tensor, mean: Any = 0.0, std: float = 1.0, name: str | None = None) -> Tensor:
    """Normally distributed numbers, in place.  Of a complex tensor, the parts share the variance."""
    if x.payload.dtype not in dtypes.INEXACT:
        _evenly(x, "normal_")
    return _fill(x, gaussian(x.payload.shape, mean, std, dtype=x.dtype), "normal_")


def log_normal_(x: Tensor, mean: float = 1.0, std: float = 2.0, name: str | None = None) -> Tensor:
    """e to the power of normally distributed numbers, in place: mean and std are those of the logarithm."""
    if x.payload.dtype not in dtypes.FLOATS:
        _evenly(x, "log_normal_")
    return _fill(x, exp(gaussian(x.payload.shape, mean, std, dtype=x.dtype)), "log_normal_")


def exponential_(x: Tensor, lam: float = 1.0, name: str | None = None) -> Tensor:
    """Waiting times for events of rate `lam`, exponentially distributed, in place.

    Raises: ValueError for a rate that is not above 0.
    """
    if not lam > 0:
        raise ValueError(f"exponential_: expected a rate lam > 0, got {lam}")
    return _fill(x, log(1.0 - _evenly(x, "exponential_")) * (-1.0 / lam), "exponential_")


def cauchy_(x: Tensor, loc: float = 0, scale: float = 1, name: str | None = None) -> Tensor:
    """Cauchy-distributed numbers around `loc`, half of them within `scale` of it, in place."""
    angle = (_evenly(x, "cauchy_") - 0.5) * math.pi
    return _fill(x, sin(angle) / cos(angle) * scale + loc, "cauchy_")


def geometric_(x: Tensor, probs: Any, name: str | None = None) -> Tensor:
    """How many trials the first success takes, if one succeeds with probability `probs`, in place.

    As in Paddle the number is not rounded up: it is exponentially distributed, of rate -ln(1 - probs).
    probs: a number or a tensor, in (0, 1).
    """
    if isinstance(probs, (int, float)) and not 0 < probs < 1:
        raise ValueError(f"geometric_: expected a probability between 0 and 1, got {probs}")
    failure = log(1.0 - probs) if isinstance(probs, Tensor) else math.log1p(-probs)
    return _fill(x, log(1.0 - _evenly(x, "geometric_")) / failure, "geometric_")


def bernoulli_(x: Tensor, p: Any = 0.5, name: str | None = None) -> Tensor:
    """1 with probability p (a number, or a tensor that broadcasts to x), else 0, in place.

    A p below 0 is as good as 0, one above 1 as 1.

    >>> from minipd.ops.creation import ones
    >>> bernoulli_(ones([2]), 0.0).tolist()
    [0.0, 0.0]
    """
    return _fill(x, success(x, p), "bernoulli_")


def random_(x: Tensor, from_: int = 0, to: int | None = None, *, generator: None = None) -> Tensor:
    """Ints in [from_, to), evenly, in place, whatever the dtype.  With one number n, in [0, n); with none, in [0, the
    largest int that the dtype holds, and all below it].

    Raises: ValueError for an empty range.

    >>> from minipd.ops.creation import zeros
    >>> random_(zeros([2], "int32"), 7, 8).tolist()
    [7, 7]
    """
    d = x.payload.dtype
    if d not in dtypes.FLOATS and d not in dtypes.INTS:
        raise TypeError(f"random_: expected a floating or int tensor, got {describe(x)}")
    if to is None and from_ == 0:
        most = int(2 / dtypes.finfo(d).eps) if d in dtypes.FLOATS else int(  # type: ignore[attr-defined]
            dtypes.iinfo(d).max)
        from_, to = 0, most
    return _fill(x, randint(from_, to, x.payload.shape), "random_")
