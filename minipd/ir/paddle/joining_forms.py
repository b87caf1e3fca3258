"""Forms of joining and splitting."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import prod
from minipd.ir.operation import Operation
from minipd.ir.paddle.axes import one_axis
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.load import Loader
from minipd.ir.paddle.numbers import number_of
from minipd.ir.paddle.save import Call, Saver
from minipd.ir.schema import constant_of

__all__: list[str] = []


@form("concat")
class Concat:
    """The axis is an operand, and may be negative."""

    def save(to, call):
        if is_stack(call):
            return stacked(to, call)
        out, = to.op("concat", [call.tensors[0], to.operand(call, "axis", "i32")], {}, call.types)
        combine, axis = (v.get_defining_op() for v in out.get_defining_op().operands_source())
        if axis is not None and combine is not None and axis.parent is combine.parent and combine.is_before(axis) and (
                axis.result(0).has_one_use()):
            axis.move_before(combine)               # as Paddle writes it
        return out

    def load(at, op):
        (xs,), axis = at.inputs(op), at.attrs(op)["axis"]
        remember_joined(at, op)
        return at.row("concat", *xs, axis=one_axis(axis, xs[0].ndim))


def is_stack(call: Call) -> bool:
    """Whether all that is joined was given a new dimension, in the same line of the source, just for that."""
    made = call.sources[0].get_defining_op()
    members = [] if made is None or made.name() != "builtin.combine" else [
        v.get_defining_op() for v in made.operands_source()]
    line = call.op.attributes.get("op_callstack")
    return bool(members) and line is not None and call.sources[0].has_one_use() and all(
        m is not None and m.name() == "pd_op.unsqueeze" and m.result(0).has_one_use()
        and constant_of(m.operand_source(1)) == (call.attrs.get("axis"),) and m.attributes.get("op_callstack") == line
        for m in members)


def stacked(to: Saver, call: Call) -> Any:
    """One `stack` in place of the operations that were written for it."""
    combine = call.tensors[0].get_defining_op()
    assert combine is not None
    members: Any = [v.get_defining_op() for v in combine.operands_source()]
    vector = to.build.combine([m.operand_source(0) for m in members])
    out = to.op("stack", [vector], {"axis": call.shown["axis"]}, call.types)
    for op in (combine, *members):
        op.erase()
    return out


def remember_joined(at: Loader, op: Operation) -> None:
    """Sizes put together are sizes."""
    members = at.vectors[op.operand_source(0)]
    known = [number_of(at, v) for v in members]
    if all(n is not None for n in known):
        parts = [n if isinstance(n, tuple) else (n,) for n in known]
        at.numbers[op.result(0)] = tuple(n for part in parts for n in part)


@loads("stack")
def load_stack(at: Loader, op: Operation) -> Any:
    (xs,), axis = at.inputs(op), one_axis(at.attrs(op)["axis"], at.inputs(op)[0][0].ndim + 1)
    remember_joined(at, op)
    return at.row("concat", *[at.row("unsqueeze", x, axis=(axis,)) for x in xs], axis=axis)


@form("split")
class Split:
    """One of Paddle's sections may be -1: what is left.  A number of equal parts is another operator.  The axis counts
    from the front, however it was written."""

    def save(to, call):
        if "axis" in call.attrs:
            call.shown["axis"] = call.attrs["axis"]
        if isinstance(call.shown.get("sections"), int):
            operands = [call.tensors[0], to.operand(call, "axis", "i32")]
            return to.op("split_with_num", operands, {"num": call.shown["sections"]}, call.types)
        return to.op("split", [call.tensors[0], to.operand(call, "sections", "ints"), to.operand(call, "axis", "i32")],
                     {}, call.types)

    def load(at, op):
        attrs, (x,) = at.attrs(op), at.inputs(op)
        axis = one_axis(attrs["axis"], x.ndim)
        sections = list(attrs["sections"])
        if -1 in sections:
            sections[sections.index(-1)] = x.shape[axis] - sum(s for s in sections if s != -1)
        return parted(at, op, at.row("split", x, sections=tuple(sections), axis=axis))


def parted(at: Loader, op: Operation, parts: Any) -> list[None]:
    """Several values are the members of a vector."""
    at.vectors[op.result(0)] = list(parts)
    at.values.update((v, v) for v in parts)
    return [None]


@loads("split_with_num")
def load_split_with_num(at: Loader, op: Operation) -> Any:
    attrs, (x,) = at.attrs(op), at.inputs(op)
    axis, n = one_axis(attrs["axis"], x.ndim), attrs["num"]
    return parted(at, op, at.row("split", x, sections=(x.shape[axis] // n,) * n, axis=axis))


@loads("unbind", "unstack")
def load_unbind(at: Loader, op: Operation) -> Any:
    attrs, (x,) = at.attrs(op), at.inputs(op)
    axis = one_axis(attrs["axis"], x.ndim)
    parts = at.row("split", x, sections=(1,) * x.shape[axis], axis=axis)
    return parted(at, op, [at.row("squeeze", p, axis=(axis,)) for p in parts])


@loads("coalesce_tensor")
def load_coalesce_tensor(at: Loader, op: Operation) -> Any:
    """Tensors put side by side in one piece of memory, for which ours have no need: they stay what they are."""
    a, (xs,) = at.attrs(op), at.inputs(op)
    if not a["copy_data"] or a["set_constant"] or a["use_align"] and not op.result(1).use_empty():
        raise at.refuse()
    parted(at, op, xs)
    if op.result(1).use_empty():
        return [None, None]
    return [None, at.row("concat", *[at.row("reshape", x, shape=(prod(x.shape),)) for x in xs], axis=0)]


@loads("meshgrid")
def load_meshgrid(at: Loader, op: Operation) -> Any:
    from minipd.ops.stacking import meshgrid
    return parted(at, op, at.call(meshgrid, *at.inputs(op)))
