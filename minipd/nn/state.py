"""Loading a state_dict: all of it fits, or nothing is changed and the error says what does not fit."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor

__all__: list[str] = []

LISTED = 8      # how many names an error spells out


PART = ", or load a part with load_state_dict(..., strict=False)"


def load_state(owner: str, own: Mapping[str, Tensor], given: Any, strict: bool = True,
               hint: str = PART) -> tuple[list[str], list[str]]:
    """Give the tensors in `own` the values of the entries in `given` with the same names.

    Returns: the names that `given` lacks, and those that it has too many; without `strict` they are let pass.
    Raises: ValueError, before anything is changed, naming what is missing, unexpected, or of another shape or dtype.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"state of {owner}: expected a dict of name -> Tensor or array, got {type(given).__name__}")
    missing = [name for name in own if name not in given]
    unexpected = [name for name in given if name not in own]
    wrong = [f"{name}: expected {describe(own[name])}, got {describe(given[name])}" for name in own
             if name in given and not _fits(own[name], given[name])]
    problems = []
    if strict and missing:
        problems.append(f"missing {listed(missing)}")
    if strict and unexpected:
        problems.append(f"unexpected {listed(unexpected)}" + _guess(unexpected, missing))
    if wrong:
        problems.append("of another shape or dtype " + listed(wrong))
    if problems:
        raise ValueError(f"state of {owner}, {len(own)} entries: {'; '.join(problems)}.  Nothing was loaded; rename or "
                         f"convert the entries{hint if strict and not wrong else ''}")
    for name, tensor in own.items():
        if name in given:
            tensor.set_value(given[name])
    return missing, unexpected


def _fits(own: Tensor, given: Any) -> bool:
    if not hasattr(given, "shape") or not hasattr(given, "dtype"):
        return False
    return tuple(own.shape) == tuple(given.shape) and own.dtype == dtypes.to_np(given.dtype)


def listed(names: Iterable[str]) -> str:
    """
    >>> listed(["a", "b"]), listed("abcdefghij")
    ('(2): a, b', '(10): a, b, c, d, e, f, g, h, ...')
    """
    names = list(names)
    return f"({len(names)}): {', '.join(names[:LISTED])}" + (", ..." if len(names) > LISTED else "")


def _guess(unexpected: list[str], missing: list[str]) -> str:
    for name in unexpected:
        close = difflib.get_close_matches(name, missing, 1, cutoff=0.75)
        if close:
            return f" (is {name} meant for {close[0]}?)"
    return ""
