"""What the checks of the exercises are written with: `check(expected, got, on)`, whose failure a student can read.

Nothing here may import minipd at the top: the overlay is in place before minipd is loaded.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

#: What a float may differ by, as a share of the expected value: a correct solution may round in another order.
RTOL = {2: 1e-2, 4: 1e-5, 8: 1e-9}          # by the size in bytes of the narrower of the two floats
#: In a text of so many characters a reader finds the difference without being told where it is.
SHORT = 40


class Mismatch(AssertionError):
    """What came is not what was expected.

    expected, got: as text, for the student.  on: the input.  where: the place within the value, "" for all of it.
    """

    def __init__(self, expected: str, got: str, on: str, where: str = "") -> None:
        super().__init__(expected, got, on, where)
        self.expected, self.got, self.on, self.where = expected, got, on, where

    def __str__(self) -> str:
        at = f" (at {self.where})" if self.where else ""
        return f"on {self.on}{at}: expected {self.expected}, got {self.got}"


def check(expected: Any, got: Any, on: str, *, rtol: float | None = None, atol: float = 0.0) -> None:
    """Refuse `got` unless it equals `expected`.

    expected, got: numbers, texts, arrays, tensors, and tuples, lists and dicts of them; other objects compare by `==`.
        Floats may differ by `rtol` of the largest expected value, or by `atol`; the default fits the dtype.  Dtypes are
        not compared: where one matters, check it too.  If `got` is a function, it is called here, so that an error in
        it is shown with the input: `check(3, lambda: f(1, 2), "f(1, 2)")`.
    on: the input, as a student would write it, small enough to work out by hand.

    >>> check([1.0, 2.0], np.array([1.0, 2.0 + 1e-12]), "f([1, 2])")
    >>> check((2, 3), (3, 2), "transpose of shape (3, 2)")
    Traceback (most recent call last):
    ...
    tools.course.checking.Mismatch: on transpose of shape (3, 2): expected (2, 3), got (3, 2)
    """
    if isinstance(got, FunctionType):
        try:
            got = got()
        except Exception as error:
            raise Mismatch(_text(expected), f"{type(error).__name__}: {error}", on) from error
    expected, got = _plain(expected), _plain(got)
    place = _difference(expected, got, rtol, atol)
    if place is None:
        return
    if isinstance(expected, str) and isinstance(got, str) and "\n" in expected + got:
        raise Mismatch(_text(expected), f"{_text(got)}\n{_diff(expected, got)}", on)
    text = _text(expected)
    raise Mismatch(text, _text(got), on, place if len(text) > SHORT else "")


def _plain(x: Any) -> Any:
    """A tensor as an array; containers of tensors as containers of arrays."""
    if isinstance(x, (list, tuple)):
        return type(x)(*map(_plain, x)) if hasattr(x, "_fields") else type(x)(map(_plain, x))
    if isinstance(x, Mapping):
        return {key: _plain(value) for key, value in x.items()}
    return x.numpy() if hasattr(x, "numpy") and callable(x.numpy) else x


def _difference(expected: Any, got: Any, rtol: float | None, atol: float) -> str | None:
    """Where the two differ, "" if all over; None if they do not."""
    if isinstance(expected, np.ndarray) or isinstance(got, np.ndarray):
        return _array_difference(expected, got, rtol, atol)
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        if expected.keys() != got.keys():
            return ""
        return _first((f"[{key!r}]", _difference(expected[key], got[key], rtol, atol)) for key in expected)
    if isinstance(expected, (list, tuple)) and isinstance(got, (list, tuple)):
        if len(expected) != len(got):
            return ""
        pairs = enumerate(zip(expected, got, strict=True))
        return _first((f"[{i}]", _difference(e, g, rtol, atol)) for i, (e, g) in pairs)
    if _is_number(expected) and _is_number(got):
        return _array_difference(expected, got, rtol, atol)
    if _is_plain(expected) != _is_plain(got):       # the other's own idea of `==` does not count
        return ""
    try:
        return None if bool(expected == got) else ""
    except (AttributeError, TypeError, ValueError):     # what cannot be compared is not equal
        return ""


def _first(places: Any) -> str | None:
    return next((f"{outer}{inner}" for outer, inner in places if inner is not None), None)


def _is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, np.generic))


def _is_plain(x: Any) -> bool:
    return x is None or _is_number(x) or isinstance(x, (str, bytes, list, tuple, dict))


def _array_difference(expected: Any, got: Any, rtol: float | None, atol: float) -> str | None:
    try:
        e, g = np.asarray(expected), np.asarray(got)
    except ValueError:          # a ragged list
        return ""
    if e.shape != g.shape or _is_numeric(e) != _is_numeric(g):
        return ""
    if not _is_numeric(e):
        return None if np.array_equal(e, g) else ""
    if e.dtype.kind in "biu" and g.dtype.kind in "biu":
        wrong = e != g
    else:
        narrow = min(x.dtype.itemsize for x in (e, g) if x.dtype.kind not in "biu")
        e, g = e.astype(np.float64), g.astype(np.float64)
        finite = np.abs(e[np.isfinite(e)])
        slack = atol + (RTOL[narrow] if rtol is None else rtol) * (finite.max() if finite.size else 0.0)
        with np.errstate(invalid="ignore"):
            wrong = ~((e == g) | (np.abs(e - g) <= slack) | (np.isnan(e) & np.isnan(g)))
    if not wrong.any():
        return None
    return str([int(i) for i in np.argwhere(wrong)[0]]) if e.size > 1 else ""


def _is_numeric(x: np.ndarray) -> bool:
    return x.dtype.kind in "biuf" or x.dtype.name in ("bfloat16", "float16")


def _text(x: Any) -> str:
    if isinstance(x, np.ndarray):
        text = np.array2string(x, precision=6, separator=", ", threshold=64)
        return f"{text}  (shape {x.shape}, {x.dtype})"
    text = x if isinstance(x, str) and "\n" in x else repr(x)
    return text if len(text) <= 2000 else text[:2000] + " ..."


def _diff(expected: str, got: str) -> str:
    lines = difflib.unified_diff(expected.splitlines(), got.splitlines(), "expected", "got", lineterm="", n=1)
    return "\n".join(lines)
