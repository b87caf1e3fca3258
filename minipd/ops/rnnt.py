"""The transducer's loss: of a label sequence that a path writes while it reads the input.

At time t, with u labels written, a path either reads on (the blank: t + 1) or writes the next label (u + 1).  The loss
is -log of the sum over all paths, by a dynamic program over the T x U grid (Graves, Sequence Transduction with
Recurrent Neural Networks, 2012).  Cells of one anti-diagonal t + u = n do not depend on each other: one step is one
operation on [B, U] numbers, and the grid is kept skewed, [N, B, U] with N = T + U - 1.
"""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.ops.creation import full_like
from minipd.ops.ctc import check_lengths, check_sequences
from minipd.ops.reduce import Sum

__all__: list[str] = []


@op("warprnnt", Trait.ALLOCATES)
class Warprnnt:
    """-log P(labels | input) of each sequence.   input [B, T, U, C], label int [B, U - 1], lengths int [B] -> [B]

    input: log-probabilities; as Paddle on the CPU does, it takes them as they are, and normalises nothing.
    fastemit_lambda: the *gradient* of writing a label counts 1 + fastemit_lambda times.  (Yu et al., FastEmit, 2020)
    """

    def infer_meta(input, label, input_lengths, label_lengths, *, blank=0, fastemit_lambda=0.0):
        check_sequences("rnnt_loss", 4, input, label, input_lengths, label_lengths, 0)
        return Meta((input.shape[0],), input.dtype)

    def kernel(xp, input, label, input_lengths, label_lengths, *, blank=0, fastemit_lambda=0.0):
        if not input.shape[0]:
            return xp.zeros((0,), input.dtype)
        grid = _Grid(xp, input, label, input_lengths, label_lengths, blank)
        return -grid.total(grid.forward())

    def vjp_input(g, input, label, input_lengths, label_lengths, blank, fastemit_lambda):
        return WarprnntGrad(input, label, input_lengths, label_lengths, g, blank=blank,
                            fastemit_lambda=fastemit_lambda)


@op("warprnnt_grad", Trait.ALLOCATES)
class WarprnntGrad:
    """-(the share of all paths that take each step) loss_grad, [B, T, U, C]: steps are blanks and next labels.

    It is linear in loss_grad, and has that derivative; the one in the input is refused.
    """

    def infer_meta(input, label, input_lengths, label_lengths, loss_grad, *, blank=0, fastemit_lambda=0.0):
        return Meta(input.shape, input.dtype)

    def kernel(xp, input, label, input_lengths, label_lengths, loss_grad, *, blank=0, fastemit_lambda=0.0):
        out = xp.zeros(input.shape, input.dtype)
        if not input.size:
            return out
        grid = _Grid(xp, input, label, input_lengths, label_lengths, blank)
        alpha = grid.forward()
        reads, writes = (grid.straight(part) for part in grid.shares(alpha, grid.backward(), grid.total(alpha)))
        scale = -loss_grad[:, None, None]
        out[..., blank] = reads * scale
        batch, time, place = (xp.arange(n) for n in (len(scale), input.shape[1], grid.labels.shape[1]))
        xp.add.at(out, (batch[:, None, None], time[:, None], place, grid.labels[:, None]),
                  writes[:, :, :-1] * scale * (1.0 + fastemit_lambda))
        return out

    def vjp_input(g):
        raise NotImplementedError("rnnt_loss: the second derivative in the input is not available")

    def vjp_loss_grad(g, input, label, input_lengths, label_lengths, loss_grad, blank, fastemit_lambda):
        each = WarprnntGrad(input, label, input_lengths, label_lengths, full_like(loss_grad, 1.0), blank=blank,
                            fastemit_lambda=fastemit_lambda)
        return Sum(g * each, axis=(1, 2, 3), keepdim=False)


