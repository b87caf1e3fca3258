"""Pooling as functions and layers: against windows cut out by hand, formats, masks, gradients, and what is refused."""

import itertools

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.nn import functional as F
from tests.nn.finite import check_gradients
from tests.ops.cases_pooling import max_pool, pool, windows

RNG = np.random.default_rng(0)
LAST = {1: "NLC", 2: "NHWC", 3: "NDHWC"}
MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
SIZES = (7, 5, 4)


def t(a, **how):
    return paddle.to_tensor(a, **how)


def distinct(*shape):
    return RNG.permutation(float(np.prod(shape)) * np.arange(np.prod(shape))).reshape(shape)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("ceil", [False, True])
def test_maxima_and_averages(n, ceil):
    x = distinct(2, 3, *SIZES[:n])
    for kernel, stride, padding in ((2, None, 0), (3, 2, 1), (2, 3, 0)):
        how = windows((kernel,) * n, None if stride is None else (stride,) * n, padding, ceil_mode=ceil)
        out, mask = MAX[n](t(x), kernel, stride, padding, return_mask=True, ceil_mode=ceil)
        want, where = max_pool(x, **how)
        np.testing.assert_array_equal(out.numpy(), np.where(np.isinf(want), np.finfo(float).min, want))
        np.testing.assert_array_equal(mask.numpy(), where)
        assert mask.dtype == paddle.int32
        np.testing.assert_array_equal(MAX[n](t(x), kernel, stride, padding, ceil_mode=ceil).numpy(), out.numpy())
        for exclusive in (True, False):
            got = AVG[n](t(x), kernel, stride, padding, ceil_mode=ceil, exclusive=exclusive).numpy()
            np.testing.assert_allclose(got, pool(x, exclusive=exclusive, **how), rtol=1e-12)


@pytest.mark.parametrize("n", [2, 3])
def test_channels_last(n):
    x = distinct(2, 3, *SIZES[:n])
    turned = t(np.moveaxis(x, 1, -1))
    for function in (MAX[n], AVG[n]):
        got = function(turned, 2, padding=1, data_format=LAST[n]).numpy()
        np.testing.assert_array_equal(got, np.moveaxis(function(t(x), 2, padding=1).numpy(), 1, -1))
    adaptive = {2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}[n]
    got = adaptive(turned, 3, data_format=LAST[n]).numpy()
    np.testing.assert_allclose(got, np.moveaxis(adaptive(t(x), 3).numpy(), 1, -1), rtol=1e-15)


def test_same_padding_covers_the_image():
    x = distinct(1, 1, 5, 6)
    want, _ = max_pool(x, **windows((3, 3), (2, 2), (1, 1, 0, 1)))
    np.testing.assert_array_equal(F.max_pool2d(t(x), 3, 2, "SAME").numpy(), want)
    assert F.avg_pool2d(t(x), 3, 2, "VALID").shape == [1, 1, 2, 2]


def test_averages_by_hand():
    x = t(np.arange(1.0, 6).reshape(1, 1, 5))
    assert F.avg_pool1d(x, 2, 2, 1).tolist() == [[[1, 2.5, 4.5]]]
    assert F.avg_pool1d(x, 2, 2, 1, exclusive=False).tolist() == [[[0.5, 2.5, 4.5]]]
    assert F.avg_pool1d(x, 2, 2, ceil_mode=True, exclusive=False).tolist() == [[[1.5, 3.5, 5]]]
    assert np.isnan(F.avg_pool1d(x, 2, 2, 1, ceil_mode=True).numpy()[0, 0, -1])     # of padding only
    y = t(np.arange(4.0).reshape(1, 1, 2, 2))
    assert F.avg_pool2d(y, 2, divisor_override=3).tolist() == [[[[2]]]]


def test_adaptive_windows_share_out_the_image():
    x = distinct(2, 1, 7, 5)
    for out in itertools.product((1, 3, 7, 9), (2, 5, None)):
        sizes = (out[0], 5 if out[1] is None else out[1])
        got, mask = F.adaptive_max_pool2d(t(x), list(out), return_mask=True)
        want, where = max_pool(x, **windows(sizes, adaptive=True))
        np.testing.assert_array_equal(got.numpy(), want)
        np.testing.assert_array_equal(mask.numpy(), where)
        np.testing.assert_allclose(F.adaptive_avg_pool2d(t(x), list(out)).numpy(),
                                   pool(x, **windows(sizes, adaptive=True)), rtol=1e-12)
    assert F.adaptive_avg_pool1d(t(x[:, :, 0]), 1).shape == [2, 1, 1]
    np.testing.assert_allclose(F.adaptive_avg_pool3d(t(x[..., None]), 1).numpy().ravel(), x.mean((1, 2, 3)), rtol=1e-12)


