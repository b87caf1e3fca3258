"""while_loop, the function: variables, writes around it, errors, static mode; its text, drawing and verification."""

import numpy as np
import pytest

import minipd as paddle
from minipd.executor import Executor
from minipd.framework.tensor import Tensor
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.traced import trace
from minipd.ir.verify import VerifyError, verify
from minipd.ops.creation import to_tensor, zeros
from minipd.static import InputSpec
from minipd.static.nn import while_loop
from minipd.viz.ir.program import program_graph
from tests.static.loops import (
    FEEDS,
    loop_in_loop,
    repeated,
    specs,
    tensors,
    times,
)


# -------------------------------------------------------------------------------------------------- the function
def test_symbolic_sizes():
    def f(x):
        h, = times(3, lambda i, h: [(h * x).tanh()], x)
        return h.sum()
    traced = trace(f, InputSpec((None, 3), "float64", "x", stop_gradient=False))
    g, = append_backward(traced.program, traced.output_values, traced.input_values)
    Builder(traced.program.global_block()).output("g", g)
    executor = Executor(verify(traced.program))
    for n in (1, 4):
        a = np.linspace(-1, 1, n * 3).reshape(n, 3)
        x = to_tensor(a, stop_gradient=False)
        f(x).backward()
        np.testing.assert_allclose(executor.run({"x": a})["g"], x.grad.numpy(), rtol=1e-12)


def test_nested_variables_and_numbers():
    def body(i, state):
        return i + 1, {"a": [state["a"][0] * 2, state["a"][1] + 1.5], "none": None}

    def f(x):
        i, state = while_loop(lambda i, state: i < 3, body, [0, {"a": [x, 1.0], "none": None}])
        assert isinstance(i, Tensor) and state["none"] is None
        return i, *state["a"]

    for found in (f(to_tensor([1.0])), Executor(trace(f, InputSpec((1,), name="x")).program).run(
            {"x": np.ones(1, np.float32)}).values()):
        i, a, b = (x.numpy() if isinstance(x, Tensor) else x for x in found)
        assert (i, a.tolist(), b) == (3, [8.0], 5.5) and b.dtype == np.float32


def test_a_number_takes_the_dtype_that_it_goes_on_with():
    program = trace(lambda x: while_loop(lambda s: s < 10, lambda s: [s + x.sum()], [0])[0],
                    InputSpec((3,), "float64", "x")).program
    out, = Executor(verify(program)).run({"x": np.full(3, 1.25)}).values()
    assert out == 11.25 and out.dtype == np.float64


def test_one_variable_may_come_back_alone():
    assert while_loop(lambda i: i < 3, lambda i: i + 1, [to_tensor(0)])[0].item() == 3
    out, = trace(lambda x: while_loop(lambda i: i < 3, lambda i: i + 1, [x]), InputSpec((), "int64", "x")).output_values
    assert out.type() == out.get_defining_op().operand_source(1).type()


def test_a_captured_tensor_is_read_when_the_program_runs():
    w = to_tensor([1.0, 2.0])
    traced = trace(lambda x: times(2, lambda i, h: [h * w], x)[0], InputSpec((2,), name="x"))
    w.fill_(3.0)
    out, = Executor(traced.program).run({"x": np.ones(2, np.float32), **traced.captures}).values()
    assert out.tolist() == [9.0, 9.0]


def grows(x):
    return while_loop(lambda x, h: h.sum() < 9.0,
                      lambda x, h: (x, h.unsqueeze(0)), [x, x])


def narrows(x):
    return while_loop(lambda x, state: state["h"].sum() < 9.0,
                      lambda x, state: (x, {"h": state["h"].astype("float16")}), [x, {"h": x}])


def replaced(x):
    return while_loop(lambda x, h: h.sum() < 9.0, lambda x, h: (x, (h, h)), [x, x])


def from_number(x):
    return while_loop(lambda total: total.sum() < 9.0, lambda total: [total + x], [0.0])


