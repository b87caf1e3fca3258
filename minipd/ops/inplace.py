"""In-place functions: `abs_(x)` and `x.abs_()` compute `abs(x)` and let x be the result.

One table.  A function's in-place form follows from the function: it is not written a second time.
"""

from __future__ import annotations

import functools
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.framework.views import write, write_anew
from minipd.ops import (
    activation,
    along_axis,
    bitwise,
    diagonal,
    division,
    elementary,
    float_parts,
    logic,
    masking,
    math,
    matrices,
    pointwise,
    reshape,
    rounding,
    scaling,
    scan,
    scatter,
    special,
    triangle,
    two_operands,
)

INPLACE = {
    math: "abs add maximum minimum mul multiply pow square sub subtract",
    scaling: "neg negative scale",
    elementary: """acos acosh asin asinh atan atanh cos cosh deg2rad exp expm1 log log10 log1p log2 rad2deg reciprocal
                   rsqrt sin sinh sqrt stanh tan tanh""",
    bitwise: """bitwise_and bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
                bitwise_xor""",
    division: "floor_divide floor_mod gcd lcm mod remainder",
    rounding: "ceil floor frac round trunc",
    pointwise: "clamp clip lerp",
    two_operands: "atan2 fmax fmin heaviside hypot logaddexp",
    float_parts: "copysign nan_to_num nextafter",
    special: """digamma erf erfinv gammainc gammaincc gammaln i0 i0e i1 i1e lgamma logit multigammaln polygamma sinc""",
    matrices: "addmm baddbmm renorm",
    scatter: "index_add index_fill index_put scatter",
    along_axis: "put_along_axis scatter_add",
    masking: "masked_fill masked_scatter",
    diagonal: "fill_diagonal fill_diagonal_tensor",
    triangle: "tril triu",
    activation: "relu sigmoid",
}

#: The same for functions whose result may have another shape or dtype: then the tensor leaves its memory.
ANEW = {
    division: "div divide",
    reshape: "flatten reshape squeeze t transpose unsqueeze",
    float_parts: "ldexp",
    scan: "cumprod cumsum logcumsumexp",
    logic: """equal greater greater_equal greater_than less less_equal less_than logical_and logical_not logical_or
              logical_xor not_equal""",
}


def inplace(function: Any, written: Any = write) -> Any:
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
        return written(x, function, *others, **attrs)
    method.__dict__.pop("is_entrance", None)            # the function tells of its own errors, not of the write's
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`{function.__name__}`, in place.  Returns the tensor itself."
    return method


IN_PLACE = {f"{name}_": inplace(getattr(module, name), written)
            for table, written in ((INPLACE, write), (ANEW, write_anew))
            for module, names in table.items() for name in names.split()}
globals().update(IN_PLACE)
__all__ = list(IN_PLACE)
