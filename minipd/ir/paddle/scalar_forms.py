"""Forms of arithmetic with numbers: a number beside a tensor is an attribute of Paddle's `scale`, or of its `pow`."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.dim import DimExpr
from minipd.ir.attributes import DoubleAttribute, FloatAttribute
from minipd.ir.operation import Operation
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.load import Loader
from minipd.ir.paddle.save import Call, Saver
from minipd.ir.paddle.save import same as save_same
from minipd.ir.value import Value

__all__: list[str] = []


def scaled(to: Saver, call: Call, x: Value, scale: Any, bias: float, after: bool = True) -> Any:
    """x * scale + bias.  Paddle's bias has 32 bits; beside 64-bit tensors it is kept in full, but in print."""
    wide = (to.exact or to.strict and x.dtype in (np.float64, np.complex128)) and not fits(bias)
    factor = scale if isinstance(scale, Value) else to.number(scale)
    out = to.op("scale", [x, factor], {"bias_after_scale": after, "bias": 0.0}, call.types)
    out[0].get_defining_op().attributes["bias"] = DoubleAttribute(bias) if wide else FloatAttribute(bias)
    return out


def fits(number: float) -> bool:
    """Whether 32 bits hold a number exactly.

    >>> fits(0.5), fits(0.1), fits(1e300)
    (True, False, False)
    """
    with np.errstate(over="ignore"):
        return float(np.float32(number)) == number


def number_of(value: Value) -> Any:
    """The number, if an operand is one that stood beside a tensor in Python; else None."""
    op = value.get_defining_op()
    if op is None or op.name() != "pd_op.full" or value.shape != () or value.dtype.kind not in "fVi":
        return None
    number = op.attributes["value"].value
    return number if isinstance(number, (int, float)) and not isinstance(number, bool) else None


def beside(to: Saver, call: Call) -> tuple[int, Any] | None:
    """Which operand is the tensor, and the number beside it; None if both are tensors, or the number must stay one: it
    has more digits than Paddle's attributes.  (A print has fewer digits anyway, and is spelled as Paddle's is.)"""
    for i in (1, 0):
        number, x = number_of(call.sources[i]), call.sources[1 - i]
        if number is None or number_of(x) is not None:
            continue
        exact = fits(number) or not to.strict
        if x.dtype.kind == "V" or x.dtype.kind == "f" and (x.dtype != np.float64 or exact) or (
                x.dtype.kind == "i" and exact and float(number).is_integer()):
            return 1 - i, number
    return None


@form("multiply")
class Multiply:
    """A number beside a tensor is a scale."""

    def save(to, call):
        found = beside(to, call)
        if found is None:
            return save_same(to, call)
        return scaled(to, call, call.tensors[found[0]], found[1], 0.0)


@form("add")
class Add:
    """A number beside a tensor is a bias."""

    def save(to, call):
        found = beside(to, call)
        if found is None:
            return save_same(to, call)
        return scaled(to, call, call.tensors[found[0]], 1.0, found[1])


@form("subtract")
class Subtract:
    """A number beside a tensor is a bias."""

    def save(to, call):
        found = beside(to, call)
        if found is None:
            return save_same(to, call)
        i, number = found
        return scaled(to, call, call.tensors[i], 1.0 if i == 0 else -1.0, -number if i == 0 else number)


@form("divide")
class Divide:
    """A division by a number is a scale for Paddle.  By another than a power of two its quotient is rounded twice, so
    that a file has a division; the print of a program is spelled as Paddle's is."""

    def save(to, call):
        found = beside(to, call)
        if found is None or call.sources[0].dtype.kind == "i" or found[1] == 0:
            return save_same(to, call)
        i, number = found
        if i == 1:
            return to.op("divide", spread(to, call), {}, call.types)
        if to.strict and abs(np.frexp(number)[0]) != 0.5:
            return save_same(to, call)
        return scaled(to, call, call.tensors[0], 1.0 / number, 0.0)


def spread(to: Saver, call: Call) -> list[Value]:
    """The operands; a number on the left is a tensor of the shape of the right for Paddle, if that is known."""
    left, right = call.tensors
    number = number_of(call.sources[0])
    if number is None or any(isinstance(d, DimExpr) for d in right.shape):
        return [left, right]
    return [to.build.full(right.shape, number, right.dtype), right]


@form("scale", paddle=("scale", "scale_"))
class Scale:
    """Paddle's bias has 32 bits."""

    def save(to, call):
        a = call.attrs
        return scaled(to, call, call.tensors[0], float(a["scale"]) if isinstance(a.get("scale"), int) else
                      call.given["scale"], a["bias"], a["bias_after_scale"])

    def load(at, op):
        attrs, (x,) = at.attrs(op), at.inputs(op)
        scale, bias, after = attrs["scale"], attrs["bias"], attrs["bias_after_scale"]
        if x.dtype.kind == "i" and float(scale).is_integer() and float(bias).is_integer():
            scale, bias = int(scale), int(bias)
        if x.dtype.kind in "fV" or isinstance(bias, int):
            number = int if x.dtype.kind == "i" else float
            if after and bias == 0:
                return at.row("multiply", x, number(scale))
            if after and scale == 1:
                return at.row("add", x, number(bias))
            if after and scale == -1:
                return at.row("subtract", number(bias), x)
        return at.row("scale", x, scale=scale, bias=bias, bias_after_scale=after)


@form("pow", paddle="elementwise_pow")
class Pow:
    """Paddle's operator of that name takes a number."""

    def save(to, call):
        number, x = number_of(call.sources[1]), call.sources[0]
        if number is not None and number_of(x) is None and (x.dtype.kind != "i" or float(number).is_integer()):
            return to.op("pow", call.tensors[:1], {"y": number}, call.types)
        return to.op("elementwise_pow", spread(to, call), {}, call.types)

    def load(at, op):
        return at.row("pow", *at.inputs(op))


@loads("pow", "pow_")
def load_pow(at: Loader, op: Operation) -> Any:
    (x,), y = at.inputs(op), at.attrs(op)["y"]
    return at.row("pow", x, int(y) if x.dtype.kind in "iu" else y)
