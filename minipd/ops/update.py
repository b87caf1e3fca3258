"""Optimizers are operators (decision 7): functional, one row each.

Step and learning rate are operands, so that a compiled program bakes neither in.  So is `skip_update`, 0-D bool (or
False): where it holds, everything stays as it was, for a step whose gradients turned out not to be finite.
"""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op

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
        return tuple(Meta(x.shape, x.dtype) for x in (param, moment1, moment2))

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
    p, m, v = outs
    if skip_update:
        for out, x in zip(outs, (param, moment1, moment2), strict=True):
            out[...] = x
        return
    t, lr = float(step), float(learning_rate)
    scratch = xp.asarray(grad * grad)
    xp.multiply(moment2, beta2, out=v)
    scratch *= 1 - beta2
    v += scratch
    xp.multiply(moment1, beta1, out=m)
    xp.multiply(grad, 1 - beta1, out=scratch)
    m += scratch
    xp.true_divide(v, 1 - beta2 ** t, out=scratch)
    xp.sqrt(scratch, out=scratch)
    scratch += epsilon
    xp.true_divide(m, scratch, out=scratch)
    scratch *= lr / (1 - beta1 ** t)
    xp.multiply(param, 1 - lr * weight_decay, out=p)
    p -= scratch
