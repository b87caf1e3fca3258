"""The same elements under another shape or order: reshape, squeeze, unsqueeze, transpose.  All are views."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import exact_div, is_symbolic, prod, same
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.spelling import as_given, spells
from minipd.framework.tensor import Tensor
from minipd.ops.creation import shape_tuple, sizes
from minipd.ops.making import spread
from minipd.ops.shapes import agree, normalize_axes, normalize_axis

__all__ = ["flatten", "ravel", "reshape", "squeeze", "t", "transpose", "unflatten", "unsqueeze"]


@op("reshape", Trait.VIEW, Trait.EXACT)
class Reshape:
    """The same elements in row-major order under another shape."""

    mutable = ("shape",)

    def infer_meta(x, *, shape):
        if not agree(prod(shape), prod(x.shape), "reshape: the number of elements"):
            raise ValueError(f"reshape: expected a shape of {prod(x.shape)} elements for {describe(x)}, got "
                             f"{list(shape)} of {prod(shape)}")
        return Meta(shape, x.dtype)

    def kernel(xp, x, *, shape):
        return x.reshape(shape)

    def put_back(base, view, *, shape):
        return reshape(view, base.payload.shape)

    def vjp_x(g, x: Meta):
        return Reshape(g, shape=x.shape)


@op("squeeze", Trait.VIEW, Trait.EXACT)
class Squeeze:
    """Without the dimensions `axis`, each of size 1."""

    mutable = ("axis",)

    def infer_meta(x, *, axis):
        return Meta(tuple(d for i, d in enumerate(x.shape) if i not in axis), x.dtype)

    def kernel(xp, x, *, axis):
        return x.reshape(tuple(d for i, d in enumerate(x.shape) if i not in axis))

    def put_back(base, view, *, axis):
        return Unsqueeze(view, axis=axis)

    def vjp_x(g, axis):
        return Unsqueeze(g, axis=axis)


@op("unsqueeze", Trait.VIEW, Trait.EXACT)
class Unsqueeze:
    """With new dimensions of size 1, at the positions `axis` of the result."""

    mutable = ("axis",)

    def infer_meta(x, *, axis):
        return Meta(_with_ones(x.shape, axis), x.dtype)

    def kernel(xp, x, *, axis):
        return x.reshape(_with_ones(x.shape, axis))

    def put_back(base, view, *, axis):
        return Squeeze(view, axis=axis)

    def vjp_x(g, axis):
        return Squeeze(g, axis=axis)


def _with_ones(shape: tuple, axis: tuple) -> tuple:
    dims = iter(shape)
    return tuple(1 if i in axis else next(dims) for i in range(len(shape) + len(axis)))


@op("transpose", Trait.VIEW, Trait.EXACT)
class Transpose:
    """Dimension i of the result is dimension perm[i] of x."""

    def infer_meta(x, *, perm):
        return Meta(tuple(x.shape[p] for p in perm), x.dtype)

    def kernel(xp, x, *, perm):
        return x.transpose(perm)

    def put_back(base, view, *, perm):
        return Transpose(view, perm=_inverse(perm))

    def vjp_x(g, perm):
        return Transpose(g, perm=_inverse(perm))


def _inverse(perm: tuple) -> tuple:
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


# ------------------------------------------------------------------------------------------- public functions
@spread(1)
def reshape(x: Tensor, shape: Any, name: str | None = None) -> Tensor:
    """The same elements under another shape.  -1 (once) is what is left over; 0 keeps the dimension as it is.

    The result is a view: in-place writes to either are seen by both.  Where the elements do not stand in memory in the
    new order (a reshape of a transposed tensor, of a slice of columns, of something expanded) it is a copy, and writes
    are not seen.  While tracing the same holds; where symbolic sizes decide, a write is refused.
    Raises: ValueError if the numbers of elements differ.

    >>> from minipd.ops.creation import arange
    >>> reshape(arange(6), [2, -1]).shape
    paddle.Size([2, 3])
    """
    own = x.payload.shape
    given = sizes(shape)
    target = list(given) if isinstance(given, (list, tuple)) else [given]
    if 0 in target and prod(own) != 0:
        target = [own[i] if same(d, 0) and i < len(own) else d for i, d in enumerate(target)]
    if target.count(-1) > 1:
        raise ValueError(f"reshape: expected at most one -1, got {target}")
    if -1 in target:
        rest = -prod(target)
        total = prod(own)
        if not is_symbolic(rest) and not is_symbolic(total) and (rest == 0 or total % rest):
            raise ValueError(f"reshape: {total} elements of shape {list(own)} do not divide into {target}")
        target[target.index(-1)] = exact_div(total, rest, f"reshape of {list(own)} to {target}")
    shape = shape_tuple("reshape", target)
    return Reshape(x, shape=as_given(shape, tuple(given)) if isinstance(given, (list, tuple)) and spells() else shape)


def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension, in row-major order."""
    return Reshape(input, shape=(prod(input.payload.shape),))


