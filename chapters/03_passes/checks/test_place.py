"""Where the result of a rule goes."""

import itertools

import numpy as np
import pytest

from minipd.executor import Executor, Scope
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.nn import functional as F
from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.pattern import apply_patterns_greedily
from minipd.static import InputSpec
from minipd.static.nn import cond
from tools.course.checking import check


@drr()
class Silu:
    def source(x):
        return x * ops.sigmoid(x)

    def result(x):
        return ops.silu(x)


@drr()
class ExpAndTanh:
    """Two outputs of one input; the result is written otherwise, so that it does not match again."""

    def source(x):
        return ops.exp(x), ops.tanh(x)

    def result(x):
        return ops.exp(x + 0.0), ops.tanh(x + 0.0)


@drr()
class ExpAndAdd:
    """Two outputs of two inputs."""

    def source(x, y):
        return ops.exp(x), ops.tanh(x) + y

    def result(x, y):
        return ops.exp(x * 1.0), ops.tanh(x * 1.0) + y


@drr()
class ExpAndSquare:
    """The first output is used by the match itself."""

    def source(x, y):
        e = ops.exp(x)
        return e, ops.square(e) + y

    def result(x, y):
        e = ops.exp(x * 1.0)
        return e, ops.exp(x * 2.0) + y


@drr()
class SigmoidTimes:
    """The operation that is matched last stands first."""

    def source(x, w):
        return ops.sigmoid(x) * w

    def result(x, w):
        return w / (ops.exp(-x) + 1.0)


def rewrites(program, rule):
    """How often the rule fires; the program must be well formed after it."""
    number = apply_patterns_greedily(program, [rule], max_rewrites=20)
    verify(program)
    return number


def fires(want, program, rule, on):
    """The rule fires so often, and the program means what it meant."""
    if callable(program):
        program = trace(program, InputSpec([3], "float64", "x")).program
    feed = {"x": np.array([0.5, -1.0, 0.25])}
    before = Executor(program).run(feed, Scope())
    check(want, lambda: rewrites(program, rule), f"how often the rule fires in {on}")
    after = Executor(program).run(feed, Scope())
    for name, value in before.items():
        check(value, after[name], f"{name} after the rewrite of {on}")


def test_one_output():
    fires(1, lambda x: x * F.sigmoid(x), Silu, "y = x * sigmoid(x)")


def test_an_output_is_used_before_the_last_matched_operation():
    def f(x):
        p = x.exp()
        u = p.abs()
        return u, x.tanh()
    fires(1, f, ExpAndTanh, "p = exp(x); u = abs(p); q = tanh(x)")


def test_an_input_comes_after_the_first_matched_operation():
    def f(x):
        p = x.exp()
        y = x.abs()
        return p, x.tanh() + y
    fires(1, f, ExpAndAdd, "p = exp(x); y = abs(x); q = tanh(x) + y")


def test_no_place():
    def f(x):
        p = x.exp()
        u = p.square()
        y = x.abs()
        return u, x.tanh() + y
    fires(0, f, ExpAndAdd, "p = exp(x); u = square(p); y = abs(x); q = tanh(x) + y")


def test_only_the_match_uses_the_first_output():
    def f(x):
        p = x.exp()
        s = p.square()
        y = x.abs()
        return s + y
    fires(1, f, ExpAndSquare, "p = exp(x); s = square(p); y = abs(x); q = s + y, for the rule p, q")


def test_nobody_uses_an_output():
    def f(x):
        p = x.exp()
        x.tanh()
        return p
    fires(1, f, ExpAndTanh, "p = exp(x); q = tanh(x), where nobody uses q")


def test_nobody_uses_any_output():
    def f(x):
        x * F.sigmoid(x)
        return x
    fires(1, f, Silu, "y = x * sigmoid(x), where nobody uses y")


