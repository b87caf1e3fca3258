"""Forms of arithmetic, reductions and searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.dim import DimExpr, prod, symbol
from minipd.ir.attributes import DoubleAttribute, FloatAttribute
from minipd.ir.operation import Operation
from minipd.ir.paddle.axes import all_axes, one_axis
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.layer_forms import scale_of_norm
from minipd.ir.paddle.load import Loader
from minipd.ir.paddle.load import same as load_same
from minipd.ir.paddle.save import Call, Saver
from minipd.ir.paddle.save import same as save_same
from minipd.ir.types import DenseTensorType
from minipd.ir.value import Value

__all__: list[str] = []


# ----------------------------------------------------------------------------------------- numbers beside tensors
def scaled(to: Saver, call: Call, x: Value, scale: Any, bias: float, after: bool = True) -> Any:
    """x * scale + bias.  Paddle's bias has 32 bits; beside 64-bit tensors it is kept in full, but in print."""
    wide = to.strict and x.dtype in (np.float64, np.complex128) and float(np.float32(bias)) != bias
    factor = scale if isinstance(scale, Value) else to.number(scale)
    out = to.op("scale", [x, factor], {"bias_after_scale": after, "bias": 0.0}, call.types)
    out[0].get_defining_op().attributes["bias"] = DoubleAttribute(bias) if wide else FloatAttribute(bias)
    return out


def number_of(value: Value) -> Any:
    """The number, if an operand is one that stood beside a tensor in Python; else None."""
    op = value.get_defining_op()
    if op is None or op.name() != "pd_op.full" or value.shape != () or value.dtype.kind not in "fVi":
        return None
    number = op.attributes["value"].value
    return number if isinstance(number, (int, float)) and not isinstance(number, bool) else None


def beside(to: Saver, call: Call) -> tuple[int, Any] | None:
    """Which operand is the tensor, and the number beside it; None if both are tensors, or the number must stay one: it
    has more digits than Paddle's attributes.  (A print has fewer digits anyway, and is spelled as Paddle's is.)"""
    for i in (1, 0):
        number, x = number_of(call.sources[i]), call.sources[1 - i]
        if number is None or number_of(x) is not None:
            continue
        exact = float(np.float32(number)) == number or not to.strict
        if x.dtype.kind == "V" or x.dtype.kind == "f" and (x.dtype != np.float64 or exact) or (
                x.dtype.kind == "i" and exact and float(number).is_integer()):
            return 1 - i, number
    return None


@form("multiply")
class Multiply:
    """A number beside a tensor is a scale."""

    def save(to, call):
        norm = scale_of_norm(to, call)
        if norm is not None:
            return norm
        found = beside(to, call)
        if found is None:
            return save_same(to, call)
        return scaled(to, call, call.tensors[found[0]], found[1], 0.0)


@form("add")
class Add:
    """A number beside a tensor is a bias."""

    def save(to, call):
        norm = scale_of_norm(to, call)
        if norm is not None:
            return norm
        found = beside(to, call)
        if found is None:
            return save_same(to, call)
        return scaled(to, call, call.tensors[found[0]], 1.0, found[1])


@form("subtract")
class Subtract:
    """A number beside a tensor is a bias."""

    def save(to, call):
        found = beside(to, call)
        if found is None:
            return save_same(to, call)
        i, number = found
        return scaled(to, call, call.tensors[i], 1.0 if i == 0 else -1.0, -number if i == 0 else number)


@form("divide")
class Divide:
    """A division by a number is a scale for Paddle.  By another than a power of two its quotient is rounded twice, so
    that a file has a division; the print of a program is spelled as Paddle's is."""

    def save(to, call):
        found = beside(to, call)
        if found is None or call.sources[0].dtype.kind == "i" or found[1] == 0:
            return save_same(to, call)
        i, number = found
        if i == 1:
            return to.op("divide", spread(to, call), {}, call.types)
        if to.strict and abs(np.frexp(number)[0]) != 0.5:
            return save_same(to, call)
        return scaled(to, call, call.tensors[0], 1.0 / number, 0.0)


def spread(to: Saver, call: Call) -> list[Value]:
    """The operands; a number on the left is a tensor of the shape of the right for Paddle, if that is known."""
    left, right = call.tensors
    number = number_of(call.sources[0])
    if number is None or any(isinstance(d, DimExpr) for d in right.shape):
        return [left, right]
    return [to.build.full(right.shape, number, right.dtype), right]


