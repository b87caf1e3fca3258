"""Dropout and the residual after it."""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.random import Dropout
from minipd.ops.shapes import require_alike, require_floating

__all__: list[str] = []


def composed_dropout_add(x: Tensor, y: Tensor, key: Tensor, *, p: float, mode: str = "upscale_in_train",
                         window: Any = None) -> Tensor:
    """dropout(x) + y."""
    return Dropout(x, key, p=p, mode=mode, window=window) + y


@op("fused_dropout_add", Trait.RANDOM)
class FusedDropoutAdd:
    """out = dropout(x) + y, x and y of one shape.   The mask is that of the row `dropout` for the same key."""

    def infer_meta(x, y, key, *, p, mode="upscale_in_train", window=None):
        require_floating("fused_dropout_add", x)
        require_alike("fused_dropout_add", x, y)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, y, key, *, p, mode="upscale_in_train", window=None):
        out = Dropout.kernel(x, key, p=p, mode=mode, window=window)
        out += y
        return out

    def kernel_out(xp, out, x, y, key, *, p, mode="upscale_in_train", window=None):
        Dropout.kernel_out(out, x, key, p=p, mode=mode, window=window)
        out += y

    def vjp_x(g, key, p, mode, window):
        return Dropout(g, key, p=p, mode=mode, window=window)

    def vjp_y(g):
        return g
