"""Images rearranged, and seen through grids: functions and layers against loops."""

import itertools
import math

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.nn import functional as F
from tests.nn.finite import check_gradients

RNG = np.random.default_rng(0)


def t(a, **how):
    return paddle.to_tensor(a, **how)


def floats(*shape):
    return RNG.uniform(-1, 1, shape)


def test_pixels_and_channels():
    x = floats(2, 8, 3, 2)
    up = F.pixel_shuffle(t(x), 2).numpy()
    for n, c, h, w in np.ndindex(*up.shape):
        assert up[n, c, h, w] == x[n, c * 4 + (h % 2) * 2 + w % 2, h // 2, w // 2]
    np.testing.assert_array_equal(F.pixel_unshuffle(t(up), 2).numpy(), x)
    turned = F.pixel_shuffle(t(np.moveaxis(x, 1, -1)), 2, "NHWC").numpy()
    np.testing.assert_array_equal(np.moveaxis(turned, -1, 1), up)
    mixed = F.channel_shuffle(t(x), 4).numpy()
    np.testing.assert_array_equal(mixed, x[:, [0, 2, 4, 6, 1, 3, 5, 7]])
    with pytest.raises(ValueError, match=r"the channels of x f64\[2, 8, 3, 2\]"):
        F.pixel_shuffle(t(x), 3)
    with pytest.raises(ValueError, match="a size of x"):
        F.pixel_unshuffle(t(x), 2)


def test_temporal_shift():
    x = floats(6, 5, 2, 1)
    got = F.temporal_shift(t(x), 3, 0.25).numpy()
    for frame, c in np.ndindex(6, 5):
        source = frame - 1 if c < 1 else frame + 1 if c < 2 else frame
        want = x[source, c] if 0 <= source < 6 and source // 3 == frame // 3 else 0
        np.testing.assert_array_equal(got[frame, c], np.zeros((2, 1)) + want)
    turned = F.temporal_shift(t(np.moveaxis(x, 1, -1)), 3, 0.25, data_format="NHWC").numpy()
    np.testing.assert_array_equal(np.moveaxis(turned, -1, 1), got)
    with pytest.raises(ValueError, match="the frames of x"):
        F.temporal_shift(t(x), 4)


def test_folding_what_was_unfolded_counts_how_many_windows_meet_an_element():
    x = floats(2, 3, 5, 4)
    how = {"kernel_sizes": [3, 2], "strides": [1, 2], "paddings": [1, 0, 0, 1], "dilations": 1}
    columns = F.unfold(t(x), **how)
    assert columns.shape == [2, 18, 4 * 2]
    times = F.fold(F.unfold(paddle.ones_like(t(x)), **how), [5, 4], **how).numpy()
    np.testing.assert_allclose(F.fold(columns, [5, 4], **how).numpy(), x * times, rtol=1e-12)
    with pytest.raises(ValueError, match="expected x of 4 columns"):
        F.fold(paddle.ones([1, 4, 5]), [3, 3], 2)


# ------------------------------------------------------------------------------------------------------ grids
def seen(x, at, padding_mode, align_corners, nearest):
    """One element of an image [C, *sizes] at coordinates (x first), by the definition."""
    positions = []
    for g, n in zip(reversed(at), x.shape[1:], strict=True):
        p = (g + 1) / 2 * (n - 1) if align_corners else ((g + 1) * n - 1) / 2
        low, high = (0, n - 1) if align_corners else (-0.5, n - 0.5)
        while padding_mode == "reflection" and not low <= p <= high:
            p = 2 * low - p if p < low else 2 * high - p
        positions.append(p if padding_mode == "zeros" else min(max(p, 0), n - 1))
    total = np.zeros(len(x))
    corners = [[round(p)] if nearest else [math.floor(p), math.floor(p) + 1] for p in positions]
    for corner in itertools.product(*corners):
        if all(0 <= i < n for i, n in zip(corner, x.shape[1:], strict=True)):
            weight = 1 if nearest else math.prod(1 - abs(p - i) for p, i in zip(positions, corner, strict=True))
            total += weight * x[(slice(None), *corner)]
    return total


@pytest.mark.parametrize("sizes", [(3, 4), (2, 3, 4)])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [True, False])
def test_grid_sample(sizes, mode, padding_mode, align_corners):
    n = len(sizes)
    x, grid = floats(2, 3, *sizes), RNG.uniform(-1.8, 1.8, (2, *(2, 3, 2)[:n], n))
    got = F.grid_sample(t(x), t(grid), mode, padding_mode, align_corners).numpy()
    assert got.shape == (2, 3, *grid.shape[1:-1])
    for at in np.ndindex(*grid.shape[:-1]):
        want = seen(x[at[0]], grid[at], padding_mode, align_corners, mode == "nearest")
        np.testing.assert_allclose(got[(at[0], slice(None), *at[1:])], want, rtol=1e-10, atol=1e-12)


