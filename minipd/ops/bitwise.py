"""Bit by bit: on ints in two's complement, and on bools, where it is the logic of truth values."""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op, ufunc
from minipd.framework.tensor import Tensor
from minipd.ops.families import Bits
from minipd.ops.making import into
from minipd.ops.promotion import as_tensor, binary, promoted
from minipd.ops.shapes import elementwise, require_bits

__all__ = ["bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
           "bitwise_xor"]


@op("bitwise_and", Trait.COMMUTATIVE)
class BitwiseAnd(Bits):
    """The bits that are set in x and in y, broadcast."""

    kernel = ufunc("bitwise_and")


@op("bitwise_or", Trait.COMMUTATIVE)
class BitwiseOr(Bits):
    """The bits that are set in x or in y, broadcast."""

    kernel = ufunc("bitwise_or")


@op("bitwise_xor", Trait.COMMUTATIVE)
class BitwiseXor(Bits):
    """The bits that are set in one of x and y, broadcast."""

    kernel = ufunc("bitwise_xor")


@op("bitwise_not")
class BitwiseNot(Bits):
    """The bits that are not set in x."""

    def infer_meta(what, x):
        require_bits(what, x)
        return Meta(x.shape, x.dtype)

    kernel = ufunc("invert")


class Shift(Bits):
    """is_arithmetic: the top bit is a sign, and kept; else it is a bit like the others."""

    def infer_meta(what, x, y, *, is_arithmetic=True):
        require_bits(what, x, y)
        return elementwise(what, x, y)


@op("bitwise_left_shift")
class BitwiseLeftShift(Shift):
    """x * 2 ** y, broadcast, as far as there are bits: 0 for a y beyond them, or below 0."""

    def kernel(xp, x, y, *, is_arithmetic=True):
        return _shift(xp, "left_shift", x, y, is_arithmetic)

    def kernel_out(xp, out, x, y, *, is_arithmetic=True):
        out[...] = _shift(xp, "left_shift", x, y, is_arithmetic)


@op("bitwise_right_shift")
class BitwiseRightShift(Shift):
    """x / 2 ** y rounded down, broadcast: for a y beyond the bits, or below 0, what is left of any x, 0 or -1."""

    def kernel(xp, x, y, *, is_arithmetic=True):
        return _shift(xp, "right_shift", x, y, is_arithmetic)

    def kernel_out(xp, out, x, y, *, is_arithmetic=True):
        out[...] = _shift(xp, "right_shift", x, y, is_arithmetic)


def _shift(xp: Any, function: str, x: Any, y: Any, is_arithmetic: bool) -> Any:
    """Shifts beyond the bits are undefined in C: so the last one is made on its own."""
    dtype = x.dtype if hasattr(x, "dtype") else y.dtype
    x, y = xp.asarray(x, dtype), xp.asarray(y, dtype)
    if dtype.kind == "b":
        x, y = x.astype(xp.uint8), y.astype(xp.uint8)
    elif not is_arithmetic:
        x = x.view(f"u{dtype.itemsize}")
    last = 8 * x.dtype.itemsize - 1
    far = (y < 0) | (y > last)
    shift = getattr(xp, function)
    near = shift(x, xp.where(far, last, y).astype(x.dtype))
    return xp.where(far, shift(near, x.dtype.type(1)), near).astype(dtype)


_and, _or, _xor = binary(BitwiseAnd), binary(BitwiseOr), binary(BitwiseXor)


def bitwise_and(x: Tensor, y: Any, out: Tensor | None = None, name: str | None = None) -> Tensor:
    """The bits that are set in x and in y, broadcast.   x, y: int or bool.

    >>> from minipd.ops.creation import to_tensor
    >>> bitwise_and(to_tensor([6]), to_tensor([3])).tolist()
    [2]
    """
    return _and(x, y, out=out)


def bitwise_or(x: Tensor, y: Any, out: Tensor | None = None, name: str | None = None) -> Tensor:
    """The bits that are set in x or in y, broadcast.   x, y: int or bool.

    >>> from minipd.ops.creation import to_tensor
    >>> bitwise_or(to_tensor([6]), to_tensor([3])).tolist()
    [7]
    """
    return _or(x, y, out=out)


def bitwise_xor(x: Tensor, y: Any, out: Tensor | None = None, name: str | None = None) -> Tensor:
    """The bits that are set in one of x and y, broadcast.   x, y: int or bool.

    >>> from minipd.ops.creation import to_tensor
    >>> bitwise_xor(to_tensor([6]), to_tensor([3])).tolist()
    [5]
    """
    return _xor(x, y, out=out)


def bitwise_not(x: Tensor, out: Tensor | None = None, name: str | None = None) -> Tensor:
    """The bits that are not set in x: int or bool.

    >>> from minipd.ops.creation import to_tensor
    >>> bitwise_not(to_tensor([6])).tolist(), bitwise_not(to_tensor([True])).tolist()
    ([-7], [False])
    """
    return into(out, BitwiseNot(as_tensor("bitwise_not", x)))


bitwise_invert = bitwise_not


def bitwise_left_shift(x: Tensor, y: Any, is_arithmetic: bool = True, out: Tensor | None = None,
                       name: str | None = None) -> Tensor:
    """x * 2 ** y, broadcast, as far as the dtype has bits; 0 for a y beyond them, or below 0.

    >>> from minipd.ops.creation import to_tensor
    >>> bitwise_left_shift(to_tensor([3, 3]), to_tensor([2, 64])).tolist()
    [12, 0]
    """
    x, y = promoted("bitwise_left_shift", x, y)
    return into(out, BitwiseLeftShift(x, y, is_arithmetic=bool(is_arithmetic)))


def bitwise_right_shift(x: Tensor, y: Any, is_arithmetic: bool = True, out: Tensor | None = None,
                        name: str | None = None) -> Tensor:
    """x / 2 ** y rounded down, broadcast.

    is_arithmetic: the top bit of x is its sign, and stays; else x is taken as an unsigned number.

    >>> from minipd.ops.creation import to_tensor
    >>> x, one = to_tensor([-8], dtype="int8"), to_tensor([1], dtype="int8")
    >>> bitwise_right_shift(x, one).tolist(), bitwise_right_shift(x, one, is_arithmetic=False).tolist()
    ([-4], [124])
    """
    x, y = promoted("bitwise_right_shift", x, y)
    return into(out, BitwiseRightShift(x, y, is_arithmetic=bool(is_arithmetic)))
