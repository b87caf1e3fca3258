"""Watching one number of the evaluations: is it better than it was?"""

from __future__ import annotations

import math
import warnings
from typing import Any

__all__: list[str] = []


class Monitor:
    """The best value so far of `name`.

    mode: "min" or "max" is better; "auto" says max for accuracies and min for all else.
    min_delta: how much better it has to be.
    """

    def __init__(self, who: str, name: str, mode: str, min_delta: float, baseline: float | None = None):
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{who}: expected mode auto, min or max, got {mode!r}")
        self.who, self.name, self.min_delta, self.baseline = who, name, abs(min_delta), baseline
        self.up = mode == "max" or mode == "auto" and "acc" in name
        self.reset()

    def reset(self) -> None:
        """Nothing has been seen yet."""
        self.best = self.baseline if self.baseline is not None else -math.inf if self.up else math.inf

    def value(self, logs: dict[str, Any] | None) -> float | None:
        """The number; None, with a warning, where the logs do not have it."""
        if not logs or self.name not in logs:
            warnings.warn(f"{self.who}: the evaluation gives no {self.name!r}; it gives {sorted(logs or ())}",
                          stacklevel=3)
            return None
        value = logs[self.name]
        return float(value[0] if isinstance(value, (list, tuple)) else value)

    def better(self, value: float) -> bool:
        """Whether it is the best so far; then it is remembered."""
        better = value > self.best + self.min_delta if self.up else value < self.best - self.min_delta
        if better:
            self.best = value
        return better
