"""Learning-rate schedules (Paddle's `paddle.optimizer.lr`): the rate as a function of how often `step()` was called.

The base keeps Paddle's protocol: making a scheduler is its step 0; `scheduler()` is the current rate; `step()` goes to
the next one.  `last_epoch` counts the steps, whatever the caller means by one.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.framework.tensor import Tensor

__all__ = ["CosineAnnealingDecay", "ExponentialDecay", "InverseTimeDecay", "LRScheduler", "LambdaDecay", "LinearWarmup",
           "MultiStepDecay", "NaturalExpDecay", "NoamDecay", "PiecewiseDecay", "PolynomialDecay", "StepDecay"]


class LRScheduler:
    """The base of all schedules.  A subclass defines `get_lr()`, from `self.last_epoch` and `self.base_lr`.

    >>> class Halved(LRScheduler):
    ...     def get_lr(self):
    ...         return self.base_lr / 2 ** self.last_epoch
    >>> rate = Halved(0.8)
    >>> rate.step(); rate.step()
    >>> rate()
    0.2
    """

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False):
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, (int, float)):
            raise TypeError(f"{type(self).__name__}: expected learning_rate to be a number, got {learning_rate!r}")
        if learning_rate < 0:
            raise ValueError(f"{type(self).__name__}: expected a learning_rate >= 0, got {learning_rate}")
        self.base_lr = self.last_lr = float(learning_rate)
        self.last_epoch, self.verbose = last_epoch, verbose
        self._followers: list[Tensor] = []
        self.step()

    def __call__(self) -> float:
        """The current rate."""
        return self.last_lr

    def get_lr(self) -> float:
        """The rate at step `self.last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__}: a schedule defines get_lr()")

    def step(self, epoch: int | None = None) -> None:
        """Go to the next step, or to step `epoch`."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.last_lr = self.get_lr()
        self._show()
        if self.verbose:
            print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to {self.last_lr}.")

    def follow(self, tensor: Tensor) -> None:
        """Keep the 0-D tensor at the current rate from now on: it is what an optimizer, or a program, reads."""
        self._followers.append(tensor)
        self._show()

    def unfollow(self, tensor: Tensor) -> None:
        """Leave the tensor alone from now on."""
        self._followers = [t for t in self._followers if t is not tensor]

    def _show(self) -> None:
        for tensor in self._followers:
            tensor.payload = np.array(self.last_lr, tensor.payload.dtype)

    def state_dict(self) -> dict[str, Any]:
        """Where the schedule stands, as plain values."""
        return {"last_epoch": self.last_epoch, "last_lr": self.last_lr}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Return to a state.  RuntimeError, with nothing changed, if it is another schedule's."""
        own = self.state_dict()
        if own.keys() != state_dict.keys():
            raise RuntimeError(f"state of {type(self).__name__}: expected the entries {sorted(own)}, got "
                               f"{sorted(state_dict)}; it belongs to another schedule")
        self._restore(state_dict)
        self._show()

    def _restore(self, state: dict[str, Any]) -> None:
        self.last_epoch, self.last_lr = state["last_epoch"], state["last_lr"]

    set_dict = set_state_dict


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


class CosineAnnealingDecay(LRScheduler):
    """Half a cosine from learning_rate down to eta_min in T_max steps, and up again after it.

    (Loshchilov, Hutter 2017.)  Paddle goes from step to step by a recursion; the values are those of this formula.
    """

    def __init__(self, learning_rate: float, T_max: int, eta_min: float = 0, last_epoch: int = -1,
                 verbose: bool = False):
        if T_max <= 0:
            raise ValueError(f"CosineAnnealingDecay: expected T_max > 0, got {T_max}")
        self.T_max, self.eta_min = T_max, float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.eta_min + (self.base_lr - self.eta_min) * (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2


class LinearWarmup(LRScheduler):
    """From start_lr to end_lr in warmup_steps, then a constant rate or another schedule, which starts its step 0 there.

    >>> rate = LinearWarmup(CosineAnnealingDecay(0.2, T_max=10), warmup_steps=2, start_lr=0.0, end_lr=0.2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(rate(), 4))
    ...     rate.step()
    >>> rates
    [0.0, 0.1, 0.2, 0.1951]
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
