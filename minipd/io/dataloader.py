"""DataLoader: batches of tensors out of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Number
from typing import Any

import numpy as np

from minipd.framework.tensor import Tensor
from minipd.io.dataset import IterableDataset
from minipd.io.sampler import BatchSampler, check_batch_size
from minipd.ops.creation import to_tensor
from minipd.ops.joining import stack

__all__ = ["DataLoader", "default_collate_fn"]


class DataLoader:
    """Iterates over a dataset in batches, each a list of tensors (or what `collate_fn` makes of a list of samples).

    Loading happens in this process, when a batch is asked for: the order depends on the seed and on nothing else.

    Args:
        dataset: a Dataset, or an IterableDataset, which is taken in its own order.
        batch_sampler: which samples make a batch; instead of batch_size, shuffle and drop_last.
        batch_size: None gives the samples one by one, without a batch dimension.
        num_workers: 0; there are no worker processes.
        Paddle's other arguments (places, prefetching, timeouts, ...) are accepted, without effect.

    Raises: ValueError for num_workers other than 0, and for options that exclude each other.

    >>> from minipd.io import TensorDataset
    >>> from minipd.ops.creation import arange
    >>> for x, y in DataLoader(TensorDataset([arange(3), arange(3) * 10]), batch_size=2):
    ...     print(x.tolist(), y.tolist())
    [0, 1] [0, 10]
    [2] [20]
    """

    def __init__(self, dataset: Any, feed_list: Any = None, places: Any = None, return_list: bool = True,
                 batch_sampler: Any = None, batch_size: int | None = 1, shuffle: bool = False, drop_last: bool = False,
                 collate_fn: Callable | None = None, num_workers: int = 0, use_buffer_reader: bool = True,
                 reader_buffer_size: int = 2, prefetch_factor: int = 2, use_shared_memory: bool = True,
                 timeout: int = 0, worker_init_fn: Callable | None = None, persistent_workers: bool = False):
        if num_workers != 0:
            raise ValueError(f"DataLoader: expected num_workers=0, got {num_workers}: there are no worker processes; "
                             "samples are loaded when a batch is asked for")
        if not return_list or feed_list is not None:
            raise ValueError("DataLoader: expected return_list=True and no feed_list, which static programs used to "
                             "need; batches are lists")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.iterable = isinstance(dataset, IterableDataset)
        if self.iterable and (shuffle or batch_sampler is not None):
            raise ValueError("DataLoader: an IterableDataset is taken in its own order; expected no shuffle and no "
                             "batch_sampler")
        if batch_sampler is not None and (batch_size != 1 or shuffle or drop_last):
            raise ValueError("DataLoader: batch_sampler decides about batches; expected no batch_size, shuffle or "
                             "drop_last beside it")
        if batch_size is not None:
            check_batch_size("DataLoader", batch_size)
        elif shuffle or drop_last:
            raise ValueError("DataLoader: without batches (batch_size=None), expected no shuffle and no drop_last")
        self.batch_sampler = batch_sampler
        if batch_sampler is None and batch_size is not None and not self.iterable:
            self.batch_sampler = BatchSampler(dataset, None, shuffle, batch_size, drop_last)
        self.collate_fn = collate_fn or (default_convert_fn if batch_size is None else default_collate_fn)

    def __iter__(self) -> Iterator[Any]:
        for samples in self._batches():
            yield self.collate_fn(samples)

    def _batches(self) -> Iterator[Any]:
        if self.batch_sampler is not None:
            for indices in self.batch_sampler:
                yield [self.dataset[i] for i in indices]
        elif not self.iterable:
            yield from (self.dataset[i] for i in range(len(self.dataset)))
        elif self.batch_size is None:
            yield from self.dataset
        else:
            batch = []
            for sample in self.dataset:
                batch.append(sample)
                if len(batch) == self.batch_size:
                    yield batch
                    batch = []
            if batch and not self.drop_last:
                yield batch

    def __len__(self) -> int:
        if self.iterable:
            raise TypeError("len(DataLoader): an IterableDataset does not say how many samples it has")
        return len(self.dataset if self.batch_sampler is None else self.batch_sampler)


def default_collate_fn(batch: list) -> Any:
    """Samples of one structure, stacked: tensors, arrays and numbers get a first dimension, dicts and lists are
    entered, strings become lists.

    Raises: TypeError for other samples; ValueError for lists of different lengths.

    >>> default_collate_fn([{"x": 1.0}, {"x": 2.0}])["x"].tolist()
    [1.0, 2.0]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch, 0)
    if isinstance(first, (np.ndarray, np.generic, Number)):
        return to_tensor(np.stack([np.asarray(x) for x in batch]))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate_fn([sample[key] for sample in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in batch):
            raise ValueError(f"DataLoader: expected samples with equally many fields, got "
                             f"{sorted({len(sample) for sample in batch})}; pad them, or give a collate_fn")
        return [default_collate_fn(list(field)) for field in zip(*batch, strict=True)]
    raise TypeError(f"DataLoader: expected samples of tensors, arrays, numbers, strings, dicts and lists, got "
                    f"{type(first).__name__}; give a collate_fn")


def default_convert_fn(sample: Any) -> Any:
    """One sample, its arrays and numbers as tensors."""
    if isinstance(sample, (np.ndarray, np.generic, Number)):
        return to_tensor(np.asarray(sample))
    if isinstance(sample, Mapping):
        return {key: default_convert_fn(value) for key, value in sample.items()}
    if isinstance(sample, (tuple, list)):
        return [default_convert_fn(value) for value in sample]
    return sample
