"""case and switch_case, eager and traced, and Print and Assert in what runs of them."""

import numpy as np
import pytest

from minipd.autograd.engine import grad
from minipd.executor import Executor
from minipd.ir.dce import remove_dead_ops
from minipd.ir.parser import parse
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.ops.creation import to_tensor
from minipd.static import InputSpec
from minipd.static.effects import Assert, Print
from minipd.static.nn import case, cond, switch_case, while_loop

X = np.array([1.0, -2.0])


def by_conditions(x, i):
    return case([(i < 1, lambda: x + 1.0), (i < 3, lambda: x * x), (i < 5, lambda: x - 7.0)], default=lambda: x * 0.5)


def without_default(x, i):
    """The last function needs no condition to be true."""
    return case([(i < 1, lambda: x + 1.0), (i < 0, lambda: x * x)])


def by_number(x, i):
    return switch_case(i, {3: lambda: x * 3.0, 1: lambda: x.exp()}, default=lambda: -x)


def by_place(x, i):
    return switch_case(i, [lambda: x, lambda: x + 1.0, lambda: x * x])


def by_pairs(x, i):
    return switch_case(i, [(2, lambda: x + 2.0), (0, lambda: x * 10.0)])


EXPECTED = {by_conditions: {0: X + 1, 1: X * X, 2: X * X, 4: X - 7, 9: X / 2}, without_default: {0: X + 1, 5: X * X},
            by_number: {1: np.exp(X), 3: X * 3, 2: -X, -1: -X},
            by_place: {0: X, 1: X + 1, 2: X * X, 7: X * X, -1: X * X},
            by_pairs: {0: X * 10, 2: X + 2, 1: X + 2}}


@pytest.mark.parametrize("f", EXPECTED)
def test_the_function_that_runs(f):
    def train(x, i):
        out = f(x, i)
        return out, grad(out.sum(), [x])[0]
    program = trace(train, InputSpec((2,), "float64", "x", stop_gradient=False), InputSpec((), "int64", "i")).program
    executor = Executor(verify(program))
    for i, expected in EXPECTED[f].items():
        x = to_tensor(X, stop_gradient=False)
        out, g = train(x, to_tensor(i))
        np.testing.assert_array_equal(out.numpy(), expected)
        got = executor.run({"x": X, "i": np.array(i)})
        np.testing.assert_array_equal(got["output_0"], expected)
        np.testing.assert_allclose(got["output_1"], g.numpy(), rtol=1e-14)


def test_a_number_of_python_is_decided_while_tracing():
    traced = trace(lambda x: switch_case(1, [lambda: x, lambda: x * 2.0]), InputSpec((2,)))
    assert not any(op.regions for op in traced.program.walk())


def test_the_program_that_is_written():
    """The largest number is asked for first, as in Paddle."""
    program = trace(by_number, InputSpec((2,), "float64", "x"), InputSpec((), "int32", "i")).program
    assert [op.name() for op in program.walk() if op.name() not in ("pd_op.full", "cf.yield")] == [
        "pd_op.data", "pd_op.data", "pd_op.cast", "pd_op.equal", "pd_op.equal",
        "pd_op.if", "pd_op.multiply", "pd_op.if", "pd_op.exp", "pd_op.scale", "builtin.shadow_output"]


@pytest.mark.parametrize("call, error, message", [
    (lambda x: case(x), TypeError, "pred_fn_pairs to be a list or a tuple .*, got Tensor"),
    (lambda x: case([]), ValueError, "at least one"),
    (lambda x: case([(x > 0, 3)]), TypeError, r"a \(condition, function\) pair as element 0"),
    (lambda x: case([(3, lambda: x)], lambda: x), TypeError, "condition of pair 0 to be a bool tensor, got 3"),
    (lambda x: case([(x > 0, lambda: x)], default=3), TypeError, "default to be a function, got 3"),
    (lambda x: switch_case(x, [lambda: x]), TypeError, "one number of dtype uint8, int32, int64, got f32"),
    (lambda x: switch_case(to_tensor([1, 2]), [lambda: x]), TypeError, r"got i64\[2\]"),
    (lambda x: switch_case(to_tensor(1), [(1, lambda: x), (1, lambda: x)]), ValueError, "1 twice"),
    (lambda x: switch_case(to_tensor(1), {"a": lambda: x}), TypeError, "ints as the numbers of functions, got 'a'"),
])
def test_arguments_that_do_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call(to_tensor(1.0))


# ---------------------------------------------------------------------------------------------- Print and Assert
def run(f, a, **kwargs):
    traced = trace(f, InputSpec((2,), "float64", "x", **kwargs))
    assert parse(verify(traced.program).to_string("exact")) == traced.program
    remove_dead_ops(traced.program)
    executor = Executor(traced.program)
    return executor, executor.run({"x": a})


