"""Types of values that have a place: Paddle's AllocatedDenseTensorType."""

from __future__ import annotations

from typing import Any, ClassVar

from minipd.ir.types import DenseTensorType, TensorType, Type, VectorType, type_keyword

__all__ = ["AllocatedTensorType", "allocated"]


@type_keyword("cpu_tensor", "gpu_tensor", "undefined_tensor", "custom_tensor")
class AllocatedTensorType(TensorType):
    """A dense tensor in the memory of a place.  What a run is fed has none of its own: `undefined`.

    >>> import numpy as np
    >>> AllocatedTensorType("cpu", (2, 3), np.dtype("float32"))
    cpu_tensor<2x3xf32>
    """

    __slots__ = ("place",)
    place: str
    PLACES: ClassVar[tuple[str, ...]] = ("cpu", "gpu", "undefined", "custom")

    def __new__(cls, place: str, shape: tuple, dtype: Any) -> AllocatedTensorType:
        if place not in cls.PLACES:
            raise ValueError(f"AllocatedTensorType: expected a place among {', '.join(cls.PLACES)}, got {place!r}")
        shape = tuple(shape)
        return cls.unique((place, shape, dtype), shape, dtype, place)

    @property
    def logical(self) -> Type:
        return DenseTensorType(self.shape, self.dtype)

    def __reduce__(self) -> tuple:
        return type(self), (self.place, self.shape, self.dtype)

    def text(self, exact: bool) -> str:
        return f"{self.place}_tensor<{self.body(exact)}>"

    @classmethod
    def parse(cls, parser: Any, word: str) -> AllocatedTensorType:
        shape, dtype = parser.shape_and_dtype()
        parser.expect(">")
        return cls(word.removesuffix("_tensor"), shape, dtype)


def allocated(type: Type, place: str) -> Type:
    """`type`, in the memory of `place`; what is no dense tensor is as it was, but for the members of vectors."""
    if isinstance(type, VectorType):
        return VectorType(tuple(allocated(t, place) for t in type.types))
    return AllocatedTensorType(place, type.shape, type.dtype) if isinstance(type, DenseTensorType) else type
