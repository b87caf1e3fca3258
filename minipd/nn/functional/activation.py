"""Activations.

Most are compositions of a few operators, and have their gradients from those; what is an operator of its own is in
`minipd.ops.activation`.  At a corner the gradient is Paddle's.
"""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.views import write
from minipd.framework.whole import whole
from minipd.ops import activation, random
from minipd.ops.activation import Gelu, LogSoftmax, log_sigmoid, relu, sigmoid, softmax, swiglu
from minipd.ops.cast import cast
from minipd.ops.creation import arange
from minipd.ops.elementary import expm1, log, tanh
from minipd.ops.geometry import channel_axis
from minipd.ops.inplace import inplace
from minipd.ops.logic import logical_or
from minipd.ops.math import abs, where
from minipd.ops.reduce import argmax, max
from minipd.ops.shapes import agree, normalize_axis, require_floating

__all__ = ["celu", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
           "hardtanh_", "leaky_relu", "leaky_relu_", "log_sigmoid", "log_softmax", "logsigmoid", "maxout", "mish",
           "prelu", "relu", "relu6", "relu_", "rrelu", "selu", "sigmoid", "silu", "softmax", "softmax_", "softplus",
           "softshrink", "softsign", "swiglu", "swish", "tanh", "tanh_", "tanhshrink", "thresholded_relu",
           "thresholded_relu_"]

logsigmoid = log_sigmoid


# ------------------------------------------------------------------------------------------- lines with corners
@whole
def relu6(x: Tensor, name: str | None = None) -> Tensor:
    """min(max(x, 0), 6)."""
    return _between(x, 0.0, 6.0)


def _between(x: Tensor, low: float, high: float) -> Tensor:
    """x held in [low, high]; the gradient is 0 at both ends."""
    return where(x >= high, high, where(x <= low, low, x))


@whole
def hardtanh(x: Tensor, min: float = -1.0, max: float = 1.0, name: str | None = None) -> Tensor:
    """x held in [min, max]."""
    return _between(x, float(min), float(max))


@whole
def hardsigmoid(x: Tensor, slope: float = 0.1666667, offset: float = 0.5, name: str | None = None) -> Tensor:
    """slope x + offset, held in [0, 1]."""
    return _between(x * slope + offset, 0.0, 1.0)


@whole
def hardswish(x: Tensor, name: str | None = None) -> Tensor:
    """x min(max(x + 3, 0), 6) / 6.   (Howard et al., Searching for MobileNetV3, 2019)"""
    return x * _between(x + 3.0, 0.0, 6.0) / 6.0


@whole
def leaky_relu(x: Tensor, negative_slope: float = 0.01, name: str | None = None) -> Tensor:
    """x where it is not negative, else negative_slope x; at 0 the gradient is 1.

    >>> from minipd.ops.creation import to_tensor
    >>> leaky_relu(to_tensor([-2.0, 3.0]), 0.5).tolist()
    [-1.0, 3.0]
    """
    return where(x >= 0.0, x, x * negative_slope)


