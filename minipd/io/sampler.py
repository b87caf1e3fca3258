"""Samplers: in which order samples are taken, and how they are dealt into batches and to ranks.

A shuffled order is a function of the seed (`paddle.seed`) and of the epoch, nothing else: every rank computes the same
one, and `set_epoch` returns to any.  Each pass over a sampler is an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np

from minipd.framework import philox
from minipd.framework.rank import current
from minipd.framework.room import require_room
from minipd.io.permutation import choice, permutation

__all__ = ["BatchSampler", "DistributedBatchSampler", "RandomSampler", "Sampler", "SequenceSampler",
           "SubsetRandomSampler", "WeightedRandomSampler"]


class Sampler:
    """The base of all samplers.  A subclass defines `__iter__`, which gives sample numbers."""

    def __init__(self, data_source: Sized | None = None):
        if data_source is not None and not hasattr(data_source, "__len__"):
            raise TypeError(f"{type(self).__name__}: expected a dataset with a length, got {data_source!r}")
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(f"{type(self).__name__}: a Sampler defines __iter__()")

    def __len__(self) -> int:
        return len(self._source())

    def _source(self) -> Sized:
        if self.data_source is None:
            raise ValueError(f"{type(self).__name__}: expected a data_source with a length, got None")
        return self.data_source


class SequenceSampler(Sampler):
    """0, 1, 2, ..."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))


class Epochs(Sampler):
    """A sampler that takes another order in each pass: a pass is an epoch."""

    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """The next pass is that of this epoch."""
        self.epoch = epoch

    def next_key(self) -> Any:
        """The key of this epoch's order, on every rank the same; the next pass is that of the next epoch."""
        key = shuffle_key(self.epoch)
        self.epoch += 1
        return key


class RandomSampler(Epochs):
    """A random order, another one in each epoch.

    replacement: draw each number independently, `num_samples` times, instead.  num_samples: only so many; all unless
    given.  generator: an iterator that yields the numbers instead.

    Raises: ValueError for a num_samples that is not positive, or is more than there are without replacement.
    """

    def __init__(self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
                 generator: Any = None):
        super().__init__(data_source)
        if generator is not None and not hasattr(generator, "__next__"):
            raise TypeError(f"RandomSampler: expected generator to be an iterator of sample numbers, got {generator!r}")
        self.replacement, self.generator = replacement, generator
        self.num_samples = len(data_source) if num_samples is None else num_samples
        require_room("RandomSampler", (self.num_samples,), 8)
        if num_samples is not None and (num_samples <= 0 or not replacement and num_samples > len(data_source)):
            raise ValueError(f"RandomSampler: expected num_samples in 1 .. {len(data_source)} (more only with "
                             f"replacement), got {num_samples}")

    def __iter__(self) -> Iterator[int]:
        if self.generator is not None:
            return (next(self.generator) for _ in range(self.num_samples))
        return iter(choice(self.next_key(), len(self._source()), self.num_samples, self.replacement))

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Epochs):
    """The given sample numbers in a random order, another one in each epoch.

    Raises: ValueError if there are none.

    >>> sorted(SubsetRandomSampler([1, 3, 5]))
    [1, 3, 5]
    """

    def __init__(self, indices: Sequence[int]):
        super().__init__(indices)
        self.indices = list(indices)
        if not self.indices:
            raise ValueError("SubsetRandomSampler: expected at least one sample number, got none")

    def __iter__(self) -> Iterator[int]:
        return iter([self.indices[i] for i in permutation(self.next_key(), len(self.indices))])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Epochs):
    """Sample numbers drawn with probabilities that are proportional to their weights.

    replacement: a number may come several times.
    Raises: ValueError for weights that are negative, or too few of them positive; for a num_samples below 1.

    >>> list(WeightedRandomSampler([0.0, 1.0], num_samples=3))
    [1, 1, 1]
    """

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True):
        super().__init__()
        self.weights = np.asarray(weights, np.float64).ravel()
        self.num_samples, self.replacement = num_samples, replacement
        if isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples < 1:
            raise ValueError(f"WeightedRandomSampler: expected num_samples to be a positive int, got {num_samples!r}")
        require_room("WeightedRandomSampler", (num_samples,), 8)
        positive = int((self.weights > 0).sum())
        if not (np.isfinite(self.weights) & (self.weights >= 0)).all() or not positive:
            raise ValueError("WeightedRandomSampler: expected finite weights >= 0, one of them positive, got "
                             f"{self.weights.tolist()[:8]}")
        if not replacement and num_samples > positive:
            raise ValueError(f"WeightedRandomSampler: expected at most {positive} samples without replacement, as many "
                             f"as weights are positive, got num_samples={num_samples}")

    def __iter__(self) -> Iterator[int]:
        return iter(choice(self.next_key(), len(self.weights), self.num_samples, self.replacement, self.weights))

    def __len__(self) -> int:
        return self.num_samples


