"""Statistics, quantiles, differences and integrals against numpy; their gradients against finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minipd as paddle
from minipd.static import InputSpec
from tests.nn.finite import check_gradients

NAN = float("nan")
NUMBERS = st.floats(-9, 9, width=32)
SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, max_side=5)
ARRAYS = hnp.arrays(np.float64, SHAPES, elements=NUMBERS)
WITH_NAN = hnp.arrays(np.float64, SHAPES, elements=st.one_of(NUMBERS, st.just(NAN)))
few = settings(max_examples=20)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")      # numpy's, of means of nothing


def axes_of(x, data):
    return data.draw(st.sampled_from([None, 0, -1, tuple(range(x.ndim))]))


def tensor(x):
    return paddle.to_tensor(x)


def assert_same(got, want):
    assert tuple(got.shape) == np.shape(want)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9, atol=1e-9)


@few
@given(ARRAYS, st.booleans(), st.data())
def test_variance(x, keepdim, data):
    axis = axes_of(x, data)
    for correction in (0, 1):
        want = np.var(x, axis=axis, ddof=correction, keepdims=keepdim)
        assert_same(paddle.var(tensor(x), axis, keepdim=keepdim, correction=correction), want)
        assert_same(paddle.var(tensor(x), axis, unbiased=bool(correction), keepdim=keepdim), want)
        assert_same(paddle.std(tensor(x), axis, unbiased=bool(correction), keepdim=keepdim), np.sqrt(want))


@few
@given(WITH_NAN, st.booleans(), st.data())
def test_sums_without_nan(x, keepdim, data):
    axis = axes_of(x, data)
    assert_same(paddle.nansum(tensor(x), axis, keepdim=keepdim), np.nansum(x, axis=axis, keepdims=keepdim))
    assert_same(paddle.nanmean(tensor(x), axis, keepdim=keepdim), np.nanmean(x, axis=axis, keepdims=keepdim))
    assert_same(paddle.count_nonzero(tensor(x), axis, keepdim), np.count_nonzero(x, axis=axis, keepdims=keepdim))


@few
@given(WITH_NAN, st.sampled_from(["linear", "lower", "higher", "midpoint", "nearest"]), st.booleans(), st.data())
def test_quantiles(x, interpolation, keepdim, data):
    axis = axes_of(x, data)
    for q in (0.0, 0.25, 0.3, 0.5, 1.0):
        got = paddle.quantile(tensor(x), q, axis, keepdim, interpolation)
        assert_same(got, np.quantile(x, q, axis=axis, keepdims=keepdim, method=interpolation))
        got = paddle.nanquantile(tensor(x), q, axis, keepdim, interpolation)
        assert_same(got, np.nanquantile(x, q, axis=axis, keepdims=keepdim, method=interpolation))
    several = paddle.quantile(tensor(x), [0.25, 0.5], axis, keepdim)
    assert_same(several, np.quantile(x, [0.25, 0.5], axis=axis, keepdims=keepdim))
    assert_same(paddle.quantile(tensor(x), tensor([0.25, 0.5]), axis, keepdim), several.numpy())


@few
@given(WITH_NAN, st.booleans(), st.data())
def test_medians(x, keepdim, data):
    axis = axes_of(x, data)
    assert_same(paddle.nanmedian(tensor(x), axis, keepdim), np.nanmedian(x, axis=axis, keepdims=keepdim))
    if not isinstance(axis, tuple):
        assert_same(paddle.median(tensor(x), axis, keepdim), np.median(x, axis=axis, keepdims=keepdim))


def test_the_lesser_median_and_its_place():
    x = tensor([[4.0, 1.0, 3.0, 2.0], [NAN, 5.0, NAN, 6.0]])
    value, place = paddle.median(x, axis=1, mode="min")
    assert value.tolist()[0] == 2.0 and np.isnan(value.tolist()[1]) and place.tolist() == [3, 0]
    value, place = paddle.nanmedian(x, axis=1, mode="min")
    assert value.tolist() == [2.0, 5.0] and place.tolist() == [3, 1]
    assert paddle.median(tensor([4, 1, 3, 2]), mode="min").tolist() == 2
    assert paddle.median(tensor([4, 1, 3, 2])).dtype == paddle.float32
    assert np.isnan(paddle.median(paddle.zeros([0])).item())
    assert paddle.median(tensor(3.0)).item() == 3.0


@pytest.mark.parametrize("function", [
    paddle.var, paddle.std, paddle.median, lambda x: paddle.quantile(x, 0.3, axis=1), paddle.nanmean,
    lambda x: paddle.diff(x, n=2), lambda x: paddle.trapezoid(x, dx=0.5),
    lambda x: paddle.cumulative_trapezoid(x, axis=0),
    lambda x: paddle.renorm(x, 2.0, 0, 1.0), lambda x: paddle.renorm(x, 3.0, 1, 0.5),
])
def test_gradients(function):
    check_gradients(function, np.array([[0.3, -1.2, 2.1, 0.9], [1.7, 0.1, -0.6, -2.0]]))


@pytest.mark.parametrize("function", [
    paddle.var, lambda x: paddle.std(x, 0), paddle.nanmean, paddle.median, lambda x: paddle.nanmedian(x, 0),
    lambda x: paddle.quantile(x, [0.3, 0.5], 1), lambda x: paddle.diff(x, axis=0), paddle.cumsum,
    lambda x: paddle.cumulative_trapezoid(x, axis=0), lambda x: paddle.renorm(x, 2.0, 0, 1.0),
    lambda x: paddle.isclose(x, x * 1.1),
])
def test_programs_of_symbolic_sizes(function):
    program = paddle.jit.to_static(function, input_spec=[InputSpec([None, 4], "float64")])
    for rows in (3, 6):
        x = np.random.default_rng(rows).normal(size=(rows, 4))
        assert_same(program(tensor(x)), function(tensor(x)).numpy())


def test_ties_of_the_median_share_nothing():
    """Two in the middle have half each, as in Paddle; of an odd number one has all."""
    for x, want in (([1.0, 2.0, 3.0, 4.0], [0, 0.5, 0.5, 0]), ([3.0, 1.0, 2.0], [0, 0, 1])):
        x = paddle.to_tensor(x, stop_gradient=False)
        paddle.median(x).backward()
        assert x.grad.tolist() == want


@few
@given(ARRAYS, st.integers(1, 3), st.data())
def test_differences(x, n, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    assert_same(paddle.diff(tensor(x), n, axis), np.diff(x, n, axis))
    assert_same(paddle.diff(tensor(x), n, axis, prepend=tensor(x), append=tensor(x)), np.diff(x, n, axis, x, x))
    assert_same(paddle.trapezoid(tensor(x), dx=0.5, axis=axis), np.trapezoid(x, dx=0.5, axis=axis))
    places = np.cumsum(np.abs(x) + 1, axis=axis)
    assert_same(paddle.trapezoid(tensor(x), tensor(places), axis=axis), np.trapezoid(x, places, axis=axis))
    line = np.arange(x.shape[axis]) ** 2.0
    assert_same(paddle.trapezoid(tensor(x), tensor(line), axis=axis), np.trapezoid(x, line, axis=axis))


def test_differences_by_hand():
    assert paddle.diff(tensor([True, True, False])).tolist() == [False, True]
    assert paddle.cumulative_trapezoid(tensor([1.0, 3.0, 5.0]), tensor([0.0, 1.0, 3.0])).tolist() == [2.0, 10.0]
    assert paddle.diff(tensor([1.0])).shape == [0]


def test_slices_kept_to_a_norm():
    x = tensor([[6.0, 8.0], [0.0, 0.0], [0.5, 0.0]])
    np.testing.assert_allclose(paddle.renorm(x, 2.0, 0, 5.0).numpy(), [[3, 4], [0, 0], [0.5, 0]], rtol=1e-6)
    np.testing.assert_allclose(paddle.renorm(x, float("inf"), 0, 4.0).numpy(), [[3, 4], [0, 0], [0.5, 0]], rtol=1e-6)
    x.stop_gradient = False
    paddle.renorm(x, 2.0, 0, 5.0).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()                # of the slice of zeros too


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: paddle.quantile(paddle.ones([2]), 1.5), ValueError, r"quantile: expected q to be a number in \[0, 1\]"),
    (lambda: paddle.quantile(paddle.ones([2]), 0.5, interpolation="cubic"), ValueError, "expected interpolation to be"),
    (lambda: paddle.quantile(paddle.ones([0]), 0.5), ValueError, "is empty: no elements, no quantile"),
    (lambda: paddle.median(paddle.ones([2]), axis=[0]), ValueError, "median: expected axis to be an int or None"),
    (lambda: paddle.median(paddle.ones([2]), mode="max"), ValueError, 'expected mode to be "avg" or "min"'),
    (lambda: paddle.diff(paddle.ones([])), ValueError, "at least one dimension, got n=1 and f32"),
    (lambda: paddle.trapezoid(paddle.ones([2]), paddle.ones([2]), dx=1.0), ValueError, "expected x or dx, got both"),
    (lambda: paddle.renorm(paddle.ones([2]), -1.0, 0, 1.0), ValueError, "renorm: expected a positive p"),
    (lambda: paddle.var("x"), TypeError, "var: expected a Tensor, got str"),
])
def test_errors_teach(call, error, text):
    with pytest.raises(error, match=text):
        call()
