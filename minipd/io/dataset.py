"""Datasets: where samples come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minipd.framework.philox import key_of
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.io.permutation import permutation

__all__ = ["Dataset", "IterableDataset", "Subset", "TensorDataset", "random_split"]


class Dataset:
    """Samples by number.  A subclass defines `__getitem__` and `__len__`."""

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: a Dataset defines __getitem__(index)")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__}: a Dataset defines __len__()")


class IterableDataset:
    """Samples one after the other.  A subclass defines `__iter__`."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__}: an IterableDataset defines __iter__()")


class TensorDataset(Dataset):
    """Sample i is row i of each of several tensors (or arrays).

    Raises: ValueError if they have different numbers of rows.

    >>> from minipd.ops.creation import to_tensor
    >>> x, y = TensorDataset([to_tensor([[1.0], [2.0]]), to_tensor([3, 4])])[1]
    >>> x.tolist(), y.tolist()
    ([2.0], 4)
    """

    def __init__(self, tensors: Sequence[Any]):
        if isinstance(tensors, (Tensor, np.ndarray)):
            raise TypeError(f"TensorDataset: expected a list of tensors, got a {type(tensors).__name__}; write [...] "
                            "around it")
        if len({len(t) for t in tensors}) > 1:
            raise ValueError(f"TensorDataset: expected tensors with the same number of rows, got "
                             f"{', '.join(str(len(t)) for t in tensors)}")
        self.tensors = list(tensors)

    def __getitem__(self, index: int) -> tuple:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0]) if self.tensors else 0


class Subset(Dataset):
    """Some samples of another dataset, by number."""

    def __init__(self, dataset: Any, indices: Sequence[int]):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[int], generator: Any = None) -> list[Subset]:
    """The samples dealt out at random into subsets of the given sizes; the same split for the same `paddle.seed`.

    Raises: ValueError if the sizes do not add up to the dataset's.

    >>> sorted(i for part in random_split(range(5), [2, 3]) for i in part.indices)
    [0, 1, 2, 3, 4]
    """
    if sum(lengths) != len(dataset):
        raise ValueError(f"random_split: expected sizes that add up to {len(dataset)}, got {list(lengths)}")
    order = permutation(key_of(current().rng.initial_seed, "random_split"), len(dataset))
    ends = np.cumsum(lengths)
    return [Subset(dataset, order[end - n:end].tolist()) for n, end in zip(lengths, ends, strict=True)]
