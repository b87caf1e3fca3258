"""Activations against Python's math, their gradients against differences, and what they do far out."""

import math

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.autograd.engine import grad
from minipd.nn import functional as F
from tests.nn.finite import check_gradients

rng = np.random.default_rng(1)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def held(x, low, high):
    return sorted((low, x, high))[1]


#: name -> (the function of a number, options)
ACTIVATIONS = {
    "celu": (lambda x: x if x > 0 else 0.5 * math.expm1(x / 0.5), {"alpha": 0.5}),
    "elu": (lambda x: x if x > 0 else 0.5 * math.expm1(x), {"alpha": 0.5}),
    "gelu": (lambda x: x * math.erfc(-x / math.sqrt(2)) / 2, {}),
    "hardshrink": (lambda x: x if abs(x) > 0.7 else 0.0, {"threshold": 0.7}),
    "hardsigmoid": (lambda x: held(0.2 * x + 0.4, 0, 1), {"slope": 0.2, "offset": 0.4}),
    "hardswish": (lambda x: x * held(x + 3, 0, 6) / 6, {}),
    "hardtanh": (lambda x: held(x, -0.6, 1.7), {"min": -0.6, "max": 1.7}),
    "leaky_relu": (lambda x: x if x > 0 else 0.2 * x, {"negative_slope": 0.2}),
    "log_sigmoid": (lambda x: -softplus(-x), {}),
    "mish": (lambda x: x * math.tanh(softplus(x)), {}),
    "relu": (lambda x: max(x, 0.0), {}),
    "relu6": (lambda x: held(x, 0, 6), {}),
    "selu": (lambda x: 1.5 * (x if x > 0 else 0.7 * math.expm1(x)), {"scale": 1.5, "alpha": 0.7}),
    "sigmoid": (sigmoid, {}),
    "silu": (lambda x: x * sigmoid(x), {}),
    "softplus": (lambda x: x if 2 * x > 3 else softplus(2 * x) / 2, {"beta": 2, "threshold": 3}),
    "softshrink": (lambda x: math.copysign(max(abs(x) - 0.7, 0), x), {"threshold": 0.7}),
    "softsign": (lambda x: x / (1 + abs(x)), {}),
    "swish": (lambda x: x * sigmoid(x), {}),
    "tanh": (math.tanh, {}),
    "tanhshrink": (lambda x: x - math.tanh(x), {}),
    "thresholded_relu": (lambda x: x if x > 0.9 else 0.5, {"threshold": 0.9, "value": 0.5}),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_and_gradients(name):
    f, options = ACTIVATIONS[name]
    x = np.append(rng.uniform(-4, 4, 14), [7.3])
    got = getattr(F, name)(paddle.to_tensor(x), **options)
    np.testing.assert_allclose(got.numpy(), [f(v) for v in x], rtol=1e-12, atol=1e-15)
    check_gradients(lambda t: getattr(F, name)(t, **options), x)
    for shape in ((), (0, 3)):
        assert getattr(F, name)(paddle.zeros(shape), **options).shape == list(shape)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_far_out_nothing_overflows(name):
    f, options = ACTIVATIONS[name]
    far = paddle.to_tensor([-1e4, -100.0, 100.0, 1e4], stop_gradient=False)
    out = getattr(F, name)(far, **options)
    want = {"log_sigmoid": [-1e4, -100, 0, 0], "mish": [0, 0, 100, 1e4], "softplus": [0, 0, 100, 1e4],
            "gelu": [0, 0, 100, 1e4], "sigmoid": [0, 0, 1, 1], "silu": [0, 0, 100, 1e4], "swish": [0, 0, 100, 1e4]}
    expected = want.get(name) or [f(v) for v in far.tolist()]
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6, atol=1e-30)
    out.sum().backward()
    assert np.isfinite(far.grad.numpy()).all()


@pytest.mark.parametrize("name", [n for n in ACTIVATIONS if n not in ("relu", "relu6")])
def test_second_derivatives(name):
    """Of the slope, by differences of it."""
    options = ACTIVATIONS[name][1]
    x = paddle.to_tensor(rng.uniform(-2, 2, 5), stop_gradient=False)

    def slope(x, create_graph=False):
        y = getattr(F, name)(x, **options).sum()
        return grad(y, x, create_graph=create_graph)[0]
    first = slope(x, create_graph=True)
    second = np.zeros(5) if first.stop_gradient else grad(first.sum(), x, allow_unused=True)[0]
    second = np.zeros(5) if second is None else np.asarray(second)
    h = 1e-5
    up, down = (slope(paddle.to_tensor(x.numpy() + s, stop_gradient=False)).numpy() for s in (h, -h))
    np.testing.assert_allclose(second, (up - down) / (2 * h), rtol=1e-5, atol=1e-6)


