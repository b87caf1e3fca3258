"""Sizes that only the run knows, as Paddle's programs have them: -1 where an operator finds the size by itself, and
otherwise values that the program computes.

Our programs name unknown sizes (`reshape(x, (S0, 6, 4))`), a file of Paddle's does not.  So what depends on one is
reckoned from the shape of the input that it was first seen in:

    (%3) = "pd_op.shape64" (%0) ...                         S0 is dimension 0 of input %0
    (%4) = "pd_op.slice" (%3, ...) ...
    (%5) = "pd_op.concat" ([%4, 6, 4], ...) ...
    (%6) = "pd_op.reshape" (%1, %5) ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from minipd.framework.constraints import Constraint
from minipd.framework.dim import DimExpr, maximum, minimum
from minipd.framework.errors import InputError
from minipd.framework.row import ROWS
from minipd.ir.attributes import DimAttribute, IntArrayAttribute
from minipd.ir.builder import Builder
from minipd.ir.operation import Operation, user_error
from minipd.ir.program import Program
from minipd.ir.value import OpOperand, Value

__all__ = ["open_sizes"]

#: functions of sizes besides sums and products -> the operator that computes them
FUNCTIONS = {"//": "floor_divide", "Max": "maximum", "Min": "minimum"}


def open_sizes(program: Program) -> Program:
    """Let no constant of a program in our form depend on an unknown size; changes the program, and returns it.

    That sizes differ, or are multiples of others, which the trace has assumed, is checked by operators.
    Raises: InputError for a size that follows from no input, or stands where Paddle takes numbers only.
    """
    sizes = _Sizes(program)
    for assumed in program.constraints:
        if assumed.kind in ("unequal", "divisible"):
            _check(program, assumed, sizes)
    for op in list(program.walk()):
        if op.name() == "pd_op.full" or op.name() == "shape.dim":
            _number(op, sizes)
        elif op.name() == "pd_op.arange" and any(map(_is_open, op.attributes.values())):
            _range(op, sizes)
    for op in list(program.walk()):
        if op.name() == "pd_op.full_int_array" and _is_open(op.attributes["value"]):
            _array(op, sizes)
        elif op.name() != "pd_op.data":
            for name, attribute in op.attributes.items():
                if _is_open(attribute):
                    raise InputError("sizes that are known where Paddle takes numbers only",
                                     user_error(op, f"attribute {name} is {attribute.value}"),
                                     "fix the dimension in the InputSpec")
    return program


def _check(program: Program, assumed: Constraint, sizes: _Sizes) -> None:
    """Stop where an answer that Python was given while tracing is wrong.  (Of the other kinds, operators check what
    they assume, and Python gets no answer.)"""
    first = next((op for op in program.global_block() if op.name() not in ("pd_op.data", "builtin.parameter")), None)
    if first is not None:
        build = _before(first)
        left, right = (sizes.reckon(build, d) for d in (assumed.left, assumed.right))
        if assumed.kind == "unequal":
            holds = _call(build, "not_equal", left, right)
        else:
            rest = _call(build, "remainder", left, right)
            holds = _call(build, "equal", rest, _call(build, "subtract", rest, rest))
        build.call(ROWS["assert"], (_call(build, "reshape", holds, shape=()),),
                   {"summarize": -1, "message": f"{assumed.relation}, at {assumed.where}"})


def _is_open(attribute: Any) -> bool:
    return isinstance(attribute, DimAttribute) or isinstance(attribute, IntArrayAttribute) and any(
        isinstance(d, DimExpr) for d in attribute.value)


def _number(op: Operation, sizes: _Sizes) -> None:
    """A `full` of unknown size is a number that is expanded; a `full` of a size, and a `shape.dim`, is that size."""
    build, shape = _before(op), op.result(0).shape
    value = op.attributes["value" if op.name() == "pd_op.full" else "size"]
    if isinstance(value, DimAttribute):
        number = sizes.reckon(build, value.value)
        new = _call(build, "cast", _call(build, "reshape", number, shape=()), dtype=op.result(0).dtype)
    elif any(isinstance(d, DimExpr) for d in shape):
        new = build.full((), value.value, op.result(0).dtype)
    else:
        return
    if shape:
        new = _call(build, "expand", new, shape=shape)
    op.result(0).replace_all_uses_with(new)
    op.erase()


def _range(op: Operation, sizes: _Sizes) -> None:
    """The numbers 0, 1, ... are sums of ones, as many as there are; the rest is a product and a sum."""
    build, dtype = _before(op), op.result(0).dtype
    ends = {name: op.attributes[name].value for name in ("start", "stop", "step")}
    inner = np.dtype(np.float64 if any(isinstance(v, float) for v in ends.values()) else np.int64)
    ones = _call(build, "expand", build.full((), 1, inner), shape=op.result(0).shape)
    new = _call(build, "cumsum", ones, axis=0, exclusive=True)
    for row, value, neutral in (("multiply", ends["step"], 1), ("add", ends["start"], 0)):
        if isinstance(value, DimExpr):
            new = _call(build, row, new, _call(build, "cast", sizes.reckon(build, value), dtype=inner))
        elif value != neutral:
            new = _call(build, row, new, build.full((), value, inner))
    op.result(0).replace_all_uses_with(new if dtype == inner else _call(build, "cast", new, dtype=dtype))
    op.erase()


def _array(op: Operation, sizes: _Sizes) -> None:
    """Each reader of a shape gets it with -1, or as a value."""
    dims: tuple = op.attributes["value"].value
    reckoned: Value | None = None
    for use in op.result(0).uses:
        found = _implied(use, dims)
        if found is not None:
            use.set_source(_before(op).constant(found))
            continue
        if reckoned is None:
            build = _before(op)
            parts = [sizes.reckon(build, d) for d in dims]
            reckoned = parts[0] if len(parts) == 1 else _call(build, "concat", *parts, axis=0)
        use.set_source(reckoned)
    op.erase()


def _implied(use: OpOperand, dims: tuple) -> tuple | None:
    """The shape with -1 for unknown sizes, where the operator finds the same by itself."""
    name, x = use.owner().name(), use.owner().operand_source(0)
    if use.index() == 0:
        return None
    unknown = [i for i, d in enumerate(dims) if isinstance(d, DimExpr)]
    known_zero = any(isinstance(d, int) and d == 0 for d in dims)
    if name == "pd_op.reshape" and len(unknown) == 1 and not known_zero:
        return tuple(-1 if i in unknown else d for i, d in enumerate(dims))
    if name == "pd_op.expand":
        before = len(dims) - len(x.shape)
        if all(i >= before and x.shape[i - before] == dims[i] for i in unknown):
            return tuple(-1 if i in unknown else d for i, d in enumerate(dims))
    return None


def _before(op: Operation) -> Builder:
    assert op.parent is not None
    return Builder(op.parent, op)


def _call(build: Builder, row: str, *values: Value, **attrs: Any) -> Value:
    return build.call(ROWS[row], values, attrs)[0]


class _Sizes:
    """Where each symbol is seen, and its value: an int64 tensor of one element, made right after the input."""

    def __init__(self, program: Program):
        self.values: dict[str, Value] = {}
        self.seen: dict[str, tuple[Value, int]] = {}
        for op in program.global_block():
            if op.name() == "pd_op.data":
                for axis, dim in enumerate(op.result(0).shape):
                    if isinstance(dim, DimExpr) and dim.is_symbol:
                        self.seen.setdefault(str(dim), (op.result(0), axis))

    def reckon(self, build: Builder, dim: Any) -> Value:
        """The value of a size, int64 [1], in operations that `build` appends."""
        if not isinstance(dim, DimExpr):
            return build.full((1,), int(dim), np.dtype(np.int64))
        total = self.folded(build, "add", (
            self.folded(build, "multiply", [*([coefficient] if coefficient != 1 or not monomial else []),
                                            *monomial]) for monomial, coefficient in dim.terms))
        if dim.denominator == 1:
            return total
        return _call(build, "floor_divide", total, self.reckon(build, dim.denominator))

    def folded(self, build: Builder, row: str, parts: Iterable) -> Value:
        def value(part: Any) -> Value:
            return part if isinstance(part, Value) else self.factor(build, part)
        return functools.reduce(lambda a, b: _call(build, row, a, b), map(value, parts))

    def factor(self, build: Builder, part: Any) -> Value:
        """A number, a symbol, or a function of sizes."""
        function = getattr(part, "function", None)
        if isinstance(part, int):
            return self.reckon(build, part)
        if function in FUNCTIONS:
            compute: Callable = functools.partial(_call, build, FUNCTIONS[function])
            return functools.reduce(compute, [self.reckon(build, a) for a in part.args])
        if function == "Broadcast":         # the largest, for they are equal but for ones; 0 if one is
            largest, least = maximum(*part.args), minimum(*part.args, 1)
            return self.reckon(build, largest * least)
        if function is not None or str(part) not in self.seen:
            raise InputError("sizes that follow from those of the inputs", f"the size {part}, which does not",
                             "name the dimension in an InputSpec, or fix it")
        return self.symbol(str(part))

    def symbol(self, name: str) -> Value:
        if name not in self.values:
            x, axis = self.seen[name]
            op = x.get_defining_op()
            assert op is not None and op.parent is not None
            build = Builder(op.parent, op.next)
            shape = _call(build, "shape64", x)
            self.values[name] = _call(build, "slice", shape, axes=(0,), starts=(axis,), ends=(axis + 1,))
        return self.values[name]
