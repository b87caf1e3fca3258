"""The gradient of an operator that is several others: theirs, one after the other.

A training program has these operators only where somebody has fused it before its gradient was appended, so they keep
nothing but their operands: the parts are computed again, and their own gradient rules called, last part first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.rank import current
from minipd.framework.row import Row, VjpCall
from minipd.framework.tensor import Tensor
from minipd.ops.creation import Assign
from minipd.ops.math import AddN

__all__: list[str] = []


class _Call:
    """A call of a row, with its results as a tuple."""

    def __init__(self, row: Row, inputs: Sequence, attrs: dict, out: Any):
        self.row, self.inputs, self.attrs = row, tuple(inputs), attrs
        self.outs = out if row.multi else (out,)


def pullback(composed: Callable, g: Any, *inputs: Tensor, **attrs: Any) -> list[Tensor | None]:
    """The gradients of `composed(*inputs, **attrs)`, one for each input; None for ints and bools.

    g: the gradient of the result, or a list of them (None: none), if it has several.
    """
    inputs = tuple(Assign(x) if any(x is y for y in inputs[:i]) else x for i, x in enumerate(inputs))
    calls, out = _recorded(composed, inputs, attrs)
    outs, gs = (out, g) if isinstance(out, tuple) else ((out,), [g])
    reached = {id(x) for x in inputs if x.payload.dtype in dtypes.INEXACT}
    flows = [(call, need) for call in calls if (need := _reached_by(call, reached))]
    found: dict[int, list[Tensor]] = {}
    for result, each in zip(outs, gs, strict=True):
        if each is not None:
            found.setdefault(id(result), []).append(each)
    for call, need in reversed(flows):
        arrived = [_total(found, o) for o in call.outs]
        if any(a is not None for a in arrived):
            for i, part in _through(call, need, arrived):
                found.setdefault(id(call.inputs[i]), []).append(part)
    return [None if x.payload.dtype not in dtypes.INEXACT else _gradient(found, x) for x in inputs]


def _recorded(composed: Callable, inputs: tuple, attrs: dict) -> tuple[list[_Call], Any]:
    """The calls of rows that computing it makes, and the result."""
    context, calls = current(), list[_Call]()
    handler = context.handler

    def noting(row: Row, operands: Any, attributes: dict) -> Any:
        context.handler = handler                       # what this call calls, if it does, is its own affair
        try:
            out = handler(row, operands, attributes)
        finally:
            context.handler = noting
        calls.append(_Call(row, operands, attributes, out))
        return out
    context.handler = noting
    try:
        return calls, composed(*inputs, **attrs)
    finally:
        context.handler = handler


def _reached_by(call: _Call, reached: set[int]) -> int:
    """Bit mask of the operands that depend on an input; if there are any, the results do from now on."""
    need = sum(1 << i for i, x in enumerate(call.inputs) if id(x) in reached)
    if need and call.row.has_vjp:
        reached.update(id(o) for o in call.outs if o.payload.dtype in dtypes.INEXACT)
    return need


def _through(call: _Call, need: int, gs: list[Tensor | None]) -> list[tuple[int, Tensor]]:
    """What the row's rules give for the operands in the bit mask `need`."""
    parts: list[tuple[int, Tensor]] = []
    for rule in call.row.calls(need):
        got = rule.fn(gs if call.row.multi else gs[0], *_saved(call, rule))
        pairs = [(rule.target, got)] if rule.target is not None else list(enumerate(got))
        parts += [(i, part) for i, part in pairs if part is not None and need >> i & 1]
    return parts


def _saved(call: _Call, rule: VjpCall) -> list:
    """The arguments of a gradient rule after the gradient, by its save list."""
    def value(x: Any, only_meta: bool) -> Any:
        return x.payload if only_meta and isinstance(x, Tensor) else x
    out: list[Any] = []
    for kind, i, only_meta in rule.plan:
        if kind == "attr":
            out.append(call.row.attr(call.attrs, i))
        elif kind == "all":
            out.append([value(x, only_meta) for x in call.inputs])
        else:
            out.append(value((call.inputs if kind == "in" else call.outs)[i], only_meta))
    return out


def _total(found: dict[int, list[Tensor]], x: Tensor) -> Tensor | None:
    parts = found.get(id(x))
    if not parts:
        return None
    if len(parts) > 1:
        parts[:] = [AddN(*parts)]
    return parts[0]


def _gradient(found: dict[int, list[Tensor]], x: Tensor) -> Tensor:
    total = _total(found, x)
    return x * 0.0 if total is None else total         # nothing, but of x: who differentiates again asks for that
