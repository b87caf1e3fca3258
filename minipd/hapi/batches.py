"""One batch at a time: what a network gets of it, its losses, its metrics."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from minipd.framework.context import using
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.metric import Metric
from minipd.nn.layer import Layer
from minipd.ops.creation import to_tensor
from minipd.ops.math import add_n

__all__: list[str] = []


def as_list(x: Any) -> list:
    """None as nothing, one thing as a list of it.

    >>> as_list(None), as_list(3), as_list((1, 2))
    ([], [3], [1, 2])
    """
    return [] if x is None else list(x) if isinstance(x, (list, tuple)) else [x]


def tensors(x: Any) -> list[Any]:
    """Arrays and numbers as tensors; dicts, whose values are likewise, stay dicts."""
    def one(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: one(v) for key, v in value.items()}
        return value if isinstance(value, Tensor) else to_tensor(np.asarray(value))
    return [one(value) for value in as_list(x)]


def number_of_inputs(network: Layer, specs: list) -> int:
    """How many of a batch's fields go into the network; the others are labels."""
    if specs:
        return len(specs)
    params = inspect.signature(network.forward).parameters.values()
    needed = [p for p in params if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return max(1, len(needed))


class Batches:
    """The part of `Model` that computes on one batch: a network, a loss, metrics, an optimizer."""

    network: Layer
    _optimizer: Any = None
    _loss: Callable | None = None
    _metrics: list[Metric]
    _casting: Callable[[], AbstractContextManager] = nullcontext
    _scaler: Any = None

    def train_batch(self, inputs: Any, labels: Any = None, update: bool = True) -> Any:
        """One step of training on a batch.

        inputs, labels: a tensor or array, or a list of them.  update: step the optimizer and forget the gradients; with
        False they add up.
        Returns: the losses, arrays; with metrics (losses, what each metric says of this batch).
        Raises: RuntimeError before `prepare` was given an optimizer and a loss.
        """
        if self._optimizer is None or self._loss is None:
            raise RuntimeError("Model.train_batch: expected an optimizer and a loss; call prepare(optimizer, loss)")
        self.network.train()
        outputs, labels, losses = self._forward(inputs, labels)
        loss = losses[0] if len(losses) == 1 else add_n(losses)
        (loss if self._scaler is None else self._scaler.scale(loss)).backward()
        if update:
            if self._scaler is None:
                self._optimizer.step()
            else:
                self._scaler.step(self._optimizer)
                self._scaler.update()
            self._optimizer.clear_grad()
        return self._result(outputs, labels, losses)

    def eval_batch(self, inputs: Any, labels: Any = None) -> Any:
        """Losses and metrics of a batch, as `train_batch` returns them, without training.  Without a loss, the metrics.
        """
        self.network.eval()
        with using(grad=False):
            return self._result(*self._forward(inputs, labels))

    def predict_batch(self, inputs: Any) -> list[np.ndarray]:
        """What the network makes of a batch, arrays."""
        self.network.eval()
        with using(grad=False), self._casting():
            return [out.numpy() for out in as_list(self.network(*tensors(inputs)))]

    def _forward(self, inputs: Any, labels: Any) -> tuple[list, list, list]:
        """(outputs, labels, losses)"""
        labels = tensors(labels)
        with self._casting():
            outputs = as_list(self.network(*tensors(inputs)))
            return outputs, labels, as_list(self._loss(*outputs, *labels)) if self._loss else []

    def _result(self, outputs: list, labels: list, losses: list) -> Any:
        said = []
        with using(grad=False):
            for metric in self._metrics:
                computed = as_list(metric.compute(*outputs, *labels))
                said.append(metric.update(*(c.numpy() if isinstance(c, Tensor) else c for c in computed)))
        arrays = [loss.numpy() for loss in losses]
        if arrays and said:
            return arrays, said
        return arrays or said


def check_prepared(loss: Any, metrics: list) -> None:
    """TypeError for a loss that cannot be called, or a metric that is none."""
    if loss is not None and not callable(loss):
        raise TypeError(f"Model.prepare: expected a loss that can be called with outputs and labels, got "
                        f"{describe(loss) if isinstance(loss, Tensor) else type(loss).__name__}")
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise TypeError(f"Model.prepare: expected metrics from paddle.metric, got {type(metric).__name__}")