@pytest.mark.parametrize("f, message", [
    (grows, r"loop variable h to keep its type, got f32\[2\] before the loop .*and f32\[1, 2\] after an iteration, "
            r"made at .*test_while.py:\d+: its shape changes"),
    (narrows, r"loop variable state\['h'\] to keep its type, got f32\[2\].*f16\[2\].*its dtype changes.*cast"),
    (replaced, r"in their structure, x = Tensor, h = Tensor, got x = Tensor, h = \(Tensor, Tensor\)"),
    (from_number, r"loop variable total to keep its type, got f32\[\] before the loop \(a Python number.*"
                  r"paddle.zeros")])
def test_a_body_that_changes_what_it_carries(f, message):
    with pytest.raises(TypeError, match=message):
        trace(f, InputSpec((2,)))


def test_arguments_that_are_none():
    x = to_tensor(1.0)
    with pytest.raises(ValueError, match="at least one loop variable"):
        while_loop(lambda: True, lambda: [], [])
    with pytest.raises(TypeError, match="cond to be a function"):
        while_loop(True, lambda x: x, [x])
    with pytest.raises(TypeError, match="loop_vars to be a list or a tuple, got Tensor"):
        while_loop(lambda x: x < 1, lambda x: x, x)
    with pytest.raises(ValueError, match="as many values as there are loop variables, 2, got 1"):
        while_loop(lambda x, y: x < 2, lambda x, y: [x + 1], [x, x])
    with pytest.raises(TypeError, match=r"while_loop: expected a bool tensor of one element, got f32\[2\]"):
        trace(lambda x: while_loop(lambda x: x, lambda x: x, [x]), InputSpec((2,)))
    with pytest.raises(TypeError, match="expected cond to return a bool tensor, got True"):
        trace(lambda x: while_loop(lambda x: True, lambda x: x, [x]), InputSpec((2,)))


def writes_around(x, y):
    """Into a buffer by a traced place, and into a sum that the condition reads."""
    buffer, total = zeros([5, 2, 3], "float64"), x * 0.0

    def body(i, h):
        buffer[i] = h * y
        total.add_(h)
        return [i + 1, h * 1.5]
    _, h = while_loop(lambda i, h: (i < 4).logical_and(total.sum() < 30.0), body, [0, x])
    return (buffer.sum(axis=0) * total * h).sum()


def returns_what_it_writes(x, y):
    state = x * y

    def body(i, h):
        state.multiply_(y)
        return [i + 1, state]
    return (while_loop(lambda i, h: i < 3, body, [0, x])[1] * state).sum()


def statistics(x, y):
    """A BatchNorm is called in the loop: its running mean is that of all calls."""
    norm = paddle.nn.BatchNorm1D(3, data_format="NLC", momentum=0.5)
    h, = times(3, lambda i, h: [norm((h * y).astype("float32")).astype("float64") + x], x)
    return (h * norm._mean.astype("float64")).sum()


@pytest.mark.parametrize("f", [writes_around, returns_what_it_writes, statistics])
def test_writes_in_place(f):
    for a, b in FEEDS:
        found = []
        for g in (f, paddle.jit.to_static(f)):
            x, y = tensors(a, b)
            out = g(x, y)
            out.backward()
            found.append([out.item(), x.grad.numpy(), y.grad.numpy()])
        for got, expected in zip(found[1], found[0], strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-6)


