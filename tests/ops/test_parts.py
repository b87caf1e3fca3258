"""Views (windows, strides, diagonals, other shapes and dtypes), parts that are replaced, and what makes tensors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    return np.arange(np.prod(shape, dtype=float)).reshape(shape)


def same(got, want):
    assert tuple(got.shape) == np.shape(want)
    np.testing.assert_array_equal(got.numpy(), want)


# ------------------------------------------------------------------------------------------------------- views
@given(st.sampled_from([(5,), (4, 3), (2, 3, 4)]), st.integers(1, 3), st.integers(1, 3), st.data())
def test_unfold(shape, size, step, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    size = min(size, shape[axis])
    x = numbers(*shape)
    at = axis % len(shape)
    windows = np.lib.stride_tricks.sliding_window_view(x, size, at)
    same(paddle.unfold(tensor(x), axis, size, step), windows[(slice(None),) * at + (slice(None, None, step),)])


@given(st.sampled_from([(3, 3), (2, 4), (4, 2), (2, 3, 4)]), st.integers(-3, 3), st.data())
def test_diagonals(shape, offset, data):
    a = data.draw(st.integers(0, len(shape) - 1))
    b = data.draw(st.integers(-len(shape), -1).filter(lambda b: b + len(shape) != a))
    x = numbers(*shape)
    want = np.diagonal(x, offset, a, b)
    same(paddle.diagonal(tensor(x), offset, a, b), want)
    y = -1.0 - numbers(*want.shape)
    written = x.copy()
    view = np.diagonal(written, offset, a, b)
    view.flags.writeable = True
    view[...] = y
    same(paddle.diagonal_scatter(tensor(x), tensor(y), offset, a, b), written)
    if len(shape) == 2:
        same(paddle.diag(tensor(x), offset), np.diag(x, offset))
        same(paddle.diag(tensor(x[0]), offset, padding_value=0), np.diag(x[0], offset))
        same(paddle.diagflat(tensor(x), offset), np.diagflat(x, offset))


def test_diag_embed():
    x = numbers(2, 3)
    for offset, dim1, dim2 in ((0, -2, -1), (1, 0, 2), (-1, 2, 0), (-2, 1, 0)):
        got = paddle.diag_embed(tensor(x), offset, dim1, dim2)
        same(paddle.diagonal(got, offset, dim1, dim2), x)
        assert float(got.sum()) == x.sum() and max(got.shape) == 3 + abs(offset)
    check_gradients(lambda x: paddle.diag_embed(x, 1) ** 2.0, RNG.normal(size=(2, 2)))
    assert paddle.diag(tensor([1, 2]), -1, 9).tolist() == [[9, 9, 9], [1, 9, 9], [9, 2, 9]]


@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(wrap):
    for shape in ((3, 3), (2, 4), (7, 3), (3, 3, 3)):
        want = numbers(*shape)
        np.fill_diagonal(want, -1.0, wrap)
        x = tensor(numbers(*shape))
        assert x.fill_diagonal_(-1.0, wrap=wrap) is x
        same(x, want)
    x = tensor(np.zeros((2, 3)))
    x.fill_diagonal_(5.0, offset=1)
    assert x.tolist() == [[0, 5, 0], [0, 0, 5]]
    assert x.fill_diagonal_tensor_(tensor([1.0, 2.0])).tolist() == [[1, 5, 0], [0, 2, 5]]
    with pytest.raises(ValueError, match="equal sizes and offset 0"):
        tensor(np.zeros((2, 3, 2))).fill_diagonal_(1.0)


VIEWS = {
    "unfold": lambda x: paddle.unfold(x, 0, 2, 2),
    "as_strided": lambda x: paddle.as_strided(x, [2, 2], [3, 1], 8),
    "diagonal": lambda x: paddle.diagonal(x, 1),
    "view": lambda x: paddle.view(x, [3, -1]),
    "view_as": lambda x: paddle.view_as(x, paddle.zeros([6, 2])),
    "unflatten": lambda x: paddle.unflatten(x, 0, [2, -1]),
    "swapaxes": lambda x: paddle.swapaxes(x, 0, 1),
    "narrow": lambda x: paddle.narrow(x, 1, -2, 2),
    "crop": lambda x: paddle.crop(x, [2, -1], [1, 0]),
    "unbind": lambda x: paddle.unbind(x, 1)[2],
    "tensor_split": lambda x: paddle.tensor_split(x, 2)[1],
    "ravel": paddle.ravel,
}


@pytest.mark.parametrize("name", VIEWS)
def test_writes_through_views_are_seen(name):
    """Eagerly and in a program, and the gradient knows of them."""
    def written(x):
        y = x * 2.0
        view = VIEWS[name](y)
        view.multiply_(view)
        view[0] = 0.5
        return y + VIEWS[name](y).sum()

    x = numbers(4, 3)
    where = VIEWS[name](tensor(x)).numpy().astype(int)              # which elements the view has
    want = x * 2
    want.reshape(-1)[where.reshape(-1)] **= 2
    want.reshape(-1)[where[0].reshape(-1)] = 0.5
    want += want.reshape(-1)[where.reshape(-1)].sum()
    np.testing.assert_allclose(written(tensor(x)).numpy(), want)
    np.testing.assert_allclose(paddle.jit.to_static(written)(tensor(x)).numpy(), want)
    check_gradients(lambda x: VIEWS[name](x) ** 2.0, RNG.normal(size=(4, 3)))


def test_view_as_another_dtype():
    x = paddle.to_tensor([1.0, -2.0], "float32")
    bits = x.view("int32")
    assert bits.tolist() == np.array([1.0, -2.0], np.float32).view(np.int32).tolist()
    bits[0] = 0
    assert x.tolist() == [0.0, -2.0] and x.view(paddle.float32) is x
    assert paddle.ones([2, 3]).view("uint8").shape == [2, 12] and paddle.ones([2]).view("float64").shape == [1]
    with pytest.raises(ValueError, match=r"view of f32\[3\] as float64"):
        paddle.ones([3]).view("float64")


# ----------------------------------------------------------------------------------------------- in-place forms
def test_forms_that_change_the_shape():
    x = tensor(numbers(2, 3))
    y = x * 1.0
    for name, args, shape in (("reshape_", ([3, 2],), [3, 2]), ("unsqueeze_", ([0, -1],), [1, 3, 2, 1]),
                              ("squeeze_", (), [3, 2]), ("t_", (), [2, 3]),
                              ("transpose_", ([1, 0],), [3, 2]), ("flatten_", (), [6])):
        assert getattr(y, name)(*args) is y and y.shape == shape
    assert y.tolist() == [0, 1, 2, 3, 4, 5]                          # two transposes

    def f(x):
        y = x * x
        y.reshape_([3, 2]).unsqueeze_(0)
        return y * y
    check_gradients(f, RNG.normal(size=(2, 3)))
    leaf = tensor(numbers(2))
    leaf.stop_gradient = False
    with pytest.raises(RuntimeError, match="reshape_ on leaf"):
        leaf.reshape_([1, 2])


def test_triangles_in_place():
    x = tensor(np.ones((2, 3)))
    assert x.tril_() is x and x.tolist() == [[1, 0, 0], [1, 1, 0]]
    assert x.triu_(1).tolist() == [[0, 0, 0], [0, 0, 0]]


# ------------------------------------------------------------------------------------------------------- parts
def test_parts_replaced():
    x = np.zeros((3, 5))
    value = RNG.normal(size=(3, 2))
    want = x.copy()
    want[:, 1:4:2] = value
    same(paddle.slice_scatter(tensor(x), tensor(value), [1], [1], [4], [2]), want)
    want = x.copy()
    want[:, -1] = value[:, 0]
    same(paddle.select_scatter(tensor(x), tensor(value[:, 0]), 1, -1), want)
    same(paddle.crop(tensor(numbers(3, 5)), tensor([2, 2]), tensor([1, 3])), numbers(3, 5)[1:3, 3:5])
    check_gradients(lambda x, v: paddle.slice_scatter(x, v, [1], [1], [4], [2]), x, value)
    check_gradients(lambda x, v: paddle.select_scatter(x, v, 0, 1), x, np.ones(5))


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: paddle.as_strided(x, [3, 3], [3, 1]), ValueError, r"f64\[2, 3\], of 6 elements.*up to element 8"),
    (lambda x: paddle.as_strided(x, [2], [1], 4), ValueError, "whole elements of 8 bytes, got 4"),
    (lambda x: paddle.as_strided(x, [2], [1, 1]), ValueError, "a stride for each dimension"),
    (lambda x: paddle.unfold(x, 0, 3, 1), ValueError, "expected at least 3, got 2"),
    (lambda x: paddle.unfold(x, 0, 2, 0), ValueError, "a step of at least 1"),
    (lambda x: paddle.diagonal(x, 0, 0, 0), ValueError, "two different axes"),
    (lambda x: paddle.diag(x.unsqueeze(0)), ValueError, "1 or 2 dimensions"),
    (lambda x: paddle.unflatten(x, 1, [2, 2]), ValueError, "sizes that multiply to 3"),
    (lambda x: paddle.unflatten(x, 1, [2, -1]), ValueError, "unflatten of axis 1"),
    (lambda x: paddle.narrow(x, 1, 2, 2), ValueError, "narrow: 2 slices from 2"),
    (lambda x: paddle.crop(x, [3, 1]), ValueError, "crop of f64"),
    (lambda x: paddle.select_scatter(x, x[0], 0, 2), IndexError, "-2 .. 1"),
    (lambda x: paddle.slice_scatter(x, x, [0, 0], [0], [1], [1]), ValueError, "different axes"),
    (lambda x: paddle.eye(-1), ValueError, "at least 0"),
    (lambda x: paddle.zeros([1], device="gpu:0"), ValueError, "the only one that minipd uses, got 'gpu:0'"),
])
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(tensor(np.zeros((2, 3))))


# ------------------------------------------------------------------------------------------------------ making
def test_even_steps():
    same(paddle.linspace(tensor(0), tensor(10), 5, "int32"), [0, 2, 5, 7, 10])
    assert paddle.linspace(0, 1, 1).tolist() == [0.0] and paddle.linspace(0, 1, 0).shape == [0]
    np.testing.assert_allclose(paddle.logspace(0, 10, 5, 2).numpy(), np.logspace(0, 10, 5, base=2), rtol=1e-6)
    assert paddle.logspace(0, 3, 4, 2, "int32").tolist() == [1, 2, 4, 8]
    assert paddle.range(3, 9, 2.0).tolist() == [3, 5, 7, 9]
    assert paddle.range(5, dtype="int32").tolist() == [0, 1, 2, 3, 4, 5]
    assert paddle.range(0, -2, -1).tolist() == [0, -1, -2] and paddle.range(1, 0).shape == [0]


def test_matrices():
    same(paddle.eye(2, 3, "int32"), np.eye(2, 3))
    for row, column, offset in ((3, 4, 0), (4, 2, -1), (2, 2, 2)):
        same(paddle.tril_indices(row, column, offset), np.stack(np.tril_indices(row, offset, column)))
        same(paddle.triu_indices(row, column, offset), np.stack(np.triu_indices(row, offset, column)))
    x = np.array([1.0, 2.0, -3.0])
    for n, increasing in ((None, False), (2, True), (0, False), (5, False)):
        same(paddle.vander(tensor(x), n, increasing), np.vander(x, n, increasing))


def test_options_of_what_makes_tensors():
    out = paddle.ones([2, 2])
    assert paddle.zeros([2, 2], out=out) is out and out.tolist() == [[0, 0], [0, 0]]
    for made in (paddle.eye(2, requires_grad=True), paddle.full([1], 2.0, device="cpu", requires_grad=True),
                 paddle.ones_like(out, requires_grad=True, pin_memory=True)):
        assert not made.stop_gradient
    assert paddle.arange(3.0, device=None).stop_gradient


# ------------------------------------------------------------------------------------------------ while tracing
def test_shapes_of_symbols():
    with Constraints().collect(), using(ground=MetaOnly()):
        n = symbol("N")
        x = Tensor(Meta((n, n, 4), np.dtype("float32")))
        assert tuple(paddle.diagonal(x, 1).shape) == (4, n - 1)
        assert tuple(paddle.diag_embed(x[0, 0, :]).shape) == (4, 4) and tuple(paddle.diag(x[0, :, 0]).shape) == (n, n)
        assert tuple(paddle.unflatten(x, 2, [2, -1]).shape) == (n, n, 2, 2)
        assert tuple(paddle.unfold(x, 2, 2, 1).shape) == (n, n, 3, 2)
        assert tuple(paddle.flip(x, 0).shape) == (n, n, 4)
        with pytest.raises(ValueError, match="length of the diagonal would depend"):
            paddle.diagonal(x, 0, 0, 2)


def test_windows_of_what_is_not_contiguous_are_copies_in_a_program_too():
    def f(x):
        y = x.t() * 2.0
        return paddle.unfold(y, 0, 2, 1), paddle.as_strided(y, [2, 3], [3, 2], 8)

    x = tensor(numbers(4, 3))
    for got, want in zip(paddle.jit.to_static(f)(x), f(x), strict=True):
        same(got, want.numpy())
    same(f(x)[1], numbers(4, 3).T.reshape(-1)[[[1, 3, 5], [4, 6, 8]]] * 2)
