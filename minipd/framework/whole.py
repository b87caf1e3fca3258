"""Functions of several operators that are one operator elsewhere.

`leaky_relu(x)` calls three rows here; Paddle's programs have one `pd_op.leaky_relu`.  A trace that writes programs for
others wants to know: it is told of the call, and may note what the function wrote, and for whom.  On a mesh, such a
function may bring its operands into line, as one operator would (`aligned`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor

__all__ = ["aligned", "whole"]


def whole(function: Callable) -> Callable:
    """Decorator: the ground is told of a call of this function, if it wants to know.

    >>> @whole
    ... def twice(x):
    ...     return x + x
    >>> twice(3)
    6
    """
    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        told = current().ground.whole
        return function(*args, **named) if told is None else told(function, args, named)
    return call


def aligned(words: tuple[str, ...], *xs: Tensor, **how: Any) -> tuple[Tensor, ...]:
    """The operands of a composition, those of them on a mesh placed as one operator would place them.

    words: a letter for each dimension of each; "1" is one of size 1 that repeats.  Operands are split alike where they
    have a letter in common.  how: `prefer` and `lead`, which say who wins if they disagree, as in an SPMD rule.
    Otherwise each operator inside would decide for itself, and a parameter might move an activation.
    """
    if not any(hasattr(x.payload, "placements") for x in xs):
        return xs
    return tuple(ROWS["align"](*xs, words=words, **how))