CORNERS = {"relu6": ([0.0, 6.0], [0, 0]), "hardtanh": ([-1.0, 1.0], [0, 0]), "hardsigmoid": ([-3.5, 3.5], [0, 0]),
           "hardswish": ([-3.0, 0.0, 3.0], [0, 0.5, 1]), "hardshrink": ([-0.5, 0.5], [0, 0]),
           "softshrink": ([-0.5, 0.5], [0, 0]), "thresholded_relu": ([1.0], [0])}


@pytest.mark.parametrize("name", CORNERS)
def test_gradients_at_corners(name):
    at, want = CORNERS[name]
    x = paddle.to_tensor(at, stop_gradient=False)
    getattr(F, name)(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), want)


def test_small_results_keep_their_digits():
    x = paddle.to_tensor([1e-8, -20.0, -10.0])
    np.testing.assert_allclose(F.elu(-x).numpy()[0], -1e-8)
    np.testing.assert_allclose(F.softplus(x).numpy()[1], math.log1p(math.exp(-20)), rtol=1e-6)
    np.testing.assert_allclose(F.gelu(x).numpy()[2], -10 * math.erfc(10 / math.sqrt(2)) / 2, rtol=1e-5)


def test_prelu_has_a_slope_for_each_channel():
    x = np.array([[[-1.0, 2.0], [-3.0, -4.0]]])
    assert F.prelu(paddle.to_tensor(x), paddle.to_tensor([0.5, 0.25])).tolist() == [[[-0.5, 2], [-0.75, -1]]]
    last = F.prelu(paddle.to_tensor(x), paddle.to_tensor([0.5, 0.25]), data_format="NLC")
    assert last.tolist() == [[[-0.5, 2], [-1.5, -1]]]
    check_gradients(F.prelu, rng.normal(size=(2, 3, 2)), rng.normal(size=3))
    with pytest.raises(ValueError, match=r"one slope for each of the 2 channels of f32\[1, 2\], got weight f32\[3\]"):
        F.prelu(paddle.ones([1, 2]), paddle.ones([3]))
    layer = nn.PReLU(2, init=0.5)
    assert layer.state_dict().keys() == {"_weight"} and layer(paddle.to_tensor(x)).tolist()[0][1] == [-1.5, -2.0]


def test_rrelu_draws_slopes_and_uses_their_middle():
    x = paddle.full([1000], -1.0)
    slopes = -F.rrelu(x, 0.1, 0.3).numpy()
    assert 0.1 <= slopes.min() < 0.12 and 0.28 < slopes.max() < 0.3
    assert F.rrelu(x[:1], 0.1, 0.3, training=False).tolist() == pytest.approx([-0.2])
    layer = nn.RReLU(0.1, 0.3)
    layer.eval()
    assert layer(x[:1]).tolist() == pytest.approx([-0.2])
    with pytest.raises(ValueError, match="expected 0 <= lower <= upper <= 1, got lower=0.5, upper=0.3"):
        F.rrelu(x, 0.5, 0.3)


def test_glu_and_maxout():
    x = rng.normal(size=(2, 4))
    np.testing.assert_allclose(F.glu(paddle.to_tensor(x)).numpy(), x[:, :2] / (1 + np.exp(-x[:, 2:])))
    np.testing.assert_allclose(F.maxout(paddle.to_tensor(x), 2).numpy(), x.reshape(2, 2, 2).max(-1))
    images = rng.normal(size=(1, 2, 3, 4))
    np.testing.assert_allclose(F.maxout(paddle.to_tensor(images), 2, axis=-1).numpy(),
                               images.reshape(1, 2, 3, 2, 2).max(-1))
    check_gradients(F.glu, x)
    check_gradients(lambda t: F.maxout(t, 2), x)
    with pytest.raises(ValueError, match=r"maxout: .* divides dimension 1 of f32\[2, 3\], got groups=2"):
        F.maxout(paddle.ones([2, 3]), 2)


