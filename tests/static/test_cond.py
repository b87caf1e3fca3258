"""cond: eager, traced, differentiated by the program and by the tape, nested, and twice."""

import numpy as np
import pytest

from minipd.autograd.engine import grad
from minipd.executor import Executor
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.dce import remove_dead_ops
from minipd.ir.parser import parse
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.ops.creation import to_tensor
from minipd.static import InputSpec
from minipd.static.nn import cond

A = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
B = np.array([[1.0, 2.0, -0.5], [0.5, -2.0, 3.0]])


def one(x, y):
    """A branch on a computed condition; the branches need different things of their own for the gradient."""
    return cond(x.sum() > y.sum(), lambda: (x.tanh() * y).exp(), lambda: x * x - y).sum()


def both_results(x, y):
    a, b = cond(x.sum() > y.sum(), lambda: (x * y, y), lambda: (y, x.exp() * 2.0))
    return (a * b + a).sum()


def nested(x, y):
    def outer():
        h = x.tanh()
        z = cond(y.sum() > 0.0, lambda: (h * y).exp(), lambda: h - y * y)
        return z * h
    return (cond(x.sum() > y.sum(), outer, lambda: cond(x.sum() > 0.0, lambda: x * 3.0, lambda: y)) * x).sum()


def one_ignores_x(x, y):
    return (cond(x.sum() > y.sum(), lambda: y * 2.0, lambda: x * y) * x).sum()


def chained(x, y):
    z = cond(x.sum() > y.sum(), lambda: x * y, lambda: y.exp())
    return cond(z.sum() > 1.0, lambda: z * z, lambda: z * x).sum()


FUNCTIONS = [one, both_results, nested, one_ignores_x, chained]
FEEDS = [(A, B), (B, A), (A, A - 1), (-A, -B), (A - 3, B - 3)]


def specs():
    return [InputSpec((2, 3), "float64", name, stop_gradient=False) for name in "xy"]


def tensors(a, b):
    found = [to_tensor(a), to_tensor(b)]
    for t in found:
        t.stop_gradient = False
    return found


def eager(f, a, b):
    x, y = tensors(a, b)
    out = f(x, y)
    gs = grad(out, [x, y], allow_unused=True)
    return out.numpy(), *(np.zeros((2, 3)) if g is None else g.numpy() for g in gs)


def run(traced, a, b):
    return list(Executor(traced.program).run({"x": a, "y": b}).values())


