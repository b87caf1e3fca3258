"""Random tensors and dropout.

A draw's *key* is an operand: eagerly the context's generator gives it, in a program it is an input that every run of
the program draws anew.  Element i of the result is a function of the key and of i, the element's *global* row-major
number; `window` = (global shape, offsets) says where a shard lies, so a shard's numbers are a part of the whole's.
"""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework import philox
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.creation import shape_tuple
from minipd.ops.shapes import require_floating

__all__ = ["dropout", "gaussian", "normal", "rand", "randn", "standard_normal", "uniform"]


@op("uniform", Trait.RANDOM, Trait.EXACT, Trait.ALLOCATES)
class Uniform:
    """Numbers in [min, max), evenly.   key: int64[2]"""

    def infer_meta(key, *, shape, dtype, min=0.0, max=1.0, window=None):
        return Meta(shape, dtype)

    def kernel(xp, key, *, shape, dtype, min=0.0, max=1.0, window=None):
        return philox.uniform(key, shape, min, max, dtype, window)


@op("gaussian", Trait.RANDOM, Trait.EXACT, Trait.ALLOCATES)
class Gaussian:
    """Normally distributed numbers.   key: int64[2]"""

    def infer_meta(key, *, shape, dtype, mean=0.0, std=1.0, window=None):
        return Meta(shape, dtype)

    def kernel(xp, key, *, shape, dtype, mean=0.0, std=1.0, window=None):
        return philox.normal(key, shape, mean, std, dtype, window)


@op("dropout", Trait.RANDOM, Trait.ALLOCATES)
class Dropout:
    """x with each element zeroed with probability p; "upscale_in_train" divides what stays by 1 - p.

    The mask is not kept: the gradient draws it again from the same key.
    """

    def infer_meta(x, key, *, p, mode="upscale_in_train", window=None):
        require_floating("dropout", x)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, key, *, p, mode="upscale_in_train", window=None):
        kept = philox.uniform(key, x.shape, 0.0, 1.0, dtypes.float32.np, window) >= p
        factor = 1.0 / (1.0 - p) if mode == "upscale_in_train" and p < 1 else 1.0
        return xp.where(kept, x * x.dtype.type(factor), x.dtype.type(0))

    def vjp_x(g, key, p, mode, window):
        return Dropout(g, key, p=p, mode=mode, window=window)


def next_key() -> Tensor:
    """The key of the next draw in this layer, from this rank's generator."""
    ctx = current()
    return Tensor(ctx.ground.key(ctx.rng))


def _float_type(dtype: Any) -> Any:
    return dtypes.get_default_dtype_np() if dtype is None else dtypes.to_np(dtype)


def uniform(shape: Any, dtype: Any = None, min: float = -1.0, max: float = 1.0, seed: int = 0,
            name: str | None = None) -> Tensor:
    """Numbers in [min, max), evenly.  `seed` other than 0 fixes the draw, whatever the generator's state."""
    return Uniform(_seeded(seed), shape=shape_tuple("uniform", shape), dtype=_float_type(dtype), min=min, max=max)


def _seeded(seed: int) -> Tensor:
    return next_key() if seed == 0 else Tensor(philox.key_of(seed))


def rand(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Numbers in [0, 1), evenly."""
    return uniform(shape, dtype, 0.0, 1.0)


def gaussian(shape: Any, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: Any = None,
             name: str | None = None) -> Tensor:
    """Normally distributed numbers."""
    return Gaussian(_seeded(seed), shape=shape_tuple("gaussian", shape), dtype=_float_type(dtype), mean=mean, std=std)


def randn(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Normally distributed numbers with mean 0 and variance 1.

    >>> randn([2, 3]).shape
    paddle.Size([2, 3])
    """
    return gaussian(shape, dtype=dtype)


standard_normal = randn


def normal(mean: float = 0.0, std: float = 1.0, shape: Any = None, name: str | None = None) -> Tensor:
    """Normally distributed numbers."""
    return gaussian([1] if shape is None else shape, mean, std)


def dropout(x: Tensor, p: float = 0.5, axis: Any = None, training: bool = True, mode: str = "upscale_in_train",
            name: str | None = None) -> Tensor:
    """Paddle's dropout.  Outside of training: x, or x * (1 - p) in mode "downscale_in_infer".

    Raises: ValueError for p outside [0, 1] or an unknown mode.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: expected a probability p in [0, 1], got {p}")
    if mode not in ("upscale_in_train", "downscale_in_infer"):
        raise ValueError(f"dropout: expected mode 'upscale_in_train' or 'downscale_in_infer', got {mode!r}")
    if axis is not None:
        raise ValueError("dropout: axis is not supported; multiply by a mask of the shape wanted")
    if not training:
        return x if mode == "upscale_in_train" or p == 0 else x * (1.0 - p)
    return x if p == 0 else Dropout(x, next_key(), p=p, mode=mode)
