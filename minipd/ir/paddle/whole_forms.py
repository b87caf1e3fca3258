"""Forms of public functions that Paddle has an operator for, and we write with several.

A trace notes what a function wrote (`minipd.ir.whole`); here is how the call is written as Paddle's function does it.
The other direction needs no entry of its own: what Paddle's operator is read as is such a function (`functions`), or
rows that mean the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.ir.paddle.axes import one_axis
from minipd.ir.paddle.form import WHOLES, Apart, whole_form
from minipd.ir.paddle.save import Saver, Whole
from minipd.ir.paddle.signatures import REQUIRED, signature
from minipd.ir.types import DenseTensorType, VectorType
from minipd.ir.value import Value

__all__: list[str] = []


def one_operator(to: Saver, call: Whole, paddle: str, names: dict[str, str], fixed: dict[str, Any]) -> Any:
    """Paddle's operator with the tensors in their order, and the other arguments by name."""
    found = signature(paddle)
    assert found is not None
    args = {names.get(k, k): v for k, v in call.args.items()} | fixed
    tensors = list(call.tensors.values())
    operands: list[Any] = []
    for operand in found.operands:
        if operand.kind:
            if operand.name not in args and operand.default is REQUIRED:
                raise Apart
            operands.append(to.constant(args.pop(operand.name, None) if operand.name in args else
                                        operand.default.value, operand.kind))
        elif tensors:
            given = tensors.pop(0)
            if isinstance(given, list) != operand.vector:
                raise Apart
            operands.append(to.build.combine(given) if operand.vector else given)
        elif operand.optional:
            operands.append(None)
        else:
            raise Apart
    attrs = {k: args.pop(k) for k in list(args) if k in found.attrs}
    if tensors or any(v is not False for v in args.values()) or len(found.results) != len(call.types):
        raise Apart
    return to.op(paddle, operands, attrs, call.types)


#: function -> (Paddle's operator, its names of arguments where they differ, arguments that Paddle's function adds)
OPERATORS: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {
    **{name: (name, {}, {}) for name in (
        "relu6", "elu", "selu", "celu", "leaky_relu", "hardswish", "hardsigmoid", "hardshrink", "softshrink",
        "softplus", "softsign", "swish", "thresholded_relu", "maxout", "pixel_shuffle", "pixel_unshuffle",
        "channel_shuffle", "bmm", "addmm", "baddbmm", "dot", "mv", "trace", "kron", "dist", "diag", "diagonal",
        "scatter", "scatter_nd_add", "index_select", "gather_nd", "put_along_axis")},
    "tanhshrink": ("tanh_shrink", {}, {}), "mish": ("mish", {}, {"lambda": 20.0}),
    "hardtanh": ("hardtanh", {"min": "t_min", "max": "t_max"}, {}),
}


def _operator(name: str) -> Any:
    def write(to: Saver, call: Whole) -> Any:
        return one_operator(to, call, *OPERATORS[name])
    return write


WHOLES.update({name: _operator(name) for name in OPERATORS})


def axis_of(call: Whole, tensor: str, name: str = "axis") -> int:
    return one_axis(call.args[name], call.sources[tensor].ndim)


def no_others(call: Whole, *known: str) -> None:
    """Raises: Apart if an argument was given that the form does not know."""
    if any(k not in known for k in call.args):
        raise Apart


@whole_form("tile")
def tile(to: Saver, call: Whole) -> Any:
    times = call.args["repeat_times"]
    return to.op("tile", [call.tensors["x"], to.ints(times if isinstance(times, tuple) else (times,))], {}, call.types)


@whole_form("repeat_interleave")
def repeat_interleave(to: Saver, call: Whole) -> Any:
    no_others(call, "repeats", "axis")
    if "axis" not in call.args or not isinstance(call.args["repeats"], int):
        raise Apart
    attrs = {**call.args, "output_size": -1}
    return to.op("repeat_interleave", [call.tensors["x"]], attrs, call.types)


@whole_form("masked_fill")
def masked_fill(to: Saver, call: Whole) -> Any:
    x, mask = call.tensors["x"], call.tensors["mask"]
    value = call.tensors["value"] if "value" in call.tensors else to.build.full((), call.args["value"], x.dtype)
    truth = DenseTensorType(mask.shape, np.dtype(np.bool_))
    made = value.get_defining_op()
    mask, = to.op("cast", [mask], {"dtype": truth.dtype}, [truth])
    out, = to.op("masked_fill", [x, mask, value], {}, call.types)
    if made is not None and "value" not in call.tensors:
        made.move_before(mask.get_defining_op())                # as Paddle writes it
    return out


@whole_form("lerp")
def lerp(to: Saver, call: Whole) -> Any:
    x, y = call.tensors["x"], call.tensors["y"]
    weight = call.tensors["weight"] if "weight" in call.tensors else to.build.full((), call.args["weight"], x.dtype)
    return to.op("lerp", [x, y, weight], {}, call.types)


@whole_form("one_hot")
def one_hot(to: Saver, call: Whole) -> Any:
    if call.args["num_classes"] < 0:
        raise Apart
    number = to.number(call.args["num_classes"], "int32")
    return to.op("one_hot", [call.tensors["x"], number], {}, call.types)


