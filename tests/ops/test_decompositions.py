"""Equations, decompositions and functions of matrices: what public functions make of the rows, and what they say."""

import numpy as np
import pytest
import scipy.linalg

import minipd as paddle
from minipd import linalg
from tests.nn.finite import check_gradients

RNG = np.random.default_rng(0)


def regular(n, *batch):
    return RNG.normal(size=(*batch, n, n)) + 2 * n ** 0.5 * np.eye(n)


def t(x):
    return paddle.to_tensor(x)


def close(got, want, rtol=1e-10):
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=1e-11)


# ------------------------------------------------------------------------------------------------ equations
def test_solve_takes_vectors_batches_and_either_side():
    a, b = regular(3, 2), RNG.normal(size=(3, 4))
    close(linalg.solve(t(a), t(b)), np.linalg.solve(a, np.broadcast_to(b, (2, 3, 4))))
    close(linalg.solve(t(a[0]), t(b[:, 0])), np.linalg.solve(a[0], b[:, 0]))
    vectors = RNG.normal(size=(2, 3))
    close(linalg.solve(t(a), t(vectors)), np.linalg.solve(a, vectors[..., None])[..., 0])
    close(linalg.solve(t(a), t(b[:, 0])), np.linalg.solve(a, np.broadcast_to(b[:, :1], (2, 3, 1)))[..., 0])
    x = linalg.solve(t(a[0]), t(b.T), left=False)
    close(x @ t(a[0]), b.T)
    check_gradients(lambda a, b: linalg.solve(a, b, left=False), a[0], b.T)


def test_triangular_solve_is_scipys():
    a, b = regular(4), RNG.normal(size=(4, 2))
    for upper in (True, False):
        for transpose in (True, False):
            for unit in (True, False):
                want = scipy.linalg.solve_triangular(a, b, trans=int(transpose), lower=not upper, unit_diagonal=unit)
                close(linalg.triangular_solve(t(a), t(b), upper, transpose, unit), want)


def test_determinants():
    a = regular(3, 2)
    a[1, 0] *= -1
    close(linalg.det(t(a)), np.linalg.det(a))
    close(linalg.slogdet(t(a)), np.stack(np.linalg.slogdet(a)))
    assert linalg.slogdet(t(np.ones((2, 2)))).tolist() == [0.0, -np.inf]
    assert linalg.det(t(np.ones((0, 0)))).item() == 1.0


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_and_what_follows_from_it(upper):
    a, b = regular(3, 2), RNG.normal(size=(2, 3, 2))
    a = a @ a.swapaxes(-1, -2)
    c = linalg.cholesky(t(a), upper)
    close(c.swapaxes(-1, -2) @ c if upper else c @ c.swapaxes(-1, -2), a)
    close(linalg.cholesky_solve(t(b), c, upper), np.linalg.solve(a, b))
    close(linalg.cholesky_inverse(c, upper), np.linalg.inv(a))
    check_gradients(lambda c, b: linalg.cholesky_solve(b, c, upper), c.numpy(), b)
    a.setflags(write=True)
    a[:, 0, 1 if not upper else 0] += 0 if upper else 5         # the other triangle is not read
    close(linalg.cholesky(t(a), upper), c.numpy())


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3), (2, 4, 2)])
def test_qr(shape):
    a = RNG.normal(size=shape)
    m, n = shape[-2:]
    for mode, k in (("reduced", min(m, n)), ("complete", m)):
        q, r = linalg.qr(t(a), mode)
        assert q.shape[-2:] == (m, k) and r.shape[-2:] == (k, n)
        close(q @ r, a)
        close(q.swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(k), (*shape[:-2], k, k)))
        assert not np.tril(r.numpy(), -1).any()
    close(linalg.qr(t(a), "r"), linalg.qr(t(a))[1].numpy())


def test_householder_products_are_lapacks():
    a = RNG.normal(size=(5, 3))
    (packed, tau), _ = scipy.linalg.qr(a, mode="raw")
    q = scipy.linalg.qr(a)[0]
    close(linalg.householder_product(t(packed), t(tau)), q[:, :3])
    y = RNG.normal(size=(5, 2))
    close(linalg.ormqr(t(packed), t(tau), t(y)), q @ y)
    close(linalg.ormqr(t(packed), t(tau), t(y), transpose=True), q.T @ y)
    close(linalg.ormqr(t(packed), t(tau), t(y.T), left=False), y.T @ q)
    close(linalg.ormqr(t(packed), t(tau), t(y.T), left=False, transpose=True), y.T @ q.T)
    check_gradients(linalg.householder_product, packed, tau)
    check_gradients(lambda x, tau, y: linalg.ormqr(x, tau, y), packed, tau, y)
    zero = linalg.householder_product(t(packed), t(np.zeros(3)))
    close(zero, np.eye(5, 3))


