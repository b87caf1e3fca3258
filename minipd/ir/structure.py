"""Nested results: what a traced function or a branch returns, as a flat list of tensors and a shape to rebuild it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.framework.tensor import Tensor

__all__ = ["Structure", "flatten", "mapped"]


class Leaf:
    """Stands for tensor number `index`."""

    def __init__(self, index: int):
        self.index = index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leaf) and self.index == other.index

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "Tensor"


class Structure:
    """The nesting of a result.  Two are equal if lists, tuples, dicts and the values that are no tensors agree.

    >>> from minipd.ops.creation import to_tensor
    >>> leaves, structure = flatten({"a": [to_tensor(1), None], "b": to_tensor(2)})
    >>> len(leaves), structure
    (2, {'a': [Tensor, None], 'b': Tensor})
    >>> structure.rebuild(["x", "y"])
    {'a': ['x', None], 'b': 'y'}
    """

    def __init__(self, tree: Any):
        self.tree = tree

    def rebuild(self, leaves: list) -> Any:
        """The nested result with `leaves` in the places of its tensors."""
        return mapped(self.tree, lambda node: leaves[node.index] if isinstance(node, Leaf) else node)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and _same(self.tree, other.tree)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.tree)


def flatten(tree: Any) -> tuple[list[Tensor], Structure]:
    """The tensors in nested lists, tuples and dicts, in order, and the structure around them."""
    leaves: list[Tensor] = []

    def take(node: Any) -> Any:
        if not isinstance(node, Tensor):
            return node
        leaves.append(node)
        return Leaf(len(leaves) - 1)
    return leaves, Structure(mapped(tree, take))


def mapped(tree: Any, f: Callable[[Any], Any]) -> Any:
    """A nested structure with f of everything that is no list, tuple or dict."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):        # a named tuple
        return type(tree)(*(mapped(x, f) for x in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(x, f) for x in tree)
    if isinstance(tree, dict):
        return {k: mapped(v, f) for k, v in tree.items()}
    return f(tree)


def _same(a: Any, b: Any) -> bool:
    """Equality that keeps lists and tuples, 1 and True apart."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same(a[k], b[k]) for k in a)
    return a is b or bool(a == b)
