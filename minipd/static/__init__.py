"""Paddle's static API: what is about programs by name.

    input          InputSpec, the declaration of an input
    control_flow   cond
    metric         accuracy, auc
    nn             the names of `paddle.static.nn`
"""

from minipd.static import nn
from minipd.static.input import InputSpec
from minipd.static.metric import accuracy, auc

__all__ = ["InputSpec", "accuracy", "auc", "nn"]
