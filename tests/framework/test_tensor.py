"""Making tensors, reading them, what they offer, and what their errors say."""

import ml_dtypes
import numpy as np
import pytest

import minipd as paddle
from minipd.framework.tensor import Parameter


# ------------------------------------------------------------------------------------------------------ to_tensor
@pytest.mark.parametrize("data, dtype, shape", [
    (1.5, "float32", []), (1, "int64", []), (True, "bool", []), (2**40, "int64", []),
    ([1, 2.5], "float32", [2]), ([True, 1], "int64", [2]), ([], "float32", [0]), ([[]], "float32", [1, 0]),
    (((1, 2), (3, 4)), "int64", [2, 2]),
    # numpy's own keep their dtype, except inside of a list (Paddle's rule)
    (np.float64(1), "float64", []), (np.ones(2), "float64", [2]), (np.float32(1), "float32", []),
    (np.int32(1), "int32", []), (np.array(3), "int64", []), (np.zeros((0, 3), np.float16), "float16", [0, 3]),
    (np.ones(2, ml_dtypes.bfloat16), "bfloat16", [2]), (np.ones(2, ">f4"), "float32", [2]),
    ([np.float64(1)], "float32", [1]), ([np.float32(1)], "float32", [1]), ([np.int32(1)], "int64", [1]),
    ([np.ones(2), np.ones(2)], "float32", [2, 2]),
])
def test_dtypes_and_shapes_of_data(data, dtype, shape):
    """As Paddle answers for the same data."""
    x = paddle.to_tensor(data)
    assert (x.dtype.name, x.shape, x.stop_gradient) == (dtype, shape, True)
    np.testing.assert_array_equal(x.numpy().astype(float), np.array(data).astype(float))
    assert x.payload.dtype.isnative


def test_tensors_as_data():
    a, b = paddle.to_tensor([1.0, 2.0], dtype="float64"), paddle.to_tensor([3.0, 4.0], dtype="float64")
    assert paddle.to_tensor([a, b]).dtype == paddle.float64 and paddle.to_tensor([a, b]).shape == [2, 2]
    assert paddle.to_tensor([paddle.to_tensor(1.0), 2.0]).tolist() == [1.0, 2.0]
    x = paddle.to_tensor([1.0], stop_gradient=False)
    y = paddle.to_tensor(x)
    assert y.stop_gradient and y.is_leaf and y is not x
    y[0] = 5.0
    assert x.tolist() == [1.0] and x.inplace_version == 0
    assert paddle.to_tensor(x, dtype="float64", stop_gradient=False).dtype == paddle.float64
    assert paddle.to_tensor(x, dtype="float64", stop_gradient=False).is_leaf


def test_data_is_copied():
    array = np.ones(3, np.float32)
    x = paddle.to_tensor(array)
    array[0] = 7.0
    assert x.tolist() == [1.0, 1.0, 1.0]
    x.numpy()[0] = 9.0
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_dtypes_asked_for():
    assert paddle.to_tensor([1.7, -1.7], dtype="int32").tolist() == [1, -1]
    assert paddle.to_tensor(1, dtype=paddle.float64).dtype == paddle.float64
    assert paddle.to_tensor([0, 2], dtype=bool).tolist() == [False, True]
    assert paddle.to_tensor(1 / 3, dtype="bfloat16").item() == float(ml_dtypes.bfloat16(1 / 3))


@pytest.mark.parametrize("data, error, text", [
    ("abc", TypeError, "to_tensor: expected numbers, .* got numpy's <U3|dtype: expected one of .*, got numpy's <U3"),
    (None, TypeError, "got numpy's object"),
    ([1, "a"], TypeError, "got numpy's <U"),
    (np.ones(2, np.clongdouble), TypeError, "got numpy's complex256|got numpy's clongdouble"),
    ([[1], [1, 2]], ValueError, "to_tensor: expected a rectangular nested list, got ragged rows"),
    (np.ones(2, np.uint32), TypeError, "got numpy's uint32; convert the array first"),
    (2**70, TypeError, "got numpy's object"),
    ({1, 2}, TypeError, "got numpy's object"),
])
def test_what_is_no_data(data, error, text):
    with pytest.raises(error, match=text):
        paddle.to_tensor(data)


def test_an_unknown_dtype():
    with pytest.raises(TypeError, match="dtype: expected one of bool, int8, .*complex128, got 'float8'"):
        paddle.to_tensor(1.0, dtype="float8")


# ------------------------------------------------------------------------------------------------ reading values
def test_one_element():
    """A tensor of one element is a number, whatever its shape."""
    x = paddle.to_tensor([[3.7]])
    assert (int(x), float(x), bool(x), x.item()) == (3, pytest.approx(3.7), True, pytest.approx(3.7))
    assert not paddle.to_tensor([[0.0]]) and not paddle.to_tensor(False)
    assert [10, 20, 30][paddle.to_tensor([1])] == 20 and range(paddle.to_tensor(3))[-1] == 2
    assert type(paddle.to_tensor(2).item()) is int and type(paddle.to_tensor(True).item()) is bool
    assert paddle.to_tensor([1.0, 2.0]).item(1) == 2.0
    assert f"{paddle.to_tensor(2.5):.2f}" == "2.50"


@pytest.mark.parametrize("f, name", [(bool, r"bool\(\)"), (int, r"int\(\)"), (float, r"float\(\)"),
                                     (lambda x: x.item(), r"item\(\)"), (lambda x: [0][x], r"index\(\)")])
