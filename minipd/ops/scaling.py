"""Multiplication by a number that is known beforehand, and its most frequent case, -x."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.rank import dispatch
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.promotion import as_tensor
from minipd.ops.shapes import a_number, require_numbers

__all__ = ["neg", "negative", "scale"]


@op("scale", Trait.ELEMENTWISE)
class Scale:
    """out = scale * x + bias, or scale * (x + bias) if not bias_after_scale."""

    mutable = ("scale",)

    def infer_meta(x, *, scale, bias=0.0, bias_after_scale=True):
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, scale, bias=0.0, bias_after_scale=True):
        scale = _number(x.dtype, scale)
        if bias == 0.0:
            return x * scale
        bias = _number(x.dtype, bias)
        return x * scale + bias if bias_after_scale else (x + bias) * scale

    def kernel_out(xp, out, x, *, scale, bias=0.0, bias_after_scale=True):
        scale, bias = _number(x.dtype, scale), _number(x.dtype, bias)
        if bias_after_scale:
            xp.multiply(x, scale, out=out)
            if bias != 0.0:
                xp.add(out, bias, out=out)
        else:
            xp.add(x, bias, out=out)
            xp.multiply(out, scale, out=out)

    def vjp_x(g, scale):
        return Scale(g, scale=scale)


def _number(dtype: np.dtype, value: Any) -> Any:
    """A Python number in a tensor's dtype.  Ints wrap around, so that -1 negates an unsigned tensor too."""
    return dtype.type(value) if dtype.kind not in "iu" else np.asarray(value).astype(dtype)[()]


# ------------------------------------------------------------------------------------------- public functions
def scale(x: Tensor, scale: Any = 1.0, bias: float = 0.0, bias_after_scale: bool = True, act: str | None = None,
          name: str | None = None) -> Tensor:
    """scale * x + bias (or scale * (x + bias)).

    >>> from minipd.ops.creation import to_tensor
    >>> scale(to_tensor([1.0, 2.0]), 2.0, 1.0).tolist()
    [3.0, 5.0]
    """
    x = as_tensor("scale", x)
    return Scale(x, **scale_attrs(x, scale, bias, bias_after_scale, act))


def scale_attrs(x: Tensor, scale: Any, bias: float, bias_after_scale: bool, act: str | None) -> dict[str, Any]:
    """The attributes of `scale`, and of `scale_`, on x.

    Raises: TypeError for an int tensor and a fraction, ValueError for an activation.
    """
    if act is not None:
        raise ValueError(f"scale: act={act!r} is not supported; apply the activation to the result")
    scale, bias = a_number("scale", "scale", scale), a_number("scale", "bias", bias)
    if x.payload.dtype not in dtypes.INEXACT and not all(float(v).is_integer() for v in (scale, bias)):
        raise TypeError(f"scale: expected whole numbers for a tensor of {x.dtype.name}, got scale={scale}, "
                        f"bias={bias}; cast the tensor first, x.astype('float32')")
    return {"scale": scale, "bias": bias, "bias_after_scale": bias_after_scale}


def neg(x: Tensor, name: str | None = None) -> Tensor:
    """-x (as Paddle, which has no operator for it: scale by -1)."""
    x = as_tensor("neg", x)
    require_numbers("neg", x.payload)
    return dispatch(Scale, (x,), {"scale": -1.0 if x.payload.dtype in dtypes.INEXACT else -1})


negative = neg
