"""Gradients of operators on complex matrices, against differences along the real and the imaginary axis.

`x.grad` of a complex tensor is dL/d(re) + i dL/d(im).  Losses do not depend on what a decomposition leaves open: the
phases of singular vectors and eigenvectors.
"""

import numpy as np
import pytest

import minipd as paddle
from minipd import linalg

RNG = np.random.default_rng(0)
STEP = 1e-6


def draw(*shape):
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


SQUARE, TALL, WIDE = draw(3, 3) + 2 * np.eye(3), draw(4, 2), draw(2, 4)
WEIGHTS, COLUMN, ROW = (paddle.to_tensor(draw(*shape)) for shape in ((4, 4), (4,), (4,)))
LEVELS = paddle.to_tensor(np.array([1.0, 2.0, -1.0]))


def weighted(x):
    """A real number out of a complex tensor, in which every part of every element counts."""
    if x.ndim == 0:
        return (x * WEIGHTS[0, 0]).real()
    w = WEIGHTS[:x.shape[0], :x.shape[1]] if x.ndim == 2 else ROW[:x.shape[0]]
    return (x * w).real().sum()


def sizes(x):
    """The same for what is determined up to phases: of the squares of absolute values."""
    return weighted(x * x.conj())


def hermitian(x):
    return (x + x.conj().t()) * 0.5


def eigenvectors(x):
    v = linalg.eig(x)[1]
    return sizes(v)


def singular_vectors(x):
    u, s, vh = linalg.svd(x)
    k = s.shape[0]
    return sizes(u) + sizes(vh) + weighted((u * (s * s)) @ vh) + (s * LEVELS[:k]).sum()


CASES = {
    "inverse": (lambda x: weighted(linalg.inv(x)), SQUARE),
    "det": (lambda x: weighted(linalg.det(x)), SQUARE),
    "slogdet": (lambda x: linalg.slogdet(x).real()[1], SQUARE),
    "solve, left": (lambda x: weighted(linalg.solve(x, WEIGHTS[:3, :2])), SQUARE),
    "solve, right": (lambda y: weighted(linalg.solve(paddle.to_tensor(SQUARE), y)), SQUARE[:, :2]),
    "triangular": (lambda x: weighted(linalg.triangular_solve(x, WEIGHTS[:3, :2])), SQUARE),
    "triangular, transposed": (lambda x: weighted(linalg.triangular_solve(x, WEIGHTS[:3, :2], transpose=True)), SQUARE),
    "cholesky": (lambda x: weighted(linalg.cholesky(x @ x.conj().t())), SQUARE),
    "cholesky, upper": (lambda x: weighted(linalg.cholesky(x @ x.conj().t(), upper=True)), SQUARE),
    "eigvalsh": (lambda x: (linalg.eigvalsh(hermitian(x)) * LEVELS).sum(), SQUARE),
    "eigh": (lambda x: sizes(linalg.eigh(hermitian(x))[1]), SQUARE),
    "qr": (lambda x: weighted(linalg.qr(x)[0]) + weighted(linalg.qr(x)[1]), SQUARE),
    "qr, tall": (lambda x: weighted(linalg.qr(x)[0]) + weighted(linalg.qr(x)[1]), TALL),
    "qr, wide": (lambda x: weighted(linalg.qr(x)[0]) + weighted(linalg.qr(x)[1]), WIDE),
    "svd": (singular_vectors, SQUARE),
    "svd, tall": (singular_vectors, TALL),
    "svd, wide": (singular_vectors, WIDE),
    "pinv, tall": (lambda x: weighted(linalg.pinv(x)), TALL),
    "pinv, wide": (lambda x: weighted(linalg.pinv(x)), WIDE),
    "lu": (lambda x: weighted(linalg.lu(x)[0]), SQUARE),
    "matrix_exp": (lambda x: weighted(linalg.matrix_exp(x)), SQUARE),
    "eigvals": (lambda x: weighted(linalg.eigvals(x)), SQUARE),
    "eig": (eigenvectors, SQUARE),
    "eigvals of a real matrix": (lambda x: sizes(linalg.eigvals(x)), np.array([[1.0, -2.0], [3.0, 0.5]])),
    "eig of a real matrix": (eigenvectors, np.array([[1.0, -2.0], [3.0, 0.5]])),
    "norm": (linalg.norm, SQUARE),
    "3-norm": (lambda x: linalg.vector_norm(x, 3.0), SQUARE),
    "householder": (lambda x: weighted(linalg.householder_product(x, COLUMN[:2])), TALL),
    "cond": (linalg.cond, SQUARE),
    "vecdot": (lambda x: weighted(linalg.vecdot(x, ROW[:3])), SQUARE),
    "einsum": (lambda x: weighted(paddle.einsum("ij,kj->ik", x, WEIGHTS[:2, :3])), SQUARE),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    f, start = CASES[name]
    x = paddle.to_tensor(start, stop_gradient=False)
    f(x).backward()
    want = np.zeros_like(start)
    for at in np.ndindex(start.shape):
        for unit in (1,) if start.dtype.kind == "f" else (1, 1j):
            ends = []
            for sign in (1, -1):
                moved = start.copy()
                moved[at] += sign * STEP * unit
                ends.append(f(paddle.to_tensor(moved)).item())
            want[at] += unit * (ends[0] - ends[1]) / (2 * STEP)
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-6, atol=1e-7)


def test_values_of_hermitian_matrices():
    h = SQUARE + SQUARE.conj().T
    w, v = linalg.eigh(paddle.to_tensor(h))
    assert w.dtype == "float64" and v.dtype == "complex128"
    np.testing.assert_allclose(v.numpy() * w.numpy() @ v.numpy().conj().T, h, atol=1e-12)
    u, s, vh = linalg.svd(paddle.to_tensor(TALL))
    assert s.dtype == "float64"
    np.testing.assert_allclose(u.numpy() * s.numpy() @ vh.numpy(), TALL, atol=1e-12)
    positive = SQUARE @ SQUARE.conj().T
    up = linalg.cholesky(paddle.to_tensor(positive), upper=True).numpy()
    np.testing.assert_allclose(up.conj().T @ up, positive, atol=1e-12)
    np.testing.assert_allclose(linalg.cholesky_inverse(paddle.to_tensor(up), upper=True).numpy(),
                               np.linalg.inv(positive), atol=1e-12)
