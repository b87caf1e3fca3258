"""GradScaler: a loss times a large number, so that gradients do not fade away in float16.

The number grows as long as gradients stay finite, and shrinks when they do not; a step with gradients that are not
finite changes nothing.  All of it is made of operators on 0-D tensors, with no question to Python in between: so it can
be part of a traced training step, and ranks decide together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ops.aggregate import all
from minipd.ops.cast import cast
from minipd.ops.logic import isfinite, logical_and, logical_not
from minipd.ops.math import maximum, where
from minipd.optimizer.optimizer import Optimizer, replace

__all__ = ["AmpScaler", "GradScaler"]


class GradScaler:
    """Paddle's `amp.GradScaler`.

    Args:
        enable: whether to do anything.
        init_loss_scaling: the first scale.
        incr_ratio, incr_every_n_steps: by what the scale grows, after how many finite steps in a row.
        decr_ratio, decr_every_n_nan_or_inf: by what it shrinks, after how many steps in a row that are not finite.
        use_dynamic_loss_scaling: False keeps the scale.

    Unlike in Paddle, it is on wherever it is enabled, on the CPU too.
    Raises: ValueError for ratios on the wrong side of 1, or numbers of steps that are not positive.

    >>> from minipd.ops.creation import to_tensor
    >>> from minipd.optimizer import SGD
    >>> x = to_tensor([3.0], stop_gradient=False)
    >>> sgd, scaler = SGD(0.5, parameters=[x]), GradScaler(init_loss_scaling=1024)
    >>> scaler.scale((x * x).sum()).backward()
    >>> x.grad.item()
    6144.0
    >>> scaler.step(sgd); scaler.update()
    >>> x.item()
    0.0
    """

    def __init__(self, enable: bool = True, init_loss_scaling: float = 65536.0, incr_ratio: float = 2.0,
                 decr_ratio: float = 0.5, incr_every_n_steps: int = 2000, decr_every_n_nan_or_inf: int = 1,
                 use_dynamic_loss_scaling: bool = True):
        self._enable, self._dynamic = bool(enable), bool(use_dynamic_loss_scaling)
        self.set_incr_ratio(incr_ratio)
        self.set_decr_ratio(decr_ratio)
        self.set_incr_every_n_steps(incr_every_n_steps)
        self.set_decr_every_n_nan_or_inf(decr_every_n_nan_or_inf)
        if init_loss_scaling <= 0:
            raise ValueError(f"GradScaler: expected init_loss_scaling > 0, got {init_loss_scaling}")
        self._scale = _number(init_loss_scaling, np.float32)
        self._good, self._bad = _number(0, np.int32), _number(0, np.int32)      # steps in a row
        for x, name in zip((self._scale, self._good, self._bad), ("loss_scaling", "good_steps", "bad_steps"),
                           strict=True):
            x.name, x.persistable = current().unique_name(name), True
        self._finite: Any = None                # whether the gradients of this step are, of all optimizers so far
        self._unscaled: list[Optimizer] = []    # since the last update
        self._stepped: list[Optimizer] = []

    # ----------------------------------------------------------------------------------------------------- a step
    def scale(self, var: Tensor) -> Tensor:
        """The loss times the scale."""
        return var * cast(self._scale, var.dtype) if self._enable else var

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of the optimizer's parameters by the scale, in float32: to clip them, say.

        Raises: RuntimeError if that has been done since the last `update`.
        """
        if not self._enable:
            return
        if optimizer in self._unscaled:
            raise RuntimeError("unscale_: the gradients of this optimizer have been unscaled already since the last "
                               "update(); call update() after each step")
        self._unscaled.append(optimizer)
        with using(grad=False, amp=None):
            finite = self._divide([p for p in optimizer._parameter_list if p.grad is not None])
            if finite is not None:
                self._finite = finite if self._finite is None else logical_and(self._finite, finite)

    def _divide(self, params: list[Any]) -> Any:
        """Divide the gradients of parameters by the scale; whether they are finite, None if there are none."""
        inverse: Any = 1.0 / self._scale
        found: Any = None
        for p in params:
            wide = p.grad if p.grad.payload.dtype == dtypes.float64.np else cast(p.grad, dtypes.float32)
            p.grad = wide * cast(inverse, wide.dtype)
            finite = all(isfinite(p.grad))
            found = finite if found is None else logical_and(found, finite)
        return found

    def step(self, optimizer: Optimizer) -> None:
        """Let the optimizer step, unless a gradient is not finite.  (`update` is still to be called.)

        Raises: RuntimeError for a second step since the last `update`.
        """
        if not self._enable:
            optimizer.step()
            return
        if optimizer in self._stepped:
            raise RuntimeError("step: this optimizer has made a step already since the last update(); call update() "
                               "after each step")
        if optimizer not in self._unscaled:
            self.unscale_(optimizer)
        self._stepped.append(optimizer)
        optimizer.step_unless(False if self._finite is None else logical_not(self._finite))

    def update(self) -> None:
        """Adapt the scale to whether gradients were finite."""
        if not self._enable:
            return
        if self._dynamic and self._finite is not None:
            with using(grad=False, amp=None):
                self._adapt(self._finite)
        self._finite = None
        self._unscaled.clear()
        self._stepped.clear()

    def _adapt(self, finite: Tensor) -> None:
        good, bad = where(finite, self._good + 1, 0), where(finite, 0, self._bad + 1)
        grows, shrinks = good >= self._every_good, bad >= self._every_bad
        larger = self._scale * self._incr_ratio
        scale = where(logical_and(grows, isfinite(larger)), larger, self._scale)
        # Paddle's bound: below 1 a scale would do harm
        scale = where(shrinks, maximum(self._scale * self._decr_ratio, 1.0), scale)
        replace(self._scale, scale)
        replace(self._good, where(grows, 0, good))
        replace(self._bad, where(shrinks, 0, bad))

    def minimize(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> tuple[None, list]:
        """`step` and `update`; the loss that Paddle takes here, scaled, has had its `backward` call.

        Returns: (None, [(parameter, gradient), ...]).
        Raises: RuntimeError in static mode, where (as in Paddle) scaling is not written into a program.
        """
        if not self._enable:
            return optimizer.minimize(*args, **kwargs)
        if current().static_mode:
            raise RuntimeError("GradScaler.minimize: expected eager mode, got static mode; compute in bfloat16, whose "
                               "range needs no scaling (auto_cast(dtype='bfloat16')), and call optimizer.minimize")
        self.step(optimizer)
        pairs = optimizer._gradients(None)
        self.update()
        return None, pairs

    # -------------------------------------------------------------------------------------------------- settings
    def is_enable(self) -> bool:
        return self._enable

    def is_use_dynamic_loss_scaling(self) -> bool:
        return self._dynamic

    def get_init_loss_scaling(self) -> float:
        """The scale as it is now."""
        return float(self._scale)

    def set_init_loss_scaling(self, new_init_loss_scaling: float) -> None:
        """Another scale from now on."""
        self._scale.payload = np.array(new_init_loss_scaling, np.float32)

    def get_incr_ratio(self) -> float:
        return self._incr_ratio

    def set_incr_ratio(self, new_incr_ratio: float) -> None:
        """ValueError unless it is above 1."""
        if not new_incr_ratio > 1:
            raise ValueError(f"GradScaler: expected incr_ratio > 1, got {new_incr_ratio}")
        self._incr_ratio = float(new_incr_ratio)

    def get_decr_ratio(self) -> float:
        return self._decr_ratio

    def set_decr_ratio(self, new_decr_ratio: float) -> None:
        """ValueError unless it is between 0 and 1."""
        if not 0 < new_decr_ratio < 1:
            raise ValueError(f"GradScaler: expected decr_ratio between 0 and 1, got {new_decr_ratio}")
        self._decr_ratio = float(new_decr_ratio)

    def get_incr_every_n_steps(self) -> int:
        return self._every_good

    def set_incr_every_n_steps(self, new_incr_every_n_steps: int) -> None:
        """ValueError unless it is positive."""
        self._every_good = _steps("incr_every_n_steps", new_incr_every_n_steps)

    def get_decr_every_n_nan_or_inf(self) -> int:
        return self._every_bad

    def set_decr_every_n_nan_or_inf(self, new_decr_every_n_nan_or_inf: int) -> None:
        """ValueError unless it is positive."""
        self._every_bad = _steps("decr_every_n_nan_or_inf", new_decr_every_n_nan_or_inf)

    def prepare(self) -> dict[str, Tensor]:
        """Name -> tensor of what a step reads and writes here: program state of a traced step, beside the optimizer's.
        """
        return {x.name: x for x in (self._scale, self._good, self._bad)}

    def state_dict(self) -> dict[str, Any]:
        """Everything, under Paddle's names; empty if it is not enabled."""
        if not self._enable:
            return {}
        return {"scale": self._scale.numpy().reshape(1), "incr_ratio": self._incr_ratio, "decr_ratio": self._decr_ratio,
                "incr_every_n_steps": self._every_good, "decr_every_n_nan_or_inf": self._every_bad,
                "incr_count": int(self._good), "decr_count": int(self._bad), "use_dynamic_loss_scaling": self._dynamic}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Return to a state from `state_dict`.

        Raises: RuntimeError for an empty one, ValueError for one with other entries.
        """
        if not self._enable:
            return
        if not state_dict:
            raise RuntimeError("GradScaler: expected the state of one that was enabled, got an empty one")
        own = self.state_dict()
        if own.keys() != state_dict.keys():
            raise ValueError(f"GradScaler: expected the entries {sorted(own)}, got {sorted(map(str, state_dict))}")
        self.set_incr_ratio(state_dict["incr_ratio"])
        self.set_decr_ratio(state_dict["decr_ratio"])
        self.set_incr_every_n_steps(state_dict["incr_every_n_steps"])
        self.set_decr_every_n_nan_or_inf(state_dict["decr_every_n_nan_or_inf"])
        self._dynamic = bool(state_dict["use_dynamic_loss_scaling"])
        self.set_init_loss_scaling(float(np.asarray(state_dict["scale"]).reshape(-1)[0]))
        self._good.payload = np.array(state_dict["incr_count"], np.int32)
        self._bad.payload = np.array(state_dict["decr_count"], np.int32)


AmpScaler = GradScaler


def _number(value: float, dtype: Any) -> Tensor:
    return Tensor(np.array(value, dtype))


def _steps(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"GradScaler: expected {name} to be a positive int, got {value!r}")
    return value
