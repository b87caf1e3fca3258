"""Operators of ours that Paddle has not, as those that it has: before a program is saved.

    (%3, %4, %5) = "pd_op.lstm_unit" (%0, %1)       a step of an LSTM becomes a split, sigmoids, tanhs, products, a sum
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.framework.context import using
from minipd.framework.dim import is_symbolic
from minipd.framework.rank import current
from minipd.framework.row import ROWS, Row
from minipd.framework.tensor import Tensor
from minipd.ir.builder import Builder
from minipd.ir.operation import Operation
from minipd.ir.paddle.reasons import REASONS
from minipd.ir.program import Program
from minipd.ir.schema import op_attrs, tensor_operands
from minipd.ir.trace import Trace
from minipd.ops.activation import sigmoid
from minipd.ops.cast import cast
from minipd.ops.elementary import tanh
from minipd.ops.gather import gather
from minipd.ops.interpolate import taps
from minipd.ops.joining import concat, split

__all__ = ["in_parts"]


def in_parts(program: Program) -> Program:
    """Write operators that Paddle has not in others, where there is a rule for it; changes the program, and returns it.

    The rules are those here, and of the operator table's column "decompose".
    """
    for op in list(program.walk()):
        if op.name() == "pd_op.full" and op.attributes["value"].value != op.attributes["value"].value:
            _not_a_number(op)
            continue
        rule = None if op.row is None or op.row.name not in REASONS else rule_of(op.row)
        if rule is not None:
            _replace(program, op, rule)
    return program


def _not_a_number(op: Operation) -> None:
    """Paddle writes NaN into its files, but does not read it there; infinities it does."""
    assert op.parent is not None
    endless = op.clone()
    endless.set_attr("value", float("inf"))
    Builder(op.parent, op).insert(endless)
    difference, = Builder(op.parent, op).call(ROWS["subtract"], [endless.result(0)] * 2, {})
    difference.stop_gradient = op.result(0).stop_gradient
    op.result(0).replace_all_uses_with(difference)
    op.erase()


def rule_of(row: Row) -> Callable | None:
    return RULES.get(row.name) or row.columns.get("decompose")       # type: ignore[return-value]


def _replace(program: Program, op: Operation, rule: Callable) -> None:
    tracer = Trace(program)
    assert op.parent is not None
    tracer.build = Builder(op.parent, op)
    with using(ground=tracer, middle=None, amp=None, grad=False):
        made = rule(*map(Tensor, tensor_operands(op)), **op_attrs(op))
    if made is None:
        return
    for old, new in zip(op.results(), made if isinstance(made, (tuple, list)) else (made,), strict=True):
        new.payload.stop_gradient = old.stop_gradient
        old.replace_all_uses_with(new.payload)
    op.erase()


def lstm_unit(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    i, f, g, o = split(gates, 4, -1)
    i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
    cell = f * c + i * g
    return o * tanh(cell), cell, concat([i, f, g, o], -1)


def gru_unit(x: Tensor, u: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    (xr, xz, xn), (ur, uz, un) = split(x, 3, -1), split(u, 3, -1)
    r, z = sigmoid(xr + ur), sigmoid(xz + uz)
    n = tanh(xn + r * un)
    return n + z * (h - n), concat([r, z, n], -1)


def interp(x: Tensor, *, axis: int, size: Any, **how: Any) -> Tensor | None:
    """A weighted sum of gathers, if both sizes are known."""
    if is_symbolic(x.payload.shape[axis]) or is_symbolic(size):
        return None
    total = None
    for places, weights in taps(x.payload.shape[axis], size, **how):
        part = gather(x, constant(places), axis)
        if how["mode"] != "nearest":
            # the only array that stands in a program is one of integers
            scaled = cast(constant(tuple(round(w * ONE) for w in weights)), "float64") * (1 / ONE)
            ahead = [1] * axis + [size] + [1] * (len(x.payload.shape) - axis - 1)
            part = part * cast(scaled, part.dtype).reshape(ahead)
        total = part if total is None else total + part
    return total


def constant(numbers: tuple[int, ...]) -> Tensor:
    """A `full_int_array` as a tensor of the program that is written."""
    return Tensor(current().ground.build.constant(numbers))         # type: ignore[attr-defined]


#: what stands for 1.0 in a weight that is written as an integer
ONE = 1 << 52

RULES: dict[str, Callable[..., Any]] = {"lstm_unit": lstm_unit, "gru_unit": gru_unit, "interp": interp}
