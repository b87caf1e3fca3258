"""Convolutions as functions and layers: against loops, as matrices, and what they refuse."""

import itertools

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.nn import functional as F
from tests.nn.finite import check_gradients
from tests.ops.cases_conv import conv, conv_transpose

RNG = np.random.default_rng(0)
NAMES = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
BACK = {1: F.conv1d_transpose, 2: F.conv2d_transpose, 3: F.conv3d_transpose}


def t(a, **how):
    return paddle.to_tensor(a, **how)


def floats(*shape):
    return RNG.uniform(-1, 1, shape)


def last(a):
    """Channels last."""
    return np.moveaxis(a, 1, -1)


# ---------------------------------------------------------------------------------------------------- values
@pytest.mark.parametrize("n", [1, 2, 3])
def test_both_formats_and_a_bias(n):
    x, w, b = floats(2, 4, *(5, 4, 3)[:n]), floats(6, 2, *(3, 2, 2)[:n]), floats(6)
    want = conv(x, w, (2,) * n, (1,) * (2 * n), (1,) * n, 2) + b.reshape(6, *[1] * n)
    how = {"stride": 2, "padding": 1, "groups": 2}
    np.testing.assert_allclose(CONV[n](t(x), t(w), t(b), **how).numpy(), want, rtol=1e-12)
    got = CONV[n](t(last(x)), t(w), t(b), data_format=NAMES[n][1], **how)
    np.testing.assert_allclose(got.numpy(), last(want), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_transposed_in_both_formats(n):
    x, w, b = floats(2, 4, *(3, 2, 2)[:n]), floats(4, 3, *(3, 2, 2)[:n]), floats(6)
    want = conv_transpose(x, w, (2,) * n, (1,) * (2 * n), (1,) * n, (1,) * n, 2) + b.reshape(6, *[1] * n)
    how = {"stride": 2, "padding": 1, "groups": 2, "output_padding": 1}
    np.testing.assert_allclose(BACK[n](t(x), t(w), t(b), **how).numpy(), want, rtol=1e-12)
    got = BACK[n](t(last(x)), t(w), t(b), data_format=NAMES[n][1], **how)
    np.testing.assert_allclose(got.numpy(), last(want), rtol=1e-12)


@pytest.mark.parametrize("padding, pairs", [
    (1, (1, 1, 1, 1)), ([1, 2], (1, 1, 2, 2)), ((1, 0, 2, 1), (1, 0, 2, 1)), ("VALID", (0, 0, 0, 0)),
    ([[0, 0], [0, 0], [1, 0], [2, 1]], (1, 0, 2, 1)), ("same", (1, 1, 0, 1)), (paddle.to_tensor([1, 2]), (1, 1, 2, 2)),
])
def test_spellings_of_padding(padding, pairs):
    x, w = floats(1, 1, 5, 6), floats(1, 1, 3, 3)
    want = conv(x, w, (2, 2), pairs, (1, 1), 1)
    np.testing.assert_allclose(F.conv2d(t(x), t(w), stride=2, padding=padding).numpy(), want, rtol=1e-12)
    if isinstance(padding, list) and len(padding) == 4 and isinstance(padding[0], list):
        padding = [padding[0], *padding[2:], padding[1]]
    got = F.conv2d(t(last(x)), t(w), stride=2, padding=padding, data_format="NHWC")
    np.testing.assert_allclose(got.numpy(), last(want), rtol=1e-12)


def test_same_keeps_the_size_with_stride_1_and_divides_it_otherwise():
    for size, k, stride, dilation in itertools.product((5, 6), (2, 3, 4), (1, 2, 3), (1, 2)):
        out = F.conv1d(paddle.ones([1, 1, size]), paddle.ones([1, 1, k]), stride=stride, padding="SAME",
                       dilation=dilation)
        assert out.shape == [1, 1, -(-size // stride)]


def test_a_convolution_with_an_image_of_one_pixel_is_a_matrix():
    w = floats(3, 2, 1, 1)
    x = floats(4, 2, 1, 1)
    np.testing.assert_allclose(F.conv2d(t(x), t(w)).numpy()[:, :, 0, 0], x[:, :, 0, 0] @ w[:, :, 0, 0].T, rtol=1e-12)


def test_many_images_at_once_and_one_by_one():
    """The matrix of windows is built for a few images at a time: the parts fit together."""
    x, w = floats(67, 3, 20, 20).astype("float32"), floats(8, 3, 3, 3).astype("float32")
    whole, g = t(x, stop_gradient=False), t(floats(67, 8, 18, 18).astype("float32"))
    out = F.conv2d(whole, t(w))
    parts = np.concatenate([F.conv2d(t(image[None]), t(w)).numpy() for image in x])
    np.testing.assert_allclose(out.numpy(), parts, rtol=1e-5, atol=1e-5)
    (out * g).sum().backward()
    parts = np.concatenate([F.conv2d_transpose(t(image[None]), t(w)).numpy() for image in g.numpy()])
    np.testing.assert_allclose(whole.grad.numpy(), parts, rtol=1e-5, atol=1e-5)


def test_output_size_names_one_of_the_sizes_that_have_so_many_windows():
    x, w = t(floats(1, 1, 2, 2)), t(floats(1, 1, 3, 3))
    for size in (5, 6):
        assert F.conv2d_transpose(x, w, stride=2, output_size=[5, size]).shape == [1, 1, 5, size]
    got = F.conv2d_transpose(x, w, stride=2, output_size=6).numpy()
    np.testing.assert_array_equal(got, F.conv2d_transpose(x, w, stride=2, output_padding=1).numpy())
    np.testing.assert_array_equal(got[..., :5, :5], F.conv2d_transpose(x, w, stride=2).numpy())


def test_low_precision_adds_in_float32():
    """1 + 1024 * 2^-11 in float16: each small product alone would be rounded away."""
    x = paddle.ones([1, 1, 1, 1025], "float16")
    w = np.full((1, 1, 1, 1025), 2.0**-11, np.float16)
    w[..., 0] = 1
    assert F.conv2d(x, t(w)).item() == 1.5
    for dtype in ("float16", "bfloat16"):
        out = F.conv2d(paddle.ones([1, 2, 3, 3], dtype), paddle.ones([1, 2, 2, 2], dtype))
        assert out.dtype == getattr(paddle, dtype)


def test_empty_batches():
    for n in (1, 2, 3):
        x, w = t(np.zeros((0, 2, *(4,) * n)), stop_gradient=False), t(np.ones((3, 2, *(2,) * n)), stop_gradient=False)
        out = CONV[n](x, w, padding=1)
        assert out.shape == [0, 3, *(5,) * n]
        out.sum().backward()
        assert x.grad.shape == x.shape and not w.grad.numpy().any()


def test_gradients_through_the_functions():
    x, w, b = floats(1, 3, 4), floats(2, 3, 2), floats(2)
    check_gradients(lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=[1, 0], data_format="NCL"), x, w, b)
    check_gradients(lambda x, w: F.conv2d(x, w, padding="SAME", data_format="NHWC"), floats(1, 3, 2, 2),
                    floats(1, 2, 2, 2))
    check_gradients(lambda x, w: F.conv2d_transpose(x, w, stride=2, output_size=[6, 5]), floats(1, 2, 2, 2),
                    floats(2, 1, 3, 3))


def test_derivatives_of_a_bilinear_form():
    """f = sum conv(s x, s w) = s^2 c: f' = 2 s c, f'' = 2 c."""
    s = t(0.7, dtype="float64", stop_gradient=False)
    x, w = t(floats(1, 2, 3, 3)), t(floats(2, 2, 2, 2))
    c = F.conv2d(x, w).sum().item()
    f = F.conv2d(x * s, w * s).sum()
    (first,) = paddle.grad(f, s, create_graph=True)
    (second,) = paddle.grad(first, s, create_graph=True)
    np.testing.assert_allclose([first.item(), second.item()], [2 * 0.7 * c, 2 * c], rtol=1e-12)
    assert second.stop_gradient                         # nothing is left of s


# ---------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize("x, w, how, says", [
    ([1, 1, 3, 5], [1, 1, 4, 2], {}, "window that reaches over 4 elements along a dimension of size 3"),
    ([1, 1, 3, 5], [1, 1, 2, 2], {"dilation": 3, "padding": (0, 1)}, "over 4 elements along a dimension of size 3"),
    ([1, 3, 4, 4], [1, 2, 2, 2], {}, r"x of 2 channels .* got x f32\[1, 3, 4, 4\]"),
    ([1, 4, 4, 4], [3, 2, 2, 2], {"groups": 2}, "in 2 groups"),
    ([3, 4, 4], [1, 3, 2, 2], {}, r"x of 4 dimensions, \[N, C, H, W\]"),
    ([1, 3, 4, 4], [1, 3, 2], {}, "a weight of 4 dimensions"),
    ([1, 1, 4, 4], [1, 1, 2, 2], {"padding": -1}, "padding to be an int of at least 0"),
    ([1, 1, 4, 4], [1, 1, 2, 2], {"padding": [1, 1, 1]}, "conv2d: expected padding"),
    ([1, 1, 4, 4], [1, 1, 2, 2], {"padding": "FULL"}, "'SAME' or 'VALID'"),
    ([1, 1, 4, 4], [1, 1, 2, 2], {"stride": 0}, "stride to be an int of at least 1"),
    ([1, 1, 4, 4], [1, 1, 2, 2], {"data_format": "NCL"}, "'NCHW' or 'NHWC'"),
    ([1, 1, 4, 4], [1, 1, 2, 2], {"bias": paddle.ones([3])}, r"bias of shape \[1\]"),
])
def test_errors_say_what_was_expected(x, w, how, says):
    with pytest.raises(ValueError, match=says):
        F.conv2d(paddle.ones(x), paddle.ones(w), **how)


