"""Functions that are constant between jumps: rounding, and the sign."""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import Meta
from minipd.framework.row import op, ufunc
from minipd.framework.tensor import Tensor
from minipd.ops.families import Step
from minipd.ops.making import into
from minipd.ops.promotion import as_tensor, unary
from minipd.ops.shapes import require_real

__all__ = ["ceil", "floor", "frac", "round", "sign", "trunc"]


@op("floor")
class Floor(Step):
    """The largest whole number that is not above x."""

    kernel = ufunc("floor")


@op("ceil")
class Ceil(Step):
    """The smallest whole number that is not below x."""

    kernel = ufunc("ceil")


@op("trunc")
class Trunc(Step):
    """x without its fraction: the next whole number towards 0."""

    kernel = ufunc("trunc")


@op("round")
class Round(Step):
    """x to `decimals` places, halves to the even neighbour.  Ints stay as they are."""

    def infer_meta(x, *, decimals=0):
        require_real("round", x)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, decimals=0):
        return _round(xp, xp.array(x), decimals)

    def kernel_out(xp, out, x, *, decimals=0):
        out[...] = x
        _round(xp, out, decimals)


def _round(xp: Any, out: Any, decimals: int) -> Any:
    """In place.  10 to a negative power is no float: so x is multiplied for places behind the point, and divided for
    those before it."""
    if out.dtype.kind in "iu":
        return out
    power = out.dtype.type(10.0 ** (decimals if decimals > 0 else -decimals))
    if decimals == 0:
        xp.rint(out, out=out)
    elif decimals > 0:
        xp.true_divide(xp.rint(xp.multiply(out, power, out=out), out=out), power, out=out)
    else:
        xp.multiply(xp.rint(xp.true_divide(out, power, out=out), out=out), power, out=out)
    return out


@op("sign")
class Sign(Step):
    """-1, 0 or 1; NaN of NaN."""

    kernel = ufunc("sign")


floor, ceil, sign = unary(Floor), unary(Ceil), unary(Sign)
_trunc = unary(Trunc)


def trunc(input: Tensor, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Each element without its fraction: the next whole number towards 0.

    >>> from minipd.ops.creation import to_tensor
    >>> trunc(to_tensor([1.7, -1.7])).tolist()
    [1.0, -1.0]
    """
    return _trunc(input, out=out)


def round(x: Tensor, decimals: int = 0, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Each element to `decimals` places behind the point (negative: before it), halves to the even neighbour.

    Ints stay as they are.

    >>> from minipd.ops.creation import to_tensor
    >>> round(to_tensor([0.5, 1.5, 2.25])).tolist(), round(to_tensor([3.14159]), 2).tolist()
    ([0.0, 2.0, 2.0], [3.140000104904175])
    """
    x = as_tensor("round", x)
    try:
        places = decimals.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"round: expected decimals to be an int, got {decimals!r}") from None
    return into(out, Round(x, decimals=places))


def frac(x: Tensor, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The fraction of each element, with its sign: x - trunc(x).

    >>> from minipd.ops.creation import to_tensor
    >>> frac(to_tensor([1.5, -1.5])).tolist()
    [0.5, -0.5]
    """
    x = as_tensor("frac", x)
    return into(out, x - Trunc(x))
