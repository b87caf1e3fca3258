"""Normalisation against numpy, gradients against differences, and what the layers keep."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.autograd.engine import grad
from minipd.nn import functional as F
from tests.nn.finite import check_gradients

rng = np.random.default_rng(2)

#: data_format -> (a shape with 4 channels, where they are)
FORMATS = {"NC": ((5, 4), 1), "NCL": ((2, 4, 3), 1), "NCHW": ((2, 4, 2, 3), 1), "NCDHW": ((2, 4, 2, 1, 2), 1),
           "NLC": ((2, 3, 4), 2), "NHWC": ((2, 2, 3, 4), 3), "NDHWC": ((2, 2, 1, 2, 4), 4)}


def standardized(x, axes, epsilon=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def per_channel(v, x, at):
    return v.reshape([-1 if i == at else 1 for i in range(x.ndim)])


def data(data_format):
    shape, at = FORMATS[data_format]
    return rng.normal(size=shape), rng.normal(size=4), rng.normal(size=4), at


# ------------------------------------------------------------------------------------------------------ layer norm
@pytest.mark.parametrize("sizes", [4, [4], (3, 4), [2, 3, 4]])
def test_layer_norm(sizes):
    x = rng.normal(size=(2, 3, 4))
    sizes_ = [sizes] if isinstance(sizes, int) else list(sizes)
    w, b = rng.normal(size=np.prod(sizes_)), rng.normal(size=np.prod(sizes_))
    want = standardized(x, tuple(range(3 - len(sizes_), 3)), 1e-3) * w.reshape(sizes_) + b.reshape(sizes_)

    def f(x, w, b):
        return F.layer_norm(x, sizes, w, b, 1e-3)
    for weight, bias in ((w, b), (w.reshape(sizes_), b.reshape(sizes_))):
        np.testing.assert_allclose(f(*map(paddle.to_tensor, (x, weight, bias))).numpy(), want)
    check_gradients(f, x, w, b)


def test_layer_norm_is_differentiated_twice():
    x = paddle.to_tensor(rng.normal(size=(2, 3)), stop_gradient=False)
    v = paddle.to_tensor(rng.normal(size=(2, 3)))

    def first(x):
        return grad((F.layer_norm(x, 3) * v).sum(), x, create_graph=True)[0]
    check_gradients(lambda t: first(t if not t.stop_gradient else paddle.to_tensor(t.numpy(), stop_gradient=False)),
                    x.numpy(), rtol=1e-5)


def test_layer_norm_rounds_low_precision_once():
    x = rng.normal(size=(4, 64)) * 3 + 100
    for dtype, digits in (("float16", 2e-3), ("bfloat16", 2e-2)):
        t = paddle.to_tensor(x).astype(dtype)
        out = F.layer_norm(t, 64)
        assert out.dtype == dtype
        want = standardized(t.astype("float64").numpy(), 1)
        np.testing.assert_allclose(out.astype("float64").numpy(), want, atol=digits)


def test_layer_norm_says_what_does_not_fit():
    with pytest.raises(ValueError, match=r"layer_norm: expected an input whose last dimensions are \[3\], got shape "
                                         r"\[2, 4\]"):
        F.layer_norm(paddle.ones([2, 4]), 3)
    with pytest.raises(ValueError, match=r"layer_norm: expected a weight of 4 elements, .* got f32\[3\]"):
        F.layer_norm(paddle.ones([2, 4]), 4, paddle.ones([3]))
    with pytest.raises(TypeError, match="expected a floating tensor"):
        F.layer_norm(paddle.ones([2, 4], "int64"), 4)


# ------------------------------------------------------------------------------------- group, instance, batch norm
@pytest.mark.parametrize("data_format", FORMATS)
def test_group_norm(data_format):
    x, w, b, at = data(data_format)
    groups = np.moveaxis(x, at, 1).reshape(len(x), 2, -1)
    want = np.moveaxis(standardized(groups, (2,)).reshape(np.moveaxis(x, at, 1).shape), 1, at)
    want = want * per_channel(w, x, at) + per_channel(b, x, at)

    def f(x, w, b):
        return F.group_norm(x, 2, weight=w, bias=b, data_format=data_format)
    np.testing.assert_allclose(f(*map(paddle.to_tensor, (x, w, b))).numpy(), want)
    check_gradients(f, x, w, b)


@pytest.mark.parametrize("data_format", [k for k in FORMATS if k != "NC"])
def test_instance_norm(data_format):
    x, w, b, at = data(data_format)
    positions = tuple(i for i in range(1, x.ndim) if i != at)
    want = standardized(x, positions) * per_channel(w, x, at) + per_channel(b, x, at)

    def f(x, w, b):
        return F.instance_norm(x, weight=w, bias=b, data_format=data_format)
    np.testing.assert_allclose(f(*map(paddle.to_tensor, (x, w, b))).numpy(), want)
    check_gradients(f, x, w, b)


@pytest.mark.parametrize("data_format", FORMATS)
def test_batch_norm(data_format):
    x, w, b, at = data(data_format)
    axes = tuple(i for i in range(x.ndim) if i != at)
    mean, var = rng.normal(size=4), rng.uniform(0.5, 2, 4)

    def f(x, w, b, training, running=None):
        running = running or (paddle.to_tensor(mean), paddle.to_tensor(var))
        return F.batch_norm(x, *running, w, b, training, momentum=0.8, data_format=data_format)
    running = paddle.to_tensor(mean), paddle.to_tensor(var)
    scale, shift = per_channel(w, x, at), per_channel(b, x, at)
    got = f(*map(paddle.to_tensor, (x, w, b)), True, running)
    np.testing.assert_allclose(got.numpy(), standardized(x, axes) * scale + shift)
    np.testing.assert_allclose(running[0].numpy(), 0.8 * mean + 0.2 * x.mean(axes))
    np.testing.assert_allclose(running[1].numpy(), 0.8 * var + 0.2 * x.var(axes))
    check_gradients(lambda x, w, b: f(x, w, b, True), x, w, b)
    by_running = (x - per_channel(mean, x, at)) / np.sqrt(per_channel(var, x, at) + 1e-5) * scale + shift
    np.testing.assert_allclose(f(*map(paddle.to_tensor, (x, w, b)), False).numpy(), by_running)
    check_gradients(lambda x, w, b: f(x, w, b, False), x, w, b)


def test_global_statistics_may_serve_while_training():
    x, running = paddle.to_tensor([[2.0], [4.0]]), (paddle.zeros([1]), paddle.ones([1]))
    out = F.batch_norm(x, *running, training=True, use_global_stats=True, epsilon=0.0)
    assert out.tolist() == [[2.0], [4.0]] and running[0].tolist() == [0.0]


def test_what_does_not_fit():
    with pytest.raises(ValueError, match="group_norm: .* got num_groups=2 for 3 channels"):
        F.group_norm(paddle.ones([2, 3, 4]), 2)
    with pytest.raises(ValueError, match="batch_norm: expected a data_format among .*, got 'CHW'"):
        F.batch_norm(paddle.ones([2, 3]), paddle.ones([3]), paddle.ones([3]), data_format="CHW")
    with pytest.raises(ValueError, match=r"instance_norm: expected a tensor \[N, C, ...\] .*, got f32\[3\]"):
        F.instance_norm(paddle.ones([3]))
    with pytest.raises(ValueError, match=r"BatchNorm2D: expected an input of 4 dimensions, got f32\[2, 3\]"):
        nn.BatchNorm2D(3)(paddle.ones([2, 3]))


# ------------------------------------------------------------------------------------------- by length, by neighbours
def test_normalize():
    x = rng.normal(size=(3, 4))
    for p in (1, 1.5, 2, 3, np.inf):
        length = np.linalg.norm(x, p, axis=0, keepdims=True)
        np.testing.assert_allclose(F.normalize(paddle.to_tensor(x), p, axis=0).numpy(), x / length)
        check_gradients(lambda t, p=p: F.normalize(t, p, axis=0), x)
    zeros = paddle.zeros([1, 3])
    zeros.stop_gradient = False
    out = F.normalize(zeros)
    out.sum().backward()
    assert out.tolist() == [[0, 0, 0]] and np.isfinite(zeros.grad.numpy()).all()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("data_format", ["NCL", "NLC"])
def test_local_response_norm(size, data_format):
    x, _, _, at = data(data_format)
    first = np.moveaxis(x, at, 0)
    padded = np.concatenate([np.zeros((size // 2, *first.shape[1:])), first ** 2,
                             np.zeros(((size - 1) // 2, *first.shape[1:]))])
    means = np.stack([padded[i:i + size].mean(0) for i in range(4)])
    want = np.moveaxis(first / (0.9 + 0.5 * means) ** 0.6, 0, at)

    def f(x):
        return F.local_response_norm(x, size, 0.5, 0.6, 0.9, data_format)
    np.testing.assert_allclose(f(paddle.to_tensor(x)).numpy(), want)
    check_gradients(f, x)


# --------------------------------------------------------------------------------------------------------- layers
def test_layers_keep_what_paddle_keeps():
    assert nn.LayerNorm([2, 3]).weight.shape == [6]
    assert nn.LayerNorm(3, elementwise_affine=False).state_dict() == {}
    assert nn.LayerNorm(3, bias=False).state_dict().keys() == {"weight"}
    assert nn.GroupNorm(2, 4, affine=False).state_dict() == {}
    assert nn.InstanceNorm1D(4).state_dict().keys() == {"scale", "bias"}
    layer = nn.BatchNorm1D(3)
    assert list(layer.state_dict()) == ["weight", "bias", "_mean", "_variance"] and len(layer.parameters()) == 2
    assert nn.BatchNorm2D(3, weight_attr=False, bias_attr=False).state_dict().keys() == {"_mean", "_variance"}


def test_layers_say_what_they_are():
    assert repr(nn.LayerNorm([2, 3])) == "LayerNorm(normalized_shape=[2, 3], epsilon=1e-05)"
    assert repr(nn.GroupNorm(2, 4)) == "GroupNorm(num_groups=2, num_channels=4, epsilon=1e-05)"
    assert repr(nn.InstanceNorm2D(3)) == "InstanceNorm2D(num_features=3, epsilon=1e-05)"
    assert repr(nn.BatchNorm1D(3)) == "BatchNorm1D(num_features=3, momentum=0.9, epsilon=1e-05, data_format=NCL)"
    assert repr(nn.SyncBatchNorm(3)) == "SyncBatchNorm(num_features=3, momentum=0.9, epsilon=1e-05)"
    assert repr(nn.LocalResponseNorm(5)) == "LocalResponseNorm(size=5, alpha=0.0001, beta=0.75, k=1.0)"


def test_a_batch_norm_trains_and_evaluates():
    x = rng.normal(size=(8, 3)) * 2 + 1
    layer = nn.BatchNorm1D(3, momentum=0.0)
    got = layer(paddle.to_tensor(x.astype("float32")))
    np.testing.assert_allclose(got.numpy(), standardized(x, 0), atol=1e-5)
    np.testing.assert_allclose(layer._mean.numpy(), x.mean(0), rtol=1e-5)
    layer.eval()
    np.testing.assert_allclose(layer(paddle.to_tensor(x.astype("float32"))).numpy(), standardized(x, 0), atol=1e-5)
    assert layer._mean.stop_gradient and layer._variance.stop_gradient


def test_the_older_batch_norm_has_an_activation():
    layer = nn.BatchNorm(3, act="relu")
    x = paddle.to_tensor(rng.normal(size=(2, 3, 4, 4)).astype("float32"))
    assert layer(x).min().item() == 0.0
    layer.eval()
    before = layer._mean.tolist()
    layer(x)
    assert layer._mean.tolist() == before


def test_converting_to_sync_batch_norm_keeps_the_tensors():
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1D(3)), nn.ReLU())
    model.eval()
    old = model[1][0]
    new = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert new is model and type(model[1][0]) is nn.SyncBatchNorm
    assert model[1][0].weight is old.weight and model[1][0]._mean is old._mean and not model[1][0].training
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.0.weight", "1.0.bias", "1.0._mean", "1.0._variance"]
    x = paddle.ones([4, 2])
    np.testing.assert_array_equal(model(x).numpy(), nn.ReLU()(old(model[0](x))).numpy())


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_spectral_norm_finds_the_largest_singular_value(dim):
    w = rng.normal(size=(3, 4, 2))
    layer = nn.SpectralNorm([3, 4, 2], dim=dim, power_iters=200, dtype="float64")
    before = layer.weight_u.tolist()
    sigma = np.linalg.svd(np.moveaxis(w, dim, 0).reshape(w.shape[dim], -1))[1][0]
    np.testing.assert_allclose(layer(paddle.to_tensor(w)).numpy(), w / sigma)
    assert layer.weight_u.tolist() == before and layer.state_dict().keys() == {"weight_u", "weight_v"}
    check_gradients(layer, w)


def test_a_compiled_batch_norm_moves_its_statistics():
    x = paddle.to_tensor(rng.normal(size=(4, 3)).astype("float32"))
    eager, layer = nn.BatchNorm1D(3), nn.BatchNorm1D(3)
    compiled = paddle.jit.to_static(layer)
    for _ in range(3):
        np.testing.assert_allclose(compiled(x).numpy(), eager(x).numpy(), atol=1e-6)
        np.testing.assert_allclose(layer._mean.numpy(), eager._mean.numpy(), atol=1e-6)
        np.testing.assert_allclose(layer._variance.numpy(), eager._variance.numpy(), atol=1e-6)


def test_names_at_the_root():
    x = paddle.to_tensor(rng.normal(size=(2, 4)))
    assert paddle.layer_norm(x, 4).tolist() == F.layer_norm(x, 4).tolist()
    assert paddle.group_norm(x, 2).tolist() == F.group_norm(x, 2).tolist()
