"""Pending tensors: what the result of a call is while the call has been noted and not computed."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from minipd.framework.context import Ground
from minipd.framework.meta import describe
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.framework.views import share_view

__all__: list[str] = []


class Pending:
    """The payload of a tensor that has not been computed.  Shape and dtype are known; for anything else that an array
    has, the segment is flushed.

    slot: which result of the segment it is.  array: the value, once the segment has been flushed.  handles: weak
    references to the tensors that hold it.
    """

    __slots__ = ("__weakref__", "array", "dtype", "ground", "handles", "shape", "slot")

    ground: Ground
    slot: int
    shape: tuple
    dtype: np.dtype
    array: np.ndarray | None
    handles: list

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def materialize(self, asked: str) -> np.ndarray:
        """The value; the segment is flushed for it."""
        if self.array is None:
            self.ground.settle(asked)
        if self.array is None:
            raise RuntimeError(f"{asked}: {describe(self)} was never computed, because an earlier operator of its "
                               "segment has failed")
        return self.array

    def held_by(self, x: Tensor) -> None:
        """One more tensor holds this payload."""
        self.handles.append(ref(x))

    def detached(self, handle: Tensor) -> Tensor:
        """`handle.detach()`"""
        return ROWS["share_data_"](handle)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.materialize("numpy.asarray()"), dtype, copy=copy)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"a pending tensor has no {name}")
        return getattr(self.materialize(f".{name}"), name)

    def __repr__(self) -> str:
        return repr(self.materialize("repr()"))


def is_unknown(payload: Any) -> bool:
    """Whether a payload is pending."""
    return type(payload) is Pending and payload.array is None


def place(live: list[Pending]) -> None:
    """Let the tensors that hold these payloads hold the arrays instead; views are views of their bases again."""
    views = []
    for p in live:
        for handle in p.handles:
            x = handle()
            if x is None or x.payload is not p:
                continue
            x.views = None
            if x.view_of is None:
                x.payload = p.array
            else:
                views.append((p.slot, x))
    for _, x in sorted(views, key=lambda pair: pair[0]):        # a base is older than what is taken from it
        base, row, attrs, _ = x.view_of                         # type: ignore[misc]
        x.view_of = None
        x.payload = row.kernel(base.payload, **attrs)
        share_view(base, x, row, attrs)
