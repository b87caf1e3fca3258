"""Trees, clusters, margins and samples of classes, each against its definition."""

import math

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.nn import functional as F
from tests.nn.finite import check_gradients

rng = np.random.default_rng(6)


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def softplus(x):
    return math.log1p(math.exp(x))


# ---------------------------------------------------------------------------------------------------------- a tree
def of_tree(x, w, b, path):
    """path: (node, answer) pairs."""
    return sum(softplus(s) - answer * s for node, answer in path for s in [float(w[node] @ x + b[node])])


def complete_path(c, classes):
    """From the leaf up: a node's parent is half of it, and asks whether it is the odd child."""
    code, path = c + classes, []
    while code > 1:
        path.append((code // 2 - 1, code % 2))
        code //= 2
    return path


@pytest.mark.parametrize("classes", [2, 5, 6, 8])
def test_hsigmoid_down_the_default_tree(classes):
    x, w, b = rng.normal(size=(classes, 3)), rng.normal(size=(classes - 1, 3)), rng.normal(size=(classes - 1, 1))
    longest = (classes - 1).bit_length()
    paths = [complete_path(c, classes) for c in range(classes)]
    want = [of_tree(v, w, b[:, 0], p) + (longest - len(p)) * math.log(2) for v, p in zip(x, paths, strict=True)]

    def f(x, w, b):
        return F.hsigmoid_loss(x, paddle.arange(classes), classes, w, b)
    got = f(*map(paddle.to_tensor, (x, w, b)))
    assert got.shape == [classes, 1]
    np.testing.assert_allclose(got.numpy()[:, 0], want)
    check_gradients(f, x, w, b)


def test_hsigmoid_sums_to_one():
    """e^-loss over all classes is a distribution, the log 2 of questions that were not asked left out."""
    x, w = paddle.to_tensor(rng.normal(size=(1, 3))), paddle.to_tensor(rng.normal(size=(6, 3)))
    losses = [F.hsigmoid_loss(x, paddle.to_tensor([c]), 7, w).item() for c in range(7)]
    asked = [len(complete_path(c, 7)) for c in range(7)]
    assert sum(math.exp((3 - n) * math.log(2) - loss) for n, loss in zip(asked, losses, strict=True)) == (
        pytest.approx(1))


def test_hsigmoid_down_a_tree_of_ones_own():
    x, w = rng.normal(size=(2, 3)), rng.normal(size=(4, 3))
    table, code = np.array([[0, 2, -1], [0, 1, 3]]), np.array([[1, 0, -1], [0, 0, 1]])
    want = [of_tree(x[0], w, np.zeros(4), [(0, 1), (2, 0)]) + math.log(2),
            of_tree(x[1], w, np.zeros(4), [(0, 0), (1, 0), (3, 1)])]
    got = F.hsigmoid_loss(paddle.to_tensor(x), paddle.to_tensor([0, 1]), 5, paddle.to_tensor(w), None,
                          paddle.to_tensor(table), paddle.to_tensor(code))
    np.testing.assert_allclose(got.numpy()[:, 0], want)
    layer = nn.HSigmoidLoss(3, 6)
    assert layer.weight.shape == [5, 3] and layer.bias.shape == [5, 1]
    layer(paddle.ones([2, 3]), paddle.to_tensor([0, 5])).sum().backward()
    assert layer.weight.grad.shape == [5, 3]
    with pytest.raises(ValueError, match="expected path_table and path_code"):
        nn.HSigmoidLoss(3, 6, is_custom=True)(paddle.ones([1, 3]), paddle.to_tensor([0]))
    with pytest.raises(ValueError, match="expected numbers in 0 .. 4"):
        F.hsigmoid_loss(paddle.ones([1, 3]), paddle.to_tensor([5]), 5, paddle.ones([4, 3]))


# -------------------------------------------------------------------------------------------------------- clusters
def test_adaptive_log_softmax():
    x, label = rng.normal(size=(6, 4)), np.array([0, 5, 2, 7, 1, 3])
    head, tails = rng.normal(size=(4, 4)), [(rng.normal(size=(4, 2)), rng.normal(size=(2, 3))),
                                            (rng.normal(size=(4, 1)), rng.normal(size=(1, 3)))]
    of_head = log_softmax(x @ head)
    parts = [of_head[:, :2]] + [of_head[:, 2 + i:3 + i] + log_softmax(x @ a @ b) for i, (a, b) in enumerate(tails)]
    everything = np.concatenate(parts, 1)
    np.testing.assert_allclose(np.exp(everything).sum(1), 1)
    want = everything[np.arange(6), label]

    def f(x, head, *tail):
        pairs = [list(tail[:2]), list(tail[2:])]
        return F.adaptive_log_softmax_with_loss(x, paddle.to_tensor(label), head, pairs, [2, 5, 8])
    arrays = [x, head, *tails[0], *tails[1]]
    out, loss = f(*map(paddle.to_tensor, arrays))
    np.testing.assert_allclose(out.numpy(), want)
    np.testing.assert_allclose(loss.item(), -want.mean())
    check_gradients(lambda *xs: f(*xs)[0], *arrays)
    only_frequent, _ = F.adaptive_log_softmax_with_loss(paddle.to_tensor(x), paddle.to_tensor([0] * 6),
                                                        paddle.to_tensor(head), [], [2])
    np.testing.assert_allclose(only_frequent.numpy(), everything[:, 0])
    with pytest.raises(ValueError, match="expected labels in 0 .. 7, got 8"):
        F.adaptive_log_softmax_with_loss(paddle.to_tensor(x), paddle.to_tensor([8] * 6), paddle.to_tensor(head), [],
                                         [2, 5, 8])


def test_adaptive_log_softmax_layer():
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 9, [2, 5], div_value=2.0, head_bias=True)
    assert {k: tuple(v.shape) for k, v in layer.state_dict().items()} == {
        "head_weight": (8, 4), "head_bias": (4,), "tail_weights.0.0": (8, 4), "tail_weights.0.1": (4, 3),
        "tail_weights.1.0": (8, 2), "tail_weights.1.1": (2, 4)}
    x, label = paddle.to_tensor(rng.normal(size=(5, 8)).astype("float32")), paddle.to_tensor([0, 8, 3, 4, 1])
    out, loss = layer(x, label)
    log_p = layer.log_prob(x)
    assert log_p.shape == [5, 9]
    np.testing.assert_allclose(log_p.numpy()[np.arange(5), label.numpy()], out.numpy(), rtol=1e-5)
    assert layer.predict(x).tolist() == log_p.numpy().argmax(1).tolist()
    loss.backward()
    assert all(p.grad is not None for p in layer.parameters())
    for bad in ([5, 2], [2, 9], [0, 3], [2, 2], []):
        with pytest.raises(ValueError, match="expected ascending cutoffs between 1 and 8"):
            nn.AdaptiveLogSoftmaxWithLoss(8, 9, bad)


# ------------------------------------------------------------------------------------------------ margins, samples
@pytest.mark.parametrize("margins", [(1.0, 0.5, 0.0), (1.0, 0.0, 0.35), (1.2, 0.1, 0.2)])
def test_margin_cross_entropy(margins):
    m1, m2, m3 = margins
    x, label = rng.uniform(-0.9, 0.9, (4, 5)), np.array([0, 4, 2, 2])
    moved = x.copy()
    own = np.arange(4), label
    moved[own] = np.cos(m1 * np.arccos(x[own]) + m2) - m3
    want = -log_softmax(8 * moved)[own]

    def f(x, **options):
        return F.margin_cross_entropy(x, paddle.to_tensor(label), m1, m2, m3, scale=8.0, **options)
    np.testing.assert_allclose(f(paddle.to_tensor(x), reduction=None).numpy()[:, 0], want)
    loss, softmax = f(paddle.to_tensor(x), return_softmax=True)
    np.testing.assert_allclose(loss.item(), want.mean())
    np.testing.assert_allclose(softmax.numpy(), np.exp(log_softmax(8 * moved)))
    check_gradients(f, x)


def test_class_center_sample():
    label = np.array([17, 10, 5, 18, 8, 8, 19])
    remapped, sample = F.class_center_sample(paddle.to_tensor(label), 20, 12)
    assert len(sample) == 12 and sample.tolist() == sorted(set(sample.tolist())) and set(label) <= set(sample.tolist())
    np.testing.assert_array_equal(sample.numpy()[remapped.numpy()], label)
    _, few = F.class_center_sample(paddle.to_tensor(label), 20, 3)
    assert few.tolist() == sorted(set(label.tolist()))          # all that occur stay
    draws = {tuple(F.class_center_sample(paddle.to_tensor([0]), 20, 5)[1].tolist()) for _ in range(5)}
    assert len(draws) > 1
    with pytest.raises(ValueError, match="expected labels in 0 .. 9, got 5 .. 19"):
        F.class_center_sample(paddle.to_tensor(label), 10, 3)