@pytest.mark.parametrize("how, says", [
    ({"output_padding": 2}, r"output_padding below stride \[2, 2\]"),
    ({"output_size": 7}, r"output_size from \[5, 5\] to \[6, 6\]"),
    ({"output_padding": 1, "output_size": 6}, "got both"),
])
def test_errors_of_transposed_convolutions(how, says):
    with pytest.raises(ValueError, match=says):
        F.conv2d_transpose(paddle.ones([1, 1, 2, 2]), paddle.ones([1, 1, 3, 3]), stride=2, **how)


def test_errors_of_layers():
    with pytest.raises(ValueError, match="in_channels that groups=2 divides, got 3"):
        nn.Conv2D(3, 4, 3, groups=2)
    with pytest.raises(ValueError, match="padding_mode 'zeros', 'reflect'"):
        nn.Conv2D(4, 4, 3, padding_mode="mirror")


def test_operands_of_one_floating_dtype():
    with pytest.raises(TypeError, match="operands of one dtype"):
        F.conv2d(paddle.ones([1, 1, 3, 3]), paddle.ones([1, 1, 2, 2], "float64"))
    with pytest.raises(TypeError, match="expected a floating tensor"):
        F.conv2d(paddle.ones([1, 1, 3, 3], "int64"), paddle.ones([1, 1, 2, 2], "int64"))


