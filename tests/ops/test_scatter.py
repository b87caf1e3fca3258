"""Writing by number against loops over the elements, with gradients against differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minipd as paddle
from tests.nn.finite import check_gradients

RNG = np.random.default_rng(0)
REDUCE = {"add": np.add, "mul": np.multiply, "multiply": np.multiply, "amin": np.minimum, "amax": np.maximum}


def tensor(x, dtype=None):
    return paddle.to_tensor(np.asarray(x), dtype=dtype)


def put_by_loop(x, index, values, axis, reduce, include_self):
    out, counts = x.copy(), np.ones(x.shape)
    places = [(at, (*at[:axis], index[at], *at[axis + 1:])) for at in np.ndindex(index.shape)]
    if not include_self and reduce != "assign":
        start = {"amin": np.inf, "amax": -np.inf, "mul": 1, "multiply": 1}.get(reduce, 0)
        for _, to in places:
            out[to], counts[to] = start, 0
    for at, to in places:
        counts[to] += 1
        if reduce == "assign":
            out[to] = values[at]
        else:
            out[to] = REDUCE["add" if reduce == "mean" else reduce](out[to], values[at])
    return out / counts if reduce == "mean" else out


@st.composite
def puts(draw):
    shape = draw(st.sampled_from([(5,), (2, 3), (3, 2), (2, 3, 2)]))
    axis = draw(st.integers(0, len(shape) - 1))
    n = draw(st.integers(1, 4))
    index_shape = (*shape[:axis], n, *shape[axis + 1:])
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    values = rng.permutation(np.prod(shape) + np.prod(index_shape)) * 0.5 + 1
    index = rng.integers(-shape[axis], shape[axis], index_shape)
    return values[:np.prod(shape)].reshape(shape), index, values[np.prod(shape):].reshape(index_shape), axis


@given(puts(), st.sampled_from(["assign", "mean", *REDUCE]), st.booleans())
def test_put_along_axis(drawn, reduce, include_self):
    x, index, values, axis = drawn
    got = paddle.put_along_axis(tensor(x), tensor(index), tensor(values), axis, reduce, include_self)
    np.testing.assert_allclose(got.numpy(), put_by_loop(x, index, values, axis, reduce, include_self), rtol=1e-12)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["assign", "add", "mul", "mean", "amin", "amax"])
def test_gradients_of_put_along_axis(reduce, include_self):
    index = tensor([[0, 2, 0], [1, 1, -1]])
    values = RNG.permutation(14) * 0.25 + 0.5
    check_gradients(lambda x, v: paddle.put_along_axis(x, index, v, 1, reduce, include_self),
                    values[:8].reshape(2, 4), values[8:].reshape(2, 3))


def test_put_along_axis_stretches_and_cuts():
    x = tensor(np.zeros((2, 3)))
    assert paddle.put_along_axis(x, tensor([[0]]), 9.0, 0).tolist() == [[9, 9, 9], [0, 0, 0]]
    assert paddle.put_along_axis(x, tensor([[1]]), tensor([[1.0, 2.0, 3.0]]), 0).tolist() == [[0, 0, 0], [1, 2, 3]]
    values = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert paddle.put_along_axis(x, tensor([[1, 1]]), values, 0, broadcast=False).tolist() == [[0, 0, 0], [1, 2, 0]]
    ints = paddle.put_along_axis(tensor([10, 7]), tensor([0, 0]), tensor([-40, 3]), 0, "mean")
    assert ints.tolist() == [-9, 7]                                 # rounded down
    assert paddle.put_along_axis(tensor([1, 2]), tensor([0]), 7, 0, "amin", include_self=False).tolist() == [7, 2]


@given(puts(), st.sampled_from(["sum", "prod", "mean", "amin", "amax"]), st.booleans())
def test_scatter_reduce(drawn, reduce, include_self):
    x, index, values, axis = drawn
    got = paddle.scatter_reduce(tensor(x), axis, tensor(index), tensor(values), reduce, include_self=include_self)
    name = {"sum": "add", "prod": "mul"}.get(reduce, reduce)
    np.testing.assert_allclose(got.numpy(), put_by_loop(x, index, values, axis, name, include_self), rtol=1e-12)
    if reduce == "sum" and include_self:
        added = paddle.scatter_add(tensor(x), axis, tensor(index), tensor(values))
        np.testing.assert_allclose(added.numpy(), got.numpy())


# ------------------------------------------------------------------------------------------------ by rows, tuples
def test_scatter_overwrites_or_sums():
    x, index, updates = tensor(np.ones((3, 2))), tensor([2, 1, 0, 1]), tensor([[1.0, 1], [2, 2], [3, 3], [4, 4]])
    assert paddle.scatter(x, index, updates).tolist() == [[3, 3], [4, 4], [1, 1]]
    assert paddle.scatter(x, index, updates, overwrite=False).tolist() == [[3, 3], [6, 6], [1, 1]]
    assert paddle.scatter(x, index.unsqueeze(1), updates).tolist() == [[3, 3], [4, 4], [1, 1]]
    assert paddle.scatter(x, tensor(-1), updates[3]).tolist() == [[1, 1], [1, 1], [4, 4]]
    assert paddle.scatter_nd(index.unsqueeze(1), updates, [4, 2]).tolist() == [[3, 3], [6, 6], [1, 1], [0, 0]]
    assert paddle.scatter_nd_add(x, tensor([[0, 1], [0, 1]]), tensor([5.0, 6.0])).tolist() == [[1, 12], [1, 1], [1, 1]]
    y = x.clone()
    assert y.scatter_(index, updates) is y and y.tolist() == [[3, 3], [4, 4], [1, 1]]


@pytest.mark.parametrize("overwrite", [True, False])
def test_gradients_of_scatter(overwrite):
    index = tensor([2, 0, 2])
    x, updates = RNG.normal(size=(4, 2)), RNG.normal(size=(3, 2))
    check_gradients(lambda x, u: paddle.scatter(x, index, u, overwrite), x, updates)


def test_index_add_fill_put():
    x = tensor(np.arange(6.0).reshape(2, 3))
    index = tensor([0, 2, 0])
    value = tensor(np.ones((2, 3)))
    assert paddle.index_add(x, index, 1, value, alpha=2).tolist() == [[4, 1, 4], [7, 4, 7]]
    assert paddle.index_fill(x, index, 1, -1).tolist() == [[-1, 1, -1], [-1, 4, -1]]
    assert paddle.index_fill(x, tensor([-1]), 0, tensor(9.0)).tolist() == [[0, 1, 2], [9, 9, 9]]
    assert paddle.index_put(x, (tensor([1, 0]), tensor([0, 1])), tensor(7.0)).tolist() == [[0, 7, 2], [7, 4, 5]]
    assert paddle.index_put(x, (tensor([1, 1]),), value[:, :1], True).tolist() == [[0, 1, 2], [5, 6, 7]]
    assert paddle.index_put(x, (x > 3,), tensor([1.0, 2.0])).tolist() == [[0, 1, 2], [3, 1, 2]]
    check_gradients(lambda x, v: paddle.index_add(x, index, 1, v, 3), RNG.normal(size=(2, 3)), RNG.normal(size=(2, 3)))
    check_gradients(lambda x, v: paddle.index_put(x, (tensor([1, 0, 1]), tensor([0, 1, 0])), v, True),
                    RNG.normal(size=(2, 3)), RNG.normal(size=3))
    check_gradients(lambda x: paddle.index_fill(x, index, 1, 2.0), RNG.normal(size=(2, 3)))
    for name, args in (("index_add_", (index, 1, value)), ("index_fill_", (index, 1, 0.5)),
                       ("index_put_", ((tensor([0]), tensor([1])), tensor(3.0))),
                       ("put_along_axis_", (tensor([[0]]), 5.0, 0))):
        y = x.clone()
        assert getattr(y, name)(*args) is y
        assert y.tolist() == getattr(paddle, name[:-1])(x, *args).tolist() != x.tolist()


def test_taking():
    x = tensor(np.arange(12.0).reshape(3, 4))
    assert paddle.gather(x, tensor([2, 0])).tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
    assert paddle.gather(x, tensor([[1], [1]]), axis=-1).shape == [3, 2] and paddle.gather(x, tensor(1)).shape == [4]
    assert paddle.index_select(x, tensor([-1]), 1).tolist() == [[3], [7], [11]]
    assert paddle.gather_nd(x, tensor([[[2, 3]], [[0, -1]]])).tolist() == [[11], [3]]
    assert paddle.index_sample(x, tensor([[0, 0], [3, 1], [2, 2]])).tolist() == [[0, 0], [7, 5], [10, 10]]
    assert paddle.take(x, tensor([[-1, 5]])).tolist() == [[11, 5]]
    assert paddle.take(x, tensor([-13, 12, 25]), mode="wrap").tolist() == [11, 0, 1]
    assert paddle.take(x, tensor([-13, 12, 5]), mode="clip").tolist() == [0, 11, 5]
    assert paddle.shard_index(tensor([[0], [9], [10], [19]]), 20, 2, 1).tolist() == [[-1], [-1], [0], [9]]
    out = paddle.zeros([2, 4], "float64")
    assert paddle.gather(x, tensor([2, 0]), out=out) is out and out[0].tolist() == [8, 9, 10, 11]
    check_gradients(lambda x: paddle.gather(x, tensor([1, 1, 0]), 1), RNG.normal(size=(2, 3)))
    check_gradients(lambda x: paddle.take(x, tensor([[1, -1], [1, 0]])), RNG.normal(size=(2, 3)))


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: paddle.gather(x, tensor([2])), IndexError, r"gather: expected numbers in -2 .. 1, .* size 2, got 2"),
    (lambda x: paddle.gather(x, tensor([-3])), IndexError, "got -3"),
    (lambda x: paddle.gather(x, tensor([0.5])), TypeError, "gather: expected an int index, got f64"),
    (lambda x: paddle.gather(x, tensor([[0, 1]])), ValueError, "at most 1 dimension"),
    (lambda x: paddle.gather(paddle.to_tensor(1.0), tensor([0])), ValueError, "at least 1 dimension"),
    (lambda x: paddle.gather_nd(x, tensor([[0, 0, 0]])), ValueError, r"last dimension has size 1 to 2.*i64\[1, 3\]"),
    (lambda x: paddle.scatter_nd_add(x, tensor([[0]]), x), ValueError, r"updates of shape \[1, 3\].*got f64\[2, 3\]"),
    (lambda x: paddle.index_add(x, tensor([0]), 0, x), ValueError, r"a value of shape \[1, 3\]"),
    (lambda x: paddle.scatter(x, tensor([0]), paddle.ones([1, 3])), TypeError, "dtype float64.*got f32"),
    (lambda x: paddle.put_along_axis(x, tensor([0]), 1.0, 0), ValueError, "indices of 2 dimensions"),
    (lambda x: paddle.put_along_axis(x, tensor([[0]]), 1.0, 0, "max"), ValueError, "expected reduce to be"),
    (lambda x: paddle.scatter_reduce(x, 0, tensor([[0]]), x, "add"), ValueError, "expected reduce to be sum"),
    (lambda x: paddle.index_put(x, (slice(None),), x), ValueError, "expected int tensors or masks"),
    (lambda x: paddle.take(x, tensor([6])), IndexError, "got 6"),
    (lambda x: paddle.shard_index(tensor([0]), 4, 2, 2), ValueError, "shard_id"),
])
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(tensor(np.zeros((2, 3))))


def test_take_along_axis():
    x, index = np.arange(12.0).reshape(3, 4), np.array([[0, -1, 2], [-3, 1, 1]])
    got = paddle.take_along_axis(tensor(x), tensor(index), 0, broadcast=False)
    np.testing.assert_array_equal(got.numpy(), np.take_along_axis(x[:, :3], index, 0))
    assert paddle.take_along_dim(tensor(x), tensor([[-1]]), 1).tolist() == [[3], [7], [11]]
    check_gradients(lambda x: paddle.take_along_axis(x, tensor(index), 0, broadcast=False), x)
    static = paddle.jit.to_static(lambda x, i: paddle.take_along_axis(x, i, 1))
    assert static(tensor(x), tensor([[-1]] * 3)).tolist() == [[3], [7], [11]]
    with pytest.raises(ValueError, match="at most the sizes"):
        paddle.take_along_axis(tensor(x), tensor(np.zeros((4, 5), int)), 0, broadcast=False)
    with pytest.raises(ValueError, match="expected numbers in -3 .. 2, along axis 0 of .*, got -4"):
        paddle.take_along_axis(tensor(x), tensor([[-4, 0, 0, 0]]), 0)
