"""Activations by name, as the attribute `activation` of fused operators has them.

`activate_over` works in place, on a block of rows at a time (`blocks`): the block has just been written, by a product
mostly, and what is near the processor still needs no second trip to memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from minipd.framework.tensor import Tensor
from minipd.ops.activation import GELU_CUBIC, GELU_SCALE, Gelu, erfc_into, relu, sigmoid, silu
from minipd.ops.elementary import tanh
from minipd.ops.logic import greater_equal, less_equal
from minipd.ops.math import where

__all__ = ["ACTIVATIONS"]

#: the logistic function's scale that is nearest to the normal distribution's  (Hendrycks, Gimpel 2016)
QUICK = 1.702
#: bytes of a block
NEAR = 1 << 18


class Activation(NamedTuple):
    """over(xp, z): z = f(z), in place.  composed(z): f by other operators."""

    over: Callable[[Any, Any], Any]
    composed: Callable[[Tensor], Tensor]


def _relu_over(xp: Any, z: Any) -> None:
    xp.maximum(z, z.dtype.type(0), out=z)


def _relu6_over(xp: Any, z: Any) -> None:
    xp.clip(z, z.dtype.type(0), z.dtype.type(6), out=z)


def _sigmoid_over(xp: Any, z: Any) -> None:
    xp.negative(z, out=z)
    with xp.errstate(over="ignore"):
        xp.exp(z, out=z)
    z += 1
    xp.reciprocal(z, out=z)


def _silu_over(xp: Any, z: Any) -> None:
    s = z.copy()
    _sigmoid_over(xp, s)
    z *= s


def _gelu_over(xp: Any, z: Any) -> None:
    t = z * z.dtype.type(-math.sqrt(0.5))
    erfc_into(xp, t, t)
    t *= z.dtype.type(0.5)
    z *= t


def _quick_gelu_over(xp: Any, z: Any) -> None:
    s = z * z.dtype.type(QUICK)
    _sigmoid_over(xp, s)
    z *= s


def _gelu_tanh_over(xp: Any, z: Any) -> None:
    number = z.dtype.type
    t = z * z
    t *= number(GELU_SCALE * GELU_CUBIC)
    t += number(GELU_SCALE)
    t *= z
    xp.tanh(t, out=t)
    t += number(1)
    t *= number(0.5)
    z *= t


def _hardswish_over(xp: Any, z: Any) -> None:
    number = z.dtype.type
    t = z + number(3)
    xp.clip(t, number(0), number(6), out=t)
    t *= number(1 / 6)
    z *= t


def relu6(x: Tensor) -> Tensor:
    """Between 0 and 6."""
    return where(greater_equal(x, 6.0), 6.0, where(less_equal(x, 0.0), 0.0, x))


#: name -> the activation; Paddle's names, "gelu_tanh" for gelu with approximate=True, and "quick_gelu" for CLIP's
#: approximation, x sigmoid(1.702 x)
ACTIVATIONS: dict[str, Activation] = {
    "none": Activation(lambda xp, z: None, lambda z: z),
    "relu": Activation(_relu_over, relu),
    "relu6": Activation(_relu6_over, relu6),
    "gelu": Activation(_gelu_over, lambda z: Gelu(z, approximate=False)),
    "gelu_tanh": Activation(_gelu_tanh_over, lambda z: Gelu(z, approximate=True)),
    "quick_gelu": Activation(_quick_gelu_over, lambda z: z * sigmoid(z * QUICK)),
    "silu": Activation(_silu_over, silu),
    "sigmoid": Activation(_sigmoid_over, sigmoid),
    "tanh": Activation(lambda xp, z: xp.tanh(z, out=z), tanh),
    "hardswish": Activation(_hardswish_over, lambda z: z * relu6(z + 3.0) / 6.0),
}


def require_activation(what: str, name: str) -> None:
    """Raise ValueError unless there is an activation of that name."""
    if name not in ACTIVATIONS:
        raise ValueError(f"{what}: expected an activation among {', '.join(ACTIVATIONS)}, got {name!r}")


def activate(name: str, z: Tensor) -> Tensor:
    """f(z) by other operators."""
    return ACTIVATIONS[name].composed(z)


def activate_over(xp: Any, z: Any, name: str) -> None:
    """z = f(z), in place."""
    ACTIVATIONS[name].over(xp, z)


def blocks(out: Any, last: int = 1) -> Iterator[tuple[slice, Any]]:
    """(which rows, those rows) of an array as rows of its `last` dimensions, a few at a time, about NEAR bytes.

    An array that does not lie as rows in memory comes whole, in its own shape.
    """
    if not out.flags.c_contiguous or not out.size:
        yield slice(None), out
        return
    inner = out.shape[out.ndim - last:]
    rows = out.reshape(-1, *inner)
    step = max(1, NEAR * len(rows) // out.nbytes)
    for i in range(0, len(rows), step):
        yield slice(i, i + step), rows[i:i + step]
