"""Norms and distances: against numpy and scipy, with gradients where vectors are 0."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import distance

import minipd as paddle
from minipd import linalg
from tests.nn.finite import check_gradients

RNG = np.random.default_rng(0)
INF = float("inf")


def t(x):
    return paddle.to_tensor(x)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("p", [0, 1, 2, 3, 2.5, 0.5, -1, -2.0, INF, -INF])
def test_vector_norms(p, keepdim):
    x = RNG.normal(size=(2, 3, 4))
    for axis in (0, -1):
        want = np.linalg.norm(x, p, axis, keepdim)
        np.testing.assert_allclose(linalg.vector_norm(t(x), p, axis, keepdim).numpy(), want, rtol=1e-12)
        np.testing.assert_allclose(linalg.norm(t(x), p, axis, keepdim).numpy(), want, rtol=1e-12)
    for axis in (None, (0, 2)):
        want = np.linalg.vector_norm(x, ord=p, axis=axis, keepdims=keepdim)
        np.testing.assert_allclose(linalg.vector_norm(t(x), p, axis, keepdim).numpy(), want, rtol=1e-12)
    if p != 0:
        check_gradients(lambda x: linalg.vector_norm(x, p, [0, 2], keepdim), x)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("p", ["fro", "nuc", 1, -1, 2, -2, INF, -INF])
def test_matrix_norms(p, keepdim):
    x = RNG.normal(size=(2, 3, 4))
    for axis in ((0, 1), (-1, 0), [1, 2]):
        want = np.linalg.norm(x, p, tuple(axis), keepdim)
        np.testing.assert_allclose(linalg.matrix_norm(t(x), p, axis, keepdim).numpy(), want, rtol=1e-12)
        np.testing.assert_allclose(linalg.norm(t(x), p, axis, keepdim).numpy(), want, rtol=1e-12)
    check_gradients(lambda x: linalg.matrix_norm(x, p, (-1, 0), keepdim), x)


def test_norms_by_default():
    x = RNG.normal(size=(3, 4))
    frobenius = np.sqrt((x * x).sum())
    for got in (linalg.norm(t(x)), linalg.norm(t(x), "fro"), linalg.norm(t(x), axis=(0, 1)), paddle.norm(t(x)),
                t(x).norm(), linalg.matrix_norm(t(x)), linalg.vector_norm(t(x))):
        assert got.item() == pytest.approx(frobenius, rel=1e-14)
    assert linalg.norm(t(x), "nuc").item() == pytest.approx(np.linalg.svd(x)[1].sum())
    assert str(linalg.norm(t(x), dtype="float32").dtype) == "paddle.float32"
    z = np.array([3 + 4j, 0])
    assert linalg.norm(t(z)).item() == 5.0 and str(linalg.norm(t(z)).dtype) == "paddle.float64"


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_the_gradient_of_a_norm_of_zero_is_zero(p):
    x = paddle.to_tensor(np.array([[0.0, 0.0], [3.0, 0.0]]), stop_gradient=False)
    linalg.vector_norm(x, p, -1).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [1.0, 0.0]]


@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3), st.sampled_from([0.0, 1.0, 2.0, 3.0, INF]))
def test_distances_of_rows(m, n, k, p):
    x, y = RNG.normal(size=(m, k)), RNG.normal(size=(n, k))
    if k == 0 and p == INF:
        return
    want = np.array([[np.linalg.vector_norm(a - b, ord=p) for b in y] for a in x]).reshape(m, n)
    np.testing.assert_allclose(paddle.cdist(t(x), t(y), p).numpy(), want, rtol=1e-10)
    pairs = [np.linalg.vector_norm(x[i] - x[j], ord=p) for i in range(m) for j in range(i + 1, m)]
    np.testing.assert_allclose(paddle.pdist(t(x), p).numpy(), pairs, rtol=1e-10)


def test_many_distances_by_a_product():
    x, y = RNG.normal(size=(2, 30, 3)), RNG.normal(size=(40, 3))
    want = np.stack([distance.cdist(a, y) for a in x])
    for mode in ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        np.testing.assert_allclose(paddle.cdist(t(x), t(y), compute_mode=mode).numpy(), want, rtol=1e-10)
    few = x[0, :3], y[:2]
    check_gradients(lambda x, y: paddle.cdist(x, y, compute_mode="use_mm_for_euclid_dist"), *few)
    check_gradients(paddle.cdist, *few)
    check_gradients(paddle.pdist, few[0])
    same = paddle.to_tensor(y, stop_gradient=False)
    paddle.cdist(same, same).sum().backward()                   # 0 on the diagonal, where there is no slope
    assert np.isfinite(same.grad.numpy()).all()


def test_dist_broadcasts():
    x, y = RNG.normal(size=(3, 1)), RNG.normal(size=4)
    for p in (0, 1, 2, 3, INF, -INF):
        assert paddle.dist(t(x), t(y), p).item() == pytest.approx(np.linalg.vector_norm(x - y, ord=p))


@pytest.mark.parametrize(("f", "error", "said"), [
    (lambda x: linalg.norm(x, "other"), ValueError, "norm: expected p 'fro', 'nuc' or a number, got 'other'"),
    (lambda x: linalg.norm(x, "nuc", 0), ValueError, "norm: expected two axes for the norm 'nuc'"),
    (lambda x: linalg.norm(x, 3, [0, 1]), ValueError, "matrix_norm: expected p 'fro', .* got 3"),
    (lambda x: linalg.matrix_norm(x, axis=0), ValueError, "matrix_norm: expected two axes, of rows and columns, got 0"),
    (lambda x: linalg.matrix_norm(x, axis=(0, -2)), ValueError, "matrix_norm: expected two different axes"),
    (lambda x: linalg.vector_norm(x, "fro"), ValueError, "vector_norm: expected a number for p, got 'fro'"),
    (lambda x: linalg.vector_norm(x.astype("int64")), TypeError, r"vector_norm: .* got i64\[2, 3\]; cast it first"),
    (lambda x: linalg.norm(x.astype("int64")), TypeError, "norm: expected a floating or complex tensor"),
    (lambda x: paddle.cdist(x, x[:, :2]), ValueError, r"cdist: expected .* got f64\[2, 3\] and f64\[2, 2\]"),
    (lambda x: paddle.cdist(x, x, -1.0), ValueError, "cdist: expected p >= 0, got -1"),
    (lambda x: paddle.cdist(x, x, compute_mode="fast"), ValueError, "cdist: expected compute_mode .* got 'fast'"),
    (lambda x: paddle.pdist(x[0]), ValueError, r"pdist: expected a matrix, a row for each point, got f64\[3\]"),
])
def test_what_norms_refuse(f, error, said):
    with pytest.raises(error, match=said):
        f(t(RNG.normal(size=(2, 3))))
