"""The losses of sequences: their definition is tested with their rows; here what their functions add."""

import math

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.autograd.engine import grad
from minipd.nn import functional as F
from tests.nn.finite import check_gradients
from tests.ops.cases_sequence import ctc, rnnt

rng = np.random.default_rng(5)
LOGITS, LABELS, TIMES, SIZES = rng.normal(size=(5, 3, 3)), np.array([[1, 2], [2, 2], [1, 0]]), [5, 4, 3], [2, 2, 1]


def tensors(*arrays):
    return [paddle.to_tensor(np.asarray(a)) for a in arrays]


def test_ctc_reductions():
    args, each = tensors(LOGITS, LABELS, TIMES, SIZES), ctc(LOGITS, LABELS, TIMES, SIZES)
    np.testing.assert_allclose(F.ctc_loss(*args, reduction="none").numpy(), each)
    np.testing.assert_allclose(F.ctc_loss(*args, reduction="sum").item(), each.sum())
    np.testing.assert_allclose(F.ctc_loss(*args).item(), np.mean(each / SIZES))
    np.testing.assert_allclose(nn.CTCLoss(reduction="sum")(*args).item(), each.sum())
    check_gradients(lambda x: F.ctc_loss(x, *args[1:]), LOGITS)


def test_ctc_normalised_by_times_changes_the_gradient_only():
    args = tensors(LABELS, TIMES, SIZES)
    plain, normed = (paddle.to_tensor(LOGITS, stop_gradient=False) for _ in range(2))
    a = F.ctc_loss(plain, *args, reduction="sum")
    b = F.ctc_loss(normed, *args, reduction="sum", norm_by_times=True)
    a.backward(), b.backward()
    assert a.item() == b.item()
    np.testing.assert_allclose(normed.grad.numpy(), plain.grad.numpy() / np.array(TIMES)[:, None])


def test_ctc_without_a_path():
    x = paddle.to_tensor(LOGITS[:2, :1], stop_gradient=False)
    args = tensors([[2, 2]], [2], [2])                          # 2 2 needs a blank between, so three times
    assert F.ctc_loss(x, *args).item() == math.inf
    zero = F.ctc_loss(x, *args, zero_infinity=True)
    zero.backward()
    assert zero.item() == 0 and not x.grad.numpy().any()


def test_ctc_on_large_logits():
    x = paddle.to_tensor(np.where(np.arange(3) == 1, 1e4, -1e4) * np.ones((4, 1, 1)), stop_gradient=False)
    loss = F.ctc_loss(x, *tensors([[1]], [4], [1]))
    loss.backward()
    assert loss.item() == 0 and np.isfinite(x.grad.numpy()).all()


def test_ctc_says_what_does_not_fit():
    x = paddle.to_tensor(LOGITS)
    with pytest.raises(ValueError, match=r"ctc_loss: expected scores \[T, B, C\], .* got f64\[5, 3, 3\], i64\[2, 1\]"):
        F.ctc_loss(x, *tensors([[1], [1]], TIMES, SIZES))
    with pytest.raises(ValueError, match="ctc_loss: expected input_lengths in 0 .. 5, got 6"):
        F.ctc_loss(x, *tensors(LABELS, [6, 1, 1], SIZES))
    with pytest.raises(ValueError, match="ctc_loss: expected label_lengths in 0 .. 2, got 3"):
        F.ctc_loss(x, *tensors(LABELS, TIMES, [3, 1, 1]))
    with pytest.raises(ValueError, match="ctc_loss: expected labels in 0 .. 2 other than blank=0, got 3"):
        F.ctc_loss(x, *tensors([[1, 3], [1, 1], [1, 1]], TIMES, SIZES))


def test_second_derivatives_are_refused():
    x = paddle.to_tensor(LOGITS, stop_gradient=False)
    g, = grad(F.ctc_loss(x, *tensors(LABELS, TIMES, SIZES)), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="ctc_loss: the second derivative in the logits is not available"):
        g.sum().backward()


def test_rnnt():
    x = rng.normal(size=(2, 3, 3, 4))
    x -= np.log(np.exp(x).sum(-1, keepdims=True))
    label, times, sizes = [[1, 2], [3, 3]], [3, 2], [2, 1]
    each, args = rnnt(x, np.array(label), times, sizes), tensors(label, times, sizes)
    np.testing.assert_allclose(F.rnnt_loss(paddle.to_tensor(x), *args, reduction="none").numpy(), each)
    np.testing.assert_allclose(F.rnnt_loss(paddle.to_tensor(x), *args).item(), each.mean())
    np.testing.assert_allclose(nn.RNNTLoss(reduction="sum")(paddle.to_tensor(x), *args).item(), each.sum())
    check_gradients(lambda t: F.rnnt_loss(t, *args, fastemit_lambda=0.0), x)
    with pytest.raises(ValueError, match=r"rnnt_loss: expected labels \[B, U - 1\] .* got \[2, 1\] and \[2, 3, 3, 4\]"):
        F.rnnt_loss(paddle.to_tensor(x), *tensors([[1], [3]], times, [1, 1]))
