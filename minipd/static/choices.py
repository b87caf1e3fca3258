"""`case` and `switch_case`: one of several functions runs.  Both are chains of `cond`, as in Paddle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ops.creation import full
from minipd.static.control_flow import cond

__all__ = ["case", "switch_case"]

Pairs = list[tuple[Any, Callable]]
INTS = ("uint8", "int32", "int64")


def case(pred_fn_pairs: Sequence, default: Callable | None = None, name: str | None = None) -> Any:
    """Paddle's `paddle.static.nn.case`: what the function of the first pair whose condition is true returns.

    pred_fn_pairs: (bool tensor of one element, function) pairs.  default: runs if no condition is true; without one,
    the function of the last pair does, whatever its condition.  The functions return alike, as those of `cond`.

    Raises: TypeError for other arguments, ValueError for no pairs.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor(3.0)
    >>> case([(x < 2.0, lambda: x), (x < 4.0, lambda: x * 10.0)], default=lambda: -x).item()
    30.0
    """
    pairs = _pairs("case", "pred_fn_pairs", pred_fn_pairs, "(condition, function)")
    for i, (pred, _) in enumerate(pairs):
        if not isinstance(pred, (Tensor, bool)):
            raise TypeError(f"case: expected the condition of pair {i} to be a bool tensor, got {pred!r}")
    return _chain(*_with_default("case", pairs, default))


def switch_case(branch_index: Any, branch_fns: Any, default: Callable | None = None, name: str | None = None) -> Any:
    """Paddle's `paddle.static.nn.switch_case`: what the function with the number `branch_index` returns.

    branch_index: an int tensor of one element.  branch_fns: {number: function}, (number, function) pairs, or a list of
    functions, which are numbered from 0.  default: runs if none has that number; without one, the function of the
    largest number does.  The functions return alike, as those of `cond`.

    Raises: TypeError for other arguments, ValueError for none, or two functions with one number.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor(3.0)
    >>> switch_case(to_tensor(2), {1: lambda: x, 2: lambda: x * 10.0}, default=lambda: -x).item()
    30.0
    """
    if isinstance(branch_fns, dict):
        branch_fns = list(branch_fns.items())
    elif isinstance(branch_fns, (list, tuple)) and all(map(callable, branch_fns)):
        branch_fns = list(enumerate(branch_fns))
    found: dict[int, Callable] = {}
    for number, fn in _pairs("switch_case", "branch_fns", branch_fns, "(number, function)"):
        if type(number) is not int:
            raise TypeError(f"switch_case: expected ints as the numbers of functions, got {number!r}")
        if number in found:
            raise ValueError(f"switch_case: expected each number once, got {number} twice")
        found[number] = fn
    numbered: Pairs = [(number, found[number]) for number in sorted(found)]
    numbered, last = _with_default("switch_case", numbered, default)
    if not isinstance(branch_index, Tensor):
        return dict(numbered).get(branch_index, last)()
    if branch_index.payload.dtype.name not in INTS or branch_index.size != 1:
        raise TypeError(f"switch_case: expected branch_index to be one number of dtype {', '.join(INTS)}, got "
                        f"{describe(branch_index.payload)}; cast it first")
    index = branch_index if branch_index.payload.dtype.name == "int64" else branch_index.astype("int64")
    pairs = [(index == full([1], number, "int64"), fn) for number, fn in numbered]
    return _chain(pairs[::-1], last)


def _pairs(who: str, what: str, pairs: Any, kind: str) -> Pairs:
    if not isinstance(pairs, (list, tuple)):
        raise TypeError(f"{who}: expected {what} to be a list or a tuple of {kind} pairs, got {type(pairs).__name__}")
    if not pairs:
        raise ValueError(f"{who}: expected at least one {kind} pair, got none")
    for i, pair in enumerate(pairs):
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]):
            raise TypeError(f"{who}: expected a {kind} pair as element {i} of {what}, got {pair!r}")
    return list(pairs)


def _with_default(who: str, pairs: Pairs, default: Callable | None) -> tuple[Pairs, Callable]:
    if default is not None and not callable(default):
        raise TypeError(f"{who}: expected default to be a function, got {default!r}")
    return (pairs[:-1], pairs[-1][1]) if default is None else (pairs, default)


def _chain(pairs: Pairs, default: Callable) -> Any:
    """The first pair whose condition holds."""
    if not pairs:
        return default()
    (pred, fn), *rest = pairs
    return cond(pred, fn, lambda: _chain(rest, default))