@pytest.mark.parametrize("shape", [[2], [0], [2, 3]])
def test_several_elements_are_no_number(f, name, shape):
    with pytest.raises((TypeError, ValueError), match=f"{name}: expected a tensor of one element, got i64"):
        f(paddle.ones(shape, "int64"))


def test_a_fraction_is_no_index():
    with pytest.raises(TypeError, match=r"index\(\): expected an int tensor, got f32\[\]"):
        [0][paddle.to_tensor(0.0)]


def test_numpy_reads():
    x = paddle.to_tensor([1.0, 2.0])
    a = np.asarray(x)
    assert a.dtype == np.float32 and not a.flags.writeable and a.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 5.0
    assert np.array(x).flags.writeable and np.asarray(x, np.float64).dtype == np.float64
    np.array(x)[0] = 5.0
    assert x.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, np.float64, copy=False)
    assert np.asarray(x.astype("bfloat16")).dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(x, [1.0, 2.0])


def test_length_and_iteration():
    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(x) == 2 and [row.tolist() for row in x] == [[1.0, 2.0], [3.0, 4.0]]
    first, second = x
    assert second.tolist() == [3.0, 4.0]
    for f in (len, list):
        with pytest.raises(TypeError, match="0-D tensor"):
            f(paddle.to_tensor(1.0))
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    a, b = w
    (a * b).backward()
    assert w.grad.tolist() == [2.0, 1.0]


# --------------------------------------------------------------------------------------------------- being a tensor
def test_shapes_compare_with_lists_and_tuples():
    x = paddle.ones([2, 3])
    assert x.shape == [2, 3] and x.shape == (2, 3) and x.shape != [2] and x.shape != (3, 2)
    assert (x.ndim, x.size, x.dtype, x.shape[-1]) == (2, 6, "float32", 3)
    assert repr(x.shape) == "paddle.Size([2, 3])" and hash(x.shape) == hash((2, 3))


def test_names():
    x, y = paddle.to_tensor(1.0), paddle.to_tensor(1.0)
    assert x.name == x.name != y.name
    x.name = "mine"
    assert x.name == "mine"
    assert {x: 1, y: 2}[y] == 2                 # by identity


def test_parameters():
    p = Parameter(np.ones(2, np.float32))
    assert p.is_leaf and not p.stop_gradient and p.trainable and p.persistable
    p.trainable = False
    assert p.stop_gradient
    assert (p * 2.0).stop_gradient and type(p * 2.0) is paddle.Tensor


METHODS = """
    abs add add_ argmax astype backward broadcast_to cast clear_grad clear_gradient clone cos detach divide divide_
    equal exp exp_ expand expand_as fill_ flatten gradient greater_equal greater_than inplace_version is_leaf isfinite
    item less_equal less_than log logical_and logical_not logical_or matmul max maximum mean min minimum multiply
    multiply_
    name ndim neg not_equal numpy persistable pow register_hook reshape rsqrt scale scale_ set_value shape sigmoid_ sin
    size slice split sqrt square squeeze stop_gradient strided_slice subtract subtract_ sum t take_along_axis tanh tanh_
    tolist transpose tril triu unsqueeze zero_ T dtype grad
""".split()
OPERATORS = """
    abs add and array bool eq float ge getitem gt index int invert iter le len lt matmul mul ne neg or pow radd rmatmul
    rmul rpow rsub rtruediv setitem sub truediv
""".split()


def test_methods_have_paddles_names():
    assert [m for m in METHODS if not hasattr(paddle.Tensor, m)] == []
    assert [o for o in OPERATORS if not hasattr(paddle.Tensor, f"__{o}__")] == []


def test_methods_are_the_functions():
    x = paddle.to_tensor([[1.0, -2.0], [3.0, 4.0]])
    for name in ("abs", "exp", "sin", "square", "max", "sum", "mean", "argmax", "flatten", "tril", "neg", "tanh"):
        np.testing.assert_array_equal(getattr(x, name)().numpy(), getattr(paddle, name)(x).numpy())
    assert x.T.tolist() == x.t().tolist() == [[1.0, 3.0], [-2.0, 4.0]]
    assert (x.reshape([-1]) @ x.reshape([-1])).item() == 30.0


def test_operators_on_bits():
    a, b = paddle.to_tensor([True, False]), paddle.to_tensor([True, True])
    assert (a & b).tolist() == [True, False] and (a | b).tolist() == [True, True] and (~a).tolist() == [False, True]
    x = paddle.to_tensor([6])
    assert ((x & 3).tolist(), (3 | x).tolist(), (x ^ x).tolist(), (~x).tolist()) == ([2], [7], [0], [-7])
    assert ((x << 2).tolist(), (x >> 1).tolist(), (1 << x).tolist()) == ([24], [3], [64])
    for f in (lambda x: x & x, lambda x: x | 1, lambda x: ~x, lambda x: x ^ a, lambda x: x << 1):
        with pytest.raises(TypeError, match=r"expected an int or bool tensor, got f32\[1\]"):
            f(paddle.to_tensor([6.0]))


def test_operators_of_division():
    x = paddle.to_tensor([7, -7])
    assert (x // 2).tolist() == [3, -4] and (x % 3).tolist() == [1, 2] and (7 % paddle.to_tensor([-3])).tolist() == [-2]
    assert (7 // paddle.to_tensor([2.0])).tolist() == [3.0] and (+x) is x
    with pytest.raises(ZeroDivisionError, match=r"floor_divide: expected divisors other than 0, got one in i64\[2\]"):
        x // paddle.to_tensor([0, 1])
    with pytest.raises(ZeroDivisionError, match="remainder: expected divisors other than 0"):
        x % 0
