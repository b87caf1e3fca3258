"""Rules of the activations."""

from __future__ import annotations

import math

from minipd.decomposition.table import decompose_rule
from minipd.framework.tensor import Tensor
from minipd.ops.activation import GELU_CUBIC, GELU_SCALE
from minipd.ops.activation import sigmoid as sigmoid_of
from minipd.ops.elementary import exp, log1p, tanh
from minipd.ops.math import abs, minimum
from minipd.ops.special import erf

__all__: list[str] = []


@decompose_rule("sigmoid")
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + e^-x): far left of 0, e^-x is inf and the result 0."""
    return 1.0 / (exp(-x) + 1.0)


@decompose_rule("logsigmoid")
def logsigmoid(x: Tensor) -> Tensor:
    """min(x, 0) - log(1 + e^-|x|)."""
    return minimum(x, 0.0) - log1p(exp(-abs(x)))


@decompose_rule("silu")
def silu(x: Tensor) -> Tensor:
    """x sigmoid(x)."""
    return x * sigmoid_of(x)


@decompose_rule("swiglu")
def swiglu(x: Tensor, y: Tensor) -> Tensor:
    """x sigmoid(x) y."""
    return x * sigmoid_of(x) * y


@decompose_rule("gelu")
def gelu(x: Tensor, *, approximate: bool = False) -> Tensor:
    """x (1 + erf(x / sqrt 2)) / 2; approximate: with the tanh of the row.  (The row is more exact far left of 0.)"""
    if approximate:
        return x * 0.5 * (tanh(x * (x * x * (GELU_SCALE * GELU_CUBIC) + GELU_SCALE)) + 1.0)
    return x * 0.5 * (erf(x * math.sqrt(0.5)) + 1.0)
