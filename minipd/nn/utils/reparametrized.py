"""A weight that is computed from other parameters before every forward: what weight and spectral norm share."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Parameter, Tensor
from minipd.nn.layer import Layer

__all__: list[str] = []


class Reparametrized:
    """A forward pre-hook of a layer that computes `layer.<name>`.  A subclass defines `weight(layer)`."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, layer: Layer, inputs: Any) -> None:
        self.put(layer, self.weight(layer))

    def put(self, layer: Layer, weight: Tensor) -> None:
        """Let the layer find the weight under its name.  It is a value, neither a parameter nor a buffer."""
        layer.__dict__[self.name] = weight

    def weight(self, layer: Layer) -> Tensor:
        """The weight, a function of the layer's parameters."""
        raise NotImplementedError

    @classmethod
    def of(cls, layer: Layer, name: str) -> Any:
        """The one that computes `layer.<name>`, or None."""
        hooks = layer._pre_hooks.entries if layer._pre_hooks else ()
        return next((hook for hook, *_ in hooks if isinstance(hook, cls) and hook.name == name), None)


def parameter_of(what: str, layer: Layer, name: str) -> Parameter:
    """The parameter to replace.  Raises: ValueError if the layer has no such parameter, or it is replaced already."""
    if Reparametrized.of(layer, name) is not None:
        raise ValueError(f"{what}: {type(layer).__name__}.{name} is computed from other parameters already")
    found = layer._parameters.get(name)
    if found is None:
        raise ValueError(f"{what}: expected a layer with a parameter {name!r}, got {layer!r} with "
                         f"{list(layer._parameters) or 'none'}")
    return found
