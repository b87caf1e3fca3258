"""nn.utils: weight norm, spectral norm, parameters as a vector, gradients clipped by hand."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.nn import utils

W = np.array([[3, 0, 1], [4, 1, 0]], "float32")


def layer():
    made = nn.Linear(2, 3)
    made.weight.set_value(W)
    return made


@pytest.mark.parametrize("dim, lengths", [(None, np.sqrt(27)), (-1, np.sqrt(27)), (1, [5, 1, 1]),
                                          (0, [np.sqrt(10), np.sqrt(17)])])
def test_weight_norm_keeps_the_weight(dim, lengths):
    one = utils.weight_norm(layer(), dim=dim)
    np.testing.assert_allclose(one.weight_g.numpy(), lengths, rtol=1e-6)
    assert list(one.state_dict()) == ["bias", "weight_v", "weight_g"] and one.buffers() == []
    x = paddle.to_tensor([[1.0, 2.0]])
    np.testing.assert_allclose(one(x).numpy(), np.float32([[1, 2]]) @ W, rtol=1e-5)


def test_weight_norm_trains_length_and_direction():
    one = utils.weight_norm(layer(), dim=1)
    one(paddle.ones([1, 2])).sum().backward()
    # d/dg sum(g v / ||v||) = sum(v) / ||v||, and d/dv is orthogonal to v
    np.testing.assert_allclose(one.weight_g.grad.numpy(), W.sum(0) / np.linalg.norm(W, axis=0), rtol=1e-5)
    np.testing.assert_allclose((one.weight_v.grad.numpy() * W).sum(0), 0, atol=1e-6)
    one.weight_g.set_value(np.float32([10, 1, 1]))
    np.testing.assert_allclose(one(paddle.ones([1, 2])).numpy(), [[14, 1, 1]], rtol=1e-6)
    utils.remove_weight_norm(one)
    assert [name for name, _ in one.named_parameters()] == ["bias", "weight"]
    np.testing.assert_allclose(one.weight.numpy()[:, 0], [6, 8], rtol=1e-6)
    np.testing.assert_allclose(one(paddle.ones([1, 2])).numpy(), [[14, 1, 1]], rtol=1e-6)


def test_what_cannot_be_normalised():
    one = utils.weight_norm(layer())
    with pytest.raises(ValueError, match="weight_norm: Linear.weight is computed from other parameters already"):
        utils.weight_norm(one)
    with pytest.raises(ValueError, match="spectral_norm: Linear.weight is computed from other"):
        utils.spectral_norm(one)
    with pytest.raises(ValueError, match=r"weight_norm: expected a layer with a parameter 'weight', got ReLU\(\)"):
        utils.weight_norm(nn.ReLU())
    with pytest.raises(ValueError, match="weight_norm: expected a dim in -2 .. 1, or None, got 2"):
        utils.weight_norm(layer(), dim=2)
    with pytest.raises(ValueError, match="remove_weight_norm: .* has no weight norm of 'weight'"):
        utils.remove_weight_norm(layer())
    with pytest.raises(ValueError, match="expected n_power_iterations >= 1, got 0"):
        utils.spectral_norm(layer(), n_power_iterations=0)


def test_spectral_norm_divides_by_the_largest_singular_value():
    one = utils.spectral_norm(layer(), n_power_iterations=20)
    assert list(one.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    assert one.weight_u.shape == [3] and one.weight_v.shape == [2]
    np.testing.assert_array_equal(one.weight.numpy(), W)
    x = np.eye(2, dtype="float32")
    out = one(paddle.to_tensor(x))
    np.testing.assert_allclose(out.numpy(), W / np.linalg.norm(W, 2), rtol=1e-4)
    g = np.arange(6, dtype="float32").reshape(2, 3)
    out.backward(paddle.to_tensor(g))
    u, s, vt = np.linalg.svd(W)
    want = g / s[0] - (g * W).sum() / s[0] ** 2 * np.outer(u[:, 0], vt[0])
    np.testing.assert_allclose(one.weight_orig.grad.numpy(), want, rtol=1e-3, atol=1e-5)


def test_spectral_norm_learns_only_in_training():
    one = utils.spectral_norm(layer())
    one.eval()
    before = one.weight_u.numpy()
    one(paddle.ones([1, 2]))
    np.testing.assert_array_equal(one.weight_u.numpy(), before)
    one.train()
    first = one(paddle.ones([1, 2])).sum()
    one(paddle.ones([1, 2]))
    assert (one.weight_u.numpy() != before).any()
    first.backward()                        # u and v of the first call are kept for it


def test_parameters_as_a_vector():
    one, two = layer(), nn.Linear(2, 3)
    vec = utils.parameters_to_vector(one.parameters())
    assert vec.tolist() == [*W.ravel().tolist(), 0, 0, 0] and not vec.stop_gradient
    utils.vector_to_parameters(vec, two.parameters())
    assert two.weight.tolist() == W.tolist()
    with pytest.raises(ValueError, match="expected a vector of 9 elements, as 2 parameters have, got f32.3."):
        utils.vector_to_parameters(vec[:3], two.parameters())
    with pytest.raises(ValueError, match="expected at least one parameter"):
        utils.parameters_to_vector([])


@pytest.mark.parametrize("kind, norm", [(0, 2), (1, 8), (2, 18 ** 0.5), (float("inf"), 3)])
def test_clipping_by_norm(kind, norm):
    """The norms are those that Paddle 3.3.1 gives."""
    p, q = (paddle.create_parameter([n], is_bias=True) for n in (3, 2))
    ((p * paddle.to_tensor([1.0, 0.0, 3.0])).sum() + 2 * q.sum()).backward()
    assert utils.clip_grad_norm_([p, q, paddle.create_parameter([1])], 1.0, kind).item() == pytest.approx(norm)
    np.testing.assert_allclose(p.grad.numpy(), np.float32([1, 0, 3]) / norm, rtol=1e-5)
    assert utils.clip_grad_norm_([p, q], 1e9, kind).item() == pytest.approx(2 if kind == 0 else 1, rel=1e-5)


def test_clipping_by_value_and_what_is_not_finite():
    p = paddle.create_parameter([2], is_bias=True)
    (p * paddle.to_tensor([-3.0, 0.5])).sum().backward()
    utils.clip_grad_value_(p, 1.0)
    assert p.grad.tolist() == [-1.0, 0.5]
    assert utils.clip_grad_norm_([], 1.0).item() == 0
    p.grad.set_value(np.float32([np.nan, 1]))
    with pytest.raises(RuntimeError, match="clip_grad_norm_: the norm of 1 gradients is nan"):
        utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    with pytest.raises(ValueError, match="expected a norm_type of 0, 1, 2 or inf, got 3"):
        utils.clip_grad_norm_(p, 1.0, 3)
