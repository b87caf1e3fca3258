"""What user code asks about an open size while it is traced: `if x.shape[0] == 1`, `x.shape[0] > 4`, `int(x.shape[0])`.

Python wants an answer now.  It is given, and recorded as an assumption, so that the program serves exactly the sizes
for which the answer is right; other sizes need another program.

* Where the sizes of a call are known (`to_static`), they decide.
* Where none are known (`trace`, `jit.save`, static mode), `==` is False unless it is certain: S0 is not 1, and that is
  assumed.  Order, truth and values raise.

The library's own code asks differently: its shape rules compare structurally, and state what they need (`dim`).  So the
answer depends on whose line asks.  What only hands a question on (`operator.eq`, `Size.__eq__`, numpy, the helpers of
`dy2static`) is neither: the line that called it counts.
"""

from __future__ import annotations

import sys
import sysconfig
import weakref
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from minipd.framework.constraints import PACKAGE, current_asking
from minipd.framework.dim_atoms import modulo
from minipd.framework.dim_expr import Atom, DimExpr, Size, lift, normal

__all__: list[str] = []

#: code that asks for whoever has called it: Python's library and packages, numpy, and some files of this package
HANDS_ON = (*{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}, str(Path(np.__file__).parent),
            "<frozen")
#: where keys of weak tables are hashed when what they stand for is gone: at any moment, below whatever line runs then
FORGETTING = weakref.__file__
HELPERS = tuple(f"{PACKAGE}/{file}.py" for file in (
    "framework/size", "jit/dy2static/logic", "jit/dy2static/builtins", "jit/dy2static/indexed",
    "jit/dy2static/branches"))


def by_user(depth: int = 3) -> bool:
    """Whether a question is asked by a line of user code.  depth: how many calls up the line is; by default the caller
    of a method of DimExpr that calls a function here that calls this."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if file == FORGETTING:
            return False
        if file.startswith(PACKAGE):
            if not file.startswith(HELPERS):
                return False
        elif not file.startswith(HANDS_ON) and not (file == "<string>" and code.co_name[:2] == "__"):    # a dataclass
            return True
        frame = frame.f_back            # type: ignore[assignment]
    return False


def equal(dim: DimExpr, other: Any) -> bool:
    """`dim == other`, which are not the same expression."""
    if isinstance(other, float) and other.is_integer():
        other = int(other)
    if not isinstance(other, (DimExpr, Integral)) or not by_user():
        return False
    other = other if isinstance(other, DimExpr) else int(other)
    difference = _numerator(dim - other)
    if not isinstance(difference, DimExpr):
        return difference == 0
    return _decide("equal", difference, _value(difference) == 0, f"{dim} == {other}")


def truth(dim: DimExpr) -> bool | None:
    """`bool(dim)`; None if that is not for us to say."""
    found = _value(dim) if by_user() else None
    return None if found is None else not _decide("equal", dim, found == 0, f"bool({dim})")


def at_least(difference: DimExpr, what: str) -> bool | None:
    """Whether `difference` is at least 0; None as above.  (A method that compares asks through another.)"""
    found = _value(lift(_numerator(difference))) if by_user(4) else None
    return None if found is None else _decide("at least", difference, found >= 0, what)


def value(dim: DimExpr, what: str) -> int | None:
    """The value of a size, which is then assumed; None as above."""
    found = _value(dim) if by_user() else None
    if found is not None:
        _decide("equal", dim - found, True, what)
    return found


def exact_remainder(dim: Size, divisor: Size) -> Size | None:
    """`dim % divisor` for every size, of which a call decides what is asked about it; None as above."""
    asking = current_asking()
    if asking is None or asking.sizes is None or not by_user():
        return None
    return modulo(dim, divisor)


def _value(dim: Size) -> int | None:
    """The value of a size in the call that is traced, None if there is none."""
    asking = current_asking()
    if not isinstance(dim, DimExpr):
        return dim
    if asking is None or asking.sizes is None or not dim.symbols <= asking.sizes.keys():
        return None
    found = lift(_numerator(dim)).substitute(asking.sizes)
    assert isinstance(found, int)
    whole, rest = divmod(found, dim.denominator)
    return None if rest else whole


def _decide(kind: str, difference: Size, answer: bool, what: str) -> bool:
    """Whether a size is 0, or at least 0: as the assumptions tell, else `answer`, which is recorded."""
    asking = current_asking()
    if not isinstance(difference, DimExpr) or asking is None:
        return answer
    left, right = _sides(difference)
    known = asking.constraints.follows(kind, left, right)
    if known is not None:
        return known
    if kind == "equal":
        multiple = _multiple(difference) if answer else None
        if multiple is not None:
            asking.constraints.record("divisible", *multiple, what)
        else:
            asking.constraints.record("equal" if answer else "unequal", left, right, what)
    elif answer:
        asking.constraints.record("at least", left, right, what)
    else:
        asking.constraints.record("at least", right - 1, left, what)
    return answer


def _numerator(dim: Size) -> Size:
    return normal(dict(dim.terms), 1) if isinstance(dim, DimExpr) else dim


def _sides(difference: DimExpr) -> tuple[Size, Size]:
    """A difference as two sizes without negative terms, to be read: S0-4 is S0 and 4."""
    whole = lift(_numerator(difference))
    left = normal({m: c for m, c in whole.terms if c > 0}, 1)
    right = normal({m: -c for m, c in whole.terms if c < 0}, 1)
    return left, right


def _multiple(difference: DimExpr) -> tuple[Size, Size] | None:
    """(a, b) if the difference is the remainder of a by b."""
    for atom in difference.atoms:
        if isinstance(atom, Atom) and atom.function == "//":
            rest = modulo(*atom.args)
            if difference == rest or difference == -rest:
                return atom.args        # type: ignore[return-value]
    return None
