"""One traced program at many sizes, 0, 1 and primes among them, against the eager function at each."""

import numpy as np
import pytest

import minipd as paddle
from minipd.executor import Executor
from minipd.framework.dim import symbol
from minipd.ir.parser import parse
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.static.input import InputSpec

F = paddle.nn.functional
S0, S1 = symbol("S0"), symbol("S1")
SIZES = [(1, 1), (2, 3), (4, 4), (7, 5), (13, 1), (1, 17), (0, 3), (3, 0), (0, 0)]


def image(x):
    return F.pad(x, [1, 2, 1, 2]).unsqueeze([0, 1])


def window(stride, padding):
    return lambda x: F.conv2d(image(x), paddle.ones([1, 1, 3, 2]), stride=stride, padding=padding)


#: name -> (the function of an open matrix, the shape it is known to give)
FUNCTIONS = {
    "keep the first size": (lambda x: (x + 1).reshape([paddle.shape(x)[0], x.shape[1]]), (S0, S1)),
    "turn the shape": (lambda x: x.reshape(paddle.shape(x)[::-1]), (S1, S0)),
    "flatten": (lambda x: x.reshape(x.shape[0] * x.shape[1]), (S0 * S1,)),
    "sizes one by one": (lambda x: x.reshape(paddle.shape(x)[1], x.shape[0]), (S1, S0)),
    "full": (lambda x: paddle.full([paddle.shape(x)[0] + 1, 3], 2.0), (S0 + 1, 3)),
    "zeros": (lambda x: paddle.zeros([x.shape[0] // 2, paddle.shape(x)[1] // 3]), (S0 // 2, S1 // 3)),
    "ones": (lambda x: paddle.ones(paddle.shape(x)), (S0, S1)),
    "times a size": (lambda x: x * x.shape[0], (S0, S1)),
    "mean by hand": (lambda x: x.sum() / (x.shape[0] * x.shape[1] + 1), ()),
    "ints": (lambda x: x.astype("int64") + x.shape[1], (S0, S1)),
    "arange": (lambda x: paddle.arange(paddle.shape(x)[0] * 2), (2 * S0,)),
    "arange in steps": (lambda x: paddle.arange(1, x.shape[0], 3), ((S0 + 1) // 3,)),
    "upper half": (lambda x: x[paddle.shape(x)[0] // 2:], (S0 - S0 // 2, S1)),
    "the first five": (lambda x: x[:5], None),
    "from two to five": (lambda x: x[2:5] * 2, None),
    "all but few": (lambda x: x[:, :4].sum(1), (S0,)),
    "nothing": (lambda x: x[3:2], (0, S1)),
    "every second": (lambda x: x[:, ::2], (S0, (S1 + 1) // 2)),
    "backwards": (lambda x: x[::-1], (S0, S1)),
    "expand": (lambda x: x.sum(0, keepdim=True).expand([paddle.shape(x)[0], -1]), (S0, S1)),
    "tile": (lambda x: x.tile([x.shape[1], 2]), (S0 * S1, 2 * S1)),
    "concat": (lambda x: paddle.concat([x, paddle.zeros([paddle.shape(x)[0], 2])], 1), (S0, S1 + 2)),
    "a shape of parts": (lambda x: paddle.zeros(paddle.stack([paddle.shape(x)[1], paddle.shape(x)[0] + 2])),
                         (S1, S0 + 2)),
    "the larger size": (lambda x: paddle.zeros([paddle.maximum(*paddle.shape(x))]), None),
    "number of elements": (lambda x: paddle.arange(paddle.numel(x)), (S0 * S1,)),
    "remainder": (lambda x: paddle.zeros([paddle.shape(x)[0] % 2 + 1]), None),
    "convolution": (window(2, 1), None),
    "convolution, same": (window(2, "SAME"), None),
    "convolution, steps": (window((3, 2), [0, 1]), None),
    "pooling": (lambda x: F.max_pool2d(image(x), 2, 2), None),
    "pooling, rounded up": (lambda x: F.max_pool2d(image(x), 3, 2, ceil_mode=True), None),
    "windows": (lambda x: F.pad(x, [0, 0, 0, 4]).unfold(1, 3, 2), None),
    "mirrored": (lambda x: F.pad(image(x), [2, 1, 0, 1], mode="reflect"), None),
    "resized": (lambda x: F.interpolate(image(x), scale_factor=1.5), None),
    "resized to": (lambda x: F.interpolate(image(x), size=[paddle.shape(x)[0] + 1, 5]), None),
    "variance": (lambda x: (x + 1).var(1), (S0,)),
    "softmax": (lambda x: F.softmax(x, 0), (S0, S1)),
    "normalised": (lambda x: F.layer_norm(x, x.shape[1:]) if x.shape[1] != 0 else x, (S0, S1)),
    "a square": (lambda x: x @ x.transpose([1, 0]), (S0, S0)),
    "gather": (lambda x: paddle.gather(x, paddle.arange(x.shape[0] // 2)), (S0 // 2, S1)),
    "a loss": (lambda x: F.mse_loss(x, paddle.zeros_like(x)), ()),
}


def answer(function, *arrays):
    """What a function gives, or the exception that it raises."""
    try:
        return function(*arrays)
    except (ValueError, TypeError, ZeroDivisionError) as error:
        return error


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program_serves_every_size(name):
    function, shape = FUNCTIONS[name]
    program = verify(trace(function, InputSpec([None, None], "float32", "x")).program)
    assert parse(program.to_string("exact")) == program
    if shape is not None:
        assert program.get_output_value_by_name("output_0").shape == shape
    executor, served = Executor(program), 0
    for sizes in SIZES:
        x = np.random.default_rng(0).uniform(-1, 1, sizes).astype(np.float32)
        want = answer(lambda a: function(paddle.to_tensor(a)).numpy(), x)
        got = answer(lambda a: executor.run({"x": a})["output_0"], x)
        if isinstance(got, Exception):
            assert isinstance(want, Exception) or 0 in sizes, (sizes, got)
        elif not isinstance(want, Exception):
            assert got.shape == want.shape and got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)
            served += 1
    assert served >= 6                      # all that have elements


def test_two_open_batches_are_equal_or_stretched():
    spec = [InputSpec([None, 3], "float32", n, stop_gradient=False) for n in "xy"]
    traced = trace(lambda x, y: (x * y).exp() + y, *spec)
    program = traced.program
    assert str(program.get_output_value_by_name("output_0").shape[0]) == "Broadcast(S0,S1)"
    assert [c.relation for c in program.constraints] == ["Broadcastable(S0,S1)"]
    executor = Executor(program)
    for a, b in ((5, 5), (1, 5), (5, 1), (1, 1), (0, 1), (0, 0)):
        x, y = (np.random.default_rng(n).uniform(-1, 1, (n, 3)).astype(np.float32) for n in (a, b))
        np.testing.assert_allclose(executor.run({"x": x, "y": y})["output_0"], np.exp(x * y) + y, rtol=1e-6)
    with pytest.raises(ValueError, match=r"add|multiply: dimension -2: expected Broadcastable\(S0,S1\), got 2 and 3"):
        executor.run({"x": np.zeros((2, 3), np.float32), "y": np.zeros((3, 3), np.float32)})


def test_a_gradient_through_stretched_open_dimensions():
    spec = [InputSpec([None], "float32", n, stop_gradient=False) for n in "xy"]

    def gradients(x, y):
        return paddle.grad((x * y * y).sum(), [x, y])
    executor = Executor(verify(trace(gradients, *spec).program))
    for a, b in ((4, 4), (1, 4), (4, 1), (1, 1)):
        x, y = (np.random.default_rng(n).uniform(1, 2, n).astype(np.float32) for n in (a, b))
        got = executor.run({"x": x, "y": y})
        dx, dy = np.broadcast_to(y * y, max(a, b)), 2 * x * y + 0 * y
        np.testing.assert_allclose(got["output_0"], dx.sum(keepdims=True) if a == 1 < b else dx, rtol=1e-6)
        np.testing.assert_allclose(got["output_1"], dy.sum(keepdims=True) if b == 1 < a else dy, rtol=1e-6)


@pytest.mark.parametrize("backend", [None, "CINN"])
def test_compiled_gradients_through_stretched_open_dimensions(backend):
    spec = [InputSpec([None, 3], "float32", n, stop_gradient=False) for n in "xy"]
    compiled = paddle.jit.to_static(lambda x, y: (x * y).exp() + y, input_spec=spec, backend=backend)
    for a, b in ((4, 4), (1, 5), (7, 1), (1, 1)):
        found = []
        for function in (compiled, compiled.dygraph_function):
            x, y = (paddle.to_tensor(np.random.default_rng(n).uniform(-1, 1, (n, 3)).astype(np.float32),
                                     stop_gradient=False) for n in (a, b))
            function(x, y).sum().backward()
            found.append((x.grad.numpy(), y.grad.numpy()))
        for got, want in zip(*found, strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert len(compiled.traces) == 1


def test_a_training_step_of_a_convolution_at_many_sizes():
    w = np.random.default_rng(1).uniform(-1, 1, (2, 1, 3, 3)).astype(np.float32)

    def step(x, w):
        y = F.relu(F.conv2d(x, w, stride=2, padding=1))
        return paddle.grad(F.avg_pool2d(y, 2, 2).sum(), [x, w])
    executor = Executor(verify(trace(step, InputSpec([None, 1, None, None], "float32", "x", stop_gradient=False),
                                     InputSpec([2, 1, 3, 3], "float32", "w", stop_gradient=False)).program))
    for sizes in ((1, 4, 4), (2, 5, 7), (3, 8, 11)):
        x = np.random.default_rng(2).uniform(-1, 1, (sizes[0], 1, *sizes[1:])).astype(np.float32)
        handles = [paddle.to_tensor(a, stop_gradient=False) for a in (x, w)]
        for got, want in zip(executor.run({"x": x, "w": w}).values(), step(*handles), strict=True):
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("part", [slice(None, 1), slice(1, None)], ids=str)
def test_a_part_of_what_was_expanded_is_not_written_over(part):
    program = trace(lambda x: (x * 2).expand([2, 3])[part].exp() - 1, InputSpec([1, 3], "float32", "x")).program
    got, = Executor(program).run({"x": np.ones((1, 3), np.float32)}).values()
    np.testing.assert_allclose(got, np.full((1, 3), np.exp(np.float32(2)) - 1), rtol=1e-6)


def test_the_plan_is_made_for_each_size():
    program = trace(lambda x: (x @ x.transpose([1, 0])).sum(), InputSpec([None, 8], "float32", "x")).program
    executor = Executor(program)
    assert [executor.plan(S0=n).bound for n in (1, 7, 16)] == [64, 256, 1024]       # n * n * 4, in steps of 64


@pytest.mark.parametrize("function", [paddle.nonzero, paddle.unique, lambda x: x[x > 0]])
def test_sizes_that_depend_on_data_say_so(function):
    with pytest.raises(TypeError, match="whose size depends on .*values"):
        trace(function, InputSpec([None], "float32", "x"))