def test_fractional_windows():
    x = t(np.arange(25.0).reshape(1, 1, 5, 5))
    got = F.fractional_max_pool2d(x, output_size=[3, 2], random_u=0.5)
    want = [[x.numpy()[0, 0, a - 1, b - 1] for b in (3, 5)] for a in (2, 4, 5)]
    assert got.tolist() == [[want]]
    paddle.seed(0)
    drawn = [F.fractional_max_pool2d(x, 3, kernel_size=2, return_mask=True)[1].tolist() for _ in range(20)]
    assert len(set(map(str, drawn))) > 1                                            # every call draws anew
    assert F.fractional_max_pool3d(paddle.rand([1, 2, 4, 5, 6]), [2, None, 3]).shape == [1, 2, 2, 5, 3]


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_norms(p):
    x = np.abs(distinct(2, 3, 7, 6)) + 1
    want = pool(x ** p, pooling_type="sum", **windows((3, 2), (2, 2))) ** (1 / p)
    np.testing.assert_allclose(F.lp_pool2d(t(x), p, (3, 2), 2).numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(F.lp_pool1d(t(x[:, :, 0]), p, 6).numpy()[..., 0], (x[:, :, 0] ** p).sum(-1) ** (1 / p),
                               rtol=1e-12)
    np.testing.assert_array_equal(F.lp_pool2d(t(x), float("inf"), 2).numpy(), F.max_pool2d(t(x), 2).numpy())


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling_puts_maxima_back(n):
    x = distinct(2, 3, *(4, 6, 2)[:n])
    out, mask = MAX[n](t(x), 2, return_mask=True)
    unpool = {1: F.max_unpool1d, 2: F.max_unpool2d, 3: F.max_unpool3d}[n]
    got = unpool(out, mask, 2).numpy()
    assert got.shape == x.shape
    np.testing.assert_array_equal(got, np.where(np.isin(x, out.numpy()), x, 0))
    larger = unpool(out, mask, 2, output_size=[s + 1 for s in x.shape[2:]])
    assert larger.shape == [2, 3, *(s + 1 for s in x.shape[2:])]
    with pytest.raises(ValueError, match="expected indices in 0 .. 0, the positions"):
        unpool(out, mask, 2, output_size=[1] * n)


def test_the_gradient_goes_to_the_first_of_equal_maxima():
    x = paddle.ones([1, 1, 3, 3])
    x.stop_gradient = False
    F.max_pool2d(x, 2, 1).sum().backward()
    assert x.grad.tolist() == [[[[1, 1, 0], [1, 1, 0], [0, 0, 0]]]]


def test_a_window_of_padding_only_has_no_gradient():
    x = t([[[1.0, 3.0, 2.0, 5.0, 4.0]]], stop_gradient=False)
    out, mask = F.max_pool1d(x, 2, 3, 1, return_mask=True, ceil_mode=True)
    assert out.tolist()[0][0][:2] == [1, 2] or mask.tolist() == [[[0, 3, -1]]]
    out[:, :, :2].sum().backward()
    assert x.grad.sum().item() == 2


def test_not_a_number_is_larger_than_any():
    x = t([[[1.0, float("nan"), 2.0, 3.0]]])
    out, mask = F.max_pool1d(x, 2, return_mask=True)
    assert np.isnan(out.numpy()[0, 0, 0]) and mask.tolist() == [[[1, 3]]]


@pytest.mark.parametrize("function", [
    lambda x: F.max_pool2d(x, 2, 1, [1, 0, 0, 1]),
    lambda x: F.avg_pool2d(x, (3, 2), 2, 1, ceil_mode=False, exclusive=False),
    lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    lambda x: F.adaptive_max_pool2d(x, (3, 5)),
    lambda x: F.lp_pool2d(x * x, 3.0, 2),
    lambda x: F.fractional_max_pool2d(x, 2, random_u=0.4),
    lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_mask=True), 2),
])
def test_gradients(function):
    check_gradients(function, 0.25 * RNG.permutation(40).reshape(1, 2, 5, 4) - 4.9)


def test_other_dtypes():
    for dtype in ("float16", "bfloat16", "float64"):
        x = paddle.ones([1, 1, 4, 4], dtype)
        for out in (F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 3)):
            assert out.dtype == x.dtype and out.numpy().astype(float).min() == 1
    assert F.max_pool1d(t([[[3, 7, 5]]]), 2, 1).tolist() == [[[7, 7]]]
    x = paddle.full([1, 1, 300, 300], 60000.0, "float16")
    assert F.adaptive_avg_pool2d(x, 1).item() == 60000                              # the sum would overflow
    with pytest.raises(TypeError, match="expected a floating tensor"):
        F.avg_pool1d(t([[[3, 7, 5]]]), 2)


def test_empty_batches():
    x = t(np.zeros((0, 2, 4, 4)), stop_gradient=False)
    for out in (F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.lp_pool2d(x, 2.0, 2)):
        assert out.shape == [0, 2, 2, 2]
        out.sum().backward()
    assert F.adaptive_max_pool2d(x, 3).shape == [0, 2, 3, 3]


