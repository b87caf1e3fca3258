"""The compiled twin of `philox`: the same words and normals, bit by bit, in loops over runs of global indices.

Nothing here may be reordered or contracted (no fastmath): equality with the numpy specification is to the last bit.
All integer arithmetic stays in uint64, since numba makes float64 of uint64 mixed with int64.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.framework import philox as spec
from minipd.framework.numba_setup import name_runtime, numba

from numba.core.caching import FunctionCache  # isort: skip  (numba is set up)

__all__: list[str] = []

_MASK, _32, _11, _1 = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(11), np.uint64(1)
_M0, _M1 = map(np.uint64, spec.MULTIPLIERS)
_W0, _W1 = map(np.uint64, spec.WEYL)
_ROUNDS, _SQRT_HALF, _LN2, _QUARTER_TURN = spec.ROUNDS, spec.SQRT_HALF, spec.LN2, spec.QUARTER_TURN

class _Cache(FunctionCache):
    """numba's cache on disk.  Before it reads, numba imports what compiling anything would need, a quarter of a second;
    what machine code needs to run is its runtime."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        name_runtime()
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def _compile(function: Callable[..., Any]) -> Any:
    dispatcher: Any = numba.njit(error_model="numpy", nogil=True)(function)
    dispatcher._cache = _Cache(function)
    return dispatcher


_inline = numba.njit(cache=True, error_model="numpy", inline="always")
_log_near_one, _sine_small, _cosine_small = map(_inline, (spec.log_near_one, spec.sine_small, spec.cosine_small))


@_inline
def _philox(block, c2, c3, k0, k1):
    c0, c1 = block & _MASK, block >> _32
    for _ in range(_ROUNDS):
        p0, p1 = c0 * _M0, c2 * _M1
        c0, c1, c2, c3 = (p1 >> _32) ^ c1 ^ k0, p1 & _MASK, (p0 >> _32) ^ c3 ^ k1, p0 & _MASK
        k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
    return c0, c1, c2, c3


@_compile
def words32(k0, k1, c2, c3, starts, run):
    """One word per element, uint32[len(starts) * run]."""
    out = np.empty(len(starts) * run, np.uint32)
    at = 0
    for start in starts:
        i, stop = start, start + run
        while i < stop:
            words = _philox(np.uint64(i // 4), c2, c3, k0, k1)
            for lane in range(i % 4, min(4, i % 4 + stop - i)):
                out[at] = words[lane]
                at += 1
            i += 4 - i % 4
    return out


@_compile
def words64(k0, k1, c2, c3, starts, run):
    """Two words per element, the first one high, uint64[len(starts) * run]."""
    out = np.empty(len(starts) * run, np.uint64)
    at = 0
    for start in starts:
        i, stop = start, start + run
        while i < stop:
            a, b, c, d = _philox(np.uint64(i // 2), c2, c3, k0, k1)
            if i % 2 == 0:
                out[at] = a << _32 | b
                at, i = at + 1, i + 1
            if i < stop:
                out[at] = c << _32 | d
                at, i = at + 1, i + 1
    return out


@_inline
def _log(u):
    m, e = math.frexp(u)
    if m < _SQRT_HALF:
        m, e = 2.0 * m, e - 1
    return _log_near_one(m) + e * _LN2


@_inline
def _turn(v):
    quarter = math.floor(4.0 * v + 0.5)
    x = (4.0 * v - quarter) * _QUARTER_TURN
    a, b = _cosine_small(x), _sine_small(x)
    if quarter == 1 or quarter == 3:
        a, b = b, a
    return -a if quarter == 1 or quarter == 2 else a, -b if quarter == 2 or quarter == 3 else b


@_compile
def normals(k0, k1, c2, c3, starts, run, wide):
    """Standard normals, float64[len(starts) * run], a pair from two words, or from four if `wide`."""
    out = np.empty(len(starts) * run)
    at = 0
    for start in starts:
        i, stop = start, start + run
        while i < stop:
            pair = i // 2
            a, b, c, d = _philox(np.uint64(pair if wide else pair // 2), c2, c3, k0, k1)
            if wide:
                u, v, scale = (a << _32 | b) >> _11, (c << _32 | d) >> _11, 2.0**-53
            elif pair % 2 == 0:
                u, v, scale = a, b, 2.0**-32
            else:
                u, v, scale = c, d, 2.0**-32
            radius = math.sqrt(-2.0 * _log(np.float64(u + _1) * scale))
            cosine, sine = _turn(np.float64(v) * scale)
            if i % 2 == 0:
                out[at] = radius * cosine
                at, i = at + 1, i + 1
            if i < stop and i // 2 == pair:
                out[at] = radius * sine
                at, i = at + 1, i + 1
    return out
