"""InputSpec: what a program's input will look like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import DimExpr, symbol

__all__ = ["InputSpec", "parse_spec"]


class InputSpec:
    """Paddle's `paddle.static.InputSpec`: shape, dtype and name of an input.

    A dimension is a size, None or -1 (any size, whatever other dimensions are), or the name of a symbol: dimensions of
    one name have one size.

    >>> InputSpec([None, "S", 64], "float32", name="x")
    InputSpec(shape=(-1, S, 64), dtype=paddle.float32, name=x, stop_gradient=True)

    Raises: ValueError for a negative size other than -1.
    """

    def __init__(self, shape: Sequence[int | str | DimExpr | None], dtype: Any = "float32", name: str | None = None,
                 stop_gradient: bool = True):
        dims = tuple(symbol(d) if isinstance(d, str) else -1 if d is None else d for d in shape)
        for d in dims:
            if isinstance(d, int) and d < -1:
                raise ValueError(f"InputSpec: expected sizes of at least 0, or -1 for any size, got {d} in "
                                 f"{list(shape)}")
        self.shape: tuple[int | DimExpr, ...] = dims
        self.dtype = dtypes.of(dtypes.to_np(dtype))
        self.name, self.stop_gradient = name, stop_gradient

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> InputSpec:
        """The spec of tensors like this one."""
        return cls(tuple(tensor.shape), tensor.dtype, name)

    @classmethod
    def from_numpy(cls, ndarray: Any, name: str | None = None) -> InputSpec:
        """The spec of arrays like this one."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def batch(self, batch_size: int | Any) -> InputSpec:
        """Put a batch dimension in front, in place; returns the spec.

        Raises: ValueError for a size that is not a positive int or -1.
        """
        if not isinstance(batch_size, int) or batch_size < 1 and batch_size != -1:
            raise ValueError(f"InputSpec.batch: expected a positive size, or -1 for any, got {batch_size!r}")
        self.shape = (batch_size, *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Take the first dimension away, in place; returns the spec.

        Raises: ValueError for the spec of a 0-D tensor.
        """
        if not self.shape:
            raise ValueError("InputSpec.unbatch: expected a spec with at least one dimension, got a 0-D one")
        self.shape = self.shape[1:]
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputSpec) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.name, self.stop_gradient))

    def __repr__(self) -> str:
        dims = ", ".join(map(str, self.shape)) + ("," if len(self.shape) == 1 else "")
        return (f"InputSpec(shape=({dims}), dtype={self.dtype}, name={self.name}, "
                f"stop_gradient={self.stop_gradient})")


def parse_spec(text: str, name: str | None = None) -> InputSpec:
    """A specification as text: a dtype, short or not, and dimensions.

    >>> parse_spec("bf16[8, S]", "x")
    InputSpec(shape=(8, S), dtype=paddle.bfloat16, name=x, stop_gradient=True)
    >>> parse_spec("float32[8,S,-1]")
    InputSpec(shape=(8, S, -1), dtype=paddle.float32, name=None, stop_gradient=True)

    Raises: ValueError for text that is none.
    """
    found = re.fullmatch(r"(\w+)\[([\w\s,-]*)\]", text.strip())
    dtype, dims = ("", "") if found is None else found.groups()
    short = {t.short: t for t in dtypes.ALL}
    try:
        known = dtypes.to_np(short.get(dtype, dtype))
    except TypeError:
        raise ValueError(f"spec: expected a dtype and dimensions, such as f32[2, S], got {text!r}; the dtypes are "
                         f"{', '.join(short)}") from None
    words = [d.strip() for d in dims.split(",") if d.strip()]
    return InputSpec([int(d) if d.lstrip("-").isdecimal() else d for d in words], known, name)