def test_print_in_a_loop(capsys):
    """As often as it comes by, though nothing uses what it returns."""
    def f(x):
        def body(i, h):
            Print(h, message="h", print_tensor_lod=False, print_tensor_layout=False)
            return i + 1, h * 2.0
        return while_loop(lambda i, h: i < 3, body, [0, x])[1]
    _, out = run(f, X)
    assert out["output_0"].tolist() == [8.0, -16.0]
    block = ("Variable: var\n  - message: h\n  - place: Place(cpu)\n  - shape: [2]\n  - dtype: float64\n"
             "  - data: [{:f} {:f}]\n")
    assert capsys.readouterr().out == "".join(block.format(*(X * 2 ** i)) for i in range(3))


def test_print_as_paddle_does(capsys):
    """Text of Paddle 3.3.1: numbers as float32, truth values as numbers."""
    Print(to_tensor(np.arange(30.0) * 344827.5862), message="hi", summarize=3)
    Print(to_tensor([True, False, True]), summarize=2, print_tensor_lod=False, print_tensor_name=False)
    assert capsys.readouterr().out == (
        "Variable: var\n  - message: hi\n  - lod: {}\n  - place: Place(cpu)\n  - shape: [30]\n  - layout: NCHW\n"
        "  - dtype: float64\n  - data: [0.000000 344827.593750 689655.187500]\n"
        "  - place: Place(cpu)\n  - shape: [3]\n  - layout: NCHW\n  - dtype: bool\n  - data: [1.000000 0.000000]\n")


@pytest.mark.parametrize("phase, shown", [("both", ["3.000000", "5.000000"]), ("forward", ["3.000000"]),
                                          ("backward", ["5.000000"])])
def test_print_the_gradient(capsys, phase, shown):
    x = to_tensor(3.0, stop_gradient=False)
    (Print(x, print_phase=phase) * 5.0).backward()
    assert [line.split("[")[1][:-1] for line in capsys.readouterr().out.splitlines() if "data" in line] == shown
    assert x.grad.item() == 5.0


def test_print_the_first_n(capsys):
    def f(x):
        return while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, Print(h, first_n=4) + 1.0), [0, x])[1]
    executor, _ = run(f, X)
    executor.run({"x": X})
    assert capsys.readouterr().out.count("Variable") == 4


def test_assert_in_a_branch(capsys):
    def f(x):
        def checked():
            Assert((x > 0.0).all(), [x, x * 2.0], summarize=1)
            return x
        return cond(x.sum() > 0.0, checked, lambda: -x)
    executor, out = run(f, X)
    assert out["output_0"].tolist() == [-1.0, 2.0] and capsys.readouterr().out == ""
    assert executor.run({"x": np.ones(2)})["output_0"].tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="Assert: expected the condition to be true, got false") as caught:
        executor.run({"x": np.array([3.0, -1.0])})
    assert "pd_op.assert (from " in caught.value.__notes__[0] and "test_choices.py" in caught.value.__notes__[0]
    assert [line for line in capsys.readouterr().out.splitlines() if "data" in line] == [
        "Variable: data[0]", "  - data: [3.000000]", "Variable: data[1]", "  - data: [6.000000]"]


def test_the_text_of_both():
    """As Paddle 3.3.1 prints it, which reads back."""
    def f(x):
        Assert((Print(x, message="hi").sum() > 0.0), [x], message="ours alone")
    text = str(trace(f, InputSpec((2,), "float64", "x")).program)
    lines = [line.strip().split(" {", 1) for line in text.splitlines() if "print" in line or "assert" in line]
    assert lines == [
        ['(%1) = "pd_op.print" (%0)',
         'first_n:-1,is_forward:true,message:"hi",print_phase:"BOTH",print_tensor_layout:true,print_tensor_lod:true,'
         'print_tensor_name:true,print_tensor_shape:true,print_tensor_type:true,stop_gradient:[true],summarize:20} : '
         '(tensor<2xf64>) -> tensor<2xf64>'],
        ['() = "pd_op.assert" (%5, %6)', "summarize:20} : (tensor<b>, vec[tensor<2xf64>]) ->"]]
    assert parse(text, "paddle").to_string("paddle") == text


def test_assert_without_data():
    executor, _ = run(lambda x: Assert((x < 9.0).all()), X)
    with pytest.raises(ValueError, match="Assert"):
        executor.run({"x": X * 9})
    with pytest.raises(TypeError, match=r"Assert: expected a bool tensor of one element, got f64\[2\]"):
        Assert(to_tensor(X))
    with pytest.raises(TypeError, match="data to be a list"):
        Assert(to_tensor(True), to_tensor(X))
