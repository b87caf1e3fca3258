"""Tensors out of nothing: `full`, `arange`, `to_tensor` and what follows from them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.dim import ceil_div, is_symbolic, maximum
from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.framework.views import write_anew
from minipd.ops.cast import cast
from minipd.ops.making import asked_for, makes, spread

__all__ = ["arange", "assign", "clone", "empty", "empty_like", "full", "full_like", "ones", "ones_like", "to_tensor",
           "zeros", "zeros_like"]


@op("full", Trait.EXACT)
class Full:
    """A tensor of `shape` that holds `value` everywhere."""

    def infer_meta(*, shape, value, dtype):
        return Meta(shape, dtype)

    def kernel(xp, *, shape, value, dtype):
        return xp.full(shape, value, dtype)

    def kernel_out(xp, out, *, shape, value, dtype):
        out[...] = value


@op("full_int_array", Trait.EXACT)
class FullIntArray:
    """A 1-D tensor of the ints in `value`: how a program spells an axis list or a target shape."""

    def infer_meta(*, value, dtype):
        return Meta((len(value),), dtype)

    def kernel(xp, *, value, dtype):
        return xp.array(value, dtype).reshape(len(value))


@op("full_like", Trait.EXACT)
class FullLike:
    """`value` everywhere, in the shape of `like`, whose values are not read."""

    mutable = ("value",)

    def infer_meta(like: Meta, *, value, dtype=None):
        return Meta(like.shape, like.dtype if dtype is None else dtype)

    def kernel(xp, like, *, value, dtype=None):
        out = xp.empty(like.shape, like.dtype if dtype is None else dtype)
        out.fill(value)
        return out

    def kernel_out(xp, out, like, *, value, dtype=None):
        out[...] = value


@op("arange", Trait.EXACT)
class Arange:
    """start, start + step, ... below `stop`: element i is start + i * step."""

    def infer_meta(*, start, stop, step, dtype):
        return Meta((_arange_size(start, stop, step),), dtype)

    def kernel(xp, *, start, stop, step, dtype):
        return (start + xp.arange(_arange_size(start, stop, step)) * step).astype(dtype)

    def kernel_out(xp, out, *, start, stop, step, dtype):
        out[...] = start + xp.arange(_arange_size(start, stop, step)) * step


def _arange_size(start: Any, stop: Any, step: Any) -> Any:
    if is_symbolic(start) or is_symbolic(stop):
        return maximum(ceil_div(stop - start, step), 0)
    return max(0, int(np.ceil((stop - start) / step)))


@op("dim", Trait.EXACT, Trait.DISCRETE, dialect="shape")
class Dim:
    """A size as a tensor: int64 [].  What a symbolic dimension becomes where it stands beside tensors."""

    def infer_meta(*, size):
        return Meta((), dtypes.int64.np)

    def kernel(xp, *, size):
        return xp.array(size, dtypes.int64.np)

    def kernel_out(xp, out, *, size):
        out[...] = size


@op("assign", Trait.EXACT, Trait.ELEMENTWISE)
class Assign:
    """A copy, in row-major memory."""

    def infer_meta(x):
        return Meta(x.shape, x.dtype)

    def kernel(xp, x):
        return xp.array(x, order="C")

    def kernel_out(xp, out, x):
        out[...] = x

    def vjp_x(g):
        return g


@op("share_data_", Trait.VIEW, Trait.EXACT)
class ShareData:
    """The same tensor, through which no gradient flows: what `detach` is in a program."""

    def infer_meta(x):
        return Meta(x.shape, x.dtype)

    def kernel(xp, x):
        return x

    def put_back(base, view):
        return view


def sizes(given: Any) -> Any:
    """Sizes that may be given as tensors, all of them or one by one, as numbers; what has no values yet stays so if
    it is known to be sizes.  Anything else as it is.

    >>> sizes(to_tensor([2, 3])), sizes([to_tensor(2), 3]), sizes(4)
    ([2, 3], [2, 3], 4)
    """
    if isinstance(given, Tensor):
        return given.tolist()
    if isinstance(given, (list, tuple)):
        for d in given:
            if isinstance(d, Tensor):
                return [d.item() if isinstance(d, Tensor) and d.size == 1 else d for d in given]
    return given


def shape_tuple(what: str, shape: Any) -> tuple:
    """A shape given as an int, a sequence of ints (or of 0-D tensors) or an int tensor."""
    if type(shape) is list or type(shape) is tuple:     # the most frequent ones, at once
        for d in shape:
            if type(d) is not int or d < 0:
                break
        else:
            return tuple(shape)
    shape = sizes(shape)
    if not isinstance(shape, (list, tuple)) and (isinstance(shape, int) or is_symbolic(shape)):
        shape = (shape,)
    try:
        out = tuple(d if is_symbolic(d) else d.__index__() for d in shape)
    except (TypeError, AttributeError):
        raise TypeError(f"{what}: expected a shape, an int or a list of ints, got {shape!r}") from None
    for d in out:
        if isinstance(d, int) and d < 0:
            raise ValueError(f"{what}: expected a shape of sizes >= 0, got {list(out)}")
    return out


@makes
def full(shape: Any, fill_value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """A tensor of `shape` filled with `fill_value`; dtype from the value if not given (floats: the default dtype).

    >>> full([2, 2], 7).tolist()
    [[7, 7], [7, 7]]
    """
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    if isinstance(fill_value, str):                     # Paddle takes "0.5" too
        try:
            fill_value = float(fill_value)
        except ValueError:
            raise TypeError(f"full: expected fill_value to be a number, got {fill_value!r}") from None
    if dtype is None:
        dtype = (dtypes.bool if isinstance(fill_value, bool) else
                 dtypes.int64 if isinstance(fill_value, int) else
                 dtypes.complex128 if isinstance(fill_value, complex) else dtypes.get_default_dtype())
    return Full(shape=shape_tuple("full", shape), value=fill_value, dtype=dtypes.to_np(dtype))


def full_like(x: Tensor, fill_value: Any, dtype: Any = None, name: str | None = None, *, device: Any = None,
              requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """`fill_value` everywhere, in the shape (and dtype, unless given) of x."""
    out = FullLike(x, value=fill_value, dtype=None if dtype is None else dtypes.to_np(dtype))
    return asked_for(out, "full_like", device, requires_grad) if requires_grad or device is not None else out


@spread(0)
@makes
def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Zeros; the default dtype unless given.

    >>> zeros([2], "int32")
    Tensor(shape=[2], dtype=int32, place=Place(cpu), stop_gradient=True,
           [0, 0])
    """
    return full(shape, 0, dtypes.get_default_dtype() if dtype is None else dtype)