@form("scale", paddle=("scale", "scale_"))
class Scale:
    """Paddle's bias has 32 bits."""

    def save(to, call):
        a = call.attrs
        return scaled(to, call, call.tensors[0], float(a["scale"]) if isinstance(a.get("scale"), int) else
                      call.given["scale"], a["bias"], a["bias_after_scale"])

    def load(at, op):
        attrs, (x,) = at.attrs(op), at.inputs(op)
        scale, bias, after = attrs["scale"], attrs["bias"], attrs["bias_after_scale"]
        known = at.numbers.get(op.operand_source(0))
        if known is not None and not isinstance(known, tuple) and float(scale).is_integer():
            at.numbers[op.result(0)] = known * int(scale) + int(bias)
        if x.dtype.kind == "i" and float(scale).is_integer() and float(bias).is_integer():
            scale, bias = int(scale), int(bias)
        if x.dtype.kind in "fV" or isinstance(bias, int):
            number = int if x.dtype.kind == "i" else float
            if after and bias == 0:
                return at.row("multiply", x, number(scale))
            if after and scale == 1:
                return at.row("add", x, number(bias))
            if after and scale == -1:
                return at.row("subtract", number(bias), x)
        return at.row("scale", x, scale=scale, bias=bias, bias_after_scale=after)


def flowing(call: Call, out: Any) -> Any:
    """Results that Paddle does not mark as stopping the gradient, though none flows through them."""
    call.flows = not call.sources[0].stop_gradient
    return out


@form("isnan", "isinf", "isfinite")
class Asked:
    """No gradient flows through them, which Paddle does not say."""

    def save(to, call):
        return flowing(call, save_same(to, call))


@form("pow", paddle="elementwise_pow")
class Pow:
    """Paddle's operator of that name takes a number."""

    def save(to, call):
        return to.op("elementwise_pow", spread(to, call), {}, call.types)

    def load(at, op):
        return at.row("pow", *at.inputs(op))


@loads("pow", "pow_")
def load_pow(at: Loader, op: Operation) -> Any:
    (x,), y = at.inputs(op), at.attrs(op)["y"]
    return at.row("pow", x, int(y) if x.dtype.kind in "iu" else y)


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


# -------------------------------------------------------------------------------------------------- reductions
def _load_reduction(at: Loader, op: Operation) -> Any:
    attrs, (x,) = at.attrs(op), at.inputs(op)
    name = op.name().partition(".")[2]
    axes = attrs["axis"] if isinstance(attrs["axis"], tuple) else (attrs["axis"],)
    if attrs.get("reduce_all"):
        axes = ()
    dtype = attrs.get("dtype")
    if name == "sum" and dtype is None and x.dtype.kind in "biu" and x.dtype != np.int64:
        dtype = np.dtype(np.int64)
    if dtype is not None and dtype != x.dtype:
        x = at.row("cast", x, dtype=dtype)
    return at.row(name, x, axis=all_axes(axes, x.ndim), keepdim=attrs["keepdim"])


@form("sum", "mean", "max", "min", "all", "any")
class Reduction:
    """No axes are all axes for Paddle; ours names them.  Paddle's sum can cast first."""

    def save(to, call):
        return save_same(to, call)

    load = _load_reduction


@form("prod", "logsumexp")
class ReduceAll:
    """Paddle has an attribute for "all axes"."""

    def save(to, call):
        axes = call.shown.get("axis", ())
        everything = len(axes) in (0, call.sources[0].ndim)
        attrs = {"axis": axes, "keepdim": call.attrs["keepdim"], "reduce_all": everything}
        operands = [call.tensors[0]] + ([to.operand(call, "axis", "ints")] if call.row.name == "prod" else [])
        return to.op(call.row.name, operands, attrs, call.types)

    load = _load_reduction


@loads("amax", "amin")
def load_extreme(at: Loader, op: Operation) -> Any:
    attrs, (x,) = at.attrs(op), at.inputs(op)
    return at.row(op.name()[-3:], x, axis=all_axes(attrs["axis"], x.ndim), keepdim=attrs["keepdim"])


