"""Strides: of a row-major tensor, and of its elements under another shape, where numpy is the oracle."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from minipd.framework.layout import row_major, view_strides

SIZES = st.lists(st.integers(0, 4), max_size=4)


def read(memory, first, shape, strides):
    return as_strided(memory[first:], shape, [s * memory.itemsize for s in strides])


@given(SIZES)
def test_row_major_strides_are_those_of_a_new_array(shape):
    array = np.empty(shape, np.int8)
    if array.size:
        sizes = [(n, s) for n, s in zip(shape, row_major(tuple(shape)), strict=True) if n > 1]
        assert sizes == [(n, s) for n, s in zip(shape, array.strides, strict=True) if n > 1]


@st.composite
def views(draw):
    """A view of the numbers 0, 1, ...: permuted, sliced with any step, expanded; and a shape of as many elements."""
    x = np.arange(500, dtype=np.int64)[:draw(st.sampled_from([1, 4, 6, 12, 24, 36]))]
    divisors = draw(st.permutations([n for n in (1, 2, 3, 4, 6) if x.size % n == 0]))
    x = x.reshape(divisors[0], -1)
    if draw(st.booleans()):
        x = x.reshape(*x.shape[:1], draw(st.sampled_from([n for n in (1, 2, 3) if x.shape[1] % n == 0])), -1)
    x = x.transpose(draw(st.permutations(range(x.ndim))))
    steps = st.sampled_from([1, 1, 1, 2, -1, -2])
    x = x[tuple(slice(None, None, draw(steps)) for _ in x.shape)]
    if draw(st.booleans()):
        x = np.broadcast_to(x[..., None], (*x.shape, draw(st.integers(0, 3))))
    parts, left = [], x.size
    while left > 1 and len(parts) < 4:
        parts.append(draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0])))
        left //= parts[-1]
    return x, tuple(draw(st.permutations([*parts, left])))


@given(views())
def test_a_view_is_found_exactly_where_numpy_finds_one(drawn):
    x, target = drawn
    strides = view_strides(x.shape, tuple(s // x.itemsize for s in x.strides), target)
    try:
        want = np.reshape(x, target, copy=False)
    except ValueError:
        assert strides is None
        return
    assert strides is not None and len(strides) == len(target)
    if x.size:
        memory = np.arange(36, dtype=np.int64)
        np.testing.assert_array_equal(read(memory, int(want.flat[0]), target, strides), want)
