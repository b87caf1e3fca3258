"""What functions of arithmetic, logic and reductions do beyond their rows: dtypes, corners, errors, in-place forms."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minipd as paddle
from minipd.ops import (
    bitwise,
    division,
    elementary,
    float_parts,
    inplace,
    logic,
    math,
    pointwise,
    rounding,
    scaling,
    scan,
    special,
    two_operands,
)
from tests.nn.finite import check_gradients

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")      # of NaN and infinity, which some tests are about
INF, NAN = float("inf"), float("nan")
INTS = ["int8", "uint8", "int16", "int32", "int64"]


def tensor(x, dtype=None):
    return paddle.to_tensor(x, dtype=dtype)


# ------------------------------------------------------------------------------------------------ arithmetic
def test_scaled_and_rounded_arithmetic():
    x, y = tensor([7, -7]), tensor([2, 2])
    assert paddle.add(x, y, alpha=3).tolist() == [13, -1] and paddle.subtract(x, y, alpha=3).tolist() == [1, -13]
    assert paddle.divide(x, y).tolist() == [3.5, -3.5] and paddle.true_divide(x, y).dtype == paddle.float32
    assert paddle.divide(x, y, rounding_mode="floor").tolist() == [3, -4]
    assert paddle.divide(x, y, rounding_mode="trunc").tolist() == [3, -3]
    assert paddle.divide(tensor([-7.0, 8.0]), tensor([2.0, 2.0]), rounding_mode="trunc").tolist() == [-3.0, 4.0]
    with pytest.raises(ValueError, match='expected rounding_mode to be None, "floor" or "trunc", got \'up\''):
        paddle.divide(x, y, rounding_mode="up")


@pytest.mark.parametrize("dtype", INTS)
@settings(max_examples=20)
@given(data=st.data())
def test_division_of_ints_is_pythons(dtype, data):
    info = np.iinfo(dtype)
    number = st.integers(int(info.min) + 1, int(info.max))
    x, y = data.draw(number), data.draw(number.filter(bool))
    a, b = tensor([x], dtype), tensor([y], dtype)
    assert (a // b).tolist() == [x // y] and (a % b).tolist() == [x % y] and (a // b).dtype == dtype


def test_int_powers():
    x = tensor([-2, -1, 1, 2])
    assert (x ** tensor([3, -3, -2, -1])).tolist() == [-8, -1, 1, 0]      # 1 / 2, cut off
    assert (x**2).tolist() == [4, 1, 1, 4] and (x**-2).tolist() == [0, 1, 1, 0] and (2 ** tensor([3])).tolist() == [8]
    with pytest.raises(ZeroDivisionError, match="pow: expected exponents that are not negative where an int is 0"):
        tensor([0]) ** -1
    with pytest.raises(ValueError, match=r"pow: cannot broadcast shapes \[2\] and \[3\]"):
        tensor([1, 2]) ** tensor([1, 2, 3])


def test_out_is_filled():
    out = paddle.zeros([2])
    assert paddle.exp(tensor([0.0, 0.0]), out=out) is out and out.tolist() == [1.0, 1.0]
    assert paddle.add(tensor([1.0, 2.0]), 1.0, out=out) is out and out.tolist() == [2.0, 3.0]
    total = paddle.zeros([])
    assert paddle.sum(out, out=total) is total and total.item() == 5.0
    with pytest.raises(ValueError, match=r"out: expected a tensor like the result, f32\[2\], got f32\[\]"):
        paddle.exp(out, out=total)


def test_clip():
    x = tensor([1, 2, 3])
    assert paddle.clip(x, 1.5, 2.5).tolist() == [1.5, 2.0, 2.5] and paddle.clip(x, 2).tolist() == [2, 2, 3]
    assert paddle.clip(x, 2).dtype == paddle.int64 and paddle.clip(tensor([1], "uint8"), -5, 999).tolist() == [1]
    assert paddle.clip(x, max=INF).dtype == paddle.int64 and paddle.clamp(x, max=2).tolist() == [1, 2, 2]
    y = tensor([1.0, NAN, 3.0])
    assert paddle.clip(y, min=tensor([0.0, 0.0, 4.0]), max=tensor(2.0)).tolist()[::2] == [1.0, 2.0]
    assert np.isnan(paddle.clip(y, 0, 1).tolist()[1])
    with pytest.raises(ValueError, match="clip: expected min <= max, got min=3, max=1"):
        paddle.clip(y, 3, 1)
    edge = paddle.to_tensor([0.0, 1.0, 2.0, 3.0, 4.0], stop_gradient=False)
    paddle.clip(edge, 1.0, 3.0).sum().backward()
    assert edge.grad.tolist() == [0, 1, 1, 1, 0]


def test_parts_of_floats():
    assert paddle.copysign(tensor([1, -2]), tensor([-1, 1])).tolist() == [-1, 2]
    assert paddle.copysign(tensor([1.0]), -0.0).tolist() == [-1.0]
    assert paddle.signbit(tensor([-1, 0])).tolist() == [True, False]
    assert paddle.ldexp(tensor([1, 3]), tensor([2, -1])).tolist() == [4.0, 1.5]
    assert paddle.nan_to_num(tensor([NAN, INF, -INF]), 1.0, 2.0, 3.0).tolist() == [1, 2, 3]
    assert paddle.nan_to_num(tensor([INF])).item() == paddle.finfo("float32").max
    assert paddle.nextafter(tensor([1.0], "bfloat16"), tensor([2.0], "bfloat16")).tolist() == [1.0078125]
    mantissa, exponent = paddle.frexp(tensor([10.0, 0.0]))
    assert mantissa.tolist() == [0.625, 0.0] and exponent.tolist() == [4.0, 0.0]
    assert paddle.heaviside(tensor([-1.0, 0.0, 2.0, NAN]), tensor([5.0])).tolist() == [0, 5, 1, 0]


def test_fmax_of_equals_and_nan():
    """x has the gradient of equals, as in Paddle, and NaN has none."""
    x = paddle.to_tensor([1.0, 2.0, NAN, 3.0], stop_gradient=False)
    y = paddle.to_tensor([1.0, 3.0, 1.0, NAN], stop_gradient=False)
    paddle.fmax(x, y).sum().backward()
    assert x.grad.tolist() == [1, 0, 0, 1] and y.grad.tolist() == [0, 1, 1, 0]


def test_functions_at_their_kinks():
    for function, want in ((lambda x, y: paddle.hypot(x, y), 0.0), (lambda x, y: paddle.sinc(x) + y * 0, 0.0),
                           (lambda x, y: paddle.i1e(x) + y * 0, 0.5)):
        x, y = (paddle.to_tensor([0.0], stop_gradient=False) for _ in range(2))
        function(x, y).sum().backward()
        assert x.grad.tolist() == [want]


def test_special_functions_by_hand():
    assert paddle.multigammaln(tensor([3.0], "float64"), 2).item() == pytest.approx(
        np.log(np.sqrt(np.pi) * 2.0 * 1.32934038817913702))           # gamma(3) gamma(5/2)
    assert paddle.polygamma(tensor([1.0]), 0).item() == pytest.approx(-0.57721566, rel=1e-6)
    assert paddle.logit(tensor([0.1, 1.2]), 0.2).numpy() == pytest.approx([-1.3862944, 1.3862944])
    assert paddle.stanh(tensor([1.0])).item() == pytest.approx(1.0037670, rel=1e-6)
    assert paddle.rad2deg(paddle.deg2rad(tensor([90]))).item() == pytest.approx(90)
    assert paddle.gammaln(tensor([0.0, -1.0])).tolist() == [INF, INF]
    for f in (paddle.polygamma, paddle.multigammaln):
        with pytest.raises(ValueError, match="int.*, got -1"):
            f(tensor([1.0]), -1)


@pytest.mark.parametrize("function", [
    lambda x: paddle.logit(x * 0.1 + 0.4), paddle.sinc, paddle.stanh, paddle.frac,
    lambda x: paddle.lerp(x, x * x, 0.3), lambda x: paddle.lerp(x, 2 * x, x),
    lambda x: paddle.ldexp(x, tensor([2, 1, 3])), lambda x: paddle.multigammaln(x + 4.0, 3),
])
def test_gradients(function):
    check_gradients(function, np.array([[0.3, -1.2, 2.1], [1.7, 0.1, -0.6]]))


# ------------------------------------------------------------------------------------------------ reductions and scans
def test_dtypes_of_reductions():
    for dtype in INTS:
        x = tensor([1, 2, 3], dtype)
        assert paddle.max(x).dtype == paddle.prod(x).dtype == paddle.cumprod(x, 0).dtype == dtype
        assert paddle.sum(x).dtype == paddle.cumsum(x).dtype == paddle.argmin(x).dtype == paddle.int64
    flags = tensor([True, False])
    assert paddle.sum(flags).item() == 1 and paddle.prod(flags).item() == 0 and paddle.cumsum(flags).tolist() == [1, 1]
    assert paddle.max(flags).item() is True and paddle.any(flags).item() and not paddle.all(flags).item()
    assert paddle.mean(tensor([1, 2]), dtype="float64").item() == 1.5
    assert paddle.prod(tensor([2.5, 2.0]), dtype="int64").item() == 4
    assert paddle.logsumexp(tensor([0, 0])).item() == pytest.approx(np.log(2))


def test_scans_of_flat_and_0d_tensors():
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    assert paddle.cumsum(x).tolist() == [1, 3, 6, 10] and paddle.cumprod(x).tolist() == [1, 2, 6, 24]
    assert paddle.cumsum(tensor(2.0), axis=-1).shape == [] and paddle.cumsum(tensor(2.0)).shape == [1]
    value, place = paddle.cummax(tensor([[1.0, 3.0], [2.0, 1.0]]))
    assert value.tolist() == [1, 3, 3, 3] and place.tolist() == [0, 1, 1, 1]
    value, place = paddle.cummin(tensor(5.0), axis=0, dtype="int32")
    assert value.item() == 5 and place.item() == 0 and place.dtype == paddle.int32
    with pytest.raises(TypeError, match="cummax: expected dtype int32 or int64 for the indices, got float32"):
        paddle.cummax(x, dtype="float32")
    with pytest.raises(ValueError, match="cumsum: axis 2 is out of range"):
        paddle.cumsum(x, axis=2)


def test_products_with_zeros_have_gradients():
    for f, x, want in ((paddle.prod, [0.0, 2.5, 3.0], [7.5, 0, 0]), (paddle.prod, [0.0, 0.0, 3.0], [0, 0, 0]),
                       (lambda x: paddle.cumprod(x, 0).sum(), [2.0, 0.0, 3.0, 0.0, 5.0], [1, 8, 0, 0, 0])):
        x = paddle.to_tensor(x, stop_gradient=False)
        f(x).backward()
        assert x.grad.tolist() == want


def test_running_logarithms_neither_overflow_nor_lose():
    x = paddle.to_tensor([1000.0, -1000.0, 1000.0], dtype="float64", stop_gradient=False)
    out = paddle.logcumsumexp(x)
    assert out.numpy() == pytest.approx([1000, 1000, 1000 + np.log(2)])
    out.sum().backward()
    assert x.grad.numpy() == pytest.approx([2.5, 0, 0.5])


def test_extremes_share_the_gradient():
    for f in (paddle.max, paddle.amax):
        x = paddle.to_tensor([1.0, 3.0, 3.0], stop_gradient=False)
        f(x).backward()
        assert x.grad.tolist() == [0, 0.5, 0.5]


def test_indices_of_extremes():
    x = tensor([[3, 1], [0, 2]])
    assert paddle.argmin(x).item() == 2 and paddle.argmin(x, axis=1).tolist() == [1, 0]
    assert paddle.argmax(x, keepdim=True).tolist() == [[0]] and paddle.argmax(x, dtype="int32").dtype == paddle.int32
    with pytest.raises(TypeError, match="argmax: expected dtype int32 or int64 for an index, got float32"):
        paddle.argmax(x, dtype="float32")


# ------------------------------------------------------------------------------------------------ logic
def test_closeness():
    x, y = tensor([1.0, INF, -INF, NAN]), tensor([1.000001, INF, INF, NAN])
    assert paddle.isclose(x, y).tolist() == [True, True, False, False]
    assert paddle.isclose(x, y, equal_nan=True).tolist() == [True, True, False, True]
    assert paddle.isclose(tensor([10, 20]), tensor([10, 21]), rtol=0.0, atol=0.5).tolist() == [True, False]
    assert not paddle.allclose(x, y).item() and paddle.allclose(x[:2], y[:2]).shape == []
    assert paddle.isclose(tensor([5.0]), tensor([INF])).tolist() == [False]
    assert paddle.equal_all(x[:2], x[:2]).item() and not paddle.equal_all(x, x).item()
    assert not paddle.equal_all(x, x[:2]).item()
    assert paddle.isposinf(x).tolist() == [False, True, False, False]
    assert paddle.isneginf(x).tolist() == [False, False, True, False]
    assert paddle.isin(tensor([1, 2, 5]), tensor([[1.0], [5.0]]), invert=True).tolist() == [False, True, False]


def test_choosing_rows():
    a, b = tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([[5.0, 6.0], [7.0, 8.0]])
    assert paddle.multiplex([a, b], tensor([[1], [0]], "int32")).tolist() == [[5, 6], [3, 4]]
    with pytest.raises(ValueError, match="multiplex: expected a list of at least two tensors"):
        paddle.multiplex([a], tensor([[0]]))
    with pytest.raises(ValueError, match=r"an index for each of their rows, got f32\[2, 2\] and i64\[1, 1\]"):
        paddle.multiplex([a, b], tensor([[0]]))


# ------------------------------------------------------------------------------------------------ in place
MATH = (math, scaling, elementary, logic, bitwise, division, rounding, pointwise, two_operands, float_parts, special,
        scan)
FORMS = [pytest.param(getattr(module, name), name, id=name) for table in (inplace.INPLACE, inplace.ANEW)
         for module, names in table.items() if module in MATH for name in names.split()]


@pytest.mark.parametrize(("function", "name"), FORMS)
def test_every_in_place_form_does_what_its_function_does(function, name):
    """On floats, or on ints where floats are refused; of as many operands as the function needs."""
    parameters = [p for p in inspect.signature(function).parameters.values()
                  if p.default is p.empty and p.kind is not p.KEYWORD_ONLY][1:]
    others = {"renorm": (2.0, 0, 1.0), "lerp": (tensor([0.5, 0.5]), 0.5), "polygamma": (1,), "multigammaln": (1,)}
    others = others.get(name, (tensor([0.5, 0.75]),) * len(parameters))
    x = tensor([0.25, 0.75])
    try:
        want = function(x, *others)
    except TypeError:
        x, others = tensor([3, 4]), tuple(tensor([2, 1]) for _ in others)
        want = function(x, *others)
    form = getattr(paddle, f"{name}_")
    assert getattr(paddle.Tensor, f"{name}_") is not None
    y = x.clone()
    assert form(y, *others) is y
    assert y.dtype == want.dtype and y.numpy() == pytest.approx(want.numpy(), nan_ok=True)


def test_a_result_of_another_kind_leaves_the_memory():
    x = tensor([1.0, 2.0])
    view = x[:1]
    assert x.greater_than_(tensor([1.5, 1.5])) is x
    assert x.dtype == paddle.bool and x.tolist() == [False, True] and view.tolist() == [1.0]
    y = tensor([[1, 2], [3, 4]])
    assert y.cumsum_().tolist() == [1, 3, 6, 10] and y.divide_(2).tolist() == [0.5, 1.5, 3.0, 5.0]
    z = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    w = z * 2.0
    w.cumsum_()
    w.sum().backward()
    assert z.grad.tolist() == [4.0, 2.0]
    with pytest.raises(RuntimeError, match="in-place equal_ on leaf"):
        z.equal_(w)


def test_a_counter():
    x = tensor([1])
    assert paddle.increment(x, 2) is x and x.tolist() == [3]
    with pytest.raises(ValueError, match=r"increment: expected a tensor of one element, got f32\[2\]"):
        paddle.increment(paddle.ones([2]))


@pytest.mark.parametrize(("call", "text"), [
    (lambda: paddle.sin([1.0]), r"sin: expected a Tensor, got list: \[1.0\]"),
    (lambda: paddle.sign(tensor([True])), "sign: expected numbers, got b"),
    (lambda: paddle.subtract(tensor([True]), tensor([True])), "subtract: expected numbers, got b"),
    (lambda: -tensor([True]), "neg: expected numbers, got b"),
    (lambda: paddle.frexp(tensor([1])), "frexp: expected a floating tensor, got i64"),
    (lambda: paddle.bitwise_and(tensor([1.0]), tensor([1.0])), "bitwise_and: expected an int or bool tensor, got f32"),
    (lambda: paddle.lerp(tensor([1]), tensor([2]), 0.5), "lerp: expected a floating or complex tensor"),
    (lambda: paddle.round(tensor([1.0]), 0.5), "round: expected decimals to be an int, got 0.5"),
    (lambda: paddle.floor(tensor([1j])), "floor: expected real numbers, got c64"),
    (lambda: tensor([1j]) % 2, "remainder: expected real numbers, got c64"),
    (lambda: paddle.gcd(tensor([True]), tensor([True])), "gcd: expected numbers, got b"),
    (lambda: paddle.clip(tensor([1.0]), "low"), "clip: expected min to be a number, got 'low'"),
    (lambda: paddle.add(tensor([1.0]), tensor([1.0]), alpha=[2]), r"add: expected alpha to be a number, got \[2\]"),
    (lambda: paddle.mean(tensor([1])), "mean: expected a floating or complex tensor"),
])
def test_errors_teach(call, text):
    with pytest.raises(TypeError, match=text):
        call()