# ---------------------------------------------------------------------------------------------------- layers
def test_what_layers_print():
    assert repr(nn.Conv2D(4, 6, (3, 5), stride=[1, 2], padding=2, dilation=2, groups=2, padding_mode="reflect",
                          data_format="NHWC")) == (
        "Conv2D(4, 6, kernel_size=[3, 5], stride=[1, 2], padding=2, padding_mode=reflect, dilation=[2, 2], groups=2, "
        "data_format=NHWC)")
    assert repr(nn.Conv1D(2, 3, 3)) == "Conv1D(2, 3, kernel_size=[3], data_format=NCL)"
    assert repr(nn.Conv3DTranspose(4, 6, 3, stride=2, padding=1, output_padding=1)) == (
        "Conv3DTranspose(4, 6, kernel_size=[3, 3, 3], stride=[2, 2, 2], padding=1, output_padding=1, "
        "data_format=NCDHW)")


def test_parameters_and_their_first_values():
    paddle.seed(0)
    layer = nn.Conv2D(64, 32, 3, groups=2)
    assert layer.weight.shape == [32, 32, 3, 3] and layer.bias.shape == [32] and not layer.bias.numpy().any()
    assert abs(layer.weight.numpy().std() / np.sqrt(2 / (64 * 9)) - 1) < 0.02      # Paddle's: of all input channels
    back = nn.Conv2DTranspose(64, 32, 3, bias_attr=False)
    assert back.weight.shape == [64, 32, 3, 3] and back.bias is None
    limit = np.sqrt(6 / (9 * (64 + 32)))                                            # XavierUniform
    assert 0.98 * limit < np.abs(back.weight.numpy()).max() <= limit
    assert nn.Conv1D(2, 3, 2, bias=False).bias is None
    assert nn.Conv3D(2, 3, 2, dtype="float64").weight.dtype == paddle.float64
    assert nn.Conv2d is nn.Conv2D


@pytest.mark.parametrize("make, shape, out", [
    (lambda: nn.Conv1D(3, 4, 3, padding=1), [2, 3, 5], [2, 4, 5]),
    (lambda: nn.Conv3D(2, 4, (1, 2, 3), stride=(1, 2, 1)), [1, 2, 2, 4, 5], [1, 4, 2, 2, 3]),
    (lambda: nn.Conv2D(4, 4, 3, groups=4, padding="SAME", data_format="NHWC"), [1, 5, 6, 4], [1, 5, 6, 4]),
    (lambda: nn.Conv1DTranspose(2, 1, 2), [1, 2, 4], [1, 1, 5]),
    (lambda: nn.Conv3DTranspose(2, 3, 2, stride=2), [1, 2, 2, 3, 2], [1, 3, 4, 6, 4]),
])
def test_layers_of_every_rank(make, shape, out):
    assert make()(paddle.ones(shape)).shape == out


@pytest.mark.parametrize("mode, numpy_mode", [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_padding_modes_of_layers(mode, numpy_mode):
    layer = nn.Conv2D(1, 2, 3, padding=(1, 2), padding_mode=mode)
    x = floats(1, 1, 4, 5).astype("float32")
    around = np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 2)), mode=numpy_mode)
    want = conv(around.astype(float), layer.weight.numpy().astype(float), (1, 1), (0,) * 4, (1, 1), 1)
    np.testing.assert_allclose(layer(t(x)).numpy(), want, rtol=1e-5, atol=1e-5)


def test_a_call_may_name_the_output_size():
    layer = nn.Conv2DTranspose(1, 1, 3, stride=2)
    assert layer(paddle.ones([1, 1, 2, 2])).shape == [1, 1, 5, 5]
    assert layer(paddle.ones([1, 1, 2, 2]), output_size=[6, 5]).shape == [1, 1, 6, 5]
