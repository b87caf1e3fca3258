"""Draws whose parameters are tensors: bernoulli, multinomial, poisson, binomial, gamma."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework import philox
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops.cast import cast
from minipd.ops.elementary import exp
from minipd.ops.making import into
from minipd.ops.random import Uniform, next_key, normal
from minipd.ops.shapes import broadcast_shapes, require_floating

__all__ = ["bernoulli", "binomial", "log_normal", "multinomial", "poisson", "standard_gamma"]


# ------------------------------------------------------------------------------------------------ rows
@op("multinomial", Trait.RANDOM, Trait.DISCRETE, Trait.ALLOCATES)
class Multinomial:
    """Numbers of categories, each drawn with probability proportional to its weight.

    x: weights [..., categories]; key: int64[2]; -> int64 [..., num_samples]
    window: a local attribute, (how many rows the whole has in each dimension, the first of this rank in each).
    """

    def infer_meta(x, key, *, num_samples, replacement=False, window=None):
        return Meta((*x.shape[:-1], num_samples), dtypes.int64.np)

    def kernel(xp, x, key, *, num_samples, replacement=False, window=None):
        x = x.astype(np.float64)
        _check_weights(xp, x, num_samples, replacement)

        def drawn(n):
            """n uniform numbers for each row."""
            part = None if window is None else ((*window[0], n), (*window[1], 0))
            return philox.uniform(key, (*x.shape[:-1], n), dtype=np.float64, window=part)

        if replacement:                 # where a uniform number falls among the sums of weights; a row is at its number
            rows = x.reshape(-1, x.shape[-1]).cumsum(-1)
            at = xp.arange(len(rows))[:, None]
            u = drawn(num_samples).reshape(len(rows), num_samples)
            found = xp.searchsorted((rows / rows[:, -1:] + at).reshape(-1), (u + at).reshape(-1), "right")
            return (found.reshape(u.shape) - at * x.shape[-1]).reshape(*x.shape[:-1], num_samples)
        # Clocks that ring at rate x: those that ring first.  (Efraimidis, Spirakis 2006.)
        with xp.errstate(divide="ignore"):
            ring = -xp.log(1.0 - drawn(x.shape[-1])) / x
        return xp.argsort(xp.where(x > 0, ring, np.inf), axis=-1, kind="stable")[..., :num_samples]


def _check_weights(xp: Any, x: Any, num_samples: int, replacement: bool) -> None:
    if not (x >= 0).all() or not xp.isfinite(x).all():
        raise ValueError("multinomial: expected weights >= 0, got a negative, infinite or NaN one")
    if x.size and not (x.sum(-1) > 0).all():
        raise ValueError("multinomial: expected weights of which some are above 0, got only zeros")
    likely = int((x > 0).sum(-1).min(initial=x.shape[-1]))
    if not replacement and num_samples > likely:
        raise ValueError(f"multinomial: expected num_samples up to {likely}, the number of categories with weights "
                         f"above 0, got {num_samples}; with replacement=True a category may be drawn again")


@op("poisson", Trait.RANDOM, Trait.ALLOCATES)
class Poisson:
    """Numbers of events where x are expected, in x's dtype.   x >= 0; key: int64[2]"""

    def infer_meta(x, key):
        require_floating("poisson", x)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, key):
        if not (x >= 0).all():
            raise ValueError("poisson: expected rates >= 0, got a negative one or NaN")
        return xp.asarray(philox.generator(key).poisson(x)).astype(x.dtype)


@op("binomial", Trait.RANDOM, Trait.EXACT, Trait.DISCRETE, Trait.ALLOCATES)
class Binomial:
    """Numbers of successes in `count` trials that succeed with probability `prob`, broadcast.   key: int64[2]"""

    def infer_meta(count, prob, key):
        return Meta(broadcast_shapes("binomial", count.shape, prob.shape), dtypes.int64.np)

    def kernel(xp, count, prob, key):
        count, prob = count.astype(np.int64), prob.astype(np.float64)
        if not (count >= 0).all() or not ((prob >= 0) & (prob <= 1)).all():
            raise ValueError("binomial: expected counts >= 0 and probabilities from 0 to 1, got counts from "
                             f"{count.min()} and probabilities from {prob.min()} to {prob.max()}")
        return xp.asarray(philox.generator(key).binomial(count, prob)).astype(np.int64)


