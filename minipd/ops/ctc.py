"""Connectionist temporal classification: the loss of a label sequence whose places in time are not known.

A path says a class, or blank, at each time; it spells a sequence when what it repeats, and then its blanks, are taken
out.  The loss is -log of the probability of all paths that spell the labels, summed by a dynamic program over the
labels with a blank before, between and after them, S = 2 L + 1 states (Graves et al., Connectionist Temporal
Classification, 2006).  One step of time is one operation on [B, S] numbers; everything is in logarithms, and -inf is
impossible.
"""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.ops.creation import full_like
from minipd.ops.reduce import Sum
from minipd.ops.shapes import agree, require_floating

__all__: list[str] = []


def check_sequences(what: str, ndim: int, x: Any, label: Any, x_length: Any, label_length: Any,
                    batch_axis: int) -> None:
    """Raise unless these are scores of `ndim` dimensions, int labels [B, L], and int lengths [B] of both."""
    require_floating(what, x)
    fits = (len(x.shape) == ndim and len(label.shape) == 2 and len(x_length.shape) == len(label_length.shape) == 1
            and all(m.dtype in dtypes.INTS for m in (label, x_length, label_length))
            and all(agree(m.shape[0], x.shape[batch_axis], f"{what}: the batch")
                    for m in (label, x_length, label_length)))
    if not fits:
        expected = "[T, B, C]" if ndim == 3 else "[B, T, U, C]"
        raise ValueError(f"{what}: expected scores {expected}, int labels [B, L] and int lengths [B] of both, got "
                         f"{', '.join(map(describe, (x, label, x_length, label_length)))}")


def check_lengths(what: str, name: str, length: Any, most: int) -> None:
    """ValueError for a length outside of 0 .. most."""
    if length.size and not (length.min() >= 0 and length.max() <= most):
        wrong = length[(length < 0) | (length > most)][0]
        raise ValueError(f"{what}: expected {name} in 0 .. {most}, got {wrong}")


@op("warpctc", Trait.ALLOCATES)
class Warpctc:
    """-log P(labels | logits) of each sequence; inf where there are more labels (and repeats) than time.

    logits [T, B, C], before the softmax; label int [B, L]; lengths int [B] -> [B].
    norm_by_times: the *gradient* is divided by the sequence's length, as in Paddle.
    """

    def infer_meta(logits, label, logits_length, labels_length, *, blank=0, norm_by_times=False):
        check_sequences("ctc_loss", 3, logits, label, logits_length, labels_length, 1)
        return Meta((logits.shape[1],), logits.dtype)

    def kernel(xp, logits, label, logits_length, labels_length, *, blank=0, norm_by_times=False):
        if not logits.size:             # no time spells no labels
            return xp.where(labels_length > 0, xp.inf, 0.0).astype(logits.dtype)
        lattice = _Lattice(xp, logits, label, logits_length, labels_length, blank)
        return -lattice.total(lattice.forward())

    def vjp_logits(g, logits, label, logits_length, labels_length, blank, norm_by_times):
        return WarpctcGrad(logits, label, logits_length, labels_length, g, blank=blank, norm_by_times=norm_by_times)


@op("warpctc_grad", Trait.ALLOCATES)
class WarpctcGrad:
    """(softmax(logits) - the share of the labels' paths in each class at each time) loss_grad, [T, B, C].

    0 after a sequence's end, and where no path spells the labels.  It is linear in loss_grad, and has that derivative;
    the one in logits is refused.
    """

    def infer_meta(logits, label, logits_length, labels_length, loss_grad, *, blank=0, norm_by_times=False):
        return Meta(logits.shape, logits.dtype)

    def kernel(xp, logits, label, logits_length, labels_length, loss_grad, *, blank=0, norm_by_times=False):
        if not logits.size:
            return xp.zeros(logits.shape, logits.dtype)
        lattice = _Lattice(xp, logits, label, logits_length, labels_length, blank)
        alpha = lattice.forward()
        total = lattice.total(alpha)
        possible = xp.isfinite(total)
        share = xp.exp(alpha + lattice.backward() - xp.where(possible, total, 0)[:, None])
        out = xp.exp(lattice.log_probs)
        time, batch = xp.arange(share.shape[0])[:, None, None], xp.arange(share.shape[1])[:, None]
        xp.subtract.at(out, (time, batch, lattice.states), share)
        scale = xp.where(possible, loss_grad, 0)
        if norm_by_times:
            scale = scale / xp.maximum(logits_length, 1)
        return xp.where(lattice.running[:, :, None], out * scale[:, None], 0).astype(logits.dtype)

    def vjp_logits(g):
        raise NotImplementedError("ctc_loss: the second derivative in the logits is not available")

    def vjp_loss_grad(g, logits, label, logits_length, labels_length, loss_grad, blank, norm_by_times):
        each = WarpctcGrad(logits, label, logits_length, labels_length, full_like(loss_grad, 1.0), blank=blank,
                           norm_by_times=norm_by_times)
        return Sum(g * each, axis=(0, 2), keepdim=False)


