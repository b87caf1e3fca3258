"""Counter-based random numbers: the value of an element is a pure function of (key, global index).

There is no state to advance.  The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As
Easy as 1, 2, 3", SC 2011): ten rounds that turn a 128-bit counter, under a 64-bit key, into four 32-bit words.  A *key*
here has 128 bits (int64[2], made by `key_of`): the first 64 are Philox's key, the other 64 the upper half of its
counter; the lower half counts blocks of four words.  So a key names a stream of 2**66 words,

    word(key, w) = philox(counter = (w // 4, key[1]), key = key[0])[w % 4],

and element i of an array (i: row-major index in the *global* array) takes

    float32, float16, bfloat16   uniform: word i, its upper 24 bits        normal: words 2p, 2p+1 of pair p = i // 2
    float64, integers            uniform: words 2i, 2i+1, upper 53 bits    normal: words 4p .. 4p+3

A pair gives two normals by Box-Muller: sqrt(-2 ln u) cos(2 pi v) to its even, the same with sin to its odd member.

The invariant all sharding rests on: `f(key, shape, window=(global_shape, offsets))` equals
`f(key, global_shape)[offsets : offsets + shape]` bit by bit, on any mesh.  This module is the specification, in numpy;
`philox_numba` computes the same bits faster, and which of the two runs cannot be seen in a result.  For normals that
means: no libm and no SIMD library, whose last bit may depend on machine, length and alignment, but the polynomials
below, made of + - * / and sqrt, which IEEE 754 defines to the last bit.
"""

from __future__ import annotations

import hashlib
import importlib
import math
from numbers import Integral
from types import ModuleType
from typing import Any

import numpy as np

from minipd.framework.dtype import FLOATS

__all__: list[str] = []

Window = tuple[tuple[int, ...], tuple[int, ...]]

#: From this many elements on it pays to load the compiled kernels (a second once, then 20 ms from the cache); when
#: they are loaded they serve every size.
COMPILED_FROM = 1 << 14
_compiled: list[ModuleType | None] = []

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)  # added to the key before each further round


def key_of(seed: int, *words: int | str) -> np.ndarray:
    """The key, int64[2], of a stream named by integers and strings: their 128-bit BLAKE2b hash.

    What is hashed is unambiguous: each word's text, a string's with its length before it, joined by commas.  Different
    names give independent streams; the same name gives the same one on every machine and version.  TypeError for words
    of other types.

    >>> key_of(1, "init", 0)
    array([-6474703928460886993,   275504822198283160])
    """
    name = ",".join([str(word) if type(word) is int else _word_text(word) for word in (seed, *words)])
    digest = hashlib.blake2b(name.encode(), digest_size=16, person=b"minipd").digest()
    return np.frombuffer(digest, dtype="<i8").astype(np.int64)


def _word_text(word: int | str) -> str:
    if isinstance(word, str):
        return f"{len(word)}:{word}"
    if isinstance(word, Integral):
        return str(int(word))
    raise TypeError(f"key_of: expected integers and strings, got {word!r} of type {type(word).__name__}")


