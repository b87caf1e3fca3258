"""The dropout family: what falls together, what is kept on average, and that the gradient knows the same mask."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.nn import functional as F


def mask(out):
    return (np.asarray(out) != 0).astype(int)


@pytest.mark.parametrize("axis,shape", [(0, (50, 1)), (1, (1, 20)), ([0, 1], (50, 20)), (-1, (1, 20))])
def test_along_axes(axis, shape):
    """Elements fall one by one along `axis`, and together along the other dimensions."""
    paddle.seed(3)
    x = paddle.ones([50, 20])
    x.stop_gradient = False
    out = F.dropout(x, 0.5, axis=axis)
    m = mask(out)
    np.testing.assert_array_equal(m, np.broadcast_to(m[:shape[0], :shape[1]], (50, 20)))
    assert 0 < m.sum() < m.size and set(np.unique(out.numpy())) == {0.0, 2.0}
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), out.numpy())


@pytest.mark.parametrize("function,shape,data_format,together", [
    (F.dropout2d, (8, 6, 2, 3), "NCHW", (2, 3)), (F.dropout2d, (8, 2, 3, 6), "NHWC", (1, 2)),
    (F.dropout3d, (8, 6, 2, 2, 2), "NCDHW", (2, 3, 4)), (F.dropout3d, (8, 2, 2, 2, 6), "NDHWC", (1, 2, 3)),
    (F.dropout1d, (8, 6, 5), None, (2,)), (F.dropout1d, (30, 5), None, (1,))])
def test_channels_fall_whole(function, shape, data_format, together):
    paddle.seed(1)
    options = {"data_format": data_format} if data_format else {}
    m = mask(function(paddle.ones(list(shape)), 0.5, **options))
    one = m.max(together)
    np.testing.assert_array_equal(one, m.min(together))
    assert 0 < one.sum() < one.size
    assert function(paddle.ones(list(shape)), 0.5, training=False, **options).numpy().min() == 1


def test_modes():
    x = paddle.ones([1000])
    assert set(F.dropout(x, 0.25).tolist()) == {0.0, np.float32(1 / 0.75)}
    assert set(F.dropout(x, 0.25, mode="downscale_in_infer").tolist()) == {0.0, 1.0}
    assert F.dropout(x, 0.25, training=False, mode="downscale_in_infer").tolist()[0] == 0.75
    assert F.dropout(x, 1.0).numpy().max() == 0 and F.dropout(x, 0.0) is x
    assert F.dropout(x, 1.0, axis=0).numpy().max() == 0


def test_in_place():
    x = paddle.ones([100])
    assert F.dropout(x, 0.5, inplace=True) is x and set(x.tolist()) == {0.0, 2.0}
    assert F.dropout1d(paddle.ones([4, 5]), 0.5, inplace=True).shape == [4, 5]


@pytest.mark.parametrize("function", [F.alpha_dropout, F.feature_alpha_dropout])
def test_alpha_dropout_keeps_mean_and_variance(function):
    paddle.seed(0)
    x = paddle.randn([200, 100, 2])
    x.stop_gradient = False
    out = function(x, 0.3)
    assert abs(out.mean().item()) < 0.03 and abs(out.numpy().var() - 1) < 0.05
    a = (0.7 * (1 + 0.3 * 1.7580993408473766 ** 2)) ** -0.5
    low = -1.7580993408473766 * a + a * 0.3 * 1.7580993408473766
    out.sum().backward()
    dropped = x.grad.numpy() == 0
    assert abs(dropped.mean() - 0.3) < 0.03
    np.testing.assert_allclose(out.numpy()[dropped], low, rtol=1e-5)
    if function is F.feature_alpha_dropout:
        np.testing.assert_array_equal(dropped[..., 0], dropped[..., 1])
    np.testing.assert_allclose(x.grad.numpy(), np.where(dropped, 0, a), rtol=1e-6)
    assert function(x, 0.3, training=False) is x and function(x, 1.0).numpy().any() == np.False_


def test_errors_name_what_is_wrong():
    with pytest.raises(ValueError, match=r"dropout2d: expected a tensor of 4 dimensions, got f32\[2, 3\]"):
        F.dropout2d(paddle.ones([2, 3]))
    with pytest.raises(ValueError, match="dropout2d: expected data_format 'NCHW' or 'NHWC', got 'NCL'"):
        F.dropout2d(paddle.ones([1, 1, 1, 1]), data_format="NCL")
    with pytest.raises(ValueError, match="axis 2 is out of range"):
        F.dropout(paddle.ones([2, 3]), 0.5, axis=2)
    with pytest.raises(ValueError, match=r"alpha_dropout: expected a probability p in \[0, 1\], got 2"):
        F.alpha_dropout(paddle.ones([2]), 2)


def test_layers():
    assert repr(nn.Dropout(0.3, axis=[0])) == "Dropout(p=0.3, axis=[0], mode=upscale_in_train, inplace=False)"
    assert repr(nn.Dropout2D(0.3)) == "Dropout2D(p=0.3, data_format=NCHW)"
    assert repr(nn.AlphaDropout(0.3)) == "AlphaDropout(p=0.3)"
    for layer, shape in ((nn.Dropout(), (64,)), (nn.Dropout2D(), (8, 8, 1, 1)), (nn.Dropout3D(), (8, 8, 1, 1, 1)),
                         (nn.AlphaDropout(), (64,)), (nn.FeatureAlphaDropout(), (8, 8, 2))):
        x = paddle.ones(list(shape))
        assert len(np.unique(layer(x).numpy())) == 2
        layer.eval()
        assert layer(x).tolist() == x.tolist()


def test_layers_draw_by_their_place_in_the_model():
    """The same layer at the same step draws the same mask, whatever was drawn elsewhere."""
    def run(extra):
        paddle.seed(5)
        model = nn.Sequential(nn.Dropout(), nn.Dropout2D())
        if extra:
            paddle.rand([7])
        return model(paddle.ones([4, 4, 2, 2])).numpy()
    np.testing.assert_array_equal(run(False), run(True))
