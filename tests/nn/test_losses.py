"""Losses element by element in Python, their reductions, and their gradients against differences."""

import math

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.nn import functional as F
from tests.nn.finite import check_gradients

rng = np.random.default_rng(4)
SHAPE = (3, 4)
YES = (rng.random(SHAPE) > 0.5).astype(float)
SIGN = 2 * YES - 1


def numbers():
    return rng.normal(size=SHAPE) * 2


def probabilities():
    return rng.uniform(0.05, 0.95, SHAPE)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def log_loss_of(p, y):
    return -y * math.log(p) - (1 - y) * math.log(1 - p)


def focal(x, y):
    p, a = (sigmoid(x), 0.4) if y else (1 - sigmoid(x), 0.6)
    return -a * (1 - p) ** 1.5 * math.log(p) / 3.0


def huber(x, y, delta=0.7):
    d = abs(x - y)
    return d * d / 2 if d < delta else delta * d - delta * delta / 2


def gaussian(x, y, v):
    return (math.log(2 * math.pi) + math.log(v) + (x - y) ** 2 / v) / 2


def stirling(n):
    return n * math.log(n) - n + math.log(2 * math.pi * n) / 2 if n > 1 else 0.0


#: name -> (arrays that are differentiated, others, the loss of one element, options)
ELEMENTWISE = {
    "binary_cross_entropy": ([probabilities()], [YES], log_loss_of, {}),
    "binary_cross_entropy_with_logits": ([numbers(), probabilities()], [], lambda x, y: log_loss_of(sigmoid(x), y), {}),
    "sigmoid_focal_loss": ([numbers()], [YES], focal, {"alpha": 0.4, "gamma": 1.5, "normalizer": [3.0]}),
    "soft_margin_loss": ([numbers()], [SIGN], lambda x, y: math.log1p(math.exp(-x * y)), {}),
    "mse_loss": ([numbers(), numbers()], [], lambda x, y: (x - y) ** 2, {}),
    "l1_loss": ([numbers(), numbers()], [], lambda x, y: abs(x - y), {}),
    "smooth_l1_loss": ([numbers(), numbers()], [], huber, {"delta": 0.7}),
    "kl_div": ([numbers(), probabilities()], [], lambda x, y: y * (math.log(y) - x), {}),
    "poisson_nll_loss": ([numbers()], [YES * 3], lambda x, y: math.exp(x) - y * x + stirling(y), {"full": True}),
    "gaussian_nll_loss": ([numbers(), numbers(), probabilities()], [], gaussian, {"full": True}),
    "margin_ranking_loss": ([numbers(), numbers()], [SIGN], lambda x, o, y: max(0, 0.3 - y * (x - o)), {"margin": 0.3}),
    "hinge_embedding_loss": ([numbers()], [SIGN], lambda x, y: x if y == 1 else max(0, 0.7 - x), {"margin": 0.7}),
}


def prepared(options):
    return {k: paddle.to_tensor(v, dtype="float64") if isinstance(v, list) else v for k, v in options.items()}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_losses(name, reduction):
    inputs, others, of_one, options = ELEMENTWISE[name]
    each = np.vectorize(of_one, otypes=[float])(*inputs, *others)
    want = {"mean": each.mean(), "sum": each.sum(), "none": each}[reduction]

    def f(*xs):
        return getattr(F, name)(*xs, *map(paddle.to_tensor, others), reduction=reduction, **prepared(options))
    got = f(*map(paddle.to_tensor, inputs))
    assert got.shape == list(np.shape(want))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9)
    if reduction == "none":
        check_gradients(f, *inputs, rtol=1e-5)
    with pytest.raises(ValueError, match=f"{name}: expected reduction 'mean', 'sum'.* or 'none', got 'avg'"):
        getattr(F, name)(*map(paddle.to_tensor, [*inputs, *others]), reduction="avg", **prepared(options))


def test_losses_without_a_reduction():
    x, y = numbers(), numbers()
    np.testing.assert_allclose(F.square_error_cost(*map(paddle.to_tensor, (x, y))).numpy(), (x - y) ** 2)
    p = probabilities()
    want = -YES * np.log(p + 1e-4) - (1 - YES) * np.log(1 - p + 1e-4)
    np.testing.assert_allclose(F.log_loss(*map(paddle.to_tensor, (p, YES))).numpy(), want)
    check_gradients(lambda t: F.log_loss(t, paddle.to_tensor(YES)), p)


# ---------------------------------------------------------------------------------------------------- extreme inputs
def test_logits_far_out_do_not_overflow():
    x = paddle.to_tensor([1e4, -1e4, 1e4, -1e4], stop_gradient=False)
    y = paddle.to_tensor([1.0, 1.0, 0.0, 0.0])
    loss = F.binary_cross_entropy_with_logits(x, y, reduction="none", pos_weight=paddle.to_tensor([2.0]))
    assert loss.tolist() == [0, 2e4, 1e4, 0]
    loss.sum().backward()
    assert x.grad.tolist() == [0, -2, 1, 0]
    assert F.soft_margin_loss(x.detach(), 2 * y - 1, reduction="none").tolist() == [0, 1e4, 1e4, 0]
    focal = F.sigmoid_focal_loss(x.detach(), y, reduction="none").tolist()
    assert focal == [0, 2500, 7500, 0]


