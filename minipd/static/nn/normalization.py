"""Normalisations as functions that create their scales and shifts: `static.nn.batch_norm` and its kin."""

from __future__ import annotations

import math
from typing import Any

from minipd.framework.tensor import Parameter, Tensor
from minipd.nn import functional as F
from minipd.nn.initializer import Constant, Normal
from minipd.nn.param_attr import ParamAttr
from minipd.nn.power_iteration import as_matrix, improved
from minipd.ops.linalg import matmul
from minipd.ops.math import square
from minipd.ops.reduce import sum
from minipd.static.nn.making import activated, bias, check_rank, known, owner_of, weight

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "spectral_norm"]


def _scale(owner: str, size: int, dtype: Any, attr: Any) -> Parameter | None:
    return None if attr is False else weight(owner, [size], dtype, attr, Constant(1.0))


def batch_norm(input: Tensor, act: str | None = None, is_test: bool = False, momentum: float = 0.9,
               epsilon: float = 1e-5, param_attr: Any = None, bias_attr: Any = None, data_layout: str = "NCHW",
               in_place: bool = False, name: str | None = None, moving_mean_name: str | None = None,
               moving_variance_name: str | None = None, do_model_average_for_mean_and_var: bool = True,
               use_global_stats: bool = False) -> Tensor:
    """`nn.functional.batch_norm` with a scale, a shift and running statistics of its own, and `act` behind it.

    input [N, C, ...].  Parameters [C]: `batch_norm_0.w_0` and `.b_0`, and the statistics, which are not trained and
    which every run moves: `.w_1` (the mean) and `.w_2`, unless moving_mean_name and moving_variance_name name them.
    is_test, use_global_stats: normalise by the running statistics, and leave them.  in_place and
    do_model_average_for_mean_and_var: accepted, without effect.
    """
    what = "batch_norm"
    check_rank(what, input, 2, 3, 4, 5)
    channels = known(what, input, 1 if data_layout == "NCHW" or input.ndim == 2 else -1)
    owner, dtype = owner_of(what, name), input.dtype if input.dtype != "float16" else "float32"
    scale, shift = _scale(owner, channels, dtype, param_attr), bias(owner, [channels], dtype, bias_attr)
    mean, variance = (weight(owner, [channels], dtype, ParamAttr(given, Constant(first), trainable=False))
                      for given, first in ((moving_mean_name, 0.0), (moving_variance_name, 1.0)))
    out = F.batch_norm(input, mean, variance, scale, shift, not is_test, momentum, epsilon, data_layout,
                       True if use_global_stats else None)
    return activated(what, out, act)


def layer_norm(input: Tensor, scale: bool = True, shift: bool = True, begin_norm_axis: int = 1, epsilon: float = 1e-5,
               param_attr: Any = None, bias_attr: Any = None, act: str | None = None,
               name: str | None = None) -> Tensor:
    """`nn.functional.layer_norm` over the dimensions from begin_norm_axis on, and `act` behind it.

    Parameters, flat: as many elements as these dimensions have.  scale, shift: False to have none of the two.
    """
    what = "layer_norm"
    if not 0 < begin_norm_axis < input.ndim:
        raise ValueError(f"{what}: expected begin_norm_axis from 1 to {input.ndim - 1}, got {begin_norm_axis}")
    sizes = [known(what, input, axis) for axis in range(begin_norm_axis, input.ndim)]
    owner, count = owner_of(what, name), math.prod(sizes)
    w = _scale(owner, count, input.dtype, param_attr if scale else False)
    out = F.layer_norm(input, sizes, w, bias(owner, [count], input.dtype, bias_attr if shift else False), epsilon)
    return activated(what, out, act)


def group_norm(input: Tensor, groups: int, epsilon: float = 1e-5, param_attr: Any = None, bias_attr: Any = None,
               act: str | None = None, data_layout: str = "NCHW", name: str | None = None) -> Tensor:
    """`nn.functional.group_norm` with a scale and a shift [C] of its own, and `act` behind it.

    param_attr, bias_attr: False for none.  (Paddle's function makes them only where an attribute is given.)
    """
    what = "group_norm"
    channels = known(what, input, 1 if data_layout == "NCHW" else -1)
    owner = owner_of(what, name)
    out = F.group_norm(input, groups, epsilon, _scale(owner, channels, input.dtype, param_attr),
                       bias(owner, [channels], input.dtype, bias_attr), data_layout)
    return activated(what, out, act)


def instance_norm(input: Tensor, epsilon: float = 1e-5, param_attr: Any = None, bias_attr: Any = None,
                  name: str | None = None) -> Tensor:
    """`nn.functional.instance_norm` of [N, C, ...] with a scale and a shift [C] of its own.

    param_attr, bias_attr: False for none.  (Paddle's function makes them only where both attributes are given.)
    """
    what = "instance_norm"
    check_rank(what, input, 2, 3, 4, 5)
    owner, channels = owner_of(what, name), known(what, input, 1)
    return F.instance_norm(input, weight=_scale(owner, channels, input.dtype, param_attr),
                           bias=bias(owner, [channels], input.dtype, bias_attr), eps=epsilon)


def spectral_norm(weight: Tensor, dim: int = 0, power_iters: int = 1, eps: float = 1e-12,
                  name: str | None = None) -> Tensor:
    """A weight over its largest singular value: see `nn.SpectralNorm`.

    The singular vectors that it begins with are parameters that are not trained, `spectral_norm_0.w_0` and `.w_1`.
    Raises: ValueError for a dim that the weight has not, a negative power_iters, or a weight of unknown size.
    """
    what = "spectral_norm"
    if not -weight.ndim <= dim < weight.ndim or power_iters < 0:
        raise ValueError(f"{what}: expected a dim of the weight {list(weight.shape)} and power_iters of at least 0, "
                         f"got dim={dim}, power_iters={power_iters}")
    sizes = [known(what, weight, axis) for axis in range(weight.ndim)]
    rows, owner = sizes[dim], owner_of(what, name)
    u, v = (_vector(owner, size, weight.dtype) for size in (rows, math.prod(sizes) // rows))
    matrix = as_matrix(weight, dim % weight.ndim)
    u, v = improved(matrix, u, v, power_iters, lambda x: x / (sum(square(x)) ** 0.5 + eps))
    return weight / sum(u * matmul(matrix, v))


def _vector(owner: str, size: int, dtype: Any) -> Tensor:
    return weight(owner, [size], dtype, ParamAttr(initializer=Normal(0.0, 1.0), trainable=False))
