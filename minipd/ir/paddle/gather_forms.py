"""Forms of reading and writing by number."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.dim import prod
from minipd.ir.operation import Operation
from minipd.ir.paddle.axes import one_axis
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.load import Loader
from minipd.ir.types import DenseTensorType, VectorType

__all__: list[str] = []


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
        call.expect(window=None)
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
