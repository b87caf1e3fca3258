"""What a floating number is made of: sign, mantissa, exponent, and its neighbours."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op, ufunc
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import reduce_to
from minipd.ops.cast import cast
from minipd.ops.families import FloatingBinary, Predicate
from minipd.ops.math import where
from minipd.ops.promotion import as_floating, as_tensor, binary, promoted
from minipd.ops.scaling import neg
from minipd.ops.shapes import a_number, require_floating

__all__ = ["copysign", "frexp", "ldexp", "nan_to_num", "nextafter", "signbit"]


@op("copysign")
class CopySign(FloatingBinary):
    """The size of x with the sign of y (of -0.0 too), broadcast; gradient 0 where x is 0."""

    kernel = ufunc("copysign")

    def vjp_x(g, x, out):
        return reduce_to(g * (out / where(x == 0.0, 1.0, x)), x)

    def vjp_y(g, y: Meta):
        return reduce_to(g * 0.0, y)


@op("nextafter", Trait.EXACT)
class NextAfter(FloatingBinary):
    """The neighbour of x on the way to y, broadcast; x where they are equal."""

    kernel = ufunc("nextafter")


@op("frexp", Trait.MULTI)
class Frexp:
    """x = mantissa * 2 ** exponent, 1/2 <= |mantissa| < 1; both 0 for 0.  The exponent is a whole float."""

    outputs = ("mantissa", "exponent")

    def infer_meta(x):
        require_floating("frexp", x)
        return Meta(x.shape, x.dtype), Meta(x.shape, x.dtype)

    def kernel(xp, x):
        mantissa, exponent = xp.frexp(x)
        return xp.asarray(mantissa), xp.asarray(exponent).astype(x.dtype)

    def kernel_out(xp, out, x):
        out[0][...], out[1][...] = xp.frexp(x)

    def vjp_x(gs, exponent):
        return gs[1] * 0.0 if gs[0] is None else gs[0] * 2.0 ** -exponent


@op("signbit")
class SignBit(Predicate):
    """Whether the sign is minus: of -0.0 too."""

    kernel = ufunc("signbit")


_copysign = binary(CopySign)
nextafter = binary(NextAfter, floating=True)


def copysign(x: Tensor, y: Any, name: str | None = None) -> Tensor:
    """The size of x with the sign of y, broadcast.   y: a tensor or a number.

    >>> from minipd.ops.creation import to_tensor
    >>> copysign(to_tensor([1.0, -2.0]), to_tensor([-0.0, 3.0])).tolist()
    [-1.0, 2.0]
    """
    x, y = promoted("copysign", as_tensor("copysign", x), y)
    if x.payload.dtype in dtypes.FLOATS:
        return _copysign(x, y)
    x, y = (cast(t, "int64") if t.payload.dtype == dtypes.bool.np else t for t in (x, as_tensor("copysign", y)))
    return where((x < 0) == (y < 0), x, neg(x))


def signbit(x: Tensor, name: str | None = None) -> Tensor:
    """Whether each element's sign is minus: of -0.0 too.

    >>> from minipd.ops.creation import to_tensor
    >>> signbit(to_tensor([-0.0, 0.0, -3.0])).tolist()
    [True, False, True]
    """
    x = as_tensor("signbit", x)
    return SignBit(x) if x.payload.dtype in dtypes.FLOATS else x < 0


def frexp(x: Tensor, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Mantissa and exponent of each element: x = mantissa * 2 ** exponent, 1/2 <= |mantissa| < 1, both 0 for 0.

    Both are of x's dtype.
    Raises: TypeError for int tensors.

    >>> from minipd.ops.creation import to_tensor
    >>> mantissa, exponent = frexp(to_tensor([10.0, -0.25]))
    >>> mantissa.tolist(), exponent.tolist()
    ([0.625, -0.5], [4.0, -1.0])
    """
    x = as_tensor("frexp", x)
    require_floating("frexp", x.payload)
    return Frexp(x)


def ldexp(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """x * 2 ** y, broadcast.   Ints become floats.

    >>> from minipd.ops.creation import to_tensor
    >>> ldexp(to_tensor([1.0, 3.0]), to_tensor([2, -1])).tolist()
    [4.0, 1.5]
    """
    x = as_floating("ldexp", x)
    return x * 2.0 ** cast(as_tensor("ldexp", y), x.dtype)


def nan_to_num(x: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None,
               name: str | None = None) -> Tensor:
    """x with NaN and the infinities replaced: by `nan`, `posinf` and `neginf` (None: the dtype's largest and smallest
    number).

    >>> from minipd.ops.creation import to_tensor
    >>> nan_to_num(to_tensor([float("nan"), float("inf"), 1.0]), posinf=9.0).tolist()
    [0.0, 9.0, 1.0]
    """
    x = as_tensor("nan_to_num", x)
    require_floating("nan_to_num", x.payload)
    limits = dtypes.finfo(x.dtype)
    nan = a_number("nan_to_num", "nan", nan)
    posinf = limits.max if posinf is None else a_number("nan_to_num", "posinf", posinf)
    neginf = limits.min if neginf is None else a_number("nan_to_num", "neginf", neginf)
    x = where(x != x, float(nan), x)
    x = where(x == float("inf"), float(posinf), x)
    return where(x == -float("inf"), float(neginf), x)
