"""The losses of classification that are operators."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.activation import sigmoid
from minipd.ops.broadcast import reduce_to
from minipd.ops.cast import cast
from minipd.ops.elementary import log, log1p
from minipd.ops.embedding import TakeAlongAxis, local_rows
from minipd.ops.families import FloatingBinary
from minipd.ops.math import maximum, where
from minipd.ops.reduce import Sum
from minipd.ops.shapes import normalize_axis, require_floating, shapes_agree

__all__ = ["cross_entropy_with_softmax"]


@op("cross_entropy_with_softmax", Trait.MULTI)
class CrossEntropyWithSoftmax:
    """softmax = softmax(logits) over `axis`;  loss = -log softmax[label], 0 where label == ignore_index.

    logits [..., V, ...], label int [..., 1, ...] -> softmax like logits, loss like label in the logits' dtype
    """

    outputs = ("softmax", "loss")

    def infer_meta(logits, label, *, ignore_index=-100, axis):
        require_floating("cross_entropy_with_softmax", logits)
        want = (*logits.shape[:axis], 1, *logits.shape[axis + 1:])
        if label.dtype not in dtypes.INTS or not shapes_agree(tuple(label.shape), want, "labels of the cross entropy"):
            raise ValueError(f"cross_entropy_with_softmax: expected int labels of shape {list(want)} for logits "
                             f"{describe(logits)}, got {describe(label)}")
        return Meta(logits.shape, logits.dtype), Meta(label.shape, logits.dtype)

    def kernel(xp, logits, label, *, ignore_index=-100, axis):
        out = xp.empty_like(logits), xp.empty(label.shape, logits.dtype)
        _loss_into(xp, out, logits, label, ignore_index, axis)
        return out

    def kernel_out(xp, out, logits, label, *, ignore_index=-100, axis):
        _loss_into(xp, out, logits, label, ignore_index, axis)

    def vjp_logits(gs, logits: Meta, label, softmax, ignore_index, axis):
        g_softmax, g_loss = gs
        g = None
        if g_loss is not None:
            g = CrossEntropyWithSoftmaxGrad(label, softmax, g_loss, ignore_index=ignore_index, axis=axis)
        if g_softmax is not None:
            through = (g_softmax - Sum(g_softmax * softmax, axis=(axis,), keepdim=True)) * softmax
            g = through if g is None else g + through
        return g


def _loss_into(xp: Any, out: Any, logits: Any, label: Any, ignore_index: int, axis: int) -> None:
    """loss = log sum e^(x - max) - (x[label] - max): neither large logits nor small probabilities lose anything."""
    softmax, loss = out
    if not logits.size:
        loss[...] = 0
        return
    xp.subtract(logits, logits.max(axis=axis, keepdims=True), out=softmax)
    valid = label != ignore_index
    wrong = valid & ((label < 0) | (label >= logits.shape[axis]))
    if wrong.any():
        raise ValueError(f"cross_entropy_with_softmax: expected labels in 0 .. {logits.shape[axis] - 1} or "
                         f"ignore_index={ignore_index}, got {label[wrong][0]}")
    picked = xp.take_along_axis(softmax, xp.where(valid, label, 0), axis)
    xp.exp(softmax, out=softmax)
    total = softmax.sum(axis=axis, keepdims=True)
    xp.true_divide(softmax, total, out=softmax)
    loss[...] = xp.where(valid, xp.log(total) - picked, logits.dtype.type(0))


@op("cross_entropy_with_softmax_grad")
class CrossEntropyWithSoftmaxGrad:
    """(softmax - one_hot(label)) * loss_grad, and 0 where label == ignore_index.

    window: (number of all classes, the first that `softmax` holds) if it is a shard; see `embedding`.
    """

    key = 1

    def infer_meta(label, softmax, loss_grad, *, ignore_index=-100, axis, window=None):
        return Meta(softmax.shape, softmax.dtype)

    def kernel(xp, label, softmax, loss_grad, *, ignore_index=-100, axis, window=None):
        out = xp.empty_like(softmax)
        _loss_grad_into(xp, out, label, softmax, loss_grad, ignore_index, axis, window)
        return out

    def kernel_out(xp, out, label, softmax, loss_grad, *, ignore_index=-100, axis, window=None):
        _loss_grad_into(xp, out, label, softmax, loss_grad, ignore_index, axis, window)

    def vjp_softmax(g, label, loss_grad, ignore_index):
        return g * (loss_grad * cast(label != ignore_index, loss_grad.dtype))

    def vjp_loss_grad(g, label, softmax, ignore_index, axis):
        valid = label != ignore_index
        safe = label * cast(valid, label.dtype)
        picked = TakeAlongAxis(g, safe, axis=axis)
        return (Sum(g * softmax, axis=(axis,), keepdim=True) - picked) * cast(valid, g.dtype)


def _loss_grad_into(xp: Any, out: Any, label: Any, softmax: Any, loss_grad: Any, ignore_index: int, axis: int,
                    window: Any) -> None:
    """out = (softmax - one_hot(label)) * loss_grad, and 0 where label == ignore_index.

    window: (number of all classes, the first that is here) of a shard: labels are numbers among all classes, and one
    that is elsewhere has its 1 elsewhere.  None: all classes are here.  label and loss_grad have size 1 along `axis`.
    """
    valid = label != ignore_index
    g = xp.where(valid, loss_grad, softmax.dtype.type(0))
    xp.multiply(softmax, g, out=out)
    rows, owned = local_rows(xp, xp.where(valid, label, 0), softmax, axis, window,
                             f"cross_entropy_with_softmax_grad: expected labels that are {ignore_index} (ignored) or",
                             f"the classes along axis {axis} of")
    if softmax.shape[axis]:
        at_label = xp.take_along_axis(out, rows, axis) - (g if owned is None else g * owned)
        xp.put_along_axis(out, rows, at_label.astype(out.dtype), axis)


@op("sigmoid_cross_entropy_with_logits")
class SigmoidCrossEntropyWithLogits(FloatingBinary):
    """out = -y log p - (1 - y) log(1 - p) with p = sigmoid(x): the cross entropy of labels y in [0, 1].

    = max(x, 0) - x y + log(1 + e^-|x|), which does not overflow; but its terms have kinks at 0 that only their sum has
    not, so the gradient is written out.
    """

    def kernel(xp, x, y):
        out = xp.asarray(xp.multiply(x, y))
        _binary_loss_from_product(xp, out, x)
        return out

    def kernel_out(xp, out, x, y):
        xp.multiply(x, y, out=out)
        _binary_loss_from_product(xp, out, x)

    def vjp_x(g, x, y):
        return reduce_to(g * (sigmoid(x) - y), x)

    def vjp_y(g, x, y: Meta):
        return reduce_to(-(g * x), y)


def _binary_loss_from_product(xp: Any, out: Any, x: Any) -> None:
    """`out` comes with x y."""
    xp.subtract(xp.maximum(x, x.dtype.type(0)), out, out=out)
    out += xp.log1p(xp.exp(-xp.absolute(x)))


@op("bce_loss")
class BceLoss(FloatingBinary):
    """out = -y log x - (1 - y) log(1 - x), where a logarithm is at least -100: the cross entropy of probabilities x.

    A row, because at x = 0 and 1 the composition's gradient is 0 times infinity; here the divisor is at least 1e-12.
    """

    def kernel(xp, x, y):
        yes, no = _bounded(xp, xp.log, x), _bounded(xp, xp.log1p, -x)
        return x.dtype.type(0) - (y * yes + (1 - y) * no)

    def kernel_out(xp, out, x, y):
        yes, no = _bounded(xp, xp.log, x), _bounded(xp, xp.log1p, -x)
        xp.subtract(x.dtype.type(0), y * yes + (1 - y) * no, out=out)

    def vjp_x(g, x, y):
        return reduce_to(g * (x - y) / maximum(x * (1.0 - x), 1e-12), x)

    def vjp_y(g, x, y: Meta):
        yes = where(x > 0.0, maximum(log(where(x > 0.0, x, 1.0)), -100.0), -100.0)
        no = where(x < 1.0, maximum(log1p(where(x < 1.0, -x, 0.0)), -100.0), -100.0)
        return reduce_to(g * (no - yes), y)


def _bounded(xp: Any, log: Any, x: Any) -> Any:
    with xp.errstate(divide="ignore"):
        return xp.maximum(log(x), x.dtype.type(-100))


def cross_entropy_with_softmax(logits: Tensor, label: Tensor, ignore_index: int = -100,
                               axis: int = -1) -> tuple[Tensor, Tensor]:
    """(softmax, loss) of integer labels with the class dimension kept at size 1: see the row."""
    return CrossEntropyWithSoftmax(logits, label, ignore_index=ignore_index,
                                   axis=normalize_axis("cross_entropy_with_softmax", axis, logits.ndim))
