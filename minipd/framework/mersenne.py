"""Paddle's random numbers on the CPU, for scripts that were written for Paddle and expect them.

Paddle has one engine per process, C++'s mt19937_64 (Matsumoto, Nishimura, "Mersenne Twister", 1998; the 64-bit version
of 2000), started from a seed through a seed_seq, and every draw takes as many of its words as it needs, one draw after
the other.  The distributions are those of GNU's C++ library, to the last word.

That is the opposite of `philox`, where a number depends on its name only: here it depends on everything that was drawn
before, so a mesh, a pipeline or a recomputed layer may change it.  A generator draws so only if it is told to
(`Generator.draw_as_paddle`, which `install_as_paddle` calls).

A draw's key is (the number of one of the generator's streams, the number of the draw).  The first time it is used it
takes the next words of the stream, and the same words each time after that: a mask is drawn again for the gradient.
"""

from __future__ import annotations

import functools

import numpy as np

__all__: list[str] = []

#: a key's first half from here on is the number of a stream; of philox's keys, which are hashes, one in 2^44 comes here
FIRST_STREAM = np.iinfo(np.int64).max - (1 << 20)

SIZE, MIDDLE = 312, 156
UPPER, LOWER = np.uint64(0xFFFFFFFF80000000), np.uint64(0x7FFFFFFF)
TWIST = np.uint64(0xB5026F5AA96619E9)
#: how the state's words become the engine's: (shift to the right or, negative, to the left, mask)
TEMPERING = ((29, 0x5555555555555555), (-17, 0x71D67FFFEDA60000), (-37, 0xFFF7EEE000000000), (43, ~0 & (1 << 64) - 1))
WORD = (1 << 32) - 1

#: words are made, and their making is remembered, this many states at a time
CHUNK = 256


def seed_sequence(seed: int, n: int) -> list[int]:
    """n words of 32 bits from a seed of 32 bits: C++'s `std::seed_seq{seed}.generate`."""
    out, t = [0x8B8B8B8B] * n, 11 if n >= 623 else 7 if n >= 68 else 5 if n >= 39 else 3 if n >= 7 else (n - 1) // 2
    p = (n - t) // 2
    q, m = p + t, max(2, n)

    def mixed(x: int) -> int:
        return (x ^ x >> 27) & WORD
    for k in range(m):
        r = 1664525 * mixed(out[k % n] ^ out[(k + p) % n] ^ out[(k - 1) % n]) & WORD
        s = (r + (1 if k == 0 else k % n + (seed & WORD if k == 1 else 0))) & WORD
        out[(k + p) % n] = (out[(k + p) % n] + r) & WORD
        out[(k + q) % n] = (out[(k + q) % n] + s) & WORD
        out[k % n] = s
    for k in range(m, m + n):
        r = 1566083941 * mixed(out[k % n] + out[(k + p) % n] + out[(k - 1) % n] & WORD) & WORD
        s = (r - k % n) & WORD
        out[(k + p) % n] ^= r
        out[(k + q) % n] ^= s
        out[k % n] = s
    return out


def _twisted(state: np.ndarray) -> np.ndarray:
    """The next 312 words of the state: each from two neighbours and one in the middle, which the last 156 take new."""
    y = state & UPPER | np.append(state[1:], np.uint64(0)) & LOWER
    mixed = y >> np.uint64(1) ^ np.where(y & np.uint64(1), TWIST, np.uint64(0))
    new = np.empty_like(state)
    new[:MIDDLE] = state[MIDDLE:] ^ mixed[:MIDDLE]
    new[MIDDLE:] = new[:MIDDLE] ^ mixed[MIDDLE:]
    last = state[-1] & UPPER | new[0] & LOWER
    new[-1] = new[MIDDLE - 1] ^ last >> np.uint64(1) ^ (TWIST if last & np.uint64(1) else np.uint64(0))
    return new


def _tempered(x: np.ndarray) -> np.ndarray:
    for shift, mask in TEMPERING:
        x = x ^ (x >> np.uint64(shift) if shift > 0 else x << np.uint64(-shift)) & np.uint64(mask)
    return x


class Engine:
    """The words that follow from a seed, by their position.

    >>> Engine(100).words(0, 2).tolist()
    [10211247260727069184, 3821103314372303796]
    """

    def __init__(self, seed: int):
        words = seed_sequence(seed, 2 * SIZE)
        pairs = zip(words[::2], words[1::2], strict=True)
        self.seed = seed
        #: the state before each chunk that has been made
        self.states = [np.array([low | high << 32 for low, high in pairs], np.uint64)]

    def words(self, start: int, n: int) -> np.ndarray:
        """The words start .. start + n - 1, uint64."""
        size = CHUNK * SIZE
        first, last = start // size, (start + max(n, 1) - 1) // size
        found = [_chunk(self, i) for i in range(first, last + 1)]
        return (found[0] if len(found) == 1 else np.concatenate(found))[start - first * size:][:n]


@functools.lru_cache(16)                        # of all engines together: some megabytes
def _chunk(engine: Engine, i: int) -> np.ndarray:
    """Words i * CHUNK * SIZE and on, a chunk of them."""
    while len(engine.states) <= i:
        _chunk(engine, len(engine.states) - 1)
    state, parts = engine.states[i], []
    for _ in range(CHUNK):
        state = _twisted(state)
        parts.append(_tempered(state))
    if len(engine.states) == i + 1:
        engine.states.append(state)
    return np.concatenate(parts)


class Stream:
    """Draws that follow one another, from a position of an engine on: where the words of each begin."""

    def __init__(self, engine: Engine, position: int = 0):
        self.engine, self.end = engine, position
        #: draw -> where its words begin; `end` is where the next draw's will
        self.starts: dict[int, int] = {}

    @property
    def seed(self) -> int:
        return self.engine.seed

    def words(self, start: int, n: int) -> np.ndarray:
        """The words start .. start + n - 1 of the engine."""
        return self.engine.words(start, n)


def key_of_draw(stream: int, draw: int) -> np.ndarray:
    """The key of a draw: int64[2], as all keys are."""
    return np.array([FIRST_STREAM + stream, draw], np.int64)


def stream_number(key: np.ndarray) -> int | None:
    """The number of the stream that a key names; None for a key of `philox`."""
    number = int(key[0]) - FIRST_STREAM
    return number if number >= 0 else None