@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradients_of_the_program(f):
    traced = trace(f, *specs())
    verify(traced.program)
    gs = append_backward(traced.program, traced.output_values, traced.input_values)
    for name, g in zip("xy", gs, strict=True):
        Builder(traced.program.global_block()).output(f"grad {name}", g)
    verify(traced.program)
    assert parse(traced.program.to_string("exact")) == traced.program
    for a, b in FEEDS:
        for got, expected in zip(run(traced, a, b), eager(f, a, b), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradients_of_the_tape_under_trace(f):
    def train(x, y):
        out = f(x, y)
        gs = grad(out, [x, y], allow_unused=True)
        return out, *(g if g is not None else x * 0.0 for g in gs)

    traced = trace(train, *specs())
    verify(traced.program)
    for a, b in FEEDS:
        for got, expected in zip(run(traced, a, b), eager(f, a, b), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_second_derivatives_of_the_program(f):
    """Of the squared gradients: what the first gradient pops is differentiated back to what pushed it."""
    def eager_twice(a, b):
        x, y = tensors(a, b)
        total = None
        for g in grad(f(x, y), [x, y], create_graph=True, allow_unused=True):
            if g is not None:
                total = (g * g).sum() if total is None else total + (g * g).sum()
        return [np.zeros((2, 3)) if g is None else g.numpy() for g in grad(total, [x, y], allow_unused=True)]

    traced = trace(f, *specs())
    program = traced.program
    build = Builder(program.global_block())
    gs = append_backward(program, traced.output_values, traced.input_values, create_graph=True)
    squares = []
    for g in gs:
        square, = build.call(ROWS["multiply"], (g, g), {})
        total, = build.call(ROWS["sum"], (square,), {"axis": (0, 1), "keepdim": False})
        square.stop_gradient = total.stop_gradient = g.stop_gradient
        if not g.stop_gradient:
            squares.append(total)
    verify(program)
    again = append_backward(program, squares, traced.input_values)
    for name, g in zip("xy", again, strict=True):
        build.output(f"again {name}", g)
    verify(program)
    for a, b in FEEDS:
        for got, expected in zip(run(traced, a, b)[1:], eager_twice(a, b), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


def test_the_program_that_is_written():
    traced = trace(lambda x, y: cond(x.sum() > 0.0, lambda: x.tanh() * y, lambda: x - y), *specs())
    append_backward(traced.program, traced.output_values, traced.input_values)
    assert [op.name() for op in traced.program.walk() if "full" not in op.name()] == [
        "cf.stack_create", "pd_op.data", "pd_op.data", "pd_op.sum", "pd_op.greater_than",
        "pd_op.if", "pd_op.tanh", "pd_op.multiply", "cf.tuple_push", "cf.yield", "pd_op.subtract", "cf.yield",
        "builtin.shadow_output",
        "pd_op.if", "cf.tuple_pop", "pd_op.multiply", "pd_op.multiply", "pd_op.multiply", "pd_op.subtract",
        "pd_op.multiply", "cf.yield", "pd_op.scale", "cf.yield"]
    push = next(op for op in traced.program.walk() if op.name() == "cf.tuple_push")
    assert [v.get_defining_op().name() for v in push.operands_source()] == ["cf.stack_create", "pd_op.tanh"]
    assert push.next.name() == "cf.yield"


def test_a_dead_gradient_takes_its_stack_along():
    traced = trace(one, *specs())
    alone = traced.program.clone()
    append_backward(traced.program, traced.output_values, traced.input_values)
    assert traced.program != alone
    assert remove_dead_ops(traced.program) > 0
    verify(traced.program)
    assert remove_dead_ops(alone) == 0
    assert traced.program == alone


def test_eager_runs_one_branch():
    ran = []
    out = cond(to_tensor(True), lambda: ran.append("true"), lambda: ran.append("false"))
    assert out is None and ran == ["true"]
    assert cond(False, lambda: 1) is None and cond(True, None) is None


def test_a_python_bool_is_decided_while_tracing():
    traced = trace(lambda x: cond(True, lambda: x * 2.0, lambda: x), InputSpec((2,)))
    assert not any(op.name() == "pd_op.if" for op in traced.program.walk())


def test_a_captured_condition_is_decided_by_the_run():
    """A tensor from outside may hold something else at the next run."""
    flag = to_tensor(True)
    traced = trace(lambda x: cond(flag, lambda: x * 2.0, lambda: x), InputSpec((2,), name="x"))
    executor, x = Executor(traced.program), np.array([1, 2], np.float32)
    for value, expected in ((True, [2, 4]), (False, [1, 2])):
        flag.fill_(value)
        feed = {"x": x, **traced.captures}
        assert executor.run(feed)["output_0"].tolist() == expected


def test_nested_structures_and_numbers():
    def f(x):
        out = cond(x.sum() > 0.0, lambda: {"a": [x, 1.0], "b": ()}, lambda: {"a": [x * 2.0, 3.0], "b": ()})
        assert list(out) == ["a", "b"] and out["b"] == ()
        return out["a"]

    traced = trace(f, InputSpec((2,), name="x"))
    assert [a.tolist() for a in Executor(traced.program).run({"x": np.array([-1, -2], np.float32)}).values()] == \
        [[-2, -4], 3]


@pytest.mark.parametrize("false_fn, message", [
    (lambda x: (x, x), r"same structure, got Tensor from true_fn and \(Tensor, Tensor\) from false_fn"),
    (lambda x: None, "got Tensor from true_fn and None from false_fn"),
    (lambda x: x[:1], r"got tensor<2xf32> from true_fn and tensor<1xf32> from false_fn for result 0"),
    (lambda x: x.astype("float64"), r"and tensor<2xf64> from false_fn")])
def test_branches_must_be_alike(false_fn, message):
    """Hard case B2 (Paddle PR 36513)."""
    with pytest.raises(TypeError, match=message):
        trace(lambda x: cond(x.sum() > 0.0, lambda: x, lambda: false_fn(x)), InputSpec((2,)))


def test_the_condition_must_be_one_bool():
    with pytest.raises(TypeError, match=r"cond: expected a bool tensor of one element, got f32\[2\]"):
        trace(lambda x: cond(x, lambda: x, lambda: x), InputSpec((2,)))


def written_in_one(x, y):
    z = x * y

    def write():
        z[0] = y[1] * 2.0
        return z.sum()
    total = cond(x.sum() > y.sum(), write, lambda: x.mean())
    return (z * x).sum() + total


def written_in_both(x, y):
    z, w = x * 1.0, y * 1.0

    def true():
        z.add_(w.tanh())
        w.add_(z * 2.0)

    def false():
        w.subtract_(x * x)
    cond(x.sum() > y.sum(), true, false)
    return (z * w).sum()


@pytest.mark.parametrize("f", [written_in_one, written_in_both])
def test_writes_in_place(f):
    """What a branch writes around it is a result of the branch, though it is not returned."""
    traced = trace(f, *specs())
    for name, g in zip("xy", append_backward(traced.program, traced.output_values, traced.input_values), strict=True):
        Builder(traced.program.global_block()).output(f"grad {name}", g)
    verify(traced.program)
    for a, b in FEEDS:
        for got, expected in zip(run(traced, a, b), eager(f, a, b), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_a_detached_result_stops_the_gradient():
    def f(x, y):
        return (cond(x.sum() > y.sum(), lambda: (x * y).detach(), lambda: x * y) * x).sum()

    traced = trace(f, *specs())
    for name, g in zip("xy", append_backward(traced.program, traced.output_values, traced.input_values), strict=True):
        Builder(traced.program.global_block()).output(f"grad {name}", g)
    for a, b in FEEDS:
        for got, expected in zip(run(traced, a, b), eager(f, a, b), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_second_derivatives_on_the_tape(f):
    def twice(x, y):
        total = sum((g * g).sum() for g in grad(f(x, y), [x, y], create_graph=True, allow_unused=True) if g is not None)
        return [x * 0.0 if g is None else g for g in grad(total, [x, y], allow_unused=True)]

    traced = trace(twice, *specs())
    verify(traced.program)
    for a, b in FEEDS:
        for got, expected in zip(run(traced, a, b), twice(*tensors(a, b)), strict=True):
            np.testing.assert_allclose(got, expected.numpy(), rtol=1e-10, atol=1e-10)


def test_values_of_the_result_are_tensors():
    def f(x):
        out = cond(x.sum() > 0.0, lambda: x, lambda: -x)
        assert isinstance(out, Tensor) and out.stop_gradient
        return out
    trace(f, InputSpec((2,), stop_gradient=True))
