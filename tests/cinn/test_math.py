"""The polynomials against float64 numpy, over all exponents, and over the whole range of bits in steps."""

import numpy as np
import pytest
from numba import njit

from minipd.cinn.codegen import math, scalar
from minipd.cinn.ir.operators import UNARY

#: The largest error that each docstring states, in ulp.
BOUNDS = {"exp": 2, "log": 2, "tanh": 2, "erf": 2, "erfc": 70, "sin": 1, "cos": 1}
#: exp for processors without an instruction for x 2^k
NARROW = math.exponential(math._times_two_factors)
STEP = 8191         # a prime: about 524 000 of the 2^32 float32


def over(function):
    """A scalar helper over arrays."""
    @njit(error_model="numpy")
    def run(x, out):
        for i in range(x.size):
            out[i] = function(x[i])
    return run


def errors(name, x, function=None):
    """For each x the error of the helper in units of the last place of the float32 result."""
    out = np.empty_like(x)
    over(function or getattr(math, name))(x, out)
    with np.errstate(all="ignore"):
        exact = UNARY[name].function(x.astype(np.float64))
        nearest = exact.astype(np.float32)
        ulps = np.abs(out.astype(np.float64) - exact) / np.spacing(np.abs(nearest)).astype(np.float64)
    same = (out == nearest) | (np.isnan(out) & np.isnan(nearest))
    return np.where(np.isfinite(nearest) & np.isfinite(out), ulps, np.where(same, 0, np.inf))


@pytest.mark.parametrize("name", BOUNDS)
def test_error_is_within_the_stated_bound(name):
    x = np.arange(0, 2**32, STEP, dtype=np.uint64).astype(np.uint32).view(np.float32)
    assert errors(name, x).max() <= BOUNDS[name]


@pytest.mark.long
@pytest.mark.parametrize("name", BOUNDS)
def test_error_is_within_the_stated_bound_on_a_fine_grid(name):
    for start in range(64):
        bits = np.arange(start << 26, (start + 1) << 26, 61, dtype=np.uint64)
        assert errors(name, bits.astype(np.uint32).view(np.float32)).max() <= BOUNDS[name]


@pytest.mark.parametrize("name", BOUNDS)
def test_special_values(name):
    tiny, big = np.finfo(np.float32).smallest_subnormal, np.finfo(np.float32).max
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, tiny, -tiny, big, -big, 1, -1, 88.72283, 88.722844, -103.97208,
                  -103.97209, -87.33655, 0.625, 0.62499994], np.float32)
    assert errors(name, x).max() <= BOUNDS[name]


@pytest.mark.parametrize("name", ["exp", "tanh", "sin"])
def test_error_is_small_where_the_result_matters_most(name):
    x = np.linspace(-20, 20, 200_001, dtype=np.float32)
    assert errors(name, x).max() <= 1.5


@pytest.mark.parametrize(("beyond", "bound"), [(2, 7), (4, 12)])
def test_erfc_is_the_more_exact_the_less_it_is_squared(beyond, bound):
    x = np.linspace(-beyond, beyond, 100_001, dtype=np.float32)
    assert errors("erfc", x).max() <= bound


def test_exp_is_never_above_one_below_zero():
    """A softmax subtracts the maximum first, and counts on this."""
    x = -np.abs(np.linspace(0, 1e-3, 10_001, dtype=np.float32))
    out = np.empty_like(x)
    over(math.exp)(x, out)
    assert out.max() == 1 and out[0] == 1


def test_exp_on_other_processors():
    """Two factors instead of one instruction: the same numbers, denormal ones to within the bound."""
    x = np.concatenate([np.linspace(-110, 95, 100_001), [np.inf, -np.inf, np.nan, -103.97208, 88.722844]])
    x = x.astype(np.float32)
    assert errors("exp", x, NARROW).max() <= BOUNDS["exp"]
    own, narrow = np.empty_like(x), np.empty_like(x)
    over(math.exp)(x, own)
    over(NARROW)(x, narrow)
    normal = ~(own < np.finfo(np.float32).tiny)
    np.testing.assert_array_equal(narrow[normal], own[normal])


