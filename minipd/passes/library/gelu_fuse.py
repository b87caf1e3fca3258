"""Both forms of gelu, as authors compose them, become the operator.

    >>> import math
    >>> from minipd.ops.special import erf
    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("gelu_fuse_pass", lambda x: 0.5 * x * (1.0 + erf(x / math.sqrt(2.0))), (2, 3)))
    before
      a = multiply(0.5, x)
      b = divide(x, 1.4142135623730951)
      c = erf(b)
      d = add(1.0, c)
      e = multiply(a, d)
      return e
    after
      a = gelu(x)
      return a

Rounds otherwise: the operator keeps its digits far left of 0, where 1 + erf loses them.
"""

from __future__ import annotations

import math
from typing import Any

from minipd.ops.activation import GELU_CUBIC, GELU_SCALE
from minipd.passes.drr import drr
from minipd.passes.formula import ops

__all__: list[str] = []

NAME = "gelu_fuse_pass"


def near(number: Any, wanted: float) -> bool:
    """Whether a constant is this number, as float32 has it."""
    return math.isclose(number, wanted, rel_tol=1e-6)


#: how 0.5 x (1 + t) is written: the half with x, with 1 + t, or with both
HALVED = {
    "": lambda x, t: (x * 0.5) * (t + 1.0),
    "HalfOfSum": lambda x, t: x * ((t + 1.0) * 0.5),
    "HalfLast": lambda x, t: (x * (t + 1.0)) * 0.5,
}
#: how c (x + d x^3) is written
INSIDE = {
    "": lambda x, c, d: (x + x ** 3.0 * d) * c,
    "Product": lambda x, c, d: (x + x * x * x * d) * c,
    "Square": lambda x, c, d: (x + ops.square(x) * x * d) * c,
    "Fast": lambda x, c, d: (x * c) * ((x * d) * x + 1.0),
}


def by_erf(halved: Any, divides: bool) -> type:
    """0.5 x (1 + erf(x / sqrt 2))."""
    class Gelu:
        def source(x, *, c):
            return halved(x, ops.erf(x / c if divides else x * c))

        def constraint(c):
            return near(c, math.sqrt(2.0) if divides else math.sqrt(0.5))

        def result(x):
            return ops.gelu(x)
    Gelu.__doc__ = by_erf.__doc__
    return Gelu


def by_tanh(halved: Any, inside: Any) -> type:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    class GeluTanh:
        def source(x, *, c, d):
            return halved(x, ops.tanh(inside(x, c, d)))

        def constraint(c, d):
            return near(c, GELU_SCALE) and near(d, GELU_CUBIC)

        def result(x):
            return ops.gelu(x, approximate=True)
    GeluTanh.__doc__ = by_tanh.__doc__
    return GeluTanh


def _enter(made: type, *words: str) -> None:
    made.__name__ = made.__name__ + "".join(words)
    drr(NAME)(made)


for _half, _halved in HALVED.items():
    for _word, _divides in (("", True), ("Times", False)):
        _enter(by_erf(_halved, _divides), _half, _word)
    for _word, _inside in INSIDE.items():
        _enter(by_tanh(_halved, _inside), _half, _word)
