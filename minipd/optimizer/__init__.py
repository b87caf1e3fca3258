"""Optimizers, and learning-rate schedules (Paddle's `paddle.optimizer`)."""

from minipd.optimizer import lr
from minipd.optimizer.adam import Adam, AdamW
from minipd.optimizer.adam_kin import Adamax, Lamb, NAdam, RAdam
from minipd.optimizer.adaptive import Adadelta, Adagrad, RMSProp
from minipd.optimizer.lbfgs import LBFGS
from minipd.optimizer.optimizer import Optimizer
from minipd.optimizer.sgd import ASGD, SGD, Momentum, Rprop

__all__ = ["ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lamb", "Momentum", "NAdam",
           "Optimizer", "RAdam", "RMSProp", "Rprop", "lr"]
