"""Steps along the gradient: as it is, with momentum, averaged over several batches."""

from __future__ import annotations

from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.ops.update.stepping import metas, stepping

__all__: list[str] = []


@op("sgd", Trait.INPLACE)
class Sgd:
    """param - learning_rate * grad.   learning_rate: 0-D"""

    inplace = {0: 0}

    def infer_meta(param, grad, learning_rate, skip_update):
        return Meta(param.shape, param.dtype)

    def kernel(xp, param, grad, learning_rate, skip_update):
        return xp.array(param) if skip_update else param - learning_rate.astype(param.dtype) * grad

    def kernel_out(xp, out, param, grad, learning_rate, skip_update):
        step = 0 if skip_update else learning_rate.astype(param.dtype) * grad
        xp.subtract(param, step, out=out)


@op("momentum", Trait.MULTI, Trait.INPLACE)
class Momentum:
    """v' = momentum v + g;  p' = p - lr v', or with Nesterov's look ahead p - lr (g + momentum v')."""

    outputs = ("param_out", "velocity_out")
    inplace = {0: 0, 1: 2}

    def infer_meta(param, grad, velocity, learning_rate, skip_update, *, momentum=0.9, use_nesterov=False):
        return metas(param, velocity)

    def formula(xp, p, g, v, lr, *, momentum=0.9, use_nesterov=False):
        v = momentum * v + g
        return p - lr * (g + momentum * v if use_nesterov else v), v

    kernel, kernel_out = stepping(formula)


@op("asgd", Trait.MULTI, Trait.INPLACE)
class Asgd:
    """Steps along the average of the last gradients, one of each of n batches that come round.  (Schmidt et al. 2017)

    ys: [n, *param], the last gradient of each batch;  d: their sum;  step (from 1): batch (step - 1) % n is due.
    p' = p - lr / min(step, n) d'.
    """

    outputs = ("param_out", "d_out", "ys_out")
    inplace = {0: 0, 1: 2, 2: 3}

    def infer_meta(param, grad, d, ys, step, learning_rate, skip_update):
        return metas(param, d, ys)

    def formula(xp, p, g, d, ys, t, lr):
        n = ys.shape[0]
        due = xp.reshape(xp.arange(n) == (t - 1) % n, (n, *[1] * len(p.shape)))
        d = d - xp.sum(xp.where(due, ys, 0.0), 0) + g
        return p - d * (lr / xp.minimum(t, n)), d, xp.where(due, g, ys)

    kernel, kernel_out = stepping(formula)


@op("rprop", Trait.MULTI, Trait.INPLACE)
class Rprop:
    """Steps of a length of their own, for each element, against the sign of the gradient.  (Riedmiller, Braun 1993)

    The length grows by `etas[1]` where the sign stays, and shrinks by `etas[0]` where it changes; there the element
    waits for the next step.  learning_rates, of param's shape, are these lengths, kept within learning_rate_range.
    """

    outputs = ("param_out", "prev_out", "learning_rates_out")
    inplace = {0: 0, 1: 2, 2: 3}

    def infer_meta(param, grad, prev, learning_rates, skip_update, *, learning_rate_range=(1e-5, 50.0),
                   etas=(0.5, 1.2)):
        return metas(param, prev, learning_rates)

    def formula(xp, p, g, prev, rates, *, learning_rate_range=(1e-5, 50.0), etas=(0.5, 1.2)):
        agree = g * prev
        rates = xp.where(agree > 0, rates * etas[1], xp.where(agree < 0, rates * etas[0], rates))
        rates = xp.minimum(xp.maximum(rates, learning_rate_range[0]), learning_rate_range[1])
        g = xp.where(agree < 0, 0.0, g)
        return p - xp.where(g > 0, rates, xp.where(g < 0, -rates, 0.0)), g, rates

    kernel, kernel_out = stepping(formula)
