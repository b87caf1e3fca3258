"""Forms of operators that give a tensor another shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.dim import DimExpr, prod
from minipd.ir.operation import Operation
from minipd.ir.paddle.axes import all_axes, one_axis
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.load import Loader
from minipd.ir.paddle.save import Call
from minipd.ir.paddle.signatures import of_kind

__all__: list[str] = []


@loads("shape", "shape64")
def load_shape(at: Loader, op: Operation) -> Any:
    x, = at.inputs(op)
    at.numbers[op.result(0)] = tuple(x.shape)
    out = at.row("shape64", x)
    return out if op.name() == "pd_op.shape64" else at.row("cast", out, dtype=np.dtype(np.int32))


@form("reshape")
class Reshape:
    """A size of -1 is what is left, one of 0 that of the operand."""

    def save(to, call):
        shown = call.shown.get("shape")
        if isinstance(shown, tuple) and shown and shown[0] == "flatten":
            call.shown["shape"] = call.attrs["shape"]
            attrs = {"start_axis": shown[1], "stop_axis": shown[2]}
            if flat_shape(call.sources[0].shape, *shown[1:]) == call.attrs["shape"]:
                return to.op("flatten", call.tensors, attrs, call.types)
        shape, old = to.operand(call, "shape", "ints"), call.sources[0].shape
        if call.shown.get("shape") != call.attrs.get("shape"):
            return to.op("reshape", [call.tensors[0], shape], {}, call.types)
        zeros = [i for i, s in enumerate(call.attrs.get("shape", ())) if isinstance(s, int) and s == 0]
        if any(i >= len(old) or old[i] != 0 for i in zeros):
            shape = to.ints([-1 if i == zeros[0] else s for i, s in enumerate(call.attrs["shape"])])
        return to.op("reshape", [call.tensors[0], shape], {}, call.types)

    def load(at, op):
        attrs, (x,) = at.attrs(op), at.inputs(op)
        shape = [x.shape[i] if s == 0 and isinstance(s, int) and i < x.ndim else s
                 for i, s in enumerate(attrs["shape"])]
        if -1 in shape:
            rest = prod(s for s in shape if not (isinstance(s, int) and s == -1))
            at_place = shape.index(-1)
            shape[at_place] = 0 if rest == 0 else whole(prod(x.shape), rest)
        known = at.numbers.get(op.operand_source(0))
        if known is not None:
            at.numbers[op.result(0)] = known
        return at.row("reshape", x, shape=tuple(shape))


def flat_shape(shape: tuple, first: int, last: int) -> tuple:
    """The shape with dimensions first to last, inclusive, as one."""
    return (*shape[:first], prod(shape[first:last + 1]), *shape[last + 1:])


def whole(total: Any, part: Any) -> Any:
    return total // part


@loads("flatten")
def load_flatten(at: Loader, op: Operation) -> Any:
    attrs, (x,) = at.attrs(op), at.inputs(op)
    if x.ndim == 0:
        return at.row("reshape", x, shape=(1,))
    first, last = one_axis(attrs["start_axis"], x.ndim), one_axis(attrs["stop_axis"], x.ndim)
    return at.row("reshape", x, shape=flat_shape(x.shape, first, last))


def is_index(call: Call, made: Operation) -> bool:
    """Whether a slice and the squeeze that follows are one index in the source: `x[0]`."""
    axes = set(made.attributes["axes"].value)
    return (not made.attributes["decrease_axis"].value and call.sources[0].has_one_use()
            and set(call.attrs.get("axis", (-1,))) <= axes and "op_callstack" in made.attributes
            and made.attributes["op_callstack"] == call.op.attributes.get("op_callstack"))


@form("squeeze")
class Squeeze:
    """Paddle's axes may be negative, of another size than 1, and none for all that are 1."""

    def save(to, call):
        made = call.tensors[0].get_defining_op()
        if made is not None and made.name() == "pd_op.slice" and is_index(call, made):
            made.attributes["decrease_axis"] = of_kind("array<i64>", call.attrs["axis"])
            made.result(0).set_type(call.types[0])
            return made.result(0)
        return to.op("squeeze", [call.tensors[0], to.operand(call, "axis", "ints")], {}, call.types)

    def load(at, op):
        attrs, (x,) = at.attrs(op), at.inputs(op)
        axes = [i for i in all_axes(attrs["axis"], x.ndim) if x.shape[i] == 1]
        known = at.numbers.get(op.operand_source(0))
        if isinstance(known, tuple) and len(known) == 1:
            at.numbers[op.result(0)] = known[0]
        return at.row("squeeze", x, axis=tuple(axes))


@form("unsqueeze")
class Unsqueeze:
    """Axes are those of the result."""

    def save(to, call):
        return to.op("unsqueeze", [call.tensors[0], to.operand(call, "axis", "ints")], {}, call.types)

    def load(at, op):
        attrs, (x,) = at.attrs(op), at.inputs(op)
        axes = attrs["axis"] if isinstance(attrs["axis"], tuple) else (attrs["axis"],)
        axes = tuple(sorted(one_axis(a, x.ndim + len(axes)) for a in axes))
        known = at.numbers.get(op.operand_source(0))
        if isinstance(known, (int, DimExpr)):
            at.numbers[op.result(0)] = (known,)
        return at.row("unsqueeze", x, axis=axes)


@form("expand")
class Expand:
    """A size of -1 is that of the operand."""

    def save(to, call):
        return to.op("expand", [call.tensors[0], to.operand(call, "shape", "ints")], {}, call.types)

    def load(at, op):
        attrs, (x,) = at.attrs(op), at.inputs(op)
        shape, lead = attrs["shape"], len(attrs["shape"]) - x.ndim
        return at.row("expand", x, shape=tuple(
            x.shape[i - lead] if isinstance(s, int) and s == -1 else s for i, s in enumerate(shape)))


@form("expand_as")
class ExpandAs:
    """The shape comes from the second operand; Paddle writes it down as well."""

    def save(to, call):
        shape = [-1 if isinstance(d, DimExpr) else d for d in call.sources[1].shape]
        return to.op("expand_as", call.tensors, {"target_shape": shape}, call.types)

    def load(at, op):
        x, y = at.inputs(op)
        if y is None:
            return at.row("expand", x, shape=tuple(at.attrs(op)["target_shape"]))
        return at.row("expand_as", x, y)


@loads("tile")
def load_tile(at: Loader, op: Operation) -> Any:
    from minipd.ops.repeating import tile
    return at.call(tile, *at.inputs(op), list(at.attrs(op)["repeat_times"]))


@form("transpose")
class Transpose:
    """Paddle's axes may be negative."""

    def save(to, call):
        return to.op("transpose", call.tensors, call.attrs, call.types)

    def load(at, op):
        x, = at.inputs(op)
        return at.row("transpose", x, perm=tuple(one_axis(a, x.ndim) for a in at.attrs(op)["perm"]))


@form("shape_only", paddle="empty")
class ShapeOnly:
    """A tensor of which only the shape is read."""

    def save(to, call):
        return to.op("empty", [to.ints(call.attrs["shape"])], {"dtype": call.attrs["dtype"]}, call.types)

    def load(at, op):
        attrs = at.attrs(op)
        return at.row("shape_only", shape=tuple(attrs["shape"]), dtype=attrs["dtype"])