def test_svd_and_eigh():
    a = RNG.normal(size=(2, 4, 3))
    u, s, vh = linalg.svd(t(a))
    close(u @ (s.unsqueeze(-1) * vh), a)
    assert [x.shape[-2:] for x in linalg.svd(t(a), full_matrices=True)[::2]] == [(4, 4), (3, 3)]
    close(linalg.svdvals(t(a)), np.linalg.svd(a)[1])
    check_gradients(linalg.svdvals, a)
    h = a.swapaxes(-1, -2) @ a
    w, v = linalg.eigh(t(h))
    close(v @ (w.unsqueeze(-1) * v.swapaxes(-1, -2)), h)
    close(linalg.eigvalsh(t(np.tril(h))), w.numpy())
    close(linalg.eigvalsh(t(np.triu(h)), "U"), w.numpy())


def test_eig_of_rotations_is_complex():
    a = np.array([[0.0, -2.0], [2.0, 0.0]])
    w, v = linalg.eig(t(a))
    assert str(w.dtype) == "paddle.complex128"
    np.testing.assert_allclose(sorted(w.numpy().imag), [-2.0, 2.0])
    np.testing.assert_allclose(a @ v.numpy(), v.numpy() * w.numpy(), atol=1e-14)
    assert str(linalg.eigvals(t(a.astype("float32"))).dtype) == "paddle.complex64"
    v = linalg.eig(t(RNG.normal(size=(3, 5, 5))))[1].numpy()
    largest = np.take_along_axis(v, np.abs(v).argmax(-2, keepdims=True), -2)
    assert (largest.real > 0).all() and np.abs(largest.imag).max() < 1e-14


def test_lu():
    for shape in ((4, 4), (4, 2), (2, 4), (3, 3, 2), (0, 2, 2)):
        a = RNG.normal(size=shape)
        packed, pivots, infos = linalg.lu(t(a), get_infos=True)
        p, low, up = linalg.lu_unpack(packed, pivots)
        close(p @ low @ up, a)
        assert str(pivots.dtype) == str(infos.dtype) == "paddle.int32" and not infos.numpy().any()
        assert linalg.lu_unpack(packed, pivots, unpack_pivots=False)[0] is None
        assert linalg.lu_unpack(packed, pivots, unpack_ludata=False)[1:] == (None, None)
    assert linalg.lu(t(np.array([[1.0, 2.0], [2.0, 4.0]])), get_infos=True)[2].item() == 2


@pytest.mark.parametrize("trans", ["N", "T", "C"])
def test_lu_solve(trans):
    a, b = regular(3) + 1j * regular(3)[::-1], RNG.normal(size=(3, 2)) + 0j
    op = {"N": a, "T": a.T, "C": a.conj().T}[trans]
    close(linalg.lu_solve(t(b), *linalg.lu(t(a)), trans=trans), np.linalg.solve(op, b))


# ------------------------------------------------------------------------------------------------ least squares
@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss", None])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (3, 3)])
def test_lstsq(driver, shape):
    a, b = RNG.normal(size=(2, *shape)), RNG.normal(size=(2, shape[0], 2))
    x, rest, rank, s = linalg.lstsq(t(a), t(b), driver=driver)
    for i in range(2):
        want = np.linalg.lstsq(a[i], b[i])
        close(x[i], want[0])
        if shape[0] > shape[1]:
            close(rest[i], want[1])
        if driver in ("gelsd", "gelss"):
            close(s[i], want[3])
    assert rest.shape == ([2, 2] if shape[0] > shape[1] else [0])
    assert s.shape == ([2, 3] if driver in ("gelsd", "gelss") else [0])
    assert rank.shape == ([0] if driver == "gels" else [2]) and (driver == "gels" or rank.tolist() == [3, 3])


def test_lstsq_of_lower_rank_gives_the_shortest():
    a, b = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), np.array([[1.0], [2.0], [4.0]])
    x, rest, rank, s = linalg.lstsq(t(a), t(b), driver="gelsd")
    close(x, np.linalg.lstsq(a, b)[0])
    assert rest.shape == [0] and rank.item() == 1 and s.shape == [2]


