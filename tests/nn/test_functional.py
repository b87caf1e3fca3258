"""Functions of layers against numpy's formulas, and their gradients against differences."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.framework.rank import current
from minipd.nn import functional as F
from tests.nn.finite import check_gradients

rng = np.random.default_rng(7)


def test_linear():
    x, w, b = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 5)), rng.normal(size=5)
    out = F.linear(*map(paddle.to_tensor, (x, w, b)))
    np.testing.assert_allclose(out.numpy(), np.einsum("bsi,io->bso", x, w) + b, rtol=1e-13)
    np.testing.assert_allclose(F.linear(*map(paddle.to_tensor, (x[0, 0], w))).numpy(), x[0, 0] @ w, rtol=1e-13)
    check_gradients(F.linear, x, w, b)


@pytest.mark.parametrize("shape,sizes", [((2, 3, 4), [4]), ((2, 3, 4), [3, 4]), ((5,), 5)])
def test_rms_norm(shape, sizes):
    x, w = rng.normal(size=shape), rng.normal(size=sizes)
    axes = tuple(range(-len(np.atleast_1d(sizes)), 0))
    want = x / np.sqrt(np.mean(x ** 2, axis=axes, keepdims=True) + 0.1) * w
    np.testing.assert_allclose(F.rms_norm(paddle.to_tensor(x), sizes, paddle.to_tensor(w), 0.1).numpy(), want,
                               rtol=1e-13)
    check_gradients(lambda x, w: F.rms_norm(x, sizes, w, 0.1), x, w)


def test_rms_norm_of_zeros_and_of_bfloat16():
    assert F.rms_norm(paddle.zeros([1, 4]), 4).tolist() == [[0.0] * 4]
    x = rng.normal(size=(3, 64)).astype("float32")
    got = F.rms_norm(paddle.to_tensor(x).astype("bfloat16"), 64)
    x = paddle.to_tensor(x).astype("bfloat16").numpy().astype("float64")
    want = x / np.sqrt(np.mean(x ** 2, -1, keepdims=True) + 1e-5)
    assert got.dtype == "bfloat16"              # one rounding to 8 bits, not one per operator
    np.testing.assert_allclose(got.numpy().astype("float64"), want, rtol=2 ** -8)
    with pytest.raises(ValueError, match=r"rms_norm: expected an input whose last dimensions are \[3\], got shape"):
        F.rms_norm(paddle.zeros([1, 4]), 3)


def test_rms_norm_layer():
    layer = nn.RMSNorm(4, epsilon=0.5)
    assert [name for name, _ in layer.named_parameters()] == ["weight"]
    assert repr(layer) == "RMSNorm(normalized_shape=[4], epsilon=0.5)"
    assert layer(paddle.ones([4])).numpy() == pytest.approx(1 / np.sqrt(1.5))


def test_log_softmax():
    x = rng.normal(size=(3, 4)) * 5
    shifted = x - x.max(0)
    want = shifted - np.log(np.exp(shifted).sum(0))
    np.testing.assert_allclose(F.log_softmax(paddle.to_tensor(x), axis=0).numpy(), want, rtol=1e-12)
    check_gradients(lambda x: F.log_softmax(x, 0), x)
    check_gradients(F.log_softmax, np.array([1.0, 1.0, 0.0]))       # equal maxima


def test_activations_are_the_operators():
    x = paddle.to_tensor(rng.normal(size=(2, 4)))
    np.testing.assert_array_equal(nn.SiLU()(x).numpy(), F.silu(x).numpy())
    np.testing.assert_array_equal(nn.ReLU()(x).numpy(), np.maximum(x.numpy(), 0))
    np.testing.assert_allclose(nn.Sigmoid()(x).numpy(), 1 / (1 + np.exp(-x.numpy())))
    np.testing.assert_allclose(nn.Tanh()(x).numpy(), np.tanh(x.numpy()))
    np.testing.assert_allclose(nn.Softmax(0)(x).numpy().sum(0), 1.0)
    a, b = x.numpy()[:, :2], x.numpy()[:, 2:]
    np.testing.assert_allclose(F.swiglu(x).numpy(), a / (1 + np.exp(-a)) * b)
    assert nn.Flatten()(paddle.zeros([2, 3, 4])).shape == [2, 12]
    assert nn.Identity(3, spare=True)(x) is x


# ------------------------------------------------------------------------------------------------------ embedding
def test_padding_gives_zeros_and_no_gradient():
    """As in Paddle: the padding row is not read, wherever its values come from."""
    layer = nn.Embedding(5, 2, padding_idx=-2)
    assert layer.padding_idx == 3 and layer.weight.numpy()[3].tolist() == [0.0, 0.0]
    layer.weight.set_value(np.ones((5, 2), "float32"))
    out = layer(paddle.to_tensor([[3, 0], [0, 4]]))
    assert out.tolist() == [[[0, 0], [1, 1]], [[1, 1], [1, 1]]]
    out.sum().backward()
    assert layer.weight.grad.tolist() == [[2, 2], [0, 0], [0, 0], [0, 0], [1, 1]]


def test_embedding_refuses():
    with pytest.raises(ValueError, match="expected a padding_idx in -5 .. 4, got 5"):
        nn.Embedding(5, 2, padding_idx=5)
    with pytest.raises(ValueError, match=r"expected numbers in 0 .. 4, the rows of f32\[5, 2\], got 5"):
        nn.Embedding(5, 2)(paddle.to_tensor([5]))


def test_rows_that_are_looked_up_are_held_to_a_norm():
    w = paddle.to_tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]], stop_gradient=False)
    out = F.embedding(paddle.to_tensor([0, 1, 0]), w, max_norm=1.0)
    np.testing.assert_allclose(out.numpy(), [[0.6, 0.8], [0.3, 0.4], [0.6, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(w.numpy(), [[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]], rtol=1e-6)
    by_sums = F.embedding(paddle.to_tensor([2]), w, max_norm=7.0, norm_type=1.0)
    np.testing.assert_allclose(by_sums.numpy(), [[3.0, 4.0]], rtol=1e-6)


def test_gradients_of_rows_by_frequency():
    layer = nn.Embedding(4, 2, scale_grad_by_freq=True)
    layer(paddle.to_tensor([[1, 1], [3, 1]])).sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), [[0, 0], [1, 1], [0, 0], [1, 1]], rtol=1e-6)
    assert repr(nn.Embedding(4, 3, padding_idx=-1)) == (
        "Embedding(4, 3, padding_idx=-1, sparse=False, scale_grad_by_freq=False)")


def test_bilinear():
    a, b, w, c = rng.normal(size=(3, 2)), rng.normal(size=(3, 4)), rng.normal(size=(5, 2, 4)), rng.normal(size=(1, 5))
    got = F.bilinear(*map(paddle.to_tensor, (a, b, w, c)))
    np.testing.assert_allclose(got.numpy(), np.einsum("ni,kij,nj->nk", a, w, b) + c)
    check_gradients(F.bilinear, a, b, w, c)
    layer = nn.Bilinear(2, 4, 5)
    assert repr(layer) == "Bilinear(in1_features=2, in2_features=4, out_features=5, dtype=float32)"
    assert layer(paddle.ones([3, 2]), paddle.ones([3, 4])).shape == [3, 5]
    with pytest.raises(ValueError, match=r"bilinear: expected x1 \[N, D1\].* got f32\[3, 2\], f32\[2, 4\], f32"):
        F.bilinear(paddle.ones([3, 2]), paddle.ones([2, 4]), paddle.ones([5, 2, 4]))


def test_distances():
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    for p in (1, 2, 3, np.inf, 0):
        got = F.pairwise_distance(*map(paddle.to_tensor, (a, b)), p=p, keepdim=True)
        np.testing.assert_allclose(got.numpy(), np.linalg.norm(a - b + 1e-6, p, axis=-1, keepdims=True))
        if p:
            check_gradients(lambda x, y, p=p: F.pairwise_distance(x, y, p), a, b)
    cos = (a * b).sum(0) / np.linalg.norm(a, axis=0) / np.linalg.norm(b, axis=0)
    np.testing.assert_allclose(F.cosine_similarity(*map(paddle.to_tensor, (a, b)), axis=0).numpy(), cos)
    check_gradients(lambda x, y: F.cosine_similarity(x, y, axis=0), a, b)
    assert F.cosine_similarity(paddle.to_tensor([[1e-5, 0.0]]), paddle.to_tensor([[1e-5, 0.0]])).item() == (
        pytest.approx(0.01))                                                # the divisor is at least eps
    assert repr(nn.PairwiseDistance(keepdim=True)) == "PairwiseDistance(p=2.0, keepdim=True)"


def test_label_smooth():
    x = paddle.to_tensor([[1.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(F.label_smooth(x, epsilon=0.2).numpy(), [[0.85, 0.05, 0.05, 0.05]], rtol=1e-6)
    prior = paddle.to_tensor([[0.5, 0.5, 0.0, 0.0]])
    np.testing.assert_allclose(F.label_smooth(x, prior, 0.2).numpy(), [[0.9, 0.1, 0.0, 0.0]], rtol=1e-6)
    with pytest.raises(ValueError, match=r"expected an epsilon in \[0, 1\], got 2"):
        F.label_smooth(x, epsilon=2)


# -------------------------------------------------------------------------------------------------------- dropout
class TwoDropouts(nn.Layer):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Dropout(0.25), nn.Dropout(0.25)

    def forward(self, x):
        return self.a(x), self.b(x)


def test_dropout_scales_what_stays():
    paddle.seed(0)
    a, b = (y.numpy() for y in TwoDropouts()(paddle.ones([100, 100])))
    for y in (a, b):
        assert set(np.unique(y)) == {0.0, np.float32(1 / 0.75)} and (y == 0).mean() == pytest.approx(0.25, abs=0.02)
    assert (a != b).any(), "each layer draws its own mask"


def test_dropout_is_named_by_layer_and_step():
    model, x = TwoDropouts(), paddle.ones([50])
    paddle.seed(4)
    first = [y.numpy() for y in model(x)]
    second = [y.numpy() for y in model(x)]
    assert (first[0] != second[0]).any()
    current().rng.set_step(0)
    np.testing.assert_array_equal(model.b(x).numpy(), first[1])      # whether or not a has drawn before
    current().rng.set_step(1)
    assert (model.b(x).numpy() != first[1]).any()


def test_dropout_gradient_has_the_same_mask():
    x = paddle.ones([100], "float64")
    x.stop_gradient = False
    y = F.dropout(x, 0.5)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.numpy())


def test_dropout_outside_of_training():
    x = paddle.ones([4])
    assert F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 0.5, training=False, mode="downscale_in_infer").tolist() == [0.5] * 4
    with pytest.raises(ValueError, match="expected a probability p in"):
        F.dropout(x, 1.5)