def test_certain_probabilities_cost_at_most_100():
    p = paddle.to_tensor([0.0, 1.0, 0.0, 1.0], stop_gradient=False)
    loss = F.binary_cross_entropy(p, paddle.to_tensor([0.0, 1.0, 1.0, 0.0]), reduction="none")
    assert loss.tolist() == [0, 0, 100, 100]
    loss.sum().backward()
    assert np.isfinite(p.grad.numpy()).all() and p.grad.tolist()[:2] == [0, 0]


def test_kl_div_of_impossible_and_of_log_targets():
    x = paddle.to_tensor([-1e4, -1.0], stop_gradient=False)
    loss = F.kl_div(x, paddle.to_tensor([0.0, 1.0]), reduction="none")
    loss.sum().backward()
    assert loss.tolist() == [0, 1] and x.grad.tolist() == [0, -1]
    q, p = numbers(), np.log(probabilities())
    want = np.exp(p) * (p - q)
    np.testing.assert_allclose(F.kl_div(*map(paddle.to_tensor, (q, p)), "none", True).numpy(), want)
    np.testing.assert_allclose(F.kl_div(*map(paddle.to_tensor, (q, p)), "batchmean", True).item(), want.sum() / 3)
    check_gradients(lambda a, b: F.kl_div(a, b, "none", True), q, p)
    assert F.kl_div(paddle.to_tensor([-1e4]), paddle.to_tensor([-1e4]), log_target=True).item() == 0


def test_huber_is_smooth_at_zero():
    x = paddle.to_tensor([0.0], dtype="float64", stop_gradient=False)
    g, = paddle.grad(F.smooth_l1_loss(x, paddle.zeros([1], "float64")), x, create_graph=True)
    assert paddle.grad(g, x)[0].tolist() == [1.0]


def test_gaussian_variances():
    x, y = map(paddle.to_tensor, (numbers(), numbers()))
    v = probabilities()[:, :1]
    want = (np.log(v) + (x.numpy() - y.numpy()) ** 2 / v) / 2
    for variance in (v, v[:, 0]):
        got = F.gaussian_nll_loss(x, y, paddle.to_tensor(variance), reduction="none")
        np.testing.assert_allclose(got.numpy(), want)
    assert np.isfinite(F.gaussian_nll_loss(x, y, paddle.zeros([3, 4], "float64")).item())
    with pytest.raises(ValueError, match=r"expected a variance of the shape of input f64\[3, 4\], .* got f64\[2\]"):
        F.gaussian_nll_loss(x, y, paddle.ones([2], "float64"))


# ---------------------------------------------------------------------------------------------------------- margins
def distance(a, b, p=2):
    return (np.abs(a - b + 1e-6) ** p).sum(-1) ** (1 / p)


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_triplets(p, swap):
    a, b, c = numbers(), numbers(), numbers()
    far = np.minimum(distance(a, c, p), distance(b, c, p)) if swap else distance(a, c, p)
    want = np.maximum(distance(a, b, p) - far + 1.5, 0)

    def f(*xs):
        return F.triplet_margin_loss(*xs, margin=1.5, p=p, swap=swap, reduction="none")
    np.testing.assert_allclose(f(*map(paddle.to_tensor, (a, b, c))).numpy(), want)
    check_gradients(f, a, b, c)
    l1 = F.triplet_margin_with_distance_loss(*map(paddle.to_tensor, (a, b, c)), lambda x, y: (x - y).abs().sum(-1),
                                             1.5, swap, "none")
    if p == 1:
        np.testing.assert_allclose(l1.numpy(), want, atol=1e-4)


def test_cosine_embedding():
    a, b, y = numbers(), numbers(), np.array([1, -1, -1])
    cos = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    want = [1 - c if k == 1 else max(0, c - 0.1) for c, k in zip(cos, y, strict=True)]

    def f(a, b):
        return F.cosine_embedding_loss(a, b, paddle.to_tensor(y), 0.1, "none")
    np.testing.assert_allclose(f(*map(paddle.to_tensor, (a, b))).numpy(), want, atol=1e-9)
    check_gradients(f, a, b)
    one = F.cosine_embedding_loss(paddle.to_tensor(a[0]), paddle.to_tensor(b[0]), paddle.to_tensor(1))
    assert one.item() == pytest.approx(want[0])
    with pytest.raises(ValueError, match=r"expected inputs \[N, M\] and label \[N\].*f64\[3, 4\], i64\[1, 3\]"):
        F.cosine_embedding_loss(*map(paddle.to_tensor, (a, b, y[None])))


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_multi_margin(p, weighted):
    x, label, w = numbers(), np.array([1, 0, 3]), np.array([0.5, 1, 2, 3])
    want = [sum(max(0, 0.9 - row[k] + row[j]) ** p for j in range(4) if j != k) / 4 * (w[k] if weighted else 1)
            for row, k in zip(x, label, strict=True)]

    def f(x):
        weight = paddle.to_tensor(w) if weighted else None
        return F.multi_margin_loss(x, paddle.to_tensor(label), p, 0.9, weight, "none")
    np.testing.assert_allclose(f(paddle.to_tensor(x)).numpy(), want)
    check_gradients(f, x)
    with pytest.raises(ValueError, match=r"expected input \[N, C\] and int label \[N\], got f64\[3, 4\] and i64\[2\]"):
        F.multi_margin_loss(paddle.to_tensor(x), paddle.to_tensor([1, 2]))


