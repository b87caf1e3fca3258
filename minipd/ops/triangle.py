"""Triangles of matrices."""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor

__all__ = ["tril", "triu"]


def _require_matrix(what: str, x: Any) -> None:
    if len(x.shape) < 2:
        raise ValueError(f"{what}: expected a tensor of at least 2 dimensions, got {describe(x)}")


@op("tril", Trait.EXACT)
class Tril:
    """The lower triangle of the last two dimensions: 0 above the given diagonal."""

    def infer_meta(x, *, diagonal=0):
        _require_matrix("tril", x)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, diagonal=0):
        return xp.tril(x, diagonal)

    def kernel_out(xp, out, x, *, diagonal=0):
        out[...] = xp.tril(x, diagonal)

    def vjp_x(g, diagonal):
        return Tril(g, diagonal=diagonal)


@op("triu", Trait.EXACT)
class Triu:
    """The upper triangle of the last two dimensions: 0 below the given diagonal."""

    def infer_meta(x, *, diagonal=0):
        _require_matrix("triu", x)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, diagonal=0):
        return xp.triu(x, diagonal)

    def kernel_out(xp, out, x, *, diagonal=0):
        out[...] = xp.triu(x, diagonal)

    def vjp_x(g, diagonal):
        return Triu(g, diagonal=diagonal)


def tril(x: Tensor, diagonal: int = 0, name: str | None = None) -> Tensor:
    """0 above the given diagonal of the last two dimensions."""
    _require_matrix("tril", x.payload)
    return Tril(x, diagonal=diagonal)


def triu(x: Tensor, diagonal: int = 0, name: str | None = None) -> Tensor:
    """0 below the given diagonal of the last two dimensions."""
    _require_matrix("triu", x.payload)
    return Triu(x, diagonal=diagonal)
