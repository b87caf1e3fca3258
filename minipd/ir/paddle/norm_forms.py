"""Forms of norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.dim import prod
from minipd.ir.operation import Operation
from minipd.ir.paddle.conv_forms import first_channels, last_channels
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.load import Loader
from minipd.ir.types import DenseTensorType
from minipd.ir.value import Value

__all__: list[str] = []


@form("standardize", paddle=())
class Standardize:
    """Paddle's layer_norm without scale and bias; axes that are not the last are moved there and back."""

    def save(to, call):
        x, axes = call.sources[0], tuple(call.attrs["axis"])
        rest = tuple(i for i in range(x.ndim) if i not in axes)
        perm = (*rest, *axes)
        value, shape = call.tensors[0], tuple(x.shape[i] for i in perm)
        moved = perm != tuple(range(x.ndim))
        if moved:
            value, = to.op("transpose", [value], {"perm": perm}, [DenseTensorType(shape, x.dtype)])
        left = DenseTensorType(shape[:len(rest)], np.dtype(np.float32) if x.dtype.itemsize == 2 else x.dtype)
        attrs = {"epsilon": call.attrs["epsilon"], "begin_norm_axis": len(rest)}
        out, mean, variance = to.op("layer_norm", [value, None, None], attrs,
                                    [DenseTensorType(shape, x.dtype), left, left])
        if moved:
            back = [perm.index(i) for i in range(x.ndim)]
            out, = to.op("transpose", [out], {"perm": back}, [call.types[0]])
        results = [out]
        for value, old, type in zip((mean, variance), call.op.results()[1:], call.types[1:], strict=True):
            if not old.use_empty():
                if left.dtype != x.dtype:
                    value, = to.op("cast", [value], {"dtype": x.dtype}, [DenseTensorType(left.shape, x.dtype)])
                value, = to.op("reshape", [value, to.ints(old.shape)], {}, [type])
            results.append(value)
        return results


@form("layer_norm", paddle=())
class LayerNorm:
    """Over the last axes.  Paddle's takes scale and bias flat, and also gives mean and variance."""

    def save(to, call):
        x, scale = call.sources[:2]
        begin = x.ndim - scale.ndim
        value, *parts = call.tensors
        if scale.ndim > 1:
            size = (prod(scale.shape),)
            parts = [to.op("reshape", [p, to.ints(size)], {}, [DenseTensorType(size, x.dtype)])[0] for p in parts]
        left = DenseTensorType(x.shape[:begin], np.dtype(np.float32) if x.dtype.itemsize == 2 else x.dtype)
        attrs = {"epsilon": call.attrs["epsilon"], "begin_norm_axis": begin}
        return to.op("layer_norm", [value, *parts], attrs, [*call.types, left, left])[:1]


@loads("layer_norm")
def load_layer_norm(at: Loader, op: Operation) -> Any:
    a, (x, scale, bias) = at.attrs(op), at.inputs(op)
    begin = a["begin_norm_axis"]
    out, mean, variance = at.row("standardize", x, axis=tuple(range(begin, x.ndim)), epsilon=a["epsilon"])
    shape = tuple(x.shape[begin:])
    for name, value in (("multiply", scale), ("add", bias)):
        if value is not None:
            value = value if value.shape == shape else at.row("reshape", value, shape=shape)
            value = value if value.dtype == x.dtype else at.row("cast", value, dtype=x.dtype)
            out = at.row(name, out, value)
    left = [None if r.use_empty() else at.row("reshape", v, shape=tuple(x.shape[:begin]))
            for v, r in zip((mean, variance), op.results()[1:], strict=True)]
    return [out, *left]


@loads("batch_norm", "batch_norm_")
def load_batch_norm(at: Loader, op: Operation) -> Any:
    """With running statistics, or with those of the batch, which then move the running ones."""
    a, (x, mean, variance, scale, bias) = at.attrs(op), at.inputs(op)
    rank, axis = x.ndim, x.ndim - 1 if a["data_format"].endswith("C") and x.ndim > 2 else 1
    shape = tuple(x.shape[axis] if i == axis else 1 for i in range(rank))

    def wide(v: Value) -> Value:
        v = at.row("reshape", v, shape=shape)
        return v if v.dtype == x.dtype else at.row("cast", v, dtype=x.dtype)
    if a["use_global_stats"] or a["is_test"]:
        inverse = at.row("rsqrt", at.row("add", variance, a["epsilon"]))
        out = at.row("multiply", at.row("subtract", x, wide(mean)), wide(inverse))
        results: list[Value | None] = [mean, variance, None, None, None]
    else:
        axes = tuple(i for i in range(rank) if i != axis)
        out, batch_mean, batch_variance = at.row("standardize", x, axis=axes, epsilon=a["epsilon"])
        flat = [at.row("reshape", v, shape=(x.shape[axis],)) for v in (batch_mean, batch_variance)]
        flat = [v if v.dtype == mean.dtype else at.row("cast", v, dtype=mean.dtype) for v in flat]
        keep = a["momentum"]
        moved = [at.row("add", at.row("multiply", old, keep), at.row("multiply", new, 1 - keep))
                 for old, new in zip((mean, variance), flat, strict=True)]
        inverse = at.row("rsqrt", at.row("add", flat[1], a["epsilon"]))
        results = [*moved, flat[0], inverse, None]
    for name, value in (("multiply", scale), ("add", bias)):
        out = out if value is None else at.row(name, out, wide(value))
    return [out, *results]


@loads("group_norm", "instance_norm")
def load_group_norm(at: Loader, op: Operation) -> Any:
    a, (x, scale, bias) = at.attrs(op), at.inputs(op)
    layout = a.get("data_format", "NCHW")
    if any(user.name() != f"{op.name()}_grad" for r in op.results()[1:] for user in r.all_used_ops()):
        raise at.refuse()
    x = first_channels(at, x, layout)
    n, c, *sizes = x.shape
    groups = a.get("groups", c)
    parts = at.row("reshape", x, shape=(n, groups, c // groups, *sizes))
    out = at.row("standardize", parts, axis=tuple(range(2, parts.ndim)), epsilon=a["epsilon"])[0]
    out = at.row("reshape", out, shape=tuple(x.shape))
    for name, value in (("multiply", scale), ("add", bias)):
        if value is not None:
            out = at.row(name, out, at.row("reshape", value, shape=(c, *(1 for _ in sizes))))
    return [last_channels(at, out, layout), None, None]


@form("rms_norm")
class RmsNorm:
    """Over the last axis.  Paddle's also gives what it multiplied by."""

    def save(to, call):
        x = call.sources[0]
        types = [*call.types, DenseTensorType(x.shape[:-1], np.float32 if x.dtype.itemsize < 8 else x.dtype)]
        attrs = {"epsilon": call.attrs["epsilon"], "normalized_shape": [x.shape[-1]]}
        return to.op("rms_norm", call.tensors, attrs, types)[:1]

    def load(at, op):
        a, (x, scale) = at.attrs(op), at.inputs(op)
        if len(a["normalized_shape"]) != 1 or scale is None or not op.result(1).use_empty():
            raise at.refuse()
        return [at.row("rms_norm", x, scale, epsilon=a["epsilon"]), None]
