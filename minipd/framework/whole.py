"""Functions of several operators that are one operator elsewhere.

`leaky_relu(x)` calls three rows here; Paddle's programs have one `pd_op.leaky_relu`.  A trace that writes programs for
others wants to know: it is told of the call, and may note what the function wrote, and for whom.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from minipd.framework.rank import current

__all__ = ["whole"]


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
