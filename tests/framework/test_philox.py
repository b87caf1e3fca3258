"""Counter-based random numbers: known answers, windows, the compiled twin, distributions."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipd.framework import philox
from minipd.framework.philox import integers, key_of, normal, permutation, uniform

KEY = key_of(3, "test")
FLOATS = ["float16", ml_dtypes.bfloat16, "float32", "float64"]
DRAWS = {
    "uniform": uniform,
    "uniform -2..5": lambda *a, **k: uniform(*a, -2.0, 5.0, **k),
    "normal": normal,
    "normal 3±2": lambda *a, **k: normal(*a, 3.0, 2.0, **k),
}


def in_numpy(draw, *args, **kwargs):
    """The draw by the numpy specification, whatever is loaded."""
    loaded, philox._compiled[:] = philox._compiled[:], [None]
    try:
        return draw(*args, **kwargs)
    finally:
        philox._compiled[:] = loaded


def compiled(draw, *args, **kwargs):
    """The draw by the compiled twin."""
    philox._compiled.clear()
    assert philox._compiled_for(philox.COMPILED_FROM) is not None, "numba is a dependency: its kernels must load"
    return draw(*args, **kwargs)


@pytest.mark.parametrize(
    "counter, key, words",
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_known_answers_of_random123(counter, key, words):
    """philox4x32-10 in kat_vectors of the Random123 distribution."""

    def read(text):
        return tuple(np.uint64(int(word, 16)) for word in text.split())

    assert philox.philox(read(counter), read(key)) == read(words)


@pytest.mark.parametrize("run", [in_numpy, compiled])
def test_the_streams_layout(run):
    """Words of element i as the module's docstring says, from Philox in Python's own integers."""

    def block(b):
        k0, k1, c2, c3 = (int(w) % 2**32 for w in (KEY[0], KEY[0] >> 32, KEY[1], KEY[1] >> 32))
        c0, c1 = b % 2**32, b >> 32
        for _ in range(10):
            p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
            c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 % 2**32, (p0 >> 32) ^ c3 ^ k1, p0 % 2**32
            k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
        return c0, c1, c2, c3

    for first in (0, 5, 2**34 + 3):  # the last one needs the counter's second word
        index = range(first, first + 7)
        window = ((2**40,), (first,))
        narrow = [block(i // 4)[i % 4] for i in index]
        wide = [block(i // 2)[i % 2 * 2] << 32 | block(i // 2)[i % 2 * 2 + 1] for i in index]
        assert run(uniform, KEY, (7,), window=window).tolist() == [(w >> 8) / 2**24 for w in narrow]
        assert run(uniform, KEY, (7,), dtype="float64", window=window).tolist() == [(w >> 11) / 2**53 for w in wide]
        assert run(integers, KEY, (7,), -3, 1000, window=window).tolist() == [w % 1003 - 3 for w in wide]

        def gauss(i, u, v):
            return math.sqrt(-2 * math.log(u)) * (math.sin if i % 2 else math.cos)(2 * math.pi * v)

        expected = []
        for i in index:
            lane = i // 2 % 2 * 2
            u, v = block(i // 4)[lane : lane + 2]
            expected.append(gauss(i, (u + 1) / 2**32, v / 2**32))
        np.testing.assert_allclose(run(normal, KEY, (7,), window=window), expected, rtol=1e-6, atol=1e-7)
        expected = []
        for i in index:
            a, b, c, d = block(i // 2)
            expected.append(gauss(i, (((a << 32 | b) >> 11) + 1) / 2**53, ((c << 32 | d) >> 11) / 2**53))
        got = run(normal, KEY, (7,), dtype="float64", window=window)
        np.testing.assert_allclose(got, expected, rtol=1e-14, atol=1e-15)


@st.composite
def windows(draw):
    whole = tuple(draw(st.lists(st.integers(0, 6), max_size=4)))
    offsets = tuple(draw(st.integers(0, n)) for n in whole)
    shape = tuple(draw(st.integers(0, n - o)) for n, o in zip(whole, offsets, strict=True))
    return shape, whole, offsets


@pytest.mark.parametrize("run", [in_numpy, compiled])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", DRAWS)
@settings(max_examples=30)
@given(windows())
def test_a_window_is_the_slice_of_the_whole(name, dtype, run, window):
    shape, whole, offsets = window
    got = run(DRAWS[name], KEY, shape, dtype=dtype, window=(whole, offsets))
    everything = in_numpy(DRAWS[name], KEY, whole, dtype=dtype)
    part = everything[tuple(slice(o, o + n) for o, n in zip(offsets, shape, strict=True))]
    assert got.shape == shape and got.dtype == np.dtype(dtype)
    assert got.tobytes() == part.tobytes()


@pytest.mark.parametrize("run", [in_numpy, compiled])
@settings(max_examples=30)
@given(windows())
def test_a_window_of_integers(run, window):
    shape, whole, offsets = window
    part = in_numpy(integers, KEY, whole, 0, 100)[tuple(slice(o, o + n) for o, n in zip(offsets, shape, strict=True))]
    assert run(integers, KEY, shape, 0, 100, window=(whole, offsets)).tolist() == part.tolist()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", DRAWS)
def test_the_compiled_twin_computes_the_same_bits(name, dtype):
    shape = (3, 40_001)
    fast, slow = (run(DRAWS[name], KEY, shape, dtype=dtype) for run in (compiled, in_numpy))
    assert fast.tobytes() == slow.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_fills_its_range(dtype):
    x = uniform(KEY, (1 << 16,), -1.0, 3.0, dtype).astype(np.float64)
    assert x.min() >= -1 and x.max() < 3
    assert abs(x.mean() - 1) < 0.02 and abs(x.var() - 16 / 12) < 0.02
    counts = np.histogram(x, 16, (-1, 3))[0]
    assert ((counts - 4096) ** 2 / 4096).sum() < 45  # chi-square with 15 degrees: 1e-4


def test_uniform_never_reaches_its_upper_end_by_rounding():
    for low, high in ((0.0, 1.0), (1.0, 2.0), (1000.0, 1032.0)):
        for dtype in FLOATS:
            x = uniform(KEY, (1 << 14,), low, high, dtype).astype(np.float64)
            assert (x < high).all() and (x >= low).all()
    assert (uniform(KEY, (5,), 2.0, 2.0) == 2.0).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_has_its_moments(dtype):
    x = normal(KEY, (1 << 18,), 1.0, 2.0, dtype).astype(np.float64)
    z = (x - 1) / 2
    assert abs(z.mean()) < 0.01 and abs(z.var() - 1) < 0.02
    assert abs((z**3).mean()) < 0.03 and abs((z**4).mean() - 3) < 0.08
    assert abs(np.mean(z[::2] * z[1::2])) < 0.01  # the two of a pair are independent


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_normal_distribution_function(dtype):
    z = np.sort(normal(KEY, (1 << 16,), dtype=dtype).astype(np.float64))
    cdf = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in z])
    distance = np.abs(cdf - np.arange(1, z.size + 1) / z.size).max()  # Kolmogorov-Smirnov
    assert distance * math.sqrt(z.size) < 1.95  # 1e-3


def test_polynomials_are_accurate_to_the_last_bits():
    u = np.concatenate([np.linspace(1e-3, 1, 9999), 2.0 ** -np.arange(60), 1 - 2.0 ** -np.arange(1, 53)])
    np.testing.assert_allclose(philox._log(u), np.log(u), rtol=5e-16, atol=0)
    v = np.linspace(0, 1, 40_001)[:-1]
    cosine, sine = philox._turn(v)
    np.testing.assert_allclose(cosine, np.cos(2 * np.pi * v), rtol=0, atol=7e-16)
    np.testing.assert_allclose(sine, np.sin(2 * np.pi * v), rtol=0, atol=7e-16)
    assert cosine[[0, 10_000, 20_000, 30_000]].tolist() == [1, 0, -1, 0]


def test_the_logarithm_never_sees_zero():
    """u is (word + 1) / 2**32: the smallest word gives the largest, finite normal."""
    for bits in (32, 53):
        assert np.isfinite(philox._log(np.array([2.0**-bits, 1.0]))).all()


def test_keys_are_told_apart():
    names = [(0,), (0, 0), (0, "0"), (0, "a", "b"), (0, "a,1:b"), (0, "ab"), (1, "a", "b"), (0, -1), (-1, 0), (0, "")]
    assert len({key_of(*name).tobytes() for name in names}) == len(names)
    assert key_of(0, np.int32(5)).tolist() == key_of(0, 5).tolist()
    assert key_of(2**200, "ü").dtype == np.int64
    with pytest.raises(TypeError, match="expected integers and strings, got 1.5 of type float"):
        key_of(0, 1.5)
    other = uniform(key_of(3, "other"), (4096,))
    assert abs(np.corrcoef(uniform(KEY, (4096,)), other)[0, 1]) < 0.06


@pytest.mark.parametrize("dtype, low, high", [
    ("int64", -(2**63), 2**63 - 1), ("int8", -128, 128), ("uint8", 0, 256), ("int32", 5, 6), ("int64", 2**62, 2**63),
])  # fmt: skip
def test_integers_fill_their_range(dtype, low, high):
    x = integers(KEY, (4096,), low, high, dtype)
    assert x.dtype == np.dtype(dtype)
    assert int(x.min()) >= low and int(x.max()) < high
    if high - low <= 256:
        assert len(set(x.tolist())) == high - low
    else:
        assert int(x.max()) - int(x.min()) > (high - low) * 0.99


def test_a_permutation():
    assert sorted(permutation(KEY, 101).tolist()) == list(range(101))
    assert permutation(KEY, 101).tolist() != permutation(key_of(4), 101).tolist()
    assert permutation(KEY, 0).shape == (0,) and permutation(KEY, 1).tolist() == [0]
    first = np.bincount([permutation(key_of(i), 4)[0] for i in range(2000)], minlength=4)
    assert (abs(first - 500) < 80).all()


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: uniform(KEY, (2,), 1.0, 0.0), ValueError, "expected low <= high"),
        (lambda: uniform(KEY, (2,), dtype="int32"), TypeError, "uniform: expected float16, bfloat16"),
        (lambda: normal(KEY, (2,), dtype="bool"), TypeError, "normal: expected float16"),
        (lambda: integers(KEY, (2,), 3, 3), ValueError, "expected low < high"),
        (lambda: integers(KEY, (2,), 0, 300, "uint8"), ValueError, r"within uint8 \(0..255\)"),
        (lambda: integers(KEY, (2,), 0, 3, "float32"), TypeError, "integer dtype"),
        (lambda: uniform(KEY, (2,), window=((3,), (2,))), ValueError, r"a part of the global shape \(3,\)"),
        (lambda: uniform(KEY, (2,), window=((3, 3), (0, 0))), ValueError, "window: expected 1 dimensions"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
