"""Operators of Paddle's that are functions of several operators here: their rule is that function.

`pd_op.elu` is one operator in Paddle, and has a rule that takes it apart.  Here `elu(x)` calls `where`, `expm1` and so
on from the start, in eager mode as in a trace: what it says in `minipd.nn.functional` is the one rule there is.  So a
rule of this table takes what Paddle's operator takes: tensors in its order (None where one is optional and absent), its
attributes by its names; and it returns what the operator returns.

Most need no more than the name (`minipd.ir.paddle.functions` has these too, for reading programs); what Paddle's
function does around its operator, or the operator does that no function does, is written out here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.tensor import Tensor
from minipd.ir.paddle.functions import FUNCTIONS, function
from minipd.nn import functional as F
from minipd.ops.cast import cast
from minipd.ops.creation import assign
from minipd.ops.elementary import rsqrt
from minipd.ops.gather import index_select
from minipd.ops.joining import stack
from minipd.ops.math import abs, maximum, minimum, square
from minipd.ops.norm import Standardize
from minipd.ops.reduce import mean, sum
from minipd.ops.reshape import flatten
from minipd.ops.rounding import round
from minipd.ops.stacking import meshgrid, unbind, unstack

__all__ = ["FUNCTION_RULES", "function_rule"]

#: Paddle's operator -> its rule, where its name alone does not say it
FUNCTION_RULES: dict[str, Callable[..., Any]] = {
    "flatten": flatten, "index_select": index_select, "stack": stack, "unbind": unbind, "unstack": unstack,
    "meshgrid": lambda inputs: meshgrid(inputs), "mean_all": lambda x: mean(x), "one_hot": F.one_hot,
    "linear_v2": lambda input, weight, bias, *, transpose_weight=False: F.linear(
        input, weight.t() if transpose_weight else weight, bias),
}


def function_rule(name: str) -> Callable[..., Any] | None:
    """The rule of Paddle's operator `name` that no row of ours has; None if there is none."""
    if name in FUNCTION_RULES:
        return FUNCTION_RULES[name]
    if name not in FUNCTIONS:
        return None
    public, names = FUNCTIONS[name]

    def rule(*tensors: Any, **attrs: Any) -> Any:
        return function(public)(*tensors, **{names.get(k, k): v for k, v in attrs.items()})
    return rule


def of_paddle(rule: Callable) -> Callable:
    """Decorator: the rule of Paddle's operator of this name."""
    FUNCTION_RULES[rule.__name__] = rule
    return rule


@of_paddle
def huber_loss(input: Tensor, label: Tensor, *, delta: float) -> tuple[Tensor, Tensor]:
    """(the loss of each element, label - input)."""
    return F.smooth_l1_loss(input, label, "none", delta), label - input


@of_paddle
def kldiv_loss(x: Tensor, label: Tensor, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """label (log label - x), reduced."""
    return F.kl_div(x, label, reduction, log_target)


@of_paddle
def squared_l2_norm(x: Tensor) -> Tensor:
    """The sum of squares, as [1]: what clipping by a global norm adds up."""
    return sum(square(x)).reshape([1])


# --------------------------------------------------------------------------------------------------------- norms
@of_paddle
def batch_norm(x: Tensor, mean: Tensor, variance: Tensor, scale: Tensor | None = None, bias: Tensor | None = None, *,
               is_test: bool = False, momentum: float = 0.9, epsilon: float = 1e-5, data_format: str = "NCHW",
               use_global_stats: bool = False, trainable_statistics: bool = False) -> tuple[Tensor, ...]:
    """(out, running mean, running variance, the batch's mean, its (variance + epsilon)^(-1/2)).

    The function of this name moves the running statistics in place; here they are copies.
    """
    running = assign(mean), assign(variance)
    training = not (is_test and not trainable_statistics or use_global_stats)
    out = F.batch_norm(x, *running, scale, bias, training, momentum, epsilon, data_format)
    if not training:
        return out, *running, mean, rsqrt(variance + epsilon)
    last = data_format.endswith("C") and x.ndim > 2
    axes = tuple(i for i in range(x.ndim) if i != (x.ndim - 1 if last else 1))
    _, batch_mean, batch_variance = Standardize(cast(x, mean.dtype), axis=axes, epsilon=epsilon)
    return out, *running, batch_mean.reshape(mean.shape), rsqrt(batch_variance.reshape(mean.shape) + epsilon)


FUNCTION_RULES["batch_norm_"] = batch_norm


@of_paddle
def group_norm(x: Tensor, scale: Tensor | None = None, bias: Tensor | None = None, *, epsilon: float = 1e-5,
               groups: int = -1, data_format: str = "NCHW") -> tuple[Tensor, Tensor, Tensor]:
    """(out, mean [N, groups], variance [N, groups])."""
    out = F.group_norm(x, groups, epsilon, scale, bias, data_format)
    channels_first = x if data_format.startswith("NC") else x.moveaxis(-1, 1)
    return out, *_moments(channels_first.reshape([x.shape[0], groups, -1]), epsilon)


@of_paddle
def instance_norm(x: Tensor, scale: Tensor | None = None, bias: Tensor | None = None, *,
                  epsilon: float = 1e-5) -> tuple[Tensor, Tensor, Tensor]:
    """(out, mean [N C], (variance + epsilon)^(-1/2) [N C])."""
    out = F.instance_norm(x, weight=scale, bias=bias, eps=epsilon)
    mean, variance = _moments(x.reshape([x.shape[0] * x.shape[1], -1]), epsilon)
    return out, mean, rsqrt(variance + epsilon)


def _moments(x: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Mean and variance over the last dimension, which goes."""
    wide = cast(x, dtypes.float32) if x.payload.dtype in dtypes.LOW_PRECISION else x
    _, mean, variance = Standardize(wide, axis=(x.ndim - 1,), epsilon=epsilon)
    return mean.squeeze(-1), variance.squeeze(-1)


@of_paddle
def fused_rms_norm_quant(x: Tensor, bias: Tensor | None, residual: Tensor | None, norm_weight: Tensor,
                         norm_bias: Tensor | None = None, *, epsilon: float, begin_norm_axis: int,
                         quant_scale: float = -1.0, quant_round_type: int = 0, quant_max_bound: float = 0.0,
                         quant_min_bound: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
    """(out, x + bias + residual, the inverse root of the mean square), over the dimensions from `begin_norm_axis` on.

    quant_scale above 0: out is int8, max_bound scale out within the bounds, rounded: to even where it is half way
    (quant_round_type 0), or away from 0 (1).
    """
    for more in (bias, residual):
        x = x if more is None else x + more
    wide = cast(x, dtypes.float32) if x.payload.dtype in dtypes.LOW_PRECISION else x
    axes = list(range(begin_norm_axis, x.ndim))
    inverse = rsqrt(mean(square(wide), axes, keepdim=True) + epsilon)
    out = cast(wide * inverse, x.dtype) * norm_weight
    out = out if norm_bias is None else out + norm_bias
    if quant_scale > 0:
        scaled = out * (quant_max_bound * quant_scale)
        away = (abs(scaled) + 0.5).floor() * scaled.sign()
        rounded = round(scaled) if quant_round_type == 0 else away
        out = cast(maximum(minimum(rounded, quant_max_bound), quant_min_bound), dtypes.int8)
    return out, x, inverse.reshape(x.shape[:begin_norm_axis])
