"""Forms of optimizer steps.

Paddle's have state that ours compute: the powers of the betas, which ours derive from the number of the step.  So a
step of ours is written with a power before it, and one of Paddle's is read as the arithmetic that it does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.ir.operation import Operation
from minipd.ir.paddle.form import form, loads
from minipd.ir.paddle.load import Loader
from minipd.ir.paddle.save import Call, Saver
from minipd.ir.types import DenseTensorType
from minipd.ir.value import Value

__all__: list[str] = []


def power(to: Saver, base: float, step: Value, dtype: np.dtype) -> Value:
    """base ** step, as a tensor of one number."""
    one = DenseTensorType((1,), dtype)
    cast, = to.op("cast", [step], {"dtype": dtype}, [DenseTensorType(step.shape, dtype)])
    flat, = to.op("reshape", [cast, to.ints([1])], {}, [one])
    return to.op("elementwise_pow", [to.number(base, dtype), flat], {}, [one])[0]


@form("sgd", paddle=("sgd_",))
class Sgd:
    """Paddle's has a second copy of the parameter, in more bits, where it is wanted."""

    def save(to, call):
        param, grad, rate, skip = call.tensors
        return skipping(to, call, to.op("sgd_", [param, rate, grad, None], {}, [*call.types, None])[:1])

    def load(at, op):
        param, rate, grad, master = at.inputs(op)
        if master is not None:
            raise at.refuse()
        return [at.row("sgd", param, grad, scalar(at, rate), never(at)), None]


@form("momentum", paddle=("momentum_",))
class Momentum:
    """Paddle's can regularise and rescale."""

    def save(to, call):
        param, grad, velocity, rate, skip = call.tensors
        attrs = {"mu": call.attrs["momentum"], "use_nesterov": call.attrs["use_nesterov"]}
        return skipping(to, call, to.op("momentum_", [param, grad, velocity, rate, None], attrs,
                                        [*call.types, None])[:2])

    def load(at, op):
        a, (param, grad, velocity, rate, master) = at.attrs(op), at.inputs(op)
        if master is not None or a["regularization_method"] not in ("", "l2_decay"):
            raise at.refuse()
        if a["rescale_grad"] != 1:
            grad = at.row("multiply", grad, a["rescale_grad"])
        if a["regularization_method"]:
            grad = at.row("add", grad, at.row("multiply", param, a["regularization_coeff"]))
        outs = at.row("momentum", param, grad, velocity, scalar(at, rate), never(at), momentum=a["mu"],
                      use_nesterov=a["use_nesterov"])
        return [*outs, None]


@form("adamw", paddle=())
class AdamW:
    """The powers of the betas are operands of Paddle's."""

    def save(to, call):
        param, grad, m, v, step, rate, skip = call.tensors
        a = call.attrs
        dtype = np.dtype(np.float64 if param.dtype == np.float64 else np.float32)
        betas = [power(to, a["beta1"], step, dtype), power(to, a["beta2"], step, dtype)]
        constants = [to.number(a[n]) for n in ("beta1", "beta2", "epsilon")]
        one = DenseTensorType((1,), dtype)
        attrs = {"coeff": a["weight_decay"], "with_decay": True}
        operands = [param, grad, rate, m, v, None, *betas, None, None, *constants]
        types = [*call.types, None, one, one, None]
        return skipping(to, call, to.op("adamw_", operands, attrs, types)[:3])


def skipping(to: Saver, call: Call, new: list[Any]) -> list[Any]:
    """The results of a step that may be skipped: the old ones where it is."""
    op = call.sources[-1].get_defining_op()
    if op is not None and op.name() == "pd_op.full" and not op.attributes["value"].value:
        return new
    olds = [call.tensors[0], *call.tensors[2:1 + len(new)]]
    return [to.op("where", [call.tensors[-1], old, value], {}, [value.type()])[0]
            for old, value in zip(olds, new, strict=True)]


def never(at: Loader) -> Value:
    return at.build.full((), False, np.dtype(np.bool_))


def scalar(at: Loader, x: Value) -> Value:
    """A tensor of one number, without dimensions."""
    return x if x.shape == () else at.row("reshape", x, shape=())


def of_dtype(at: Loader, x: Value, dtype: np.dtype) -> Value:
    return x if x.dtype == dtype else at.row("cast", x, dtype=dtype)


@loads("adam_", "adamw_", "adam", "adamw")
def load_adam(at: Loader, op: Operation) -> Any:
    """What Paddle's kernel computes:  m, v moved; p - rate * sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps')."""
    a = at.attrs(op)
    param, grad, rate, m, v, largest, b1, b2, master, skip = at.inputs(op)
    if master is not None or skip is not None or largest is not None:
        raise at.refuse()

    def row(name: str, *xs: Any) -> Any:
        return at.row(name, *xs)
    rate, p1, p2 = (of_dtype(at, scalar(at, x), param.dtype) for x in (rate, b1, b2))
    if "coeff" in a and a["with_decay"]:
        kept = row("subtract", 1.0, row("multiply", rate, a["coeff"] * a["lr_ratio"]))
        param = row("multiply", param, kept)
    rate = row("multiply", rate, a["lr_ratio"]) if a.get("lr_ratio", 1.0) != 1.0 else rate
    m = row("add", row("multiply", m, a["beta1"]), row("multiply", grad, 1 - a["beta1"]))
    v = row("add", row("multiply", v, a["beta2"]), row("multiply", row("multiply", grad, grad), 1 - a["beta2"]))
    correction = row("sqrt", row("subtract", 1.0, p2))
    under = row("add", row("sqrt", v), row("multiply", correction, a["epsilon"]))
    factor = row("divide", row("multiply", rate, correction), row("subtract", 1.0, p1))
    new = row("subtract", param, row("multiply", row("divide", m, under), factor))
    if a["use_global_beta_pow"]:
        return [new, m, v, None, None, None, None]
    return [new, m, v, None, row("multiply", b1, a["beta1"]), row("multiply", b2, a["beta2"]), None]