@form("argmax", "argmin")
class ArgMax:
    """Paddle can flatten first."""

    def save(to, call):
        a = call.attrs
        attrs = {"keepdims": a["keepdim"], "flatten": False, "dtype": a["dtype"]}
        axis = to.number(call.shown["axis"], "int64") if "axis" in a else call.given["axis"]
        return flowing(call, to.op(call.row.name, [call.tensors[0], axis], attrs, call.types))

    def load(at, op):
        attrs, (x,) = at.attrs(op), at.inputs(op)
        name, rank, axis = op.name().partition(".")[2], x.ndim, attrs["axis"]
        if attrs["flatten"]:
            x, axis = at.row("reshape", x, shape=(prod(x.shape),)), 0
        keep = attrs["keepdims"] and not attrs["flatten"]
        out = at.row(name, x, axis=one_axis(axis, x.ndim), keepdim=keep, dtype=attrs["dtype"])
        if attrs["flatten"] and attrs["keepdims"]:
            out = at.row("reshape", out, shape=(1,) * rank)
        return out


@form("cumprod")
class CumProd:
    """The axis is called dim."""

    def save(to, call):
        return to.op("cumprod", call.tensors, {**call.attrs, "dim": call.attrs["axis"]}, call.types)

    def load(at, op):
        a, (x,) = at.attrs(op), at.inputs(op)
        return at.row("cumprod", x, axis=one_axis(a["dim"], x.ndim), exclusive=a["exclusive"], reverse=a["reverse"])


@form("cumsum", "logcumsumexp")
class Cumulative:
    """Paddle can flatten first."""

    def save(to, call):
        return save_same(to, call)

    def load(at, op):
        a, (x,) = at.attrs(op), at.inputs(op)
        name = op.name().partition(".")[2]
        if name == "logcumsumexp" and a["exclusive"]:
            raise at.refuse()
        axis = a["axis"]
        if a["flatten"]:
            x, axis = at.row("reshape", x, shape=(prod(x.shape),)), 0
        rest = {"exclusive": a["exclusive"]} if name == "cumsum" else {}
        return at.row(name, x, axis=one_axis(axis, x.ndim), reverse=a["reverse"], **rest)


@form("softmax", "log_softmax", "cummax", "cummin", "argsort")
class AlongOneAxis:
    """Paddle's axis may be negative."""

    def save(to, call):
        out = save_same(to, call)
        return flowing(call, out) if call.row.name == "argsort" else out

    def load(at, op):
        a, (x,) = at.attrs(op), at.inputs(op)
        a["axis"] = one_axis(a["axis"], x.ndim)
        name = op.name().partition(".")[2]
        return at.row(name, x, **{k: v for k, v in a.items() if k != "stable"})


@form("topk")
class TopK:
    """k is an operand, and Paddle need not sort."""

    def save(to, call):
        return flowing(call, to.op("topk", [call.tensors[0], to.number(call.attrs["k"], "int32")], call.shown,
                                   call.types))

    def load(at, op):
        a, (x,) = at.attrs(op), at.inputs(op)
        return at.row("topk", x, k=int(a["k"]), axis=one_axis(a["axis"], x.ndim), largest=a["largest"])


@form("kthvalue", "mode")
class OneOfAxis:
    """Paddle can drop the axis; ours keeps it."""

    def save(to, call):
        return to.op(call.row.name, call.tensors, {**call.attrs, "keepdim": True}, call.types)

    def load(at, op):
        a, (x,) = at.attrs(op), at.inputs(op)
        axis, keep = one_axis(a["axis"], x.ndim), a.pop("keepdim")
        outs = at.row(op.name().partition(".")[2], x, **{**a, "axis": axis})
        return outs if keep else [at.row("squeeze", o, axis=(axis,)) for o in outs]