def test_multi_label_margin():
    x, label = numbers(), np.array([[3, 0, -1, 1], [0, -1, -1, -1], [-1, 2, 1, 0]])
    listed = [[3, 0], [0], []]
    want = [sum(max(0, 1 - row[j] + row[i]) for j in own for i in range(4) if i not in own) / 4
            for row, own in zip(x, listed, strict=True)]

    def f(x):
        return F.multi_label_margin_loss(x, paddle.to_tensor(label), "none")
    np.testing.assert_allclose(f(paddle.to_tensor(x)).numpy(), want)
    check_gradients(f, x)
    soft = F.multi_label_soft_margin_loss(paddle.to_tensor(x), paddle.to_tensor(YES), paddle.to_tensor([1.0, 2, 3, 4]),
                                          "none")
    each = np.vectorize(log_loss_of)(np.vectorize(sigmoid)(x), YES) * [1, 2, 3, 4]
    np.testing.assert_allclose(soft.numpy(), each.mean(1))


def test_npair():
    a, b, labels = numbers(), numbers(), np.array([1.0, 2, 1])
    s = a @ b.T
    log_p = s - np.log(np.exp(s).sum(1, keepdims=True))
    want = np.mean([-np.mean([log_p[i, j] for j in range(3) if labels[i] == labels[j]]) for i in range(3)])
    want += 0.1 / 4 * ((a ** 2).sum(1).mean() + (b ** 2).sum(1).mean())

    def f(a, b):
        return F.npair_loss(a, b, paddle.to_tensor(labels), 0.1)
    np.testing.assert_allclose(f(*map(paddle.to_tensor, (a, b))).item(), want)
    check_gradients(f, a, b)


# ---------------------------------------------------------------------------------------------------------- layers
@pytest.mark.parametrize("name,function,options", [
    ("BCELoss", "binary_cross_entropy", {}), ("BCEWithLogitsLoss", "binary_cross_entropy_with_logits", {}),
    ("SoftMarginLoss", "soft_margin_loss", {}), ("MultiLabelSoftMarginLoss", "multi_label_soft_margin_loss", {}),
    ("MSELoss", "mse_loss", {}), ("L1Loss", "l1_loss", {}), ("SmoothL1Loss", "smooth_l1_loss", {"delta": 0.5}),
    ("KLDivLoss", "kl_div", {"log_target": True}), ("PoissonNLLLoss", "poisson_nll_loss", {"full": True}),
    ("HingeEmbeddingLoss", "hinge_embedding_loss", {"margin": 0.5})])
def test_layers_are_their_functions(name, function, options):
    x, y = map(paddle.to_tensor, (probabilities(), YES))
    layer = getattr(nn, name)(reduction="sum", **options)
    assert layer(x, y).item() == getattr(F, function)(x, y, reduction="sum", **options).item()
    assert repr(layer) == f"{name}()" and layer.reduction == "sum"
    with pytest.raises(ValueError, match=f"{name}: expected reduction"):
        getattr(nn, name)(reduction="avg")


def test_layers_of_several_inputs():
    a, b, c = (paddle.to_tensor(numbers()) for _ in range(3))
    assert nn.TripletMarginLoss(swap=True)(a, b, c).item() == F.triplet_margin_loss(a, b, c, swap=True).item()
    assert nn.TripletMarginWithDistanceLoss()(a, b, c).item() == F.triplet_margin_with_distance_loss(a, b, c).item()
    assert nn.GaussianNLLLoss()(a, b, c.abs()).item() == F.gaussian_nll_loss(a, b, c.abs()).item()
    y = paddle.to_tensor(SIGN)
    assert nn.MarginRankingLoss(0.2)(a, b, y).item() == F.margin_ranking_loss(a, b, y, 0.2).item()
    k = paddle.to_tensor([1, -1, 1])
    assert nn.CosineEmbeddingLoss(0.2)(a, b, k).item() == F.cosine_embedding_loss(a, b, k, 0.2).item()
    label = paddle.to_tensor([1, 0, 2])
    assert nn.MultiMarginLoss(2)(a, label).item() == F.multi_margin_loss(a, label, 2).item()
    assert nn.NLLLoss()(a, label).item() == F.nll_loss(a, label).item()
    assert nn.KLDivLoss("batchmean")(a, b.abs()).item() == F.kl_div(a, b.abs(), "batchmean").item()
