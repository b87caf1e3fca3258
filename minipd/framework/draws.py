"""Random numbers for a key, of whichever kind it is: a name's (`philox`), or a draw's from an engine (`mersenne`).

The functions have the arguments of philox's.  For an engine they are the distributions of GNU's C++ library, which say
how many words each number takes; a shard's numbers are a part of the whole's here too, which is drawn and cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.framework import mersenne, philox
from minipd.framework.mersenne import Stream
from minipd.framework.rank import current

__all__: list[str] = []

Window = tuple[tuple[int, ...], tuple[int, ...]]
#: (stream, position, n) -> (n numbers, how many words they took)
Taking = Callable[[Stream, int, int], tuple[np.ndarray, int]]


def uniform(key: np.ndarray, shape: tuple[int, ...], low: float = 0.0, high: float = 1.0, dtype: Any = np.float32,
            window: Window | None = None) -> np.ndarray:
    """Floats in [low, high), evenly."""
    stream = _stream_of(key)
    if stream is None:
        return philox.uniform(key, shape, low, high, dtype, window)
    wide = _wide(dtype)

    def take(stream: Stream, start: int, n: int) -> tuple[np.ndarray, int]:
        return _canonical(stream.words(start, n), wide) * wide(high - low) + wide(low), n
    return _drawn(stream, key, shape, dtype, window, take)


def normal(key: np.ndarray, shape: tuple[int, ...], mean: float = 0.0, std: float = 1.0, dtype: Any = np.float32,
           window: Window | None = None) -> np.ndarray:
    """Normally distributed floats, by Marsaglia's polar method: points in the unit circle give two numbers each."""
    stream = _stream_of(key)
    if stream is None:
        return philox.normal(key, shape, mean, std, dtype, window)
    wide = _wide(dtype)

    def take(stream: Stream, start: int, n: int) -> tuple[np.ndarray, int]:
        found, missing, taken = [], (n + 1) // 2, 0
        while missing:
            tries = missing + missing // 2 + 8          # of points in the square; pi / 4 of them are in the circle
            x, y = (_canonical(stream.words(start + taken, 2 * tries), wide) * wide(2) - wide(1)).reshape(-1, 2).T
            square = x * x + y * y
            inside = np.flatnonzero((square <= 1) & (square > 0))[:missing]
            r = square[inside]
            scale = np.sqrt(wide(-2) * np.log(r) / r)
            found.append(np.stack([y[inside] * scale, x[inside] * scale], 1).ravel())
            missing -= len(inside)
            taken += 2 * tries if missing else 2 * (int(inside[-1]) + 1)
        return np.concatenate([np.zeros(0, wide), *found])[:n] * wide(std) + wide(mean), taken
    return _drawn(stream, key, shape, dtype, window, take)


def integers(key: np.ndarray, shape: tuple[int, ...], low: int, high: int, dtype: Any = np.int64,
             window: Window | None = None) -> np.ndarray:
    """Integers in [low, high): the upper half of a word times the range (Lemire 2019).

    The word that the method rejects, less than one in 2^64 / range, is taken.
    """
    stream = _stream_of(key)
    if stream is None:
        return philox.integers(key, shape, low, high, dtype, window)

    def take(stream: Stream, start: int, n: int) -> tuple[np.ndarray, int]:
        upper = _upper_half(stream.words(start, n), high - low)
        return (upper + np.uint64(low % (1 << 64))).view(np.int64), n
    return _drawn(stream, key, shape, dtype, window, take)


def permutation(key: np.ndarray, n: int) -> np.ndarray:
    """A random order of range(n), int64[n]: each in turn changes places with one before it, two for each word."""
    stream = _stream_of(key)
    if stream is None:
        return philox.permutation(key, n)

    def take(stream: Stream, start: int, n: int) -> tuple[np.ndarray, int]:
        order, i, taken = list(range(n)), 1, 0
        words = stream.words(start, n // 2)
        if n % 2 == 0 and n:
            j, taken = int(_upper_half(words[:1], 2)[0]), 1
            order[1], order[j], i = order[j], order[1], 2
        for word in words[taken:]:
            j, k = divmod(int(_upper_half(np.array([word]), (i + 1) * (i + 2))[0]), i + 2)
            order[i], order[j] = order[j], order[i]
            order[i + 1], order[k] = order[k], order[i + 1]
            i += 2
        return np.array(order, np.int64), len(words)
    return _drawn(stream, key, (n,), np.int64, None, take)


def _stream_of(key: np.ndarray) -> Stream | None:
    """The stream of this rank's generator that a key belongs to; None for a key of `philox`."""
    number = mersenne.stream_number(key)
    return None if number is None else current().rng.streams[number]


def _drawn(stream: Stream, key: np.ndarray, shape: tuple[int, ...], dtype: Any, window: Window | None,
           take: Taking) -> np.ndarray:
    """What a draw takes from its stream: at its end the first time, then where it has taken it before."""
    draw, whole = int(key[1]), tuple(shape) if window is None else tuple(window[0])
    start = stream.starts.get(draw, stream.end)
    x, taken = take(stream, start, int(np.prod(whole, dtype=np.int64)))
    if draw not in stream.starts:
        stream.starts[draw], stream.end = start, start + taken
    x = x.astype(dtype, copy=False).reshape(whole)
    if window is not None:
        x = x[tuple(slice(o, o + n) for o, n in zip(window[1], shape, strict=True))]
    return np.ascontiguousarray(x).reshape(shape)


def _wide(dtype: Any) -> Any:
    """The C++ type that is drawn: a half or a bfloat16 is a rounded float."""
    return np.float64 if np.dtype(dtype) == np.float64 else np.float32


def _canonical(words: np.ndarray, wide: Any) -> np.ndarray:
    """Numbers in [0, 1): a word, rounded to the type, over 2^64; what rounds to 1 becomes the largest below it."""
    return np.minimum(words.astype(wide) * wide(2.0 ** -64), np.nextafter(wide(1), wide(0)))


def _upper_half(words: np.ndarray, factor: int) -> np.ndarray:
    """The upper 64 of the 128 bits of word * factor."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    f = np.uint64(factor)
    a, b, c, d = words >> half, words & low, f >> half, f & low
    middle = a * d + (b * d >> half)
    other = b * c + (middle & low)
    return a * c + (middle >> half) + (other >> half)
