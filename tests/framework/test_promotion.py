"""The dtypes of results, against what Paddle answered (`tests/golden/promotion.json`)."""

import json
import operator
from pathlib import Path

import numpy as np
import pytest

import minipd as paddle

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "promotion.json").read_text())
DTYPES = GOLDEN["dtypes"]
FUNCTIONS = {"add": operator.add, "multiply": operator.mul, "divide": operator.truediv, "equal": operator.eq,
             "maximum": paddle.maximum}
SHAPES = {"vector": [2], "scalar": []}

#: where Paddle is not followed, and why
BOOL_BY_BOOL = "True / True is 1.0 and no bool"
NUMPY_FLOAT = "2.5 stays 2.5 beside an int tensor, also as numpy.float32 (Paddle cuts it to 2)"
NUMPY_COMPLEX = "1j stays 1j, also as numpy.complex64 (Paddle drops the imaginary part)"
NUMPY_INT = "3 stays 3 beside a bool tensor, also as a numpy int (Paddle makes it True)"


def ours(f, a, b):
    return f(a, b).dtype.name


@pytest.mark.parametrize("case", GOLDEN["pairs"])
def test_two_tensors(case):
    name, _, shapes = case.partition(", ")
    left, _, right = shapes.partition(" and ")
    compared = 0
    for a, row in GOLDEN["pairs"][case].items():
        for b, want in zip(DTYPES, row, strict=True):
            got = ours(FUNCTIONS[name], paddle.ones(SHAPES[left], a), paddle.ones(SHAPES[right], b))
            if want in ("refused", "no kernel"):
                continue                        # see the next test
            compared += 1
            assert got == want or (name, a, b) == ("divide", "bool", "bool") and BOOL_BY_BOOL, (a, b)
    assert compared >= 16


def test_what_paddle_refuses():
    """Two vectors of which one or both hold ints: the float's dtype, or the wider int's."""
    for a in DTYPES:
        for b in DTYPES:
            if GOLDEN["pairs"]["add, vector and vector"][a][DTYPES.index(b)] != "refused":
                continue
            got = ours(operator.add, paddle.ones([2], a), paddle.ones([2], b))
            floats = [d for d in (a, b) if "float" in d]
            assert got == (floats[0] if floats else np.promote_types(a, b).name), (a, b)


@pytest.mark.parametrize("name", GOLDEN["numbers"])
def test_numbers(name):
    f, numbers = FUNCTIONS[name], [True, 3, 2.5, 1j]
    for dtype, answers in GOLDEN["numbers"][name].items():
        x = paddle.ones([2], dtype)
        got = [ours(f, x, n) for n in numbers] + [ours(f, n, x) for n in numbers]
        for n, (g, want) in enumerate(zip(got, answers, strict=True)):
            if want != "no kernel":
                assert g == want or (name, dtype, n % 4) == ("divide", "bool", 0) and BOOL_BY_BOOL, (dtype, n)


def test_numpy_scalars():
    scalars = [np.float32(2.5), np.float64(2.5), np.int64(3), np.int32(3), np.complex64(2 + 1j)]
    for dtype, answers in GOLDEN["numpy"].items():
        x = paddle.ones([2], dtype)
        for n, (s, want) in enumerate(zip(scalars * 2, answers, strict=True)):
            y = x * s if n < 5 else s * x
            assert isinstance(y, paddle.Tensor) and y.tolist() == [s, s]
            if want == "no kernel":
                continue
            differs = "float" not in dtype and (NUMPY_FLOAT if s.dtype == np.float32 else
                                                NUMPY_INT if dtype == "bool" else None)
            differs = differs or s.dtype == np.complex64 and NUMPY_COMPLEX
            assert y.dtype.name == want or differs, (dtype, s)


def test_values_are_converted_before_they_are_computed():
    assert (paddle.to_tensor([2**24 + 1]) + paddle.to_tensor([1.0])).tolist() == [2.0**24]     # in float32
    assert (paddle.to_tensor([200], "uint8") + paddle.to_tensor([100], "uint8")).tolist() == [44]
    assert (paddle.to_tensor([200], "uint8") + paddle.to_tensor([100], "int8")).tolist() == [300]
    assert (paddle.to_tensor([1, 2]) / paddle.to_tensor([2, 4])).tolist() == [0.5, 0.5]


def test_a_float64_run_stays_one():
    paddle.set_default_dtype("float64")
    try:
        assert paddle.to_tensor([1j]).dtype == (paddle.ones([2], "int64") * 1j).dtype == paddle.complex128
        i = paddle.to_tensor([1, 2])
        assert (i / 3).dtype == (i * 0.5).dtype == paddle.exp(i).dtype == paddle.float64
        assert (i / 3).tolist() == [1 / 3, 2 / 3]
    finally:
        paddle.set_default_dtype("float32")


def test_0d_results_of_numpy_stay_tensors():
    """numpy turns 0-D results into scalars; a payload is always an array."""
    x = paddle.to_tensor(2.0)
    for y in (x + x, x * 2.0, -x, x**2, x.exp(), x.sum(), x > 1.0, x.astype("int32"), x.reshape([]), abs(x),
              paddle.ones([2]).sum(), paddle.ones([2, 2]).max(), paddle.ones([3])[1], x.astype("bfloat16") * 2.0):
        assert type(y.payload) is np.ndarray and y.payload.shape == () and y.shape == []


def test_arrays_beside_tensors():
    """An array is a tensor of its dtype, on either side; what it holds now counts, not what it holds later."""
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    a = np.array([3.0, 4.0], np.float32)
    for y in (x * a, a * x):
        assert isinstance(y, paddle.Tensor) and y.tolist() == [3.0, 8.0] and y.dtype == paddle.float32
    assert (np.ones(2) * x).dtype == paddle.float64
    y = x * a
    a[:] = 100.0
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert isinstance(np.float32(2) ** x, paddle.Tensor) and isinstance(a > x, paddle.Tensor)
    assert (x * np.ones(2, complex)).dtype == paddle.complex128
    with pytest.raises(TypeError, match="dtype: expected one of .*, got numpy's uint64"):
        x * np.ones(2, np.uint64)


def test_what_is_no_number():
    x = paddle.to_tensor([1.0, 2.0])
    for bad in ("2", [1.0, 2.0], None, object()):
        with pytest.raises(TypeError, match="add: expected a Tensor or a number, got"):
            x + bad
        with pytest.raises(TypeError, match="add: expected a Tensor or a number, got"):
            bad + x
    assert (x == None) is False and (x != None) is True         # noqa: E711
    assert x not in [None]