# -------------------------------------------------------------------------------------------------- static mode
def test_training_in_static_mode():
    """A recurrent cell with dropout in a loop: step by step, the losses are those of Python's loop."""
    def loss_of(cell, x, n):
        def step(i, h):
            return [i + 1, paddle.nn.functional.dropout((cell(h) + x).tanh(), 0.25)]
        return (while_loop(lambda i, h: i < n, step, [0, x])[1] ** 2).mean()

    data = [np.random.default_rng(i).standard_normal((2, 3)).astype(np.float32) for i in range(4)]
    paddle.seed(3)
    cell = paddle.nn.Linear(3, 3)
    start = [p.numpy().copy() for p in cell.parameters()]
    opt, expected = paddle.optimizer.SGD(0.5, parameters=cell.parameters()), []
    paddle.seed(4)
    for n, x in enumerate(data, start=1):
        loss = loss_of(cell, to_tensor(x), n)
        loss.backward()
        opt.step()
        opt.clear_grad()
        expected.append(loss.item())

    main, startup = paddle.static.Program(), paddle.static.Program()
    paddle.enable_static()
    try:
        with paddle.static.program_guard(main, startup), paddle.static.scope_guard(paddle.static.Scope()):
            x, n = paddle.static.data("x", [None, 3], "float32"), paddle.static.data("n", [], "int64")
            cell = paddle.nn.Linear(3, 3)
            loss = loss_of(cell, x, n)
            paddle.optimizer.SGD(0.5).minimize(loss)
            exe = paddle.static.Executor()
            exe.run(startup)
            scope = paddle.static.global_scope()
            for p, array in zip(cell.parameters(), start, strict=True):
                scope.find_var(p.name).get_tensor().set(array, None)
            paddle.seed(4)
            got = [exe.run(main, feed={"x": a, "n": np.int64(i)}, fetch_list=[loss])[0]
                   for i, a in enumerate(data, start=1)]
    finally:
        paddle.disable_static()
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_a_program_with_a_seed_of_its_own():
    """Every run draws the same, in front of the loop and in it, and leaves the rank's generator alone."""
    main = paddle.static.Program()
    main.random_seed = 7
    paddle.enable_static()
    try:
        with paddle.static.program_guard(main):
            x = paddle.static.data("x", [2], "float32")
            h, = times(3, lambda i, h: [h * 2.0 + paddle.rand([2])], x + paddle.rand([2]))
        paddle.seed(1)
        exe, feed = paddle.static.Executor(), {"x": np.zeros(2, np.float32)}
        (first,), (second,) = (exe.run(main, feed=feed, fetch_list=[h]) for _ in range(2))
    finally:
        paddle.disable_static()
    np.testing.assert_array_equal(first, second)
    after = paddle.rand([2]).numpy()
    paddle.seed(1)
    np.testing.assert_array_equal(paddle.rand([2]).numpy(), after)
    paddle.seed(7)
    expected, = times(3, lambda i, h: [h * 2.0 + paddle.rand([2])], paddle.rand([2]))
    np.testing.assert_array_equal(first, expected.numpy())


def test_the_drawing():
    program = trace(loop_in_loop, *specs()).program
    names = []

    def visit(cluster):
        names.append(cluster.label if hasattr(cluster, "label") else cluster.title)
        for inner in cluster.clusters:
            visit(inner)
    visit(program_graph(program).root)
    assert names == ["program", "while", "while"]


# ------------------------------------------------------------------------------------------------- verification
def loop_op():
    program = trace(repeated, *specs()).program
    return program, next(op for op in program.walk() if op.name() == "pd_op.while")


def test_the_text():
    text = str(loop_op()[0]).splitlines()
    at = next(i for i, line in enumerate(text) if "while" in line)
    assert text[at:at + 2] == ['    (%5, %6) = "pd_op.while" (cond=%4, inputs=%2, %0) { ',
                               "    ^%arg_0 {stop_gradient:true}, %arg_1 {stop_gradient:false}"]


@pytest.mark.parametrize("change, message", [
    (lambda op, end: op.operand(0).set_source(op.operand_source(1)),
     "operand 0: expected a condition of type tensor<b>, got tensor<i64>"),
    (lambda op, end: op.operand(2).set_source(op.operand_source(1)), "arguments of the body: expected"),
    (lambda op, end: end.operand(2).set_source(end.operand_source(1)),
     r"a loop cannot change the type of what it carries\): expected \(tensor<i64>, tensor<2x3xf64>\), got "
     r"\(tensor<i64>, tensor<i64>\)"),
    (lambda op, end: end.operand(0).set_source(end.operand_source(1)), "what the body yields first: expected a cond"),
    (lambda op, end: op.result(1).set_type(op.result(0).type()), r"results: expected \(tensor<i64>, tensor<2x3xf64>\)"),
])
def test_loops_that_do_not_fit(change, message):
    program, op = loop_op()
    change(op, op.regions[0].front().back())
    with pytest.raises(VerifyError, match=message):
        verify(program)


def test_a_body_without_a_yield():
    program, op = loop_op()
    op.regions[0].front().back().erase()
    with pytest.raises(VerifyError, match="expected cf.yield at its end"):
        verify(program)