# ------------------------------------------------------------------------------------------------------- softmax
def test_softmax_along_any_axis():
    x = rng.normal(size=(2, 3, 4))
    for axis in (0, 1, -1):
        e = np.exp(x) / np.exp(x).sum(axis, keepdims=True)
        np.testing.assert_allclose(F.softmax(paddle.to_tensor(x), axis).numpy(), e)
        np.testing.assert_allclose(F.log_softmax(paddle.to_tensor(x), axis).numpy(), np.log(e))
        check_gradients(lambda t, axis=axis: F.log_softmax(t, axis), x)
    np.testing.assert_allclose(nn.Softmax2D()(paddle.to_tensor(x)).numpy(), np.exp(x) / np.exp(x).sum(-3))
    assert F.softmax(paddle.zeros([2]), dtype="float64").dtype == "float64"
    out = paddle.zeros([2])
    assert F.softmax(paddle.zeros([2]), out=out) is out and out.tolist() == [0.5, 0.5]


def test_a_dead_row_of_a_softmax_is_nan_alone():
    """The plain softmax follows numpy; attention, which masks, gives zeros there (burn #4694)."""
    x = paddle.to_tensor([[0.0, -math.inf], [-math.inf, -math.inf]])
    for f in (F.softmax, F.log_softmax):
        with np.errstate(invalid="ignore"):
            out = f(x).numpy()
        assert np.isnan(out[1]).all() and not np.isnan(out[0]).any()


def test_gumbel_softmax():
    logits = paddle.to_tensor(np.log([[0.7, 0.2, 0.1]] * 4000), stop_gradient=False)
    soft = F.gumbel_softmax(logits, temperature=0.5)
    np.testing.assert_allclose(soft.sum(-1).numpy(), 1.0)
    hard = F.gumbel_softmax(logits, hard=True)
    assert set(np.unique(np.round(hard.numpy(), 12))) == {0.0, 1.0}
    np.testing.assert_allclose(hard.numpy().mean(0), [0.7, 0.2, 0.1], atol=0.03)
    (hard * paddle.to_tensor([1.0, 0.0, 0.0], dtype="float64")).sum().backward()
    assert np.abs(logits.grad.numpy()).max() > 0                # the relaxed sample's gradient
    rows = F.gumbel_softmax(paddle.zeros([3, 2]), hard=True, axis=0)
    np.testing.assert_allclose(rows.sum(0).numpy(), [1, 1])
    with pytest.raises(ValueError, match="expected a positive temperature, got 0"):
        F.gumbel_softmax(logits, temperature=0)


# ------------------------------------------------------------------------------------------------ in place, layers
@pytest.mark.parametrize("name", ["elu", "hardtanh", "leaky_relu", "relu", "softmax", "tanh", "thresholded_relu"])
def test_in_place_forms(name):
    x = paddle.to_tensor([-2.0, 0.5, 3.0])
    want = getattr(F, name)(x).tolist()
    assert getattr(F, f"{name}_")(x) is x and x.tolist() == want


def test_silu_in_place():
    x = paddle.to_tensor([1.0])
    assert F.silu(x, inplace=True) is x and x.tolist() == pytest.approx([0.7310586])


REPRS = """CELU(alpha=1.0) ELU(alpha=1.0) GELU(approximate=False) GLU(axis=-1) Hardshrink(threshold=0.5) Hardsigmoid()
Hardswish() Hardtanh(min=-1.0,max=1.0) LeakyReLU(negative_slope=0.01) LogSigmoid() LogSoftmax(axis=-1) Mish() ReLU()
ReLU6() Sigmoid() Silu(inplace=False) Softmax(axis=-1) Softplus(beta=1,threshold=20) Softshrink(threshold=0.5)
Softsign() Swish() Tanh() Tanhshrink() ThresholdedReLU(threshold=1.0,value=0.0)""".split()


@pytest.mark.parametrize("text", REPRS)
def test_layers_say_their_options_and_compute_their_function(text):
    name = text.split("(")[0]
    layer = getattr(nn, name)()
    assert repr(layer).replace(", ", ",") == text
    x = paddle.to_tensor(rng.normal(size=(2, 4)))
    snake = {"CELU": "celu", "ELU": "elu", "GELU": "gelu", "GLU": "glu", "LeakyReLU": "leaky_relu", "ReLU": "relu",
             "LogSigmoid": "log_sigmoid", "LogSoftmax": "log_softmax", "ThresholdedReLU": "thresholded_relu"}
    np.testing.assert_array_equal(layer(x).numpy(), getattr(F, snake.get(name, name.lower()))(x).numpy())


def test_a_layer_says_its_name_and_its_options_are_live():
    layer = nn.LeakyReLU(0.5, name="act")
    assert repr(layer) == "LeakyReLU(negative_slope=0.5, name=act)"
    layer.negative_slope = 0.25
    assert layer(paddle.to_tensor([-4.0])).tolist() == [-1.0]
