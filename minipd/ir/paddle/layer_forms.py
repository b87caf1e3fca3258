"""Forms of what layers are made of: convolutions, pooling, norms, embeddings, losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.ir.operation import Operation
from minipd.ir.paddle.axes import one_axis
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.functions import function
from minipd.ir.paddle.load import Loader
from minipd.ir.paddle.save import Call, Saver
from minipd.ir.types import DenseTensorType
from minipd.ir.value import Value

__all__: list[str] = []

LAYOUTS = {2: "NCHW", 3: "NCDHW"}


def first_channels(at: Loader, x: Value, layout: str) -> Value:
    """x with its channels first, wherever `layout` has them."""
    if not layout.endswith("C"):
        return x
    return at.row("transpose", x, perm=(0, x.ndim - 1, *range(1, x.ndim - 1)))


def last_channels(at: Loader, x: Value, layout: str) -> Value:
    """The way back."""
    if not layout.endswith("C"):
        return x
    return at.row("transpose", x, perm=(0, *range(2, x.ndim), 1))


def paired(paddings: Any, n: int) -> tuple[int, ...]:
    """Before and after, for each dimension."""
    return tuple(paddings) if len(paddings) == 2 * n else tuple(p for p in paddings for _ in range(2))


def unpaired(paddings: tuple[int, ...]) -> tuple[int, ...]:
    """One number for each dimension, where before and after are the same."""
    return paddings[::2] if paddings[::2] == paddings[1::2] else paddings


def padded(how: str, a: dict[str, Any], sizes: Any, windows: Any) -> tuple[int, ...]:
    """The paddings of a convolution or a pool: those that are given, none, or such that the output has the size of the
    input divided by the stride."""
    n = len(windows)
    if how == "EXPLICIT":
        return paired(a["paddings"], n)
    if how == "VALID":
        return (0,) * (2 * n)
    found: list[int] = []
    for size, window, stride in zip(sizes, windows, a["strides"], strict=True):
        total = max((-(-size // stride) - 1) * stride + window - size, 0)
        found += [total // 2, total - total // 2]
    return tuple(found)


@form("conv2d", "conv3d", paddle=("conv2d", "conv3d", "depthwise_conv2d"))
class Conv:
    """Paddle names the convolution of one channel each apart, and has channels last as well."""

    def save(to, call):
        a, (x, filter) = call.attrs, call.sources
        n, groups = x.ndim - 2, a["groups"]
        name = call.row.name
        channels = x.shape[1]
        if n == 2 and groups == channels and groups != 1 and filter.shape[0] % groups == 0:
            name = "depthwise_conv2d"
        attrs = {**a, "paddings": unpaired(a["paddings"]), "data_format": LAYOUTS[n]}
        return to.op(name, call.tensors, attrs, call.types)

    def load(at, op):
        a, (x, filter) = at.attrs(op), at.inputs(op)
        x = first_channels(at, x, a["data_format"])
        n = x.ndim - 2
        dilations = (1,) * n if a["padding_algorithm"] == "SAME" else tuple(a["dilations"])
        paddings = padded(a["padding_algorithm"], a, x.shape[2:], filter.shape[2:])
        out = at.row(f"conv{n}d", x, filter, strides=tuple(a["strides"]), paddings=paddings, dilations=dilations,
                     groups=a["groups"])
        return last_channels(at, out, a["data_format"])


@form("conv2d_transpose", "conv3d_transpose",
      paddle=("conv2d_transpose", "conv3d_transpose", "depthwise_conv2d_transpose"))
class ConvTranspose:
    """Paddle takes the output's size, or what to add to it."""

    def save(to, call):
        a, n = call.attrs, call.sources[0].ndim - 2
        more = a["output_padding"] if any(a["output_padding"]) else ()
        attrs = {**a, "paddings": unpaired(a["paddings"]), "output_padding": more, "data_format": LAYOUTS[n]}
        operands = call.tensors if n == 3 else [*call.tensors, to.ints([])]
        return to.op(call.row.name, operands, attrs, call.types)

    def load(at, op):
        a, (x, filter) = at.attrs(op), at.inputs(op)
        x = first_channels(at, x, a["data_format"])
        n = x.ndim - 2
        paddings = padded(a["padding_algorithm"], a, x.shape[2:], filter.shape[2:])
        more = tuple(a["output_padding"]) or (0,) * n
        if a["output_size"]:
            more = tuple(size - ((i - 1) * s - p - q + d * (k - 1) + 1) for size, i, s, p, q, d, k in zip(
                a["output_size"], x.shape[2:], a["strides"], paddings[::2], paddings[1::2], a["dilations"],
                filter.shape[2:], strict=True))
        out = at.row(f"conv{n}d_transpose", x, filter, strides=tuple(a["strides"]), paddings=paddings,
                     output_padding=more, dilations=tuple(a["dilations"]), groups=a["groups"])
        return last_channels(at, out, a["data_format"])


