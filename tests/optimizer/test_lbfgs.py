"""L-BFGS: against Paddle's iterates, and its line search against the conditions it is to meet."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minipd as paddle
from minipd import nn
from minipd.optimizer import LBFGS
from minipd.optimizer.line_search import Point, strong_wolfe


def rosenbrock(**options):
    x = paddle.create_parameter([2], "float64", default_initializer=nn.initializer.Assign(np.array([-1.2, 1.0])))
    lbfgs = LBFGS(parameters=[x], **options)

    def closure():
        lbfgs.clear_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        return loss
    return x, lbfgs, closure


# After each step, what PaddlePaddle 3.3.1 has reached, and how often it has evaluated the loss.
BY_PADDLE = [
    ({"max_iter": 5, "line_search_fn": "strong_wolfe"}, [
        (-1.02761777, 1.05841208, 6), (-0.77457974, 0.54762568, 12), (-0.25608958, 0.03726198, 19),
        (0.34184236, 0.09925827, 27), (0.74607591, 0.5450069, 34), (0.91607136, 0.83424737, 40)]),
    ({"learning_rate": 0.1, "max_iter": 4}, [
        (-1.10556514, 1.03981851, 4), (-1.08214408, 1.05111614, 8), (-1.06563106, 1.0582333, 12)]),
    ({"max_iter": 20, "line_search_fn": "strong_wolfe"}, [
        (0.38062264, 0.12491013, 25), (0.99998142, 0.99996197, 44), (0.99998142, 0.99996197, 45)]),
]


@pytest.mark.parametrize("options,path", BY_PADDLE)
def test_iterates_are_paddles(options, path):
    x, lbfgs, closure = rosenbrock(**options)
    for a, b, evaluations in path:
        lbfgs.step(closure)
        np.testing.assert_allclose(x.numpy(), [a, b], rtol=1e-6)
        assert lbfgs.evaluations == evaluations


def test_several_parameters_and_those_without_gradient():
    layer, unused = nn.Linear(3, 2), paddle.create_parameter([4])
    x, y = paddle.randn([20, 3]), paddle.randn([20, 2])
    before = unused.numpy()
    lbfgs = LBFGS(max_iter=50, line_search_fn="strong_wolfe", parameters=[*layer.parameters(), unused])

    def closure():
        lbfgs.clear_grad()
        loss = nn.functional.mse_loss(layer(x), y)
        loss.backward()
        return loss
    lbfgs.step(closure)
    ones = np.concatenate([x.numpy(), np.ones((20, 1))], 1)
    solution = np.linalg.lstsq(ones, y.numpy(), rcond=None)[0]
    np.testing.assert_allclose(layer.weight.numpy(), solution[:3], atol=1e-3)
    np.testing.assert_allclose(layer.bias.numpy(), solution[3], atol=1e-3)
    np.testing.assert_array_equal(unused.numpy(), before)


def test_going_on_from_a_state(tmp_path):
    x, lbfgs, closure = rosenbrock(max_iter=3, line_search_fn="strong_wolfe")
    lbfgs.step(closure)
    paddle.save(lbfgs.state_dict(), tmp_path / "state")
    other, again, closure2 = rosenbrock(max_iter=3, line_search_fn="strong_wolfe")
    other.set_value(x)
    again.set_state_dict(paddle.load(tmp_path / "state"))
    lbfgs.step(closure)
    again.step(closure2)
    assert x.tolist() == other.tolist() and lbfgs.evaluations == again.evaluations
    with pytest.raises(ValueError, match="state of LBFGS: expected an entry 'state' with direction, .*, got step"):
        again.set_state_dict({"step": 1})


def test_what_it_refuses():
    for options, said in [({"line_search_fn": "armijo"}, "expected line_search_fn to be 'strong_wolfe' or None"),
                          ({"weight_decay": 0.1}, "add a term to the loss instead")]:
        with pytest.raises(ValueError, match=said):
            rosenbrock(**options)


@given(st.floats(-3, 3), st.floats(-2, 2), st.floats(0.1, 5), st.floats(1e-3, 1e3))
def test_the_line_search_meets_its_conditions(a, b, c, first):
    """On a quartic that goes up on both sides: enough decrease, and a flat slope, from any first step."""
    def at(t):
        return Point(t, c * t ** 4 + a * t ** 3 + b * t ** 2 - t, 4 * c * t ** 3 + 3 * a * t ** 2 + 2 * b * t - 1, None)
    start = at(0.0)
    found, n = strong_wolfe(at, start, first, most=60)
    assert n <= 60
    assert found.loss <= start.loss + 1e-4 * found.step * start.slope
    assert abs(found.slope) <= 0.9 * abs(start.slope)


def test_the_line_search_survives_a_cliff():
    """The loss is infinite, or no number, beyond 1: the search comes back."""
    for beyond in (np.inf, np.nan):
        def at(t, beyond=beyond):
            return Point(t, beyond if t > 1 else -t + t * t * 0.4, np.nan if t > 1 else -1 + 0.8 * t, None)
        found, _ = strong_wolfe(at, at(0.0), 50.0)
        assert 0 < found.step <= 1 and found.loss < 0
