"""Averages of parameters over the steps of a training: `static.ExponentialMovingAverage`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from minipd.framework.context import using
from minipd.framework.mode import in_dynamic_mode
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.math import minimum
from minipd.static.declarations import create_global_var
from minipd.static.program import current_programs, default_main_program

__all__ = ["ExponentialMovingAverage"]


class ExponentialMovingAverage:
    """Averages of the parameters of the default main program, decay * average + (1 - decay) * parameter at every step.

        ema = ExponentialMovingAverage(0.999)
        ema.update()                        behind `optimizer.minimize`: every run moves the averages
        with ema.apply(exe):                inside, the parameters in the scope are the averages
            ...

    The averages begin as zeros, and are divided by 1 - decay^steps when they are applied (Kingma, Ba 2015, section 3).
    thres_steps: a tensor t, the number of steps: the decay is at most (t + 1) / (t + 10) then, small at first.
    name: what the names of the averages begin with.

    Raises: RuntimeError in eager mode.
    """

    def __init__(self, decay: float = 0.999, thres_steps: Tensor | None = None, name: str | None = None):
        if in_dynamic_mode():
            raise RuntimeError("ExponentialMovingAverage: expected static mode, got eager mode; call "
                               "paddle.enable_static() first")
        unique, prefix = current().unique_name, name or ""
        self._decay, self._steps = decay, thres_steps
        self._averages = {p: create_global_var(p.shape, 0.0, p.dtype, True, name=unique(f"{prefix}{p.name}_ema"))
                          for p in default_main_program().trainable_parameters()}
        self._rate = create_global_var([1], decay, "float32", True, name=unique("scheduled_ema_decay_rate"))
        self._count = create_global_var([1], 0, "int64", True, name=unique("@EMA_STEP_COUNTER@"))
        self._before: dict[str, np.ndarray] = {}

    def update(self) -> None:
        """Write one step of the averages into the program; call it once, behind what updates the parameters."""
        with using(grad=False):
            self._count.set_value(self._count + 1)
            rate: Any = self._rate
            if self._steps is not None:
                steps = cast(self._steps, "float32")
                self._rate.set_value(minimum((steps + 1.0) / (steps + 10.0), self._decay).reshape([1]))
            for param, average in self._averages.items():
                decay = cast(rate, average.dtype)
                average.set_value(average * decay + param * (1.0 - decay))

    @contextmanager
    def apply(self, executor: Any, need_restore: bool = True) -> Iterator[None]:
        """Inside, the parameters in the global scope are their averages; afterwards, with need_restore, what they were.

        Raises: KeyError if the startup program has not run.
        """
        scope = current_programs().scope
        steps, rate = scope.array(self._count.name).item(), scope.array(self._rate.name)
        for param, average in self._averages.items():
            self._before[param.name], mean = scope.array(param.name), scope.array(average.name)
            scope[param.name] = mean / (1 - rate.astype(mean.dtype) ** steps) if steps else np.array(mean)
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Any) -> None:
        """Put the parameters back that `apply` with need_restore=False has left averaged."""
        current_programs().scope.update(self._before)
        self._before = {}
