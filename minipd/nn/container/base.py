"""What containers share that are not called themselves."""

from __future__ import annotations

from typing import Any

from minipd.nn.layer import Layer

__all__: list[str] = []


class Container(Layer):
    """What all share that are not called themselves: the random draws of the layers inside are named after it all the
    same (`blocks.0`, `blocks.1`, ...)."""

    def _enter(self, scope: str) -> None:
        super()._enter(scope)
        for name, layer in self._sub_layers.items():
            layer._enter(f"{scope}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, Layer) and self._scope:
            value._enter(f"{self._scope}.{name}")

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"a {type(self).__name__} is not called: its owner uses what is in it")
