"""Datasets: where samples come from."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minipd.framework.philox import key_of
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.io.permutation import permutation

__all__ = ["ChainDataset", "ComposeDataset", "ConcatDataset", "Dataset", "IterableDataset", "Subset", "TensorDataset",
           "random_split"]


class Dataset:
    """Samples by number.  A subclass defines `__getitem__` and `__len__`."""

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

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

    Raises: ValueError if they have different numbers of rows, TypeError for a tensor without rows.

    >>> from minipd.ops.creation import to_tensor
    >>> x, y = TensorDataset([to_tensor([[1.0], [2.0]]), to_tensor([3, 4])])[1]
    >>> x.tolist(), y.tolist()
    ([2.0], 4)
    """

    def __init__(self, tensors: Sequence[Any]):
        if isinstance(tensors, (Tensor, np.ndarray)):
            raise TypeError(f"TensorDataset: expected a list of tensors, got a {type(tensors).__name__}; write [...] "
                            "around it")
        if any(not hasattr(t, "__len__") or getattr(t, "ndim", 1) == 0 for t in tensors):
            raise TypeError(f"TensorDataset: expected tensors of at least 1 dimension, whose rows are the samples, got "
                            f"{', '.join(str(list(getattr(t, 'shape', ()))) for t in tensors)}")
        if len({len(t) for t in tensors}) > 1:
            raise ValueError(f"TensorDataset: expected tensors with the same number of rows, got "
                             f"{', '.join(str(len(t)) for t in tensors)}")
        self.tensors = list(tensors)

    def __getitem__(self, index: int) -> tuple:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0]) if self.tensors else 0


class ComposeDataset(Dataset):
    """Datasets of the same length side by side: sample i has the fields of sample i of each.

    Raises: ValueError for none, or different lengths; TypeError for streams.

    >>> ComposeDataset([[(1, 2), (3, 4)], ["a", "b"]])[1]
    (3, 4, 'b')
    """

    def __init__(self, datasets: Sequence[Any]):
        self.datasets = _several("ComposeDataset", datasets, streams=False)
        if len({len(d) for d in self.datasets}) > 1:
            raise ValueError(f"ComposeDataset: expected datasets of the same length, got "
                             f"{', '.join(str(len(d)) for d in self.datasets)}")

    def __getitem__(self, index: int) -> tuple:
        fields: list[Any] = []
        for dataset in self.datasets:
            sample = dataset[index]
            fields += sample if isinstance(sample, (list, tuple)) else [sample]
        return tuple(fields)

    def __len__(self) -> int:
        return len(self.datasets[0])


class ConcatDataset(Dataset):
    """Datasets one after the other.

    Raises: ValueError for none; TypeError for streams; IndexError for a sample that there is not.

    >>> both = ConcatDataset(["ab", "cde"])
    >>> len(both), both[1], both[2], both[-1]
    (5, 'b', 'c', 'e')
    """

    def __init__(self, datasets: Sequence[Any]):
        self.datasets = _several("ConcatDataset", datasets, streams=False)
        self.cumulative_sizes = [int(n) for n in np.cumsum([len(d) for d in self.datasets])]

    def __getitem__(self, index: int) -> Any:
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"ConcatDataset: expected a sample number in {-n} .. {n - 1}, got {index}")
        at = bisect_right(self.cumulative_sizes, index % n)
        return self.datasets[at][index % n - (self.cumulative_sizes[at - 1] if at else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset):
    """Streams one after the other.

    Raises: ValueError for none; TypeError for what is no stream.
    """

    def __init__(self, datasets: Sequence[Any]):
        self.datasets = _several("ChainDataset", datasets, streams=True)

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            yield from dataset


def _several(what: str, datasets: Sequence[Any], streams: bool) -> list[Any]:
    if not isinstance(datasets, Iterable):
        raise TypeError(f"{what}: expected a list of datasets, got {datasets!r}")
    found = list(datasets)
    if not found:
        raise ValueError(f"{what}: expected at least one dataset, got none")
    wrong = next((d for d in found if isinstance(d, IterableDataset) is not streams
                  or not streams and not hasattr(d, "__len__")), None)
    if wrong is not None:
        raise TypeError(f"{what}: expected {'IterableDatasets' if streams else 'datasets with a length'}, got a "
                        f"{type(wrong).__name__}")
    return found


class Subset(Dataset):
    """Some samples of another dataset, by number.

    >>> list(Subset("abc", [2, 0]))
    ['c', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[int]):
        if not hasattr(dataset, "__getitem__"):
            raise TypeError(f"Subset: expected a dataset of which samples can be taken by number, got {dataset!r}")
        if not hasattr(indices, "__getitem__"):
            raise TypeError(f"Subset: expected a list of sample numbers, got {indices!r}")
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """The samples dealt out at random into subsets of the given sizes; the same split for the same `paddle.seed`.

    lengths: numbers of samples, or parts of the whole that add up to 1; what rounding leaves over goes to the first
    subsets.  generator: accepted, without effect.
    Raises: ValueError if the sizes do not add up to the dataset's.

    >>> sorted(i for part in random_split(range(5), [2, 3]) for i in part.indices)
    [0, 1, 2, 3, 4]
    >>> [len(part) for part in random_split(range(5), [0.5, 0.5])]
    [3, 2]
    """
    n = len(dataset)
    if any(isinstance(size, float) for size in lengths) and math.isclose(math.fsum(lengths), 1):
        parts = [math.floor(n * part) for part in lengths]
        lengths = [size + (i < n - sum(parts)) for i, size in enumerate(parts)]
    if sum(lengths) != n:
        raise ValueError(f"random_split: expected sizes that add up to {n}, got {list(lengths)}")
    order = permutation(key_of(current().rng.initial_seed, "random_split"), n)
    ends = np.cumsum(lengths)
    return [Subset(dataset, order[end - size:end].tolist()) for size, end in zip(lengths, ends, strict=True)]
