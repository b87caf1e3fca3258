"""Schedules that go up, to a rate or to another schedule."""

from __future__ import annotations

from typing import Any

from minipd.optimizer.lr.base import LRScheduler

__all__ = ["LinearLR", "LinearWarmup"]


class LinearLR(LRScheduler):
    """From learning_rate * start_factor to learning_rate * end_factor in total_steps, and constant after them.

    Raises: ValueError for factors outside of (0, 1] and [0, 1], or total_steps that are not positive.
    """

    def __init__(self, learning_rate: float, total_steps: int, start_factor: float = 1 / 3, end_factor: float = 1.0,
                 last_epoch: int = -1, verbose: bool = False):
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: expected a start_factor in (0, 1] and an end_factor in [0, 1], got "
                             f"{start_factor} and {end_factor}")
        if total_steps <= 0:
            raise ValueError(f"LinearLR: expected total_steps > 0, got {total_steps}")
        self.total_steps, self.start_factor, self.end_factor = total_steps, start_factor, end_factor
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        done = min(self.last_epoch, self.total_steps) / self.total_steps
        return self.base_lr * (self.start_factor + (self.end_factor - self.start_factor) * done)


class LinearWarmup(LRScheduler):
    """From start_lr to end_lr in warmup_steps, then a constant rate or another schedule, which starts its step 0 there.

    >>> rate = LinearWarmup(LinearLR(0.2, 10, 1.0, 0.5), warmup_steps=2, start_lr=0.0, end_lr=0.2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(rate(), 4))
    ...     rate.step()
    >>> rates
    [0.0, 0.1, 0.2, 0.19]
    """

    def __init__(self, learning_rate: float | LRScheduler, warmup_steps: int, start_lr: float, end_lr: float,
                 last_epoch: int = -1, verbose: bool = False):
        if not isinstance(learning_rate, (int, float, LRScheduler)):
            raise TypeError(f"LinearWarmup: expected learning_rate to be a number or a schedule, got {learning_rate!r}")
        if start_lr > end_lr:
            raise ValueError(f"LinearWarmup: expected start_lr <= end_lr, got {start_lr} and {end_lr}")
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps
        self.start_lr, self.end_lr = start_lr, end_lr
        super().__init__(start_lr, last_epoch, verbose)

    def get_lr(self) -> float:
        t = self.last_epoch
        if t < self.warmup_steps:
            return (self.end_lr - self.start_lr) * t / self.warmup_steps + self.start_lr
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(t - self.warmup_steps)
            return self.learning_rate()
        return float(self.learning_rate)

    def state_dict(self) -> dict[str, Any]:
        """Where this schedule and the one after it stand."""
        own = super().state_dict()
        if isinstance(self.learning_rate, LRScheduler):
            own["LinearWarmup_LR"] = self.learning_rate.state_dict()
        return own

    def _restore(self, state: dict[str, Any]) -> None:
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.set_state_dict(state["LinearWarmup_LR"])
        super()._restore(state)