@pytest.mark.parametrize("name, dtype", [("float16", np.float16), ("bfloat16", None)])
def test_conversions_of_halves(name, dtype):
    """All bits to float32, and back; every float32 rounds as numpy and ml_dtypes round."""
    import ml_dtypes
    dtype = np.dtype(dtype or ml_dtypes.bfloat16)
    bits = np.arange(1 << 16, dtype=np.uint16)
    wide = np.empty(bits.size, np.float32)
    over(getattr(scalar, f"from_{name}"))(bits, wide)
    np.testing.assert_array_equal(wide, bits.view(dtype).astype(np.float32))

    grid = np.arange(0, 2**32, STEP, dtype=np.uint64).astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        ties = (wide[:-1].astype(np.float64) + wide[1:]) / 2                # exactly between two neighbours
        x = np.concatenate([grid, wide, ties[np.isfinite(ties)].astype(np.float32)])
        expected = x.astype(dtype)
    narrow = np.empty(x.size, np.uint16)
    over(getattr(scalar, f"to_{name}"))(x, narrow)
    np.testing.assert_array_equal(narrow.view(dtype).astype(np.float32), expected.astype(np.float32))
    numbers = ~np.isnan(x)
    np.testing.assert_array_equal(narrow[numbers], expected[numbers].view(np.uint16))     # zeros keep their signs


def test_float64_to_float16_is_rounded_once():
    rng = np.random.default_rng(0)
    half = rng.standard_normal(20_000).astype(np.float16)
    middle = (half.astype(np.float64) + np.nextafter(half, np.float16(np.inf)).astype(np.float64)) / 2
    x = np.concatenate([middle, middle * (1 + 1e-12), middle * (1 - 1e-12), [np.nan, np.inf, -np.inf, 1e300, 1e-300]])
    out = np.empty(x.size, np.uint16)

    @njit
    def run(x, out):
        for i in range(x.size):
            out[i] = scalar.to_float16(scalar.round_odd(x[i]))
    run(x, out)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out.view(np.float16), x.astype(np.float16))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extrema_propagate_nan(dtype):
    values = np.array([-np.inf, -1, 0, 2, np.inf, np.nan], dtype)
    x, y = map(np.ravel, np.meshgrid(values, values))

    @njit
    def run(x, y, high, low):
        for i in range(x.size):
            high[i], low[i] = scalar.maximum(x[i], y[i]), scalar.minimum(x[i], y[i])
    high, low = np.empty_like(x), np.empty_like(x)
    run(x, y, high, low)
    np.testing.assert_array_equal(high, np.maximum(x, y))
    np.testing.assert_array_equal(low, np.minimum(x, y))


@pytest.mark.parametrize("dtype, prefix", [(np.int64, "int"), (np.uint64, "uint")])
def test_int_divisions_are_numpys(dtype, prefix):
    limits = np.iinfo(dtype)
    negative = [-1, -2, -7] if prefix == "int" else []
    values = np.array([limits.min, limits.min + 1, limits.max, 0, 1, 2, 3, 7, *negative], dtype)
    x, y = map(np.ravel, np.meshgrid(values, values))
    floordiv, mod = getattr(scalar, f"{prefix}_floordiv"), getattr(scalar, f"{prefix}_mod")

    @njit(error_model="numpy")
    def run(x, y, quotient, rest):
        for i in range(x.size):
            quotient[i], rest[i] = floordiv(x[i], y[i]), mod(x[i], y[i])
    quotient, rest = np.empty_like(x), np.empty_like(x)
    run(x, y, quotient, rest)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(quotient, x // y)
        np.testing.assert_array_equal(rest, x % y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_divisions_are_numpys(dtype):
    rng = np.random.default_rng(0)
    special = [0, -0.0, 1, -1, 3, -3, 0.1, np.inf, -np.inf, np.nan]
    values = np.concatenate([special, rng.standard_normal(30) * 10]).astype(dtype)
    x, y = map(np.ravel, np.meshgrid(values, values))
    name = np.dtype(dtype).name
    floordiv, mod = getattr(scalar, f"floordiv_{name}"), getattr(scalar, f"mod_{name}")

    @njit(error_model="numpy")
    def run(x, y, quotient, rest):
        for i in range(x.size):
            quotient[i], rest[i] = floordiv(x[i], y[i]), mod(x[i], y[i])
    quotient, rest = np.empty_like(x), np.empty_like(x)
    run(x, y, quotient, rest)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(quotient, x // y)
        np.testing.assert_allclose(rest, x % y, rtol=1e-6 if dtype == np.float32 else 1e-14)


def test_int_power_wraps_around():
    @njit
    def run(x, y):
        return scalar.int_power(x, y)
    with np.errstate(all="ignore"):
        for x in (-3, 0, 1, 2, 10):
            for y in (0, 1, 2, 5, 63, 64):
                assert run(x, y) == np.power(np.int64(x), np.int64(y))
