"""Layers, and parameters, found by key: LayerDict, ParameterDict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minipd.framework.tensor import Parameter
from minipd.nn.container.base import Container
from minipd.nn.layer import Layer

__all__ = ["LayerDict", "ParameterDict"]


class _Keyed(Container):
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

    def _put_all(self, entries: Any) -> None:
        """Put the entries of another such container, a dict, or a list of pairs in.  TypeError for anything else."""
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

    def update(self, sublayers: Any) -> None:
        """Put the layers of another LayerDict, a dict, or a list of (key, layer) pairs in.

        Raises: TypeError for anything else.
        """
        self._put_all(sublayers)

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

    def update(self, parameters: Any) -> None:
        """Put the parameters of another ParameterDict, a dict, or a list of (key, parameter) pairs in.

        Raises: TypeError for anything else.
        """
        self._put_all(parameters)

    @property
    def _entries(self) -> Mapping[str, Parameter]:
        return self._parameters

    def _put(self, key: str, value: Any) -> None:
        self.add_parameter(key, value)
