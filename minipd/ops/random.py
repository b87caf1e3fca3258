"""Random tensors and dropout.

A draw's *key* is an operand: eagerly the context's generator gives it, in a program it is an input that every run of
the program draws anew.  Element i of the result is a function of the key and of i, the element's *global* row-major
number; `window` = (global shape, offsets) says where a shard lies, so a shard's numbers are a part of the whole's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import draws, philox
from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.complex import AsComplex
from minipd.ops.creation import shape_tuple
from minipd.ops.making import asked_for, into, makes
from minipd.ops.shapes import broadcast_shapes, require_floating

__all__ = ["dropout", "gaussian", "normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
           "randperm", "standard_normal", "uniform"]


@op("uniform", Trait.RANDOM, Trait.EXACT, Trait.ALLOCATES)
class Uniform:
    """Numbers in [min, max), evenly.   key: int64[2]"""

    def infer_meta(key, *, shape, dtype, min=0.0, max=1.0, window=None):
        return Meta(shape, dtype)

    def kernel(xp, key, *, shape, dtype, min=0.0, max=1.0, window=None):
        return draws.uniform(key, shape, min, max, dtype, window)


@op("gaussian", Trait.RANDOM, Trait.EXACT, Trait.ALLOCATES)
class Gaussian:
    """Normally distributed numbers.   key: int64[2]"""

    def infer_meta(key, *, shape, dtype, mean=0.0, std=1.0, window=None):
        return Meta(shape, dtype)

    def kernel(xp, key, *, shape, dtype, mean=0.0, std=1.0, window=None):
        return draws.normal(key, shape, mean, std, dtype, window)


@op("randint", Trait.RANDOM, Trait.EXACT, Trait.DISCRETE, Trait.ALLOCATES)
class RandInt:
    """Ints in [low, high), evenly.   key: int64[2]"""

    def infer_meta(key, *, shape, dtype, low, high, window=None):
        return Meta(shape, dtype)

    def kernel(xp, key, *, shape, dtype, low, high, window=None):
        return draws.integers(key, shape, low, high, dtype, window)


@op("randperm", Trait.RANDOM, Trait.EXACT, Trait.DISCRETE, Trait.ALLOCATES)
class RandPerm:
    """The ints 0 .. n - 1 in random order.   key: int64[2]"""

    def infer_meta(key, *, n, dtype):
        return Meta((n,), dtype)

    def kernel(xp, key, *, n, dtype):
        return draws.permutation(key, n).astype(dtype)


@op("dropout", Trait.RANDOM)
class Dropout:
    """x with each element zeroed with probability p; "upscale_in_train" divides what stays by 1 - p.

    The mask is not kept: the gradient draws it again from the same key.
    """

    def infer_meta(x, key, *, p, mode="upscale_in_train", window=None):
        require_floating("dropout", x)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, key, *, p, mode="upscale_in_train", window=None):
        out = xp.empty_like(x)
        _drop_into(xp, out, x, key, p, mode, window)
        return out

    def kernel_out(xp, out, x, key, *, p, mode="upscale_in_train", window=None):
        _drop_into(xp, out, x, key, p, mode, window)

    def vjp_x(g, key, p, mode, window):
        return Dropout(g, key, p=p, mode=mode, window=window)


def _drop_into(xp: Any, out: Any, x: Any, key: Any, p: float, mode: str, window: Any) -> None:
    """`out` may be x itself."""
    dropped = draws.uniform(key, x.shape, 0.0, 1.0, dtypes.float32.np, window) < p
    factor = 1.0 / (1.0 - p) if mode == "upscale_in_train" and p < 1 else 1.0
    xp.multiply(x, x.dtype.type(factor), out=out)
    xp.copyto(out, x.dtype.type(0), where=dropped)


def next_key() -> Tensor:
    """The key of the next draw in this layer, from this rank's generator."""
    ctx = current()
    return Tensor(ctx.ground.key(ctx.rng))


def _float_type(what: str, dtype: Any) -> np.dtype:
    d = dtypes.get_default_dtype_np() if dtype is None else dtypes.to_np(dtype)
    if d not in dtypes.INEXACT:
        raise TypeError(f"{what}: expected a floating or complex dtype, got {dtypes.of(d).name}; draw floats and cast "
                        "them, or use randint")
    return d


def _seeded(seed: int) -> Tensor:
    return next_key() if seed == 0 else Tensor(philox.key_of(seed))


