"""Initializers: their moments, limits and fans."""

import numpy as np
import pytest

import minipd as paddle
from minipd.nn import initializer as init


def drawn(initializer, shape=(300, 500)):
    paddle.seed(1)
    return paddle.create_parameter(list(shape), "float64", default_initializer=initializer).numpy()


# Variances from the papers: Glorot's gain^2 2 / (in + out), He's gain^2 / in, for [in, out] = [300, 500].
@pytest.mark.parametrize("initializer,variance", [
    (init.XavierUniform(), 2 / 800), (init.XavierNormal(), 2 / 800), (init.XavierUniform(gain=3.0), 9 * 2 / 800),
    (init.XavierNormal(fan_in=100, fan_out=100), 2 / 200), (init.KaimingUniform(), 2 / 300),
    (init.KaimingNormal(), 2 / 300), (init.KaimingNormal(mode="fan_out"), 2 / 500),
    (init.KaimingUniform(fan_in=50, nonlinearity="linear"), 1 / 50),
    (init.KaimingNormal(negative_slope=1.0, nonlinearity="leaky_relu"), 1 / 300),
    (init.Uniform(-1.0, 3.0), 16 / 12), (init.Normal(2.0, 0.5), 0.25)])
def test_variance(initializer, variance):
    x = drawn(initializer)
    assert np.var(x) == pytest.approx(variance, rel=0.02)
    mean = {"Uniform": 1.0, "Normal": 2.0}.get(type(initializer).__name__, 0.0)
    assert np.mean(x) == pytest.approx(mean, abs=0.01 * np.sqrt(variance) + 1e-3)
    if "Uniform" in type(initializer).__name__:
        assert np.abs(x - mean).max() <= np.sqrt(3 * variance) * (1 + 1e-12)
    else:
        assert np.abs(x - mean).max() > 3.5 * np.sqrt(variance)


def test_a_convolution_counts_its_kernel():
    x = drawn(init.KaimingNormal(), (64, 8, 5, 5))
    assert np.var(x) == pytest.approx(2 / (8 * 25), rel=0.05)


def test_truncated_normal_keeps_within_its_ends():
    x = drawn(init.TruncatedNormal(1.0, 2.0, -1.0, 3.0))
    assert x.min() >= -1 and x.max() <= 3
    assert x.min() < -0.99 and x.max() > 2.99
    assert np.mean(x) == pytest.approx(1.0, abs=0.02)
    # a standard normal within one deviation: variance 1 - 2 phi(1) / (2 Phi(1) - 1) = 0.29112
    assert np.var(x) == pytest.approx(4 * 0.29112, rel=0.02)
    with pytest.raises(ValueError, match="TruncatedNormal: expected a < b and std > 0, got a=1, b=1"):
        init.TruncatedNormal(a=1, b=1)


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 5), (6, 2, 3, 1)])
def test_orthogonal(shape):
    x = drawn(init.Orthogonal(gain=2.0), shape).reshape(shape[0], -1)
    small = x @ x.T if len(x) <= x.shape[1] else x.T @ x
    np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=1e-12)


def test_orthogonal_is_spread_evenly():
    """The trace of a random orthogonal matrix has mean 0 and variance 1; without the signs of r it would have not."""
    paddle.seed(0)
    drawn = [paddle.create_parameter([3, 3], default_initializer=init.Orthogonal()) for _ in range(400)]
    traces = [np.trace(p.numpy()) for p in drawn]
    assert abs(np.mean(traces)) < 0.2 and np.var(traces) == pytest.approx(1.0, rel=0.25)


def test_dirac_passes_channels_on():
    x = drawn(init.Dirac(groups=2), (6, 2, 3, 4))
    assert [tuple(map(int, i)) for i in np.argwhere(x)] == [(0, 0, 1, 2), (1, 1, 1, 2), (3, 0, 1, 2), (4, 1, 1, 2)]
    assert x.sum() == 4
    for groups, shape, said in ((4, (6, 2, 3), "output channels that 4 groups divide, got 6"),
                                (1, (6, 2), r"3 to 5 dimensions, got shape \[6, 2\]")):
        with pytest.raises(ValueError, match=said):
            drawn(init.Dirac(groups), shape)


def test_bilinear_is_a_pyramid():
    x = drawn(init.Bilinear(), (2, 3, 4, 4))
    np.testing.assert_allclose(x[1, 2], np.outer([1, 3, 3, 1], [1, 3, 3, 1]) / 16)
    assert (x == x[0, 0]).all()
    with pytest.raises(ValueError, match=r"Bilinear: expected the weight of a 2-D convolution with a square kernel"):
        drawn(init.Bilinear(), (1, 1, 2, 3))


def test_the_global_initializer_stands_for_the_layers_choice():
    init.set_global_initializer(init.Constant(7.0), init.Constant(8.0))
    layer = paddle.nn.Linear(1, 1)
    assert layer.weight.item() == 7.0 and layer.bias.item() == 8.0
    assert paddle.nn.Linear(1, 1, weight_attr=init.Constant(1.0)).weight.item() == 1.0
    assert paddle.nn.Embedding(2, 1, padding_idx=0).weight.tolist() == [[0.0], [7.0]]
    assert paddle.create_parameter([1], default_initializer=init.Constant(1.0)).item() == 7.0
    init.set_global_initializer(None)
    assert paddle.nn.Linear(1, 1).bias.item() == 0.0
    with pytest.raises(TypeError, match="set_global_initializer: expected an Initializer or None, got 3"):
        init.set_global_initializer(3)


def test_gains():
    assert [init.calculate_gain(f"conv{n}d{t}") for n in (1, 2, 3) for t in ("", "_transpose")] == [1] * 6
    assert init.calculate_gain("relu") == np.sqrt(2) and init.calculate_gain("selu") == 0.75
    assert init.calculate_gain("leaky_relu") == np.sqrt(2 / (1 + 1e-4))


def test_assign():
    assert drawn(init.Assign([[1, 2]]), (1, 2)).tolist() == [[1.0, 2.0]]
    with pytest.raises(ValueError, match=r"Assign: expected values of the parameter's shape \[3\], got \[1, 2\]"):
        drawn(init.Assign([[1, 2]]), (3,))


def test_calling_an_initializer_starts_a_parameter_anew():
    p = paddle.create_parameter([4])
    init.Constant(2.0)(p)
    assert p.tolist() == [2.0] * 4 and not p.stop_gradient
    init.Normal()(p)
    first = p.numpy()
    init.Normal()(p)
    assert (p.numpy() != first).all()


def test_what_initializers_refuse():
    with pytest.raises(ValueError, match="KaimingNormal: expected mode 'fan_in' or 'fan_out', got 'both'"):
        init.KaimingNormal(mode="both")
    with pytest.raises(ValueError, match="calculate_gain: expected one of conv1d, .* got 'gelu'"):
        init.calculate_gain("gelu")
    with pytest.raises(NotImplementedError, match="an initializer defines values"):
        drawn(init.Initializer())


def test_empty_parameters():
    assert drawn(init.XavierUniform(), (0, 3)).shape == (0, 3)
