"""Stacking, splitting, repeating and reordering against numpy; a gradient for each kind."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import minipd as paddle
from minipd.framework.context import MetaOnly, using
from minipd.framework.dim import Constraints, symbol
from minipd.framework.meta import Meta
from minipd.framework.tensor import Tensor
from tests.nn.finite import check_gradients

RNG = np.random.default_rng(0)


def tensor(x, dtype=None):
    return paddle.to_tensor(np.asarray(x), dtype=dtype)


def numbers(*shape):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape)


def same(got, want):
    assert tuple(got.shape) == np.shape(want)
    np.testing.assert_array_equal(got.numpy(), want)


ARRAYS = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3).map(lambda shape: numbers(*shape))


# ------------------------------------------------------------------------------------------------------- stack
@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack", "row_stack"])
def test_stacks(name):
    reference = getattr(np, "vstack" if name == "row_stack" else name)
    for shapes in ([(), ()], [(3,), (3,)], [(2, 3), (2, 3)], [(2, 3, 1), (2, 3, 1)]):
        xs = [numbers(*s) + i for i, s in enumerate(shapes)]
        same(getattr(paddle, name)([tensor(x) for x in xs]), reference(xs))
    with pytest.raises(ValueError, match="stack: expected at least one tensor"):
        getattr(paddle, name)([])


@given(st.lists(ARRAYS, min_size=1, max_size=3))
def test_at_least(xs):
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        got, want = getattr(paddle, name)(*map(tensor, xs)), getattr(np, name)(*xs)
        for g, w in zip([got] if len(xs) == 1 else got, [want] if len(xs) == 1 else want, strict=True):
            same(g, w)


def test_concat_and_stack():
    x = numbers(2, 3)
    same(paddle.concat([tensor(x), tensor(x[:, :1])], axis=tensor(-1)), np.concatenate([x, x[:, :1]], 1))
    same(paddle.cat([tensor(x)]), x)
    same(paddle.stack([tensor(x), tensor(x)], axis=-1), np.stack([x, x], -1))
    assert paddle.concat([tensor([1], "int32"), tensor([0.5], "float32"), tensor([1], "int64")]).dtype == paddle.float32
    out = paddle.zeros([2, 2], "int64")
    assert paddle.stack([tensor([1, 2]), tensor([3, 4])], out=out) is out and out.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match=r"out: expected a tensor like the result, i64\[4\], got i64\[2, 2\]"):
        paddle.concat([tensor([1, 2]), tensor([3, 4])], out=out)


def test_block_diag_and_pairings():
    blocks = [numbers(2, 1), numbers(3) + 5, np.array(7), numbers(0, 2)]
    want = np.zeros((4, 7), int)
    want[:2, :1], want[2, 1:4], want[3, 4] = blocks[0], blocks[1], 7
    same(paddle.block_diag([tensor(b) for b in blocks]), want)
    xs = [numbers(2), numbers(3) + 5, numbers(2) + 9]
    same(paddle.cartesian_prod([tensor(x) for x in xs]), np.array(list(itertools.product(*xs))))
    for r, repeat in ((1, False), (2, True), (3, False)):
        choose = itertools.combinations_with_replacement if repeat else itertools.combinations
        same(paddle.combinations(tensor(numbers(4)), r, repeat), np.array(list(choose(range(4), r))))
    assert paddle.combinations(tensor(numbers(1)), 2).shape == [0, 2]
    for indexing in ("ij", "xy"):
        for got, want in zip(paddle.meshgrid(*map(tensor, xs), indexing=indexing),
                             np.meshgrid(*xs, indexing=indexing), strict=True):
            same(got, want)
    check_gradients(lambda a, b: paddle.block_diag([a, b]) @ paddle.ones([3, 1], "float64"), numbers(2, 1) * 1.0,
                    numbers(1, 2) + 1.0)
    check_gradients(lambda a, b: paddle.cartesian_prod([a, b]), RNG.normal(size=2), RNG.normal(size=3))


# ------------------------------------------------------------------------------------------------------- apart
@given(st.integers(0, 9), st.integers(1, 4) | st.lists(st.integers(-3, 12), max_size=3))
def test_tensor_split(n, how):
    x = numbers(n, 2)
    for axis, name in ((0, "vsplit"), (0, "tensor_split")):
        want = np.array_split(x, how, axis)
        for g, w in zip(getattr(paddle, name)(tensor(x), how), want, strict=True):
            same(g, w)
    for g, w in zip(paddle.hsplit(tensor(x.T), how), np.array_split(x.T, how, 1), strict=True):
        same(g, w)


def test_split_unbind_chunk():
    x = numbers(2, 4, 3)
    for g, w in zip(paddle.unbind(tensor(x), -1), np.moveaxis(x, -1, 0), strict=True):
        same(g, w)
    assert [p.shape for p in paddle.chunk(tensor(x), 2, 1)] == [[2, 2, 3]] * 2
    assert [p.shape for p in tensor(x).split_with_sizes([1, 3], 1)] == [[2, 1, 3], [2, 3, 3]]
    assert [p.shape for p in paddle.dsplit(tensor(x), [1])] == [[2, 4, 1], [2, 4, 2]]
    assert paddle.unbind(paddle.zeros([0, 2])) == []
    with pytest.raises(ValueError, match="expected 3 slices along axis 0, got i64"):
        paddle.unstack(tensor(x), 0, num=3)
    with pytest.raises(ValueError, match="at least 3 dimensions"):
        paddle.dsplit(tensor(x[0]), 2)
    with using(ground=MetaOnly()), pytest.raises(ValueError, match="dimension of known size"):
        paddle.unbind(Tensor(Meta((symbol("N"),), np.dtype("float32"))))


# ------------------------------------------------------------------------------------------------------ repeat
@settings(max_examples=40)
@given(ARRAYS, st.lists(st.integers(0, 3), max_size=4))
def test_tile(x, times):
    same(paddle.tile(tensor(x), times), np.tile(x, times))
    same(tensor(x).repeat(*times) if len(times) > 1 else tensor(x).tile(times), np.tile(x, times))


@settings(max_examples=40)
@given(ARRAYS.filter(lambda x: x.ndim > 0), st.integers(0, 3), st.data())
def test_repeat_interleave(x, times, data):
    same(paddle.repeat_interleave(tensor(x), times), np.repeat(x, times))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    same(paddle.repeat_interleave(tensor(x), times, axis), np.repeat(x, times, axis))
    each = data.draw(st.lists(st.integers(0, 2), min_size=x.shape[axis], max_size=x.shape[axis]))
    if len(each) != 1:
        same(paddle.repeat_interleave(tensor(x), tensor(each, "int64"), axis), np.repeat(x, each, axis))


def test_gradients_of_repeating():
    x = RNG.normal(size=(2, 3))
    check_gradients(lambda x: paddle.tile(x, [2, 1, 2]), x)
    check_gradients(lambda x: paddle.repeat_interleave(x, 2, 1), x)
    check_gradients(lambda x: paddle.repeat_interleave(x, tensor([2, 0, 1]), 1), x)
    with pytest.raises(ValueError, match=r"expected 3 repeats.*got i64\[2\]"):
        paddle.repeat_interleave(tensor(x), tensor([1, 2]), 1)
    with pytest.raises(ValueError, match="expected 9 slices, got 6"):
        paddle.repeat_interleave(tensor(x), 2, 1, output_size=9)


# ------------------------------------------------------------------------------------------------------- order
@settings(max_examples=40)
@given(ARRAYS, st.data())
def test_moved_dimensions(x, data):
    if x.ndim:
        a, b = (data.draw(st.integers(-x.ndim, x.ndim - 1)) for _ in "ab")
        same(paddle.swapaxes(tensor(x), a, b), np.swapaxes(x, a, b))
        same(paddle.moveaxis(tensor(x), a, b), np.moveaxis(x, a, b))
    source, destination = (data.draw(st.permutations(range(x.ndim))) for _ in "ab")
    n = data.draw(st.integers(0, x.ndim))
    same(paddle.moveaxis(tensor(x), source[:n], destination[:n]), np.moveaxis(x, source[:n], destination[:n]))
    same(paddle.permute(tensor(x), source), np.transpose(x, source))


@settings(max_examples=40)
@given(ARRAYS, st.data())
def test_flip_roll_rot90(x, data):
    axes = data.draw(st.lists(st.integers(0, max(x.ndim - 1, 0)), unique=True, max_size=x.ndim))
    shifts = [data.draw(st.integers(-4, 4)) for _ in axes]
    same(paddle.flip(tensor(x), axes), np.flip(x, tuple(axes)))
    if axes:
        same(paddle.roll(tensor(x), shifts, axes), np.roll(x, shifts, tuple(axes)))
    same(paddle.roll(tensor(x), 2), np.roll(x, 2))
    if len(axes) >= 2:
        for k in range(-1, 5):
            same(paddle.rot90(tensor(x), k, axes[:2]), np.rot90(x, k, axes[:2]))


def test_shapes_of_symbols():
    with Constraints().collect(), using(ground=MetaOnly()):
        n, m = symbol("N"), symbol("M")
        x = Tensor(Meta((n, 3, m), np.dtype("float32")))
        assert tuple(paddle.tile(x, [2, 1, 3]).shape) == (2 * n, 3, 3 * m)
        assert tuple(paddle.repeat_interleave(x, 2, 0).shape) == (2 * n, 3, m)
        assert tuple(paddle.moveaxis(x, 0, -1).shape) == (3, m, n)
        assert tuple(paddle.vstack([x, x]).shape) == (2 * n, 3, m)
        assert tuple(paddle.ravel(x).shape) == (3 * n * m,)
        assert [tuple(t.shape) for t in paddle.unbind(x, 1)] == [(n, m)] * 3
        assert [tuple(t.shape) for t in paddle.meshgrid(x[:, 0, 0], x[0, 0])] == [(n, m)] * 2


@pytest.mark.parametrize(("call", "text"), [
    (lambda x: paddle.moveaxis(x, [0, 1], [0]), "as many different source as destination axes"),
    (lambda x: paddle.roll(x, [1, 2], 0), "as many shifts as axes"),
    (lambda x: paddle.rot90(x, 1, [0, 0]), "two different axes"),
    (lambda x: paddle.tile(x, [-1]), "at least 0"),
    (lambda x: paddle.meshgrid(x), "at most 1 dimension"),
    (lambda x: paddle.flip(x, 2), "axis 2 is out of range"),
    (lambda x: paddle.tensor_split(x, 0), "at least 1 part"),
    (lambda x: paddle.combinations(x), "1 dimension"),
])
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call(tensor(numbers(2, 3)))


def test_lists_of_numbers_may_be_given_as_arguments():
    x = tensor(numbers(1, 2, 3))
    assert x.reshape(3, -1).shape == [3, 2] and x.view(2, 3).shape == [2, 3] and x.permute(2, 0, 1).shape == [3, 1, 2]
    assert x.expand(4, 2, 3).shape == [4, 2, 3] and x.tile(2, 1).shape == [1, 4, 3]
    assert x.repeat(2, 1, 1).shape == [2, 2, 3]
    assert paddle.zeros(2, 3).shape == [2, 3] and paddle.ones(2, 3, dtype="int32").shape == [2, 3]
    assert x.transpose(0, -1).shape == [3, 2, 1] and x[0].transpose(0, 1).shape == [3, 2]