# ------------------------------------------------------------------------------------------------ floats
def uniform(shape: Any, dtype: Any = None, min: float = 0, max: float = 1.0, seed: int = 0, name: str | None = None,
            *, out: Tensor | None = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Numbers in [min, max), evenly.  `seed` other than 0 fixes the draw, whatever the generator's state.

    Raises: TypeError for a dtype that is not floating, ValueError if min > max.
    """
    d = _float_type("uniform", dtype)
    if d in dtypes.COMPLEX:
        raise TypeError("uniform: expected a floating dtype, got a complex one; draw real and imaginary parts, and see "
                        "paddle.complex")
    made = Uniform(_seeded(seed), shape=shape_tuple("uniform", shape), dtype=d, min=float(min), max=float(max))
    return asked_for(into(out, made), "uniform", device, requires_grad)


@makes
def rand(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Numbers in [0, 1), evenly.

    >>> rand([2, 3]).shape
    paddle.Size([2, 3])
    """
    return uniform(shape, dtype, 0.0, 1.0)


def gaussian(shape: Any, mean: Any = 0.0, std: float = 1.0, seed: int = 0, dtype: Any = None,
             name: str | None = None) -> Tensor:
    """Normally distributed numbers.  The variance of a complex one is shared by its parts."""
    d, dims = _float_type("gaussian", dtype), shape_tuple("gaussian", shape)
    if d not in dtypes.COMPLEX:
        return Gaussian(_seeded(seed), shape=dims, dtype=d, mean=float(mean), std=float(std))
    parts = Gaussian(_seeded(seed), shape=(*dims, 2), dtype=dtypes.real_of(d), mean=0.0, std=float(std) * 0.5 ** 0.5)
    return AsComplex(parts) + mean if mean else AsComplex(parts)


@makes
def randn(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Normally distributed numbers with mean 0 and variance 1.

    >>> randn([2, 3]).shape
    paddle.Size([2, 3])
    """
    return gaussian(shape, dtype=dtype)


standard_normal = randn


def normal(mean: Any = 0.0, std: Any = 1.0, shape: Any = None, name: str | None = None, *,
           out: Tensor | None = None) -> Tensor:
    """Normally distributed numbers.

    mean, std: numbers, or tensors: then the result has their shape, and element i the i-th mean and deviation.  A
    complex mean makes complex numbers.  shape: of the result, if both are numbers; [1] unless given.
    Raises: ValueError for a negative std.

    >>> from minipd.ops.creation import to_tensor
    >>> normal(to_tensor([1.0, 2.0]), 0.0).tolist()
    [1.0, 2.0]
    """
    if isinstance(std, (int, float)) and std < 0:
        raise ValueError(f"normal: expected a standard deviation >= 0, got {std}")
    given = [v for v in (mean, std) if isinstance(v, Tensor)]
    if not given:
        dtype = dtypes.complex_of(dtypes.get_default_dtype_np()) if isinstance(mean, complex) else None
        return into(out, gaussian([1] if shape is None else shape, mean, std, dtype=dtype))
    dims = broadcast_shapes("normal", *(tuple(v.payload.shape) for v in given))
    return into(out, gaussian(dims, dtype=given[0].dtype) * std + mean)


# ------------------------------------------------------------------------------------------------ ints
def randint(low: int = 0, high: int | None = None, shape: Any = (1,), dtype: Any = None,
            name: str | None = None) -> Tensor:
    """Ints in [low, high), evenly; with `high` alone not given, in [0, low).   dtype: int64 unless given.

    Raises: ValueError for an empty range, or one that the dtype cannot hold.

    >>> randint(5, 6, [2]).tolist()
    [5, 5]
    """
    low, high = _int_range("randint", low, high)
    d = dtypes.int64.np if dtype is None else dtypes.to_np(dtype)
    if d not in dtypes.INTS:
        raise TypeError(f"randint: expected an int dtype, got {dtypes.of(d).name}; cast the result")
    return RandInt(next_key(), shape=shape_tuple("randint", shape), dtype=d, low=low, high=high)


def _int_range(what: str, low: int, high: int | None) -> tuple[int, int]:
    if high is None:
        low, high = 0, low
    low, high = low.__index__(), high.__index__()
    if low >= high:
        raise ValueError(f"{what}: expected low < high (or one number above 0, for [0, high)), got [{low}, {high})")
    return low, high


@makes
def randperm(n: int, dtype: Any = "int64", name: str | None = None) -> Tensor:
    """The ints 0 .. n - 1 in random order.

    Raises: ValueError for a negative n.

    >>> sorted(randperm(4).tolist())
    [0, 1, 2, 3]
    """
    if n < 0:
        raise ValueError(f"randperm: expected n >= 0, got {n}")
    return RandPerm(next_key(), n=n.__index__(), dtype=dtypes.to_np(dtype))


# ------------------------------------------------------------------------------------------------ like another
def rand_like(input: Tensor, name: str | None = None, *, dtype: Any = None, device: Any = None,
              requires_grad: bool = False) -> Tensor:
    """`rand` in the shape and dtype of another tensor."""
    return rand(input.payload.shape, input.dtype if dtype is None else dtype, device=device,
                requires_grad=requires_grad)


def randn_like(x: Tensor, dtype: Any = None, name: str | None = None, *, device: Any = None,
               requires_grad: bool = False) -> Tensor:
    """`randn` in the shape and dtype of another tensor."""
    return randn(x.payload.shape, x.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


def randint_like(x: Tensor, low: int = 0, high: int | None = None, dtype: Any = None,
                 name: str | None = None) -> Tensor:
    """`randint` in the shape of another tensor, and in its dtype, whatever that is, or the given one.

    >>> from minipd.ops.creation import zeros
    >>> randint_like(zeros([2]), 5, 6).tolist()
    [5.0, 5.0]
    """
    low, high = _int_range("randint_like", low, high)
    return cast(randint(low, high, x.payload.shape), x.dtype if dtype is None else dtype)


# ------------------------------------------------------------------------------------------------ dropout
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
