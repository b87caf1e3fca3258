"""Layers that hold layers: Sequential calls them one after the other, LayerList leaves that to its owner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minipd.nn.layer import Layer

__all__ = ["LayerList", "Sequential"]


class _Numbered(Layer):
    """What Sequential and LayerList share: children in order, found by number."""

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._sub_layers.values())

    def _name_at(self, index: int) -> str:
        names = list(self._sub_layers)
        i = index.__index__()
        if not -len(names) <= i < len(names):
            raise IndexError(f"{type(self).__name__}: index {i} is out of range for {len(names)} layers")
        return names[i]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(list(self)[index])
        return self.__dict__[index if isinstance(index, str) else self._name_at(index)]

    def __setitem__(self, index: int, layer: Layer) -> None:
        self.add_sublayer(self._name_at(index), layer)

    def __delitem__(self, index: Any) -> None:
        left = list(self)
        del left[index]
        self._replace(left)

    def append(self, sublayer: Layer) -> Any:
        """Put a layer last.  Returns the container."""
        self.add_sublayer(str(len(self)), sublayer)
        return self

    def extend(self, sublayers: Iterable[Layer]) -> Any:
        """Put several layers last.  Returns the container."""
        for layer in sublayers:
            self.append(layer)
        return self

    def insert(self, index: int, sublayer: Layer) -> None:
        """Put a layer before the one at `index`; those after it get new numbers."""
        layers = list(self)
        if not -len(layers) <= index <= len(layers):
            raise IndexError(f"{type(self).__name__}.insert: index {index} is out of range for {len(layers)} layers")
        layers.insert(index, sublayer)
        self._replace(layers)

    def _replace(self, layers: list[Layer]) -> None:
        for name in list(self._sub_layers):
            delattr(self, name)
        self.extend(layers)

    def _of(self, layers: list[Layer]) -> Any:
        return Sequential(*layers)


class Sequential(_Numbered):
    """The layers one after the other; the result of each is the input of the next.

    layers: layers, (name, layer) pairs, or one list or dict of them.

    >>> from minipd.nn import Linear, ReLU
    >>> model = Sequential(Linear(3, 8), ReLU(), Linear(8, 1))
    >>> list(model.state_dict())
    ['0.weight', '0.bias', '2.weight', '2.bias']
    """

    def __init__(self, *layers: Any):
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            layers = tuple(layers[0].items())
        elif len(layers) == 1 and isinstance(layers[0], list):
            layers = tuple(layers[0])
        for i, layer in enumerate(layers):
            name, layer = layer if isinstance(layer, (tuple, list)) else (str(i), layer)
            self.add_sublayer(name, layer)

    def forward(self, input: Any) -> Any:
        for layer in self:
            input = layer(input)
        return input


class LayerList(_Numbered):
    """A list of layers, which is not called itself.

    The random draws of its layers are named after the list all the same: `blocks.0`, `blocks.1`, ...

    >>> from minipd.nn import Linear
    >>> blocks = LayerList([Linear(2, 2) for _ in range(3)])
    >>> len(blocks), blocks[-1].full_name() == blocks[2].full_name()
    (3, True)
    """

    def __init__(self, sublayers: Iterable[Layer] | None = None):
        super().__init__()
        self.extend(sublayers or ())

    def _enter(self, scope: str) -> None:
        super()._enter(scope)
        for name, layer in self._sub_layers.items():
            layer._enter(f"{scope}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, Layer) and self._scope:
            value._enter(f"{self._scope}.{name}")

    def _of(self, layers: list[Layer]) -> LayerList:
        return LayerList(layers)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("a LayerList is not called: call its layers in turn, or use Sequential")