def unflatten(x: Tensor, axis: int, shape: Any, name: str | None = None) -> Tensor:
    """Dimension `axis` as several of the sizes `shape`; -1 (once) is what is left over.

    >>> from minipd.ops.creation import ones
    >>> unflatten(ones([4, 6]), 1, [2, -1]).shape
    paddle.Size([4, 2, 3])
    """
    at = normalize_axis("unflatten", axis, x.ndim)
    own = x.payload.shape
    if not own:
        raise ValueError(f"unflatten: expected a tensor of at least 1 dimension, got {describe(x.payload)}")
    if isinstance(shape, int):
        raise TypeError(f"unflatten: expected shape to be a list of sizes, got {shape}")
    parts = list(sizes(shape))
    left_over = [i for i, d in enumerate(parts) if same(d, -1)]
    rest = prod(d for d in parts if not same(d, -1))
    if len(left_over) == 1:
        parts[left_over[0]] = exact_div(own[at], rest, f"unflatten of axis {at} of {describe(x.payload)} to {parts}")
    elif left_over or not agree(rest, own[at], "unflatten"):
        raise ValueError(f"unflatten: expected sizes that multiply to {own[at]}, that of axis {at} of "
                         f"{describe(x.payload)}, and at most one -1, got {parts}")
    return Reshape(x, shape=(*own[:at], *shape_tuple("unflatten", parts), *own[at + 1:]))


def flatten(x: Tensor, start_axis: int = 0, stop_axis: int = -1, name: str | None = None) -> Tensor:
    """Dimensions start_axis to stop_axis, inclusive, as one."""
    if x.ndim == 0:
        return x.reshape([1])
    a, b = normalize_axis("flatten", start_axis, x.ndim), normalize_axis("flatten", stop_axis, x.ndim)
    if a > b:
        raise ValueError(f"flatten: expected start_axis before stop_axis, got {start_axis} and {stop_axis} for "
                         f"{describe(x.payload)}")
    s = x.payload.shape
    shape = (*s[:a], prod(s[a:b + 1]), *s[b + 1:])
    return Reshape(x, shape=as_given(shape, ("flatten", int(a), int(b))) if spells() else shape)


def squeeze(x: Tensor, axis: Any = None, name: str | None = None) -> Tensor:
    """Without dimensions of size 1 (all of them, or those among `axis` that have size 1)."""
    axes = normalize_axes("squeeze", axis, x.ndim)
    ones = tuple(a for a in axes if same(x.payload.shape[a], 1))
    return Squeeze(x, axis=ones) if ones else x


def unsqueeze(x: Tensor, axis: Any, name: str | None = None) -> Tensor:
    """With new dimensions of size 1 at the positions `axis`, inserted one after the other.

    >>> from minipd.ops.creation import ones
    >>> unsqueeze(ones([2, 3]), [0, -1]).shape
    paddle.Size([1, 2, 3, 1])
    """
    listed = axis.tolist() if isinstance(axis, Tensor) else axis
    placed: list[int] = []
    for n, a in enumerate(listed if isinstance(listed, (list, tuple)) else [listed]):
        at = normalize_axis("unsqueeze", a, x.ndim + n + 1)
        placed = [p + (p >= at) for p in placed] + [at]
    if not spells():
        return Unsqueeze(x, axis=tuple(sorted(placed)))
    given = listed if isinstance(listed, (list, tuple)) else [listed]
    return Unsqueeze(x, axis=as_given(tuple(sorted(map(int, placed))), tuple(map(int, given))))


def transpose(x: Tensor, perm: Any, name: Any = None) -> Tensor:
    """Dimensions in the order `perm`; negative ones count from the end.  `transpose(x, a, b)` exchanges two of them.

    Raises: ValueError if `perm` is no permutation.

    >>> from minipd.ops.creation import ones
    >>> transpose(ones([2, 3, 4]), [-1, 0, 1]).shape
    paddle.Size([4, 2, 3])
    """
    if isinstance(perm, int) and isinstance(name, int):
        a, b = (normalize_axis("transpose", i, x.ndim) for i in (perm, name))
        perm = [b if i == a else a if i == b else i for i in range(x.ndim)]
    ndim = len(x.payload.shape)
    axes = tuple([normalize_axis("transpose", p, ndim) for p in perm])
    if len(axes) != ndim or len(set(axes)) != ndim:
        raise ValueError(f"transpose: expected a permutation of {ndim} dimensions, got {list(perm)}")
    return Transpose(x, perm=axes)


def t(input: Tensor, name: str | None = None) -> Tensor:
    """The transpose of a matrix; tensors of fewer dimensions as they are."""
    if input.ndim > 2:
        raise ValueError(f"t: expected at most 2 dimensions, got {describe(input)}; use transpose")
    return Transpose(input, perm=(1, 0)) if input.ndim == 2 else input
