"""Complex numbers: their parts, and what is made of them.

How complex gradients are reckoned is written in `minipd.autograd.engine`: a rule here is, as everywhere, the transpose
of the derivative, and nothing is conjugated but what the formula conjugates.
"""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op, ufunc
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import reduce_to
from minipd.ops.cast import cast
from minipd.ops.creation import full_like
from minipd.ops.families import Unary
from minipd.ops.making import into
from minipd.ops.shapes import agree, elementwise

__all__ = ["as_complex", "as_real", "complex", "conj", "imag", "is_complex", "real", "view_as_complex", "view_as_real"]


def _complex(what: str, x: Any) -> None:
    if x.dtype not in dtypes.COMPLEX:
        raise TypeError(f"{what}: expected a complex tensor, got {describe(x)}")


def _parts(real: Any, imag: Any) -> Meta:
    """What two parts make."""
    meta = elementwise("complex", real, imag)
    if meta.dtype not in (dtypes.float32.np, dtypes.float64.np):
        raise TypeError(f"complex: expected parts of float32 or float64, got {describe(real)} and {describe(imag)}")
    return Meta(meta.shape, dtypes.complex_of(meta.dtype))


class Part:
    """The real or the imaginary parts, as a view."""

    traits = (Trait.VIEW, Trait.ELEMENTWISE, Trait.EXACT)

    def infer_meta(what, x):
        _complex(what, x)
        return Meta(x.shape, dtypes.real_of(x.dtype))


@op("real")
class Real(Part):
    """The real part of each element."""

    def kernel(xp, x):
        return x.real

    def vjp_x(g, x: Meta):
        return cast(g, x.dtype)

    def put_back(base, view):
        return Complex(view, Imag(base))


@op("imag")
class Imag(Part):
    """The imaginary part of each element."""

    def kernel(xp, x):
        return x.imag

    def vjp_x(g):                       # Im dx = Re(-i dx), so the slope is -i
        return Complex(full_like(g, 0.0), -g)

    def put_back(base, view):
        return Complex(Real(base), view)


@op("complex", Trait.ELEMENTWISE, Trait.EXACT)
class Complex:
    """out = real + i imag, broadcast."""

    def infer_meta(real, imag):
        return _parts(real, imag)

    def kernel(xp, real, imag):
        out = xp.empty(xp.broadcast_shapes(real.shape, imag.shape), dtypes.complex_of(real.dtype))
        out.real, out.imag = real, imag
        return out

    def kernel_out(xp, out, real, imag):
        out.real, out.imag = real, imag

    def vjp_real(g, real: Meta):
        return reduce_to(Real(g), real)

    def vjp_imag(g, imag: Meta):        # Re(g i dy) = -Im(g) dy
        return reduce_to(-Imag(g), imag)


@op("conj", Trait.EXACT)
class Conj(Unary):
    """The complex conjugate: the imaginary part with the opposite sign."""

    kernel = ufunc("conjugate")

    def vjp_x(g):
        return Conj(g)


@op("as_complex", Trait.VIEW, Trait.EXACT)
class AsComplex:
    """[..., 2] of real and imaginary parts -> complex [...], on the same memory if the parts lie side by side."""

    def infer_meta(x):
        if x.dtype not in (dtypes.float32.np, dtypes.float64.np) or not x.shape or not agree(
                x.shape[-1], 2, "as_complex: the last dimension"):
            raise ValueError(f"as_complex: expected float32 or float64 [..., 2], real and imaginary parts in the last "
                             f"dimension, got {describe(x)}")
        return Meta(x.shape[:-1], dtypes.complex_of(x.dtype))

    def kernel(xp, x):
        x = x if x.strides[-1] == x.itemsize else xp.ascontiguousarray(x)
        return x.view(dtypes.complex_of(x.dtype))[..., 0]

    def vjp_x(g):                       # Re(g (da + i db)) = Re(g) da - Im(g) db
        return AsReal(Conj(g))

    def put_back(base, view):
        return AsReal(view)


@op("as_real", Trait.VIEW, Trait.EXACT)
class AsReal:
    """Complex [...] -> [..., 2] of real and imaginary parts, on the same memory."""

    def infer_meta(x):
        _complex("as_real", x)
        return Meta((*x.shape, 2), dtypes.real_of(x.dtype))

    def kernel(xp, x):
        x = xp.asarray(x)               # the real part of a numpy scalar is no view of it
        parts = x.real[..., None]       # of a shape that cannot be widened; so the strides are given
        return xp.lib.stride_tricks.as_strided(parts, (*x.shape, 2), (*x.strides, parts.itemsize))

    def vjp_x(g):
        return Conj(AsComplex(g))

    def put_back(base, view):
        return AsComplex(view)


# ------------------------------------------------------------------------------------------- public functions
def real(x: Tensor, name: str | None = None) -> Tensor:
    """The real parts, a view of x.

    Raises: TypeError if x is not complex.

    >>> from minipd.ops.creation import to_tensor
    >>> real(to_tensor([1 + 2j])).tolist()
    [1.0]
    """
    _complex("real", x.payload)
    return Real(x)


def imag(x: Tensor, name: str | None = None) -> Tensor:
    """The imaginary parts, a view of x.

    Raises: TypeError if x is not complex.
    """
    _complex("imag", x.payload)
    return Imag(x)


def complex(real: Tensor, imag: Tensor, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """real + i imag, broadcast.

    Raises: TypeError unless both are of float32 or both of float64.

    >>> from minipd.ops.creation import to_tensor
    >>> complex(to_tensor([1.0, 2.0]), to_tensor(3.0)).tolist()
    [(1+3j), (2+3j)]
    """
    _parts(real.payload, imag.payload)
    return into(out, Complex(real, imag))


def conj(x: Tensor, name: str | None = None) -> Tensor:
    """The complex conjugate; a real tensor is its own.

    >>> from minipd.ops.creation import to_tensor
    >>> conj(to_tensor([1 + 2j])).tolist()
    [(1-2j)]
    """
    return Conj(x) if x.payload.dtype in dtypes.COMPLEX else x


def as_complex(x: Tensor, name: str | None = None) -> Tensor:
    """[..., 2] of real and imaginary parts as complex numbers [...].

    Raises: ValueError for another last dimension, or another dtype than float32 and float64.

    >>> from minipd.ops.creation import to_tensor
    >>> as_complex(to_tensor([[1.0, 2.0]])).tolist()
    [(1+2j)]
    """
    return AsComplex(x)


def as_real(x: Tensor, name: str | None = None) -> Tensor:
    """Complex numbers [...] as their real and imaginary parts [..., 2], a view.

    Raises: TypeError if x is not complex.
    """
    _complex("as_real", x.payload)
    return AsReal(x)


def view_as_complex(input: Tensor) -> Tensor:
    """`as_complex`, by PyTorch's name."""
    return as_complex(input)


def view_as_real(input: Tensor) -> Tensor:
    """`as_real`, by PyTorch's name."""
    return as_real(input)


def is_complex(x: Tensor) -> bool:
    """Whether the dtype of x is complex."""
    return x.payload.dtype in dtypes.COMPLEX
