"""Interpolation, against products with matrices."""

import math

import numpy as np
import pytest

import minipd as paddle
from minipd.nn import functional as F
from tests.nn.finite import check_gradients
from tests.ops.cases_image import resampling

RNG = np.random.default_rng(0)
FORMATS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
SIZES = (4, 5, 3)


def t(a, **how):
    return paddle.to_tensor(a, **how)


def floats(*shape):
    return RNG.uniform(-1, 1, shape)


def resampled(x, sizes, mode, **how):
    for axis, size in enumerate(sizes, 2):
        x = np.moveaxis(np.tensordot(resampling(x.shape[axis], size, mode, **how), x, (1, axis)), 0, axis)
    return x


@pytest.mark.parametrize("mode, kind, n", [
    ("nearest", "nearest", 1), ("nearest", "nearest", 2), ("linear", "linear", 1), ("bilinear", "linear", 2),
    ("trilinear", "linear", 3), ("bicubic", "cubic", 2)])
def test_interpolation(mode, kind, n):
    x, sizes = floats(1, 2, *SIZES[:n]), [7, 2, 6][:n]
    want = resampled(x, sizes, kind, align_mode=0 if kind == "linear" else 1)
    np.testing.assert_allclose(F.interpolate(t(x), sizes, mode=mode).numpy(), want, rtol=1e-11, atol=1e-12)
    turned = F.interpolate(t(np.moveaxis(x, 1, -1)), sizes, mode=mode, data_format=FORMATS[n][1].replace("NLC", "NWC"))
    np.testing.assert_array_equal(np.moveaxis(turned.numpy(), -1, 1), F.interpolate(t(x), sizes, mode=mode).numpy())
    if kind != "nearest":
        np.testing.assert_allclose(F.interpolate(t(x), sizes, mode=mode, align_corners=True).numpy(),
                                   resampled(x, sizes, kind, align_corners=True), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(F.interpolate(t(x), sizes, mode=mode, align_mode=1).numpy(),
                                   resampled(x, sizes, kind), rtol=1e-11, atol=1e-12)


def test_factors_and_sizes():
    x = t(floats(1, 1, 6, 10))
    assert F.interpolate(x, scale_factor=[2, 1]).shape == [1, 1, 12, 10]
    assert F.interpolate(x, scale_factor=1.7, mode="bilinear").shape == [1, 1, 10, 17]
    assert F.interpolate(x, size=paddle.to_tensor([3, 4])).shape == [1, 1, 3, 4]
    assert F.interpolate(x, size=[6, 10], mode="bicubic").tolist() == x.tolist()
    factor = F.interpolate(x, scale_factor=1.7, mode="bilinear").numpy()
    rounded = F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True).numpy()
    np.testing.assert_array_equal(rounded, F.interpolate(x, [10, 17], mode="bilinear").numpy())
    assert not np.array_equal(factor, rounded)
    np.testing.assert_allclose(F.interpolate(x, [3, 5], mode="area").numpy(), F.avg_pool2d(x, 2).numpy(), rtol=1e-12)


def test_antialiasing_weighs_every_element():
    x = np.zeros((1, 1, 8, 1))
    x[0, 0, 3] = 1
    plain, smooth = (F.interpolate(t(x), [2, 1], mode="bilinear", antialias=a).numpy().ravel() for a in (False, True))
    assert plain.tolist() == [0, 0] and smooth[0] > smooth[1] > 0
    for mode in ("bilinear", "bicubic"):
        flat = F.interpolate(paddle.ones([1, 1, 9, 7]), [4, 3], mode=mode, antialias=True)
        np.testing.assert_allclose(flat.numpy(), 1, rtol=1e-6)


def test_infinity_stays_where_it_is():
    x = t([[[1.0, float("inf"), 2.0, 3.0]]])
    assert F.interpolate(x, scale_factor=2).tolist() == [[[1, 1, math.inf, math.inf, 2, 2, 3, 3]]]
    assert F.avg_pool1d(x, 2).tolist() == [[[math.inf, 2.5]]]


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area"])
def test_gradients_of_interpolation(mode):
    check_gradients(lambda x: F.interpolate(x, [5, 2], mode=mode), floats(1, 1, 3, 4))


@pytest.mark.parametrize("shape, how, says", [
    ([1, 1, 4], {"size": [2], "mode": "bilinear"}, "x of 4 dimensions for mode 'bilinear'"),
    ([1, 1, 4], {}, "got neither"), ([1, 1, 4], {"size": [2], "scale_factor": 2}, "got both"),
    ([1, 1, 4], {"size": [2], "mode": "lanczos"}, "expected mode 'nearest', 'linear'"),
    ([1, 1, 4], {"size": [2, 2]}, "1 spatial sizes"), ([1, 1, 4], {"scale_factor": 0.1}, "from 1 to 16777216"),
    ([1, 1, 4], {"scale_factor": -1}, "scale_factor above 0"), ([1, 1, 0], {"size": [2]}, "not empty"),
    ([1, 1, 4], {"size": [2], "align_corners": True}, "no corners to align"),
    ([1, 1, 4], {"size": [2], "data_format": "NHWC"}, "data_format 'NCW'"),
    ([1, 1, 4], {"size": [2], "align_mode": 2}, "align_mode 0 or 1"),
    ([1, 1, 4], {"size": [2], "antialias": True}, "antialias=False"),
])
def test_errors_of_interpolation(shape, how, says):
    with pytest.raises(ValueError, match=says):
        F.interpolate(paddle.ones(shape), **how)
