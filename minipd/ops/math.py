"""Element-wise arithmetic: one kernel, one gradient rule per input, side by side."""

from __future__ import annotations

import cmath
import math
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.rank import dispatch
from minipd.framework.row import Trait, op, ufunc
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import reduce_to
from minipd.ops.cast import cast
from minipd.ops.complex import conj, is_complex
from minipd.ops.creation import full_like, to_tensor
from minipd.ops.elementary import log
from minipd.ops.families import Binary, Number, NumberBinary
from minipd.ops.making import into
from minipd.ops.promotion import NO_ATTRS, as_tensor, binary, promoted, unary
from minipd.ops.search import nonzero
from minipd.ops.shapes import (
    a_number,
    broadcast_shapes,
    elementwise,
    require_inexact,
    require_numbers,
    shape_of,
    shapes_agree,
)

__all__ = ["abs", "add", "add_n", "maximum", "minimum", "mul", "multiply", "pow", "square", "sub", "subtract",
           "where"]

# ------------------------------------------------------------------------------------------------ two operands
@op("add", Trait.COMMUTATIVE)
class Add(Binary):
    """out = x + y, broadcast."""

    kernel = ufunc("add")

    def vjp_x(g, x: Meta):
        return reduce_to(g, x)

    def vjp_y(g, y: Meta):
        return reduce_to(g, y)


@op("subtract")
class Subtract(NumberBinary):
    """out = x - y, broadcast."""

    kernel = ufunc("subtract")

    def vjp_x(g, x: Meta):
        return reduce_to(g, x)

    def vjp_y(g, y: Meta):
        return reduce_to(-g, y)


@op("multiply", Trait.COMMUTATIVE)
class Multiply(Binary):
    """out = x * y, broadcast."""

    kernel = ufunc("multiply")

    def vjp_x(g, x: Meta, y):
        return reduce_to(g * y, x)

    def vjp_y(g, x, y: Meta):
        return reduce_to(g * x, y)


@op("divide")
class Divide(Binary):
    """out = x / y, broadcast; true division, floating operands."""

    def infer_meta(what, x, y):
        require_inexact(what, x if hasattr(x, "dtype") else y)
        return elementwise(what, x, y)

    kernel = ufunc("true_divide")

    def vjp_x(g, x: Meta, y):
        return reduce_to(g / y, x)

    def vjp_y(g, y, out):               # d/dy x/y = -(x/y)/y
        return reduce_to(-(g * out / y), y)


@op("pow")
class Pow(NumberBinary):
    """out = x ** y, broadcast.  An int to a negative power is 1 / x ** -y, cut off to an int."""

    def kernel(xp, x, y):
        return _power(xp, x, y)

    def kernel_out(xp, out, x, y):
        _power(xp, x, y, out)

    def vjp_x(g, x, y):                 # y x^(y-1), which is 0 for y = 0 whatever x is: neither 0 * 0^-1 nor 0 * inf
        if isinstance(y, Tensor):
            return reduce_to(g * y * x ** where(y == 0.0, 0.0, y - 1.0), x)
        return g * 0.0 if y == 0 else g * y * x ** (y - 1.0)

    def vjp_y(g, x, y, out):            # ln x out; 0 ** y is flat in y, and so, for want of a real slope, is (-1) ** y
        if isinstance(x, Tensor):
            return reduce_to(g * out * log(where(x != 0.0 if is_complex(x) else x > 0.0, x, 1.0)), y)
        if is_complex(y):
            return g * out * cmath.log(x) if x else g * 0.0
        return g * out * math.log(x) if x > 0 else g * 0.0


def _power(xp: Any, x: Any, y: Any, out: Any = None) -> Any:
    try:
        return xp.power(x, y, out=out)
    except ValueError:                  # numpy refuses ints to negative powers, of which only 1 and -1 have any but 0
        dtype = x.dtype if hasattr(x, "dtype") else y.dtype
        if dtype.kind not in "iu":
            raise
        if xp.any((xp.asarray(x) == 0) & (xp.asarray(y) < 0)):
            raise ZeroDivisionError("pow: expected exponents that are not negative where an int is 0: ints have no "
                                    "infinity; cast them to floats") from None
        odd = xp.where(xp.asarray(y) % 2 != 0, x, 1)
        small = xp.where(xp.abs(x) == 1, odd, 0)
        out = xp.empty(small.shape, dtype) if out is None else out
        out[...] = xp.where(xp.asarray(y) < 0, small, xp.power(x, xp.maximum(y, 0)))
        return out


@op("maximum", Trait.COMMUTATIVE)
class Maximum(Binary):
    """out = max(x, y), broadcast; NaN if either is NaN.  Where they are equal they share the gradient, as in Paddle."""

    kernel = ufunc("maximum")

    def vjp_x(g, x, y):
        return reduce_to(_of_the_winner(g, x > y, x == y), x)

    def vjp_y(g, x, y):
        return reduce_to(_of_the_winner(g, x < y, x == y), y)


@op("minimum", Trait.COMMUTATIVE)
class Minimum(Binary):
    """out = min(x, y), broadcast; NaN if either is NaN.  Where they are equal they share the gradient, as in Paddle."""

    kernel = ufunc("minimum")

    def vjp_x(g, x, y):
        return reduce_to(_of_the_winner(g, x < y, x == y), x)

    def vjp_y(g, x, y):
        return reduce_to(_of_the_winner(g, x > y, x == y), y)


