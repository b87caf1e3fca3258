"""Stopping when it gets no better."""

from __future__ import annotations

import os

from minipd.hapi.callbacks.base import Callback
from minipd.hapi.callbacks.monitor import Monitor

__all__ = ["EarlyStopping"]


class EarlyStopping(Callback):
    """Stops training after `patience` evaluations that are no better than the best one.

    Args:
        monitor: which number of the evaluation to watch: "loss", or the name of a metric.
        mode: "min" or "max" is better; "auto" says max for accuracies and min for all else.
        patience: 0 and 1 both stop at the first evaluation that is not better (and 0, as in Paddle, at any).
        verbose: 1 says when it stops.
        min_delta: how much better an evaluation has to be.
        baseline: what the first one has to beat.
        save_best_model: keep the best model as `best_model` in the folder that `fit` saves to.
    """

    def __init__(self, monitor: str = "loss", mode: str = "auto", patience: int = 0, verbose: int = 1,
                 min_delta: float = 0, baseline: float | None = None, save_best_model: bool = True):
        super().__init__()
        self.monitor = Monitor("EarlyStopping", monitor, mode, min_delta, baseline)
        self.patience, self.verbose, self.save_best_model = patience, verbose, save_best_model
        self.save_dir: str | None = None
        self.waited = self.epoch = 0

    def on_train_begin(self, logs: dict | None = None) -> None:
        self.waited = self.epoch = 0
        self.monitor.reset()

    def on_eval_end(self, logs: dict | None = None) -> None:
        value = self.monitor.value(logs)
        if value is None or self.model is None:
            return
        self.epoch += 1
        best_model = os.path.join(self.save_dir, "best_model") if self.save_best_model and self.save_dir else None
        if self.monitor.better(value):
            self.waited = 0
            if best_model:
                self.model.save(best_model)
        else:
            self.waited += 1
        if self.waited >= self.patience:
            self.model.stop_training = True
            if self.verbose > 0:
                print(f"Epoch {self.epoch}: Early stopping.")
                if best_model:
                    print(f"Best checkpoint has been saved at {os.path.abspath(best_model)}")
