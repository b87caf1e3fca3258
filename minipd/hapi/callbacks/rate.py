"""The learning rate while training: the schedule's steps, and smaller when it gets no better."""

from __future__ import annotations

from typing import Any

from minipd.hapi.callbacks.base import Callback
from minipd.hapi.callbacks.monitor import Monitor
from minipd.optimizer.lr import LRScheduler as Schedule

__all__ = ["LRScheduler", "ReduceLROnPlateau"]


class LRScheduler(Callback):
    """Steps the optimizer's learning-rate schedule, if it has one: after every batch, or after every epoch.

    Raises: ValueError for both.
    """

    def __init__(self, by_step: bool = True, by_epoch: bool = False):
        super().__init__()
        if by_step and by_epoch:
            raise ValueError("LRScheduler: expected by_step or by_epoch, got both; pass by_step=False")
        self.by_step, self.by_epoch = by_step, by_epoch

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        if self.by_epoch:
            self._step()

    def on_train_batch_end(self, step: int, logs: dict | None = None) -> None:
        if self.by_step:
            self._step()

    def _step(self) -> None:
        schedule = schedule_of(self.model)
        if schedule is not None:
            schedule.step()


def schedule_of(model: Any) -> Schedule | None:
    """The learning-rate schedule of the model's optimizer, if there is one."""
    rate = getattr(getattr(getattr(model, "_optimizer", None), "rate", None), "schedule", None)
    return rate if isinstance(rate, Schedule) else None


class ReduceLROnPlateau(Callback):
    """Multiplies the learning rate by `factor` after `patience` evaluations that are no better than the best one.

    Args:
        monitor, mode, min_delta: see EarlyStopping.
        patience: how many evaluations in a row.
        cooldown: how many evaluations after a reduction are not counted.
        min_lr: the rate is not made smaller than this.
        verbose: 1 says when it reduces.

    Raises: ValueError for a factor of 1 or more.
    """

    def __init__(self, monitor: str = "loss", factor: float = 0.1, patience: int = 10, verbose: int = 1,
                 mode: str = "auto", min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0):
        super().__init__()
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: expected a factor below 1.0, got {factor}")
        self.monitor = Monitor("ReduceLROnPlateau", monitor, mode, min_delta)
        self.factor, self.patience, self.verbose = factor, patience, verbose
        self.cooldown, self.min_lr = cooldown, min_lr
        self.waited = self.cooling = self.epoch = 0

    def on_train_begin(self, logs: dict | None = None) -> None:
        self.waited = self.cooling = self.epoch = 0
        self.monitor.reset()

    def on_eval_end(self, logs: dict | None = None) -> None:
        value = self.monitor.value(logs)
        if value is None:
            return
        self.epoch += 1
        if self.in_cooldown():
            self.cooling -= 1
            self.waited = 0
        if self.monitor.better(value):
            self.waited = 0
        elif not self.in_cooldown():
            self.waited += 1
            if self.waited >= self.patience:
                self._reduce()
                self.cooling, self.waited = self.cooldown, 0

    def in_cooldown(self) -> bool:
        """Whether evaluations are not counted now."""
        return self.cooling > 0

    def _reduce(self) -> None:
        if schedule_of(self.model) is not None:
            raise ValueError("ReduceLROnPlateau: expected an optimizer whose learning rate is a number, got one with a "
                             "schedule, which sets it; use optimizer.lr.ReduceOnPlateau as the schedule")
        old = self.model._optimizer.get_lr()
        new = max(old * self.factor, self.min_lr)
        if new < old:
            self.model._optimizer.set_lr(new)
            if self.verbose > 0:
                print(f"Epoch {self.epoch}: ReduceLROnPlateau reducing learning rate to {new}.")
