"""Cross entropy against numpy, and its gradients against differences."""

import itertools

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.nn import functional as F
from tests.nn.finite import check_gradients

rng = np.random.default_rng(3)


def log_probabilities(logits):
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return np.log(e / e.sum(-1, keepdims=True))


def by_numpy(logits, label, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """One position after the other, classes last."""
    losses, factors = [], []
    for row, k in zip(log_probabilities(logits).reshape(-1, logits.shape[-1]), label.reshape(-1), strict=True):
        q = np.full(len(row), label_smoothing / len(row))
        q[k if k != ignore_index else 0] += 1 - label_smoothing
        factor = 0.0 if k == ignore_index else 1.0 if weight is None else float(q @ weight)
        losses.append(-float(q @ row) * factor)
        factors.append(factor)
    losses, factors = np.reshape(losses, label.shape), np.array(factors)
    total = factors.sum()
    return {"none": losses, "sum": losses.sum(), "mean": losses.sum() / total if total else 0.0}[reduction]


@pytest.mark.parametrize("reduction,weighted,smoothing", list(itertools.product(
    ["mean", "sum", "none"], [False, True], [0.0, 0.2])))
def test_hard_labels(reduction, weighted, smoothing):
    logits, label = rng.normal(size=(2, 3, 5)), rng.integers(0, 5, (2, 3))
    label[0, 1] = label[1, 1] = -100
    weight = rng.uniform(0.5, 2.0, 5) if weighted else None

    def loss(x, label=label, **options):
        return F.cross_entropy(x, paddle.to_tensor(label), None if weight is None else paddle.to_tensor(weight),
                               reduction=reduction, label_smoothing=smoothing, **options)
    want = by_numpy(logits, label, weight, -100, reduction, smoothing)
    np.testing.assert_allclose(loss(paddle.to_tensor(logits)).numpy(), want, rtol=1e-12)
    one = loss(paddle.to_tensor(logits), label[..., None]).numpy()
    np.testing.assert_allclose(one, want[..., None] if reduction == "none" else want, rtol=1e-12)
    other = np.where(label == -100, 1, label)
    np.testing.assert_allclose(loss(paddle.to_tensor(logits), other, ignore_index=1).numpy(),
                               by_numpy(logits, other, weight, 1, reduction, smoothing), rtol=1e-12)
    check_gradients(loss, logits)
    moved = paddle.to_tensor(np.moveaxis(logits, -1, 1))
    np.testing.assert_allclose(loss(moved, axis=1).numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_soft_labels(reduction):
    logits, label = rng.normal(size=(3, 4)), rng.dirichlet(np.ones(4), 3)
    weight = rng.uniform(0.5, 2.0, 4)
    losses = -(label * log_probabilities(logits)).sum(-1, keepdims=True)
    want = {"none": losses, "sum": losses.sum(), "mean": losses.mean()}[reduction]
    options = {"soft_label": True, "reduction": reduction}
    got = F.cross_entropy(paddle.to_tensor(logits), paddle.to_tensor(label), **options)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    factors = (label * weight).sum(-1, keepdims=True)
    weighted = {"none": losses * factors, "sum": (losses * factors).sum(),
                "mean": (losses * factors).sum() / factors.sum()}[reduction]
    got = F.cross_entropy(paddle.to_tensor(logits), paddle.to_tensor(label), paddle.to_tensor(weight), **options)
    np.testing.assert_allclose(got.numpy(), weighted, rtol=1e-12)
    check_gradients(lambda x, y: F.cross_entropy(x, y, **options), logits, label)
    probabilities = np.exp(log_probabilities(logits))
    got = F.cross_entropy(paddle.to_tensor(probabilities), paddle.to_tensor(label), use_softmax=False, **options)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


def test_probabilities_instead_of_logits():
    logits, label = rng.normal(size=(3, 4)), np.array([1, -100, 3])
    got = F.cross_entropy(paddle.to_tensor(np.exp(log_probabilities(logits))), paddle.to_tensor(label),
                          use_softmax=False)
    assert got.item() == pytest.approx(by_numpy(logits, label), rel=1e-12)
    check_gradients(lambda p: F.cross_entropy(p, paddle.to_tensor(label), use_softmax=False),
                    rng.uniform(0.1, 1, (3, 4)))


def test_the_mean_weighs_tokens_not_batches():
    """Sums 4 over 1 token and 6 over 3 tokens: 2.5; the mean of the means would be 3 (torchtitan PR #2206)."""
    label = np.array([0, -100, -100, -100, 0, 0, 0, -100])
    probabilities = np.exp(-np.array([4.0, 9, 9, 9, 1, 2, 3, 9]))[:, None]
    assert F.cross_entropy(paddle.to_tensor(probabilities), paddle.to_tensor(label), use_softmax=False).item() == (
        pytest.approx(2.5))


@pytest.mark.parametrize("weighted", [False, True])
def test_all_labels_ignored_give_zero_and_zero_gradients(weighted):
    """Not NaN (Megatron-LM #7452)."""
    x = paddle.to_tensor(rng.normal(size=(3, 4)), stop_gradient=False)
    loss = F.cross_entropy(x, paddle.to_tensor([-100] * 3), paddle.ones([4]) if weighted else None)
    loss.backward()
    assert loss.item() == 0.0 and x.grad.tolist() == [[0.0] * 4] * 3


def test_large_logits_do_not_overflow():
    x = paddle.to_tensor([[1e4, 0.0], [-1e4, 1e4]], stop_gradient=False)
    loss = F.cross_entropy(x, paddle.to_tensor([1, 1]), reduction="none")
    assert loss.tolist() == [1e4, 0.0]
    loss.sum().backward()
    assert x.grad.tolist() == [[1.0, -1.0], [0.0, 0.0]]


def test_low_precision_counts_in_float32():
    """bfloat16 cannot count to 300: 257 is not among its numbers."""
    loss = F.cross_entropy(paddle.zeros([300, 2], "bfloat16"), paddle.zeros([300], "int64"))
    assert loss.dtype == "bfloat16" and loss.item() == pytest.approx(np.log(2), rel=2 ** -8)


def test_labels_that_do_not_fit():
    x = paddle.zeros([2, 3])
    for use_softmax in (True, False):
        for bad in (3, -1):
            with pytest.raises(ValueError, match=f"expected labels in 0 .. 2 or ignore_index=-100, got {bad}"):
                F.cross_entropy(x, paddle.to_tensor([0, bad]), use_softmax=use_softmax)
    with pytest.raises(ValueError, match=r"expected int labels of shape \[2\] or \[2, 1\] for logits f32\[2, 3\], got "
                                         r"i64\[3\]"):
        F.cross_entropy(x, paddle.to_tensor([0, 0, 0]))
    with pytest.raises(ValueError, match=r"got f32\[2\]"):
        F.cross_entropy(x, paddle.to_tensor([0.0, 1.0]))
    with pytest.raises(ValueError, match=r"expected soft labels, floats of the shape of f32\[2, 3\], got i64\[2\]"):
        F.cross_entropy(x, paddle.to_tensor([0, 1]), soft_label=True)
    with pytest.raises(ValueError, match="expected reduction 'mean', 'sum' or 'none', got 'avg'"):
        F.cross_entropy(x, paddle.to_tensor([0, 1]), reduction="avg")
    with pytest.raises(ValueError, match=r"expected weight of shape \[3\], one per class, got \[2\]"):
        F.cross_entropy(x, paddle.to_tensor([0, 1]), paddle.ones([2]))


def test_softmax_with_cross_entropy():
    logits = rng.normal(size=(2, 3))
    loss, softmax = F.softmax_with_cross_entropy(paddle.to_tensor(logits), paddle.to_tensor([[2], [0]]),
                                                 return_softmax=True)
    log_p = log_probabilities(logits)
    np.testing.assert_allclose(loss.numpy(), [[-log_p[0, 2]], [-log_p[1, 0]]], rtol=1e-12)
    np.testing.assert_allclose(softmax.numpy(), np.exp(log_p), rtol=1e-12)
    soft = F.softmax_with_cross_entropy(paddle.to_tensor(logits), paddle.to_tensor(np.exp(log_p)), soft_label=True)
    np.testing.assert_allclose(soft.numpy(), -(np.exp(log_p) * log_p).sum(-1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_nll_loss(reduction, weighted):
    logits, label = rng.normal(size=(2, 3, 5)), rng.integers(0, 5, (2, 3))
    label[0, 1] = -100
    weight = rng.uniform(0.5, 2.0, 5) if weighted else None
    want = by_numpy(logits, label, weight, -100, reduction)
    options = {"weight": None if weight is None else paddle.to_tensor(weight), "reduction": reduction}

    def loss(x):
        return F.nll_loss(x, paddle.to_tensor(label), **options)
    log_p = np.moveaxis(log_probabilities(logits), -1, 1)
    np.testing.assert_allclose(loss(paddle.to_tensor(log_p)).numpy(), want, rtol=1e-12)
    check_gradients(loss, log_p)
    with pytest.raises(ValueError, match="nll_loss: expected labels in 0 .. 4 or ignore_index=-100, got 5"):
        F.nll_loss(paddle.to_tensor(log_p), paddle.full([2, 3], 5, "int64"))


def test_smoothed_distributions_need_not_be_announced():
    logits, label = rng.normal(size=(3, 4)), np.array([1, 0, 3])
    hard = F.cross_entropy(paddle.to_tensor(logits), paddle.to_tensor(label), label_smoothing=0.3)
    soft = F.cross_entropy(paddle.to_tensor(logits), paddle.to_tensor(np.eye(4, dtype="float32")[label]),
                           label_smoothing=0.3)
    assert hard.item() == pytest.approx(soft.item())


def test_dice_loss():
    x, label = rng.uniform(0, 1, (2, 2, 3)), np.array([[[1], [0]], [[2], [2]]])
    hot = np.eye(3)[label[..., 0]]
    want = np.mean([1 - 2 * (a * b).sum() / (a.sum() + b.sum() + 1e-5) for a, b in zip(x, hot, strict=True)])
    assert F.dice_loss(paddle.to_tensor(x), paddle.to_tensor(label)).item() == pytest.approx(want)
    check_gradients(lambda t: F.dice_loss(t, paddle.to_tensor(label)), x)


def test_loss_layers():
    x, y = paddle.to_tensor([[0.0, 1.0, 2.0, 3.0]]), paddle.to_tensor([2])
    assert nn.CrossEntropyLoss(label_smoothing=0.1)(x, y).item() == pytest.approx(1.49019, abs=1e-5)
    assert nn.MSELoss("sum")(x, paddle.ones([4])).item() == 1 + 0 + 1 + 4
    with pytest.raises(ValueError, match="MSELoss: expected reduction"):
        nn.MSELoss("avg")
