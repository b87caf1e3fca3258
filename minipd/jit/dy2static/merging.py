"""Two values of which the program takes one: what they must have in common, and what becomes of them.

Tensors of one type, and numbers, become results of the branch; what is the same on both sides stays as it is; lists,
tuples and dicts go element by element.  A number takes the dtype of the tensor that it stands against.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.dim import DimExpr
from minipd.framework.meta import describe
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.structure import Leaf, mapped
from minipd.ir.trace import Trace
from minipd.ir.value import Value
from minipd.jit.dy2static.variables import MISSING
from minipd.ops.creation import assign
from minipd.static.control_flow import value_of

__all__: list[str] = []

NUMBERS = (bool, int, float, complex, np.generic)


class Apart(Exception):
    """Two values that cannot be one.  what: the difference, for people."""


class Merge:
    """The results of a branch, as they are found.  pairs: (on the true side, on the false side, dtype, shape)."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Any, Any, np.dtype, tuple]] = []

    def of(self, a: Any, b: Any) -> Any:
        """A tree with a leaf for every result.

        Raises: Apart.
        """
        count = len(self.pairs)
        try:
            return self._of(a, b)
        except Apart:
            del self.pairs[count:]
            raise

    def _of(self, a: Any, b: Any) -> Any:
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a.payload is b.payload and (
                a.stop_gradient == b.stop_gradient):
            return a
        if isinstance(a, (Tensor, *NUMBERS, DimExpr)) and isinstance(b, (Tensor, *NUMBERS, DimExpr)):
            return self._leaf(a, b)
        if a is b:
            return a
        if type(a) is type(b):
            if isinstance(a, (list, tuple)) and len(a) == len(b):
                items = [self._of(*pair) for pair in zip(a, b, strict=True)]
                return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
            if isinstance(a, dict) and list(a) == list(b):
                return {k: self._of(a[k], b[k]) for k in a}
            if not isinstance(a, (list, tuple, dict)) and equal(a, b):
                return a
        raise Apart

    def _leaf(self, a: Any, b: Any) -> Any:
        if not isinstance(a, Tensor) and not isinstance(b, Tensor) and type(a) is type(b) and equal(a, b):
            return a
        (shape, dtype), (other, other_dtype) = meta(a, b), meta(b, a)
        if dtype != other_dtype or tuple(shape) != tuple(other):
            raise Apart
        self.pairs.append((a, b, dtype, shape))
        return Leaf(len(self.pairs) - 1)

    def guarded(self, tree: Any, on_true: bool) -> Any:
        """A value that only one side has, and that nobody reads on the other: zeros stand for it there."""
        def leaf(x: Any) -> Any:
            if not isinstance(x, (Tensor, *NUMBERS)):
                return x
            shape, dtype = meta(x, x)
            self.pairs.append((x, None, dtype, shape) if on_true else (None, x, dtype, shape))
            return Leaf(len(self.pairs) - 1)
        return mapped(tree, leaf)

    def values(self, trace: Trace, side: int) -> list[Value]:
        """What the region of a side yields."""
        return [as_value(trace, pair[side], pair[2], pair[3]) for pair in self.pairs]


def meta(x: Any, beside: Any) -> tuple[tuple, np.dtype]:
    """Shape and dtype that a value has as a tensor; a number takes the dtype of the tensor beside it, if it can."""
    if isinstance(x, Tensor):
        return tuple(x.payload.shape), x.payload.dtype
    own = _dtype(x)
    if isinstance(beside, Tensor):
        dtype = beside.payload.dtype
        return (), dtype if np.can_cast(own, dtype, "same_kind") and (own.kind == "b") == (dtype.kind == "b") else own
    return (), np.dtype(bool) if isinstance(x, bool) and isinstance(beside, bool) else np.result_type(
        own, _dtype(beside)) if own.kind in "biu" and _dtype(beside).kind in "biu" else current().default_dtype


def _dtype(number: Any) -> np.dtype:
    if isinstance(number, np.generic):
        return number.dtype
    if isinstance(number, bool):
        return dtypes.bool.np
    if isinstance(number, (int, DimExpr)):
        return dtypes.int64.np
    return dtypes.complex_of(current().default_dtype) if isinstance(number, complex) else current().default_dtype


def as_value(trace: Trace, x: Any, dtype: np.dtype, shape: tuple) -> Value:
    """The value of a tensor or number; zeros for None."""
    if isinstance(x, Tensor):
        return value_of(trace, x if isinstance(x.payload, Value) else assign(x))
    number = 0 if x is None else x.item() if isinstance(x, np.generic) else x
    return trace.build.full(shape, number, dtype)


def equal(a: Any, b: Any) -> bool:
    """Whether one value may stand for both: 0.0 and -0.0 may not."""
    try:
        return bool(a == b) and (not isinstance(a, (float, complex, np.inexact)) or repr(a) == repr(b))
    except Exception:  # noqa: BLE001   # whatever a user's class says to a comparison
        return False


def with_contents(tree: Any, held: dict[int, Any]) -> Any:
    """A nested structure with other contents in some of its lists and dicts, given by their ids."""
    tree = held.get(id(tree), tree) if held else tree
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(with_contents(x, held) for x in tree))
    if held and isinstance(tree, (list, tuple)):
        return type(tree)(with_contents(x, held) for x in tree)
    return {k: with_contents(v, held) for k, v in tree.items()} if held and isinstance(tree, dict) else tree


def spelled(x: Any) -> str:
    """What a value is, for errors: tensors by dtype and shape."""
    if x is MISSING:
        return "undefined"
    if isinstance(x, Tensor):
        return f"Tensor {describe(x.payload)}"
    if isinstance(x, (list, tuple)):
        inner = ", ".join(map(spelled, x))
        return f"[{inner}]" if isinstance(x, list) else f"({inner}{',' if len(x) == 1 else ''})"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{k!r}: {spelled(v)}" for k, v in x.items()) + "}"
    text = repr(x)
    return text if len(text) <= 60 else text[:57] + "..."
