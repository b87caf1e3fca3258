"""Forms of embeddings, interpolations, paddings and gates."""

from __future__ import annotations

from typing import Any

from minipd.ir.operation import Operation
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.functions import function
from minipd.ir.paddle.load import Loader

__all__: list[str] = []


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
