"""What the layers of `static.nn` share: their names, their parameters, and the activation behind them."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import DimExpr
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.nn import functional
from minipd.nn.parameter import create_parameter, parameter_name
from minipd.static.weight_norm import WeightNormParamAttr

__all__: list[str] = []


def owner_of(kind: str, name: str | None) -> str:
    """The name that a layer's parameters begin with: the user's, or `conv2d_0`, `conv2d_1`, ..."""
    return name or current().unique_name(kind)


def weight(owner: str, shape: Any, dtype: Any, attr: Any, first: Any = None) -> Tensor:
    """A parameter called `owner.w_0`, `owner.w_1`, ..., unless `attr` names it; or one made of two, if `attr` is a
    WeightNormParamAttr.   first: its initializer, if `attr` has none."""
    if isinstance(attr, WeightNormParamAttr):
        return attr.weight(shape, dtype, parameter_name(owner, False), first)
    return create_parameter(shape, dtype, parameter_name(owner, False), attr, default_initializer=first)


def bias(owner: str, shape: Any, dtype: Any, attr: Any) -> Parameter | None:
    """A parameter called `owner.b_0`, which begins as zeros; None where `attr` is False."""
    if attr is False:
        return None
    return create_parameter(shape, dtype, parameter_name(owner, True), attr, is_bias=True)


def activated(what: str, x: Tensor, act: str | None) -> Tensor:
    """`nn.functional.<act>` of x; x itself for None.   ValueError for a name that is not there."""
    if act is None:
        return x
    if act not in functional.__all__:
        raise ValueError(f"{what}: expected an activation that is the name of a function in nn.functional, got {act!r}")
    return getattr(functional, act)(x)


def known(what: str, x: Tensor, axis: int) -> int:
    """The size of a dimension that decides the shape of a parameter.   ValueError where only a run knows it."""
    size = x.payload.shape[axis]
    if isinstance(size, DimExpr):
        raise ValueError(f"{what}: expected dimension {axis % x.ndim} of the input to have a size, because a parameter "
                         f"has it too, got {list(x.payload.shape)}; give it in static.data")
    return size


def check_rank(what: str, x: Tensor, *ranks: int) -> None:
    """ValueError unless x has one of these numbers of dimensions."""
    if x.ndim not in ranks:
        raise ValueError(f"{what}: expected an input of {' or '.join(map(str, ranks))} dimensions, got "
                         f"{list(x.payload.shape)}")