@form("pool2d", "pool3d")
class Pool:
    """Paddle has channels last as well, paddings by name, the window that is everything, and maxima."""

    def save(to, call):
        a, n = call.attrs, call.sources[0].ndim - 2
        call.expect(pooling_type="avg")
        attrs = {**a, "paddings": unpaired(a["paddings"]), "data_format": LAYOUTS[n], "global_pooling": False,
                 "padding_algorithm": "EXPLICIT"}
        operands = [call.tensors[0], *([to.ints(a["kernel_size"])] if n == 2 else [])]
        return to.op(call.row.name, operands, attrs, call.types)

    def load(at, op):
        a, (x,) = at.attrs(op), at.inputs(op)
        x = first_channels(at, x, a["data_format"])
        n = x.ndim - 2
        kernel, strides = tuple(a["kernel_size"]), tuple(a["strides"])
        if a["global_pooling"]:
            kernel, paddings = tuple(x.shape[2:]), (0,) * (2 * n)
        else:
            paddings = padded(a["padding_algorithm"], a, x.shape[2:], kernel)
        windows = {"kernel_size": kernel, "strides": strides, "paddings": paddings, "ceil_mode": a["ceil_mode"],
                   "adaptive": a["adaptive"]}
        if a["pooling_type"] == "max":
            out, _ = at.row(f"max_pool{n}d_with_index", x, **windows)
        else:
            out = at.row(f"pool{n}d", x, **windows, exclusive=a["exclusive"])
        return last_channels(at, out, a["data_format"])


@form("pool2d_grad", "pool3d_grad", paddle=())
class PoolGrad:
    """That of a mean, which reads no result of the forward call.  Read back by the gradient rule of the pool."""

    def save(to, call):
        (g, like), n = call.tensors, call.sources[1].ndim - 2
        call.expect(pooling_type="avg")
        attrs = {**call.attrs, "paddings": unpaired(call.attrs["paddings"]), "data_format": LAYOUTS[n],
                 "global_pooling": False, "padding_algorithm": "EXPLICIT"}
        operands = [like, g, g, *([to.ints(call.attrs["kernel_size"])] if n == 2 else [])]
        return to.op(call.row.name, operands, attrs, call.types)


@form("max_pool2d_with_index", "max_pool3d_with_index")
class MaxPoolWithIndex:
    """Our paddings name before and after.  Where nobody asks for the indices, it is a pool of maxima."""

    def save(to, call):
        if call.op.result(1).use_empty() and not call.attrs["adaptive"]:
            a, n = call.attrs, call.sources[0].ndim - 2
            attrs = {**a, "paddings": unpaired(a["paddings"]), "data_format": LAYOUTS[n], "global_pooling": False,
                     "padding_algorithm": "EXPLICIT", "pooling_type": "max", "exclusive": True}
            operands = [call.tensors[0], *([to.ints(a["kernel_size"])] if n == 2 else [])]
            out, = to.op(f"pool{n}d", operands, attrs, call.types[:1])
            return [out, None]
        attrs = {**call.attrs, "paddings": unpaired(call.attrs["paddings"])}
        call.flows = not call.sources[0].stop_gradient
        return to.op(call.row.name, call.tensors, attrs, call.types)

    def load(at, op):
        a, (x,) = at.attrs(op), at.inputs(op)
        n = x.ndim - 2
        kernel, paddings = tuple(a["kernel_size"]), paired(a["paddings"], n)
        if a["global_pooling"]:
            kernel, paddings = tuple(x.shape[2:]), (0,) * (2 * n)
        return at.row(op.name().partition(".")[2], x, kernel_size=kernel, strides=tuple(a["strides"]),
                      paddings=paddings, ceil_mode=a["ceil_mode"], adaptive=a["adaptive"])


