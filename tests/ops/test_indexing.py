"""`x[...]` and `x[...] = v` against numpy: values, gradients, errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import minipd as paddle
from minipd.framework.context import MetaOnly, using
from minipd.framework.dim import Constraints, substitute_all, symbol
from minipd.framework.meta import Meta
from minipd.framework.tensor import Tensor
from minipd.ops.slicing import normalized_part


def tensor(x):
    return paddle.to_tensor(x, stop_gradient=False)


@st.composite
def arrays_and_indices(draw):
    shape = draw(arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    index = draw(arrays.basic_indices(shape, max_dims=6, allow_newaxis=True, allow_ellipsis=True))
    return np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape), index


@given(arrays_and_indices())
def test_reading_and_its_gradient(drawn):
    array, index = drawn
    x = tensor(array)
    y = x[index]
    want = array[index]
    assert tuple(y.shape) == np.shape(want)
    np.testing.assert_array_equal(y.numpy(), want)
    g = np.random.default_rng(0).normal(size=np.shape(want))
    y.backward(paddle.to_tensor(g))
    expected = np.zeros_like(array)
    expected[index] = g
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@st.composite
def writes(draw):
    """An array, an index, and a value that broadcasts to the indexed part."""
    array, index = draw(arrays_and_indices())
    part = np.shape(array[index])
    shape = [1 if draw(st.booleans()) else n for n in part][draw(st.integers(0, len(part))):]
    return array, index, np.random.default_rng(1).normal(size=shape)


@given(writes())
def test_writing_and_its_gradients(drawn):
    array, index, value = drawn
    x, v = tensor(array), tensor(value)
    y = x * 1.0
    y[index] = v
    want = array.copy()
    want[index] = value
    np.testing.assert_array_equal(y.numpy(), want)
    g = np.random.default_rng(0).normal(size=array.shape)
    y.backward(paddle.to_tensor(g))
    kept = g.copy()
    kept[index] = 0
    np.testing.assert_array_equal(x.grad.numpy(), kept)
    lead = np.ndim(g[index]) - value.ndim
    stretched = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(value.shape) if n == 1)
    summed = np.asarray(g[index]).sum(axis=stretched, keepdims=True).reshape(value.shape)
    np.testing.assert_allclose(v.grad.numpy(), summed, rtol=1e-13, atol=1e-13)


@given(writes())
def test_writing_numbers_and_arrays(drawn):
    array, index, value = drawn
    for v in (2.5, 3, value):
        y = paddle.to_tensor(array)
        y[index] = v
        want = array.copy()
        want[index] = v
        np.testing.assert_array_equal(y.numpy(), want)


def test_strided_gradients_of_the_hard_case():
    """A step that jumps past the end, and negative ones (hard case A5: ml-explore/mlx #4444)."""
    x = tensor(np.zeros((2, 3)))
    loss = (x[0::2] * paddle.to_tensor([[1.0, 2.0, 3.0]], "float64")).sum()
    loss = loss + (x[1::2] * paddle.to_tensor([[100.0, 101.0, 102.0]], "float64")).sum()
    loss.backward()
    assert x.grad.tolist() == [[1, 2, 3], [100, 101, 102]]
    x = tensor(np.zeros(5))
    (x[4:0:-3] * paddle.to_tensor([10.0, 20.0], "float64")).sum().backward()
    assert x.grad.tolist() == [0, 20, 0, 0, 10]
    x = tensor(np.zeros(5))
    (x[4:2:-3] * 10.0).sum().backward()
    assert x.grad.tolist() == [0, 0, 0, 0, 10]


@pytest.mark.parametrize(("index", "error", "text"), [
    (5, IndexError, r"index 5 is out of range for axis 0 of f64\[2, 3\]"),
    (-3, IndexError, "index -3 is out of range"),
    ((0, 3), IndexError, "index 3 is out of range for axis 1"),
    ((0, 0, 0), IndexError, "at most 2 indices"),
    ((..., ...), IndexError, "at most one Ellipsis"),
    ("a", TypeError, "expected ints, slices, None, Ellipsis, int arrays or masks, got str"),
    (1.0, TypeError, "got float"),
    ([0.5, 1.0], TypeError, r"got f32\[2\]"),
    ([0, 2], IndexError, r"expected numbers in -2 \.\. 1, of a dimension of size 2, got 2"),
    ([[0], [1, 2]], TypeError, "got list"),
    (([0, 1], [0, 1, 2]), IndexError, r"cannot broadcast shapes \[2\] and \[3\]"),
    ([True, False, True], IndexError, r"mask b\[3\] of f64\[2, 3\]: expected a mask of shape \[2\]"),
])
def test_errors(index, error, text):
    x = paddle.to_tensor(np.zeros((2, 3)))
    with pytest.raises(error, match=text):
        x[index]
    with pytest.raises(error, match=text):
        x[index] = 1.0


def test_zero_steps_and_values_that_do_not_fit():
    x = paddle.to_tensor(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="step"):
        x[::0]
    for value in (np.zeros(2), np.zeros((2, 2, 3)), np.zeros((3, 3))):
        with pytest.raises(ValueError, match=r"broadcasts to the part written, of shape \[2, 3\], got shape"):
            x[:] = value
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]
    with pytest.raises(ValueError, match="expected a value of at most|expected a value that broadcasts"):
        x[0] = np.zeros((2, 3))


