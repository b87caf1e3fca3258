"""Losses that Paddle has an operator for, see `whole_forms`."""

from __future__ import annotations

from typing import Any

from minipd.ir.paddle.form import Apart, whole_form
from minipd.ir.paddle.save import Saver, Whole
from minipd.ir.paddle.whole_forms import axis_of
from minipd.ir.types import DenseTensorType
from minipd.ir.value import Value

__all__: list[str] = []


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
