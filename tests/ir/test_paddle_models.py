"""What models of the real Paddle are made of, read and written: sizes that are reckoned, recurrences, parts."""

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.dim import symbol
from minipd.framework.errors import InputError
from minipd.ir.builder import Builder
from minipd.ir.paddle import from_paddle, to_paddle
from minipd.ir.paddle.open_sizes import open_sizes
from minipd.ir.paddle.parts import in_parts
from minipd.ir.paddle.recurrent_forms import recurrence
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.jit.rerun import rerun
from minipd.static import InputSpec


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


@pytest.mark.parametrize("direction", ["forward", "bidirect"])
@pytest.mark.parametrize("mode,layer", [("LSTM", paddle.nn.LSTM), ("GRU", paddle.nn.GRU),
                                        ("RNN_TANH", paddle.nn.SimpleRNN)])
def test_paddles_rnn_is_our_layer(mode, layer, direction):
    net = layer(4, 3, num_layers=2, direction=direction)
    x, lengths = normal(2, 5, 4), paddle.to_tensor([5, 3])
    n = 2 if direction == "bidirect" else 1
    cells = [cell for each in net for cell in each.sublayers()]
    weights = [w for c in cells for w in (c.weight_ih, c.weight_hh)]
    weights += [b for c in cells for b in (c.bias_ih, c.bias_hh)]
    first = [paddle.to_tensor(normal(2 * n, 2, 3, seed=i)) for i in range(2 if mode == "LSTM" else 1)]
    for given in (None, lengths):
        expected, last = net(paddle.to_tensor(x), tuple(first) if mode == "LSTM" else first[0], given)
        out, states = recurrence(paddle.to_tensor(x.transpose(1, 0, 2)), first, weights, given, mode, 2, n)
        np.testing.assert_allclose(out.numpy().transpose(1, 0, 2), expected.numpy(), rtol=1e-5, atol=1e-6)
        for a, b in zip(states, last if mode == "LSTM" else [last], strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layer", [paddle.nn.LSTM, paddle.nn.GRU])
def test_steps_in_parts_compute_the_same(layer):
    net = layer(4, 3)
    traced = trace(lambda x: net(x)[0], InputSpec([2, 3, 4], name="x"))
    names = {op.name() for op in traced.program.walk()}
    assert names & {"pd_op.lstm_unit", "pd_op.gru_unit"}
    program = in_parts(traced.program)
    assert not {op.name() for op in program.walk()} & {"pd_op.lstm_unit", "pd_op.gru_unit"}
    x = paddle.to_tensor(normal(2, 3, 4))
    given = {"x": x} | {n: paddle.to_tensor(a) for n, a in traced.captures.items()}
    found = rerun(program, given, {})["output_0"]
    np.testing.assert_allclose(found.numpy(), net(x)[0].numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode,how", [("nearest", {}), ("bilinear", {}), ("bilinear", {"align_corners": True}),
                                      ("bicubic", {}), ("area", {})])
def test_interpolation_in_parts(mode, how):
    def f(x):
        return paddle.nn.functional.interpolate(x, [5, 3], mode=mode, **how)

    traced = trace(f, InputSpec([2, 1, 3, 4], name="x"))
    program = from_paddle(to_paddle(in_parts(traced.program)))
    assert not any(op.name() == "pd_op.interp" for op in program.walk())
    x = paddle.to_tensor(normal(2, 1, 3, 4))
    np.testing.assert_allclose(rerun(program, {"x": x}, {})["output_0"].numpy(), f(x).numpy(), rtol=1e-5, atol=1e-6)


def through_paddles_form(f, *specs):
    """The program of a function, written and read; and the sizes that it has as constants in Paddle's form."""
    traced = trace(f, *specs)
    form = to_paddle(open_sizes(traced.program.clone()))
    return from_paddle(form), form


@pytest.mark.parametrize("f", [
    lambda x: x.reshape([x.shape[1], x.shape[0]]),
    lambda x: x.reshape([-1, 1]),
    lambda x: paddle.expand(x.unsqueeze(0), [2, *x.shape]),
    lambda x: paddle.full([x.shape[0], 2], 1.5) + x.sum(),
    lambda x: paddle.concat([x, x]).reshape([2 * x.shape[0] * x.shape[1]]),
    lambda x: x * x.shape[0],
    lambda x: x + paddle.arange(x.shape[1], dtype="float32"),
    lambda x: paddle.arange(3, x.shape[0] + 3, 2),
    lambda x: paddle.zeros([(x.shape[0] + 1) // 2]) + x.mean(),
    lambda x: paddle.tril(paddle.ones([x.shape[1], x.shape[1]])) * x.sum(),
])
def test_sizes_are_reckoned_and_recognised(f):
    program, form = through_paddles_form(f, InputSpec([None, None], name="x"))
    assert all(isinstance(d, int) for op in form.walk() if op.name() == "pd_op.full_int_array"
               for d in op.attributes["value"].value)
    for shape in ((2, 3), (5, 1), (4, 4)):
        x = paddle.to_tensor(normal(*shape))
        assert np.array_equal(rerun(program, {"x": x}, {})["output_0"].numpy(), f(x).numpy())


def test_reshapes_keep_one_unknown_size_as_minus_one():
    _, form = through_paddles_form(lambda x: x.reshape([x.shape[0] * 2, 3]), InputSpec([None, 6], name="x"))
    constants = [op.attributes["value"].value for op in form.walk() if op.name() == "pd_op.full_int_array"]
    assert constants == [(-1, 3)] and not any(op.name() == "pd_op.shape64" for op in form.walk())


def test_sizes_that_follow_from_no_input():
    program = Program()
    build = Builder(program.global_block())
    build.full((symbol("S7"),), 1.0, np.dtype("float32"))
    with pytest.raises(InputError, match="the size S7, which does not"):
        open_sizes(program)


@pytest.mark.parametrize("lengths", [None, [5, 2]])
@pytest.mark.parametrize("mode", ["LSTM", "GRU", "RNN_TANH"])
def test_a_recurrence_of_any_length_is_a_loop(mode, lengths):
    """As many steps as the call has: the loop computes what is written out for that many."""
    rows = {"LSTM": 12, "GRU": 9, "RNN_TANH": 3}[mode]
    weights = [paddle.to_tensor(normal(*shape, seed=i)) for i, shape in enumerate(
        [(rows, 4), (rows, 3), (rows, 4), (rows, 3), (rows,), (rows,), (rows,), (rows,)])]
    first = [paddle.to_tensor(normal(2, 2, 3, seed=i)) for i in range(2 if mode == "LSTM" else 1)]
    ends = None if lengths is None else paddle.to_tensor(lengths)

    def f(x):
        out, last = recurrence(x, first, weights, ends, mode, 1, 2)
        return [out, *last]
    traced = trace(f, InputSpec([None, 2, 4], "float32", "x"))
    assert "pd_op.while" in {op.name() for op in traced.program.walk()}
    for steps in (5, 7):
        x = paddle.to_tensor(normal(steps, 2, 4))
        given = {"x": x} | {n: paddle.to_tensor(a) for n, a in traced.captures.items()}
        found = rerun(traced.program, given, {})
        for name, expected in zip(traced.outputs, f(x), strict=True):
            np.testing.assert_allclose(found[name].numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
