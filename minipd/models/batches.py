"""Batches of windows of the text. Which windows is a pure function of (seed, step): a resumed run sees the same data.

A window of `seq_len + 1` tokens gives `seq_len` inputs and, one to the right, their labels.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minipd.framework.errors import InputError

Batch = tuple[NDArray[np.int64], NDArray[np.int64]]  # ids and labels, int64[batch, seq_len] each


@dataclass(frozen=True)
class Batches:
    """Training batches: windows drawn anywhere in the text, with equal chances.

    Every rank makes the whole batch and takes its own rows: that costs microseconds and no message.

    Args:
        tokens: int[number of tokens].
        batch: windows of one step, over all ranks and micro-batches.
        seq_len: tokens of a window.
        seed: another seed, another order of the data.

    Raises:
        InputError: the text is shorter than one window.

    >>> ids, labels = Batches(np.arange(100), batch=2, seq_len=4, seed=0)(step=7)
    >>> ids.shape, (labels == ids + 1).all()
    ((2, 4), np.True_)
    """

    tokens: NDArray[np.integer]
    batch: int
    seq_len: int
    seed: int

    def __post_init__(self) -> None:
        _check_length(self.tokens, self.seq_len)

    def __call__(self, step: int) -> Batch:
        """The batch of one step, counted from 0: (ids, labels), int64[batch, seq_len] each."""
        # The bare bit stream: numpy promises that it stays the same in every version, and not so for its distributions.
        # Taking 64 bits modulo a number of windows favours the early ones by less than 1 in 10^9.
        random = np.random.Philox(key=np.array([self.seed, step], dtype=np.uint64)).random_raw(self.batch)
        starts = random % np.uint64(len(self.tokens) - self.seq_len)
        return _windows(self.tokens, starts.astype(np.int64), self.seq_len)


def validation_batches(tokens: NDArray[np.integer], batch: int, seq_len: int, count: int) -> list[Batch]:
    """`count` fixed batches of windows spread evenly over `tokens`; they overlap only where the text is too short.

    Raises:
        InputError: the text is shorter than one window.

    >>> [(ids, labels)] = validation_batches(np.arange(10), batch=2, seq_len=3, count=1)
    >>> ids
    array([[0, 1, 2],
           [6, 7, 8]])
    """
    _check_length(tokens, seq_len)
    starts = np.linspace(0, len(tokens) - seq_len - 1, batch * count).astype(np.int64)
    return [_windows(tokens, starts[i : i + batch], seq_len) for i in range(0, batch * count, batch)]


def _windows(tokens: NDArray[np.integer], starts: NDArray[np.int64], seq_len: int) -> Batch:
    window = tokens[starts[:, None] + np.arange(seq_len + 1)].astype(np.int64)  # [batch, seq_len + 1]
    return np.ascontiguousarray(window[:, :-1]), np.ascontiguousarray(window[:, 1:])


def _check_length(tokens: NDArray[np.integer], seq_len: int) -> None:
    if len(tokens) < seq_len + 1:
        raise InputError(
            f"a text of at least {seq_len + 1} tokens, one window of data.seq_len = {seq_len} and the token after it",
            f"{len(tokens)} tokens",
            "use a longer corpus or a smaller data.seq_len",
        )
