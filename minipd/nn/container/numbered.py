"""Layers, and parameters, found by number: Sequential, LayerList, ParameterList."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minipd.framework.tensor import Parameter
from minipd.nn.container.base import Container
from minipd.nn.layer import Layer

__all__ = ["LayerList", "ParameterList", "Sequential"]


class _Numbered(Layer):
    """What Sequential and LayerList share: children in order, found by number."""

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._sub_layers.values())

    def _name_at(self, index: int) -> str:
        return name_at(self, "layers", list(self._sub_layers), index)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(list(self)[index])
        return self.__dict__[index if isinstance(index, str) else self._name_at(index)]

    def __setitem__(self, index: Any, layer: Any) -> None:
        if isinstance(index, slice):
            layers = list(self)
            layers[index] = layer
            self._replace(layers)
        else:
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

    def insert(self, index: int, sublayer: Layer) -> Any:
        """Put a layer before the one at `index`; those after it get new numbers.  Returns the container."""
        layers = list(self)
        if not -len(layers) <= index <= len(layers):
            raise IndexError(f"{type(self).__name__}.insert: index {index} is out of range for {len(layers)} layers")
        layers.insert(index, sublayer)
        self._replace(layers)
        return self

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

    # Paddle names the same things otherwise here
    def append(self, module: Layer) -> Sequential:
        return super().append(module)

    def extend(self, sequential: Iterable[Layer]) -> Sequential:
        return super().extend(sequential)

    def insert(self, index: int, module: Layer) -> Sequential:
        return super().insert(index, module)


class LayerList(Container, _Numbered):
    """A list of layers, which is not called itself.

    >>> from minipd.nn import Linear
    >>> blocks = LayerList([Linear(2, 2) for _ in range(3)])
    >>> len(blocks), blocks[-1].full_name() == blocks[2].full_name()
    (3, True)
    """

    def __init__(self, sublayers: Iterable[Layer] | None = None):
        super().__init__()
        self.extend(sublayers or ())

    def pop(self, key: int | slice) -> Any:
        """Take a layer, or a slice of them, out; those after it get new numbers.  Returns what was taken."""
        taken = self[key]
        del self[key]
        return taken

    def _of(self, layers: list[Layer]) -> LayerList:
        return LayerList(layers)


class ParameterList(Container):
    """A list of parameters.

    >>> from minipd.nn.parameter import create_parameter
    >>> weights = ParameterList([create_parameter([2, 2]) for _ in range(3)])
    >>> len(weights), weights[-1] is weights[2]
    (3, True)
    """

    def __init__(self, parameters: Iterable[Parameter] | None = None):
        super().__init__()
        for parameter in parameters or ():
            self.append(parameter)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())

    def __getitem__(self, idx: Any) -> Any:
        return ParameterList(list(self)[idx]) if isinstance(idx, slice) else self.__dict__[self._name_at(idx)]

    def __setitem__(self, idx: int, parameter: Parameter) -> None:
        self.add_parameter(self._name_at(idx), parameter)

    def append(self, parameter: Parameter) -> ParameterList:
        """Put a parameter last.  Returns the list."""
        self.add_parameter(str(len(self)), parameter)
        return self

    def _name_at(self, idx: int) -> str:
        return name_at(self, "parameters", list(self._parameters), idx)


def name_at(owner: Any, what: str, names: list[str], index: Any) -> str:
    """The name at a number, which counts from the end if it is negative."""
    i = index.__index__()
    if not -len(names) <= i < len(names):
        raise IndexError(f"{type(owner).__name__}: index {i} is out of range for {len(names)} {what}")
    return names[i]
