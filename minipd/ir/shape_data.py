"""Dialect `shape`, and what is known of the elements of small int tensors: `paddle.shape(x)[0] * 2` is 2*S0.

Such a tensor may stand where a size is wanted: `reshape(x, [paddle.shape(x)[0], -1])`, `full([n, 3], 0.)`,
`arange(n)`, `x[:n]`.  Its elements are then found by computing what the program computes, on dimensions instead of
numbers: a kernel that moves, adds or multiplies ints does the same to an array of dimensions.  (Paddle calls it
ShapeOrData.)

The other way round, a size that stands beside a tensor (`x * x.shape[0]`) becomes a tensor by `shape.dim`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.framework.dim import DimExpr, floor_div, maximum, minimum, modulo, prod
from minipd.ir.dialect import Dialect, register_dialect
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.ir.types import TensorType
from minipd.ir.value import Value

__all__ = ["elements"]

register_dialect(Dialect("shape"))

#: tensors of more elements are no shapes
MOST_ELEMENTS = 64
#: operators that an expression of sizes may be deep
DEEPEST = 100

Data = np.ndarray           # of dtype object: ints and dimensions


def _each(function: Callable[..., Any], operands: int) -> Callable[..., Data]:
    ufunc = np.frompyfunc(function, operands, 1)
    return lambda *xs, **attrs: ufunc(*xs)


def _array(value: Any) -> Data:
    made = np.empty(np.shape(value) if not isinstance(value, DimExpr) else (), object)
    made[...] = value
    return made


#: rows that are told apart from their kernels
RULES: dict[str, Callable[..., Any]] = {
    "floor_divide": _each(floor_div, 2), "remainder": _each(modulo, 2), "maximum": _each(maximum, 2),
    "minimum": _each(minimum, 2),
    "cast": lambda x, **attrs: x,
    "full": lambda shape, value, **attrs: np.full(shape, value, object),
    "full_int_array": lambda value, **attrs: _array(value),
    "dim": lambda size, **attrs: _array(size),
    "scale": lambda x, scale, bias, bias_after_scale: x * scale + bias if bias_after_scale else (x + bias) * scale,
    "sum": lambda x, axis, keepdim: np.sum(x, axis=axis, keepdims=keepdim),
    "prod": lambda x, axis, keepdim, **attrs: np.prod(x, axis=axis, keepdims=keepdim),
}
#: rows whose kernels do to dimensions what they do to numbers
MOVES = ("add", "subtract", "multiply", "assign", "share_data_", "slice", "strided_slice", "reshape", "squeeze",
         "unsqueeze", "transpose", "concat", "split", "expand")


def elements(value: Value) -> Data | None:
    """What is known of the elements of an int tensor: an array of ints and dimensions, None if they are data.

    >>> from minipd.framework.dim import symbol
    >>> from minipd.framework.row import ROWS
    >>> from minipd.ir.builder import Builder
    >>> from minipd.ir.program import Program
    >>> build = Builder(Program().global_block())
    >>> x = build.data("x", (symbol("S0"), 3), "float32")
    >>> shape, = build.call(ROWS["shape64"], (x,), {})
    >>> twice, = build.call(ROWS["add"], (shape, shape), {})
    >>> elements(twice).tolist(), elements(x)
    ([2*S0, 6], None)
    """
    found: dict[Value, Data | None] = {}
    return _elements(value, found, 0)


def _elements(value: Value, found: dict[Value, Data | None], depth: int) -> Data | None:
    if value not in found:
        found[value] = None if depth > DEEPEST else _computed(value, found, depth)
    return found[value]


def _computed(value: Value, found: dict[Value, Data | None], depth: int) -> Data | None:
    type, op = value.type(), value.get_defining_op()
    if not isinstance(type, TensorType) or type.dtype.kind not in "iu" or op is None or _is_large(type.shape):
        return None
    if op.name() == "builtin.split":                    # the parts of a vector are the results of what made it
        op = op.operand_source(0).get_defining_op()
    row = None if op is None else op.row
    if op is None or row is None:
        return None
    if row.name == "shape64":
        return _array(tensor_operands(op)[0].shape)
    if row.name == "numel":
        return _array(prod(tensor_operands(op)[0].shape))
    if row.name not in RULES and row.name not in MOVES:
        return None
    operands = [_elements(v, found, depth + 1) for v in tensor_operands(op)]
    if any(x is None for x in operands):
        return None
    try:
        made = (RULES.get(row.name) or row.kernel)(*operands, **op_attrs(op))       # type: ignore[misc]
    except (TypeError, ValueError, ZeroDivisionError):
        return None                                     # floats among the sizes, a divisor of 0, an operand as axis
    if row.multi:
        made = made[result_values(op).index(value)]
    data = _array(made)
    known = all(type_ok(d) for d in data.flat)
    return data if known and data.shape == tuple(type.shape) else None


def type_ok(element: Any) -> bool:
    """Whether this may be a size: neither a truth value nor a float."""
    return isinstance(element, (int, np.integer, DimExpr)) and not isinstance(element, bool)


def _is_large(shape: tuple) -> bool:
    count = prod(shape)
    return isinstance(count, DimExpr) or count > MOST_ELEMENTS
