"""Size and direction of complex numbers."""

from __future__ import annotations

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.row import op
from minipd.framework.tensor import Tensor
from minipd.ops.complex import Complex, Imag, Real, complex, is_complex
from minipd.ops.creation import full_like
from minipd.ops.elementary import cos, sin
from minipd.ops.families import Unary
from minipd.ops.logic import equal
from minipd.ops.math import abs, where
from minipd.ops.shapes import require_inexact

__all__ = ["angle", "isreal", "polar", "sgn"]


@op("angle")
class Angle(Unary):
    """The angle between x and the positive real axis, in (-pi, pi]; of a real x, 0 or pi."""

    def infer_meta(what, x):
        require_inexact(what, x)
        return Meta(x.shape, dtypes.real_of(x.dtype))

    def kernel(xp, x):
        return xp.angle(x)

    def kernel_out(xp, out, x):
        out[...] = xp.angle(x)

    def vjp_x(g, x):                    # Im(dx / x) = Re(-i conj(x) dx) / |x|^2; flat for real x, and nothing at 0
        if not is_complex(x):
            return full_like(g, 0.0)
        size = Real(x) * Real(x) + Imag(x) * Imag(x)
        g = g / where(size == 0.0, 1.0, size)
        return Complex(-(g * Imag(x)), -(g * Real(x)))


def angle(x: Tensor, name: str | None = None) -> Tensor:
    """The angle of each element to the positive real axis, in radians, in (-pi, pi].

    Raises: TypeError for int tensors.

    >>> from minipd.ops.creation import to_tensor
    >>> angle(to_tensor([1j, -1.0 + 0j])).tolist()
    [1.5707963705062866, 3.1415927410125732]
    """
    return Angle(x)


def polar(abs: Tensor, angle: Tensor, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The complex numbers of size `abs` at `angle` (in radians) to the positive real axis, broadcast.

    >>> from minipd.ops.creation import to_tensor
    >>> polar(to_tensor([2.0]), to_tensor([0.0])).tolist()
    [(2+0j)]
    """
    return complex(abs * cos(angle), abs * sin(angle), out=out)


def sgn(x: Tensor, name: str | None = None) -> Tensor:
    """x / |x|, the direction of each element, and 0 at 0: for a real x its sign.

    Raises: TypeError for int tensors.

    >>> from minipd.ops.creation import to_tensor
    >>> sgn(to_tensor([3.0 + 4.0j, 0j])).tolist()
    [(0.6000000238418579+0.800000011920929j), 0j]
    """
    require_inexact("sgn", x.payload)
    size = abs(x)
    return where(size == 0.0, 0.0, x / where(size == 0.0, 1.0, size))


def isreal(x: Tensor, name: str | None = None) -> Tensor:
    """True where the imaginary part is 0, as it is everywhere in a real tensor.

    >>> from minipd.ops.creation import to_tensor
    >>> isreal(to_tensor([1 + 0j, 1j])).tolist()
    [True, False]
    """
    return equal(Imag(x), 0.0) if is_complex(x) else full_like(x, True, "bool")
