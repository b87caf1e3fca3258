"""Forms of convolutions and pools."""

from __future__ import annotations

from typing import Any

from minipd.ir.paddle.form import form
from minipd.ir.paddle.load import Loader
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
