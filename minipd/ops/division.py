"""Division: true, rounded, with remainder, and what follows from it: common divisors and multiples.

By Python's rule of signs: the quotient is rounded down, the remainder has the divisor's sign.  A float divided by 0 is
infinite or NaN; of ints there is no such answer, and they raise.
"""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op, ufunc
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import reduce_to
from minipd.ops.cast import cast
from minipd.ops.families import Bits, RealBinary
from minipd.ops.making import into
from minipd.ops.math import over
from minipd.ops.promotion import binary, promoted
from minipd.ops.shapes import elementwise, require_bits, require_numbers

__all__ = ["div", "divide", "floor_divide", "floor_mod", "gcd", "lcm", "mod", "remainder", "true_divide"]


def _require_divisors(what: str, y: Any) -> None:
    """Raise ZeroDivisionError if ints are divided by 0."""
    if not hasattr(y, "dtype"):
        zero = type(y) is int and y == 0
    else:
        zero = y.dtype.kind in "iu" and not (y != 0).all()
    if zero:
        raise ZeroDivisionError(f"{what}: expected divisors other than 0, got one in {describe(y)}; ints have no "
                                "infinity, cast them to floats, or divide by where(y == 0, 1, y)")


@op("floor_divide")
class FloorDivide(RealBinary):
    """out = x / y rounded down, broadcast: in the operands' dtype, ints too.  Int divisors must not be 0."""

    def kernel(xp, x, y):
        _require_divisors("floor_divide", y)
        return xp.floor_divide(x, y)

    def kernel_out(xp, out, x, y):
        _require_divisors("floor_divide", y)
        xp.floor_divide(x, y, out=out)


@op("remainder")
class Remainder(RealBinary):
    """out = x - y * floor(x / y), broadcast: it has the sign of y.  Int divisors must not be 0."""

    def kernel(xp, x, y):
        _require_divisors("remainder", y)
        return xp.remainder(x, y)

    def kernel_out(xp, out, x, y):
        _require_divisors("remainder", y)
        xp.remainder(x, y, out=out)

    def vjp_x(g, x: Meta):
        return reduce_to(g, x)

    def vjp_y(g, x, y):
        return reduce_to(-(g * floor_divide(x, y)), y)


class Ints(Bits):
    """Element by element on two operands of one int dtype, broadcast."""

    def infer_meta(what, x, y):
        require_numbers(what, x, y)
        require_bits(what, x, y)
        return elementwise(what, x, y)


@op("gcd", Trait.COMMUTATIVE)
class Gcd(Ints):
    """The greatest common divisor of each pair of ints, broadcast; of 0 and x it is |x|."""

    kernel = ufunc("gcd")


@op("lcm", Trait.COMMUTATIVE)
class Lcm(Ints):
    """The least common multiple of each pair of ints, broadcast; of 0 and x it is 0."""

    kernel = ufunc("lcm")


floor_divide, remainder, gcd, lcm = binary(FloorDivide), binary(Remainder), binary(Gcd), binary(Lcm)
mod = floor_mod = remainder


def divide(x: Tensor, y: Any, name: str | None = None, *, rounding_mode: str | None = None,
           out: Tensor | None = None) -> Tensor:
    """x / y, broadcast: floats, of ints too.   rounding_mode: "floor" rounds down, "trunc" towards 0, in the operands'
    dtype.

    Raises: ZeroDivisionError for ints that are divided by 0 with a rounding mode.

    >>> from minipd.ops.creation import to_tensor
    >>> x, y = to_tensor([7, -7]), to_tensor([2, 2])
    >>> divide(x, y).tolist(), divide(x, y, rounding_mode="floor").tolist()
    ([3.5, -3.5], [3, -4])
    >>> divide(x, y, rounding_mode="trunc").tolist()
    [3, -3]
    """
    if rounding_mode is None:
        return over(x, y, out=out)
    if rounding_mode == "floor":
        return floor_divide(x, y, out=out)
    if rounding_mode != "trunc":
        raise ValueError(f'divide: expected rounding_mode to be None, "floor" or "trunc", got {rounding_mode!r}')
    x, y = promoted("divide", x, y)
    down = floor_divide(x, y)
    return into(out, down + cast((down < 0) & (down * y != x), down.dtype))


div = divide


def true_divide(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """input / other, broadcast: floats, of ints too.

    >>> from minipd.ops.creation import to_tensor
    >>> true_divide(to_tensor([7]), to_tensor([2])).tolist()
    [3.5]
    """
    return over(input, other, out=out)
