"""Forms of operators that make tensors, or whose result has a size that they are told."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.dim import DimExpr, is_symbolic, symbol
from minipd.ir.operation import Operation
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.joining_forms import parted
from minipd.ir.paddle.load import Loader
from minipd.ir.paddle.math_forms import flowing
from minipd.ir.types import DenseTensorType, VectorType
from minipd.ops.broadcast import broadcast_tensors
from minipd.ops.matrices.einstein import einsum
from minipd.ops.quantiles import median
from minipd.ops.repeating import repeat_interleave

__all__: list[str] = []


@form("full_like")
class FullLike:
    """The dtype "Undefined" is that of the operand."""

    def save(to, call):
        dtype = call.attrs["dtype"] or call.sources[0].dtype
        value = to.number(call.attrs["value"]) if "value" in call.attrs else call.given["value"]
        out = to.op("full_like", [call.tensors[0], value], {"dtype": dtype}, call.types)
        return flowing(call, out)

    def load(at, op):
        attrs, (x,) = at.attrs(op), at.inputs(op)
        return at.row("full_like", x, value=attrs["value"], dtype=attrs["dtype"])


@form("arange")
class Arange:
    """What our attributes are are Paddle's operands."""

    def save(to, call):
        from minipd.ir.builder import ANYWHERE
        a = call.attrs
        operands = [to.number(a[name], "float64") for name in ("start", "stop", "step")]
        return to.op("arange", operands, {"dtype": a["dtype"], "place": ANYWHERE}, call.types)

    def load(at, op):
        a = at.attrs(op)
        start, stop, step = (v if isinstance(v, DimExpr) or a["dtype"].kind not in "iu" or not float(v).is_integer()
                             else int(v) for v in (a["start"], a["end"], a["step"]))
        return at.row("arange", start=start, stop=stop, step=step, dtype=a["dtype"])


@form("linspace")
class Linspace:
    """What our attributes are are Paddle's operands."""

    def save(to, call):
        a = call.attrs
        kind = "float64" if a["dtype"] == np.float64 else "float32"
        operands = [to.number(a["start"], kind), to.number(a["stop"], kind), to.number(a["num"], "int32")]
        return to.op("linspace", operands, {"dtype": a["dtype"]}, [DenseTensorType((symbol("S0"),), a["dtype"])])

    def load(at, op):
        start, stop, number = (at.constant(v) for v in op.operands_source())
        return at.row("linspace", start=start, stop=stop, num=int(number), dtype=at.attrs(op)["dtype"])


@form("eye")
class Eye:
    """The counts are operands."""

    def save(to, call):
        a = call.attrs
        return to.op("eye", [to.number(a["num_rows"]), to.number(a["num_columns"])], {"dtype": a["dtype"]}, call.types)

    def load(at, op):
        a = at.attrs(op)
        return at.row("eye", num_rows=int(a["num_rows"]), num_columns=int(a["num_columns"]), dtype=a["dtype"])


@loads("full_with_tensor")
def load_full_with_tensor(at: Loader, op: Operation) -> Any:
    """A number, which may be one that the program computes, in a shape that it may compute too."""
    a = at.attrs(op)
    (value,) = at.inputs(op)
    number = at.row("reshape", at.row("cast", value, dtype=a["dtype"]), shape=())
    return at.row("expand", number, shape=tuple(a["shape"]))


@loads("repeat_interleave")
def load_repeat_interleave(at: Loader, op: Operation) -> Any:
    """Paddle says -1 for a size that it is not told."""
    a, (x,) = at.attrs(op), at.inputs(op)
    if is_symbolic(x.shape[a["axis"]]):
        raise at.refuse()
    size = None if a["output_size"] == -1 else a["output_size"]
    return at.call(repeat_interleave, x, a["repeats"], a["axis"], output_size=size)


@form("where")
class Where:
    """Paddle's operator wants three tensors of one shape; its function brings them there first.  What broadcasts
    together has one dtype, so the condition is a number for a moment."""

    def save(to, call):
        out, tensors = call.types[0], call.tensors
        assert isinstance(out, DenseTensorType)
        if any(v.shape != out.shape for v in tensors):
            number, = to.op("cast", tensors[:1], {"dtype": out.dtype}, [DenseTensorType(tensors[0].shape, out.dtype)])
            all_three = to.build.combine([number, *tensors[1:]])
            vector, = to.op("broadcast_tensors", [all_three], {}, [VectorType((out,) * 3)])
            stop = [v.stop_gradient for v in tensors]
            number, *rest = to.build.build("builtin.split", [vector], {"stop_gradient": stop}, [out] * 3).results()
            truth = DenseTensorType(out.shape, np.dtype(np.bool_))
            tensors = [*to.op("cast", [number], {"dtype": truth.dtype}, [truth]), *rest]
        return to.op("where", tensors, {}, call.types)

    def load(at, op):
        return at.row("where", *at.inputs(op))


@loads("broadcast_tensors")
def load_broadcast_tensors(at: Loader, op: Operation) -> Any:
    return parted(at, op, at.call(broadcast_tensors, *at.inputs(op)))


@loads("full_batch_size_like")
def load_full_batch_size_like(at: Loader, op: Operation) -> Any:
    """One of the sizes is that of another tensor."""
    a, (x,) = at.attrs(op), at.inputs(op)
    shape = list(a["shape"])
    shape[a["output_dim_idx"]] = x.shape[a["input_dim_idx"]]
    return at.row("full", shape=tuple(shape), value=a["value"], dtype=a["dtype"])


@loads("median")
def load_median(at: Loader, op: Operation) -> Any:
    """Paddle's gives the places of the middle as well, for its gradient."""
    a, (x,) = at.attrs(op), at.inputs(op)
    if len(a["axis"]) > 1 or any(user.name() != "pd_op.median_grad" for user in op.result(1).all_used_ops()):
        raise at.refuse()
    return [at.call(median, x, a["axis"][0] if a["axis"] else None, a["keepdim"], a["mode"]), None]


@loads("einsum")
def load_einsum(at: Loader, op: Operation) -> Any:
    """Besides the result, Paddle's has what its gradient reads."""
    (xs,) = at.inputs(op)
    out = at.call(einsum, at.attrs(op)["equation"], *(xs if isinstance(xs, list) else [xs]))
    return [out, *[None] * (op.num_results() - 1)]
