"""The base of all schedules: the rate as a function of how often `step()` was called.

The base keeps Paddle's protocol: making a scheduler is its step 0; `scheduler()` is the current rate; `step()` goes to
the next one.  `last_epoch` counts the steps, whatever the caller means by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.tensor import Tensor

__all__ = ["LRScheduler"]


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

    def state_keys(self) -> None:
        """Set `self.keys`: the attributes that tell where the schedule stands."""
        self.keys = ["last_epoch", "last_lr"]

    def state_dict(self) -> dict[str, Any]:
        """Where the schedule stands, as plain values."""
        self.state_keys()
        return {key: _plain(getattr(self, key)) for key in self.keys}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Return to a state.  RuntimeError, with nothing changed, if it is another schedule's."""
        own = self.state_dict()
        if own.keys() != state_dict.keys():
            raise RuntimeError(f"state of {type(self).__name__}: expected the entries {sorted(own)}, got "
                               f"{sorted(state_dict)}; it belongs to another schedule")
        self._restore(state_dict)
        self._show()

    def _restore(self, state: dict[str, Any]) -> None:
        for key in self.keys:
            setattr(self, key, state[key])

    set_dict = set_state_dict


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, (Tensor, np.generic)) else value
