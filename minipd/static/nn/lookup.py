"""Other layers as functions that create their parameters: tables, slopes, products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.initializer import Constant
from minipd.ops.creation import zeros
from minipd.ops.joining import concat
from minipd.ops.math import add_n, where
from minipd.static.nn.making import activated, bias, check_rank, known, owner_of, weight

__all__ = ["bilinear_tensor_product", "embedding", "prelu", "row_conv"]


def embedding(input: Tensor, size: Sequence[int], is_sparse: bool = False, is_distributed: bool = False,
              padding_idx: int | None = None, param_attr: Any = None, dtype: Any = "float32") -> Tensor:
    """Rows of a table of its own, by number.   input int [...], size [rows, width] -> [..., width]

    padding_idx: this number gives zeros and no gradient.  is_sparse, is_distributed: accepted, without effect.
    """
    if len(size) != 2:
        raise ValueError(f"embedding: expected size [rows, width], got {list(size)}")
    return F.embedding(input, weight(owner_of("embedding", None), size, dtype, param_attr), padding_idx)


def prelu(x: Tensor, mode: str, param_attr: Any = None, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """x where it is positive, else x times a slope that is trained, and begins as 0.25.

    mode: "all" for one slope; "channel" for one per channel; "element" for one per element of a sample.
    Raises: ValueError for another mode or data_format, or for sizes that are not known and that a slope has.
    """
    if mode not in ("all", "channel", "element"):
        raise ValueError(f'prelu: expected mode to be "all", "channel" or "element", got {mode!r}')
    if data_format not in ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC"):
        raise ValueError(f'prelu: expected a data_format such as "NCHW" or "NHWC", got {data_format!r}')
    shape = [1]
    if mode != "all":
        channel = x.ndim - 1 if data_format.endswith("C") and data_format != "NC" else 1
        check_rank("prelu", x, *range(2, max(x.ndim, 2) + 1))
        own = range(1, x.ndim) if mode == "element" else [channel]
        shape = [known("prelu", x, axis) if axis in own else 1 for axis in range(x.ndim)]
    slope = weight(owner_of("prelu", name), shape, x.dtype, param_attr, Constant(0.25))
    return where(x > 0.0, x, x * slope)


def bilinear_tensor_product(x: Tensor, y: Tensor, size: int, act: str | None = None, name: str | None = None,
                            param_attr: Any = None, bias_attr: Any = None) -> Tensor:
    """`nn.functional.bilinear` with weights [size, M, N] and a bias [1, size] of its own, and `act` behind it.

    x [batch, M], y [batch, N] -> [batch, size]
    """
    what = "bilinear_tensor_product"
    check_rank(what, x, 2)
    check_rank(what, y, 2)
    owner = owner_of(what, name)
    w = weight(owner, [size, known(what, x, 1), known(what, y, 1)], x.dtype, param_attr)
    return activated(what, F.bilinear(x, y, w, bias(owner, [1, size], x.dtype, bias_attr)), act)


def row_conv(input: Tensor, future_context_size: int, param_attr: Any = None, act: str | None = None) -> Tensor:
    """Each step of a sequence with what follows: out[:, t] = sum over i <= future_context_size of
    filter[i] input[:, t + i], with zeros behind the end.

    input [batch, steps, features]; the filter [future_context_size + 1, features] is a parameter.
    (Amodei et al., Deep Speech 2, 2016)
    """
    what = "row_conv"
    check_rank(what, input, 3)
    if future_context_size < 0:
        raise ValueError(f"{what}: expected a future_context_size of at least 0, got {future_context_size}")
    steps, features = known(what, input, 1), known(what, input, 2)
    filter = weight(owner_of(what, None), [future_context_size + 1, features], input.dtype, param_attr)
    behind = zeros([input.payload.shape[0], future_context_size, features], input.dtype)
    long = concat([input, behind], axis=1)
    return activated(what, add_n([long[:, i:i + steps] * filter[i] for i in range(future_context_size + 1)]), act)
