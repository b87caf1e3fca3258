"""Where an input of a predictor is put, and a result found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.framework.tensor import Tensor as Handle
from minipd.inference.kinds import DataType, data_type_of

__all__ = ["Tensor"]


class Tensor:
    """`paddle.inference.Tensor`: a place for one array, which a predictor gives.

    name: of the input or result.  dtype: as the program declares it.  array: what is there, None at first.
    """

    def __init__(self, name: str, dtype: np.dtype):
        self.name, self._dtype = name, dtype
        self.array: np.ndarray | None = None
        self._reshaped: tuple[int, ...] = (0,)
        self._lod: list = []

    def reshape(self, shape: Sequence[int] | int) -> None:
        """Announce the shape of what will be copied; an array says it by itself, so there is no need to."""
        self._reshaped = (shape,) if isinstance(shape, int) else tuple(shape)

    def copy_from_cpu(self, data: np.ndarray) -> None:
        """Copy an array to here.

        Raises: TypeError for what is no array, and for elements of another dtype than the program takes.
        """
        self.array = np.array(self._checked("copy_from_cpu", data))

    def share_external_data(self, data: Any) -> None:
        """Let the input be a tensor, without a copy: what is written into it later is seen.

        Raises: TypeError as `copy_from_cpu`.
        """
        if not isinstance(data, Handle):
            raise TypeError(f"share_external_data: expected a Tensor for {self.name!r}, got {type(data).__name__}")
        self.array = self._checked("share_external_data", data.values("share_external_data"))

    def copy_to_cpu(self) -> np.ndarray:
        """A copy of what is here.

        Raises: RuntimeError where nothing is yet.
        """
        return np.array(self.held("copy_to_cpu"))

    def shape(self) -> list[int]:
        """The shape of what is here, or of what `reshape` has announced."""
        return list(self._reshaped if self.array is None else self.array.shape)

    def type(self) -> DataType:
        """What the elements are."""
        return data_type_of(self._dtype)

    def lod(self) -> list:
        """What `set_lod` was given."""
        return self._lod

    def set_lod(self, lod: list) -> None:
        """Remembered; no operator of minipd reads it."""
        self._lod = lod

    def held(self, who: str) -> np.ndarray:
        """What is here.   Raises: RuntimeError where nothing is yet."""
        if self.array is None:
            raise RuntimeError(f"{who}: expected an array in {self.name!r}, got none yet; copy_from_cpu puts one into "
                               "an input, and run() into the results")
        return self.array

    def _checked(self, who: str, data: Any) -> np.ndarray:
        if not isinstance(data, np.ndarray):
            raise TypeError(f"{who}: expected a numpy array for {self.name!r}, got {type(data).__name__}")
        if data.dtype != self._dtype:
            raise TypeError(f"{who}: expected elements of dtype {self._dtype} for {self.name!r}, got {data.dtype}; "
                            f"convert them, astype({str(self._dtype)!r})")
        return data

    def __repr__(self) -> str:
        return f"Tensor({self.name!r}, {self._dtype}, {'empty' if self.array is None else self.shape()})"
