"""The learning rate of an optimizer: a number or a schedule, and the tensor that steps and programs read."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.optimizer.groups import number
from minipd.optimizer.lr import LRScheduler

__all__: list[str] = []


class Rate:
    """Called, it gives the current rate.  `schedule` is the LRScheduler that sets it, None for a number."""

    def __init__(self, owner: str, given: Any):
        self.owner = owner
        self._tensor: Tensor | None = None
        self.schedule: LRScheduler | None = None
        if isinstance(given, LRScheduler):
            self.schedule = given
        elif isinstance(given, (bool, str)):
            raise self._refused(given)
        else:
            try:
                self.value = number(owner, "learning_rate", given)
            except TypeError:
                raise self._refused(given) from None

    def _refused(self, given: Any) -> TypeError:
        return TypeError(f"{self.owner}: expected learning_rate to be a number or an LRScheduler, got {given!r}")

    def __call__(self) -> float:
        return self.value if self.schedule is None else self.schedule()

    def set(self, value: float) -> None:
        """Another number.  RuntimeError if a schedule sets it."""
        if self.schedule is not None:
            raise RuntimeError(f"set_lr: the learning rate is set by a {type(self.schedule).__name__}, which would "
                               "undo this at its next step(); use set_lr_scheduler, or make the optimizer with a "
                               "number")
        self.value = number(self.owner, "learning_rate", value)
        if self._tensor is not None:
            self._tensor.payload = np.array(self.value, self._tensor.payload.dtype)

    def use(self, schedule: LRScheduler) -> None:
        """Let a schedule set it from now on."""
        if not isinstance(schedule, LRScheduler):
            raise TypeError(f"set_lr_scheduler: expected an LRScheduler, got {schedule!r}; a number goes to set_lr")
        if self._tensor is not None:
            if self.schedule is not None:
                self.schedule.unfollow(self._tensor)
            schedule.follow(self._tensor)
        self.schedule = schedule

    def tensor(self, dtype: Any) -> Tensor:
        """The rate as a 0-D tensor: the same one always, kept up to date."""
        if self._tensor is None:
            self._tensor = Tensor(np.array(self(), dtype))
            self._tensor.name, self._tensor.persistable = current().unique_name("learning_rate"), True
            if self.schedule is not None:
                self.schedule.follow(self._tensor)
        return self._tensor
