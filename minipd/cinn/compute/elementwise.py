"""Element-wise rows.

Formulas that the loop IR does not have for a dtype (the sum of bools, an int to the power of an int, whose kernel
raises for negative exponents) raise TypeError, which keeps such a call out of groups.
"""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import Any

import numpy as np

from minipd.cinn.compute.scalar import Scalar, absolute, cast, isfinite, maximum, minimum, truth, unary, where
from minipd.cinn.compute.table import compute_dtype, elementwise
from minipd.ops.activation import GELU_CUBIC, GELU_SCALE

__all__: list[str] = []

elementwise("add")(lambda x, y: x + y)
elementwise("subtract")(lambda x, y: x - y)
elementwise("multiply")(lambda x, y: x * y)
elementwise("divide")(lambda x, y: x / y)
elementwise("maximum")(maximum)
elementwise("minimum")(minimum)
elementwise("where")(where)
elementwise("add_n")(lambda *xs: reduce(lambda x, y: x + y, xs))

for _name in ("exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sin", "cos"):
    elementwise(_name)(partial(unary, _name))

elementwise("abs")(absolute)
elementwise("square")(lambda x: x * x)
elementwise("relu")(lambda x: maximum(x, 0))
elementwise("sigmoid")(lambda x: sigmoid(x))
elementwise("silu")(lambda x: x * sigmoid(x))
elementwise("swiglu")(lambda x, y: x * sigmoid(x) * y)

elementwise("assign")(lambda x: x)
elementwise("share_data_")(lambda x: x)

elementwise("equal")(lambda x, y: x.equals(y))
elementwise("not_equal")(lambda x, y: x.differs(y))
elementwise("less_than")(lambda x, y: x < y)
elementwise("less_equal")(lambda x, y: x <= y)
elementwise("greater_than")(lambda x, y: x > y)
elementwise("greater_equal")(lambda x, y: x >= y)
elementwise("logical_and")(lambda x, y: truth(x) & truth(y))
elementwise("logical_or")(lambda x, y: truth(x) | truth(y))
elementwise("logical_not")(lambda x: unary("not", truth(x)))
elementwise("isfinite")(isfinite)


def sigmoid(x: Scalar) -> Scalar:
    return 1 / (1 + unary("exp", -x))


@elementwise("gelu")
def gelu(x: Scalar, *, approximate: bool = False) -> Scalar:
    """x Phi(x), as the row says it: erfc keeps the digits of Phi far left of 0."""
    if approximate:
        return x * (unary("tanh", x * (x * x * (GELU_SCALE * GELU_CUBIC) + GELU_SCALE)) * 0.5 + 0.5)
    return x * (unary("erfc", x * -math.sqrt(0.5)) * 0.5)


@elementwise("pow")
def power(x: Scalar, y: Scalar) -> Scalar:
    if x.dtype.kind != "f":
        raise TypeError(f"pow of {x.dtype}: only the kernel says what a negative exponent is")
    return x ** y


@elementwise("scale")
def scale(x: Scalar, *, scale: Any, bias: float = 0.0, bias_after_scale: bool = True) -> Scalar:
    if bias == 0.0:
        return x * scale
    return x * scale + bias if bias_after_scale else (x + bias) * scale


@elementwise("cast")
def cast_to(x: Scalar, *, dtype: np.dtype) -> Scalar:
    """A cast to low precision rounds, though the result is computed with in float32."""
    return cast(cast(x, dtype), compute_dtype(dtype))
