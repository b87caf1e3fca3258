"""DataLoader: batches of tensors out of a dataset, loaded here or by worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from minipd.framework.philox import key_of
from minipd.framework.rank import current
from minipd.io.collate import default_collate_fn, default_convert_fn
from minipd.io.dataset import IterableDataset
from minipd.io.sampler import BatchSampler, check_batch_size
from minipd.io.workers import Workers, tasks

__all__ = ["DataLoader"]


class DataLoader:
    """Iterates over a dataset in batches, each a list of tensors (or what `collate_fn` makes of a list of samples).

    The order of samples depends on the seed and on nothing else, whoever loads them.

    Args:
        dataset: a Dataset, or an IterableDataset, which is taken in its own order.
        batch_sampler: which samples make a batch; instead of batch_size, shuffle and drop_last.
        batch_size: None gives the samples one by one, without a batch dimension.
        collate_fn: from a list of samples to a batch; `default_collate_fn` unless given.
        num_workers: how many processes load batches ahead, each `prefetch_factor` of them; with 0, this process loads
            one when it is asked for.  They are fresh interpreters: dataset and functions are pickled, those of scripts
            and notebooks by value.  Of an IterableDataset each worker has its own; `get_worker_info` tells it apart.
        timeout: how many seconds to wait for a batch of theirs; 0: as long as they are alive.
        worker_init_fn: called in each of them with its number, before it begins.  Their random numbers, Python's,
            numpy's and minipd's, are seeded by the loader's seed, the pass and the number.
        persistent_workers: keep them for the next pass.
        feed_list, return_list: with return_list=False, a batch is what an Executor is fed with, [{name: field}], by the
            names of the inputs in feed_list.
        Paddle's other arguments (places, use_shared_memory, ...) are accepted, without effect.

    Raises: ValueError for options that exclude each other; in a pass, RuntimeError with the traceback of a worker that
        has failed, or with what has become of it.

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
                 timeout: float = 0, worker_init_fn: Callable | None = None, persistent_workers: bool = False):
        for name, value, least in (("num_workers", num_workers, 0), ("prefetch_factor", prefetch_factor, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"DataLoader: expected {name} to be an int >= {least}, got {value!r}")
        if timeout < 0:
            raise ValueError(f"DataLoader: expected timeout >= 0, got {timeout}")
        if not return_list and not feed_list:
            raise ValueError("DataLoader: expected feed_list, the inputs of a static program, with return_list=False; "
                             "without it, batches are lists of their fields")
        self._inputs = None if return_list else [x.name for x in feed_list]
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.num_workers, self.prefetch_factor, self.timeout = num_workers, prefetch_factor, timeout
        self.worker_init_fn, self.persistent_workers = worker_init_fn, persistent_workers
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
        self._passes = 0
        self._kept: Workers | None = None

    def __iter__(self) -> Iterator[Any]:
        self._passes += 1
        batches = self._by_workers() if self.num_workers else map(self.collate_fn, self._samples())
        return batches if self._inputs is None else map(self._fed, batches)

    __call__ = __iter__

    def _fed(self, batch: Any) -> list[dict[str, Any]]:
        """A batch as an Executor is fed with it."""
        assert self._inputs is not None
        fields = batch if isinstance(batch, (list, tuple)) else [batch]
        if len(fields) != len(self._inputs):
            raise ValueError(f"DataLoader: expected a field for each of the inputs {', '.join(self._inputs)}, got "
                             f"{len(fields)}")
        return [dict(zip(self._inputs, fields, strict=True))]

    # ------------------------------------------------------------------------------------------------ in this process
    def _samples(self) -> Iterator[Any]:
        """For each batch, its samples; without batches, each sample."""
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

    # ----------------------------------------------------------------------------------------------- by other processes
    def _by_workers(self) -> Iterator[Any]:
        workers = self._kept or self._start()
        if self.persistent_workers:
            self._kept = workers
        try:
            yield from workers.run(None if self.iterable else self._numbers())
        except BaseException as e:
            if not isinstance(e, GeneratorExit):        # after an error they are of no more use
                self._kept = None
            raise
        finally:
            if self._kept is not workers:
                workers.close()

    def _numbers(self) -> Iterator[Any]:
        """For each batch, the numbers of its samples; without batches, each number."""
        return iter(range(len(self.dataset))) if self.batch_sampler is None else map(list, self.batch_sampler)

    def _start(self) -> Workers:
        key = key_of(current().rng.initial_seed, "workers", self._passes)
        todo = tasks(self.dataset, self.num_workers, int(key[0]) % 2 ** 31, collate_fn=self.collate_fn,
                     init_fn=self.worker_init_fn, batch_size=self.batch_size, drop_last=self.drop_last)
        return Workers(todo, self.prefetch_factor, self.timeout)

    def __len__(self) -> int:
        if self.iterable:
            raise TypeError("len(DataLoader): an IterableDataset does not say how many samples it has")
        return len(self.dataset if self.batch_sampler is None else self.batch_sampler)
