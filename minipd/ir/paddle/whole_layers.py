"""Public functions of layers that Paddle has an operator for, see `whole_forms`."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.dim import symbol
from minipd.ir.paddle.form import Apart, whole_form
from minipd.ir.paddle.save import Saver, Whole
from minipd.ir.paddle.whole_forms import axis_of
from minipd.ir.types import DenseTensorType

__all__: list[str] = []


@whole_form("prelu")
def prelu(to: Saver, call: Whole) -> Any:
    x, weight = call.tensors["x"], call.tensors["weight"]
    attrs = {"data_format": call.args["data_format"], "mode": "all" if tuple(weight.shape) == (1,) else "channel"}
    return to.op("prelu", [x, weight], attrs, call.types)


@whole_form("group_norm")
def group_norm(to: Saver, call: Whole) -> Any:
    x, groups = call.tensors["x"], call.args["num_groups"]
    left = DenseTensorType((x.shape[0], groups), np.dtype(np.float32) if x.dtype.itemsize == 2 else x.dtype)
    attrs = {"epsilon": call.args["epsilon"], "groups": groups, "data_format": call.args["data_format"]}
    return to.op("group_norm", [x, call.tensors.get("weight"), call.tensors.get("bias")], attrs,
                 [*call.types, left, left])[:1]


@whole_form("instance_norm")
def instance_norm(to: Saver, call: Whole) -> Any:
    """From the sample itself, in either mode: Paddle's operator knows no running statistics."""
    x = call.tensors["x"]
    if call.args.get("data_format", "NCHW").endswith("C") and x.ndim > 2:
        raise Apart
    both = all(isinstance(s, int) for s in x.shape[:2])
    left = DenseTensorType((x.shape[0] * x.shape[1] if both else x.shape[0],),
                           np.dtype(np.float32) if x.dtype.itemsize == 2 else x.dtype)
    epsilon = call.args.get("eps", call.args.get("epsilon"))
    return to.op("instance_norm", [x, call.tensors.get("weight"), call.tensors.get("bias")], {"epsilon": epsilon},
                 [*call.types, left, left])[:1]


@whole_form("normalize")
def normalize(to: Saver, call: Whole) -> Any:
    x, axis = call.tensors["x"], axis_of(call, "x")
    least = to.build.full((1,), call.args["epsilon"], x.dtype)
    type = DenseTensorType([1 if i == axis else s for i, s in enumerate(x.shape)], x.dtype)
    attrs = {"porder": call.args["p"], "axis": call.args["axis"], "keepdim": True, "asvector": False}
    norm, = to.op("p_norm", [x], attrs, [type])
    made = norm.get_defining_op()
    norm, = to.op("maximum", [norm, least], {}, [type])
    out, = to.op("divide", [x, norm], {}, call.types)
    least.get_defining_op().move_before(made)                   # as Paddle writes it
    return out


@whole_form("layer_norm")
def layer_norm(to: Saver, call: Whole) -> Any:
    """Paddle's operator takes scale and bias flat."""
    x, sizes = call.tensors["x"], call.args["normalized_shape"]
    begin = x.ndim - (len(sizes) if isinstance(sizes, tuple) else 1)
    parts = [call.tensors.get("weight"), call.tensors.get("bias")]
    if any(v is not None and v.ndim != 1 for v in parts):
        raise Apart
    left = DenseTensorType(x.shape[:begin], np.dtype(np.float32) if x.dtype.itemsize == 2 else x.dtype)
    attrs = {"epsilon": call.args["epsilon"], "begin_norm_axis": begin}
    return to.op("layer_norm", [x, *parts], attrs, [*call.types, left, left])[:1]