def test_nobody_uses_the_output_and_an_input_comes_late():
    def f(x):
        s = F.sigmoid(x)
        w = x.exp()
        s * w
        return w
    fires(1, f, SigmoidTimes, "s = sigmoid(x); w = exp(x); y = s * w, where nobody uses y")


def test_an_input_that_is_made_of_an_output():
    def f(x):
        p = x.exp()
        return x.tanh() + p.abs()
    fires(0, f, ExpAndAdd, "p = exp(x); y = abs(p); q = tanh(x) + y")


def test_a_user_in_a_branch():
    def f(x):
        p = x.exp()
        u = cond(x.sum() > 0.0, lambda: p.abs(), lambda: x)
        return u, x.tanh()
    fires(1, f, ExpAndTanh, "p = exp(x); u = cond(..., abs(p), x); q = tanh(x)")

    def late(x):
        p = x.exp()
        u = cond(x.sum() > 0.0, lambda: p.abs(), lambda: x)
        y = x.abs()
        return u, x.tanh() + y
    fires(0, late, ExpAndAdd, "p = exp(x); u = cond(..., abs(p), x); y = abs(x); q = tanh(x) + y")


def test_a_branch_returns_an_output():
    def late(x):
        p = x.exp()
        u = cond(x.sum() > 0.0, lambda: p, lambda: x)
        y = x.abs()
        return u, x.tanh() + y
    fires(0, late, ExpAndAdd, "p = exp(x); u = cond(..., p, x); y = abs(x); q = tanh(x) + y")


def test_a_match_in_a_branch():
    def f(x):
        y = x.abs()
        return cond(x.sum() > 0.0, lambda: (x.exp(), x.tanh() + y), lambda: (x, y))
    fires(1, f, ExpAndAdd, "cond(..., (exp(x), tanh(x) + y), ...) with y from outside")


def test_an_input_from_far_down_an_outer_block():
    def f(x):
        y = x
        for _ in range(20):
            y = y.abs()
        return cond(x.sum() > 0.0, lambda: (x.exp(), x.tanh() + y), lambda: (x, y))
    fires(1, f, ExpAndAdd, "cond(..., (exp(x), tanh(x) + y), ...) with y from outside, the twentieth operation there")


def test_a_block_argument():
    program = Program()
    build = Builder(program.global_block())
    x = program.global_block().add_arg(build.data("x", (3,), "float64").type())
    s, = build.call(ROWS["sigmoid"], (x,), {})
    y, = build.call(ROWS["multiply"], (x, s), {})
    build.output("y", y)
    check(1, lambda: apply_patterns_greedily(program, [Silu]),
          "how often the rule fires in x * sigmoid(x) for a block argument x, which no operation defines")


STATEMENTS = {"p = exp(x)": (), "u = square(p)": ("p",), "y = abs(x)": (), "t = tanh(x)": (), "q = t + y": ("t", "y")}


def orders():
    """Every order of the statements in which a name is defined before it is used."""
    for order in itertools.permutations(STATEMENTS):
        place = {s.split()[0]: i for i, s in enumerate(order)}
        if all(place[n] < i for i, s in enumerate(order) for n in STATEMENTS[s]):
            yield order


@pytest.mark.parametrize("order", orders(), ids="; ".join)
def test_every_order(order):
    """The rule {exp(x), tanh(x) + y} can fire if y is there before u is computed."""
    rows = {"p = exp(x)": ("exp", "x"), "u = square(p)": ("square", "p"), "y = abs(x)": ("abs", "x"),
            "t = tanh(x)": ("tanh", "x"), "q = t + y": ("add", "ty")}
    program = Program()
    build = Builder(program.global_block())
    values = {"x": build.data("x", (3,), "float64")}
    for statement in order:
        row, operands = rows[statement]
        values[statement[0]], = build.call(ROWS[row], [values[n] for n in operands], {})
    for name in "uq":
        build.output(name, values[name])
    possible = order.index("y = abs(x)") < order.index("u = square(p)")
    fires(int(possible), program, ExpAndAdd, "; ".join(order))
