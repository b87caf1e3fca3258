"""A match is closed: one block, and what lies between has no readers outside."""

import numpy as np
import pytest

import minipd as paddle
from minipd.executor import Executor, Scope
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.pattern import apply_patterns_greedily
from minipd.static import InputSpec
from minipd.static.nn import cond
from tools.course.checking import check


@drr()
class SquaredExp:
    """exp(x)^2 = exp(2 x)."""

    def source(x):
        return ops.square(ops.exp(x))

    def result(x):
        return ops.exp(x * 2.0)


@drr()
class ExpTimesItsTanh:
    """The exp in the middle is read twice, both times by the match."""

    def source(x):
        e = ops.exp(x)
        return e * ops.tanh(e)

    def result(x):
        return ops.tanh(ops.exp(x)) / ops.exp(-x)


@drr()
class ExpAndTanh:
    """Two outputs."""

    def source(x):
        return ops.exp(x), ops.tanh(x)

    def result(x):
        return ops.exp(x + 0.0), ops.tanh(x + 0.0)


@drr()
class Joined:
    """The bundle of operands that concat reads is part of the match."""

    def source(x, y):
        return ops.concat(ops.exp(x), y, axis=0)

    def result(x, y):
        return ops.concat(ops.square(ops.exp(x * 0.5)), y, axis=0)


@drr()
class ExpOfLoss:
    """An operator with two results, of which the formula uses the second."""

    def source(x, label):
        softmax, loss = ops.cross_entropy_with_softmax(x, label, axis=1, ignore_index=-100)
        return ops.exp(loss)

    def result(x, label):
        softmax, loss = ops.cross_entropy_with_softmax(x, label, axis=1, ignore_index=-100)
        return ops.square(ops.exp(loss * 0.5))


@drr()
class ExpOfSoftmax:
    """The same operator, of which the formula uses the first result."""

    def source(x, label):
        softmax, loss = ops.cross_entropy_with_softmax(x, label, axis=1, ignore_index=-100)
        return ops.exp(softmax)

    def result(x, label):
        softmax, loss = ops.cross_entropy_with_softmax(x, label, axis=1, ignore_index=-100)
        return ops.square(ops.exp(softmax * 0.5))


def rewrites(program, rule):
    """How often the rule fires; the program must be well formed after it."""
    number = apply_patterns_greedily(program, [rule], max_rewrites=20)
    verify(program)
    return number


def fires(want, f, rule, on, inputs=1):
    """The rule fires so often in f's program, which means what it meant."""
    program = trace(f, *(InputSpec([3], "float64", n) for n in "xy"[:inputs])).program
    feed = {n: np.array([0.5, -1.0, 0.25]) + i for i, n in enumerate("xy"[:inputs])}
    before = Executor(program).run(feed, Scope())
    check(want, lambda: rewrites(program, rule), f"how often the rule fires in {on}")
    after = Executor(program).run(feed, Scope())
    for name, value in before.items():
        check(value, after[name], f"{name} after the rewrite of {on}")


def test_nobody_else_reads():
    fires(1, lambda x: x.exp().square(), SquaredExp, "square(exp(x))")


def test_an_output_has_readers():
    def f(x):
        y = x.exp().square()
        return y + y.tanh()
    fires(1, f, SquaredExp, "y = square(exp(x)), which two operations read")


def test_another_operation_reads_what_lies_between():
    def f(x):
        m = x.exp()
        return m.square() + m.tanh()
    fires(0, f, SquaredExp, "m = exp(x), read by square(m) and by tanh(m)")


def test_the_program_returns_what_lies_between():
    def f(x):
        m = x.exp()
        return m.square(), m
    fires(0, f, SquaredExp, "m = exp(x), read by square(m), and an output of the program")


def test_the_match_reads_a_value_twice():
    def f(x):
        e = x.exp()
        return e * e.tanh()
    fires(1, f, ExpTimesItsTanh, "e = exp(x), e * tanh(e), for a rule with this formula")


def test_two_outputs():
    fires(1, lambda x: (x.exp().abs(), x.tanh().square()), ExpAndTanh,
          "exp(x) and tanh(x), both outputs of the rule and read by others")


def test_a_region_reads_what_lies_between():
    def inside(x):
        m = x.exp()
        return m.square() + cond(x.sum() > 0.0, lambda: m.tanh(), lambda: x)

    def returned(x):
        m = x.exp()
        return m.square() + cond(x.sum() > 0.0, lambda: m, lambda: x)
    fires(0, inside, SquaredExp, "m = exp(x), read by square(m), and by tanh(m) in a branch")
    fires(0, returned, SquaredExp, "m = exp(x), read by square(m), and what a branch returns")


def test_a_match_in_a_region():
    def whole(x):
        return cond(x.sum() > 0.0, lambda: x.exp().square(), lambda: x)
    fires(1, whole, SquaredExp, "square(exp(x)), both in one branch")


def test_a_match_over_two_blocks():
    def f(x):
        m = x.exp()
        return cond(x.sum() > 0.0, lambda: m.square(), lambda: x)
    fires(0, f, SquaredExp, "exp(x) in front of a branch, its square in the branch")


def test_bundles():
    fires(1, lambda x, y: paddle.concat([x.exp(), y]), Joined, "concat([exp(x), y])", 2)

    def read(x, y):
        e = x.exp()
        return paddle.concat([e, y]), e.tanh()
    fires(0, read, Joined, "e = exp(x), read by concat([e, y]) and by tanh(e)", 2)


@pytest.mark.parametrize(("rule", "read", "other"), [(ExpOfLoss, "loss", "softmax"), (ExpOfSoftmax, "softmax", "loss")])
def test_a_result_that_the_formula_does_not_use(rule, read, other):
    for outputs, want in ((("y",), 1), (("y", other), 0)):
        program = Program()
        build = Builder(program.global_block())
        values = build.data("x", (2, 3), "float64"), build.data("label", (2, 1), "int64")
        results = dict(zip(("softmax", "loss"), build.call(ROWS["cross_entropy_with_softmax"], values,
                                                           {"axis": 1, "ignore_index": -100}), strict=True))
        results["y"], = build.call(ROWS["exp"], (results[read],), {})
        for name in outputs:
            build.output(name, results[name])
        check(want, lambda p=program: rewrites(p, rule), "how often the rule fires in softmax, loss = "
              f"cross_entropy_with_softmax(x, label); y = exp({read}), for a program that returns {', '.join(outputs)}")
