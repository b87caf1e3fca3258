"""Sorting, choosing, searching; what is true, what is the same; histograms: against numpy and plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import minipd as paddle
from minipd.framework.context import MetaOnly, using
from minipd.framework.meta import Meta
from minipd.framework.tensor import Tensor
from tests.nn.finite import check_gradients

RNG = np.random.default_rng(0)


def tensor(x, dtype=None):
    return paddle.to_tensor(np.asarray(x), dtype=dtype)


SMALL = arrays.arrays(np.int64, arrays.array_shapes(max_dims=3, max_side=4), elements=st.integers(-3, 3))


# ------------------------------------------------------------------------------------------------------ order
@given(SMALL, st.booleans(), st.integers(-3, 2))
def test_sort_and_argsort(x, descending, axis):
    axis = axis % x.ndim
    order = np.argsort(-x if descending else x, axis, kind="stable")
    np.testing.assert_array_equal(paddle.argsort(tensor(x), axis, descending).numpy(), order)
    np.testing.assert_array_equal(paddle.sort(tensor(x), axis, descending).numpy(), np.take_along_axis(x, order, axis))


def test_the_empty_the_single_and_the_bytes():
    assert paddle.sort(paddle.to_tensor(3.0)).tolist() == 3.0 and paddle.argsort(paddle.to_tensor(3.0)).tolist() == 0
    assert [t.tolist() for t in paddle.topk(paddle.to_tensor(3.0), 1)] == [3.0, 0]
    assert [t.shape for t in paddle.mode(paddle.to_tensor(3))] == [[], []]
    assert paddle.sort(paddle.zeros([0, 2]), 0).shape == [0, 2]
    assert paddle.sort(tensor([3, 255, 0], "uint8"), descending=True).tolist() == [255, 3, 0]
    assert paddle.sort(tensor([True, False])).tolist() == [False, True]
    assert paddle.msort(tensor([[2, 1], [1, 2]])).tolist() == [[1, 1], [2, 2]]


def test_topk_kthvalue_mode():
    x = tensor([[1, 4, 5, 7], [2, 6, 2, 5]])
    values, indices = paddle.topk(x, 2)
    assert values.tolist() == [[7, 5], [6, 5]] and indices.tolist() == [[3, 2], [1, 3]]
    found = paddle.topk(x, tensor(1), axis=0, largest=False)
    assert found.values.tolist() == [[1, 4, 2, 5]] and found.indices.tolist() == [[0, 0, 1, 1]]
    assert [t.tolist() for t in paddle.kthvalue(x, 2, axis=1, keepdim=True)] == [[[4], [2]], [[1], [2]]]
    assert [t.tolist() for t in paddle.mode(x, axis=-1)] == [[1, 2], [0, 2]]
    values = RNG.permutation(8).reshape(2, 4) * 0.5
    check_gradients(lambda x: paddle.topk(x, 2, axis=1)[0], values)
    check_gradients(lambda x: paddle.kthvalue(x, 2, axis=0)[0], values)
    check_gradients(lambda x: paddle.sort(x, 0) * paddle.sort(x, 1, descending=True), values)
    for k in (0, 5):
        with pytest.raises(ValueError, match=f"topk: .*(got {k}|at least {k}, got 4)"):
            paddle.topk(x, k)
    with pytest.raises(TypeError, match="argsort: expected a real tensor"):
        paddle.sort(paddle.to_tensor([1j]))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bfloat16", "bool"])
def test_choosing_from_many_is_what_ordering_them_all_gives(dtype, largest):
    """Many are equal, and some infinite or NaN, where the dtype has that."""
    x = RNG.integers(0, 9, (3, 200, 2)).astype(float)
    if dtype in ("float32", "bfloat16"):
        x[0, ::7], x[1, ::50, 0] = np.inf, -np.inf
    for values in (x, np.where(x == 3, np.nan, x) if dtype == "float32" else x):
        t = tensor(values, dtype)
        order = paddle.argsort(t, 1, descending=largest)
        for k in (1, 5, 40, 120):
            found = paddle.topk(t, k, 1, largest)
            assert found.indices.tolist() == order[:, :k].tolist()
            np.testing.assert_array_equal(found.values.numpy(), np.take_along_axis(t.numpy(), order[:, :k].numpy(), 1))
            if not largest:
                assert paddle.kthvalue(t, k, 1)[1].tolist() == order[:, k - 1].tolist()


def test_searchsorted_and_bucketize():
    x = tensor([[0, 8, 4, 16], [-1, 2, 8, 4]])
    bounds = tensor([2, 4, 8, 16])
    assert paddle.bucketize(x, bounds).tolist() == [[0, 2, 1, 3], [0, 0, 2, 1]]
    assert paddle.bucketize(x, bounds, right=True).tolist() == [[0, 3, 2, 4], [0, 1, 3, 2]]
    assert paddle.searchsorted(bounds, tensor(3.5), out_int32=True).dtype == paddle.int32
    shuffled = tensor([8, 2, 16, 4])
    assert paddle.searchsorted(shuffled, tensor([5]), side="right", sorter=paddle.argsort(shuffled)).tolist() == [2]
    for call, text in ((lambda: paddle.bucketize(x, x), "bounds of 1 dimension"),
                       (lambda: paddle.searchsorted(bounds, x, right=True, side="left"), "agree with right=True"),
                       (lambda: paddle.searchsorted(tensor([[1, 2]]), x), "of the values' leading dimensions")):
        with pytest.raises(ValueError, match=text):
            call()


# ------------------------------------------------------------------------------------------------------ truth
@given(SMALL)
def test_nonzero_and_where(x):
    np.testing.assert_array_equal(paddle.nonzero(tensor(x)).numpy(), np.argwhere(x))
    np.testing.assert_array_equal(paddle.argwhere(tensor(x)).numpy(), np.argwhere(x))
    for found in (paddle.nonzero(tensor(x), as_tuple=True), paddle.where(tensor(x))):
        assert [t.tolist() for t in found] == [a.tolist() for a in np.nonzero(x)]


def test_where_of_numbers():
    c = tensor([True, False])
    assert paddle.where(c, 1, 0).dtype == paddle.int64 and paddle.where(c, 1.0, 0).tolist() == [1.0, 0.0]
    x = tensor([1.0, 2.0])
    assert paddle.where_(c, x, tensor([5.0, 6.0])) is x and x.tolist() == [1.0, 6.0]


def test_masks():
    x, mask = tensor(np.arange(6.0).reshape(2, 3)), tensor([True, False, True])
    assert paddle.masked_select(x, mask).tolist() == [0, 2, 3, 5]
    assert paddle.masked_fill(x, mask, -1).tolist() == [[-1, 1, -1], [-1, 4, -1]]
    assert paddle.masked_fill(tensor([1, 2]), tensor([[True, False]]), 7.9).tolist() == [[7, 2]]
    assert paddle.masked_scatter(x, mask, tensor([9.0, 8, 7, 6, 5])).tolist() == [[9, 1, 8], [7, 4, 6]]
    assert paddle.masked_scatter(x, tensor(False), paddle.zeros([0], "float64")).tolist() == x.tolist()
    y = x.clone()
    assert y.masked_fill_(mask, 0.0) is y and y.tolist() == [[0, 1, 0], [0, 4, 0]]
    check_gradients(lambda x: paddle.masked_select(x, mask), RNG.normal(size=(2, 3)))
    check_gradients(lambda x, v: paddle.masked_fill(x, mask, v), RNG.normal(size=(2, 3)), np.array(0.5))
    check_gradients(lambda x, v: paddle.masked_scatter(x, mask, v), RNG.normal(size=(2, 3)), RNG.normal(size=5))
    with pytest.raises(IndexError, match="got 3"):
        paddle.masked_scatter(x, mask, tensor([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="got none"):
        paddle.masked_scatter(x, mask, paddle.zeros([0], "float64"))
    for call in (paddle.masked_fill, paddle.masked_select):
        with pytest.raises(TypeError, match="expected a bool mask, got i64"):
            call(x, tensor([1, 0, 1]), *([0.0] if call is paddle.masked_fill else []))


# --------------------------------------------------------------------------------------------------- the same
@given(SMALL, st.booleans())
def test_unique(x, with_axis):
    axis = x.ndim - 1 if with_axis else None
    want = np.unique(x, True, True, True, axis=axis)
    got = paddle.unique(tensor(x), True, True, True, axis=axis)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g.numpy(), w if w is want[0] else w.reshape(-1))
    np.testing.assert_array_equal(paddle.unique(tensor(x), axis=axis).numpy(), want[0])


@given(arrays.arrays(np.int64, st.integers(0, 9), elements=st.integers(0, 2)))
def test_unique_consecutive(x):
    want, inverse, counts = [], [], []
    for v in x.tolist():
        if not want or want[-1] != v:
            want.append(v)
            counts.append(0)
        counts[-1] += 1
        inverse.append(len(want) - 1)
    got = paddle.unique_consecutive(tensor(x), True, True, dtype="int32")
    assert [t.tolist() for t in got] == [want, inverse, counts] and got[1].dtype == paddle.int32


def test_unique_consecutive_slices():
    x = tensor([[2, 1, 3], [3, 0, 1], [2, 1, 3], [2, 1, 3]])
    assert paddle.unique_consecutive(x, axis=0).tolist() == [[2, 1, 3], [3, 0, 1], [2, 1, 3]]
    assert paddle.unique_consecutive(tensor([[1, 1, 2]]), axis=1, return_counts=True)[1].tolist() == [2, 1]
    assert paddle.unique(paddle.to_tensor([2.0, 1.0, 2.0], "bfloat16")).astype("float32").tolist() == [1.0, 2.0]


# ------------------------------------------------------------------------------------------------- histograms
@given(arrays.arrays(np.float64, st.integers(1, 20), elements=st.integers(-8, 8).map(lambda i: i / 4)),
       st.integers(1, 6), st.sampled_from([(0.0, 0.0), (-1.0, 1.5), (1.0, 1.0)]))
def test_histogram(x, bins, bounds):
    low, high = (x.min(), x.max()) if bounds == (0.0, 0.0) else bounds
    want, edges = np.histogram(x, bins, (low, high))
    got = paddle.histogram(tensor(x), bins, *bounds)
    assert got.tolist() == want.tolist() and got.dtype == paddle.int64
    found = paddle.histogram_bin_edges(tensor(x), bins, *bounds)
    np.testing.assert_allclose(found.numpy(), edges, rtol=1e-6, atol=1e-6)
    weights = np.arange(len(x)) + 1.0
    want, _ = np.histogram(x, bins, (low, high), weights=weights)
    np.testing.assert_allclose(paddle.histogram(tensor(x), bins, *bounds, weight=tensor(weights)).numpy(), want)
    if want.sum():
        want, _ = np.histogram(x, bins, (low, high), weights=weights, density=True)
        got = paddle.histogram(tensor(x), bins, *bounds, weight=tensor(weights), density=True)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


def test_bincount():
    x = tensor([1, 2, 1, 4])
    assert paddle.bincount(x).tolist() == [0, 2, 1, 0, 1] and paddle.bincount(x, minlength=7).shape == [7]
    assert paddle.bincount(x, tensor([1, 2, 3, 4])).tolist() == [0.0, 4.0, 2.0, 0.0, 4.0]
    assert paddle.bincount(tensor([], "int64")).shape == [0]
    assert paddle.bincount(tensor([1, 2, 1], "uint8")).tolist() == [0, 2, 1]
    with pytest.raises(ValueError, match="at least 0, got -1"):
        paddle.bincount(tensor([1, -1]))


@pytest.mark.parametrize("density", [False, True])
def test_histogramdd(density):
    x, weights = RNG.uniform(-1, 2, (40, 2)), RNG.uniform(size=40)
    for bins, ranges in (([3, 4], None), (5, [-0.5, 1.0, 0.0, 2.0])):
        want, edges = np.histogramdd(x, bins, None if ranges is None else [ranges[:2], ranges[2:]], density, weights)
        got, bounds = paddle.histogramdd(tensor(x), bins, ranges, density, tensor(weights))
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
        for b, e in zip(bounds, edges, strict=True):
            np.testing.assert_allclose(b.numpy(), e, rtol=1e-12)
    own = [np.array([-1.0, 0.0, 2.0]), np.array([-1.0, 0.5, 1.0])]
    got, _ = paddle.histogramdd(tensor(x), [tensor(e) for e in own], density=density)
    np.testing.assert_allclose(got.numpy(), np.histogramdd(x, own, density=density)[0], rtol=1e-12)


@pytest.mark.parametrize("call", [paddle.nonzero, paddle.unique, paddle.unique_consecutive, paddle.bincount,
                                  paddle.argwhere, lambda x: paddle.masked_select(x, x > 0)])
def test_sizes_that_depend_on_values_are_refused_while_tracing(call):
    with using(ground=MetaOnly()), pytest.raises(TypeError, match="depends on"):
        call(Tensor(Meta((3,), np.dtype("int64"))))
