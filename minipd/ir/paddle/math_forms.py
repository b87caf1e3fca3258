"""Forms of functions of elements and of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.dim import prod
from minipd.ir.operation import Operation
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.load import Loader
from minipd.ir.paddle.save import Call
from minipd.ir.paddle.save import same as save_same
from minipd.ir.paddle.scalar_forms import scaled

__all__: list[str] = []


def flowing(call: Call, out: Any) -> Any:
    """Results that Paddle does not mark as stopping the gradient, though none flows through them."""
    call.flows = not call.sources[0].stop_gradient
    return out


@form("isnan", "isinf", "isfinite")
class Asked:
    """No gradient flows through them, which Paddle does not say."""

    def save(to, call):
        return flowing(call, save_same(to, call))


@loads("numel")
def load_numel(at: Loader, op: Operation) -> Any:
    x, = at.inputs(op)
    at.numbers[op.result(0)] = prod(x.shape)
    return at.row("numel", x)


@form("cast", paddle=("cast", "cast_"))
class Cast:
    """There is one that writes its operand."""

    def save(to, call):
        return save_same(to, call)

    def load(at, op):
        return at.row("cast", *at.inputs(op), dtype=at.attrs(op)["dtype"])


@form("determinant", paddle="det")
class Determinant:
    """Called det."""

    def save(to, call):
        return to.op("det", call.tensors, {}, call.types)

    def load(at, op):
        return at.row("determinant", *at.inputs(op))


@form("slogdet", paddle="slogdet_v2")
class SlogDet:
    """The one with two results."""

    def save(to, call):
        return to.op("slogdet_v2", call.tensors, {}, call.types)

    def load(at, op):
        return at.row("slogdet", *at.inputs(op))


@form("gammainc", paddle=())
class GammaInc:
    """Paddle has the complement."""

    def save(to, call):
        upper, = to.op("gammaincc", call.tensors, {}, call.types)
        return scaled(to, call, upper, -1.0, 1.0)


@form("clip")
class Clip:
    """The bounds are operands of the tensor's dtype."""

    def save(to, call):
        x = call.sources[0]
        dtype: Any = x.dtype if x.dtype in (np.float32, np.float64, np.int32, np.int64) else dtypes.float32.np
        bounds = [call.given[n] if n not in call.attrs or call.given[n].dtype == dtype else
                  to.number(call.attrs[n], dtype) for n in ("min", "max")]
        return to.op("clip", [call.tensors[0], *bounds], {}, call.types)

    def load(at, op):
        a, (x,) = at.attrs(op), at.inputs(op)
        return at.row("clip", x, min=a["min"], max=a["max"])
