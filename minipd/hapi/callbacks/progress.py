"""Saying how far it is: a line for some steps, or a bar that grows."""

from __future__ import annotations

import sys
import time
from typing import Any

from minipd.hapi.callbacks.base import Callback

__all__ = ["ProgBarLogger"]

WIDTH = 30


class ProgressBar:
    """`step 2/3 - loss: 0.9325 - 86ms/step`, a line each time (verbose 2), or one line with a bar (verbose 1).

    steps: how many there will be, None if nobody knows.
    """

    def __init__(self, steps: int | None, verbose: int):
        self.steps, self.verbose, self.begun = steps, verbose, time.perf_counter()
        self.width = 0                  # of the line that the next one is written over

    def update(self, step: int, values: list[tuple[str, Any]]) -> None:
        """Say that `step` steps are done, and what is known."""
        each = (time.perf_counter() - self.begun) / max(step, 1)
        parts = [self._where(step), *(f"{name}: {_number(value)}" for name, value in values)]
        if self.verbose == 1 and self.steps is not None and step < self.steps:
            parts.append(f"ETA: {each * (self.steps - step):.0f}s")
        text = " - ".join([*parts, _duration(each)])
        if self.verbose == 2:
            sys.stdout.write(text + "\n")
        else:
            sys.stdout.write("\r" + text.ljust(self.width) + ("\n" if step == self.steps else ""))
            self.width = len(text)
        sys.stdout.flush()

    def _where(self, step: int) -> str:
        if self.steps is None:
            return f"step {step}"
        text = f"step {step:{len(str(self.steps))}}/{self.steps}"
        if self.verbose != 1:
            return text
        full = WIDTH * step // self.steps
        bar = "=" * WIDTH if step >= self.steps else "=" * (full - 1) + ">" * (full > 0) + "." * (WIDTH - full)
        return f"{text} [{bar}]"


def _number(value: Any) -> str:
    """
    >>> _number([0.25, 0.00001]), _number(3)
    ('0.2500 1.0000e-05', '3')
    """
    if isinstance(value, (list, tuple)):
        return " ".join(map(_number, value))
    if isinstance(value, int) or not hasattr(value, "__float__"):
        return str(value)
    return f"{float(value):.4f}" if abs(float(value)) > 1e-3 or float(value) == 0 else f"{float(value):.4e}"


def _duration(seconds: float) -> str:
    """
    >>> _duration(2.0), _duration(0.0861), _duration(0.00002)
    ('2s/step', '86ms/step', '20us/step')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}/step"
    return f"{seconds * 1e6:.0f}us/step"


class ProgBarLogger(Callback):
    """Prints losses, metrics and the time of a step.

    log_freq: how many steps from one line to the next.
    verbose: 0 prints nothing, 1 a bar that grows, 2 a line each time.
    """

    def __init__(self, log_freq: int = 1, verbose: int = 2):
        super().__init__()
        self.log_freq, self.verbose = log_freq, verbose
        self.bar = ProgressBar(None, verbose)
        self.names: list[str] = []
        self.done = self.samples = 0

    def _begin(self, text: str, steps: int | None, names: list[str]) -> None:
        self.names, self.done, self.samples = names, 0, 0
        if self.verbose and text:
            print(text)
        self.bar = ProgressBar(steps, self.verbose)

    def _update(self, logs: dict | None) -> None:
        if self.verbose:
            self.bar.update(self.done, [(name, logs[name]) for name in self.names if logs and name in logs])

    def _batch(self, step: int, logs: dict | None) -> None:
        self.done = step + 1
        self.samples += int((logs or {}).get("batch_size") or 0)
        if self.done % self.log_freq == 0 or self.done == self.bar.steps:
            self._update(logs)

    def _end(self, what: str, logs: dict | None) -> None:
        if self.bar.steps is None and self.done % self.log_freq:
            self._update(logs)
        if self.verbose:
            print(f"{what} samples: {self.samples}")

    def on_train_begin(self, logs: dict | None = None) -> None:
        if self.verbose:
            print("The loss value printed in the log is the current step, and the metric is the average value of "
                  "previous steps.")

    def on_epoch_begin(self, epoch: int | None = None, logs: dict | None = None) -> None:
        epochs = self.params.get("epochs")
        text = f"Epoch {(epoch or 0) + 1}" + (f"/{epochs}" if epochs else "")
        self._begin(text, self.params.get("steps"), self.params.get("metrics", []))

    def on_train_batch_end(self, step: int, logs: dict | None = None) -> None:
        self._batch(step, logs)

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        if self.bar.steps is None and self.done % self.log_freq:
            self._update(logs)

    def on_eval_begin(self, logs: dict | None = None) -> None:
        logs = logs or {}
        self._begin("Eval begin...", logs.get("steps"), logs.get("metrics", []))

    def on_eval_batch_end(self, step: int, logs: dict | None = None) -> None:
        self._batch(step, logs)

    def on_eval_end(self, logs: dict | None = None) -> None:
        self._end("Eval", logs)

    def on_predict_begin(self, logs: dict | None = None) -> None:
        self._begin("Predict begin...", (logs or {}).get("steps"), [])

    def on_predict_batch_end(self, step: int, logs: dict | None = None) -> None:
        self._batch(step, logs)

    def on_predict_end(self, logs: dict | None = None) -> None:
        self._end("Predict", logs)