@whole
def prelu(x: Tensor, weight: Tensor, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """x where it is positive, else weight x; weight [1], or [C] with one slope for each channel.   (He et al. 2015)

    data_format: C is the second dimension, or the last one where the name (but "NC") ends with C.
    Raises: ValueError for a weight of another size, or an unknown data_format.
    """
    own, got = tuple(x.payload.shape), tuple(weight.payload.shape)
    if len(got) != 1 or got != (1,) and x.ndim < 2:
        raise ValueError(f"prelu: expected a weight [1], or [C] for x [N, C, ...], got {describe(weight.payload)} for "
                         f"x {describe(x.payload)}")
    if got != (1,):
        at = channel_axis("prelu", x, data_format)
        if not agree(got[0], own[at], "prelu: slopes and channels"):
            raise ValueError(f"prelu: expected one slope for each of the {own[at]} channels of {describe(x.payload)}, "
                             f"got weight {describe(weight.payload)}")
        weight = weight.reshape([-1 if i == at else 1 for i in range(x.ndim)])
    return where(x > 0.0, x, x * weight)


def rrelu(x: Tensor, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, training: bool = True,
          name: str | None = None) -> Tensor:
    """`leaky_relu` whose slope is drawn for each element from [lower, upper); outside of training, their middle.

    Raises: ValueError unless 0 <= lower <= upper <= 1.
    """
    if not 0.0 <= lower <= upper <= 1.0:
        raise ValueError(f"rrelu: expected 0 <= lower <= upper <= 1, got lower={lower}, upper={upper}")
    if not training:
        return leaky_relu(x, (lower + upper) / 2.0)
    require_floating("rrelu", x.payload)
    return where(x >= 0.0, x, x * random.uniform(x.shape, x.dtype, lower, upper))


@whole
def thresholded_relu(x: Tensor, threshold: float = 1.0, value: float = 0.0, name: str | None = None) -> Tensor:
    """x above the threshold, else `value`."""
    return where(x > threshold, x, float(value))


@whole
def hardshrink(x: Tensor, threshold: float = 0.5, name: str | None = None) -> Tensor:
    """x where it is farther from 0 than the threshold, else 0."""
    return where(_outside(x, threshold), x, 0.0)


def _outside(x: Tensor, threshold: float) -> Tensor:
    return logical_or(x > threshold, x < -threshold)


@whole
def softshrink(x: Tensor, threshold: float = 0.5, name: str | None = None) -> Tensor:
    """x moved towards 0 by the threshold, and no farther than 0."""
    if threshold < 0:
        raise ValueError(f"softshrink: expected a threshold of at least 0, got {threshold}")
    return where(x > threshold, x - threshold, where(x < -threshold, x + threshold, 0.0 * x))


# --------------------------------------------------------------------------------------------- smooth ones
@whole
def elu(x: Tensor, alpha: float = 1.0, name: str | None = None) -> Tensor:
    """x where it is positive, else alpha (e^x - 1).   (Clevert, Unterthiner, Hochreiter 2015)"""
    return where(x > 0.0, x, expm1(_left(x)) * alpha)


def _left(x: Tensor) -> Tensor:
    """x where it is not positive, else 0, so that e^x overflows nowhere; all of the gradient at 0 goes through."""
    return where(x > 0.0, 0.0, x)


@whole
def celu(x: Tensor, alpha: float = 1.0, name: str | None = None) -> Tensor:
    """x where it is positive, else alpha (e^(x / alpha) - 1).   (Barron 2017)"""
    if alpha == 0:
        raise ValueError("celu: expected an alpha other than 0, by which x is divided")
    return where(x > 0.0, x, expm1(_left(x) / alpha) * alpha)


@whole
def selu(x: Tensor, scale: float = 1.0507009873554804934193349852946,
         alpha: float = 1.6732632423543772848170429916717, name: str | None = None) -> Tensor:
    """scale x where x is positive, else scale alpha (e^x - 1).   (Klambauer et al. 2017)"""
    if scale <= 1.0 or alpha < 0.0:
        raise ValueError(f"selu: expected a scale above 1 and an alpha of at least 0, got {scale} and {alpha}")
    return elu(x, alpha) * scale


def silu(x: Tensor, inplace: bool = False, name: str | None = None) -> Tensor:
    """x * sigmoid(x).  inplace: the result is written into x."""
    return write(x, activation.silu) if inplace else activation.silu(x)


@whole
def swish(x: Tensor, name: str | None = None) -> Tensor:
    """x sigmoid(x): another name of `silu`."""
    return activation.silu(x)


@whole
def softplus(x: Tensor, beta: float = 1, threshold: float = 20, name: str | None = None) -> Tensor:
    """log(1 + e^(beta x)) / beta; x itself where beta x exceeds the threshold."""
    soft: Any = 0.0 - log_sigmoid(x * -float(beta))            # not -log_sigmoid: its 0 would be -0
    soft = soft if beta == 1 else soft / float(beta)
    return where(x * float(beta) > float(threshold), x, soft)


def gelu(x: Tensor, approximate: bool | str = False, name: str | None = None) -> Tensor:
    """x Phi(x), Phi the normal distribution function.   (Hendrycks, Gimpel 2016)

    approximate: True or "tanh" for the approximation by a tanh; False or "none".

    >>> from minipd.ops.creation import to_tensor
    >>> [round(y, 6) for y in gelu(to_tensor([-1.0, 1.0])).tolist()]
    [-0.158655, 0.841345]
    """
    if approximate not in (True, False, "tanh", "none"):
        raise ValueError(f"gelu: expected approximate to be True, False, 'tanh' or 'none', got {approximate!r}")
    return Gelu(x, approximate=approximate in (True, "tanh"))


@whole
def mish(x: Tensor, name: str | None = None) -> Tensor:
    """x tanh(softplus(x)).   (Misra 2019)"""
    return x * tanh(-log_sigmoid(-x))


@whole
def softsign(x: Tensor, name: str | None = None) -> Tensor:
    """x / (1 + |x|)."""
    return x / (abs(x) + 1.0)


@whole
def tanhshrink(x: Tensor, name: str | None = None) -> Tensor:
    """x - tanh(x)."""
    return x - tanh(x)


# ----------------------------------------------------------------------------------------- along a dimension
def log_softmax(x: Tensor, axis: int = -1, dtype: Any = None, name: str | None = None) -> Tensor:
    """log(softmax(x)) over `axis`, without the rounding of either.

    >>> from minipd.ops.creation import to_tensor
    >>> log_softmax(to_tensor([0.0, 1e4])).tolist()
    [-10000.0, 0.0]
    """
    x = x if dtype is None else cast(x, dtype)
    return LogSoftmax(x, axis=normalize_axis("log_softmax", axis, x.ndim))


def gumbel_softmax(x: Tensor, temperature: float = 1.0, hard: bool = False, axis: int = -1,
                   name: str | None = None) -> Tensor:
    """A sample of the categorical distribution with logits x, relaxed: softmax((x + noise) / temperature).

    noise: independent, Gumbel: -log(-log u), u even in (0, 1).  (Jang, Gu, Poole 2016)
    hard: the value is one-hot at the largest; the gradient is the relaxed sample's.
    Raises: ValueError for a temperature that is not positive.
    """
    if not temperature > 0:
        raise ValueError(f"gumbel_softmax: expected a positive temperature, got {temperature}")
    require_floating("gumbel_softmax", x.payload)
    axis = normalize_axis("gumbel_softmax", axis, x.ndim)
    tiny = float(dtypes.finfo(x.payload.dtype).tiny)
    noise = -log(-log(random.uniform(x.shape, x.dtype, 0.0, 1.0) + tiny))
    soft = softmax((x + noise) / temperature, axis)
    if not hard:
        return soft
    numbers = arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    one_hot = cast(numbers == argmax(soft.detach(), axis, keepdim=True), x.dtype)
    return one_hot - soft.detach() + soft


def glu(x: Tensor, axis: int = -1, name: str | None = None) -> Tensor:
    """a sigmoid(b), with a and b the halves of x along `axis`.   (Dauphin et al. 2016)"""
    a, b = x.split(2, normalize_axis("glu", axis, x.ndim))
    return a * sigmoid(b)


@whole
def maxout(x: Tensor, groups: int, axis: int = 1, name: str | None = None) -> Tensor:
    """The largest of each `groups` neighbours along `axis`, which has 1 / groups of its size then.

    (Goodfellow et al., Maxout Networks, 2013)
    Raises: ValueError if the groups do not divide the dimension.

    >>> from minipd.ops.creation import to_tensor
    >>> maxout(to_tensor([[1.0, 2.0, 4.0, 3.0]]), groups=2).tolist()
    [[2.0, 4.0]]
    """
    axis = normalize_axis("maxout", axis, x.ndim)
    shape = list(x.payload.shape)
    if groups < 2 or shape[axis] % groups:
        raise ValueError(f"maxout: expected at least 2 groups, a number that divides dimension {axis} of "
                         f"{describe(x.payload)}, got groups={groups}")
    return max(x.reshape([*shape[:axis], shape[axis] // groups, groups, *shape[axis + 1:]]), axis + 1)


elu_, hardtanh_, leaky_relu_, relu_, softmax_, tanh_, thresholded_relu_ = map(
    inplace, (elu, hardtanh, leaky_relu, relu, softmax, tanh, thresholded_relu))
