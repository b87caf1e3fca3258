"""Forms of public functions that Paddle has an operator for, and we write with several.

A trace notes what a function wrote (`minipd.ir.whole`); here is how the call is written as Paddle's function does it.
The other direction needs no entry of its own: what Paddle's operator is read as is such a function (`functions`), or
rows that mean the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.framework.dim import symbol
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


# -------------------------------------------------------------------------------------------- one after another
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


# ------------------------------------------------------------------------------------------------------ layers
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


@whole_form("kl_div")
def kl_div(to: Saver, call: Whole) -> Any:
    x, label = call.tensors["input"], call.tensors["label"]
    attrs = {"reduction": "none", "log_target": call.args["log_target"]}
    each, = to.op("kldiv_loss", [x, label], attrs, [x.type()])
    return ended(to, call, each, call.args["reduction"])


def ended(to: Saver, call: Whole, each: Value, reduction: str, mean_all: bool = False) -> Any:
    """What losses end with."""
    if reduction == "none":
        return each
    if reduction == "batchmean":
        raise Apart
    if reduction == "sum":
        return to.op("sum", [each, to.ints(())], {}, call.types)
    return to.op("mean_all", [each], {}, call.types) if mean_all else to.op("mean", [each, to.ints(())], {}, call.types)


@whole_form("l1_loss")
def l1_loss(to: Saver, call: Whole) -> Any:
    x, label = call.tensors["input"], call.tensors["label"]
    if x.type() != label.type():
        raise Apart
    apart, = to.op("subtract", [x, label], {}, [x.type()])
    each, = to.op("abs", [apart], {}, [x.type()])
    return ended(to, call, each, call.args["reduction"], mean_all=True)


@whole_form("smooth_l1_loss")
def smooth_l1_loss(to: Saver, call: Whole) -> Any:
    x, label = call.tensors["input"], call.tensors["label"]
    if x.type() != label.type() or call.args.get("is_huber") is not True:
        raise Apart
    each, _ = to.op("huber_loss", [x, label], {"delta": call.args["delta"]}, [x.type(), x.type()])
    return ended(to, call, each, call.args["reduction"])


@whole_form("binary_cross_entropy")
def binary_cross_entropy(to: Saver, call: Whole) -> Any:
    x, label = call.tensors["input"], call.tensors["label"]
    if x.type() != label.type() or "weight" in call.tensors:
        raise Apart
    each, = to.op("bce_loss", [x, label], {}, [x.type()])
    return ended(to, call, each, call.args["reduction"], mean_all=True)


@whole_form("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(to: Saver, call: Whole) -> Any:
    """Paddle's function makes a 1 that it does not use."""
    x, label = call.tensors["logit"], call.tensors["label"]
    if x.type() != label.type() or len(call.tensors) > 2:
        raise Apart
    to.build.full((1,), 1, x.dtype)
    each, = to.op("sigmoid_cross_entropy_with_logits", [x, label, None], {}, [x.type()])
    return ended(to, call, each, call.args["reduction"], mean_all=True)


@whole_form("nll_loss")
def nll_loss(to: Saver, call: Whole) -> Any:
    """The sum of the weights is a result as well."""
    x = call.tensors["input"]
    if x.ndim != 2:
        raise Apart
    attrs = {"ignore_index": call.args["ignore_index"], "reduction": call.args["reduction"]}
    return to.op("nll_loss", [x, call.tensors["label"], call.tensors.get("weight")], attrs,
                 [*call.types, DenseTensorType((), x.dtype)])[:1]


@whole_form("softmax_with_cross_entropy")
def softmax_with_cross_entropy(to: Saver, call: Whole) -> Any:
    logits = call.tensors["logits"]
    if call.args.get("return_softmax"):
        raise Apart
    attrs = {"soft_label": call.args["soft_label"], "use_softmax": True, "axis": call.args["axis"],
             "numeric_stable_mode": call.args["numeric_stable_mode"], "ignore_index": call.args["ignore_index"]}
    return to.op("cross_entropy_with_softmax", [logits, call.tensors["label"]], attrs,
                 [logits.type(), *call.types])[1:]


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


@whole_form("cross_entropy")
def cross_entropy(to: Saver, call: Whole) -> Any:
    """Where Paddle computes the same: its mean counts labels that are ignored, too."""
    a, logits, label = call.args, call.tensors["input"], call.tensors["label"]
    hard = not a["soft_label"]
    if "weight" in call.tensors or a["label_smoothing"] or hard and (a["reduction"] == "mean" or label.ndim !=
                                                                    logits.ndim) or logits.dtype.itemsize < 4:
        raise Apart
    axis = axis_of(call, "input")
    type = DenseTensorType([1 if i == axis else s for i, s in enumerate(logits.shape)], logits.dtype)
    attrs = {"soft_label": a["soft_label"], "use_softmax": a["use_softmax"], "numeric_stable_mode": True,
             "ignore_index": a["ignore_index"], "axis": a["axis"]}
    each = to.op("cross_entropy_with_softmax", [logits, label], attrs, [logits.type(), type])[1]
    return ended(to, call, each, a["reduction"])


@whole_form("bernoulli")
def bernoulli(to: Saver, call: Whole) -> Any:
    no_others(call)
    call.flows = not call.sources["x"].stop_gradient
    return to.op("bernoulli", [call.tensors["x"]], {}, call.types)


@whole_form("embedding")
def embedding(to: Saver, call: Whole) -> Any:
    """A row of the table that counts as zeros is Paddle's attribute."""
    if "padding_idx" not in call.args or "max_norm" in call.args:
        raise Apart
    weight, padding = call.tensors["weight"], call.args["padding_idx"]
    attrs = {"padding_idx": padding if padding >= 0 else weight.shape[0] + padding, "sparse": False}
    return to.op("embedding", [call.tensors["x"], weight], attrs, call.types)


@whole_form("outer")
def outer(to: Saver, call: Whole) -> Any:
    def shaped(x: Value, shape: tuple[int, int]) -> Value:
        sizes = [x.shape[0] if s == -1 else s for s in shape]
        return to.op("reshape", [x, to.ints(shape)], {}, [DenseTensorType(sizes, x.dtype)])[0]
    x, y = call.tensors["x"], call.tensors["y"]
    if x.ndim != 1 or y.ndim != 1:
        raise Apart
    return to.op("multiply", [shaped(x, (-1, 1)), shaped(y, (1, -1))], {}, call.types)


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
