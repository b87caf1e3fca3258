"""`and`, `or`, `not`, comparisons, `in`: Python's own unless an operand is a traced tensor."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from minipd.framework.meta import describe, is_traced
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.trace import Trace
from minipd.ops.cast import cast
from minipd.ops.logic import logical_not, logical_or

__all__: list[str] = []

SIGNS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
         ">=": operator.ge}


def traced(x: Any) -> bool:
    """Whether a value is a tensor that only the program knows."""
    return isinstance(x, Tensor) and is_traced(x.payload) and isinstance(current().ground, Trace)


def truth(x: Any) -> Any:
    """The truth of a traced tensor of one element, a bool tensor of shape []; everything else as it is."""
    if not traced(x):
        return x
    if x.dtype.name != "bool":
        x = cast(x, "bool")
    if x.shape == []:
        return x
    if all(isinstance(d, int) and d != 1 for d in x.payload.shape):
        raise ValueError(f"expected a condition to be one truth value, got {describe(x.payload)}; reduce it with "
                         "all(), any(), or compare one element")
    return x.reshape([])


def as_bool(x: Any) -> Any:
    """The truth of anything."""
    return truth(x) if traced(x) else bool(x)


def And(left: Any, right: Callable[[], Any], test: bool = False) -> Any:
    """`left and right()`.  test: only the truth of the result is asked."""
    return _lazy(left, right, test, False)


def Or(left: Any, right: Callable[[], Any], test: bool = False) -> Any:
    return _lazy(left, right, test, True)


def _lazy(left: Any, right: Callable[[], Any], test: bool, decides: bool) -> Any:
    """decides: the truth of `left` with which `right` is not looked at."""
    if not traced(left):
        return left if bool(left) is decides else right()
    from minipd.jit.dy2static.branches import choose
    known = truth(left)
    if test:
        left = known
        wanted = right
        right = lambda: as_bool(wanted())   # noqa: E731
    kept = lambda: left                     # noqa: E731
    return choose(known, kept, right) if decides else choose(known, right, kept)


def Not(x: Any) -> Any:
    return logical_not(truth(x)) if traced(x) else not x


def Compare(left: Any, *rest: Any) -> Any:
    """`left < b < c` from `left, "<", lambda: b, "<", lambda: c`: every operand once, and only as far as needed."""
    sign, right, *more = rest
    value = right()
    found = SIGNS[sign](left, value)
    return And(found, lambda: Compare(value, *more)) if more else found


def In(x: Any, xs: Any) -> Any:
    """`x in xs`; with traced tensors, whether x equals one of the elements of a list, tuple or tensor."""
    if isinstance(xs, Tensor) and (traced(x) or traced(xs)):
        return (xs == x).any()
    if not isinstance(xs, (list, tuple)) or not (traced(x) or any(map(traced, xs))):
        return x in xs
    if any(x is one for one in xs):
        return True
    found: Any = False
    for one in xs:
        found = logical_or(truth(x == one), found) if traced(found) else truth(x == one) if found is False else found
        if found is not False and not traced(found):
            found = bool(found)
            if found:
                return True
    return found


def NotIn(x: Any, xs: Any) -> Any:
    return Not(In(x, xs))
