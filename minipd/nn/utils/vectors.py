"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ops.joining import concat
from minipd.ops.reshape import reshape

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor], name: str | None = None) -> Tensor:
    """The elements of all parameters, one parameter after the other: [elements of all], differentiable.

    Raises: ValueError without parameters.

    >>> from minipd.nn import Linear
    >>> parameters_to_vector(Linear(10, 15).parameters()).shape
    paddle.Size([165])
    """
    flat = [reshape(p, [-1]) for p in parameters]
    if not flat:
        raise ValueError("parameters_to_vector: expected at least one parameter, got none")
    return concat(flat)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor], name: str | None = None) -> None:
    """Give the parameters the values of a vector such as `parameters_to_vector` makes.

    Raises: ValueError for anything but a vector of as many elements as the parameters have; nothing is changed then.
    """
    parameters = list(parameters)
    sizes = [p.size for p in parameters]
    if vec.ndim != 1 or vec.shape[0] != sum(sizes):
        raise ValueError(f"vector_to_parameters: expected a vector of {sum(sizes)} elements, as {len(parameters)} "
                         f"parameters have, got {describe(vec.payload)}")
    start = 0
    for p, size in zip(parameters, sizes, strict=True):
        p.set_value(vec[start:start + size].reshape(p.shape))
        start += size
