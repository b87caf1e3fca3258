"""Schedules that go down from the first rate, smoothly or in steps."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence

from minipd.optimizer.lr.base import LRScheduler

__all__ = ["ExponentialDecay", "InverseTimeDecay", "LambdaDecay", "MultiStepDecay", "MultiplicativeDecay",
           "NaturalExpDecay", "NoamDecay", "PiecewiseDecay", "PolynomialDecay", "StepDecay"]


class NoamDecay(LRScheduler):
    """learning_rate * d_model^-0.5 * min(t^-0.5, t * warmup_steps^-1.5).   (Vaswani et al. 2017, section 5.3)"""

    def __init__(self, d_model: int, warmup_steps: int, learning_rate: float = 1.0, last_epoch: int = -1,
                 verbose: bool = False):
        if d_model <= 0:
            raise ValueError(f"NoamDecay: expected d_model > 0, got {d_model}")
        self.d_model, self.warmup_steps = d_model, warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        t = self.last_epoch
        decayed = 1 if t == 0 else t ** -0.5
        return self.base_lr * self.d_model ** -0.5 * min(decayed, self.warmup_steps ** -1.5 * t)


class PiecewiseDecay(LRScheduler):
    """values[i] while t < boundaries[i]; the last value after the last boundary."""

    def __init__(self, boundaries: Sequence[int], values: Sequence[float], last_epoch: int = -1,
                 verbose: bool = False):
        if len(values) != len(boundaries) + 1:
            raise ValueError(f"PiecewiseDecay: expected one value more than boundaries, got {len(values)} values and "
                             f"{len(boundaries)} boundaries")
        self.boundaries, self.values = list(boundaries), list(values)
        super().__init__(values[0], last_epoch, verbose)

    def get_lr(self) -> float:
        return self.values[bisect_right(self.boundaries, self.last_epoch)]


class NaturalExpDecay(LRScheduler):
    """learning_rate * e^(-gamma t)."""

    def __init__(self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False):
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)


class InverseTimeDecay(NaturalExpDecay):
    """learning_rate / (1 + gamma t)."""

    def get_lr(self) -> float:
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class ExponentialDecay(NaturalExpDecay):
    """learning_rate * gamma^t."""

    def get_lr(self) -> float:
        return self.base_lr * self.gamma ** self.last_epoch


class PolynomialDecay(LRScheduler):
    """From learning_rate down to end_lr in decay_steps, as (1 - t / decay_steps)^power.

    cycle: when the end is reached, start again from there over a longer range: the next multiple of decay_steps.
    """

    def __init__(self, learning_rate: float, decay_steps: int, end_lr: float = 0.0001, power: float = 1.0,
                 cycle: bool = False, last_epoch: int = -1, verbose: bool = False):
        if decay_steps <= 0:
            raise ValueError(f"PolynomialDecay: expected decay_steps > 0, got {decay_steps}")
        self.decay_steps, self.end_lr, self.power, self.cycle = decay_steps, end_lr, power, cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        t, steps = self.last_epoch, self.decay_steps
        if self.cycle:
            steps *= max(1, math.ceil(t / steps))
        else:
            t = min(t, steps)
        return (self.base_lr - self.end_lr) * (1 - t / steps) ** self.power + self.end_lr


class StepDecay(LRScheduler):
    """learning_rate * gamma^(t // step_size)."""

    def __init__(self, learning_rate: float, step_size: int, gamma: float = 0.1, last_epoch: int = -1,
                 verbose: bool = False):
        if step_size <= 0:
            raise ValueError(f"StepDecay: expected step_size > 0, got {step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepDecay(LRScheduler):
    """learning_rate * gamma^(how many milestones t has reached)."""

    def __init__(self, learning_rate: float, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1,
                 verbose: bool = False):
        if list(milestones) != sorted(set(milestones)):
            raise ValueError(f"MultiStepDecay: expected increasing milestones, got {list(milestones)}")
        self.milestones, self.gamma = list(milestones), gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma ** bisect_right(self.milestones, self.last_epoch)


class LambdaDecay(LRScheduler):
    """learning_rate * lr_lambda(t)."""

    def __init__(self, learning_rate: float, lr_lambda: Callable[[int], float], last_epoch: int = -1,
                 verbose: bool = False):
        if not callable(lr_lambda):
            raise TypeError(f"LambdaDecay: expected lr_lambda to be a function of the step, got {lr_lambda!r}")
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(LRScheduler):
    """learning_rate * lr_lambda(1) * ... * lr_lambda(t)."""

    def __init__(self, learning_rate: float, lr_lambda: Callable[[int], float], last_epoch: int = -1,
                 verbose: bool = False):
        if not callable(lr_lambda):
            raise TypeError(f"MultiplicativeDecay: expected lr_lambda to be a function of the step, got {lr_lambda!r}")
        self.lr_lambda = lr_lambda
        self._so_far = 0, 1.0           # a step, and the product up to it
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        at, product = self._so_far if self._so_far[0] <= self.last_epoch else (0, 1.0)
        for t in range(at + 1, self.last_epoch + 1):
            product *= self.lr_lambda(t)
        self._so_far = self.last_epoch, product
        return self.base_lr * product
