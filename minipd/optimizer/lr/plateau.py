"""A schedule that looks at how training goes."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Tensor
from minipd.optimizer.lr.base import LRScheduler

__all__ = ["ReduceOnPlateau"]


class ReduceOnPlateau(LRScheduler):
    """learning_rate * factor, each time that a metric has not become better for more than `patience` steps.

    Args:
        mode: "min" if the metric is to fall, "max" if it is to rise.
        threshold, threshold_mode: by how much better counts: "rel", as a part of the best one, or "abs".
        cooldown: how many steps to let pass after a reduction, before counting again.
        min_lr: the least rate.  epsilon: the least reduction.

    Raises: ValueError for unknown modes, or a factor that is not below 1.

    >>> rate = ReduceOnPlateau(1.0, factor=0.5, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     rate.step(loss)
    >>> rate()
    0.5
    """

    def __init__(self, learning_rate: float, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0,
                 epsilon: float = 1e-8, verbose: bool = False):
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceOnPlateau: expected mode 'min' or 'max' and threshold_mode 'rel' or 'abs', got "
                             f"{mode!r} and {threshold_mode!r}")
        if not factor < 1:
            raise ValueError(f"ReduceOnPlateau: expected factor < 1, got {factor}")
        self.sign = 1 if mode == "min" else -1
        self.factor, self.patience, self.cooldown = factor, patience, cooldown
        self.threshold, self.relative = threshold, threshold_mode == "rel"
        self.min_lr, self.epsilon = min_lr, epsilon
        self.cooldown_counter = self.num_bad_epochs = 0
        self.best: float | None = None
        super().__init__(learning_rate, -1, verbose)

    def step(self, metrics: Any = None, epoch: int | None = None) -> None:         # type: ignore[override]
        """Go to the next step, or to step `epoch`, with the metric as it is now.

        metrics: a number, or a tensor or array of one element.
        Raises: TypeError for something else.
        """
        if metrics is None and self.last_epoch == -1:           # made just now
            self.last_epoch, self.last_lr = 0, self.base_lr
            return
        try:
            value = float(metrics.item() if isinstance(metrics, Tensor) else metrics)
        except (TypeError, ValueError):
            raise TypeError(f"ReduceOnPlateau: expected the metric, a number or a tensor of one element, got "
                            f"{metrics!r}") from None
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        if self.best is None or self._better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            reduced = max(self.last_lr * self.factor, self.min_lr)
            if self.last_lr - reduced > self.epsilon:
                self.last_lr = reduced
                self._show()
                if self.verbose:
                    print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to {self.last_lr}.")

    def _better(self, value: float, best: float) -> bool:
        """Below the best one by the threshold (above it, where the metric is to rise)."""
        margin = abs(best) * self.threshold if self.relative else self.threshold
        return self.sign * value < self.sign * best - margin

    def state_keys(self) -> None:
        """Set `self.keys`."""
        self.keys = ["cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr"]
