"""The column `compute`: each formula gives what the row's kernel gives, for ordinary and extreme numbers."""

import numpy as np
import pytest

import minipd as paddle
from minipd.cinn.compute.table import Elementwise, Fill, Indexed, Reduction, compute_of
from minipd.cinn.lower import CannotLower
from minipd.framework.row import ROWS
from tests.cinn.groups import BF16, group, run

F16, F32, F64, I32, I64, U8, BOOL = (np.dtype(t) for t in ("f2", "f4", "f8", "i4", "i8", "u1", "?"))

EXTREME = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 0.3, -0.7, 8.0, 1000.0, 1e-6, -1e-6, 1e30, -1e30,
           1e-30, 88.0, -88.0, 100.0, -100.0, np.inf, -np.inf, np.nan]


def results(row, *arrays, **attrs):
    """(by the group in block form, by the row's kernel)."""
    g = group(lambda *xs: row(*xs, **attrs), *((a.shape, a.dtype) for a in arrays))
    return run(g.lower(), g, *arrays), g.reference(*arrays)


def check(row, *arrays, rtol=0.0, atol=0.0, **attrs):
    for got, want in zip(*results(row, *arrays, **attrs), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        wide = F64 if got.dtype.kind in "fV" else got.dtype
        np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=atol)


OF_FLOATS = ["exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sin", "cos", "abs", "square", "relu", "sigmoid", "silu",
             "gelu", "log1p", "expm1", "log2", "log10", "tan", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh",
             "atanh", "reciprocal", "isnan", "isinf", "isfinite", "logical_not", "floor", "ceil", "trunc", "round",
             "sign", "signbit", "angle", "logsigmoid", "assign"]
OF_TWO = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "logaddexp",
          "copysign", "floor_divide", "remainder", "equal", "not_equal", "less_than", "less_equal", "greater_than",
          "greater_equal", "logical_and", "logical_or", "logical_xor", "pow"]
ULPS = {F32: 1e-6, F64: 1e-14, F16: 2.0 ** -10, BF16: 2.0 ** -7}
#: a quotient near a whole number is rounded to another one in low precision
WHOLE_QUOTIENTS = ("floor_divide", "remainder")
low_and_high = pytest.mark.parametrize("dtype", [F32, F64, F16, BF16], ids=str)


@low_and_high
@pytest.mark.parametrize("name", OF_FLOATS)
def test_of_one_float(name, dtype):
    x = np.array(EXTREME if name not in ("sin", "cos", "tan") else [v for v in EXTREME if not 1e6 < abs(v) < 1e38])
    with np.errstate(over="ignore"):
        check(ROWS[name], x.astype(dtype), rtol=ULPS[dtype], atol=1e-37)


@pytest.mark.parametrize("name, dtype", [(name, dtype) for name in OF_TWO for dtype in (F32, F64, F16, BF16)
                                         if not (name in WHOLE_QUOTIENTS and dtype in (F16, BF16))], ids=str)
def test_of_two_floats(name, dtype):
    numbers = EXTREME if name != "pow" else [v for v in EXTREME if v != -np.inf]     # numpy: -inf ** 0.5 may be NaN
    with np.errstate(over="ignore"):
        x = np.array(numbers[:: 1 if dtype == F32 else 3]).astype(dtype)
    check(ROWS[name], x.reshape(-1, 1), x, rtol=ULPS[dtype], atol=6e-8 if dtype == F16 else 1e-37)


@pytest.mark.parametrize("decimals", [0, 2, -1])
@pytest.mark.parametrize("dtype", [F32, F64, I32])
def test_rounding(dtype, decimals):
    check(ROWS["round"], np.array([0.5, 1.5, -2.5, 3.14159, 123.456, -77.0, 1e10]).clip(-1e9, 1e9).astype(dtype),
          decimals=decimals)


@pytest.mark.parametrize("dtype", [F32, BF16, I32, U8])
def test_clip(dtype):
    x = np.array([0, 1, 3, 7, 200]).astype(dtype)
    check(ROWS["clip"], x, min=1, max=6)
    if dtype == F32:
        check(ROWS["clip"], np.array(EXTREME, F32), min=-1.0, max=np.inf)


OF_INTS = ["add", "subtract", "multiply", "maximum", "minimum", "fmax", "equal", "less_than", "logical_xor"]


