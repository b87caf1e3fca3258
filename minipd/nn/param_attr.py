"""ParamAttr: what a layer's user wants of a parameter that the layer creates."""

from __future__ import annotations

import copy
from typing import Any

__all__ = ["ParamAttr"]


class ParamAttr:
    """Paddle's `ParamAttr`.

    Args:
        name: instead of the generated one (`linear_0.w_0`); it must be unique.
        initializer: instead of the layer's own.
        learning_rate: a factor on the optimizer's rate.
        regularizer: L1Decay or L2Decay, instead of the optimizer's.
        trainable: False freezes the parameter.
        do_model_average: accepted, and without effect.
        need_clip: False keeps the gradient out of gradient clipping.

    >>> from minipd.nn import Linear, initializer
    >>> Linear(2, 1, weight_attr=ParamAttr(name="w", initializer=initializer.Constant(0.5)), bias_attr=False).weight
    Parameter containing:
    Tensor(shape=[2, 1], dtype=float32, place=Place(cpu), stop_gradient=False,
           [[0.50000000],
            [0.50000000]])
    """

    def __init__(self, name: str | None = None, initializer: Any = None, learning_rate: float = 1.0,
                 regularizer: Any = None, trainable: bool = True, do_model_average: bool = True,
                 need_clip: bool = True):
        self.name, self.initializer, self.learning_rate = name, initializer, learning_rate
        self.regularizer, self.trainable, self.need_clip = regularizer, trainable, need_clip
        self.do_model_average = do_model_average

    def starting_as(self, initializer: Any) -> ParamAttr:
        """The same with another initializer."""
        other = copy.copy(self)
        other.initializer = initializer
        return other

    @staticmethod
    def of(attr: Any) -> ParamAttr:
        """What may stand for a ParamAttr: None or True (all defaults), a name, an initializer.

        Raises: TypeError for anything else.
        """
        if isinstance(attr, ParamAttr):
            return attr
        if attr is None or attr is True:
            return ParamAttr()
        if isinstance(attr, str):
            return ParamAttr(name=attr)
        if hasattr(attr, "values") and not isinstance(attr, dict):
            return ParamAttr(initializer=attr)
        raise TypeError(f"parameter attribute: expected a ParamAttr, a name, an Initializer, None, or False for no "
                        f"parameter, got {attr!r}")