# ------------------------------------------------------------------------------------------------------- norms
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


def scale_of_norm(to: Saver, call: Call) -> Any:
    """The norm, if this call multiplies by its scale, or adds its bias: Paddle's norm takes both; else None."""
    made, other = call.tensors[0].get_defining_op(), call.tensors[1]
    if made is None or made.name() != "pd_op.layer_norm" or not call.sources[0].has_one_use():
        return None
    place = 1 if call.row.name == "multiply" else 2
    begin = made.attributes["begin_norm_axis"].value
    given = other.get_defining_op()
    if (made.operand_source(place) is not None or made.operand_source(2) is not None or given is None
            or call.tensors[0] is not made.result(0) or call.types[0] != made.result(0).type()
            or len(other.shape) != 1 or tuple(made.result(0).shape[begin:]) != tuple(other.shape)
            or given.parent is not made.parent or not given.is_before(made) or "op_callstack" not in made.attributes
            or made.attributes["op_callstack"] != call.op.attributes.get("op_callstack")):
        return None
    made.operand(place).set_source(other)
    for result in made.results():
        result.stop_gradient = call.op.result(0).stop_gradient
    return made.result(0)


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


# ------------------------------------------------------------------------------------------ embeddings, losses
@form("embedding")
class Embedding:
    """Ours has a window: which rows of the table this process holds.  Paddle's has a row that counts as zeros."""

    def save(to, call):
        call.expect(window=None)
        return to.op("embedding", call.tensors, {}, call.types)

    def load(at, op):
        a, (ids, weight) = at.attrs(op), at.inputs(op)
        if a["padding_idx"] != -1:
            return at.call(function("nn.functional.embedding"), ids, weight, padding_idx=a["padding_idx"])
        return at.row("embedding", ids, weight)


@form("embedding_grad", paddle=())
class EmbeddingGrad:
    """Read back by the gradient rule of the embedding."""

    def save(to, call):
        call.expect(window=None)
        ids, g, like = call.tensors
        return to.op("embedding_grad", [ids, like, g], {}, call.types)


@form("cross_entropy_with_softmax_grad", paddle=())
class CrossEntropyGrad:
    """Read back by hand, see `gradients`."""

    def save(to, call):
        call.expect(window=None)
        attrs = {"soft_label": False, "use_softmax": True, "numeric_stable_mode": True, **call.attrs}
        return to.op("cross_entropy_with_softmax_grad", call.tensors, attrs, call.types)


@form("cross_entropy_with_softmax", paddle=("cross_entropy_with_softmax", "cross_entropy_with_softmax_"))
class CrossEntropy:
    """Ours takes logits and hard labels; Paddle's also probabilities, and labels that are distributions."""

    def save(to, call):
        return to.op("cross_entropy_with_softmax", call.tensors, call.shown, call.types)

    def load(at, op):
        a, (logits, label) = at.attrs(op), at.inputs(op)
        axis = one_axis(a["axis"], logits.ndim)
        if not a["soft_label"] and a["use_softmax"]:
            return at.row("cross_entropy_with_softmax", logits, label, ignore_index=a["ignore_index"], axis=axis)
        if not a["soft_label"]:
            raise at.refuse()
        log = at.row("log_softmax", logits, axis=axis) if a["use_softmax"] else at.row("log", logits)
        loss = at.row("sum", at.row("multiply", label, log), axis=(axis,), keepdim=True)
        return [at.row("softmax", logits, axis=axis) if a["use_softmax"] else logits, at.row("subtract", 0.0, loss)]


@form("sigmoid_cross_entropy_with_logits")
class SigmoidCrossEntropy:
    """Paddle's can weigh, normalise and ignore."""

    def save(to, call):
        return to.op("sigmoid_cross_entropy_with_logits", [*call.tensors, None], {}, call.types)

    def load(at, op):
        a, (x, label, weight) = at.attrs(op), at.inputs(op)
        if a["normalize"] or weight is not None:
            raise at.refuse()
        return at.row("sigmoid_cross_entropy_with_logits", x, label)


