"""Readers, functions that return an iterator over samples: data as Paddle took it before there were datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["batch"]


def batch(reader: Callable[[], Iterator[Any]], batch_size: int,
          drop_last: bool = False) -> Callable[[], Iterator[list]]:
    """A reader of lists of `batch_size` samples; the last one may be shorter, or with drop_last is left out then.

    Raises: ValueError for a batch_size below 1.

    >>> list(batch(lambda: iter(range(5)), 2)())
    [[0, 1], [2, 3], [4]]
    """
    if batch_size < 1:
        raise ValueError(f"batch: expected a batch_size of at least 1, got {batch_size}")

    def read() -> Iterator[list]:
        samples: list = []
        for sample in reader():
            samples.append(sample)
            if len(samples) == batch_size:
                yield samples
                samples = []
        if samples and not drop_last:
            yield samples
    return read