@op("standard_gamma", Trait.RANDOM, Trait.ALLOCATES)
class StandardGamma:
    """Gamma-distributed numbers of shape x and scale 1.   x > 0; key: int64[2]"""

    def infer_meta(x, key):
        require_floating("standard_gamma", x)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, key):
        if not (x >= 0).all():
            raise ValueError("standard_gamma: expected shapes >= 0, got a negative one or NaN")
        return xp.asarray(philox.generator(key).standard_gamma(x)).astype(x.dtype)


# ------------------------------------------------------------------------------------------- public functions
@whole
def bernoulli(x: Tensor, p: float | None = None, name: str | None = None) -> Tensor:
    """1 with probability x, else 0, in x's dtype; with p, with that probability everywhere.

    Raises: ValueError for a probability outside of [0, 1].

    >>> from minipd.ops.creation import to_tensor
    >>> bernoulli(to_tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    require_floating("bernoulli", x.payload)
    given = x if p is None else p
    values = given.payload if isinstance(given, Tensor) else np.asarray(given)
    if isinstance(values, np.ndarray) and not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"bernoulli: expected probabilities from 0 to 1, got {values.min()} to {values.max()}")
    return success(x, given)


def success(like: Tensor, p: Any) -> Tensor:
    """1 with probability p (a number, or a tensor that broadcasts), else 0, in the shape and dtype of `like`."""
    kind = dtypes.float32.np
    if isinstance(p, Tensor):
        kind = p.payload.dtype if p.payload.dtype == dtypes.float64.np else kind
        p = cast(p, dtypes.of(kind))
    drawn = Uniform(next_key(), shape=tuple(like.payload.shape), dtype=kind)
    return cast(drawn < p, like.dtype)


def multinomial(x: Tensor, num_samples: int = 1, replacement: bool = False, name: str | None = None, *,
                out: Tensor | None = None) -> Tensor:
    """Numbers of categories, each drawn with probability proportional to its weight.

    x: weights, [categories] or [rows, categories].  replacement: whether a category may be drawn again.
    -> int64 [num_samples] or [rows, num_samples]
    Raises: ValueError for negative weights or only zeros, or for more samples than there are categories to draw.

    >>> from minipd.ops.creation import to_tensor
    >>> multinomial(to_tensor([0.0, 2.0, 0.0]), 3, replacement=True).tolist()
    [1, 1, 1]
    """
    if x.ndim not in (1, 2):
        raise ValueError(f"multinomial: expected weights of 1 or 2 dimensions, got {describe(x)}")
    if num_samples < 1:
        raise ValueError(f"multinomial: expected at least one sample, got num_samples={num_samples}")
    return into(out, Multinomial(x, next_key(), num_samples=num_samples, replacement=bool(replacement)))


def poisson(x: Tensor, name: str | None = None) -> Tensor:
    """How many events happen where x are expected (Poisson-distributed), in x's dtype.

    Raises: TypeError for ints, ValueError for a negative x.

    >>> from minipd.ops.creation import to_tensor
    >>> poisson(to_tensor([0.0, 0.0])).tolist()
    [0.0, 0.0]
    """
    require_floating("poisson", x.payload)
    return Poisson(x, next_key())


def binomial(count: Tensor, prob: Tensor, name: str | None = None) -> Tensor:
    """How many of `count` trials succeed, each with probability `prob`, broadcast: int64.

    Raises: ValueError for negative counts or probabilities outside of [0, 1].

    >>> from minipd.ops.creation import to_tensor
    >>> binomial(to_tensor([10.0, 20.0]), to_tensor([0.0, 1.0])).tolist()
    [0, 20]
    """
    return Binomial(count, prob, next_key())


def standard_gamma(x: Tensor, name: str | None = None) -> Tensor:
    """Gamma-distributed numbers of shape x and scale 1, in x's dtype.

    Raises: TypeError for ints, ValueError for a negative x.

    >>> from minipd.ops.creation import to_tensor
    >>> (standard_gamma(to_tensor([2.0])) > 0.0).item()
    True
    """
    require_floating("standard_gamma", x.payload)
    return StandardGamma(x, next_key())


def log_normal(mean: Any = 1.0, std: Any = 2.0, shape: Any = None, name: str | None = None) -> Tensor:
    """e to the power of normally distributed numbers: mean and std, as for `normal`, are those of the logarithm.

    >>> (log_normal(shape=[2]) > 0.0).tolist()
    [True, True]
    """
    return exp(normal(mean, std, shape))
