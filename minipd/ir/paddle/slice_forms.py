"""Forms of slices, read and written, and of tensors that are written down."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.ir.operation import Operation
from minipd.ir.paddle.axes import one_axis, slice_range
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.load import Loader
from minipd.ir.paddle.save import Call, Saver
from minipd.ir.value import Value

__all__: list[str] = []


INT_MIN = -2 ** 31


def squeezed(at: Loader, x: Value, axes: tuple[int, ...]) -> Value:
    return at.row("squeeze", x, axis=axes) if axes else x


@form("slice")
class Slice:
    """Paddle's can drop the axes of which one element is taken."""

    def save(to, call):
        axes = call.attrs["axes"]
        operands = [call.tensors[0], to.operand(call, "starts", "ints"), to.operand(call, "ends", "ints")]
        attrs = {"axes": axes, "infer_flags": [1] * len(axes), "decrease_axis": []}
        return to.op("slice", operands, attrs, call.types)

    def load(at, op):
        attrs, (x,) = at.attrs(op), at.inputs(op)
        known = at.numbers.get(op.operand_source(0))
        if known is not None and isinstance(known, tuple):          # some sizes of a shape
            (start, end, _), dropped = slice_range(attrs["starts"][0], attrs["ends"][0], 1, len(known)), bool(
                attrs["decrease_axis"])
            at.numbers[op.result(0)] = known[start] if dropped else known[start:end]
        axes = tuple(one_axis(a, x.ndim) for a in attrs["axes"])
        ranges = [slice_range(s, e, 1, x.shape[a])
                  for a, s, e in zip(axes, attrs["starts"], attrs["ends"], strict=True)]
        out = at.row("slice", x, axes=axes, starts=tuple(r[0] for r in ranges), ends=tuple(r[1] for r in ranges))
        return squeezed(at, out, tuple(sorted(one_axis(a, x.ndim) for a in attrs["decrease_axis"])))


@form("strided_slice")
class StridedSlice:
    """An end before the first element is -1 for us; in Paddle's that would be the last."""

    def save(to, call):
        operands = [call.tensors[0], to.operand(call, "starts", "ints"), ends_of(to, call),
                    to.operand(call, "strides", "ints")]
        return to.op("strided_slice", operands, call.attrs, call.types)

    def load(at, op):
        attrs, (x,) = at.attrs(op), at.inputs(op)
        return at.row("strided_slice", x, **ranges_of(attrs, x, "strides"))


def ends_of(to: Saver, call: Call) -> Value:
    """The ends as Paddle reads them: one before the first element is not -1."""
    pairs = list(zip(call.shown.get("ends", ()), call.attrs.get("strides", ()), strict=False))
    before = [s < 0 and e == -1 and call.attrs["ends"][i] == -1 for i, (e, s) in enumerate(pairs)]
    if any(before):
        return to.ints([INT_MIN if b else e for b, (e, _) in zip(before, pairs, strict=True)])
    return to.operand(call, "ends", "ints")


def ranges_of(attrs: dict[str, Any], x: Value, steps: str) -> dict[str, Any]:
    axes = tuple(one_axis(a, x.ndim) for a in attrs["axes"])
    triples = [slice_range(t[0], t[1], t[2], x.shape[a])
               for a, *t in zip(axes, attrs["starts"], attrs["ends"], attrs[steps], strict=True)]
    starts, ends, strides = zip(*triples, strict=True) if triples else ((), (), ())
    return {"axes": axes, "starts": starts, "ends": ends, "strides": strides}


@form("set_value", paddle=("set_value_with_tensor", "set_value_with_tensor_"))
class SetValue:
    """Ours takes what is written as a tensor, always."""

    def save(to, call):
        operands = [*call.tensors, to.operand(call, "starts", "ints"), ends_of(to, call),
                    to.operand(call, "strides", "ints")]
        attrs = {"axes": call.attrs["axes"], "decrease_axes": [], "none_axes": []}
        return to.op("set_value_with_tensor", operands, attrs, call.types)

    def load(at, op):
        x, value = at.inputs(op)
        return written(at, at.attrs(op), x, value)


def written(at: Loader, attrs: dict[str, Any], x: Value, value: Value) -> Any:
    if attrs["none_axes"]:
        raise at.refuse()
    gone = sorted(one_axis(a, x.ndim) for a in attrs["decrease_axes"])
    if gone and value.ndim:
        inner = x.ndim - len(gone)
        if value.ndim < inner:
            value = at.row("reshape", value, shape=(1,) * (inner - value.ndim) + tuple(value.shape))
        if value.ndim == inner:
            value = at.row("unsqueeze", value, axis=tuple(gone))
    if value.dtype != x.dtype:
        value = at.row("cast", value, dtype=x.dtype)
    return at.row("set_value", x, value, **ranges_of(attrs, x, "steps"))


@loads("set_value", "set_value_")
def load_set_value(at: Loader, op: Operation) -> Any:
    """The numbers that are written are attributes."""
    attrs, (x,) = at.attrs(op), at.inputs(op)
    value = array(at, np.asarray(attrs["values"]).reshape(attrs["shape"]).astype(x.dtype))
    return written(at, attrs, x, value)


def array(at: Loader, numbers: np.ndarray) -> Value:
    """Numbers as a tensor of the program: a constant where all are equal, else put together."""
    if numbers.size and (numbers == numbers.flat[0]).all():
        return at.build.full(numbers.shape, numbers.flat[0].item(), numbers.dtype)
    if not numbers.size:
        return at.build.full(numbers.shape, 0, numbers.dtype)
    parts = [at.build.full((1,), n.item(), numbers.dtype) for n in numbers.flat]
    return at.row("reshape", at.row("concat", *parts, axis=0), shape=numbers.shape)


@loads("assign_value", "assign_value_")
def load_assign_value(at: Loader, op: Operation) -> Any:
    values, attrs = op.attributes, at.attrs(op)
    numbers = np.asarray(values["values"].value).reshape(attrs["shape"]).astype(attrs["dtype"])
    if numbers.dtype.kind in "iu" and numbers.ndim <= 1:
        at.numbers[op.result(0)] = tuple(map(int, numbers)) if numbers.ndim else int(numbers)
    return array(at, numbers)
