"""The leading singular vectors of a weight, by power iteration: what both forms of spectral norm need."""

from __future__ import annotations

from collections.abc import Callable

from minipd.framework.context import using
from minipd.framework.tensor import Tensor
from minipd.ops.linalg import matmul

__all__: list[str] = []


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight as a matrix whose rows run along `dim`: [rows, columns], the columns all other dimensions."""
    order = [dim, *(i for i in range(weight.ndim) if i != dim)]
    return weight.transpose(order).reshape([weight.shape[dim], -1])


def improved(matrix: Tensor, u: Tensor, v: Tensor, iterations: int,
             unit: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Better estimates of the leading singular vectors, u [rows] and v [columns], without history.

    unit: a vector in the length 1.

    >>> from minipd.ops.creation import to_tensor
    >>> m, start = to_tensor([[3.0, 0.0], [0.0, 0.0]]), to_tensor([0.5, 0.5])
    >>> [x.tolist() for x in improved(m, start, start, 1, lambda x: x / x.abs().max())]
    [[1.0, 0.0], [1.0, 0.0]]
    """
    with using(grad=False):
        for _ in range(iterations):
            v = unit(matmul(matrix, u, transpose_x=True))
            u = unit(matmul(matrix, v))
    return u, v
