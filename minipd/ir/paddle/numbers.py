"""Sizes that a program computes: what a value of few integers always holds, symbols among it.

Paddle's programs reckon with shapes as with other tensors: `shape64`, `slice`, products, `concat`.  Followed from the
shape of an input on, they are sizes that our programs name, and so a shape that is computed is an attribute again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minipd.framework.dim import DimExpr, floor_div, maximum, minimum
from minipd.ir.operation import Operation
from minipd.ir.schema import constant_of
from minipd.ir.types import TensorType
from minipd.ir.value import Value

if TYPE_CHECKING:
    from minipd.ir.paddle.load import Loader

__all__ = ["number_of", "reckon"]

#: Paddle's operator -> what it does to numbers
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "maximum": maximum, "minimum": minimum, "floor_divide": floor_div,
}
SAME = frozenset({"assign", "cast", "share_data"})


def reckon(at: Loader, op: Operation) -> None:
    """Remember what the result of an operation of Paddle's always holds, if that follows from its operands."""
    name = op.name().removeprefix("pd_op.")
    if name not in BINARY and name not in SAME and name != "scale" or not _small(op.result(0)):
        return
    operands = [None if v is None else number_of(at, v) for v in op.operands_source()]
    if operands[0] is None or name in BINARY and operands[1] is None:
        return
    try:
        if name in SAME:
            at.numbers[op.result(0)] = operands[0]
        elif name in BINARY:
            at.numbers[op.result(0)] = _both(BINARY[name], operands[0], operands[1])
        else:
            factor, bias = at.attrs(op)["scale"], at.attrs(op)["bias"]
            if at.attrs(op)["bias_after_scale"] and all(float(n).is_integer() for n in (factor, bias)):
                at.numbers[op.result(0)] = _both(lambda a, b: a * int(factor) + int(bias), operands[0], 0)
    except (TypeError, ValueError, ZeroDivisionError):
        return                          # sizes that do not fit together, or whose order is not known: no number


def number_of(at: Loader, value: Value) -> Any:
    """The number, or tuple of numbers, that a small integer tensor of Paddle's always holds; None if not known."""
    if value in at.numbers:
        return at.numbers[value]
    if not _small(value):
        return None
    found = constant_of(value)
    if found is None or isinstance(found, (tuple, DimExpr)):
        return found
    return int(found) if value.shape in ((), (1,)) else (int(found),) * int(value.shape[0])


def _small(value: Value) -> bool:
    """Whether it may be some sizes: integers, at most sixteen in a row."""
    type = value.type()
    return isinstance(type, TensorType) and type.dtype.kind in "iu" and (
        not type.shape or len(type.shape) == 1 and isinstance(type.shape[0], int) and type.shape[0] <= 16)


def _both(compute: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Element by element; a single number goes with each of several."""
    many = max((len(x) for x in (a, b) if isinstance(x, tuple)), default=None)
    if many is None:
        return compute(a, b)
    wide = [x if isinstance(x, tuple) and len(x) == many else (x[0] if isinstance(x, tuple) else x,) * many
            for x in (a, b)]
    return tuple(compute(x, y) for x, y in zip(*wide, strict=True))