@form("p_norm")
class PNorm:
    """Ours is a norm over several axes; Paddle's over one, or over everything."""

    def save(to, call):
        a, x = call.attrs, call.sources[0]
        axes, rank = a["axis"] if isinstance(a["axis"], tuple) else (a["axis"],), x.ndim
        attrs = {"porder": a["porder"], "keepdim": a["keepdim"], "axis": -1, "asvector": True}
        if len(axes) in (1, rank):
            if len(axes) == 1:
                shown = call.shown["axis"]
                attrs |= {"axis": shown[0] if isinstance(shown, tuple) and shown else axes[0], "asvector": False}
            return to.op("p_norm", call.tensors, attrs, call.types)
        # several axes are made one, and that the last
        rest = [i for i in range(rank) if i not in axes]
        moved, = to.op("transpose", call.tensors, {"perm": [*rest, *axes]},
                       [DenseTensorType([x.shape[i] for i in (*rest, *axes)], x.dtype)])
        left, one = [x.shape[i] for i in rest], prod(x.shape[i] for i in axes)
        flat, = to.op("reshape", [moved, to.ints([*left, one])], {}, [DenseTensorType((*left, one), x.dtype)])
        norm, = to.op("p_norm", [flat], {**attrs, "keepdim": False, "asvector": False},
                      [DenseTensorType(left, call.op.result(0).dtype)])
        return to.op("reshape", [norm, to.ints(call.op.result(0).shape)], {}, call.types)

    def load(at, op):
        a, (x,) = at.attrs(op), at.inputs(op)
        if a["porder"] in (float("inf"), float("-inf"), 0.0):
            raise at.refuse()
        axes = tuple(range(x.ndim)) if a["asvector"] else (one_axis(a["axis"], x.ndim),)
        return at.row("p_norm", x, porder=a["porder"], axis=axes, keepdim=a["keepdim"])


@loads("numel")
def load_numel(at: Loader, op: Operation) -> Any:
    x, = at.inputs(op)
    at.numbers[op.result(0)] = prod(x.shape)
    return at.row("numel", x)


@form("cast", paddle=("cast", "cast_"))
class Cast:
    """Sizes stay sizes."""

    def save(to, call):
        return save_same(to, call)

    def load(at, op):
        known, dtype = at.numbers.get(op.operand_source(0)), at.attrs(op)["dtype"]
        if known is not None and dtype is not None and dtype.kind in "iu":
            at.numbers[op.result(0)] = known
        return at.row("cast", *at.inputs(op), dtype=dtype)


def _sizes(op: str):
    """Arithmetic of sizes is one of symbols."""
    calculate = {"add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
                 "floor_divide": lambda a, b: a // b}[op]

    def load(at: Loader, operation: Operation) -> Any:
        a, b = (at.numbers.get(v, None) if v in at.numbers else _plain(v) for v in operation.operands_source())
        if a is not None and b is not None and not isinstance(a, tuple) and not isinstance(b, tuple):
            at.numbers[operation.result(0)] = calculate(a, b)
        return load_same(at, operation)
    return load


def _plain(value: Value) -> Any:
    from minipd.ir.schema import constant_of
    found = constant_of(value)
    return int(found) if isinstance(found, (int, float)) and value.dtype.kind in "iu" else None


for _name in ("add", "subtract", "multiply", "floor_divide"):
    loads(_name)(_sizes(_name))


@form("determinant", paddle="det")
class Determinant:
    """Called det."""

    def save(to, call):
        return to.op("det", call.tensors, {}, call.types)

    def load(at, op):
        return at.row("determinant", *at.inputs(op))


@form("slogdet", paddle="slogdet_v2")
class SlogDet:
    """The one with two results."""

    def save(to, call):
        return to.op("slogdet_v2", call.tensors, {}, call.types)

    def load(at, op):
        return at.row("slogdet", *at.inputs(op))


@form("gammainc", paddle=())
class GammaInc:
    """Paddle has the complement."""

    def save(to, call):
        upper, = to.op("gammaincc", call.tensors, {}, call.types)
        return scaled(to, call, upper, -1.0, 1.0)


@form("clip")
class Clip:
    """The bounds are operands of the tensor's dtype."""

    def save(to, call):
        x = call.sources[0]
        dtype: Any = x.dtype if x.dtype in (np.float32, np.float64, np.int32, np.int64) else dtypes.float32.np
        bounds = [call.given[n] if n not in call.attrs or call.given[n].dtype == dtype else
                  to.number(call.attrs[n], dtype) for n in ("min", "max")]
        return to.op("clip", [call.tensors[0], *bounds], {}, call.types)

    def load(at, op):
        a, (x,) = at.attrs(op), at.inputs(op)
        return at.row("clip", x, min=a["min"], max=a["max"])
