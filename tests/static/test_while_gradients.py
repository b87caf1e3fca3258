"""Gradients of loops: written by the program and by the tape, once, twice and more often, against eager mode."""

import numpy as np
import pytest

from minipd.autograd.engine import grad
from minipd.executor import Executor
from minipd.framework.row import ROWS
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.dce import remove_dead_ops
from minipd.ir.parser import parse
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.ops.creation import zeros
from tests.static.loops import (
    FEEDS,
    FUNCTIONS,
    A,
    B,
    detached,
    eager,
    evaluated,
    loop_in_loop,
    never,
    repeated,
    run,
    specs,
    tensors,
    times,
)


def with_gradients(f):
    traced = trace(f, *specs())
    verify(traced.program)
    gs = append_backward(traced.program, traced.output_values, traced.input_values)
    for name, g in zip("xy", gs, strict=True):
        if g is not None:
            Builder(traced.program.global_block()).output(f"grad {name}", g)
    return verify(traced.program)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradients_of_the_program(f):
    program = with_gradients(f)
    assert parse(program.to_string("exact")) == program == program.clone()
    lean = program.clone()
    remove_dead_ops(lean)
    verify(lean)
    for a, b in FEEDS:
        expected = eager(f, a, b)
        for got in (run(program, a, b), run(lean, a, b), evaluated(program, a, b)):
            for x, y in zip(got, expected, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradients_of_the_tape_under_trace(f):
    def train(x, y):
        out = f(x, y)
        gs = grad(out, [x, y], allow_unused=True)
        return out, *(g if g is not None else x * 0.0 for g in gs)

    traced = trace(train, *specs())
    verify(traced.program)
    for a, b in FEEDS:
        for got, expected in zip(run(traced.program, a, b), eager(f, a, b), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("f", [f for f in FUNCTIONS if f is not detached])
def test_gradients_against_finite_differences(f):
    executor, rng = Executor(with_gradients(f)), np.random.default_rng(0)
    a, b = A, B
    da, db = rng.standard_normal((2, 2, 3))
    h = 1e-6
    _, ga, gb = executor.run({"x": a, "y": b}).values()
    (up, *_), (down, *_) = (executor.run({"x": a + s * da, "y": b + s * db}).values() for s in (h, -h))
    assert (up - down) / (2 * h) == pytest.approx((ga * da).sum() + (gb * db).sum(), rel=1e-6, abs=1e-7)


def test_a_gradient_of_a_part_only():
    """By y alone: nothing is carried backwards for x."""
    spec_x, spec_y = specs()
    spec_x.stop_gradient = True
    traced = trace(lambda x, y: times(3, lambda i, h, s: [h * x, s + (h * y)], x, zeros([2, 3], "float64"))[1].sum(),
                   spec_x, spec_y)
    g, = append_backward(traced.program, traced.output_values, [traced.input_values[1]])
    Builder(traced.program.global_block()).output("g", g)
    grad_op = traced.program.global_block().ops[-2]
    assert grad_op.name() == "pd_op.while" and grad_op.num_results() == 2           # by s, by y
    np.testing.assert_allclose(run(verify(traced.program), A, B)[1], A + A ** 2 + A ** 3, rtol=1e-12)


def test_a_dead_gradient_takes_its_stacks_along():
    traced = trace(loop_in_loop, *specs())
    alone = traced.program.clone()
    append_backward(traced.program, traced.output_values, traced.input_values)
    assert traced.program != alone
    remove_dead_ops(traced.program)
    remove_dead_ops(alone)
    assert verify(traced.program) == alone


def test_a_pop_that_counts_is_not_dead():
    """The gradient reads nothing of the iterations, but there are as many."""
    program = trace(lambda x, y: times(3, lambda i, h: [h * 2.0 + y], x)[0].sum(), *specs())
    gs = append_backward(program.program, program.output_values, program.input_values)
    for name, g in zip("xy", gs, strict=True):
        Builder(program.program.global_block()).output(name, g)
    remove_dead_ops(program.program)
    assert [g[0, 0] for g in run(verify(program.program), A, B)[1:]] == [8.0, 7.0]


def squared_gradients(f, x, y):
    """Something that depends on the gradients in another way than they do on x and y."""
    return sum((g * g).sum() for g in grad(f(x, y), [x, y], create_graph=True, allow_unused=True) if g is not None)


def eager_twice(f, a, b):
    x, y = tensors(a, b)
    return [np.zeros((2, 3)) if g is None else g.numpy()
            for g in grad(squared_gradients(f, x, y), [x, y], allow_unused=True)]


@pytest.mark.parametrize("f", [f for f in FUNCTIONS if f is not never])
def test_second_derivatives_of_the_program(f):
    """What the first gradient pops in each iteration is differentiated back to what pushed it there."""
    traced = trace(f, *specs())
    program, build = traced.program, Builder(traced.program.global_block())
    gs = append_backward(program, traced.output_values, traced.input_values, create_graph=True)
    squares = []
    for g in gs:
        square, = build.call(ROWS["multiply"], (g, g), {})
        total, = build.call(ROWS["sum"], (square,), {"axis": (0, 1), "keepdim": False})
        square.stop_gradient = total.stop_gradient = g.stop_gradient
        squares.append(total)
    for name, g in zip("xy", append_backward(program, squares, traced.input_values), strict=True):
        build.output(f"again {name}", g)
    verify(program)
    assert parse(program.to_string("exact")) == program
    for a, b in FEEDS:
        expected = eager_twice(f, a, b)
        for got in (run(program, a, b), evaluated(program, a, b)):
            for x, y in zip(got[1:], expected, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_second_derivatives_of_the_tape_under_trace(f):
    def train(x, y):
        gs = grad(squared_gradients(f, x, y), [x, y], allow_unused=True)
        return [g if g is not None else x * 0.0 for g in gs]

    program = verify(trace(train, *specs()).program)
    for a, b in FEEDS:
        for got, expected in zip(run(program, a, b), eager_twice(f, a, b), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


def test_third_derivatives():
    """Of the program: d3/dx3 of (((x y) y) y) ... is none, of x^8 it is 336 x^5.  The tape says where to go."""
    def f(x, y):
        return times(3, lambda i, h: [h * h], x)[0].sum()

    traced = trace(f, *specs())
    program, x = traced.program, traced.input_values[0]
    found, = traced.output_values
    for _ in range(3):
        found, = append_backward(program, [found], [x], create_graph=True)
    Builder(program.global_block()).output("third", found)
    np.testing.assert_allclose(run(verify(program), A, B)[1], 336 * A ** 5, rtol=1e-12)

    def on_the_tape(x, y):
        g = f(x, y)
        for _ in range(3):
            g = grad(g.sum(), [x], create_graph=True)[0]
        return g
    with pytest.raises(NotImplementedError, match=r"pd_op.while \(from .*loops.py:\d+\).*append_backward"):
        trace(on_the_tape, *specs())


def test_grad_in_a_loop_behind_the_loop_is_refused():
    def f(x, y):
        h = repeated(x, y)
        return times(2, lambda i, s: [s + grad(h, [x], retain_graph=True)[0]], x)[0]

    with pytest.raises(NotImplementedError, match="grad before the loop"):
        trace(f, *specs())


def test_grad_within_the_loop():
    """Newton's method on x^3 = y, the derivative asked of the tape in every iteration."""
    def f(x, y):
        def step(i, x):
            x = x.detach()
            x.stop_gradient = False
            value = x * x * x - y.detach()
            g, = grad(value.sum(), [x])
            return [(x - value / g).detach()]
        return times(20, step, x)[0]

    program = verify(trace(f, *specs()).program)
    np.testing.assert_allclose(run(program, np.ones((2, 3)), A ** 2)[0], np.cbrt(A ** 2), rtol=1e-12)
