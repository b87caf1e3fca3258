"""The opposite of max pooling: maxima put back where they came from."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import prod
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.ops.embedding import TakeAlongAxis
from minipd.ops.pooling import flattened

__all__: list[str] = []


@op("unpool", Trait.EXACT)
class Unpool:
    """x [N, C, *windows] at positions `indices`, row-major, of zeros [N, C, *output_size]; of equal positions the last
    one counts."""

    def infer_meta(x, indices, *, output_size):
        if tuple(x.shape) != tuple(indices.shape):
            raise ValueError(f"unpool: expected indices of x's shape, got {describe(indices)} for x {describe(x)}")
        return Meta((*x.shape[:2], *output_size), x.dtype)

    def kernel(xp, x, indices, *, output_size):
        out = xp.empty((*x.shape[:2], *output_size), x.dtype)
        _unpool(xp, out, x, indices)
        return out

    def kernel_out(xp, out, x, indices, *, output_size):
        _unpool(xp, out, x, indices)

    def vjp_x(g, indices):
        s = indices.payload.shape
        return TakeAlongAxis(flattened(g), flattened(indices), axis=2).reshape(s)


def _unpool(xp: Any, out: Any, x: Any, indices: Any) -> None:
    size = prod(out.shape[2:])
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        raise ValueError(f"unpool: expected indices in 0 .. {size - 1}, the positions in a result of "
                         f"{list(out.shape[2:])}, got {indices.min()} to {indices.max()}")
    n, c = x.shape[:2]
    flat = xp.zeros((n * c, size), out.dtype)
    flat[xp.arange(n * c)[:, None], indices.reshape(n * c, prod(x.shape[2:]))] = x.reshape(n * c, prod(x.shape[2:]))
    out[...] = flat.reshape(out.shape)
