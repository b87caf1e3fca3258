"""Shape and dtype without data."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes

__all__: list[str] = []


class Meta:
    """What a shape rule returns, and what a gradient saves of an operand whose values it does not need.

    shape: tuple of `int | DimExpr`.  dtype: `numpy.dtype`.  Everything with these two attributes serves as a meta:
    arrays, IR values and distributed values too.

    >>> Meta((2, 3), np.dtype("float32"))
    f32[2, 3]
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple, dtype: np.dtype):
        self.shape, self.dtype = shape, dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Meta) and self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def materialize(self, asked: str) -> Any:
        """Values were asked for, and there are none.  Always raises TypeError."""
        raise TypeError(f"{asked}: expected a tensor with values, got {describe(self)}, of which only shape and dtype "
                        "are reckoned here")

    def __repr__(self) -> str:
        return describe(self)


def is_traced(payload: Any) -> bool:
    """Whether a payload stands for a value of a program that is being written: only a run has it."""
    return getattr(type(payload), "traced", False)


def is_pending(payload: Any) -> bool:
    """Whether a payload has been noted and not computed yet (`jit.segments`)."""
    return type(payload) is not np.ndarray and hasattr(type(payload), "held_by")


class Unfilled(Meta):
    """The payload of a parameter made lazily (LazyGuard), until it is filled.

    Where only shape and dtype matter (shape rules, a trace), it is a meta like any other.  Everything by which a kernel
    could read it as an array says what is missing instead: no call has to check for it.
    """

    __slots__ = ("name",)

    def __init__(self, shape: tuple, dtype: np.dtype, name: str):
        super().__init__(shape, dtype)
        self.name = name

    def materialize(self, asked: str) -> Any:
        raise UnfilledError(f"{asked}: parameter {self.name} {describe(self)} was made under LazyGuard and has no "
                            "values yet: call its initialize() first, or give it placements with shard_tensor, which "
                            "fills this rank's part")

    def __getattr__(self, attribute: str) -> Any:       # what arrays have and metas lack: reshape, astype, T, ...
        if attribute.startswith("__"):                  # protocols that Python and numpy ask for
            raise AttributeError(attribute)
        self.materialize(f"operator (.{attribute})")

    def __array__(self, *_: Any, **__: Any) -> Any:
        self.materialize("operator")

    def __array_ufunc__(self, ufunc: Any, method: str, *_: Any, **__: Any) -> Any:
        self.materialize(f"operator ({ufunc.__name__})")

    def __getitem__(self, index: Any) -> Any:
        self.materialize("operator (indexing)")


class UnfilledError(RuntimeError, AttributeError):
    """A parameter was used before it had values.  (Also an AttributeError: `hasattr` stays a question.)"""


def describe(x: Any) -> str:
    """`f32[2, 3]` for anything with a shape and a dtype; the repr of everything else (Python scalars)."""
    if not hasattr(x, "dtype"):
        return repr(x)
    d = x.dtype.np if isinstance(x.dtype, dtypes.DataType) else x.dtype
    return f"{dtypes.of(d).short}[{', '.join(map(str, x.shape))}]"
