"""Layers as functions that create their parameters."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import prod
from minipd.framework.tensor import Tensor
from minipd.ops.math import add_n
from minipd.static.nn.making import activated, bias, owner_of, weight

__all__ = ["fc"]


def fc(x: Any, size: int, num_flatten_dims: int = 1, weight_attr: Any = None, bias_attr: Any = None,
       activation: str | None = None, name: str | None = None) -> Tensor:
    """A fully connected layer: activation(sum of x_i W_i + b).

    x: a tensor or a list of them, each with a weight of its own.  The dimensions from `num_flatten_dims` on are one,
    that is multiplied away: [a, b, c] with num_flatten_dims=1 is [a, b * c], and gives [a, size].
    activation: the name of a function in `nn.functional`.

    Raises: ValueError for an activation that there is not, or for num_flatten_dims that leaves nothing to multiply.
    """
    owner = owner_of("fc", name)
    parts = []
    for each in x if isinstance(x, (list, tuple)) else [x]:
        if not 0 < num_flatten_dims < each.ndim and num_flatten_dims != -1:
            raise ValueError(f"fc: expected num_flatten_dims from 1 to {each.ndim - 1} for x of shape "
                             f"{list(each.shape)}, got {num_flatten_dims}")
        kept = num_flatten_dims % each.ndim
        width = prod(each.payload.shape[kept:])
        w = weight(owner, [width, size], each.dtype, weight_attr)
        parts.append(each.reshape([*each.payload.shape[:kept], width]).matmul(w))
    out = parts[0] if len(parts) == 1 else add_n(parts)
    b = bias(owner, [size], out.dtype, bias_attr)
    return activated("fc", out if b is None else out + b, activation)