@whole_form("take_along_axis")
def take_along_axis(to: Saver, call: Whole) -> Any:
    """What is broadcast is expanded first, also where that changes nothing."""
    x, indices = call.tensors["arr"], call.tensors["indices"]
    axis = axis_of(call, "arr")
    if call.args.get("broadcast") is not True or x.ndim != indices.ndim:
        raise Apart
    sizes = [max(a, b) if isinstance(a, int) and isinstance(b, int) else None
             for a, b in zip(x.shape, indices.shape, strict=True)]
    if None in sizes:
        raise Apart

    def wide(v: Value, of: Value) -> Value:
        shape = [of.shape[i] if i == axis else s for i, s in enumerate(sizes)]
        return to.op("expand", [v, to.ints(shape)], {}, [DenseTensorType(shape, v.dtype)])[0]
    indices = wide(indices, indices)
    return to.op("take_along_axis", [wide(x, x), indices], {"axis": axis}, call.types)


@whole_form("put_along_axis")
def put_along_axis(to: Saver, call: Whole) -> Any:
    x, indices, values = (call.tensors.get(n) for n in ("arr", "indices", "values"))
    axis = axis_of(call, "arr")
    reduce = {"add": "add", "mul": "mul", "multiply": "mul"}.get(call.args["reduce"], call.args["reduce"])
    if values is None or x is None or indices is None or call.args.get("broadcast") is not True or any(
            not isinstance(s, int) for s in (*x.shape, *indices.shape)):
        raise Apart
    shape = [indices.shape[i] if i == axis else s for i, s in enumerate(x.shape)]
    indices, values = (to.op("expand", [v, to.ints(shape)], {}, [DenseTensorType(shape, v.dtype)])[0]
                       for v in (indices, values))
    attrs = {"axis": axis, "reduce": reduce, "include_self": call.args.get("include_self", True)}
    return to.op("put_along_axis", [x, indices, values], attrs, call.types)


def vector(to: Saver, call: Whole, name: str, operands: list[Any], attrs: dict[str, Any]) -> Sequence[Value]:
    """An operator whose results come as a vector."""
    made, = to.op(name, operands, attrs, [VectorType(call.types)])
    common = {k: a for k, a in to.common.items() if k == "struct_name"}
    stop = [made.stop_gradient] * len(call.types)
    return to.build.build("builtin.split", [made], {"stop_gradient": stop, **common}, call.types).results()


@whole_form("unbind")
def unbind(to: Saver, call: Whole) -> Any:
    return vector(to, call, "unbind", [call.tensors["input"]], {"axis": call.args["axis"]})


@whole_form("unstack")
def unstack(to: Saver, call: Whole) -> Any:
    attrs = {"axis": call.args["axis"], "num": len(call.types)}
    return vector(to, call, "unstack", [call.tensors["x"]], attrs)


@whole_form("meshgrid")
def meshgrid(to: Saver, call: Whole) -> Any:
    if call.args.get("indexing", "ij") != "ij" or not isinstance(call.tensors.get("args"), list):
        raise Apart
    return vector(to, call, "meshgrid", [to.build.combine(call.tensors["args"])], {})


@whole_form("einsum")
def einsum(to: Saver, call: Whole) -> Any:
    """Paddle's has two results besides, for its gradient."""
    if not isinstance(call.tensors.get("operands"), list):
        raise Apart
    operands = call.tensors["operands"]
    cache = VectorType([v.type() for v in operands])
    empty = VectorType([DenseTensorType((0,), v.dtype) for v in operands])
    out, inner, shapes = to.op("einsum", [to.build.combine(operands)], {"equation": call.args["equation"]},
                               [*call.types, empty, cache])
    for rest, type in ((inner, empty), (shapes, cache)):
        to.build.build("builtin.split", [rest], {"stop_gradient": [rest.stop_gradient] * len(operands)}, type.types)
    return out


@whole_form("median")
def median(to: Saver, call: Whole) -> Any:
    no_others(call, "axis", "keepdim", "mode")
    axis = call.args.get("axis")
    attrs = {**call.args, "axis": [] if axis is None else [axis]}
    places = DenseTensorType((*call.group.results[0].shape, 2), np.dtype(np.int64))
    return to.op("median", [call.tensors["x"]], attrs, [*call.types, places])[:1]


@whole_form("bernoulli")
def bernoulli(to: Saver, call: Whole) -> Any:
    no_others(call)
    call.flows = not call.sources["x"].stop_gradient
    return to.op("bernoulli", [call.tensors["x"]], {}, call.types)


@whole_form("outer")
def outer(to: Saver, call: Whole) -> Any:
    def shaped(x: Value, shape: tuple[int, int]) -> Value:
        sizes = [x.shape[0] if s == -1 else s for s in shape]
        return to.op("reshape", [x, to.ints(shape)], {}, [DenseTensorType(sizes, x.dtype)])[0]
    x, y = call.tensors["x"], call.tensors["y"]
    if x.ndim != 1 or y.ndim != 1:
        raise Apart
    return to.op("multiply", [shaped(x, (-1, 1)), shaped(y, (1, -1))], {}, call.types)
