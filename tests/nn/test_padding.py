"""Padding as functions and layers, against numpy's."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.nn import functional as F
from tests.nn.finite import check_gradients

RNG = np.random.default_rng(0)
FORMATS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
SIZES = (4, 5, 3)
NUMPY = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def t(a, **how):
    return paddle.to_tensor(a, **how)


def floats(*shape):
    return RNG.uniform(-1, 1, shape)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("mode", NUMPY)
def test_padding_is_numpys(n, mode):
    x = floats(2, 3, *SIZES[:n])
    pairs = [(1, 2), (0, 1), (2, 0)][:n]                                   # of the last dimension, the one before, ...
    given = [p for pair in pairs for p in pair]
    want = np.pad(x, [(0, 0), (0, 0), *reversed(pairs)], mode=NUMPY[mode])
    np.testing.assert_array_equal(F.pad(t(x), given, mode).numpy(), want)
    turned = F.pad(t(np.moveaxis(x, 1, -1)), given, mode, data_format=FORMATS[n][1]).numpy()
    np.testing.assert_array_equal(turned, np.moveaxis(want, 1, -1))
    layer = {1: nn.Pad1D, 2: nn.Pad2D, 3: nn.Pad3D}[n](given, mode)
    np.testing.assert_array_equal(layer(t(x)).numpy(), want)


@pytest.mark.parametrize("kind, mode", [("Zero", "constant"), ("Reflection", "reflect"), ("Replication", "edge"),
                                        ("Circular", "wrap")])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_padding_layers(kind, mode, n):
    layer, x = getattr(nn, f"{kind}Pad{n}D")(1), floats(1, 2, *SIZES[:n])
    np.testing.assert_array_equal(layer(t(x)).numpy(), np.pad(x, [(0, 0), (0, 0), *[(1, 1)] * n], mode=mode))
    assert getattr(nn, f"{kind}Pad{n}d") is getattr(nn, f"{kind}Pad{n}D")


def test_orders_of_the_pairs():
    x = t(np.ones((2, 3, 4)))
    assert F.pad(x, [1, 0, 0, 2, 3, 0]).shape == [3, 5, 7]                          # all dimensions, the first first
    assert F.pad(x, [1, 0, 0, 2, 3, 0], pad_from_left_axis=False).shape == [5, 5, 5]
    assert F.pad(x, [1, 0, 0, 2]).shape == [2, 5, 5]                                # some: the last first
    assert F.pad(x, [1, 0], data_format="NLC").shape == [2, 4, 4]
    assert F.pad(t(np.ones(3)), [1, 2]).tolist() == [0, 1, 1, 1, 0, 0]
    assert F.pad(x, paddle.to_tensor([1, 0])).shape == [2, 3, 5]
    assert nn.ConstantPad1D([1, 0], 7.0)(x).numpy()[0, 0, 0] == 7
    assert F.zeropad2d(t(np.ones((1, 1, 1, 1))), [1, 0, 0, 1]).tolist() == [[[[0, 1], [0, 0]]]]


def test_negative_padding_cuts_and_circular_goes_around_more_than_once():
    x = t([[[1.0, 2.0, 3.0]]])
    assert F.pad(x, [-1, 2]).tolist() == [[[2, 3, 0, 0]]]
    assert F.pad(x, [-2, -1]).shape == [1, 1, 0]
    assert F.pad(x, [4, 7], "circular").tolist() == [[[3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1]]]


def test_padding_keeps_dtypes():
    for x, want in ((t([[[1, 2]]]), [7, 1, 2]), (t([[[True, False]]]), [True, True, False])):
        out = F.pad(x, [1, 0], value=7)
        assert out.dtype == x.dtype and out.tolist() == [[want]]
    assert F.pad(paddle.ones([1, 1, 2], "bfloat16"), [1, 0], "reflect").dtype == paddle.bfloat16
    assert F.pad(paddle.ones([0, 1, 2]), [1, 0]).shape == [0, 1, 3]


@pytest.mark.parametrize("mode", NUMPY)
def test_gradients_of_padding(mode):
    check_gradients(lambda x: F.pad(x, [2, 1, 0, 1], mode), floats(1, 1, 3, 3))


@pytest.mark.parametrize("shape, pad, how, says", [
    ([1, 1, 3], [3, 0], {"mode": "reflect"}, "larger than the padding in mode 'reflect', got padding 3 and 0 of axis"),
    ([1, 1, 0], [1, 0], {"mode": "replicate"}, "not empty in mode 'replicate'"),
    ([1, 1, 3], [1, 0], {"mode": "edge"}, "expected mode 'constant', 'reflect'"),
    ([1, 1, 3], [1, 0, 1], {}, "pairs"),
    ([3], [1, 0, 1, 0], {}, "at most 1 dimensions"),
    ([1, 1, 3], [1, 0], {"data_format": "NHWC"}, "data_format 'NCL' or 'NLC'"),
    ([2, 3], [1, 0], {"mode": "reflect"}, "3 to 5 dimensions"),
    ([1, 1, 3], [-1, 0], {"mode": "reflect"}, "at least 0"),
    ([1, 1, 3], [-2, -2], {}, "cannot cut 2 and 2 elements off axis 2"),
])
def test_errors_of_padding(shape, pad, how, says):
    with pytest.raises(ValueError, match=says):
        F.pad(paddle.ones(shape), pad, **how)
