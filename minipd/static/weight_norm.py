"""`static.WeightNormParamAttr`: a weight as a direction and a length, each a parameter."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Parameter, Tensor
from minipd.nn.param_attr import ParamAttr
from minipd.nn.parameter import create_parameter
from minipd.ops.math import square
from minipd.ops.reduce import sum
from minipd.static.program import default_startup_program

__all__ = ["WeightNormParamAttr"]


class WeightNormParamAttr:
    """The attribute of a weight w = g v / |v| that a layer of `static.nn` makes.   (Salimans, Kingma 2016)

    v has the weight's shape and begins as the weight would; g begins as |v|, so that w begins as the weight too.
    dim: the dimension along which lengths are told apart, [1, ..., n, ..., 1]; None: one length for the whole weight.
    The other arguments are those of ParamAttr, for both parameters; their names are `name_v` and `name_g`.
    """

    def __init__(self, dim: int | None = None, name: str | None = None, initializer: Any = None,
                 learning_rate: float = 1.0, regularizer: Any = None, trainable: bool = True,
                 do_model_average: bool = False, need_clip: bool = True):
        self.dim = dim
        self.attr = ParamAttr(name, initializer, learning_rate, regularizer, trainable, do_model_average, need_clip)

    def weight(self, shape: Any, dtype: Any, name: str, first: Any) -> Tensor:
        """The weight.  first: the initializer of a weight without one of its own."""
        name = self.attr.name or name
        rank = len(list(shape))
        if self.dim is not None and not -rank <= self.dim < rank:
            raise ValueError(f"WeightNormParamAttr: expected dim to be None or a dimension of a weight of shape "
                             f"{list(shape)}, got {self.dim}")
        v = create_parameter(shape, dtype, attr=self._named(f"{name}_v"), default_initializer=first)
        lengths = [1] if self.dim is None else [n if i == self.dim % rank else 1 for i, n in enumerate(shape)]
        g = create_parameter(lengths, dtype, attr=self._named(f"{name}_g").starting_as(_LengthOf(v, self)))
        return v * (g / self.length(v, lengths))

    def length(self, v: Tensor, shape: Any) -> Tensor:
        """|v|, over all dimensions but `dim`."""
        axes = [i for i in range(v.ndim) if self.dim is None or i != self.dim % v.ndim]
        return (sum(square(v), axes, keepdim=True) ** 0.5).reshape(list(shape))

    def _named(self, name: str) -> ParamAttr:
        attr = self.attr.starting_as(self.attr.initializer)
        attr.name = name
        return attr


class _LengthOf:
    """The initializer of g: the length of what v begins as."""

    def __init__(self, v: Parameter, attr: WeightNormParamAttr):
        self.v, self.attr = v, attr

    def values(self, key: Tensor, shape: tuple, dtype: Any, window: Any = None) -> Tensor:
        return self.attr.length(Tensor(default_startup_program().trace.first[self.v.name]), shape)
