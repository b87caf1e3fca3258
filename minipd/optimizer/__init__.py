"""Optimizers, and learning-rate schedules (Paddle's `paddle.optimizer`)."""

from minipd.optimizer import lr
from minipd.optimizer.adam import Adam, AdamW
from minipd.optimizer.optimizer import Optimizer
from minipd.optimizer.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr"]
