"""What is asked about tensors: shape, size and dtype, as tensors where Paddle answers so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.creation import full
from minipd.ops.shapes import broadcast_shapes as common_shape

__all__ = ["broadcast_shape", "broadcast_shapes", "is_empty", "is_floating_point", "is_integer", "is_tensor", "numel",
           "rank", "shape", "tolist"]


@op("shape64", Trait.EXACT, Trait.DISCRETE)
class Shape64:
    """The sizes of the dimensions: int64 [number of dimensions]."""

    def infer_meta(input: Meta):
        return Meta((len(input.shape),), dtypes.int64.np)

    def kernel(xp, input):
        return xp.array(input.shape, dtypes.int64.np)

    def kernel_out(xp, out, input):
        out[...] = xp.array(input.shape, dtypes.int64.np)


@op("numel", Trait.EXACT, Trait.DISCRETE)
class Numel:
    """The number of elements: int64 []."""

    def infer_meta(x: Meta):
        return Meta((), dtypes.int64.np)

    def kernel(xp, x):
        return xp.prod(xp.array(x.shape, dtypes.int64.np))

    def kernel_out(xp, out, x):
        xp.prod(xp.array(x.shape, dtypes.int64.np), out=out)


def shape(input: Any) -> Tensor:
    """The shape of a tensor as an int64 tensor, which a program reckons anew in every run.

    While tracing, its elements, and what is computed of them, may stand wherever a size is wanted.

    >>> from minipd.ops.creation import ones
    >>> shape(ones([2, 3])).tolist()
    [2, 3]
    """
    return Shape64(input)


def numel(x: Tensor, name: str | None = None) -> Tensor:
    """The number of elements, as a 0-D int64 tensor.

    >>> from minipd.ops.creation import ones
    >>> numel(ones([2, 3])).item()
    6
    """
    return Numel(x)


def rank(input: Tensor) -> Tensor:
    """The number of dimensions, as a 0-D int32 tensor."""
    return full([], input.ndim, "int32")


def is_empty(x: Tensor, name: str | None = None) -> Tensor:
    """Whether there are no elements, as a 0-D bool tensor."""
    return numel(x) == 0


def is_tensor(x: Any) -> bool:
    """Whether x is a Tensor.

    >>> is_tensor([1.0])
    False
    """
    return isinstance(x, Tensor)


def is_floating_point(x: Tensor) -> bool:
    """Whether the dtype of x is a real floating one."""
    return x.payload.dtype in dtypes.FLOATS


def is_integer(x: Tensor) -> bool:
    """Whether the dtype of x is an int one; bool is not."""
    return x.payload.dtype in dtypes.INTS


def tolist(x: Any) -> Any:
    """The values as nested lists of Python numbers."""
    return x.tolist()


def broadcast_shape(x_shape: Sequence[int], y_shape: Sequence[int]) -> list[int]:
    """The shape of the result of an operation on operands of two shapes.

    Raises: ValueError if they do not broadcast.

    >>> broadcast_shape([2, 1], [3])
    [2, 3]
    """
    return broadcast_shapes(x_shape, y_shape)


def broadcast_shapes(*shapes: Sequence[int]) -> list[int]:
    """The same of any number of shapes."""
    return list(common_shape("broadcast_shapes", *map(tuple, shapes))) if shapes else []
