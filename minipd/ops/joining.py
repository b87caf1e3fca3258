"""Tensors one after the other, and taken apart again: concat, stack, split."""

from __future__ import annotations

import functools
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import exact_div, is_symbolic, same
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.spelling import as_given
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.creation import Full, zeros_like
from minipd.ops.making import into
from minipd.ops.reshape import Unsqueeze
from minipd.ops.shapes import agree, normalize_axis

__all__ = ["cat", "concat", "concatenate", "split", "stack"]


@op("concat", Trait.EXACT)
class Concat:
    """The tensors one after the other along `axis`."""

    mutable = ("axis",)

    def infer_meta(*xs, axis):
        first = xs[0]
        if not first.shape:
            raise ValueError("concat: expected tensors of at least 1 dimension, got 0-D ones; use stack")
        for x in xs[1:]:
            if len(x.shape) != len(first.shape) or any(
                    i != axis and not agree(a, b, f"concat: dimension {i}")
                    for i, (a, b) in enumerate(zip(x.shape, first.shape, strict=True))):
                raise ValueError(f"concat: expected shapes that agree but for axis {axis}, got "
                                 f"{' and '.join(map(describe, xs))}")
        total = first.shape[axis]
        for x in xs[1:]:
            total = total + x.shape[axis]
        return Meta((*first.shape[:axis], total, *first.shape[axis + 1:]), first.dtype)

    def kernel(xp, *xs, axis):
        return xp.concatenate(xs, axis)

    def kernel_out(xp, out, *xs, axis):
        xp.concatenate(xs, axis, out=out)

    def vjp(g, xs: Meta, axis):
        sections = tuple(x.shape[axis] for x in xs)  # type: ignore[attr-defined]  # variadic: a Meta for each
        return list(Split(g, sections=sections, axis=axis))


@op("split", Trait.MULTI, Trait.EXACT)
class Split:
    """Consecutive parts along `axis`, of the sizes `sections`: copies, as Paddle's, not views."""

    mutable = ("sections", "axis")

    def infer_meta(x, *, sections, axis):
        return tuple(Meta((*x.shape[:axis], n, *x.shape[axis + 1:]), x.dtype) for n in sections)

    def kernel(xp, x, *, sections, axis):
        return tuple(map(xp.array, _parts(x, sections, axis)))

    def kernel_out(xp, out, x, *, sections, axis):
        for o, part in zip(out, _parts(x, sections, axis), strict=True):
            o[...] = part

    def vjp_x(gs, x: Meta, sections, axis):
        known = next(g for g in gs if g is not None)
        parts = []
        for g, n in zip(gs, sections, strict=True):
            if g is None:
                shape = (*x.shape[:axis], n, *x.shape[axis + 1:])
                g = zeros_like(known) if known.payload.shape == shape else Full(
                    shape=shape, value=0, dtype=known.payload.dtype)
            parts.append(g)
        return Concat(*parts, axis=axis)


def _parts(x: Any, sections: tuple, axis: int) -> list:
    parts, start = [], 0
    before = (slice(None),) * axis
    for n in sections:
        parts.append(x[(*before, slice(start, start + n))])
        start += n
    return parts


# ------------------------------------------------------------------------------------------- public functions
def concat(x: Any, axis: Any = 0, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The tensors of the list x, one after the other along `axis`.

    >>> from minipd.ops.creation import to_tensor
    >>> concat([to_tensor([[1, 2]]), to_tensor([[3]])], axis=1).tolist()
    [[1, 2, 3]]
    """
    xs = list(x)
    if not xs:
        raise ValueError("concat: expected at least one tensor, got an empty list")
    axis = axis.item() if isinstance(axis, Tensor) else axis
    return into(out, Concat(*of_one_dtype(xs), axis=normalize_axis("concat", axis, xs[0].ndim)))


cat = concatenate = concat


def of_one_dtype(xs: list[Tensor]) -> list[Tensor]:
    """Tensors cast to the dtype that all of them together are promoted to."""
    found = [x.payload.dtype for x in xs]
    if found.count(found[0]) == len(found):
        return xs
    wanted = functools.reduce(dtypes.promote, found)
    return [x if x.payload.dtype == wanted else cast(x, wanted) for x in xs]


def stack(x: Any, axis: int = 0, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The tensors of the list x, along a new dimension.

    >>> from minipd.ops.creation import to_tensor
    >>> stack([to_tensor([1, 2]), to_tensor([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    xs = list(x)
    if not xs:
        raise ValueError("stack: expected at least one tensor, got an empty list")
    at = normalize_axis("stack", axis, xs[0].ndim + 1)
    return concat([Unsqueeze(v, axis=(at,)) for v in xs], at, out=out)


def split(x: Tensor, num_or_sections: Any, axis: Any = 0, name: str | None = None) -> list[Tensor]:
    """x in parts along `axis`: into n equal ones, or of the given sizes (-1, once: what is left over).

    Raises: ValueError if the sizes do not add up.

    >>> from minipd.ops.creation import arange
    >>> [p.tolist() for p in split(arange(5), [2, -1])]
    [[0, 1], [2, 3, 4]]
    """
    axis = normalize_axis("split", axis.item() if isinstance(axis, Tensor) else axis, x.ndim)
    if not x.ndim:
        raise ValueError(f"split: expected a tensor of at least 1 dimension, got {describe(x.payload)}")
    n = x.payload.shape[axis]
    if isinstance(num_or_sections, int):
        if num_or_sections < 1:
            raise ValueError(f"split: expected at least 1 part, got {num_or_sections}")
        if not is_symbolic(n) and n % num_or_sections:
            raise ValueError(f"split: axis {axis} of size {n} does not divide into {num_or_sections} equal parts; "
                             "give the sizes in a list")
        sections = as_given((exact_div(n, num_or_sections, "split"),) * num_or_sections, num_or_sections)
    else:
        given = list(num_or_sections)
        rest = n - sum(d for d in given if not same(d, -1))
        sections = tuple(rest if same(d, -1) else d for d in given)
        if not same(sum(sections), n) or not is_symbolic(rest) and rest < 0:
            raise ValueError(f"split: sizes {given} do not add up to {n}, the size of axis {axis}")
    return list(Split(x, sections=sections, axis=axis))
