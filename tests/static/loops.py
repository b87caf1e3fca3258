"""Loops for tests: functions of two tensors, and ways to run them."""

import numpy as np

from minipd.autograd.engine import grad
from minipd.executor import Executor
from minipd.framework.context import Kernels
from minipd.ir.evaluate import decide, evaluate
from minipd.ops.creation import to_tensor, zeros
from minipd.static import InputSpec
from minipd.static.nn import cond, while_loop

A = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
B = np.array([[1.0, 0.7, -0.5], [0.5, -0.9, 0.6]])


def times(n, body, *start):
    """`body` n times (a number or a tensor); the results without the counter."""
    return while_loop(lambda i, *_: i < n, lambda i, *v: [i + 1, *body(i, *v)], [0, *start])[1:]


def repeated(x, y):
    h, = times(3, lambda i, h: [(h * y).tanh()], x)
    return h.sum()


def until_small(x, y):
    """The number of iterations depends on the values."""
    h, = while_loop(lambda h: (h * h).sum() > 0.5, lambda h: [h * 0.6 * y.sin().exp().clip(0.1, 1.2)], [x])
    return (h * y).sum()


def never(x, y):
    h, = while_loop(lambda h: h.sum() > 1e9, lambda h: [h * y], [x])
    return (h * x).sum()


def starts_constant(x, y):
    """No gradient flows into what the sum starts with, but into the sum."""
    total, = times(4, lambda i, total: [total + (x * y) * i.astype("float64")], zeros([2, 3], "float64"))
    return (total * total).sum()


def two_variables(x, y):
    a, b = times(5, lambda i, a, b: [b * y.tanh(), a + 0.5 * x], x, y)
    return (a * b).sum()


def swapped(x, y):
    a, b = times(3, lambda i, a, b: [b, a], x, y * y)
    return (a * a * b).sum()


def loop_in_loop(x, y):
    """The inner loop runs 0, 1, 2, 3 times: what it pushes in one outer iteration is popped in the same."""
    def body(i, h):
        g, = times(i, lambda j, g: [(g * h + y).sin()], h)
        return [g * 0.9 + x * 0.1]
    h, = times(4, body, x)
    return (h * y).sum()


def loop_in_loop_in_loop(x, y):
    def body(i, h):
        def middle(j, g):
            f, = times(j + 1, lambda k, f: [(f * g).tanh() + y * 0.1], g)
            return [f + h]
        g, = times(i + 1, middle, h)
        return [g * 0.5]
    return times(2, body, x)[0].sum()


def branch_in_loop(x, y):
    def body(i, h):
        return [cond(h.sum() > 1.0, lambda: (h * 0.5).tanh() * y, lambda: h * h + x + 0.3)]
    return times(5, body, x)[0].sum()


def loop_in_branch(x, y):
    def loop():
        return times(3, lambda i, h: [(h * y).tanh()], x)[0] * y
    return cond(x.sum() > y.sum(), loop, lambda: x * y).sum()


def all_nested(x, y):
    """A loop in a branch in a loop."""
    def body(i, h):
        def inner():
            return times(i, lambda j, g: [cond(g.mean() > 0.2, lambda: g * y, lambda: g.exp() * 0.5)], h)[0]
        return [cond(h.mean() > 0.0, inner, lambda: h * x + 0.5) * 0.8]
    return times(5, body, x)[0].sum()


def loop_after_loop(x, y):
    h, = times(2, lambda i, h: [h * y], x)
    g, = times(3, lambda i, g: [(g * h).sin()], h)
    return (g + h).sum()


def detached(x, y):
    """Half of the way, no gradient flows."""
    h, = times(3, lambda i, h: [(h * y).detach() + h * x], x)
    return h.sum()


def integers_and_masks(x, y):
    """Variables without gradients among those with."""
    def body(i, count, mask, h):
        return [count + mask.astype("int64").sum(), h > 0.0, h * y]
    count, mask, h = times(3, body, 0, x > 1e9, x)
    return (h * count.astype("float64")).sum()


FUNCTIONS = [repeated, until_small, never, starts_constant, two_variables, swapped, loop_in_loop, loop_in_loop_in_loop,
             branch_in_loop, loop_in_branch, all_nested, loop_after_loop, detached, integers_and_masks]
FEEDS = [(A, B), (B, A * 0.5), (-A, B)]


def specs():
    return [InputSpec((2, 3), "float64", name, stop_gradient=False) for name in "xy"]


def tensors(a, b):
    return [to_tensor(t, stop_gradient=False) for t in (a, b)]


def eager(f, a, b):
    """The value and the gradients, of Python's own loop."""
    x, y = tensors(a, b)
    out = f(x, y)
    gs = grad(out, [x, y], allow_unused=True)
    return out.numpy(), *(np.zeros((2, 3)) if g is None else g.numpy() for g in gs)


def run(program, a, b):
    return list(Executor(program).run({"x": a, "y": b}).values())


def evaluated(program, a, b):
    found = []
    evaluate(program, Kernels().run, lambda op: {"x": a, "y": b}[op.attributes["name"].value],
             lambda op, array: found.append(array), decide)
    return found
