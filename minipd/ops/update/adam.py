"""Adam and its kin: moving averages of the gradient and of its square."""

from __future__ import annotations

from typing import Any

from minipd.framework.row import Trait, op
from minipd.ops.update.stepping import in_blocks, metas, stepping

__all__: list[str] = []


@op("adamw", Trait.MULTI, Trait.INPLACE)
class AdamW:
    """One step of Adam with decoupled weight decay (Loshchilov, Hutter 2019, algorithm 2, as Paddle arranges it).

    p = param (1 - lr * weight_decay);  m, v the moving averages of g and g^2;
    p' = p - lr / (1 - beta1^step) * m' / (sqrt(v' / (1 - beta2^step)) + epsilon).   step (from 1), learning_rate: 0-D
    """

    outputs = ("param_out", "moment1_out", "moment2_out")
    inplace = {0: 0, 1: 2, 2: 3}

    def infer_meta(param, grad, moment1, moment2, step, learning_rate, skip_update, *, beta1=0.9, beta2=0.999,
                   epsilon=1e-8, weight_decay=0.01):
        return metas(param, moment1, moment2)

    def kernel(xp, param, grad, moment1, moment2, step, learning_rate, skip_update, *, beta1=0.9, beta2=0.999,
               epsilon=1e-8, weight_decay=0.01):
        outs = xp.empty_like(param), xp.empty_like(moment1), xp.empty_like(moment2)
        _adamw_into(xp, outs, param, grad, moment1, moment2, step, learning_rate, skip_update, beta1, beta2,
                    epsilon, weight_decay)
        return outs

    def kernel_out(xp, out, param, grad, moment1, moment2, step, learning_rate, skip_update, *, beta1=0.9, beta2=0.999,
                   epsilon=1e-8, weight_decay=0.01):
        _adamw_into(xp, out, param, grad, moment1, moment2, step, learning_rate, skip_update, beta1, beta2,
                    epsilon, weight_decay)


def _adamw_into(xp: Any, outs: Any, param: Any, grad: Any, moment1: Any, moment2: Any, step: Any, learning_rate: Any,
                skip_update: Any, beta1: float, beta2: float, epsilon: float, weight_decay: float) -> None:
    """`outs` may be param, moment1 and moment2 themselves."""
    if skip_update:
        for out, x in zip(outs, (param, moment1, moment2), strict=True):
            out[...] = x
        return
    t, lr = float(step), float(learning_rate)
    for p, m, v, old, g, old_m, old_v in in_blocks(*outs, param, grad, moment1, moment2):
        scratch = xp.asarray(g * g)
        xp.multiply(old_v, beta2, out=v)
        scratch *= 1 - beta2
        v += scratch
        xp.multiply(old_m, beta1, out=m)
        xp.multiply(g, 1 - beta1, out=scratch)
        m += scratch
        xp.true_divide(v, 1 - beta2 ** t, out=scratch)
        xp.sqrt(scratch, out=scratch)
        scratch += epsilon
        xp.true_divide(m, scratch, out=scratch)
        scratch *= lr / (1 - beta1 ** t)
        xp.multiply(old, 1 - lr * weight_decay, out=p)
        p -= scratch


@op("amsgrad", Trait.MULTI, Trait.INPLACE)
class Amsgrad:
    """AdamW whose denominator never shrinks (Reddi et al. 2018): it takes the largest v' so far, `moment2_max`."""

    outputs = ("param_out", "moment1_out", "moment2_out", "moment2_max_out")
    inplace = {0: 0, 1: 2, 2: 3, 3: 4}

    def infer_meta(param, grad, moment1, moment2, moment2_max, step, learning_rate, skip_update, *, beta1=0.9,
                   beta2=0.999, epsilon=1e-8, weight_decay=0.01):
        return metas(param, moment1, moment2, moment2_max)

    def formula(xp, p, g, m, v, largest, t, lr, *, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01):
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        largest = xp.maximum(largest, v)
        step = m / (xp.sqrt(largest / (1 - beta2 ** t)) + epsilon)
        return p * (1 - lr * weight_decay) - step * (lr / (1 - beta1 ** t)), m, v, largest

    kernel, kernel_out = stepping(formula)


@op("adamax", Trait.MULTI, Trait.INPLACE)
class Adamax:
    """Adam with the largest gradient so far, fading, in place of the root mean square.   (Kingma, Ba 2015, section 7.1)

    m' the moving average of g;  u = max(beta2 inf_norm + epsilon, |g|);  p' = p - lr / (1 - beta1^step) m' / u.
    """

    outputs = ("param_out", "moment_out", "inf_norm_out")
    inplace = {0: 0, 1: 2, 2: 3}

    def infer_meta(param, grad, moment, inf_norm, step, learning_rate, skip_update, *, beta1=0.9, beta2=0.999,
                   epsilon=1e-8):
        return metas(param, moment, inf_norm)

    def formula(xp, p, g, m, u, t, lr, *, beta1=0.9, beta2=0.999, epsilon=1e-8):
        m, u = beta1 * m + (1 - beta1) * g, xp.maximum(beta2 * u + epsilon, xp.abs(g))
        return p - m / u * (lr / (1 - beta1 ** t)), m, u

    kernel, kernel_out = stepping(formula)