def test_an_identity_map_gives_the_image_back():
    x = floats(2, 3, 4, 5)
    for align in (True, False):
        theta = t(np.tile([[1.0, 0, 0], [0, 1, 0]], (2, 1, 1)))
        grid = F.affine_grid(theta, [2, 3, 4, 5], align)
        np.testing.assert_allclose(F.grid_sample(t(x), grid, align_corners=align).numpy(), x, rtol=1e-12, atol=1e-12)
    grid = F.affine_grid(t([[[2.0, 0, 0.5], [0, 3, 0]]]), paddle.to_tensor([1, 1, 2, 2]), False)
    assert grid.tolist() == [[[[-0.5, -1.5], [1.5, -1.5]], [[-0.5, 1.5], [1.5, 1.5]]]]
    assert F.affine_grid(paddle.ones([1, 3, 4]), [1, 2, 2, 3, 4]).shape == [1, 2, 3, 4, 3]


def test_gradients_of_grids():
    grid = RNG.uniform(-1.3, 1.3, (1, 2, 3, 2))
    for mode in ("zeros", "border", "reflection"):
        check_gradients(lambda x, g, mode=mode: F.grid_sample(x, g, padding_mode=mode), floats(1, 2, 3, 4), grid)
    check_gradients(lambda theta: F.affine_grid(theta, [1, 1, 2, 3]), floats(1, 2, 3))


def test_grids_of_what_is_no_number():
    grid = t([[[[float("nan"), 0.0], [float("inf"), 0.0], [0.0, 0.0]]]])
    out = F.grid_sample(paddle.ones([1, 1, 3, 3]), grid, "nearest")
    assert out.numpy().ravel()[-1] == 1


@pytest.mark.parametrize("call", [
    lambda: F.grid_sample(paddle.ones([1, 1, 2, 2]), paddle.ones([1, 2, 2, 3])),
    lambda: F.grid_sample(paddle.ones([1, 1, 2, 2]), paddle.ones([2, 2, 2, 2])),
    lambda: F.grid_sample(paddle.ones([1, 1, 2, 2]), paddle.ones([1, 2, 2, 2]), mode="bicubic"),
    lambda: F.affine_grid(paddle.ones([1, 2, 3]), [1, 1, 2, 2, 2]),
])
def test_errors_of_grids(call):
    with pytest.raises(ValueError, match="(grid_sample|affine_grid): expected"):
        call()


# ----------------------------------------------------------------------------------------------------- layers
def test_layers():
    x = paddle.rand([1, 4, 3, 2])
    for layer, want, shape in (
            (nn.Upsample(size=[3, 4], mode="bilinear"),
             "Upsample(size=[3, 4], mode=bilinear, align_corners=False, align_mode=0, data_format=None)", [1, 4, 3, 4]),
            (nn.UpsamplingNearest2D(scale_factor=2), "UpsamplingNearest2D(scale_factor=2, data_format=NCHW)",
             [1, 4, 6, 4]),
            (nn.UpsamplingBilinear2D(size=[3, 4]), "UpsamplingBilinear2D(size=[3, 4], data_format=NCHW)", [1, 4, 3, 4]),
            (nn.PixelShuffle(2), "PixelShuffle(upscale_factor=2)", [1, 1, 6, 4]),
            (nn.PixelUnshuffle(1, "NHWC"), "PixelUnshuffle(downscale_factor=1, data_format=NHWC)", [1, 4, 3, 2]),
            (nn.ChannelShuffle(2), "ChannelShuffle(groups=2)", [1, 4, 3, 2]),
            (nn.Unfold(2, paddings=[1, 0]), "Unfold(kernel_size=2, dilation=1, padding=[1, 0], stride=1)", [1, 16, 4]),
            (nn.Pad2D([1, 2, 3, 4], mode="replicate"),
             "Pad2D(padding=[1, 2, 3, 4], mode=replicate, value=0.0, data_format=NCHW)", [1, 4, 10, 5]),
            (nn.ZeroPad2D(1), "ZeroPad2D(padding=[1, 1, 1, 1], mode=constant, value=0.0, data_format=NCHW)",
             [1, 4, 5, 4])):
        assert repr(layer) == want and layer(x).shape == shape
    assert nn.Fold([3, 2], 2)(nn.Unfold(2)(x)).shape == x.shape
    corners = nn.UpsamplingBilinear2D(size=[5, 3])(x).numpy()[..., ::4, ::2]
    np.testing.assert_allclose(corners, x.numpy()[..., ::2, ::1], rtol=1e-6)