@form("warpctc", "warprnnt")
class SequenceLoss:
    """Paddle's also gives the gradient."""

    def save(to, call):
        gradient = call.sources[0].type()
        return to.op(call.row.name, call.tensors, call.attrs, [*call.types, gradient])[:1]

    def load(at, op):
        if any(x is None for x in at.inputs(op)) or not op.result(1).use_empty():
            raise at.refuse()
        return [at.row(op.name().partition(".")[2], *at.inputs(op), **at.attrs(op)), None]


@loads("mean_all")
def load_mean_all(at: Loader, op: Operation) -> Any:
    x, = at.inputs(op)
    return at.row("mean", x, axis=tuple(range(x.ndim)), keepdim=False)


@loads("huber_loss")
def load_huber_loss(at: Loader, op: Operation) -> Any:
    """r^2 / 2 where |r| is at most delta, else delta (|r| - delta / 2); r is what the label has more."""
    x, label = at.inputs(op)
    delta = at.attrs(op)["delta"]
    rest = at.row("subtract", label, x)
    size = at.row("abs", rest)
    near = at.row("multiply", at.row("multiply", rest, rest), 0.5)
    far = at.row("multiply", at.row("subtract", size, delta / 2), delta)
    return [at.row("where", at.row("less_equal", size, delta), near, far), rest]


@loads("nll_loss")
def load_nll_loss(at: Loader, op: Operation) -> Any:
    a, (x, label, weight) = at.attrs(op), at.inputs(op)
    if any(user.name() != "pd_op.nll_loss_grad" for user in op.result(1).all_used_ops()):
        raise at.refuse()
    return [at.call(function("nn.functional.nll_loss"), x, label, weight, a["ignore_index"], a["reduction"]), None]


@loads("one_hot")
def load_one_hot(at: Loader, op: Operation) -> Any:
    return at.call(function("nn.functional.one_hot"), *at.inputs(op), int(at.attrs(op)["num_classes"]))


@loads("nearest_interp", "linear_interp", "bilinear_interp", "trilinear_interp", "bicubic_interp")
def load_interp(at: Loader, op: Operation) -> Any:
    a, (x, *others) = at.attrs(op), at.inputs(op)
    if any(v is not None for v in others):
        raise at.refuse()
    n = x.ndim - 2
    sizes = [s for s in (a["out_d"], a["out_h"], a["out_w"])[3 - n:]]
    given = all(isinstance(s, int) and s > 0 for s in sizes)
    align = 1 if a["align_mode"] == 1 else 0
    scales = list(a["scale"])
    return at.call(function("nn.functional.interpolate"), x, size=sizes if given else None,
                   scale_factor=None if given else scales if len(scales) > 1 else scales[0], mode=a["interp_method"],
                   align_corners=a["align_corners"], align_mode=align, data_format=a["data_format"])


@form("swiglu")
class SwiGlu:
    """Of one operand Paddle's takes two halves."""

    def save(to, call):
        return to.op("swiglu", call.tensors, {}, call.types)

    def load(at, op):
        x, y = at.inputs(op)
        if y is None:
            half = x.shape[-1] // 2
            x, y = at.row("split", x, sections=(half, half), axis=x.ndim - 1)
        return at.row("swiglu", x, y)


@form("pad")
class Pad:
    """The value is an operand."""

    def save(to, call):
        return to.op("pad", [call.tensors[0], to.number(call.attrs["pad_value"])],
                     {"paddings": flat(call.attrs["paddings"])}, call.types)

    def load(at, op):
        a, (x,) = at.attrs(op), at.inputs(op)
        return at.row("pad", x, paddings=tuple(a["paddings"]), pad_value=float(a["pad_value"]))


def flat(paddings: Any) -> list[int]:
    return [p for pair in paddings for p in (pair if isinstance(pair, (tuple, list)) else (pair,))]


@loads("pad3d")
def load_pad3d(at: Loader, op: Operation) -> Any:
    a, (x,) = at.attrs(op), at.inputs(op)
    return at.call(function("nn.functional.pad"), x, list(a["paddings"]), mode=a["mode"], value=a["pad_value"],
                   data_format=a["data_format"])


@loads("relu_")
def load_relu(at: Loader, op: Operation) -> Any:
    return at.row("relu", *at.inputs(op))


