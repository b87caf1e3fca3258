"""FLAGS_check_nan_inf: stop at the first operator whose result has a NaN or an infinity.

A layer over the interpreters, like the events: it is composed in when the flag is set, and costs nothing otherwise.
The executor of programs asks `check_finite` after every operation.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe

__all__: list[str] = []


def checked(run: Callable, only_warn: bool) -> Callable:
    """The interpreter function `run`, whose results are looked at."""
    def checking(row: Any, payloads: Any, attrs: dict) -> Any:
        out = run(row, payloads, attrs)
        check_finite(row.name, out if row.multi else (out,), payloads, only_warn)
        return out
    return checking


def check_finite(name: str, results: Sequence[Any], operands: Sequence[Any], only_warn: bool) -> None:
    """Raise FloatingPointError, or warn, if a floating result of operator `name` is not finite everywhere."""
    for i, out in enumerate(results):
        bad = _bad(out)
        if bad is None:
            continue
        nan = int(np.isnan(out).sum())
        at = tuple(map(int, np.argwhere(bad)[0]))
        already = [describe(x) for x in operands if _bad(x) is not None]
        cause = (f"operands that are not finite already: {', '.join(already)}" if already else
                 "all its operands are finite, so it begins here")
        text = (f"{name}: result {i} {describe(out)} has {nan} NaN and {int(bad.sum()) - nan} infinities, the first at "
                f"{list(at)}; {cause} (FLAGS_check_nan_inf)")
        if not only_warn:
            raise FloatingPointError(text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def _bad(x: Any) -> Any:
    """Where an array is not finite; None where it is, everywhere, and for what is no floating array."""
    if not isinstance(x, np.ndarray) or x.dtype not in dtypes.FLOATS and x.dtype.kind != "c":
        return None
    finite = np.isfinite(x)
    return None if finite.all() else ~finite
