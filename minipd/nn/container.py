"""Layers that hold layers or parameters, found by number or by key.

Sequential calls its layers one after the other; the others leave that to their owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minipd.framework.tensor import Parameter
from minipd.nn.layer import Layer

__all__ = ["LayerDict", "LayerList", "ParameterDict", "ParameterList", "Sequential"]


class _Container(Layer):
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


class LayerList(_Container, _Numbered):
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


class _Keyed(_Container):
    """What LayerDict and ParameterDict share: entries found by key, in the order of insertion."""

    @property
    def _entries(self) -> Mapping[str, Any]:
        """What is in it, by key."""
        raise NotImplementedError

    def _put(self, key: str, value: Any) -> None:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __getitem__(self, key: str) -> Any:
        if key not in self._entries:
            raise KeyError(f"{type(self).__name__}: expected one of {list(self._entries)}, got {key!r}")
        return self._entries[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._put(key, value)

    def __delitem__(self, key: str) -> None:
        self[key]                           # which says what there is
        delattr(self, key)

    def pop(self, key: str) -> Any:
        """Take an entry out.  Returns it."""
        taken = self[key]
        del self[key]
        return taken

    def clear(self) -> None:
        """Take all entries out."""
        for key in list(self):
            del self[key]

    def keys(self) -> Any:
        """The keys, in order."""
        return self._entries.keys()

    def values(self) -> Any:
        """The entries, in order."""
        return self._entries.values()

    def items(self) -> Any:
        """(key, entry), in order."""
        return self._entries.items()

    def update(self, entries: Any) -> None:
        """Put all entries of another such container, a dict, or a list of (key, entry) pairs in.

        Raises: TypeError for anything else.
        """
        if not isinstance(entries, Iterable):
            raise TypeError(f"{type(self).__name__}: expected a dict or (key, entry) pairs, got "
                            f"{type(entries).__name__}")
        for i, pair in enumerate(entries.items() if hasattr(entries, "items") else entries):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"{type(self).__name__}: expected a (key, entry) pair at position {i}, got {pair!r}")
            self._put(*pair)


class LayerDict(_Keyed):
    """A dict of layers, which is not called itself.

    >>> from minipd.nn import Linear, ReLU
    >>> parts = LayerDict({"map": Linear(2, 3), "bend": ReLU()})
    >>> list(parts), list(parts.state_dict())
    (['map', 'bend'], ['map.weight', 'map.bias'])
    """

    def __init__(self, sublayers: Any = None):
        super().__init__()
        self.update(sublayers or ())

    @property
    def _entries(self) -> Mapping[str, Layer]:
        return self._sub_layers

    def _put(self, key: str, value: Any) -> None:
        self.add_sublayer(key, value)


class ParameterDict(_Keyed):
    """A dict of parameters.

    >>> from minipd.nn.parameter import create_parameter
    >>> scales = ParameterDict({"low": create_parameter([1]), "high": create_parameter([2])})
    >>> [(name, p.shape) for name, p in scales.named_parameters()]
    [('low', paddle.Size([1])), ('high', paddle.Size([2]))]
    """

    def __init__(self, parameters: Any = None):
        super().__init__()
        self.update(parameters or ())

    @property
    def _entries(self) -> Mapping[str, Parameter]:
        return self._parameters

    def _put(self, key: str, value: Any) -> None:
        self.add_parameter(key, value)


class ParameterList(_Container):
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
