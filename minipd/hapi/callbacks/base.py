"""Callback: what is called at the beginning and the end of training, evaluation and prediction, and of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.hapi.batches import as_list

__all__ = ["Callback"]


class Callback:
    """The base of all callbacks; a subclass defines the moments it cares about.

    `self.model` is the Model, `self.params` says batch_size, epochs, steps, verbose and the names of the metrics.
    logs: what is known at that moment: the losses, the metrics, the number of the step.

    >>> class Count(Callback):
    ...     seen = 0
    ...     def on_train_batch_end(self, step, logs=None):
    ...         self.seen += 1
    """

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_params(self, params: dict[str, Any]) -> None:
        """The Model says what it is about to do."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """The Model says who it is."""
        self.model = model

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Before the first epoch."""

    def on_train_end(self, logs: dict | None = None) -> None:
        """After the last epoch."""

    def on_eval_begin(self, logs: dict | None = None) -> None:
        """Before an evaluation; logs has its `steps` and the names of the `metrics`."""

    def on_eval_end(self, logs: dict | None = None) -> None:
        """After an evaluation."""

    def on_predict_begin(self, logs: dict | None = None) -> None:
        """Before a prediction; logs has its `steps`."""

    def on_predict_end(self, logs: dict | None = None) -> None:
        """After a prediction."""

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        """Before an epoch."""

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """After an epoch, before it is evaluated."""

    def on_train_batch_begin(self, step: int, logs: dict | None = None) -> None:
        """Before a step of training."""

    def on_train_batch_end(self, step: int, logs: dict | None = None) -> None:
        """After a step of training."""

    def on_eval_batch_begin(self, step: int, logs: dict | None = None) -> None:
        """Before a batch is evaluated."""

    def on_eval_batch_end(self, step: int, logs: dict | None = None) -> None:
        """After a batch was evaluated."""

    def on_predict_batch_begin(self, step: int, logs: dict | None = None) -> None:
        """Before a batch is predicted."""

    def on_predict_batch_end(self, step: int, logs: dict | None = None) -> None:
        """After a batch was predicted."""


class Callbacks:
    """Several callbacks, told of each moment one after the other."""

    def __init__(self, callbacks: Sequence[Callback], model: Any, params: dict[str, Any]):
        self.all = list(callbacks)
        for callback in self.all:
            callback.set_model(model)
            callback.set_params(params)

    def __call__(self, moment: str, *args: Any) -> None:
        """Tell all of a moment: `train_begin` calls `on_train_begin`."""
        for callback in self.all:
            getattr(callback, f"on_{moment}")(*args)



def checked(callbacks: Any) -> list[Callback]:
    """The callbacks as a list.  Raises: TypeError for what is none."""
    given = as_list(callbacks)
    for callback in given:
        if not isinstance(callback, Callback):
            raise TypeError(f"callbacks: expected a Callback or a list of them, got {type(callback).__name__}")
    return given