@spread(0)
@makes
def ones(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Ones; the default dtype unless given."""
    return full(shape, 1, dtypes.get_default_dtype() if dtype is None else dtype)


def zeros_like(x: Tensor, dtype: Any = None, name: str | None = None, *, device: Any = None,
               requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """Zeros in the shape of x."""
    return full_like(x, 0, dtype, device=device, requires_grad=requires_grad)


def ones_like(x: Tensor, dtype: Any = None, name: str | None = None, *, device: Any = None,
              requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """Ones in the shape of x."""
    return full_like(x, 1, dtype, device=device, requires_grad=requires_grad)


empty, empty_like = zeros, zeros_like      # nothing is gained by leaving memory uninitialised; the values are defined


@makes
def arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None, name: str | None = None) -> Tensor:
    """start, start + step, ... below `end`; `arange(n)` counts from 0.  int64 unless a float is given.

    >>> arange(1, 10, 4).tolist()
    [1, 5, 9]
    """
    if end is None:
        start, end = 0, start
    start, end, step = (v.item() if isinstance(v, Tensor) else v for v in (start, end, step))
    if step == 0:
        raise ValueError("arange: step must not be 0")
    if dtype is None:
        dtype = dtypes.get_default_dtype() if any(isinstance(v, float) for v in (start, end, step)) else dtypes.int64
    return Arange(start=start, stop=end, step=step, dtype=dtypes.to_np(dtype))


def assign(x: Any, output: Tensor | None = None) -> Tensor:
    """A copy of x (differentiable), or, with `output`, x written into it, whatever shape and dtype it had."""
    x = x if isinstance(x, Tensor) else to_tensor(x)
    return Assign(x) if output is None else write_anew(output, _assign, x)


def _assign(_: Tensor, x: Tensor) -> Tensor:
    return Assign(x)


def clone(x: Tensor, name: str | None = None) -> Tensor:
    """A copy of x, through which gradients flow."""
    return Assign(x)


def to_tensor(data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True) -> Tensor:
    """A tensor with a copy of `data`: a number, nested lists, a numpy array, or a Tensor.

    Floats and ints in lists become the default dtype and int64, complex numbers get parts of the default dtype; arrays,
    and tensors in lists, keep their dtype.
    Raises: TypeError for data without a minipd dtype (strings, objects), ValueError for ragged lists.

    >>> to_tensor([[1.0, 2.0]], stop_gradient=False)
    Tensor(shape=[1, 2], dtype=float32, place=Place(cpu), stop_gradient=False,
           [[1., 2.]])
    """
    if isinstance(data, Tensor):
        out = Tensor(Assign(data.detach()).payload)
        if dtype is not None and out.payload.dtype != dtypes.to_np(dtype):
            out = cast(out, dtype)
        out.stop_gradient = stop_gradient
        return out
    inside: list[np.dtype] = []             # of the tensors in the list
    try:
        array = np.array(_unwrap(data, inside))
    except ValueError:
        raise ValueError(f"to_tensor: expected a rectangular nested list, got ragged rows: {data!r:.80}") from None
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if dtype is not None:
        wanted = dtypes.to_np(dtype)
    elif inside:
        wanted = functools.reduce(dtypes.promote, inside)
        if array.dtype.kind == "f" and wanted not in dtypes.INEXACT:
            wanted = dtypes.get_default_dtype_np()
    elif isinstance(data, (np.ndarray, np.generic)) or array.dtype.kind not in "fiuc":
        wanted = array.dtype
    else:
        floating = dtypes.get_default_dtype_np()
        wanted = {"f": floating, "c": dtypes.complex_of(floating)}.get(array.dtype.kind, dtypes.int64.np)
    dtypes.of(array.dtype)                  # a dtype that minipd has
    t = Tensor(array.astype(wanted, copy=False))
    t.stop_gradient = stop_gradient
    return t


def _unwrap(data: Any, inside: list[np.dtype]) -> Any:
    """Nested lists with arrays in place of tensors, whose dtypes are added to `inside`."""
    if isinstance(data, (list, tuple)):
        return [_unwrap(d, inside) for d in data]
    if isinstance(data, Tensor):
        inside.append(data.payload.dtype)
        return data.values("to_tensor()")
    return data