def test_pinv_rank_and_cond():
    a = np.arange(15.0).reshape(3, 5)
    close(linalg.pinv(t(a), 1e-10), np.linalg.pinv(a, 1e-10))
    batch = np.stack([a, a + np.eye(3, 5)])
    close(linalg.pinv(t(batch), t(np.array([1e-10, 1e-10]))), np.linalg.pinv(batch, 1e-10))
    assert linalg.matrix_rank(t(batch)).tolist() == [2, 3]
    assert linalg.matrix_rank(t(np.diag([3.0, -2.0, 0.1])), tol=0.5, hermitian=True).item() == 2
    assert linalg.matrix_rank(t(np.diag([3.0, 2.0, 0.1])), atol=2.5).item() == 1
    assert linalg.matrix_rank(t(np.diag([3.0, 2.0, 0.1])), rtol=0.5, atol=0.01).item() == 2
    assert linalg.matrix_rank(t(batch), tol=t(np.array([100.0, 0.1]))).tolist() == [0, 3]
    for p in (None, 2, -2, "fro", "nuc", 1, -1, np.inf, -np.inf):
        c = regular(3, 2)
        close(linalg.cond(t(c), p), np.linalg.cond(c, p))
    assert linalg.cond(t(np.diag([1.0, 0.0]))).item() == np.inf


# ------------------------------------------------------------------------------------------------ functions
def test_powers_and_the_exponential():
    a = regular(3, 2)
    for n in (0, 1, 2, 5, -1, -3):
        close(linalg.matrix_power(t(a), n), np.linalg.matrix_power(a, n))
    check_gradients(lambda x: linalg.matrix_power(x, 3), a)
    close(linalg.matrix_exp(t(a)), scipy.linalg.expm(a))
    close(linalg.matrix_exp(t(a * np.array([0.01, 30.0])[:, None, None])),
          scipy.linalg.expm(a * np.array([0.01, 30.0])[:, None, None]), rtol=1e-9)
    assert linalg.matrix_exp(t(np.zeros((0, 0)))).shape == [0, 0]


def test_low_rank():
    paddle.seed(0)
    u, v = np.linalg.qr(RNG.normal(size=(30, 4)))[0], np.linalg.qr(RNG.normal(size=(20, 4)))[0]
    a = u * [8.0, 4.0, 2.0, 1.0] @ v.T
    got = linalg.svd_lowrank(t(a), q=4)
    close(got[1], [8.0, 4.0, 2.0, 1.0])
    close(got[0] * got[1] @ got[2].t(), a, rtol=1e-8)
    close(linalg.svd_lowrank(t(a + 1.0), q=4, M=t(np.ones((30, 20))))[1], [8.0, 4.0, 2.0, 1.0])
    centred = a - a.mean(0)
    close(linalg.pca_lowrank(t(a), q=4)[1], np.linalg.svd(centred)[1][:4])
    close(linalg.pca_lowrank(t(a), q=4, center=False)[1], [8.0, 4.0, 2.0, 1.0])
    assert [x.shape for x in linalg.pca_lowrank(t(a))] == [[30, 6], [6], [20, 6]]


def test_covariance():
    x, f, a = RNG.normal(size=(3, 6)), np.array([1, 2, 0, 1, 3, 1]), RNG.uniform(0.1, 1, size=6)
    for ddof in (True, False):
        close(linalg.cov(t(x), ddof=ddof), np.cov(x, ddof=int(ddof)))
        close(linalg.cov(t(x), ddof=ddof, fweights=t(f), aweights=t(a)),
              np.cov(x, ddof=int(ddof), fweights=f, aweights=a))
        close(linalg.cov(t(x), ddof=ddof, fweights=t(f)), np.cov(x, ddof=int(ddof), fweights=f))
    close(linalg.cov(t(x), rowvar=False), np.cov(x, rowvar=False))
    close(linalg.cov(t(x[0])), np.cov(x[0]))
    close(linalg.corrcoef(t(x)), np.corrcoef(x))
    close(linalg.corrcoef(t(x), rowvar=False), np.corrcoef(x, rowvar=False))
    check_gradients(linalg.corrcoef, x)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (0, 3, 2), (0, 2, 2)])
def test_matrices_without_elements(shape):
    a, (*batch, m, n) = np.zeros(shape), shape
    k = min(m, n)
    assert [x.shape for x in linalg.svd(t(a))] == [[*batch, m, k], [*batch, k], [*batch, k, n]]
    assert [x.shape for x in linalg.qr(t(a))] == [[*batch, m, k], [*batch, k, n]]
    assert linalg.pinv(t(a)).shape == [*batch, n, m]
    assert linalg.lu(t(a))[1].shape == [*batch, k]
    assert linalg.matrix_rank(t(a)).tolist() == np.zeros(batch).tolist()
    assert linalg.lstsq(t(a), t(np.zeros((*batch, m, 4))))[0].shape == [*batch, n, 4]
    if m == n:
        for f in (linalg.inv, linalg.cholesky, linalg.matrix_exp, lambda x: linalg.eigh(x)[1]):
            assert f(t(a)).shape == list(shape)
        assert linalg.det(t(a)).numpy().tolist() == np.ones(batch).tolist()


