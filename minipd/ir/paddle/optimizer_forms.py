"""Forms of optimizer steps.

Paddle's have state that ours compute: the powers of the betas, which ours derive from the number of the step.  So a
step of ours is written with a power before it, and one of Paddle's is read as the arithmetic that it does.
"""

from __future__ import annotations

from collections.abc import Callable
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
        _, grad, rate, _ = call.tensors
        return step(to, call, lambda param: to.op("sgd_", [param, rate, grad, None], {}, [*call.types, None]))

    def load(at, op):
        param, rate, grad, master = at.inputs(op)
        if master is not None:
            raise at.refuse()
        return [at.row("sgd", param, grad, scalar(at, rate), never(at)), None]


@form("momentum", paddle=("momentum_",))
class Momentum:
    """Paddle's can regularise and rescale."""

    def save(to, call):
        _, grad, _, rate, _ = call.tensors
        attrs = {"mu": call.attrs["momentum"], "use_nesterov": call.attrs["use_nesterov"]}
        return step(to, call, lambda param, velocity: to.op("momentum_", [param, grad, velocity, rate, None], attrs,
                                                            [*call.types, None]))

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
        param, grad, _, _, number, rate, _ = call.tensors
        a = call.attrs
        dtype = np.dtype(np.float64 if param.dtype == np.float64 else np.float32)
        betas = [power(to, a["beta1"], number, dtype), power(to, a["beta2"], number, dtype)]
        constants = [to.number(a[n]) for n in ("beta1", "beta2", "epsilon")]
        one = DenseTensorType((1,), dtype)
        attrs = {"coeff": a["weight_decay"], "with_decay": True}
        types = [*call.types, None, one, one, None]
        return step(to, call, lambda param, m, v: to.op(
            "adamw_", [param, grad, rate, m, v, None, *betas, None, None, *constants], attrs, types))


def step(to: Saver, call: Call, write: Callable[..., list[Any]]) -> list[Any]:
    """The results of a step.  Paddle's writes the parameter and its state in place: where the old ones are still read,
    also because the step may be skipped, it writes copies."""
    count = len(call.types)
    places = [0, *range(2, 1 + count)]
    skip = call.sources[-1].get_defining_op()
    always = skip is not None and skip.name() == "pd_op.full" and not skip.attributes["value"].value
    olds = [call.tensors[i] for i in places]
    if always and not any(user is not call.op and call.op.is_before(user) if user.parent is call.op.parent else True
                          for i in places for user in call.sources[i].all_used_ops()):
        return write(*olds)[:count]
    new = write(*[to.op("assign", [old], {}, [old.type()])[0] for old in olds])[:count]
    if always:
        return new
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


def mixed(at: Loader, old: Value, new: Value, keep: float) -> Value:
    """keep * old + (1 - keep) * new."""
    return at.row("add", at.row("multiply", old, keep), at.row("multiply", new, 1 - keep))


def root(at: Loader, x: Value, epsilon: float) -> Value:
    """sqrt(x) + epsilon."""
    return at.row("add", at.row("sqrt", x), epsilon)


@loads("rmsprop_")
def load_rmsprop(at: Loader, op: Operation) -> Any:
    """s moved towards g^2;  v = mu v + rate * g / sqrt(s + epsilon);  p - v.  Centered: s less the square of a mean."""
    a = at.attrs(op)
    param, square, grad, velocity, rate, mean, master = at.inputs(op)
    if master is not None:
        raise at.refuse()
    rate = of_dtype(at, scalar(at, rate), param.dtype)
    square = mixed(at, square, at.row("multiply", grad, grad), a["decay"])
    spread = square
    if a["centered"]:
        mean = mixed(at, mean, grad, a["decay"])
        spread = at.row("subtract", square, at.row("multiply", mean, mean))
    change = at.row("divide", at.row("multiply", rate, grad), at.row("sqrt", at.row("add", spread, a["epsilon"])))
    velocity = at.row("add", at.row("multiply", velocity, a["momentum"]), change)
    return [at.row("subtract", param, velocity), velocity, square, mean if a["centered"] else None, None]


