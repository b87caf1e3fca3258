"""Forms of operators that move data: slices, shapes, joining, gathering."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.dim import DimExpr, prod
from minipd.ir.operation import Operation
from minipd.ir.paddle.axes import all_axes, one_axis, slice_range
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.load import Loader
from minipd.ir.paddle.numbers import number_of
from minipd.ir.paddle.save import Call, Saver
from minipd.ir.paddle.signatures import of_kind
from minipd.ir.schema import constant_of
from minipd.ir.types import DenseTensorType, VectorType
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


# ---------------------------------------------------------------------------------------------------- shapes
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


# ------------------------------------------------------------------------------------------- joining, splitting
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


# -------------------------------------------------------------------------------------------------- gathering
@form("take_along_axis")
class TakeAlongAxis:
    """Ours has a window: which part of the axis this process holds."""

    def save(to, call):
        call.expect(window=None)
        return to.op("take_along_axis", call.tensors, call.attrs, call.types)

    def load(at, op):
        x, indices = at.inputs(op)
        return at.row("take_along_axis", x, indices, axis=one_axis(at.attrs(op)["axis"], x.ndim))


@form("take_along_axis_grad", paddle=())
class TakeAlongAxisGrad:
    """Read back by the gradient rule of take_along_axis."""

    def save(to, call):
        call.expect(window=None)
        g, indices, like = call.tensors
        return to.op("take_along_axis_grad", [like, indices, g], call.attrs, call.types)


@form("gather")
class Gather:
    """The axis is an operand; indices of two dimensions are one column."""

    def save(to, call):
        (x, index), axis, types = call.tensors, call.attrs["axis"], call.types
        shape = call.sources[1].shape
        if len(shape) != 1:
            type = DenseTensorType((prod(shape),), index.dtype)
            index, = to.op("reshape", [index, to.ints([-1])], {}, [type])
            types = [DenseTensorType((*x.shape[:axis], *type.shape, *x.shape[axis + 1:]), x.dtype)]
        out, = to.op("gather", [x, index, to.number(axis, "int32")], {}, types)
        return out if len(shape) == 1 else to.op("reshape", [out, to.ints(call.op.result(0).shape)], {}, call.types)

    def load(at, op):
        x, index = at.inputs(op)
        axis = one_axis(at.attrs(op)["axis"], x.ndim)
        if index.ndim == 2:
            index = at.row("squeeze", index, axis=(1,))
        if index.ndim == 0:
            one = at.row("gather", x, at.row("unsqueeze", index, axis=(0,)), axis=axis)
            return at.row("squeeze", one, axis=(axis,))
        return at.row("gather", x, index, axis=axis)


@loads("index_select")
def load_index_select(at: Loader, op: Operation) -> Any:
    x, index = at.inputs(op)
    return at.row("gather", x, index, axis=one_axis(at.attrs(op)["axis"], x.ndim))


@form("index_put")
class IndexPut:
    """Ours takes indices side by side in one tensor, Paddle's one tensor for each axis."""

    def save(to, call):
        x, index, value = call.tensors
        columns = call.sources[1].shape[-1]
        sections, axis = to.ints([1] * columns), to.number(index.ndim - 1, "int32")
        one = DenseTensorType((*index.shape[:-1], 1), index.dtype)
        vector, = to.op("split", [index, sections, axis], {}, [VectorType((one,) * columns)])
        split = to.build.build("builtin.split", [vector], {"stop_gradient": [True] * columns}, [one] * columns)
        parts = split.results()
        flat = DenseTensorType(index.shape[:-1], index.dtype)
        indices = to.build.combine([to.op("squeeze", [p, to.ints([-1])], {}, [flat])[0] for p in parts])
        return to.op("index_put", [x, indices, value], {"accumulate": False}, call.types)

    def load(at, op):
        x, indices, value = at.inputs(op)
        if at.attrs(op)["accumulate"] or any(i.dtype == np.bool_ for i in indices):
            raise at.refuse()
        shape = indices[0].shape
        if any(i.shape != shape for i in indices):
            raise at.refuse()
        index = at.row("concat", *[at.row("unsqueeze", i, axis=(len(shape),)) for i in indices], axis=len(shape))
        return at.row("index_put", x, index, value)


@form("as_strided")
class AsStrided:
    """Paddle counts the offset in bytes."""

    def save(to, call):
        a = call.attrs
        return to.op("as_strided", call.tensors, {"dims": a["shape"], "stride": a["stride"], "offset": a["offset"]
                                                  * call.sources[0].dtype.itemsize}, call.types)

    def load(at, op):
        attrs, (x,) = at.attrs(op), at.inputs(op)
        return at.row("as_strided", x, shape=attrs["dims"], stride=attrs["stride"],
                      offset=attrs["offset"] // x.dtype.itemsize)


@form("shape_only", paddle="empty")
class ShapeOnly:
    """A tensor of which only the shape is read."""

    def save(to, call):
        return to.op("empty", [to.ints(call.attrs["shape"])], {"dtype": call.attrs["dtype"]}, call.types)

    def load(at, op):
        attrs = at.attrs(op)
        return at.row("shape_only", shape=tuple(attrs["shape"]), dtype=attrs["dtype"])
