"""Forms of random draws.  Ours take a key as an operand, which every run draws anew; Paddle's keep a seed of 0, which
says the same.  So a program's keys, inputs that only draws read, are no inputs in Paddle's form; reading it back makes
new ones.
"""

from __future__ import annotations

import numpy as np

from minipd.framework.rank import current
from minipd.ir.paddle.form import form
from minipd.ir.paddle.load import Loader
from minipd.ir.types import DenseTensorType
from minipd.ir.value import Value

__all__ = ["our_mode"]

#: what modes of a dropout are called in Paddle's programs, which is not what they are called in its functions
MODES = {"downscale_in_infer": "downgrade_in_infer"}


def our_mode(theirs: str) -> str:
    return next((mode for mode, name in MODES.items() if name == theirs), theirs)


def key(at: Loader) -> Value:
    """The key of one more draw."""
    return at.tracer.key(current().rng)


@form("uniform")
class Uniform:
    """The bounds are operands."""

    def save(to, call):
        a = call.attrs
        call.expect(window=None)
        operands = [to.ints(a["shape"]), to.number(a["min"]), to.number(a["max"])]
        return to.op("uniform", operands, {"dtype": a["dtype"], "seed": 0}, call.types)

    def load(at, op):
        a = at.attrs(op)
        return at.row("uniform", key(at), shape=a["shape"], dtype=a["dtype"], min=float(a["min"]), max=float(a["max"]))


@form("gaussian")
class Gaussian:
    """Mean and deviation are attributes of 32 bits."""

    def save(to, call):
        call.expect(window=None)
        return to.op("gaussian", [to.ints(call.attrs["shape"])], {**call.attrs, "seed": 0}, call.types)

    def load(at, op):
        a = at.attrs(op)
        return at.row("gaussian", key(at), shape=a["shape"], dtype=a["dtype"], mean=a["mean"], std=a["std"])


@form("randint")
class RandInt:
    """The shape is an operand."""

    def save(to, call):
        call.expect(window=None)
        return to.op("randint", [to.ints(call.attrs["shape"])], call.attrs, call.types)

    def load(at, op):
        a = at.attrs(op)
        return at.row("randint", key(at), shape=a["shape"], dtype=a["dtype"], low=a["low"], high=a["high"])


@form("randperm")
class RandPerm:
    """No operands."""

    def save(to, call):
        return to.op("randperm", [], call.attrs, call.types)

    def load(at, op):
        a = at.attrs(op)
        return at.row("randperm", key(at), n=a["n"], dtype=a["dtype"])


@form("dropout")
class Dropout:
    """Paddle's gives the mask as well, and stands in a program for inference too, where it does nothing."""

    def save(to, call):
        a, x = call.attrs, call.sources[0]
        call.expect(window=None)
        operands = [call.tensors[0], None, to.number(a["p"])]
        mask = DenseTensorType(x.shape, np.uint8)
        return to.op("dropout", operands, {"mode": MODES.get(a["mode"], a["mode"]), "is_test": False},
                     [*call.types, mask])[:1]

    def load(at, op):
        a, (x, _) = at.attrs(op), at.inputs(op)
        if any(user.name() != "pd_op.dropout_grad" for user in op.result(1).all_used_ops()):
            raise at.refuse()
        if not a["is_test"]:
            return [at.row("dropout", x, key(at), p=a["p"], mode=our_mode(a["mode"])), None]
        if a["mode"] == "upscale_in_train":
            return [at.row("assign", x), None]
        return [at.row("multiply", x, 1.0 - a["p"]), None]


@form("multinomial")
class Multinomial:
    """The number of draws is an operand."""

    def save(to, call):
        call.expect(window=None)
        number = to.number(call.attrs["num_samples"], "int32")
        call.flows = not call.sources[0].stop_gradient          # which Paddle does not deny
        return to.op("multinomial", [call.tensors[0], number], call.attrs, call.types)

    def load(at, op):
        a, (x,) = at.attrs(op), at.inputs(op)
        return at.row("multinomial", x, key(at), num_samples=int(a["num_samples"]), replacement=a["replacement"])


@form("poisson", "standard_gamma", "binomial")
class ByParameters:
    """Draws whose operands are their distribution's parameters."""

    def save(to, call):
        return to.op(call.row.name, call.tensors, {}, call.types)

    def load(at, op):
        return at.row(op.name().partition(".")[2], *at.inputs(op), key(at))