class _Lattice:
    """The states of every sequence of a batch, and the log-probability of each at each time.

    states: int [B, S], the class of each state.  emit: [T, B, S], its log-probability.  running: [T, B], whether the
    sequence goes on.  skips: [B, S], whether a path may come from two states before: between labels that differ.
    """

    def __init__(self, xp: Any, logits: Any, label: Any, times: Any, sizes: Any, blank: int):
        steps, batch, classes = logits.shape
        most = label.shape[1]
        check_lengths("ctc_loss", "input_lengths", times, steps)
        check_lengths("ctc_loss", "label_lengths", sizes, most)
        used = xp.arange(most) < sizes[:, None]
        if not 0 <= blank < classes:
            raise ValueError(f"ctc_loss: expected a blank in 0 .. {classes - 1}, got {blank}")
        wrong = used & ((label < 0) | (label >= classes) | (label == blank))
        if wrong.any():
            raise ValueError(f"ctc_loss: expected labels in 0 .. {classes - 1} other than blank={blank}, got "
                             f"{label[wrong][0]}")
        self.xp, self.times, self.sizes = xp, times, sizes
        self.states = xp.full((batch, 2 * most + 1), blank, xp.int64)
        self.states[:, 1::2] = xp.where(used, label, blank)
        self.skips = xp.zeros(self.states.shape, bool)
        self.skips[:, 3::2] = self.states[:, 3::2] != self.states[:, 1:-2:2]
        self.running = xp.arange(steps)[:, None] < times
        z = logits - logits.max(axis=2, keepdims=True)
        self.log_probs = z - xp.log(xp.exp(z).sum(axis=2, keepdims=True))
        self.emit = xp.take_along_axis(self.log_probs, self.states[None], axis=2)

    def _impossible(self) -> Any:
        return self.xp.full(self.emit.shape, -self.xp.inf, self.emit.dtype)

    def forward(self) -> Any:
        """alpha [T, B, S]: the log-probability of all ways to be in a state, what it says at that time included."""
        xp, alpha = self.xp, self._impossible()
        alpha[0, :, :2] = self.emit[0, :, :2]
        for t in range(1, len(alpha)):
            before, now = alpha[t - 1], alpha[t]
            now[...] = before
            now[:, 1:] = xp.logaddexp(before[:, 1:], before[:, :-1])
            now[:, 2:] = xp.where(self.skips[:, 2:], xp.logaddexp(now[:, 2:], before[:, :-2]), now[:, 2:])
            now += self.emit[t]
        return alpha

    def total(self, alpha: Any) -> Any:
        """The log-probability of the labels, [B]: of being, at the end, in the last label or the blank after it."""
        xp = self.xp
        batch, last = xp.arange(len(self.sizes)), xp.maximum(self.times, 1) - 1
        after = alpha[last, batch, 2 * self.sizes]
        label = xp.where(self.sizes > 0, alpha[last, batch, xp.maximum(2 * self.sizes - 1, 0)], -xp.inf)
        nothing = xp.where(self.sizes > 0, -xp.inf, 0.0)        # no time: only no labels are spelled
        return xp.where(self.times > 0, xp.logaddexp(after, label), nothing).astype(alpha.dtype)

    def backward(self) -> Any:
        """beta [T, B, S]: the log-probability of all ways on from a state to the end, what it says now left out."""
        xp, beta = self.xp, self._impossible()
        place = xp.arange(self.states.shape[1])
        ends = (place == 2 * self.sizes[:, None]) | (place == 2 * self.sizes[:, None] - 1)
        for t in reversed(range(len(beta))):
            now = beta[t]
            if t + 1 < len(beta):
                after = beta[t + 1] + self.emit[t + 1]
                now[...] = after
                now[:, :-1] = xp.logaddexp(after[:, :-1], after[:, 1:])
                now[:, :-2] = xp.where(self.skips[:, 2:], xp.logaddexp(now[:, :-2], after[:, 2:]), now[:, :-2])
            now[self.times == t + 1] = xp.where(ends, 0.0, -xp.inf)[self.times == t + 1]
        return beta
