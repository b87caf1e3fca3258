"""Linear maps, look-ups, dropout, normalisation, and the activations that are operators of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.tensor import Tensor
from minipd.ops import activation, random
from minipd.ops import embedding as lookup
from minipd.ops.activation import relu, sigmoid, softmax, swiglu
from minipd.ops.cast import cast
from minipd.ops.elementary import exp, log, rsqrt, tanh
from minipd.ops.linalg import matmul
from minipd.ops.math import square
from minipd.ops.reduce import max, mean, sum
from minipd.ops.shapes import normalize_axis, shapes_agree

__all__ = ["dropout", "embedding", "linear", "log_softmax", "relu", "rms_norm", "sigmoid", "silu", "softmax",
           "swiglu", "tanh"]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, name: str | None = None) -> Tensor:
    """x @ weight + bias.   x [..., in], weight [in, out], bias [out] -> [..., out]"""
    out = matmul(x, weight)
    return out if bias is None else out + bias


def silu(x: Tensor, inplace: bool = False, name: str | None = None) -> Tensor:
    """x * sigmoid(x).  `inplace` is accepted; the result is always a new tensor."""
    return activation.silu(x)


def dropout(x: Tensor, p: float = 0.5, axis: Any = None, training: bool = True, inplace: bool = False,
            mode: str = "upscale_in_train", name: str | None = None) -> Tensor:
    """Each element zeroed with probability p while training; what stays is divided by 1 - p.

    The mask is named by layer and step, and indexed by the *global* position of an element: the shards' masks are the
    parts of the single rank's.  mode "downscale_in_infer" multiplies by 1 - p outside of training instead.
    """
    return random.dropout(x, p, axis, training, mode)


def check_embedding(max_norm: float | None, scale_grad_by_freq: bool) -> None:
    """ValueError for options of Paddle's embedding that are not supported."""
    if max_norm is not None:
        raise ValueError("embedding: max_norm is not supported; scale the weight's rows under no_grad() instead")
    if scale_grad_by_freq:
        raise ValueError("embedding: scale_grad_by_freq is not supported; scale the gradient in a hook instead")


def embedding(x: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, sparse: bool = False, scale_grad_by_freq: bool = False,
              name: str | None = None) -> Tensor:
    """Rows of `weight` by number.   x int [...], weight [rows, width] -> [..., width]

    padding_idx: this number gives zeros and no gradient.  sparse: without effect, gradients are dense.
    Raises: ValueError for a number outside 0 .. rows-1, and for max_norm or scale_grad_by_freq.
    """
    check_embedding(max_norm, scale_grad_by_freq)
    return lookup.embedding(x, weight, padding_idx)


def log_softmax(x: Tensor, axis: int = -1, dtype: Any = None, name: str | None = None) -> Tensor:
    """log(softmax(x)) over `axis`, without the rounding of either.

    >>> from minipd.ops.creation import to_tensor
    >>> log_softmax(to_tensor([0.0, 1e4])).tolist()
    [-10000.0, 0.0]
    """
    x = x if dtype is None else cast(x, dtype)
    axis = normalize_axis("log_softmax", axis, x.ndim)
    x = x - max(x.detach(), axis, keepdim=True)         # a shift changes nothing, so it needs no gradient
    return x - log(sum(exp(x), axis, keepdim=True))


def rms_norm(input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float = 1e-5,
             name: str | None = None) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimensions, whose sizes `normalized_shape` gives.

    Low-precision inputs are normalised in float32 and rounded once before the weight.  (Paddle's function, which runs
    on GPUs only, returns the inverse deviations too.)
    Raises: ValueError if the input's last dimensions have other sizes.

    >>> from minipd.ops.creation import to_tensor
    >>> rms_norm(to_tensor([[3.0, -3.0]]), [2], eps=0.0).tolist()
    [[1.0, -1.0]]
    """
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    n = len(sizes)
    if n == 0 or not shapes_agree(tuple(input.payload.shape[-n:]), sizes, "rms_norm"):
        raise ValueError(f"rms_norm: expected an input whose last dimensions are {list(sizes)}, got shape "
                         f"{list(input.shape)}")
    x = cast(input, "float32") if input.payload.dtype in dtypes.LOW_PRECISION else input
    x = x * rsqrt(mean(square(x), tuple(range(-n, 0)), keepdim=True) + eps)
    x = cast(x, input.dtype)
    return x if weight is None else x * weight
