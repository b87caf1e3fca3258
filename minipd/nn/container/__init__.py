"""Layers that hold layers or parameters, found by number or by key.

Sequential calls its layers one after the other; the others leave that to their owner.
"""

from minipd.nn.container.keyed import LayerDict, ParameterDict
from minipd.nn.container.numbered import LayerList, ParameterList, Sequential

__all__ = ["LayerDict", "LayerList", "ParameterDict", "ParameterList", "Sequential"]
