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