@whole_form("batch_norm")
def batch_norm(to: Saver, call: Whole) -> Any:
    """Paddle's operator writes the running statistics in place; it reads those of the batch if not told otherwise."""
    x, mean, variance = (call.tensors[n] for n in ("x", "running_mean", "running_var"))
    asked = call.args.get("use_global_stats")
    running = not call.args["training"] if asked is None else asked
    if len(call.types) != (1 if running else 3) or call.sources["running_mean"] is call.sources["running_var"]:
        raise Apart
    last = call.group.ops[-1]
    if not running and any(last.is_before(user) if user.parent is last.parent else True
                           for name in ("running_mean", "running_var")
                           for user in call.sources[name].all_used_ops() if user not in call.group.ops):
        raise Apart                                             # somebody still reads the old ones
    layout = "NHWC" if call.args["data_format"].endswith("C") and x.ndim > 2 else "NCHW"
    attrs = {"is_test": not call.args["training"], "momentum": call.args["momentum"], "epsilon": call.args["epsilon"],
             "data_format": layout, "use_global_stats": running, "trainable_statistics": False}
    moved = mean.type()
    outs = to.op("batch_norm_", [x, mean, variance, call.tensors.get("weight"), call.tensors.get("bias")], attrs,
                 [call.types[0], moved, moved, moved, moved, DenseTensorType((symbol("S0"),), np.dtype(np.uint8))])
    return outs[:1] if running else outs[:3]


@whole_form("interpolate")
def interpolate(to: Saver, call: Whole) -> Any:
    """Where Paddle computes the same: one result of a bilinear or bicubic map is its first element, ours the middle."""
    a, x = call.args, call.tensors["x"]
    n, mode = x.ndim - 2, a["mode"].lower()
    out = call.group.results[0]
    size = a.get("size")
    names = {"nearest": "nearest", "linear": "linear", "bilinear": "bilinear", "trilinear": "trilinear",
             "bicubic": "bicubic"}
    if mode not in names or a.get("antialias") or a.get("recompute_scale_factor") or 1 in out.shape[2:] or any(
            not isinstance(s, int) for s in out.shape[2:]) or a.get("data_format", "NCHW").endswith("C"):
        raise Apart
    sizes = [-1] * 3
    scale: list[float] = []
    if size is not None:
        sizes[3 - n:] = size if isinstance(size, tuple) else [size] * n
    else:
        given = a["scale_factor"]
        scale = [float(f) for f in (given if isinstance(given, tuple) else [given] * n)]
    attrs = {"out_d": sizes[0], "out_h": sizes[1], "out_w": sizes[2], "scale": scale, "interp_method": mode,
             "align_corners": a["align_corners"], "align_mode": a["align_mode"],
             "data_format": {1: "NCW", 2: "NCHW", 3: "NCDHW"}[n]}
    return to.op(f"{mode}_interp", [x, None, None, None], attrs, call.types)


@whole_form("embedding")
def embedding(to: Saver, call: Whole) -> Any:
    """A row of the table that counts as zeros is Paddle's attribute."""
    if "padding_idx" not in call.args or "max_norm" in call.args:
        raise Apart
    weight, padding = call.tensors["weight"], call.args["padding_idx"]
    attrs = {"padding_idx": padding if padding >= 0 else weight.shape[0] + padding, "sparse": False}
    return to.op("embedding", [call.tensors["x"], weight], attrs, call.types)


@whole_form("pad")
def pad(to: Saver, call: Whole) -> Any:
    """Images are volumes of one layer for Paddle."""
    x, sizes = call.tensors["x"], call.args["pad"]
    if x.ndim != 4 or len(sizes) != 4 or call.args.get("data_format", "NCHW") != "NCHW":
        raise Apart
    n, c, h, w = x.shape
    left, right, top, bottom = sizes
    deep, = to.op("unsqueeze", [x, to.ints([2])], {}, [DenseTensorType((n, c, 1, h, w), x.dtype)])
    attrs = {"mode": call.args["mode"], "pad_value": call.args["value"], "data_format": "NCDHW"}
    wide, = to.op("pad3d", [deep, to.ints([*sizes, 0, 0])], attrs,
                  [DenseTensorType((n, c, 1, h + top + bottom, w + left + right), x.dtype)])
    return to.op("squeeze", [wide, to.ints([2])], {}, call.types)
