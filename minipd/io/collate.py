"""From samples to batches."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np

from minipd.framework.tensor import Tensor
from minipd.ops.creation import to_tensor
from minipd.ops.joining import stack

__all__ = ["default_collate_fn", "default_convert_fn"]


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
