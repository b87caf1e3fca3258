"""How a tensor prints: every element with its digits, in columns, the middle of large tensors left out.

The rules are Paddle's.  A whole number prints as `3.`, other floats with `precision` digits.  Elements have one width:
shorter ones are filled up on the right, and if any is negative, the others have a space where it has its sign.  The
width, and whether there are signs, is taken from the elements near the ends of each dimension, whether or not the
others are left out: longer ones stick out.  A row that does not fit the line is broken between elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.rank import current

__all__ = ["set_printoptions"]

#: what precedes the first line of the values, and indents the others
PREFIX = 7


@dataclass
class Options:
    """precision: digits after the point.  threshold: how many elements a tensor may have before its middle is left out,
    which keeps `edgeitems` at either end of each dimension.  linewidth: in characters.  sci_mode: `1.5e+00`."""

    precision: int = 8
    threshold: int = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool = False


def set_printoptions(precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None,
                     sci_mode: bool | None = None, linewidth: int | None = None) -> None:
    """Paddle's `set_printoptions`: change how tensors print; what is not given stays as it is.

    Raises: TypeError for a value of another type, ValueError for a negative one.

    >>> set_printoptions(precision=3)
    >>> print(text_of(np.array([0.5, -2.0])))
    [0.500, -2.  ]
    >>> set_printoptions(precision=8)
    """
    options = current().printing
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in given.items():
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"set_printoptions: expected {name} to be an int, got {value!r}")
        if value < 0:
            raise ValueError(f"set_printoptions: expected {name} >= 0, got {value}")
        setattr(options, name, value)
    if sci_mode is not None:
        if not isinstance(sci_mode, bool):
            raise TypeError(f"set_printoptions: expected sci_mode to be True or False, got {sci_mode!r}")
        options.sci_mode = sci_mode


def text_of(values: np.ndarray, indent: int = 0) -> str:
    """The values as `print` shows them.  `indent`: how many columns to the right the text will stand.

    >>> print(text_of(np.array([[1, -20], [300, 4]])))
    [[ 1 , -20],
     [300,  4 ]]
    """
    if values.dtype in dtypes.LOW_PRECISION:
        values = values.astype(np.float32)
    if values.ndim == 0:
        return _element(values[()])
    shorten = math.prod(values.shape) > current().printing.threshold
    return _nested(values, indent, _Column(_edges(values)), _ends if shorten else range)


def _ends(size: int) -> Iterator[int | None]:
    """The indices along a dimension whose middle is left out, None in its place."""
    edge = current().printing.edgeitems
    if size <= 2 * edge:
        yield from range(size)
        return
    yield from range(edge)
    yield None
    yield from range(size - edge, size)


def _edges(values: np.ndarray) -> np.ndarray:
    """The elements near the ends of every dimension."""
    for axis, size in enumerate(values.shape):
        kept = [i for i in _ends(size) if i is not None] or range(size)
        values = np.take(values, kept, axis)
    return values


def _element(x: Any) -> str:
    """One element, as wide as it is."""
    if isinstance(x, np.complexfloating):
        plus = "+" if x.imag >= 0 else ""               # (so -0. has two signs)
        return f"({_digits(x.real)}{plus}{_digits(x.imag)}j)"
    if isinstance(x, np.floating):
        return f"{x:.0f}." if not current().printing.sci_mode and np.ceil(x) == x else _digits(x)
    return str(x)


def _digits(x: Any) -> str:
    options = current().printing
    return f"{x:.{options.precision}{'e' if options.sci_mode else 'f'}}"


class _Column:
    """Prints elements in one width, that of the widest of `edges`."""

    def __init__(self, edges: np.ndarray):
        elements = list(edges.flat)
        self.width = max((len(_element(x)) for x in elements), default=0)
        self.signed = any(x < 0 for x in elements)

    def __call__(self, x: Any) -> str:
        text = _element(x)
        if self.signed and len(text) < self.width and not x < 0:
            text = f" {text}"
        return text.ljust(self.width)


def _nested(values: np.ndarray, indent: int, column: _Column, indices: Callable) -> str:
    """The brackets, the first of them at column `indent`, and what is between them."""
    margin = " " * (indent + 1)
    if values.ndim == 1:
        texts = ["..." if i is None else column(values[i]) for i in indices(len(values))]
        n = max(1, (current().printing.linewidth - indent) // (column.width + len(", ")))
        lines = [", ".join(texts[i:i + n]) for i in range(0, len(texts), n)]
        return "[" + f",\n{margin}".join(lines) + "]"
    parts = ["..." if i is None else _nested(values[i], indent + 1, column, indices) for i in indices(len(values))]
    between = "," + "\n" * (values.ndim - 1) + margin
    return "[" + between.join(parts) + "]"