def test_tensors_as_indices():
    x = paddle.to_tensor(np.arange(6.0).reshape(2, 3))
    i = paddle.to_tensor(1)
    assert x[i].tolist() == [3, 4, 5]
    assert x[:, i:].tolist() == [[1, 2], [4, 5]]
    assert x[np.int64(1), 0].item() == 3


def test_writing_casts_to_the_tensors_dtype():
    x = paddle.to_tensor([1, 2, 3])
    x[0] = paddle.to_tensor(7.9)
    assert x.tolist() == [7, 2, 3] and x.dtype == paddle.int64


def symbolic(*shape):
    return Tensor(Meta(shape, np.dtype("float64")))


@pytest.mark.parametrize(("index", "shape", "fits", "fails"), [
    (slice(2, 5), ("Max(Min(S0,5),2)-2",), 0, None),    # as Python clips
    (slice(None, 5), ("Min(S0,5)",), 0, None),
    (slice(5, 2), ("0",), 0, None),
    (slice(-3, None), ("3",), 3, 2),
    (slice(1, -1), ("S0-2",), 2, 1),
    (slice(None, None), ("S0",), 0, None),
    (2, (), 3, 2),
    (-1, (), 1, 0),
])
def test_parts_of_a_symbolic_dimension_are_guarded(index, shape, fits, fails):
    """Python clips a slice to the dimension.  Where that would give a size that nothing else is equal to (S0-1, but not
    less than 0), the run checks that there is nothing to clip."""
    constraints = Constraints()
    with constraints.collect(), using(ground=MetaOnly()):
        y = symbolic(symbol("S0"))[index]
    assert tuple(map(str, y.shape)) == shape
    constraints.check({"S0": fits})
    assert substitute_all(tuple(y.shape), {"S0": fits}) == np.shape(np.zeros(fits)[index])
    if fails is not None:
        with pytest.raises(ValueError, match="of a dimension of size S0"):
            constraints.check({"S0": fails})


@pytest.mark.parametrize("start", [None, -3, 0, 2])
@pytest.mark.parametrize("stop", [None, -2, 0, 4])
@pytest.mark.parametrize("step", [-2, -1, 2, 3])
def test_steps_over_a_symbolic_dimension_are_pythons_for_every_size(start, stop, step):
    with Constraints().collect() as constraints, using(ground=MetaOnly()):
        size = symbolic(symbol("S0"))[start:stop:step].payload.shape[0]
    assert not len(constraints)
    for n in range(8):
        begin, end, _ = substitute_all(normalized_part(slice(start, stop, step), symbol("S0")), {"S0": n})
        assert substitute_all(size, {"S0": n}) == len(range(n)[start:stop:step])
        assert list(range(n))[begin:None if end < 0 else end:step] == list(range(n))[start:stop:step]
