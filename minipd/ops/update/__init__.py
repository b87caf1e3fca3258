"""Optimizers are operators (decision 7): functional, one row each.

Step and learning rate are operands, so that a compiled program bakes neither in.  So is `skip_update`, 0-D bool (or
False): where it holds, everything stays as it was, for a step whose gradients turned out not to be finite.
"""

from minipd.ops.update.adam import Adamax, AdamW, Amsgrad, Lamb, NAdam, RAdam
from minipd.ops.update.adaptive import Adadelta, Adagrad, RmsProp
from minipd.ops.update.plain import Asgd, Momentum, Rprop, Sgd

__all__ = ["Adadelta", "Adagrad", "AdamW", "Adamax", "Amsgrad", "Asgd", "Lamb", "Momentum", "NAdam", "RAdam", "RmsProp",
           "Rprop", "Sgd"]