# ------------------------------------------------------------------------------------------------ bad input
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize(("f", "said"), [
    (lambda: linalg.inv(t(SINGULAR)), r"inverse: f64\[2, 2\] holds a singular matrix"),
    (lambda: linalg.inv(t(np.ones((2, 3)))), r"inverse: expected square matrices, got f64\[2, 3\] of 2 rows and 3 col"),
    (lambda: linalg.inv(t(np.ones(3))), r"inverse: expected matrices, a tensor of at least 2 dimensions, got f64\[3\]"),
    (lambda: linalg.matrix_power(t(SINGULAR), -2), "holds a singular matrix"),
    (lambda: linalg.solve(t(SINGULAR), t(np.ones(2))), r"solve: f64\[2, 2\] holds a singular matrix"),
    (lambda: linalg.solve(t(np.eye(3)), t(np.ones((2, 3)))), r"solve: expected a right-hand side of 3 rows"),
    (lambda: linalg.triangular_solve(t(np.zeros((2, 2))), t(np.ones((2, 1)))), "triangular_solve: .* zero on its diag"),
    (lambda: linalg.cholesky(t(-np.eye(2))), r"cholesky: f64\[2, 2\] is not positive definite"),
    (lambda: linalg.svd(t(np.full((2, 2), np.nan))), r"svd: f64\[2, 2\] holds NaN or infinity"),
    (lambda: linalg.eig(t(np.full((2, 2), np.nan))), r"eig: f64\[2, 2\] holds NaN or infinity"),
    (lambda: linalg.eigh(t(np.eye(2)), "X"), "eigh: expected UPLO 'L' or 'U', the triangle to read, got 'X'"),
    (lambda: linalg.qr(t(np.eye(2)), "full"), "qr: expected mode 'reduced', 'complete', 'r', got 'full'"),
    (lambda: linalg.lu(t(np.eye(2)), pivot=False), "lu: pivot=False is not supported"),
    (lambda: linalg.lu_solve(t(np.eye(2)), t(np.eye(2)), t(np.ones(2)), "X"), "lu_solve: expected trans 'N', 'T' or"),
    (lambda: linalg.lstsq(t(np.eye(2)), t(np.eye(2)), driver="qr"), "lstsq: expected driver 'gels', .* got 'qr'"),
    (lambda: linalg.lstsq(t(np.eye(2)), t(np.eye(3))), r"lstsq: expected a right-hand side of 2 rows for f64\[2, 2\]"),
    (lambda: linalg.matrix_rank(t(np.eye(2)), tol=1.0, rtol=1.0), "matrix_rank: expected either tol or atol and rtol"),
    (lambda: linalg.svd_lowrank(t(np.eye(3)), q=4), r"svd_lowrank: expected q from 0 to 3, .* f64\[3, 3\], got 4"),
    (lambda: linalg.pca_lowrank(t(np.eye(3)), niter=-1), "pca_lowrank: expected niter from 0 to 1000, got -1"),
    (lambda: linalg.cond(t(np.eye(3)), 3), "cond: expected p None, 'fro'"),
    (lambda: linalg.cov(t(np.ones((2, 2, 2)))), "cov: expected a tensor of 1 or 2 dimensions"),
    (lambda: linalg.cov(t(np.eye(2)), aweights=t(np.ones(3))), r"cov: expected aweights of shape \[2\]"),
    (lambda: linalg.cov(t(np.eye(2)), fweights=t(-np.ones(2))), "cov: expected fweights >= 0"),
    (lambda: linalg.householder_product(t(np.eye(3)), t(np.ones(4))), "householder_product: expected x of shape"),
    (lambda: linalg.ormqr(t(np.eye(3)), t(np.ones(2)), t(np.eye(2))), "ormqr: expected y with 3 rows"),
])  # fmt: skip
def test_what_is_refused(f, said):
    with pytest.raises(ValueError, match=said):
        f()


@pytest.mark.parametrize("f", [linalg.inv, linalg.det, linalg.svd, linalg.qr, linalg.eigh, linalg.eig, linalg.lu,
                               linalg.cholesky, linalg.matrix_exp, linalg.pinv])
def test_ints_are_refused(f):
    with pytest.raises(TypeError, match=r"expected a floating or complex tensor, got i64\[2, 2\]; cast it first"):
        f(t(np.eye(2, dtype="int64")))


def test_gradients_that_do_not_exist():
    x = paddle.to_tensor(np.ones((3, 2)), stop_gradient=False)
    with pytest.raises(ValueError, match="qr: the gradient in mode 'complete' needs at most as many rows as columns"):
        linalg.qr(x + paddle.to_tensor(np.eye(3, 2)), "complete")[0].sum().backward()
    with pytest.raises(ValueError, match="svd: u and vh have no gradient with full_matrices=True"):
        linalg.svd(x, full_matrices=True)[0].sum().backward()
    x = paddle.to_tensor(SINGULAR, stop_gradient=False)
    with pytest.raises(ValueError, match="holds a singular matrix"):
        linalg.det(x).backward()
