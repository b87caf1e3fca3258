"""Steps whose length, for each element, follows from the squares of its gradients so far."""

from __future__ import annotations

from minipd.framework.row import Trait, op
from minipd.ops.update.stepping import metas, stepping

__all__: list[str] = []


@op("adagrad", Trait.MULTI, Trait.INPLACE)
class Adagrad:
    """moment' = moment + g^2;  p' = p - lr g / (sqrt(moment') + epsilon).   (Duchi, Hazan, Singer 2011)"""

    outputs = ("param_out", "moment_out")
    inplace = {0: 0, 1: 2}

    def infer_meta(param, grad, moment, learning_rate, skip_update, *, epsilon=1e-6):
        return metas(param, moment)

    def formula(xp, p, g, moment, lr, *, epsilon=1e-6):
        moment = moment + g * g
        return p - g / (xp.sqrt(moment) + epsilon) * lr, moment

    kernel, kernel_out = stepping(formula)


@op("rmsprop", Trait.MULTI, Trait.INPLACE)
class RmsProp:
    """Momentum of the gradient over its root mean square, or with `centered` its standard deviation.   (Hinton 2012)

    mean_square', mean_grad' the moving averages of g^2 and g;  moment' = momentum moment + lr g / sqrt(mean_square' -
    mean_grad'^2 + epsilon), without mean_grad' unless centered;  p' = p - moment'.
    """

    outputs = ("param_out", "moment_out", "mean_square_out", "mean_grad_out")
    inplace = {0: 0, 1: 2, 2: 3, 3: 4}

    def infer_meta(param, grad, moment, mean_square, mean_grad, learning_rate, skip_update, *, rho=0.95, epsilon=1e-6,
                   momentum=0.0, centered=False):
        return metas(param, moment, mean_square, mean_grad)

    def formula(xp, p, g, moment, square, mean, lr, *, rho=0.95, epsilon=1e-6, momentum=0.0, centered=False):
        square = rho * square + (1 - rho) * g * g
        mean = rho * mean + (1 - rho) * g if centered else mean
        moment = momentum * moment + g / xp.sqrt((square - mean * mean if centered else square) + epsilon) * lr
        return p - moment, moment, square, mean

    kernel, kernel_out = stepping(formula)


@op("adadelta", Trait.MULTI, Trait.INPLACE)
class Adadelta:
    """The gradient times the root mean square of the last updates over that of the last gradients.   (Zeiler 2012)

    s' the moving average of g^2;  u = sqrt(avg_squared_update + epsilon) / sqrt(s' + epsilon) g;  p' = p - lr u.
    """

    outputs = ("param_out", "avg_squared_grad_out", "avg_squared_update_out")
    inplace = {0: 0, 1: 2, 2: 3}

    def infer_meta(param, grad, avg_squared_grad, avg_squared_update, learning_rate, skip_update, *, rho=0.95,
                   epsilon=1e-6):
        return metas(param, avg_squared_grad, avg_squared_update)

    def formula(xp, p, g, squares, updates, lr, *, rho=0.95, epsilon=1e-6):
        squares = rho * squares + (1 - rho) * g * g
        u = g * (xp.sqrt(updates + epsilon) / xp.sqrt(squares + epsilon))
        return p - u * lr, squares, rho * updates + (1 - rho) * u * u

    kernel, kernel_out = stepping(formula)
