"""Cases of optimizers' steps: one element at a time, in Python numbers."""

import math

import numpy as np

from tests.ops.case import SHAPES, Case, cases

STEP, RATE = np.array(3), np.array(0.25)
ON, OFF = np.array(False), np.array(True)


def each(formula, n_out):
    """The formula on Python numbers, element by element; nothing changes where `skip` holds."""
    def want(p, g, *rest, **attrs):
        *kept, skip = rest
        arrays, numbers = kept[:n_out - 1], [x.item() for x in kept[n_out - 1:]]
        if skip:
            return (p, *arrays)
        outs = [np.empty_like(p) for _ in range(n_out)]
        for i in np.ndindex(p.shape):
            for out, new in zip(outs, formula(p[i], g[i], *(a[i] for a in arrays), *numbers, **attrs), strict=True):
                out[i] = new
        return tuple(outs)
    return want


def steps(d, want, draw, numbers, *settings):
    """All shapes with the defaults, one with each of the settings; skipped once."""
    for shape in SHAPES:
        yield Case((*draw(shape), *numbers, ON), want, wrt=())
    for attrs in settings:
        yield Case((*draw((2, 3)), *numbers, ON), want, attrs, wrt=())
    yield Case((*draw((2, 3)), *numbers, OFF), want, wrt=())


@cases("momentum")
def _(d):
    def one(p, g, v, lr, momentum=0.9, use_nesterov=False):
        v = momentum * v + g
        return (p - (g + momentum * v) * lr if use_nesterov else p - lr * v), v
    yield from steps(d, each(one, 2), lambda s: [d.floats(*s) for _ in range(3)], (RATE,),
                     {"momentum": 0.5}, {"use_nesterov": True})


@cases("adagrad")
def _(d):
    def one(p, g, moment, lr, epsilon=1e-6):
        return p - lr * g / (math.sqrt(moment + g * g) + epsilon), moment + g * g
    yield from steps(d, each(one, 2), lambda s: (d.floats(*s), d.floats(*s), d.positive(*s)), (RATE,), {"epsilon": 0.1})


@cases("rmsprop")
def _(d):
    def one(p, g, moment, square, mean, lr, rho=0.95, epsilon=1e-6, momentum=0.0, centered=False):
        square = rho * square + (1 - rho) * g ** 2
        variance = square
        if centered:
            mean = rho * mean + (1 - rho) * g
            variance = square - mean ** 2
        moment = momentum * moment + lr * g / math.sqrt(variance + epsilon)
        return p - moment, moment, square, mean
    yield from steps(d, each(one, 4), lambda s: (d.floats(*s), d.floats(*s), d.floats(*s), 4 + d.positive(*s),
                                                 d.floats(*s, low=-1, high=1)), (RATE,),
                     {"rho": 0.5, "momentum": 0.75}, {"centered": True, "epsilon": 0.01})


@cases("adadelta")
def _(d):
    def one(p, g, squares, updates, lr, rho=0.95, epsilon=1e-6):
        squares = rho * squares + (1 - rho) * g ** 2
        u = math.sqrt((updates + epsilon) / (squares + epsilon)) * g
        return p - lr * u, squares, rho * updates + (1 - rho) * u ** 2
    yield from steps(d, each(one, 3), lambda s: (d.floats(*s), d.floats(*s), d.positive(*s), d.positive(*s)), (RATE,),
                     {"rho": 0.5, "epsilon": 0.1})


@cases("amsgrad")
def _(d):
    def one(p, g, m, v, largest, t, lr, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01):
        m, v = m * beta1 + g * (1 - beta1), v * beta2 + g ** 2 * (1 - beta2)
        largest = max(largest, v)
        root = math.sqrt(largest / (1 - beta2 ** t))
        return p - lr * weight_decay * p - lr * m / (1 - beta1 ** t) / (root + epsilon), m, v, largest
    yield from steps(d, each(one, 4), lambda s: (*(d.floats(*s) for _ in range(3)), d.positive(*s), d.positive(*s)),
                     (STEP, RATE), {"beta1": 0.5, "beta2": 0.75, "epsilon": 0.01, "weight_decay": 0.0})


@cases("adamax")
def _(d):
    def one(p, g, m, u, t, lr, beta1=0.9, beta2=0.999, epsilon=1e-8):
        m, u = m * beta1 + g * (1 - beta1), max(beta2 * u + epsilon, abs(g))
        return p - lr / (1 - beta1 ** t) * m / u, m, u
    yield from steps(d, each(one, 3), lambda s: (*(d.floats(*s) for _ in range(3)), d.positive(*s)), (STEP, RATE),
                     {"beta1": 0.5, "beta2": 0.5, "epsilon": 0.1})