@op("nadam", Trait.MULTI, Trait.INPLACE)
class NAdam:
    """Adam with Nesterov's momentum (Dozat 2016): the step looks ahead along the moving average of the gradient.

    mu_t = beta1 (1 - 0.96^(step momentum_decay) / 2);  mu_product: that of mu_1 ... mu_t, the same for each element;
    p' = p - lr ((1 - mu_t) g / (1 - mu_product') + mu_(t+1) m' / (1 - mu_product' mu_(t+1))) / (sqrt(v^) + epsilon).
    """

    outputs = ("param_out", "mu_product_out", "moment1_out", "moment2_out")
    inplace = {0: 0, 1: 2, 2: 3, 3: 4}

    def infer_meta(param, grad, mu_product, moment1, moment2, step, learning_rate, skip_update, *, beta1=0.9,
                   beta2=0.999, epsilon=1e-8, momentum_decay=0.004):
        return metas(param, mu_product, moment1, moment2)

    def formula(xp, p, g, product, m, v, t, lr, *, beta1=0.9, beta2=0.999, epsilon=1e-8, momentum_decay=0.004):
        mu, ahead = (beta1 * (1 - 0.5 * 0.96 ** (momentum_decay * s)) for s in (t, t + 1))
        product = product * mu
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        along = g / (1 - product) * (1 - mu) + m / (1 - product * ahead) * ahead
        return p - along / (xp.sqrt(v / (1 - beta2 ** t)) + epsilon) * lr, product, m, v

    kernel, kernel_out = stepping(formula)


@op("radam", Trait.MULTI, Trait.INPLACE)
class RAdam:
    """Adam that does without its denominator until that is reliable, and then corrects its variance.  (Liu et al. 2020)

    rho = 2 / (1 - beta2) - 1 - 2 step beta2^step / (1 - beta2^step) counts the gradients that v' stands for; up to 5 of
    them, the step is m' / (1 - beta1^step) alone.
    """

    outputs = ("param_out", "moment1_out", "moment2_out")
    inplace = {0: 0, 1: 2, 2: 3}

    def infer_meta(param, grad, moment1, moment2, step, learning_rate, skip_update, *, beta1=0.9, beta2=0.999,
                   epsilon=1e-8):
        return metas(param, moment1, moment2)

    def formula(xp, p, g, m, v, t, lr, *, beta1=0.9, beta2=0.999, epsilon=1e-8):
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        most, faded = 2 / (1 - beta2) - 1, beta2 ** t
        rho = most - 2 * t * faded / (1 - faded)
        known = xp.maximum(rho, 5.0)            # in 0-D arithmetic both branches are computed: keep the root real
        rectified = xp.sqrt((known - 4) * (known - 2) / known * (most / ((most - 4) * (most - 2))) * (1 - faded)
                            if most > 5 else known * 0)
        scaled = xp.where(rho > 5, m / (xp.sqrt(v) + epsilon) * rectified, m)
        return p - scaled * (lr / (1 - beta1 ** t)), m, v

    kernel, kernel_out = stepping(formula)


@op("lamb", Trait.MULTI, Trait.INPLACE)
class Lamb:
    """Adam, with a step as long as the parameter's norm says (You et al. 2020, algorithm 2), for large batches.

    r = m^ / (sqrt(v^) + epsilon) + weight_decay p;  p' = p - lr |p| / |r| r, where both norms are positive and `adapt`
    holds, else p - lr r.
    """

    outputs = ("param_out", "moment1_out", "moment2_out")
    inplace = {0: 0, 1: 2, 2: 3}

    def infer_meta(param, grad, moment1, moment2, step, learning_rate, skip_update, *, beta1=0.9, beta2=0.999,
                   epsilon=1e-6, weight_decay=0.01, adapt=True):
        return metas(param, moment1, moment2)

    def formula(xp, p, g, m, v, t, lr, *, beta1=0.9, beta2=0.999, epsilon=1e-6, weight_decay=0.01, adapt=True):
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        r = m / (1 - beta1 ** t) / (xp.sqrt(v / (1 - beta2 ** t)) + epsilon) + weight_decay * p
        if adapt:
            own, step = xp.sqrt(xp.sum(p * p)), xp.sqrt(xp.sum(r * r))
            both = xp.minimum(own, step) > 0
            r = r * xp.where(both, own / xp.where(both, step, 1.0), 1.0)
        return p - r * lr, m, v

    kernel, kernel_out = stepping(formula)
