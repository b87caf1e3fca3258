"""`paddle.metric`: how good predictions are, counted over many batches.

A `Metric` is told batch by batch (`update`), answers at any time (`accumulate`), and is set back between epochs
(`reset`).  What can be computed on tensors, before anything is counted, is in `compute`.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.framework.dim import same
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.creation import assign
from minipd.ops.reduce import argmax
from minipd.ops.sorting import topk as largest

__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall", "accuracy"]


class Metric(abc.ABC):
    """The base of all metrics.  A subclass defines `reset`, `update`, `accumulate` and `name`."""

    def compute(self, *args: Any) -> Any:
        """What `update` is given, out of predictions and labels; unless overridden, just these."""
        return args

    @abc.abstractmethod
    def reset(self) -> None:
        """Start counting anew."""

    @abc.abstractmethod
    def update(self, *args: Any) -> Any:
        """Count one more batch: of arrays or tensors that `compute` has made."""

    @abc.abstractmethod
    def accumulate(self) -> Any:
        """The metric of all batches since `reset`."""

    @abc.abstractmethod
    def name(self) -> Any:
        """What the metric is called in reports; a list of names where it has several values."""


class Accuracy(Metric):
    """How often the right class is among the k most probable, for each k in `topk`.

    >>> from minipd.ops.creation import to_tensor
    >>> metric = Accuracy(topk=(1, 2))
    >>> metric.update(metric.compute(to_tensor([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]]), to_tensor([[2], [0]])))
    [0.5, 1.0]
    """

    def __init__(self, topk: Sequence[int] = (1,), name: str | None = None, *args: Any, **kwargs: Any):
        self.topk = tuple(topk)
        self.total: list[float]
        self.count: int
        if not self.topk or min(self.topk) < 1:
            raise ValueError(f"Accuracy: expected topk with numbers from 1 on, got {topk}")
        base = name or "acc"
        self._name = [base] if self.topk == (1,) else [f"{base}_top{k}" for k in self.topk]
        self.reset()

    def compute(self, pred: Tensor, label: Tensor, *args: Any) -> Tensor:
        """1 where a guess is right, else 0: float32 [..., max(topk)], the most probable class first.

        pred: scores [..., classes].  label: the classes, [...] or [..., 1], or one-hot [..., classes].
        """
        _, guesses = largest(pred, min(max(self.topk), pred.payload.shape[-1]))
        if label.ndim < pred.ndim:
            label = label.unsqueeze(-1)
        elif not same(label.payload.shape[-1], 1):
            label = argmax(label, -1, keepdim=True)
        return cast(guesses == cast(label, guesses.dtype), "float32")

    def update(self, correct: Any, *args: Any) -> Any:
        """The accuracy of this batch: a number, or for several k, a list."""
        correct = np.asarray(correct)
        n = int(np.prod(correct.shape[:-1]))
        hits = [float(correct[..., :k].sum()) for k in self.topk]
        self.total = [t + h for t, h in zip(self.total, hits, strict=True)]
        self.count += n
        return _one_or_list([h / n if n else 0.0 for h in hits])

    def reset(self) -> None:
        self.total, self.count = [0.0] * len(self.topk), 0

    def accumulate(self) -> Any:
        return _one_or_list([t / self.count if self.count else 0.0 for t in self.total])

    def name(self) -> list[str]:
        return self._name


def _one_or_list(values: list[float]) -> Any:
    return values[0] if len(values) == 1 else values


class _Binary(Metric):
    """Metrics of a yes-or-no decision: `update(preds, labels)` takes probabilities of yes, and 0 or 1."""

    def __init__(self, name: str):
        self._name = name
        self.reset()

    def reset(self) -> None:
        self.tp = self.fp = self.fn = 0

    def update(self, preds: Any, labels: Any) -> None:
        """preds: [n] or [n, 1], yes from 0.5 on.  labels: as many."""
        said = np.floor(np.asarray(preds, np.float64).reshape(-1) + 0.5) == 1
        true = np.asarray(labels).reshape(-1) == 1
        if said.shape != true.shape:
            raise ValueError(f"{type(self).__name__}: expected a label for each of {said.size} predictions, got "
                             f"{true.size}")
        self.tp += int((said & true).sum())
        self.fp += int((said & ~true).sum())
        self.fn += int((~said & true).sum())

    def name(self) -> str:
        return self._name


class Precision(_Binary):
    """Of those predicted to be positive, how many are.

    >>> metric = Precision()
    >>> metric.update(np.array([0.9, 0.8, 0.1]), np.array([1, 0, 1]))
    >>> metric.accumulate()
    0.5
    """

    def __init__(self, name: str = "precision", *args: Any, **kwargs: Any):
        super().__init__(name)

    def accumulate(self) -> float:
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else 0.0


class Recall(_Binary):
    """Of those that are positive, how many are predicted to be.

    >>> metric = Recall()
    >>> metric.update(np.array([0.9, 0.1, 0.2]), np.array([1, 1, 0]))
    >>> metric.accumulate()
    0.5
    """

    def __init__(self, name: str = "recall", *args: Any, **kwargs: Any):
        super().__init__(name)

    def accumulate(self) -> float:
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else 0.0


class Auc(Metric):
    """The area under the ROC curve (true over false positives) or the precision-recall curve of a binary classifier.

    Predictions are counted in num_thresholds + 1 bins of probability, and the curve is a polygon over these.

    >>> metric = Auc()
    >>> metric.update(np.array([[0.3, 0.7], [0.6, 0.4], [0.2, 0.8]]), np.array([[1], [0], [0]]))
    >>> metric.accumulate()
    0.5
    """

    def __init__(self, curve: str = "ROC", num_thresholds: int = 4095, name: str = "auc", *args: Any, **kwargs: Any):
        if curve not in ("ROC", "PR"):
            raise ValueError(f"Auc: expected curve 'ROC' or 'PR', got {curve!r}")
        self.curve, self.num_thresholds, self._name = curve, num_thresholds, name
        self.reset()

    def reset(self) -> None:
        self.positive, self.negative = (np.zeros(self.num_thresholds + 1) for _ in range(2))

    def update(self, preds: Any, labels: Any) -> None:
        """preds: probabilities of the two classes, [n, 2], or of the second alone, [n] or [n, 1].  labels: 0 or 1."""
        preds, labels = np.asarray(preds, np.float64), np.asarray(labels).reshape(-1)
        yes = preds.reshape(len(labels), -1)[:, -1] if preds.size else preds.reshape(0)
        if not ((yes >= 0) & (yes <= 1)).all():
            raise ValueError(f"Auc: expected probabilities from 0 to 1, got {yes.min()} to {yes.max()}")
        bins = (yes * self.num_thresholds).astype(np.int64)
        self.positive += np.bincount(bins[labels == 1], minlength=self.num_thresholds + 1)
        self.negative += np.bincount(bins[labels != 1], minlength=self.num_thresholds + 1)

    def accumulate(self) -> float:
        tp, fp = ([0.0, *np.cumsum(bins[::-1])] for bins in (self.positive, self.negative))
        if not tp[-1] or not fp[-1]:
            return 0.0
        if self.curve == "ROC":
            return float(np.trapezoid(tp, fp) / (tp[-1] * fp[-1]))
        hits, said = np.array(tp[1:]), np.array(tp[1:]) + fp[1:]
        precision = np.divide(hits, said, out=np.ones_like(hits), where=said > 0)
        return float(np.trapezoid([precision[0], *precision], [0.0, *hits / tp[-1]]))

    def name(self) -> str:
        return self._name


def accuracy(input: Tensor, label: Tensor, k: int = 1, correct: Tensor | None = None, total: Tensor | None = None,
             name: str | None = None) -> Tensor:
    """How often the right class is among the k most probable: float32, 0-D.

    input: scores [n, classes].  label: int [n, 1] or [n].  correct, total: int tensors [1] that are given the counts.
    Raises: ValueError for other shapes, or k outside of 1 .. classes.

    >>> from minipd.ops.creation import to_tensor
    >>> accuracy(to_tensor([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]]), to_tensor([[2], [0]])).item()
    0.5
    """
    if input.ndim != 2 or label.ndim not in (1, 2):
        raise ValueError(f"accuracy: expected scores [n, classes] and labels [n, 1] or [n], got {describe(input)} and "
                         f"{describe(label)}")
    _, guesses = largest(input, k)
    label = label if label.ndim == 2 else label.unsqueeze(-1)
    hits = cast(guesses == cast(label, guesses.dtype), "float32").sum(-1)
    for counter, value in ((correct, hits.sum()), (total, cast(hits == hits, "float32").sum())):
        if counter is not None:
            assign(cast(value, counter.dtype).reshape(counter.payload.shape), counter)
    return hits.mean()