# ---------------------------------------------------------------------------------------------- distributions
def uniform(
    key: np.ndarray, shape: tuple[int, ...], low: float = 0.0, high: float = 1.0, dtype: Any = np.float32,
    window: Window | None = None,
) -> np.ndarray:  # fmt: skip
    """Floats in [low, high), evenly spread on 2**24 steps (2**53 for float64); all `low` if low == high.

    shape is the local one if a window (global shape, offsets) is given.  ValueError if low > high, TypeError for a
    dtype that is no float.
    """
    dtype = _float_dtype("uniform", dtype)
    if not low <= high:
        raise ValueError(f"uniform: expected low <= high, got low={low}, high={high}")
    starts, run = _runs(shape, window)
    if dtype == np.float64:
        x = (words64(key, starts, run) >> np.uint64(11)) * 2.0**-53
    else:
        x = (words32(key, starts, run) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    if (low, high) != (0.0, 1.0):
        x = x.dtype.type(low) + x * x.dtype.type(high - low)
    elif dtype.itemsize >= 4:
        return x.reshape(shape)
    x = x.astype(dtype, copy=False)
    below = np.nextafter(dtype.type(high), dtype.type(-np.inf))  # rounding may have reached `high`
    return np.minimum(x, below if low < high else dtype.type(high)).reshape(shape)


def normal(
    key: np.ndarray, shape: tuple[int, ...], mean: float = 0.0, std: float = 1.0, dtype: Any = np.float32,
    window: Window | None = None,
) -> np.ndarray:  # fmt: skip
    """Normally distributed floats, computed in float64 and rounded once.  Arguments and errors as for `uniform`."""
    dtype = _float_dtype("normal", dtype)
    starts, run = _runs(shape, window)
    z = normals(key, starts, run, wide=dtype == np.float64)
    if (mean, std) != (0.0, 1.0):
        z = mean + std * z
    if dtype.itemsize < 4:
        z = z.astype(np.float32)
    return z.astype(dtype, copy=False).reshape(shape)


def integers(
    key: np.ndarray, shape: tuple[int, ...], low: int, high: int, dtype: Any = np.int64, window: Window | None = None
) -> np.ndarray:
    """Integers in [low, high): a 64-bit word modulo the range, so the bias is below range / 2**64.

    ValueError for an empty range or one that the dtype cannot hold.
    """
    dtype = np.dtype(dtype)
    if dtype.kind not in "iu":
        raise TypeError(f"integers: expected an integer dtype, got {dtype}")
    limits = np.iinfo(dtype)
    if not (limits.min <= low < high <= limits.max + 1 and high - low < 1 << 64):
        held = f"{dtype} ({limits.min}..{limits.max})"
        raise ValueError(f"integers: expected low < high within {held}, got {low}, {high}")
    starts, run = _runs(shape, window)
    drawn = words64(key, starts, run) % np.uint64(high - low)
    # Two's complement: adding `low` modulo 2**64 and then reading the low bits as `dtype` is exact for every dtype.
    return (drawn + np.uint64(low % (1 << 64))).astype(dtype).reshape(shape)


def permutation(key: np.ndarray, n: int) -> np.ndarray:
    """A random order of range(n), int64[n]: sorts the n 64-bit words of the stream."""
    return np.argsort(words64(key, *_runs((n,), None)), kind="stable")


def generator(key: np.ndarray) -> np.random.Generator:
    """numpy's generator on the stream of `key`, for distributions that take a varying number of words per draw.

    Element i then depends on those before it: what is drawn so is drawn whole, on every rank.
    """
    return np.random.Generator(np.random.Philox(key=np.asarray(key).view(np.uint64)))


def _float_dtype(function: str, dtype: Any) -> np.dtype:
    dtype = np.dtype(dtype)
    if dtype not in FLOATS:
        raise TypeError(f"{function}: expected float16, bfloat16, float32 or float64, got {dtype}")
    return dtype


# ---------------------------------------------------------------------------------------------- windows
def _runs(shape: tuple[int, ...], window: Window | None) -> tuple[np.ndarray, int]:
    """The global indices of a window, as runs of consecutive ones: (start of each run, int64[n]; length of all).

    shape: of the window.  window: (global shape, offsets), None for a whole array.  The global index of an element is
    its number in the global array, counted row by row.  The runs, one after the other, name the indices of the window's
    elements in the window's own order, row by row.  Trailing dimensions that the window covers wholly belong to the
    run, so that a whole array is one run.

    Raises: ValueError for a window that is no part of the global shape.
    """
    whole, offsets = window if window is not None else (shape, (0,) * len(shape))
    _check_window(shape, whole, offsets)
    axis, run, stride = len(shape) - 1, 1, 1
    while axis >= 0 and shape[axis] == whole[axis]:
        run *= shape[axis]
        stride *= whole[axis]
        axis -= 1
    starts = np.zeros(1, np.int64)
    if axis >= 0:  # the innermost dimension that is cut: its part of each row is still consecutive
        starts = starts + offsets[axis] * stride
        run *= shape[axis]
        stride *= whole[axis]
    for a in range(axis - 1, -1, -1):
        starts = ((offsets[a] + np.arange(shape[a], dtype=np.int64)) * stride)[:, None] + starts
        starts = starts.reshape(-1)
        stride *= whole[a]
    return starts, run


def _check_window(shape: tuple[int, ...], whole: tuple[int, ...], offsets: tuple[int, ...]) -> None:
    if len(whole) != len(shape) or len(offsets) != len(shape):
        raise ValueError(f"window: expected {len(shape)} dimensions as in shape {shape}, got {whole} from {offsets}")
    for extent, total, offset in zip(shape, whole, offsets, strict=True):
        if not 0 <= offset <= offset + extent <= total:
            raise ValueError(f"window: expected a part of the global shape {whole}, got shape {shape} from {offsets}")


# ---------------------------------------------------------------------------------------------- words
def philox(counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Philox4x32-10: four counter words and two key words, each uint64 (array) below 2**32, to four such words."""
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        p0, p1 = c0 * np.uint64(MULTIPLIERS[0]), c2 * np.uint64(MULTIPLIERS[1])
        c0, c1, c2, c3 = (p1 >> shift) ^ c1 ^ k0, p1 & mask, (p0 >> shift) ^ c3 ^ k1, p0 & mask
        k0, k1 = (k0 + np.uint64(WEYL[0])) & mask, (k1 + np.uint64(WEYL[1])) & mask
    return c0, c1, c2, c3


def split_key(key: np.ndarray) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """A key's four 32-bit words: the two of Philox's key, and the two of the counter's upper half."""
    a, b = np.asarray(key).astype(np.uint64)
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    return a & mask, a >> shift, b & mask, b >> shift


def _blocks(key: np.ndarray, index: np.ndarray, per_block: int) -> tuple[np.ndarray, np.ndarray]:
    """The blocks of four words that the elements at `index` lie in: words uint64[blocks, 4], block row of each."""
    block, row = np.unique(index // per_block, return_inverse=True)
    counter = block.astype(np.uint64)
    k0, k1, c2, c3 = split_key(key)
    words = philox((counter & np.uint64(0xFFFFFFFF), counter >> np.uint64(32), c2, c3), (k0, k1))
    return np.stack(words, axis=1), row


def _indices(starts: np.ndarray, run: int) -> np.ndarray:
    return (starts[:, None] + np.arange(run, dtype=np.int64)).reshape(-1)


def words32(key: np.ndarray, starts: np.ndarray, run: int) -> np.ndarray:
    """One word per element of the runs, uint32[len(starts) * run]."""
    if (fast := _compiled_for(len(starts) * run)) is not None:
        return fast.words32(*split_key(key), starts, run)
    index = _indices(starts, run)
    words, row = _blocks(key, index, 4)
    return words[row, index % 4].astype(np.uint32)


def words64(key: np.ndarray, starts: np.ndarray, run: int) -> np.ndarray:
    """Two words per element of the runs, the first one high, uint64[len(starts) * run]."""
    if (fast := _compiled_for(len(starts) * run)) is not None:
        return fast.words64(*split_key(key), starts, run)
    index = _indices(starts, run)
    words, row = _blocks(key, index, 2)
    lane = index % 2 * 2
    return words[row, lane] << np.uint64(32) | words[row, lane + 1]


def normals(key: np.ndarray, starts: np.ndarray, run: int, wide: bool) -> np.ndarray:
    """Standard normals, float64[len(starts) * run], out of 2 x 32 bits a pair, or 2 x 53 if `wide`."""
    if (fast := _compiled_for(len(starts) * run)) is not None:
        return fast.normals(*split_key(key), starts, run, wide)
    index = _indices(starts, run)
    words, row = _blocks(key, index, 2 if wide else 4)
    if wide:
        first, second = ((words[row, i] << np.uint64(32) | words[row, i + 1]) >> np.uint64(11) for i in (0, 2))
        scale = 2.0**-53
    else:
        lane = index % 4 // 2 * 2
        first, second, scale = words[row, lane], words[row, lane + 1], 2.0**-32
    radius = np.sqrt(-2.0 * _log((first + np.uint64(1)) * scale))  # + 1: in (0, 1], so that the logarithm is finite
    cosine, sine = _turn(second * scale)
    return radius * np.where(index % 2 == 0, cosine, sine)


def _compiled_for(size: int) -> ModuleType | None:
    """The compiled twin of this module, loaded when it first pays; None without it (numba missing or broken)."""
    if not _compiled and size >= COMPILED_FROM:
        try:
            _compiled.append(importlib.import_module("minipd.framework.philox_numba"))
        except ImportError:
            _compiled.append(None)
    return _compiled[0] if _compiled else None


# ---------------------------------------------------------------------------------------------- polynomials
# Written over + and * only, coefficient by coefficient, so that the compiled twin can compile these very functions.
SQRT_HALF, LN2, QUARTER_TURN = math.sqrt(0.5), math.log(2.0), math.pi / 2
ATANH = tuple(1.0 / (2 * k + 1) for k in range(11, -1, -1))  # atanh(s) = s (1 + s^2/3 + s^4/5 + ...)
SINE = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(9, -1, -1))
COSINE = tuple((-1) ** k / math.factorial(2 * k) for k in range(9, -1, -1))


def log_near_one(m: Any) -> Any:
    """ln m for m in [sqrt(1/2), sqrt(2)): ln m = 2 atanh((m - 1) / (m + 1)), where the square is below 0.03."""
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    total = 0.0 * z
    for c in ATANH:
        total = total * z + c
    return 2.0 * s * total


def sine_small(x: Any) -> Any:
    """sin x for |x| <= pi/4, by Taylor's polynomial to x^19."""
    z = x * x
    total = 0.0 * z
    for c in SINE:
        total = total * z + c
    return total * x


def cosine_small(x: Any) -> Any:
    """cos x for |x| <= pi/4, by Taylor's polynomial to x^18."""
    z = x * x
    total = 0.0 * z
    for c in COSINE:
        total = total * z + c
    return total


def _log(u: np.ndarray) -> np.ndarray:
    """ln u for u in (0, 1], float64."""
    m, e = np.frexp(u)
    low = m < SQRT_HALF
    return log_near_one(np.where(low, 2.0 * m, m)) + (e - low) * LN2


def _turn(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """cos(2 pi v) and sin(2 pi v) for v in [0, 1): the nearest quarter turn exactly, the rest by polynomial."""
    quarter = np.floor(4.0 * v + 0.5)
    x = (4.0 * v - quarter) * QUARTER_TURN
    sine, cosine = sine_small(x), cosine_small(x)
    odd, flip_cosine, flip_sine = quarter % 2 == 1, (quarter == 1) | (quarter == 2), (quarter == 2) | (quarter == 3)
    a, b = np.where(odd, sine, cosine), np.where(odd, cosine, sine)
    return np.where(flip_cosine, -a, a), np.where(flip_sine, -b, b)