class _Grid:
    """Log-probabilities of reading and of writing in every cell, skewed; -inf where a sequence has no such step."""

    def __init__(self, xp: Any, input: Any, label: Any, times: Any, sizes: Any, blank: int):
        batch, steps, places, classes = input.shape
        if label.shape[1] != places - 1:
            raise ValueError(f"rnnt_loss: expected labels [B, U - 1] for input [B, T, U, C], got {list(label.shape)} "
                             f"and {list(input.shape)}")
        check_lengths("rnnt_loss", "input_lengths", times, steps)
        check_lengths("rnnt_loss", "label_lengths", sizes, places - 1)
        if times.size and times.min() < 1:
            raise ValueError("rnnt_loss: expected input_lengths of at least 1, got 0")
        used = xp.arange(places - 1) < sizes[:, None]
        wrong = used & ((label < 0) | (label >= classes))
        if not 0 <= blank < classes or wrong.any():
            raise ValueError(f"rnnt_loss: expected a blank and labels in 0 .. {classes - 1}, got blank={blank} and "
                             f"labels {label[wrong][:1].tolist()}")
        self.xp, self.steps, self.times, self.sizes = xp, steps, times, sizes
        self.labels = xp.where(used, label, blank)
        #: the last cell of a sequence lies on this diagonal, at this place
        self.end = times + sizes - 1
        time, place = xp.arange(steps)[:, None], xp.arange(places)
        inside = (time < times[:, None, None]) & (place <= sizes[:, None, None])
        writes = xp.full(input.shape[:3], -xp.inf, input.dtype)
        writes[:, :, :-1] = xp.where(place[:-1] < sizes[:, None, None], xp.take_along_axis(
            input[:, :, :-1], self.labels[:, None, :, None], axis=3)[..., 0], -xp.inf)
        self.reads = self.skewed(xp.where(inside, input[..., blank], -xp.inf))
        self.writes = self.skewed(xp.where(inside, writes, -xp.inf))

    def skewed(self, x: Any) -> Any:
        """[B, T, U] -> [N, B, U]: element (n, b, u) is x[b, n - u, u]."""
        xp, places = self.xp, x.shape[2]
        place = xp.arange(places)
        time = xp.arange(self.steps + places - 1)[:, None] - place
        inside = (time >= 0) & (time < self.steps)
        return xp.moveaxis(xp.where(inside, x[:, xp.clip(time, 0, self.steps - 1), place], -xp.inf), 1, 0)

    def straight(self, x: Any) -> Any:
        """[N, B, U] -> [B, T, U], the inverse."""
        place = self.xp.arange(x.shape[2])
        return self.xp.moveaxis(x, 1, 0)[:, self.xp.arange(self.steps)[:, None] + place, place]

    def forward(self) -> Any:
        """alpha: the log-probability of all ways to a cell."""
        xp = self.xp
        alpha = xp.full(self.reads.shape, -xp.inf, self.reads.dtype)
        alpha[0, :, 0] = 0
        for n in range(1, len(alpha)):
            alpha[n] = alpha[n - 1] + self.reads[n - 1]
            alpha[n, :, 1:] = xp.logaddexp(alpha[n, :, 1:], alpha[n - 1, :, :-1] + self.writes[n - 1, :, :-1])
        return alpha

    def _at_end(self, x: Any) -> Any:
        return x[self.end, self.xp.arange(len(self.end)), self.sizes]

    def total(self, alpha: Any) -> Any:
        """The log-probability of the labels, [B]: of reading on from the last cell."""
        return self._at_end(alpha) + self._at_end(self.reads)

    def backward(self) -> Any:
        """beta: the log-probability of all ways from a cell to the end; one diagonal more, for what lies beyond it."""
        xp = self.xp
        diagonals, batch, places = self.reads.shape
        beta = xp.full((diagonals + 1, batch, places + 1), -xp.inf, self.reads.dtype)
        beta[self.end + 1, xp.arange(batch), self.sizes] = 0
        for n in reversed(range(diagonals)):
            now = xp.logaddexp(beta[n + 1, :, :-1] + self.reads[n], beta[n + 1, :, 1:] + self.writes[n])
            xp.maximum(beta[n, :, :-1], now, out=beta[n, :, :-1])       # which keeps the 0 beyond the end
        return beta

    def shares(self, alpha: Any, beta: Any, total: Any) -> tuple[Any, Any]:
        """Which share of all paths reads, and which writes, in each cell."""
        rest = alpha - total[:, None]
        return (self.xp.exp(rest + self.reads + beta[1:, :, :-1]), self.xp.exp(rest + self.writes + beta[1:, :, 1:]))
