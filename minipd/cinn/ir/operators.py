"""The operators of the loop IR: how each is written, what it means, and on what."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

__all__ = ["BINARY", "CALLS", "COMPARISONS", "UNARY", "Operator"]

#: how strongly text binds: comparisons, a sign in front, and what needs no parentheses anywhere
COMPARISON, NEGATION, ATOM = 4, 7, 9


class Operator(NamedTuple):
    """One operator.

    function: numpy's (or scipy's), on scalars of one dtype: what the operator means.
    sign: what stands between the operands, or in front of the only one; "" for text like `exp(x)`.
    strength: how strongly the sign binds, as in Python.
    floats: only floats have it.
    """

    function: Callable[..., Any]
    sign: str = ""
    strength: int = ATOM
    floats: bool = False


def _rsqrt(x: Any) -> Any:
    return x.dtype.type(1) / np.sqrt(x)


def _special(name: str, x: Any) -> Any:
    return getattr(importlib.import_module("scipy.special"), name)(x)       # slow to import, and seldom needed


UNARY = {
    "neg": Operator(np.negative, "-", NEGATION), "abs": Operator(np.absolute),
    **{name: Operator(getattr(np, name), floats=True) for name in ("exp", "log", "sqrt")},
    "rsqrt": Operator(_rsqrt, floats=True),
    **{name: Operator(getattr(np, name), floats=True) for name in ("tanh", "sin", "cos", "floor")},
    **{name: Operator(partial(_special, name), floats=True) for name in ("erf", "erfc")},
    "not": Operator(np.logical_not, "not ", 3), "isfinite": Operator(np.isfinite, floats=True)}

BINARY = {
    "add": Operator(np.add, "+", 5), "sub": Operator(np.subtract, "-", 5), "mul": Operator(np.multiply, "*", 6),
    "div": Operator(np.true_divide, "/", 6, floats=True), "pow": Operator(np.power, "**", 8),
    "max": Operator(np.maximum), "min": Operator(np.minimum),
    "mod": Operator(np.mod, "%", 6), "floordiv": Operator(np.floor_divide, "//", 6),
    "and": Operator(np.logical_and, "and", 2), "or": Operator(np.logical_or, "or", 1),
    "lt": Operator(np.less, "<", COMPARISON), "le": Operator(np.less_equal, "<=", COMPARISON),
    "gt": Operator(np.greater, ">", COMPARISON), "ge": Operator(np.greater_equal, ">=", COMPARISON),
    "eq": Operator(np.equal, "==", COMPARISON), "ne": Operator(np.not_equal, "!=", COMPARISON)}

COMPARISONS = tuple(name for name, operator in BINARY.items() if operator.strength == COMPARISON)

#: functions without an operator, by the name that the back end's library has for them
CALLS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in (
        "log1p", "expm1", "log2", "log10", "tan", "sinh", "cosh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh",
        "arctanh", "arctan2", "fmod", "rint", "ceil", "trunc", "hypot", "logaddexp", "copysign", "nextafter")},
    **{name: partial(_special, name) for name in ("gammaln", "digamma", "erfinv", "i0", "i0e", "i1", "i1e")}}
