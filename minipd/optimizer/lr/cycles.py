"""Schedules that go up and down: cosines, triangles, one cycle."""

from __future__ import annotations

import math
from collections.abc import Callable

from minipd.optimizer.lr.base import LRScheduler

__all__ = ["CosineAnnealingDecay", "CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]


def cosine(start: float, end: float, part: float) -> float:
    """Half a cosine from start (part 0) to end (part 1)."""
    return end + (start - end) * (1 + math.cos(math.pi * part)) / 2


def linear(start: float, end: float, part: float) -> float:
    """A line from start (part 0) to end (part 1)."""
    return start + (end - start) * part


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
        return cosine(self.base_lr, self.eta_min, self.last_epoch / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from learning_rate down to eta_min in T_0 steps, again in T_0 T_mult steps, and so on.

    (Loshchilov, Hutter 2017.)  `step(epoch)` may be given a fraction of a step.
    Raises: ValueError for a T_0 or T_mult that is no positive int.
    """

    def __init__(self, learning_rate: float, T_0: int, T_mult: int = 1, eta_min: float = 0, last_epoch: int = -1,
                 verbose: bool = False):
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"CosineAnnealingWarmRestarts: expected {name} to be a positive int, got {value!r}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def step(self, epoch: float | None = None) -> None:         # type: ignore[override]
        """Go to the next step, or to step `epoch`.   ValueError for a negative one."""
        if epoch is not None and epoch < 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: expected epoch >= 0, got {epoch}")
        super().step(epoch)             # type: ignore[arg-type]

    def get_lr(self) -> float:
        t, length = self.last_epoch, self.T_0
        if self.T_mult == 1:
            t %= length
        while t >= length:
            t, length = t - length, length * self.T_mult
        return cosine(self.base_lr, self.eta_min, t / length)


class OneCycleLR(LRScheduler):
    """Up to max_learning_rate, and down to almost nothing, once in total_steps.   (Smith, Topin 2018)

    Args:
        divide_factor: the first rate is max_learning_rate / divide_factor.
        end_learning_rate: the last rate.
        phase_pct: the part of the steps in which the rate goes up.
        anneal_strategy: "cos" or "linear".
        three_phase: go down to the first rate as slowly as up, and to the last one in the steps that are left.

    Raises: ValueError for what is out of range; `step` does after total_steps.
    """

    def __init__(self, max_learning_rate: float, total_steps: int, divide_factor: float = 25.0,
                 end_learning_rate: float = 0.0001, phase_pct: float = 0.3, anneal_strategy: str = "cos",
                 three_phase: bool = False, last_epoch: int = -1, verbose: bool = False):
        if total_steps <= 0:
            raise ValueError(f"OneCycleLR: expected total_steps > 0, got {total_steps}")
        if not 0 <= phase_pct <= 1 or three_phase and phase_pct >= 0.5:
            raise ValueError(f"OneCycleLR: expected phase_pct in [0, 1], and below 0.5 with three phases, got "
                             f"{phase_pct}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: expected anneal_strategy 'cos' or 'linear', got {anneal_strategy!r}")
        self.total_steps, self.curve = total_steps, cosine if anneal_strategy == "cos" else linear
        first, up = max_learning_rate / divide_factor, phase_pct * total_steps
        #: (the step at which a phase ends, the rate there), from step 0 on
        self.corners = [(0, first), (up - 1, max_learning_rate)]
        if three_phase:
            self.corners.append((2 * up - 2, first))
        self.corners.append((total_steps - 1, end_learning_rate))
        super().__init__(first, last_epoch, verbose)

    def get_lr(self) -> float:
        t = self.last_epoch
        if t > self.total_steps:
            raise ValueError(f"OneCycleLR: expected at most {self.total_steps} steps, as it was made for, got {t}")
        for i, (before, after) in enumerate(zip(self.corners, self.corners[1:], strict=False)):
            if t <= after[0] or i == len(self.corners) - 2:
                part = (t - before[0]) / (after[0] - before[0]) if after[0] != before[0] else 1.0
                return self.curve(before[1], after[1], part)
        raise AssertionError("the last phase has no end")


class CyclicLR(LRScheduler):
    """Up from base_learning_rate to max_learning_rate and down again, over and over.   (Smith 2017)

    Args:
        step_size_up, step_size_down: the steps of either half; equally many unless given.
        mode: how far up: "triangular" always all the way, "triangular2" half as far in each cycle, "exp_range"
            exp_gamma^t of the way.
        scale_fn: instead of mode, the part of the way, as a function of the cycle (from 1), or with
            scale_mode="iterations" of the step.

    Raises: ValueError for an unknown mode or sizes that are not positive.
    """

    def __init__(self, base_learning_rate: float, max_learning_rate: float, step_size_up: int,
                 step_size_down: int | None = None, mode: str = "triangular", exp_gamma: float = 1.0,
                 scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", last_epoch: int = -1,
                 verbose: bool = False):
        down = step_size_up if step_size_down is None else step_size_down
        if step_size_up <= 0 or down <= 0:
            raise ValueError(f"CyclicLR: expected positive step sizes, got {step_size_up} up and {down} down")
        modes: dict[str, tuple[Callable[[float], float], str]] = {
            "triangular": (lambda cycle: 1.0, "cycle"), "triangular2": (lambda cycle: 0.5 ** (cycle - 1), "cycle"),
            "exp_range": (lambda t: exp_gamma ** t, "iterations")}
        if scale_fn is None and mode not in modes:
            raise ValueError(f"CyclicLR: expected mode to be one of {', '.join(modes)}, or a scale_fn, got {mode!r}")
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError(f"CyclicLR: expected scale_mode 'cycle' or 'iterations', got {scale_mode!r}")
        self.up, self.length, self.max_lr = step_size_up, step_size_up + down, float(max_learning_rate)
        self.scale_fn, self.scale_mode = modes[mode] if scale_fn is None else (scale_fn, scale_mode)
        super().__init__(base_learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        cycle, t = divmod(self.last_epoch, self.length)
        height = t / self.up if t <= self.up else (self.length - t) / (self.length - self.up)
        part = self.scale_fn(cycle + 1 if self.scale_mode == "cycle" else self.last_epoch)
        return self.base_lr + (self.max_lr - self.base_lr) * height * part
