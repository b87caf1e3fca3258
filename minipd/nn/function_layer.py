"""Layers that are a function of `nn.functional` with options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.nn.layer import Layer

__all__: list[str] = []


class FunctionLayer(Layer):
    """Calls a function with the options that the layer was made with.

    A subclass names the function, and its constructor has Paddle's parameters.  The options are attributes: printed,
    and read at each call.

    >>> from minipd.nn import functional as F
    >>> class Leak(FunctionLayer):
    ...     function = staticmethod(F.leaky_relu)
    ...     def __init__(self, negative_slope=0.5, name=None):
    ...         super().__init__(name, negative_slope=negative_slope)
    >>> Leak()
    Leak(negative_slope=0.5)
    """

    function: Callable[..., Any]

    def __init__(self, name: str | None = None, **options: Any):
        super().__init__()
        self.name = name
        self._options = tuple(options)
        for option, value in options.items():
            setattr(self, option, value)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return type(self).function(*inputs, **kwargs, **{option: getattr(self, option) for option in self._options})

    def extra_repr(self) -> str:
        shown = [f"{option}={getattr(self, option)}" for option in self._options]
        return ", ".join(shown if self.name is None else [*shown, f"name={self.name}"])
