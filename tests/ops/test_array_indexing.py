"""`x[...]` and `x[...] = v` with int arrays and masks, mixed with everything else: values and gradients against numpy.

numpy answers in two steps, for in Paddle ints drop their dimension before arrays are looked at.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import minipd as paddle
from minipd.framework.context import MetaOnly, using
from minipd.framework.dim import Constraints, symbol
from minipd.framework.meta import Meta
from minipd.framework.tensor import Tensor
from tests.nn.finite import check_gradients


@st.composite
def indices(draw):
    """(array, index): arrays of the index broadcast, masks fit."""
    shape = draw(arrays.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    common = draw(arrays.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=3))
    items, axis, masks = [], 0, 0
    while axis < len(shape):
        n = shape[axis]
        kind = draw(st.sampled_from(["array", "array", "slice", "int", "None", "mask"]))
        if kind == "mask":
            m = draw(st.integers(1, len(shape) - axis))
            if masks == 0:
                masks = 1
                items.append(draw(arrays.arrays(bool, shape[axis:axis + m])))
                axis += m
            continue
        if kind == "None":
            items.append(None)
            continue
        if kind == "array":
            own = [1 if draw(st.booleans()) else d for d in common][draw(st.integers(0, len(common) - 1)):]
            items.append(draw(arrays.arrays(np.int64, own, elements=st.integers(-n, n - 1))))
        elif kind == "int":
            items.append(draw(st.integers(-n, n - 1)))
        else:
            items.append(draw(st.slices(n)))
        axis += 1
        if draw(st.integers(0, 4)) == 0:
            break
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))) if axis == len(shape) else len(items), Ellipsis)
    if masks and any(isinstance(i, np.ndarray) and i.dtype != bool for i in items):
        items = [i if not isinstance(i, np.ndarray) or i.dtype == bool else i.reshape(-1)[:1] for i in items]
    return np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape), tuple(items)


def in_two_steps(array, index):
    """(a view of the array by all but the arrays, the index of that view by the arrays)."""
    used = sum(i.ndim if isinstance(i, np.ndarray) and i.dtype == bool else i is not None and i is not Ellipsis
               for i in index)
    items = []
    for i in index if any(i is Ellipsis for i in index) else (*index, Ellipsis):
        items += [slice(None)] * (array.ndim - used) if i is Ellipsis else [i]
    basic, rest = [], []
    for i in items:
        if isinstance(i, np.ndarray):
            basic += [slice(None)] * (i.ndim if i.dtype == bool else 1)
            rest.append(i)
        else:
            basic.append(i)
            rest += [] if isinstance(i, int) else [slice(None)]
    return array[(*basic, ...)], tuple(rest)


def as_given(index, how):
    """The index as a user may write it: arrays as they are, as tensors or as lists."""
    convert = {"array": lambda a: a, "tensor": paddle.to_tensor, "list": lambda a: a.tolist()}[how]
    items = tuple(convert(i) if isinstance(i, np.ndarray) else i for i in index)
    return items[0] if len(items) == 1 else items


@given(indices(), st.sampled_from(["array", "tensor", "list"]))
def test_reading_and_its_gradient(drawn, how):
    array, index = drawn
    view, rest = in_two_steps(array, index)
    want = view[rest]
    x = paddle.to_tensor(array, stop_gradient=False)
    y = x[as_given(index, how)]
    assert tuple(y.shape) == want.shape
    np.testing.assert_array_equal(y.numpy(), want)
    g = np.random.default_rng(0).normal(size=want.shape)
    y.backward(paddle.to_tensor(g))
    expected = np.zeros_like(array)
    view, rest = in_two_steps(expected, index)
    np.add.at(view, rest, g)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-13)


@st.composite
def writes(draw):
    array, index = draw(indices())
    view, rest = in_two_steps(array, index)
    part = view[rest].shape
    shape = [1 if draw(st.booleans()) else n for n in part][draw(st.integers(0, len(part))):]
    return array, index, np.random.default_rng(1).normal(size=shape)


@given(writes(), st.sampled_from(["array", "tensor"]))
def test_writing_and_its_gradients(drawn, how):
    array, index, value = drawn
    want, numbers = array.copy(), np.full(array.shape, -1)
    view, rest = in_two_steps(want, index)
    view[rest] = value
    view, rest = in_two_steps(numbers, index)
    part = view[rest].shape
    view[rest] = np.arange(np.prod(part, dtype=int)).reshape(part)     # which element of the value stays where
    x, v = paddle.to_tensor(array, stop_gradient=False), paddle.to_tensor(value, stop_gradient=False)
    y = x * 1.0
    y[as_given(index, how)] = v
    np.testing.assert_array_equal(y.numpy(), want)
    g = np.random.default_rng(0).normal(size=array.shape)
    y.backward(paddle.to_tensor(g))
    np.testing.assert_array_equal(x.grad.numpy(), np.where(numbers < 0, g, 0))
    of_part = np.zeros(np.prod(part, dtype=int))
    of_part[numbers[numbers >= 0]] = g[numbers >= 0]
    lead = len(part) - value.ndim
    stretched = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(value.shape) if n == 1)
    expected = of_part.reshape(part).sum(axis=stretched, keepdims=True).reshape(value.shape)
    np.testing.assert_allclose(v.grad.numpy(), expected, rtol=1e-12, atol=1e-13)


@given(writes())
def test_writing_numbers_and_ints(drawn):
    array, index, _ = drawn
    for dtype in ("float32", "int32"):
        y, want = paddle.to_tensor(array.astype(dtype)), array.astype(dtype)
        y[index] = 2.75
        view, rest = in_two_steps(want, index)
        view[rest] = 2.75
        np.testing.assert_array_equal(y.numpy(), want)


def test_truth_values_make_a_dimension():
    x = paddle.arange(3)
    assert x[True].tolist() == [[0, 1, 2]] and x[False].shape == [0, 3]
    assert x[paddle.to_tensor(True)].shape == [1, 3] and x[True, [0, 1, 1]].tolist() == [0, 1, 1]
    x[False] = 7
    assert x.tolist() == [0, 1, 2]
    x[True] = 7
    assert x.tolist() == [7, 7, 7]


def test_empty_lists_name_nothing():
    x = paddle.arange(6).reshape([2, 3])
    assert x[[]].shape == [0, 3] and x[:, []].shape == [2, 0]
    x[[]] = 1
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_second_derivative_of_reading_and_writing():
    index = np.array([1, 0, 1])

    def gradient(x):
        y = x * 1.0
        y[index[:2]] = x[index[1:]] ** 3.0
        z = (y[index] * x[index]).sum()
        return paddle.grad(z, x, create_graph=True)[0]

    def of_a_leaf(x):
        if x.stop_gradient:
            x = x.detach()
            x.stop_gradient = False
        return gradient(x)

    check_gradients(of_a_leaf, np.array([0.5, -1.0]))


def test_writing_by_numbers_that_are_the_tensor_itself():
    x = paddle.to_tensor([2, 0, 1])
    x[x] = x
    want = np.array([2, 0, 1])
    want[want] = want.copy()
    assert x.tolist() == want.tolist()


# ------------------------------------------------------------------------------------------------ while tracing
def symbolic(*shape, dtype="float64"):
    return Tensor(Meta(shape, np.dtype(dtype)))


def test_shapes_of_symbols():
    with using(ground=MetaOnly()):
        n, m = symbol("N"), symbol("M")
        x, i = symbolic(n, 3, m), symbolic(m, dtype="int64")
        assert tuple(x[i].shape) == (m, 3, m) and tuple(x[:, :, i].shape) == (n, 3, m)
        assert tuple(x[i, None, :, i].shape) == (m, 1, 3)
        assert tuple(x[:, 1][i, i].shape) == (m,)
        with pytest.raises(TypeError, match="depends on the mask's values"):
            x[symbolic(n, dtype="bool")]


def test_a_mask_writes_without_its_values():
    constraints = Constraints()
    with constraints.collect(), using(ground=MetaOnly()):
        n, m = symbol("N"), symbol("M")
        x = symbolic(n, 3, m)
        x[symbolic(n, 3, dtype="bool")] = symbolic(m)
        x[:, symbolic(3, dtype="bool")] = 0.0
        x[0, :, symbolic(m, dtype="bool")] = symbolic(1, dtype="float32")
        with pytest.raises(TypeError, match="depends on the mask's values"):
            x[symbolic(n, dtype="bool")] = symbolic(5, 3, m)


def test_a_number_that_a_program_does_not_know():
    f = paddle.jit.to_static(lambda x, i: (x[i], x[:, i], x[i, i]))
    x = np.arange(6.0).reshape(2, 3)
    for i in (0, 1, -1):
        for got, want in zip(f(paddle.to_tensor(x), paddle.to_tensor(i)), (x[i], x[:, i], x[i, i]), strict=True):
            np.testing.assert_array_equal(got.numpy(), want)


def test_writes_in_a_program():
    def f(x, i, mask, v):
        y = x * 2.0
        y[:, i] = v
        y[mask] = -1.0
        return y[i, i] + y[0]

    x = np.arange(9.0).reshape(3, 3)
    i, mask, v = np.array([2, 0, 2]), x % 2 == 0, np.array([[10.0, 20.0, 30.0]])
    args = [paddle.to_tensor(a) for a in (x, i, mask, v)]
    np.testing.assert_array_equal(paddle.jit.to_static(f)(*args).numpy(), f(*args).numpy())
    want = x * 2
    want[:, i] = v
    want[mask] = -1
    np.testing.assert_array_equal(f(*args).numpy(), want[i, i] + want[0])