def shuffle_key(epoch: int) -> Any:
    """The key of an epoch's order, on every rank the same."""
    return philox.key_of(current().rng.initial_seed, "shuffle", epoch)


class BatchSampler(Sampler):
    """Sample numbers in lists of `batch_size`; the last one may be shorter, unless drop_last.

    dataset or sampler: what to take numbers from, in order; with a dataset, `shuffle` takes them at random.
    Raises: ValueError for both or neither, or a batch_size that is not positive.

    >>> list(BatchSampler(range(5), batch_size=2))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, dataset: Sized | None = None, sampler: Iterable[int] | None = None, shuffle: bool = False,
                 batch_size: int = 1, drop_last: bool = False):
        super().__init__(dataset)
        if (dataset is None) == (sampler is None):
            raise ValueError("BatchSampler: expected a dataset or a sampler, got both or neither")
        if sampler is not None and shuffle:
            raise ValueError("BatchSampler: shuffle is for a dataset; a sampler decides the order itself")
        if sampler is not None and not isinstance(sampler, Iterable):
            raise TypeError(f"BatchSampler: expected a sampler, which gives sample numbers, got {sampler!r}")
        check_batch_size("BatchSampler", batch_size)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler: Any = sampler
        if dataset is not None:
            self.sampler = RandomSampler(dataset) if shuffle else SequenceSampler(dataset)

    def __iter__(self) -> Iterator[list[int]]:          # type: ignore[override]
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        return len(self.sampler) // self.batch_size if self.drop_last else -(-len(self.sampler) // self.batch_size)


def check_batch_size(what: str, batch_size: Any) -> None:
    """ValueError unless it is a positive int."""
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
        raise ValueError(f"{what}: expected batch_size to be a positive int, got {batch_size!r}")


class DistributedBatchSampler(BatchSampler, Epochs):
    """This rank's share of every batch.

    The batches of all ranks together, in rank order, are the batches of one rank with batch_size * num_replicas.  The
    first samples are taken again at the end, so that every rank gets equally many.

    num_replicas, rank: how many ranks share the data, and which one this is; the rank context's unless given.
    Raises: ValueError for a rank that is not among num_replicas.

    >>> [list(DistributedBatchSampler(range(7), 2, num_replicas=2, rank=r)) for r in range(2)]
    [[[0, 1], [4, 5]], [[2, 3], [6, 0]]]
    """

    def __init__(self, dataset: Sized, batch_size: int, num_replicas: int | None = None, rank: int | None = None,
                 shuffle: bool = False, drop_last: bool = False):
        super().__init__(dataset, None, shuffle, batch_size, drop_last)
        ctx = current()
        self.nranks = ctx.world_size if num_replicas is None else num_replicas
        self.local_rank = ctx.rank if rank is None else rank
        if self.nranks < 1 or not 0 <= self.local_rank < self.nranks:
            raise ValueError(f"DistributedBatchSampler: expected a rank in 0 .. num_replicas - 1, got rank "
                             f"{self.local_rank} of {self.nranks}")
        self.shuffle = shuffle
        self.num_samples = -(-len(dataset) // self.nranks)
        self.total_size = self.num_samples * self.nranks

    def _order(self) -> list[int]:
        """All sample numbers in this epoch's order."""
        n = len(self._source())
        return permutation(self.next_key(), n).tolist() if self.shuffle else list(range(n))

    def __iter__(self) -> Iterator[list[int]]:          # type: ignore[override]
        order = self._order()
        whole = self.total_size if order else 0             # the first ones come again up to a multiple of the ranks
        everyone = self.batch_size * self.nranks
        for start in range(0, whole, everyone):
            size = min(everyone, whole - start) // self.nranks
            if size < self.batch_size and self.drop_last:
                return
            own = start + self.local_rank * size
            yield [order[i % len(order)] for i in range(own, own + size)]

    def __len__(self) -> int:
        whole, rest = divmod(self.num_samples, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
