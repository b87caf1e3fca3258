"""In-place functions: `abs_(x)` and `x.abs_()` compute `abs(x)` and let x be the result.

One table.  A function's in-place form follows from the function: it is not written a second time.  (Forms that change
the shape, such as `reshape_`, or the dtype are not among these; they stand beside their functions.)
"""

from __future__ import annotations

import functools
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.framework.views import write
from minipd.ops import activation, elementary, math

INPLACE = {
    math: "abs add divide multiply subtract scale",
    elementary: "exp rsqrt sqrt tanh",
    activation: "relu sigmoid",
}


def inplace(function: Any) -> Any:
    """The in-place form of a public function: its first operand is written.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([1.0, 4.0])
    >>> inplace(elementary.sqrt)(x) is x, x.tolist()
    (True, [1.0, 2.0])
    """
    name = f"{function.__name__}_"

    @functools.wraps(function)
    def method(x: Tensor, *others: Any, **attrs: Any) -> Tensor:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected a Tensor to write, got {type(x).__name__}")
        return write(x, function, *others, **attrs)
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`{function.__name__}`, in place.  Returns the tensor itself."
    return method


IN_PLACE = {f"{name}_": inplace(getattr(module, name)) for module, names in INPLACE.items() for name in names.split()}
globals().update(IN_PLACE)
__all__ = list(IN_PLACE)
