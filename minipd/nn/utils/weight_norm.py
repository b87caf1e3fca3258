"""Weight norm: the length of a weight and its direction as parameters of their own (Salimans, Kingma 2016)."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn.layer import Layer
from minipd.nn.parameter import create_parameter, parameter_name
from minipd.nn.utils.reparametrized import Reparametrized, parameter_of
from minipd.ops.elementary import sqrt
from minipd.ops.math import square
from minipd.ops.reduce import sum

__all__ = ["remove_weight_norm", "weight_norm"]


class _WeightNorm(Reparametrized):
    """weight = g v / ||v||; `kept` is the dimension whose slices have a length each, None for one length of all."""

    def __init__(self, name: str, kept: int | None):
        super().__init__(name)
        self.kept = kept
        self.hook: Any = None

    def length(self, v: Tensor) -> Tensor:
        """||v||: [v.shape[kept]], or 0-D."""
        return sqrt(sum(square(v), [i for i in range(v.ndim) if i != self.kept]))

    def weight(self, layer: Layer) -> Tensor:
        v, g = getattr(layer, f"{self.name}_v"), getattr(layer, f"{self.name}_g")
        factor = g / self.length(v)
        if self.kept is not None:
            factor = factor.reshape([-1 if i == self.kept else 1 for i in range(v.ndim)])
        return v * factor


def weight_norm(layer: Layer, name: str = "weight", dim: int | None = 0) -> Layer:
    """Replace the parameter `name` by `<name>_g`, its lengths, and `<name>_v`, its directions.  Returns the layer.

    dim: the dimension whose slices have a length each; None, or -1, for one length of the whole.
    Raises: ValueError for another dim, for a layer without that parameter, or one that is replaced already.

    >>> from minipd.nn import Linear
    >>> layer = weight_norm(Linear(2, 3), dim=1)
    >>> [(name, p.shape) for name, p in layer.named_parameters() if name != "bias"]
    [('weight_v', paddle.Size([2, 3])), ('weight_g', paddle.Size([3]))]
    """
    old = parameter_of("weight_norm", layer, name)
    if dim is not None and not -old.ndim <= dim < old.ndim:
        raise ValueError(f"weight_norm: expected a dim in {-old.ndim} .. {old.ndim - 1}, or None, got {dim}")
    hook = _WeightNorm(name, None if dim in (None, -1) else dim % old.ndim)
    delattr(layer, name)
    for part, value in (("v", old.detach()), ("g", hook.length(old.detach()))):
        p = create_parameter(value.shape, value.dtype, parameter_name(layer.full_name(), False))
        p.set_value(value)
        layer.add_parameter(f"{name}_{part}", p)
    hook.put(layer, hook.weight(layer))
    hook.hook = layer.register_forward_pre_hook(hook)
    return layer


def remove_weight_norm(layer: Layer, name: str = "weight") -> Layer:
    """Undo `weight_norm`: the parameter `name` again, with the values it has now.  Returns the layer.

    Raises: ValueError if the layer has no weight norm of that name.
    """
    hook = _WeightNorm.of(layer, name)
    if hook is None:
        raise ValueError(f"remove_weight_norm: {layer!r} has no weight norm of {name!r}; weight_norm gives it one")
    weight = hook.weight(layer)
    hook.hook.remove()
    for attribute in (name, f"{name}_g", f"{name}_v"):
        delattr(layer, attribute)
    p = create_parameter(weight.shape, weight.dtype, parameter_name(layer.full_name(), False))
    p.set_value(weight)
    layer.add_parameter(name, p)
    return layer
