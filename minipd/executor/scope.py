"""Scopes: where an executor finds program state, and stores it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping

import numpy as np

from minipd.framework.tensor import Tensor

__all__ = ["Scope", "TensorScope"]


class Scope(dict[str, np.ndarray]):
    """Program state by name."""


class TensorScope(MutableMapping[str, np.ndarray]):
    """Tensors, by name, as a scope: program state stays in the handles that a model holds.

    Subclasses say what array of a tensor the program means (`__getitem__`), and how it takes a new one (`__setitem__`).
    """

    def __init__(self, tensors: Mapping[str, Tensor]):
        self.tensors = tensors

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"program state {name!r} belongs to a tensor and cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)
