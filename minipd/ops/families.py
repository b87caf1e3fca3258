"""What the rows of a family share: traits and the shape rule.

A row inherits them, and says only what is its own:

    @op("sin")
    class Sin(Floating):
        \"\"\"out = sin x, x in radians.\"\"\"

        kernel = ufunc("sin")

        def vjp_x(g, x):
            return g * cos(x)
"""

from __future__ import annotations

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.row import Trait
from minipd.ops.creation import full_like
from minipd.ops.shapes import (
    elementwise,
    require_bits,
    require_floating,
    require_inexact,
    require_numbers,
    require_real,
)

__all__: list[str] = []


# ------------------------------------------------------------------------------------------------- one operand
class Unary:
    """Element by element on any dtype; the result has the operand's."""

    traits: tuple[Trait, ...] = (Trait.ELEMENTWISE,)

    def infer_meta(what, x):
        return Meta(x.shape, x.dtype)


class Number(Unary):
    """Element by element on numbers, of which bools are none."""

    def infer_meta(what, x):
        require_numbers(what, x)
        return Meta(x.shape, x.dtype)


class Floating(Unary):
    """Element by element on floats."""

    def infer_meta(what, x):
        require_floating(what, x)
        return Meta(x.shape, x.dtype)


class Analytic(Unary):
    """Element by element on floats and complex numbers; the gradient rule holds for both."""

    def infer_meta(what, x):
        require_inexact(what, x)
        return Meta(x.shape, x.dtype)


class Step(Unary):
    """Element by element on real numbers, and constant between jumps: the gradient is 0."""

    def infer_meta(what, x):
        require_real(what, x)
        return Meta(x.shape, x.dtype)

    def vjp_x(g):
        return full_like(g, 0.0)


class Predicate:
    """A question about each element: the answers are bools."""

    traits = (Trait.ELEMENTWISE, Trait.EXACT, Trait.DISCRETE)

    def infer_meta(what, x):
        return Meta(x.shape, dtypes.bool.np)


# ------------------------------------------------------------------------------------------------ two operands
class Binary:
    """Element by element on two operands of one dtype, broadcast."""

    traits: tuple[Trait, ...] = (Trait.ELEMENTWISE,)

    def infer_meta(what, x, y):
        return elementwise(what, x, y)


class NumberBinary(Binary):
    """Element by element on two operands of one dtype, other than bool, broadcast."""

    def infer_meta(what, x, y):
        require_numbers(what, x, y)
        return elementwise(what, x, y)


class RealBinary(Binary):
    """Element by element on two operands of one real dtype, other than bool, broadcast."""

    def infer_meta(what, x, y):
        require_real(what, x, y)
        return elementwise(what, x, y)


class Bits(Binary):
    """Element by element on two operands of one dtype, int or bool, broadcast."""

    traits = (Trait.ELEMENTWISE, Trait.EXACT, Trait.DISCRETE)

    def infer_meta(what, x, y):
        require_bits(what, x, y)
        return elementwise(what, x, y)


class FloatingBinary(Binary):
    """Element by element on two operands of one floating dtype, broadcast."""

    def infer_meta(what, x, y):
        require_floating(what, x if hasattr(x, "dtype") else y)
        return elementwise(what, x, y)


class Comparison:
    """A question about each pair of elements, broadcast: the answers are bools."""

    traits = (Trait.ELEMENTWISE, Trait.EXACT, Trait.DISCRETE)

    def infer_meta(what, x, y):
        return Meta(elementwise(what, x, y).shape, dtypes.bool.np)