def _of_the_winner(g: Tensor, wins: Tensor, ties: Tensor) -> Tensor:
    dtype = g.payload.dtype
    return g * (cast(wins, dtype) + cast(ties, dtype) * 0.5)


@op("where", Trait.ELEMENTWISE, Trait.EXACT)
class Where:
    """out = x where condition else y, broadcast.   condition: bool."""

    key = 1

    def infer_meta(condition, x, y):
        meta = elementwise("where", x, y)
        return Meta(broadcast_shapes("where", condition.shape, meta.shape), meta.dtype)

    def kernel(xp, condition, x, y):
        if not hasattr(y, "dtype"):             # a number takes the tensor's dtype; numpy would not, for bfloat16
            y = x.dtype.type(y)
        elif not hasattr(x, "dtype"):
            x = y.dtype.type(x)
        return xp.where(condition, x, y)

    def kernel_out(xp, out, condition, x, y):
        out[...] = y
        xp.copyto(out, x, where=condition)

    def vjp_x(g, condition, x: Meta):
        return reduce_to(where(condition, g, full_like(g, 0.0)), x)

    def vjp_y(g, condition, y: Meta):
        return reduce_to(where(condition, full_like(g, 0.0), g), y)


@op("add_n", Trait.ELEMENTWISE)
class AddN:
    """The sum of tensors of one shape."""

    def infer_meta(*inputs):
        first = inputs[0]
        for x in inputs[1:]:
            if not shapes_agree(x.shape, first.shape, "add_n"):
                raise ValueError(f"add_n: expected tensors of one shape, got {[list(shape_of(x)) for x in inputs]}")
        return Meta(first.shape, first.dtype)

    def kernel(xp, *inputs):
        out = xp.array(inputs[0])
        for x in inputs[1:]:
            xp.add(out, x, out=out)
        return out

    def kernel_out(xp, out, *inputs):
        out[...] = inputs[0]
        for x in inputs[1:]:
            xp.add(out, x, out=out)

    def vjp(g, inputs: Meta):
        return [g for _ in inputs]  # type: ignore[attr-defined]  # variadic: a Meta for each


# ------------------------------------------------------------------------------------------------- one operand
@op("square")
class Square(Number):
    """out = x * x."""

    kernel = ufunc("square")

    def vjp_x(g, x):
        return g * x * 2.0


@op("abs")
class Abs(Number):
    """out = |x|, real for complex x too; gradient 0 at 0."""

    def infer_meta(what, x):
        require_numbers(what, x)
        return Meta(x.shape, dtypes.real_of(x.dtype))

    kernel = ufunc("absolute")

    def vjp_x(g, x):
        if is_complex(x):               # Re(conj(x) dx) / |x|
            out = abs(x)
            return conj(x) * (g / where(out == 0.0, 1.0, out))
        zero = full_like(g, 0.0)
        return where(x > 0.0, g, where(x < 0.0, -g, zero))


# ------------------------------------------------------------------------------------------- public functions
multiply, maximum, minimum, pow = binary(Multiply), binary(Maximum), binary(Minimum), binary(Pow)
square, abs = unary(Square), unary(Abs)
#: what `+`, `-` and `/` call
plus, minus, over = binary(Add), binary(Subtract), binary(Divide, floating=True)


def add(x: Tensor, y: Any, name: str | None = None, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """x + alpha * y, broadcast.

    >>> from minipd.ops.creation import to_tensor
    >>> add(to_tensor([1.0, 2.0]), to_tensor([3.0, 4.0]), alpha=2).tolist()
    [7.0, 10.0]
    """
    return plus(x, y if type(alpha) is int and alpha == 1 else y * a_number("add", "alpha", alpha), out=out)


def subtract(x: Tensor, y: Any, name: str | None = None, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """x - alpha * y, broadcast.

    >>> from minipd.ops.creation import to_tensor
    >>> subtract(to_tensor([1.0, 2.0]), to_tensor([3.0, 4.0])).tolist()
    [-2.0, -2.0]
    """
    return minus(x, y if type(alpha) is int and alpha == 1 else y * a_number("subtract", "alpha", alpha), out=out)


#: for the in-place forms: what the row keeps is all that is kept
add.row, subtract.row = Add, Subtract  # type: ignore[attr-defined]
mul, sub = multiply, subtract


def where(condition: Tensor, x: Any = None, y: Any = None, name: str | None = None, *,
          out: Tensor | None = None) -> Any:
    """x where the condition holds, else y, broadcast.  Without x and y: the places where it holds, as `nonzero`.

    >>> from minipd.ops.creation import to_tensor
    >>> where(to_tensor([True, False]), to_tensor([1.0, 2.0]), 0.0).tolist()
    [1.0, 0.0]
    """
    condition = as_tensor("where", condition)
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    if x is None or y is None:
        raise ValueError("where: expected x and y, or neither")
    if condition.payload.dtype != dtypes.bool.np:
        raise TypeError(f"where: expected a bool condition, got {condition.dtype}; write a comparison such as c != 0")
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        x = to_tensor(x)
    return into(out, dispatch(Where, (condition, *promoted("where", x, y)), NO_ATTRS))


def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """The sum of a list of tensors of one shape."""
    inputs = [inputs] if isinstance(inputs, Tensor) else inputs
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ValueError(f"add_n: expected a list of at least one tensor, got {inputs!r}")
    return AddN(*(as_tensor("add_n", x) for x in inputs))

