"""Forms of reductions, searches, and what runs along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.dim import prod
from minipd.ir.operation import Operation
from minipd.ir.paddle.axes import all_axes, one_axis
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.load import Loader
from minipd.ir.paddle.math_forms import flowing
from minipd.ir.paddle.save import same as save_same
from minipd.ir.types import DenseTensorType

__all__: list[str] = []


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