@cases("nadam")
def _(d):
    def one(p, g, product, m, v, t, lr, beta1=0.9, beta2=0.999, epsilon=1e-8, momentum_decay=0.004):
        mu = [beta1 * (1 - 0.96 ** ((t + i) * momentum_decay) / 2) for i in (0, 1)]
        product *= mu[0]
        m, v = m * beta1 + g * (1 - beta1), v * beta2 + g ** 2 * (1 - beta2)
        along = mu[1] * m / (1 - product * mu[1]) + (1 - mu[0]) * g / (1 - product)
        return p - lr * along / (math.sqrt(v / (1 - beta2 ** t)) + epsilon), product, m, v
    yield from steps(d, each(one, 4), lambda s: (d.floats(*s), d.floats(*s), np.full(s, 0.25), d.floats(*s),
                                                 d.positive(*s)), (STEP, RATE),
                     {"beta1": 0.5, "beta2": 0.75, "epsilon": 0.1, "momentum_decay": 0.5})


@cases("radam")
def _(d):
    def one(p, g, m, v, t, lr, beta1=0.9, beta2=0.999, epsilon=1e-8):
        m, v = m * beta1 + g * (1 - beta1), v * beta2 + g ** 2 * (1 - beta2)
        most = 2 / (1 - beta2) - 1
        rho = most - 2 * t * beta2 ** t / (1 - beta2 ** t)
        step = m / (1 - beta1 ** t)
        if rho > 5:
            step *= math.sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho))
            step *= math.sqrt(1 - beta2 ** t) / (math.sqrt(v) + epsilon)
        return p - lr * step, m, v

    def draw(s):
        return *(d.floats(*s) for _ in range(3)), d.positive(*s)
    yield from steps(d, each(one, 3), draw, (STEP, RATE), {"beta1": 0.5, "beta2": 0.5, "epsilon": 0.1})
    yield from steps(d, each(one, 3), draw, (np.array(20), RATE), {"beta2": 0.9, "epsilon": 0.1}, {"beta2": 0.6})


@cases("lamb")
def _(d):
    def want(p, g, m, v, t, lr, skip, beta1=0.9, beta2=0.999, epsilon=1e-6, weight_decay=0.01, adapt=True):
        if skip:
            return p, m, v
        m, v = m * beta1 + g * (1 - beta1), v * beta2 + g ** 2 * (1 - beta2)
        r = m / (1 - beta1 ** int(t)) / (np.sqrt(v / (1 - beta2 ** int(t))) + epsilon) + weight_decay * p
        norms = [math.sqrt(math.fsum(x.ravel() ** 2)) for x in (p, r)]
        return p - lr * r * (norms[0] / norms[1] if adapt and all(norms) else 1.0), m, v
    yield from steps(d, want, lambda s: (*(d.floats(*s) for _ in range(3)), d.positive(*s)), (STEP, RATE),
                     {"beta1": 0.5, "beta2": 0.5, "epsilon": 0.1, "weight_decay": 0.5}, {"adapt": False})
    yield Case((np.zeros((2, 3)), d.floats(2, 3), d.floats(2, 3), d.positive(2, 3), STEP, RATE, ON), want, wrt=())


@cases("asgd")
def _(d):
    def want(p, g, total, ys, t, lr, skip):
        if skip:
            return p, total, ys
        n, ys = len(ys), ys.copy()
        due = (int(t) - 1) % n
        total = total - ys[due] + g
        ys[due] = g
        return p - lr * total / min(int(t), n), total, ys
    for n, t in ((1, 1), (1, 3), (2, 1), (2, 4), (3, 2)):
        for shape in ((), (2, 3), (0,)):
            yield Case((d.floats(*shape), d.floats(*shape), d.floats(*shape), d.floats(n, *shape), np.array(t), RATE,
                        ON), want, wrt=())
    yield Case((d.floats(2), d.floats(2), d.floats(2), d.floats(2, 2), np.array(2), RATE, OFF), want, wrt=())


@cases("rprop")
def _(d):
    def one(p, g, prev, rate, learning_rate_range=(1e-5, 50.0), etas=(0.5, 1.2)):
        agree = math.prod(np.sign([g, prev]))
        rate = min(max(rate * {1: etas[1], 0: 1, -1: etas[0]}[agree], learning_rate_range[0]), learning_rate_range[1])
        g = 0.0 if agree < 0 else g
        return p - float(np.sign(g)) * rate, g, rate
    yield from steps(d, each(one, 3), lambda s: (d.floats(*s), d.distinct(*s), d.distinct(*s), d.positive(*s)), (),
                     {"etas": (0.25, 2.0)}, {"learning_rate_range": (1.0, 1.5)})
    yield Case((d.floats(3), np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]), d.positive(3), ON), each(one, 3),
               wrt=())
