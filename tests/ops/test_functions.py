"""The public functions of the library: axes in every form, shapes, products, and errors that teach."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minipd as paddle
from minipd.nn import functional as F

RNG = np.random.default_rng(0)


def tensor(*shape):
    return paddle.to_tensor(RNG.normal(size=shape), stop_gradient=False)


def gradient_of(f, x):
    """(values, gradient) of f(x) for one random incoming gradient, the same for every f of one result shape."""
    x = paddle.to_tensor(x, stop_gradient=False)
    y = f(x)
    y.backward(paddle.to_tensor(np.random.default_rng(1).normal(size=y.shape)))
    return y.numpy(), x.grad.numpy()


# ------------------------------------------------------------------------------------------------ axes
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_reductions_take_axes_in_every_form(name, keepdim):
    """Hard case A7: the axis saved for the gradient is the normalised one (pytorch #5943)."""
    f, want = getattr(paddle, name), getattr(np, name)
    x = RNG.normal(size=(2, 3, 4))
    for axis in (None, 0, 2, -1, -3, [0, 2], (-1, 0), [-2], [0, 1, 2]):
        np_axis = tuple(axis) if isinstance(axis, list) else axis
        y, g = gradient_of(lambda t, axis=axis: f(t, axis=axis, keepdim=keepdim), x)
        np.testing.assert_allclose(y, want(x, axis=np_axis, keepdims=keepdim), rtol=1e-14)
        positive = None if axis is None else [a % 3 for a in ([axis] if isinstance(axis, int) else axis)]
        _, same = gradient_of(lambda t, axis=positive: f(t, axis=axis, keepdim=keepdim), x)
        np.testing.assert_array_equal(g, same)
        assert g.shape == x.shape
    with pytest.raises(ValueError, match=rf"{name}: axis \(0, -3\) names a dimension of the 3-D tensor twice"):
        f(paddle.to_tensor(x), axis=(0, -3))
    with pytest.raises(ValueError, match=f"{name}: axis 3 is out of range for a tensor of 3 dimensions"):
        f(paddle.to_tensor(x), axis=3)


@pytest.mark.parametrize(("f", "axes"), [
    (lambda x, a: F.softmax(x, axis=a), (0, 1, 2)),
    (lambda x, a: paddle.concat([x, x * 2.0], axis=a), (0, 1, 2)),
    (lambda x, a: paddle.concat(paddle.split(x, [1, 1], axis=a)[::-1], axis=a), (0,)),
    (lambda x, a: paddle.split(x, 2, axis=a)[1], (0, 2)),
    (lambda x, a: paddle.stack([x, -x], axis=a), (0, 1, 2, 3)),
    (lambda x, a: paddle.squeeze(paddle.unsqueeze(x, a), a), (0, 1, 2, 3)),
    (lambda x, a: paddle.unsqueeze(x, [a]), (0, 1, 2, 3)),
    (lambda x, a: paddle.transpose(x, [a, *(b for b in range(3) if b != a % 3)]), (0, 1, 2)),
    (lambda x, a: paddle.slice(x, [a], [1], [2]), (0, 1, 2)),
])
def test_negative_axes_are_positive_ones(f, axes):
    x = RNG.normal(size=(2, 3, 4))
    for axis in axes:
        y, g = gradient_of(lambda t, axis=axis: f(t, axis), x)
        n = 4 if 3 in axes else 3
        y2, g2 = gradient_of(lambda t, axis=axis, n=n: f(t, axis - n), x)
        np.testing.assert_array_equal(y, y2)
        np.testing.assert_array_equal(g, g2)


def test_permutation_with_negative_axes_and_its_gradient():
    u = tensor(2, 3)
    g = RNG.normal(size=(3, 2))
    paddle.transpose(u, (-1, -2)).backward(paddle.to_tensor(g))
    np.testing.assert_array_equal(u.grad.numpy(), g.T)


# ------------------------------------------------------------------------------------------------ shapes
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_reshape_finds_what_is_left_over(shape, data):
    x = np.arange(np.prod(shape, dtype=float)).reshape(shape)
    target = data.draw(st.permutations(shape))
    unknown = data.draw(st.integers(0, len(shape) - 1))
    target = [-1 if i == unknown else n for i, n in enumerate(target)]
    np.testing.assert_array_equal(paddle.reshape(paddle.to_tensor(x), target).numpy(), x.reshape(target))


def test_reshape():
    x = paddle.arange(6).reshape([2, 3])
    assert x.reshape([0, -1]).shape == [2, 3] and x.reshape([-1]).shape == [6] and x.reshape(6).shape == [6]
    assert x.reshape(paddle.to_tensor([3, 2])).shape == [3, 2]
    assert paddle.zeros([0, 3]).reshape([0, 5]).shape == [0, 5]
    for target, text in (([4], r"expected a shape of 6 elements"), ([-1, -1], "at most one -1"),
                         ([-1, 4], "do not divide"), ([2, -3], ">= 0")):
        with pytest.raises(ValueError, match=text):
            x.reshape(target)


def test_flatten_squeeze_unsqueeze():
    x = paddle.zeros([2, 1, 3, 1])
    assert x.flatten().shape == [6] and x.flatten(1, 2).shape == [2, 3, 1] and x.flatten(-2).shape == [2, 1, 3]
    assert paddle.to_tensor(1.0).flatten().shape == [1]
    assert x.squeeze().shape == [2, 3] and x.squeeze(1).shape == [2, 3, 1] and x.squeeze([0, -1]).shape == [2, 1, 3]
    assert x.unsqueeze([0, -1]).shape == [1, 2, 1, 3, 1, 1]
    with pytest.raises(ValueError, match="flatten: expected start_axis before stop_axis"):
        x.flatten(2, 1)
    with pytest.raises(ValueError, match="unsqueeze: axis 6 is out of range"):
        x.unsqueeze(6)


def test_split_and_stack_and_concat():
    x = paddle.arange(10).reshape([5, 2])
    assert [p.shape[0] for p in paddle.split(x, [1, -1, 2])] == [1, 2, 2]
    for sections, text in ((2, "axis 0 of size 5 does not divide into 2"), ([2, 2], "do not add up to 5"),
                           ([6, -1], "do not add up to 5")):
        with pytest.raises(ValueError, match=text):
            paddle.split(x, sections)
    mixed = paddle.concat([paddle.to_tensor([1]), paddle.to_tensor([0.5]), paddle.to_tensor([True])])
    assert mixed.dtype == paddle.float32 and mixed.tolist() == [1, 0.5, 1]
    assert paddle.stack([paddle.to_tensor(1.0), paddle.to_tensor(2.0)]).tolist() == [1, 2]
    for call, text in ((lambda: paddle.concat([x, paddle.zeros([5], "int64")]), "agree but for axis 0"),
                       (lambda: paddle.concat([x, paddle.zeros([2, 3], "int64")]), "agree but for axis 0"),
                       (lambda: paddle.concat([paddle.to_tensor(1.0)]), "use stack"),
                       (lambda: paddle.concat([]), "got an empty list"),
                       (lambda: paddle.stack([]), "got an empty list")):
        with pytest.raises(ValueError, match=text):
            call()


def test_expand():
    x = paddle.to_tensor([[1], [2]])
    assert paddle.expand(x, [3, -1, 2]).shape == [3, 2, 2]
    assert paddle.broadcast_to(x, [2, 2]).tolist() == [[1, 1], [2, 2]]
    for shape in ([2], [-1, 2, 2], [3, 2], [0, 1]):
        with pytest.raises(ValueError, match="expand: "):
            paddle.expand(x, shape)
    with pytest.raises(ValueError, match=r"reduce_as: shape \[2\] does not stretch to \[2, 3\]|cannot broadcast"):
        paddle.reduce_as(paddle.zeros([2, 3]), paddle.zeros([2]))


def test_slices_follow_python():
    x = np.arange(24.0).reshape(4, 6)
    t = paddle.to_tensor(x)
    assert paddle.slice(t, [0, 1], [-3, 2], [100, -1]).tolist() == x[-3:100, 2:-1].tolist()
    assert paddle.strided_slice(t, [1], [-1], [-100], [-2]).tolist() == x[:, -1:-100:-2].tolist()
    with pytest.raises(ValueError, match=r"axes \[0, -2\] name a dimension of the 2-D tensor twice"):
        paddle.slice(t, [0, -2], [0, 0], [1, 1])


def test_triangles_need_a_matrix():
    for f in (paddle.tril, paddle.triu):
        with pytest.raises(ValueError, match="expected a tensor of at least 2 dimensions, got f32"):
            f(paddle.ones([3]))


# ------------------------------------------------------------------------------------------------ matmul
def test_matmul_of_vectors():
    a, b, m = RNG.normal(size=3), RNG.normal(size=3), RNG.normal(size=(2, 4, 3))
    t = paddle.to_tensor
    for x, y in ((a, b), (m, a), (a, np.swapaxes(m, -1, -2)), (m[0], a)):
        got = paddle.matmul(t(x), t(y))
        np.testing.assert_allclose(got.numpy(), np.matmul(x, y), rtol=1e-14)
        assert tuple(got.shape) == np.matmul(x, y).shape
    np.testing.assert_allclose(paddle.matmul(t(a), t(b), True, True).numpy(), a @ b, rtol=1e-14)
    with pytest.raises(ValueError, match=r"f64\[2, 4, 3\] and f64\[2, 4, 3\]: the inner sizes: expected 3, got 4"):
        paddle.matmul(t(m), t(m))
    with pytest.raises(ValueError, match="at least 1 dimension"):
        paddle.matmul(t(1.0), t(a))
    with pytest.raises(TypeError, match="expected two Tensors"):
        paddle.matmul(t(a), 2.0)


# ------------------------------------------------------------------------------------------------ errors
@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: paddle.ones([2]) + paddle.ones([3]), ValueError,
     r"add: cannot broadcast shapes \[2\] and \[3\]: dimension -1 is 2 in one and 3 in another"),
    (lambda: F.swiglu(paddle.ones([2]), paddle.ones([3])), ValueError, r"swiglu: expected x and y of one shape"),
    (lambda: paddle.add_n([paddle.ones([2]), paddle.ones([3])]), ValueError, "add_n: expected tensors of one shape"),
    (lambda: paddle.add(paddle.ones([2]), "x"), TypeError, "add: expected a Tensor or a number, got str"),
    (lambda: paddle.where(paddle.to_tensor([1]), 1.0, 2.0), TypeError, "expected a bool condition, got paddle.int64"),
    (lambda: paddle.transpose(paddle.ones([2, 3]), [0, 0]), ValueError, "expected a permutation of 2 dimensions"),
    (lambda: paddle.cast(paddle.ones([2]), "uint64"), TypeError, "dtype: expected one of bool, int8"),
    (lambda: paddle.arange(0, 5, 0), ValueError, "step must not be 0"),
    (lambda: paddle.to_tensor([[1], [1, 2]]), ValueError, "expected a rectangular nested list"),
    (lambda: paddle.to_tensor("abc"), TypeError, "dtype: expected one of"),
    (lambda: paddle.zeros([-1]), ValueError, "sizes >= 0"),
    (lambda: paddle.uniform([2], min=2.0, max=1.0), ValueError, "low <= high"),
])
def test_errors_teach(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_an_error_of_numpys_names_the_call():
    """Where the shape rule has no objection, numpy's own words stand, with the operator's name and operands; the user
    is told of the function that was called."""
    with pytest.raises(ValueError, match="full: these arguments do not go together") as caught:
        paddle.full([2], 10 ** 30, "int64")
    assert caught.value.__cause__.__notes__ == [f"in full(shape=(2,), value={10 ** 30}, dtype=int64)"]
    assert "called at" in caught.value.__notes__[-1]


def test_a_size_that_nobody_can_mean_names_the_call():
    with pytest.raises(MemoryError, match=r"full: expected a result that fits into memory .* got shape "
                                          r"\[1000000000, 1000000000\]") as caught:
        paddle.ones([10**9, 10**9])
    assert "in ones(" in caught.value.__notes__[-1] and "called at" in caught.value.__notes__[-1]


def test_errors_teach_under_no_grad_too():
    with paddle.no_grad(), pytest.raises(ValueError, match=r"add: cannot broadcast shapes \[2\] and \[3\]"):
        paddle.ones([2]) + paddle.ones([3])