@pytest.mark.parametrize("dtype", [I32, I64, U8])
def test_ints(dtype):
    info = np.iinfo(dtype)
    x = np.array([0, 1, 2, 7, info.max, info.min], dtype)
    for name in OF_INTS:
        check(ROWS[name], x.reshape(-1, 1), x)
    for name in ("floor", "ceil", "trunc", "sign", "abs", "square", "isnan", "isinf", "isfinite", "round"):
        check(ROWS[name], x)


def test_bools():
    x = np.array([True, False])
    for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "equal"):
        check(ROWS[name], x.reshape(2, 1), x)
    check(ROWS["bitwise_not"], x)


def test_division_of_ints_by_a_number_that_is_known():
    x = np.array([7, -7, 0, 1], I64)
    check(lambda x: x // 3 + x % -2, x)


@pytest.mark.parametrize("call, dtype", [
    (lambda x: x // x, I64), (lambda x: x % x, I32), (lambda x: paddle.bitwise_and(x, x), I64),
    (lambda x: x // 0, I64), (lambda x: x ** x, I64)])
def test_what_only_the_kernel_knows_is_refused(call, dtype):
    with pytest.raises((CannotLower, ZeroDivisionError)):
        group(call, ((3,), dtype)).lower()


# --------------------------------------------------------------------------------------------------- reductions
REDUCTIONS = ["sum", "max", "min", "prod", "any", "all"]
AXES = [(0,), (1,), (0, 2), (0, 1, 2), ()]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, axis):
    rng = np.random.default_rng(0)
    for dtype in (F32, BF16, I64, BOOL):
        if dtype == BOOL and name == "sum":
            continue                        # bools are added up in int64, which public functions cast to
        x = (rng.integers(-2, 3, (2, 3, 4)) * 0.5 if dtype != BOOL else rng.random((2, 3, 4)) < 0.7).astype(dtype)
        for keepdim in (False, True):
            check(ROWS[name], x, axis=axis, keepdim=keepdim, rtol=1e-5)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_extremes(name):
    x = np.array([[np.nan, 1, 2], [np.inf, -np.inf, 0], [0, 0, 0], [-np.inf, 1, 2]], F32)
    check(ROWS[name], x, axis=(1,))
    check(ROWS[name], x, axis=(0,))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_extreme_is_found(name, axis):
    """Of equal ones, and of NaNs."""
    x = np.array([[1, 3, 3, 2], [np.nan, 5, np.nan, 1], [-np.inf] * 4, [0, -0.0, -1, -1]])
    for dtype in (F32, BF16):
        check(ROWS[name], x.astype(dtype), axis=axis, dtype=I32)
    ints = np.array([[1, 3, 3, 2], [2, 2, 1, 1]])
    for dtype in (I64, U8, BOOL):
        check(ROWS[name], (ints > 2 if dtype == BOOL else ints).astype(dtype), axis=axis, keepdim=True)
    check(ROWS[name], np.ones((2, 1), F32), axis=1)


@pytest.mark.parametrize("name", ["sum", "prod", "any", "all"])
def test_reductions_of_nothing(name):
    check(ROWS[name], np.empty((3, 0), F32), axis=(1,))
    check(ROWS[name], np.empty((0, 3), F32), axis=(1,))


# ------------------------------------------------------------------------------------------------------- table
def test_every_entry_is_tried():
    """Rows with an entry that no test of lowering names would be rows that nobody has tried."""
    elsewhere = {"adamw", "sgd", "add_n", "where", "cast", "scale", "swiglu", "share_data_", "clip", "bitwise_and",
                 "bitwise_or", "bitwise_xor", "bitwise_not"}
    entries = {name: compute_of(row) for name, row in ROWS.items()}
    elementwise = {name for name, entry in entries.items() if isinstance(entry, Elementwise)}
    assert elementwise == {*OF_FLOATS, *OF_TWO, *elsewhere}
    assert {name for name, entry in entries.items() if isinstance(entry, Reduction)} == {
        *REDUCTIONS, "reduce_as", "argmax", "argmin"}
    assert {name for name, entry in entries.items() if isinstance(entry, Indexed)} == {
        "slice", "strided_slice", "diagonal", "fill_diagonal_tensor", "split", "set_value", "concat", "pad", "flip",
        "roll", "tril", "triu", "eye"}
    assert {name for name, entry in entries.items() if isinstance(entry, Fill)} == {
        "full", "full_like", "arange", "dim"}