@pytest.mark.parametrize("call, says", [
    (lambda x: F.max_pool2d(x, 5), "window that reaches over 5 elements along a dimension of size 3"),
    (lambda x: F.avg_pool2d(x, (2, 7), padding=1), "over 7 elements along a dimension of size 4 padded by 1 and 1"),
    (lambda x: F.max_pool2d(x, 2, 0), "stride to be an int of at least 1"),
    (lambda x: F.max_pool2d(x[0], 2), r"x of 4 dimensions"),
    (lambda x: F.max_pool2d(x, [2, 2, 2]), "kernel_size to be an int of at least 1, or 2 of them"),
    (lambda x: F.max_pool2d(x, 2, data_format="NCL"), "'NCHW' or 'NHWC'"),
    (lambda x: F.avg_pool2d(x, 2, divisor_override=0), "divisor_override other than 0"),
    (lambda x: F.adaptive_avg_pool2d(x, 0), "output_size to be an int of at least 1"),
    (lambda x: F.adaptive_avg_pool2d(x, 10**12), "output_size of at most 16777216"),
    (lambda x: F.adaptive_avg_pool2d(x, [1, 2, 3]), "output_size of one int, or 2 of them"),
    (lambda x: F.adaptive_avg_pool2d(x[:, :, :0], 1), "at least one element"),
    (lambda x: F.lp_pool2d(x, 0, 2), "norm_type other than 0"),
    (lambda x: F.fractional_max_pool2d(x, 2, random_u=1.5), "random_u between 0 and 1"),
    (lambda x: F.fractional_max_pool2d(x, 4), r"within x's \[3, 4\]"),
])
def test_errors_say_what_was_expected(call, says):
    with pytest.raises(ValueError, match=says):
        call(paddle.ones([1, 1, 3, 4]))


def test_what_layers_print():
    for layer, want in (
            (nn.MaxPool2D([2, 3], stride=[1, 2], padding=1), "MaxPool2D(kernel_size=[2, 3], stride=[1, 2], padding=1)"),
            (nn.AvgPool1D(2, 3), "AvgPool1D(kernel_size=2, stride=3, padding=0)"),
            (nn.AdaptiveAvgPool3D([1, None, 3]), "AdaptiveAvgPool3D(output_size=[1, None, 3])"),
            (nn.AdaptiveMaxPool1D(3, True), "AdaptiveMaxPool1D(output_size=3, return_mask=True)"),
            (nn.MaxUnPool2D(2), "MaxUnPool2D(output_size=None)"),
            (nn.LPPool1D(2, 3), "LPPool1D(norm_type=2.0, kernel_size=3, stride=None, padding=0)"),
            (nn.LPPool2D(2, 3), "LPPool2D(norm_type=2.0, kernel_size=3, stride=3, padding=0)"),
            (nn.FractionalMaxPool2D(3), "FractionalMaxPool2D(output_size=3, return_mask=False)")):
        assert repr(layer) == want


def test_layers_call_their_functions():
    x = paddle.rand([1, 2, 6, 6])
    out, mask = nn.MaxPool2D(2, return_mask=True)(x)
    assert out.tolist() == F.max_pool2d(x, 2).tolist()
    assert nn.MaxUnPool2D(2)(out, mask).shape == [1, 2, 6, 6]
    assert nn.MaxUnPool2D(2)(out, mask, output_size=[7, 6]).shape == [1, 2, 7, 6]
    layer = nn.AvgPool2D(2, ceil_mode=True, exclusive=False, divisor_override=2, data_format="NHWC")
    assert layer(x).shape == [1, 1, 3, 6]
    assert nn.AdaptiveMaxPool2D((3, None))(x=x).shape == [1, 2, 3, 6]
    assert nn.FractionalMaxPool2D(3, kernel_size=2)(x).shape == [1, 2, 3, 3]
    y = paddle.rand([1, 2, 4, 6, 6])
    for layer in (nn.MaxPool3D(2), nn.AvgPool3D(2), nn.AdaptiveAvgPool3D([2, 3, 3]), nn.AdaptiveMaxPool3D([2, 3, 3]),
                  nn.FractionalMaxPool3D([2, 3, 3])):
        assert layer(y).shape == [1, 2, 2, 3, 3]
    z = paddle.rand([1, 2, 6])
    for layer in (nn.MaxPool1D(2), nn.AvgPool1D(2), nn.LPPool1D(2, 2), nn.AdaptiveAvgPool1D(3),
                  nn.AdaptiveMaxPool1D(3)):
        assert layer(z).shape == [1, 2, 3]
    assert nn.MaxUnPool1D(2)(*F.max_pool1d(z, 2, return_mask=True)).shape == [1, 2, 6]
    assert nn.MaxUnPool3D(2)(*F.max_pool3d(y, 2, return_mask=True)).shape == [1, 2, 4, 6, 6]
