"""Oracle: number the elements, cut the windows out of the numbers one by one, and add up by number."""

import itertools

import numpy as np

import minipd as paddle
from minipd.nn import functional as F
from minipd.ops.windows import add_columns
from tools.course.checking import check


def added(columns, size, paddings, strides, dilations, before=0.0):
    """columns [C, *kernel, N, *sizes], added back into images [N, C, *size], a buffer that holds `before`."""
    columns = np.array(columns, "float64")

    def run():
        n = len(size)
        out = np.full((columns.shape[1 + n], columns.shape[0], *size), before)
        add_columns(np, out, columns, paddings, strides, dilations)
        return out
    return run


def oracle(columns, size, paddings, strides, dilations):
    n = len(size)
    kernel, sizes = columns.shape[1:1 + n], columns.shape[2 + n:]
    channels, images = columns.shape[0], columns.shape[1 + n]
    out = np.zeros((images, channels, *size))
    for c, i in itertools.product(range(channels), range(images)):
        for k in np.ndindex(*kernel):
            for w in np.ndindex(*sizes):
                at = [w[d] * strides[d] + k[d] * dilations[d] - paddings[2 * d] for d in range(n)]
                if all(0 <= a < m for a, m in zip(at, size, strict=True)):
                    out[(i, c, *at)] += columns[(c, *k, i, *w)]
    return out


def one(columns):
    """One image of one channel: columns[0, k, 0, w] is element k of window w."""
    return [[[row] for row in columns]]


def test_windows_that_overlap():
    check([[[1, 12, 23, 30]]], added(one([[1, 2, 3], [10, 20, 30]]), (4,), (0, 0), (1,), (1,)),
          "windows [1, 10], [2, 20], [3, 30] of two elements, each one further than the one before, into 4 elements")


def test_what_was_in_the_buffer_is_gone():
    check([[[1, 10, 2, 20, 0]]], added(one([[1, 2], [10, 20]]), (5,), (0, 0), (2,), (1,), before=99.0),
          "windows [1, 10], [2, 20], each two further (stride 2), into a buffer of 5 elements that holds 99 everywhere")


def test_a_stride_that_leaves_gaps():
    check([[[1, 10, 0, 2, 20]]], added(one([[1, 2], [10, 20]]), (5,), (0, 0), (3,), (1,)),
          "windows [1, 10], [2, 20], each three further (stride 3), into 5 elements")


def test_a_dilation():
    check([[[1, 2, 10, 20]]], added(one([[1, 2], [10, 20]]), (4,), (0, 0), (1,), (2,)),
          "windows [1, 10], [2, 20], whose elements stand two apart (dilation 2), into 4 elements")


def test_the_padding_is_dropped():
    check([[[12, 23]]], added(one([[1, 2, 3], [10, 20, 30]]), (2,), (1, 1), (1,), (1,)),
          "windows [1, 10], [2, 20], [3, 30] over 2 elements with one of padding on either side")
    check([[[12, 23, 30]]], added(one([[1, 2, 3], [10, 20, 30]]), (3,), (1, 0), (1,), (1,)),
          "windows [1, 10], [2, 20], [3, 30] over 3 elements with one of padding before them (paddings (1, 0))")
    check([[[1, 12, 23]]], added(one([[1, 2, 3], [10, 20, 30]]), (3,), (0, 1), (1,), (1,)),
          "windows [1, 10], [2, 20], [3, 30] over 3 elements with one of padding behind them (paddings (0, 1))")


def test_images_and_channels():
    columns = np.array([[[[1.0], [2.0]]], [[[10.0], [20.0]]], [[[100.0], [200.0]]]])      # [3 channels, 1, 2 images, 1]
    check([[[1], [10], [100]], [[2], [20], [200]]], added(columns, (1,), (0, 0), (1,), (1,)),
          "three channels of two images, windows of one element: columns [3, 1, 2, 1] into out [2, 3, 1]")


def test_the_gradient_of_a_convolution():
    x = paddle.ones([1, 1, 3, 3])
    x.stop_gradient = False
    F.conv2d(x, paddle.to_tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).sum().backward()
    check([[[[1, 3, 2], [4, 10, 6], [3, 7, 4]]]], x.grad,
          "x.grad of conv2d(x, [[1, 2], [3, 4]]).sum(), x a 3 x 3 image: the middle meets every weight")


def test_at_random():
    rng = np.random.default_rng(0)
    for n in (1, 2, 2, 2, 3):
        kernel, sizes = rng.integers(1, 4, n), rng.integers(1, 4, n)
        strides, dilations = (tuple(map(int, rng.integers(1, 4, n))) for _ in range(2))
        paddings = tuple(map(int, rng.integers(0, 2, 2 * n)))
        reach = (sizes - 1) * strides + (kernel - 1) * dilations + 1
        size = tuple(max(1, int(r - b - a + more)) for r, b, a, more in
                     zip(reach, paddings[::2], paddings[1::2], rng.integers(0, 2, n), strict=True))
        columns = rng.integers(-4, 5, (2, *kernel, 3, *sizes)).astype("float64")
        check(oracle(columns, size, paddings, strides, dilations), added(columns, size, paddings, strides, dilations),
              f"columns {columns.shape} into images of {size}, paddings {paddings}, strides {strides}, dilations "
              f"{dilations}")