@loads("adagrad_")
def load_adagrad(at: Loader, op: Operation) -> Any:
    """s + g^2;  p - rate * g / (sqrt(s) + epsilon)."""
    param, grad, total, rate, master = at.inputs(op)
    if master is not None:
        raise at.refuse()
    rate = of_dtype(at, scalar(at, rate), param.dtype)
    total = at.row("add", total, at.row("multiply", grad, grad))
    change = at.row("divide", at.row("multiply", rate, grad), root(at, total, at.attrs(op)["epsilon"]))
    return [at.row("subtract", param, change), total, None]


@loads("adamax_")
def load_adamax(at: Loader, op: Operation) -> Any:
    """m moved towards g;  u = max(|g|, b2 u + epsilon);  p - rate / (1 - b1^t) * m / u."""
    a = at.attrs(op)
    param, grad, rate, m, largest, b1, master = at.inputs(op)
    if master is not None:
        raise at.refuse()
    rate, p1 = (of_dtype(at, scalar(at, x), param.dtype) for x in (rate, b1))
    m = mixed(at, m, grad, a["beta1"])
    largest = at.row("add", at.row("multiply", largest, a["beta2"]), a["epsilon"])
    largest = at.row("maximum", at.row("abs", grad), largest)
    factor = at.row("divide", rate, at.row("subtract", 1.0, p1))
    change = at.row("multiply", factor, at.row("divide", m, largest))
    return [at.row("subtract", param, change), m, largest, None]


@loads("adadelta_")
def load_adadelta(at: Loader, op: Operation) -> Any:
    """s moved towards g^2;  d = -g sqrt((u + epsilon) / (s + epsilon));  u moved towards d^2;  p + rate * d."""
    a = at.attrs(op)
    param, grad, square, update, rate, master = at.inputs(op)
    if master is not None:
        raise at.refuse()
    rate = of_dtype(at, scalar(at, rate), param.dtype)
    square = mixed(at, square, at.row("multiply", grad, grad), a["rho"])
    ratio = at.row("divide", at.row("add", update, a["epsilon"]), at.row("add", square, a["epsilon"]))
    change = at.row("subtract", 0.0, at.row("multiply", at.row("sqrt", ratio), grad))
    update = mixed(at, update, at.row("multiply", change, change), a["rho"])
    return [at.row("add", param, at.row("multiply", rate, change)), square, update, None]


@loads("squared_l2_norm")
def load_squared_norm(at: Loader, op: Operation) -> Any:
    """The sum of squares, as [1]: what clipping by a global norm adds up."""
    x, = at.inputs(op)
    square = at.row("sum", at.row("multiply", x, x), axis=tuple(range(x.ndim)), keepdim=False)
    return at.row("reshape", square, shape=(1,))


@loads("lamb_")
def load_lamb(at: Loader, op: Operation) -> Any:
    """d = m' / (sqrt(v') + epsilon) + decay p, m' and v' unbiased;  p - rate |p| / |d| d.

    The ratio is 1 where either is 0, and where nothing decays.
    """
    a = at.attrs(op)
    param, grad, rate, m, v, b1, b2, master, skip = at.inputs(op)
    if master is not None or skip is not None:
        raise at.refuse()

    def row(name: str, *xs: Any, **attrs: Any) -> Any:
        return at.row(name, *xs, **attrs)

    def size(x: Value) -> Value:
        return row("sqrt", row("sum", row("multiply", x, x), axis=tuple(range(x.ndim)), keepdim=False))
    rate, p1, p2 = (of_dtype(at, scalar(at, x), param.dtype) for x in (rate, b1, b2))
    m = mixed(at, m, grad, a["beta1"])
    v = mixed(at, v, row("multiply", grad, grad), a["beta2"])
    under = root(at, row("divide", v, row("subtract", 1.0, p2)), a["epsilon"])
    change = row("divide", row("divide", m, row("subtract", 1.0, p1)), under)
    change = row("add", change, row("multiply", param, a["weight_decay"]))
    if a["weight_decay"] > 0 or a["always_adapt"]:
        own, its = size(param), size(change)
        both = row("logical_and", row("greater_than", own, 0.0), row("greater_than", its, 0.0))
        ratio = row("where", both, row("divide", own, row("where", both, its, 1.0)), 1.0)
        rate = row("multiply", rate, ratio)
    new = row("subtract", param, row("multiply", rate, change))
    return [new, m, v, row("multiply", b1, a["beta1"]), row("multiply", b2, a["beta2"]), None]
