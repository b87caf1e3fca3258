"""Forms of losses."""

from __future__ import annotations

from typing import Any

from minipd.ir.operation import Operation
from minipd.ir.paddle.axes import one_axis
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.functions import function
from minipd.ir.paddle.load import Loader

__all__: list[str] = []


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
