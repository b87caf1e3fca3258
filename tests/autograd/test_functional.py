"""jacobian, hessian, vjp, jvp: against numpy formulas; rows are computed as they are read."""

import numpy as np
import pytest

import minipd as paddle
from minipd.autograd import hessian, jacobian
from minipd.incubate import autograd as incubate

A = np.array([[1.0, 2.0, -1.0], [0.5, -1.0, 3.0]])
V = np.array([0.3, -0.7, 1.1])


def leaf(data):
    return paddle.to_tensor(data, dtype="float64", stop_gradient=False)


def f(x):
    """[3] -> [2]: sin(A x), with the Jacobian diag(cos(A x)) A."""
    return paddle.sin(leaf(A) @ x)


def test_jacobian():
    x = leaf(V)
    J = jacobian(f(x), x)
    want = np.cos(A @ V)[:, None] * A
    assert J.shape == [2, 3]
    np.testing.assert_allclose(J[:].numpy(), want)
    np.testing.assert_allclose(J[1].numpy(), want[1])
    np.testing.assert_allclose(J[-1, ::2].numpy(), want[-1, ::2])
    np.testing.assert_allclose(J[:, 1].numpy(), want[:, 1])
    np.testing.assert_allclose((J @ leaf(V) + 1.0).numpy(), want @ V + 1)
    np.testing.assert_allclose(J.numpy(), want)
    assert J[0:0].shape == [0, 3]
    with pytest.raises(IndexError, match="row 2 is out of range for 2 rows"):
        J[2]


def test_only_the_rows_that_are_read_are_computed():
    x = leaf(V)
    y = paddle.exp(x)
    calls = []
    y.register_hook(lambda g: calls.append(g.tolist()))
    J = jacobian(y, x)
    assert calls == []
    J[2], J[2, 1], J[1:]
    assert calls == [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]


def test_tuples_nest():
    x, w = leaf(V), leaf(V + 1)
    J = jacobian((x * w, x.sum()), (x, w))
    np.testing.assert_allclose(J[0][1][:].numpy(), np.diag(V))
    np.testing.assert_allclose(J[1][0][:].numpy(), np.ones(3))
    np.testing.assert_array_equal(J[1][1][:].numpy(), np.zeros(3))


def test_batches_are_independent():
    x = leaf(np.stack([V, 2 * V]))
    J = jacobian(x * x, x, batch_axis=0)
    assert J.shape == [2, 3, 3]
    np.testing.assert_allclose(J[:].numpy(), np.stack([np.diag(2 * V), np.diag(4 * V)]))
    H = hessian((x * x * x).sum(1), x, batch_axis=0)
    np.testing.assert_allclose(H[:].numpy(), np.stack([np.diag(6 * V), np.diag(12 * V)]))


def test_hessian_of_a_quadratic_form():
    m = A.T @ A + np.arange(9).reshape(3, 3)
    x = leaf(V)
    np.testing.assert_allclose(hessian(x @ (leaf(m) @ x), x)[:].numpy(), m + m.T)


def test_hessian_of_two_tensors():
    x, w = leaf(V), leaf([2.0, 3.0, 5.0])
    H = hessian((x * x * w).sum(), (x, w))
    np.testing.assert_allclose(H[0][0][:].numpy(), np.diag([4.0, 6.0, 10.0]))
    np.testing.assert_allclose(H[0][1][:].numpy(), np.diag(2 * V))
    np.testing.assert_allclose(H[1][0][:].numpy(), np.diag(2 * V))
    np.testing.assert_array_equal(H[1][1][:].numpy(), np.zeros((3, 3)))


def test_what_was_read_can_be_differentiated():
    x = leaf(V)
    H = hessian((x * x * x * x).sum(), x)
    (third,) = paddle.grad(H[:].sum(), x)
    np.testing.assert_allclose(third.numpy(), 24 * V)


@pytest.mark.parametrize("call, error, words", [
    (lambda: jacobian(leaf(A) * 1.0, leaf(A)), ValueError, r"expected ys of 0 or 1 dimensions, got f64\[2, 3\]"),
    (lambda: jacobian(leaf(V), 3.0), TypeError, "expected xs to be a Tensor, got float"),
    (lambda: jacobian(leaf(V), leaf(V), batch_axis=1), ValueError, "expected batch_axis None or 0, got 1"),
    (lambda: hessian(leaf(V), leaf(V)), ValueError, r"expected ys of one element, got f64\[3\]"),
    (lambda: incubate.vjp(f, leaf(V), leaf(V)), ValueError, r"expected v of the shapes \[\[2\]\], got \[\[3\]\]"),
])
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_vjp_and_jvp():
    J = np.cos(A @ V)[:, None] * A
    u, v = np.array([2.0, -1.0]), np.array([1.0, 0.5, -2.0])
    ys, got = incubate.vjp(f, leaf(V), leaf(u))
    np.testing.assert_allclose(ys.numpy(), np.sin(A @ V))
    np.testing.assert_allclose(got.numpy(), u @ J)
    np.testing.assert_allclose(incubate.jvp(f, leaf(V), leaf(v))[1].numpy(), J @ v)
    np.testing.assert_allclose(incubate.jvp(f, leaf(V))[1].numpy(), J @ np.ones(3))


def test_vjp_and_jvp_of_several():
    a, b = leaf(V), leaf(V + 1)
    _, (ga, gb) = incubate.vjp(lambda a, b: (a * b, a + 0.0), [a, b])
    np.testing.assert_allclose(ga.numpy(), V + 2)
    np.testing.assert_allclose(gb.numpy(), V)
    _, (d1, d2) = incubate.jvp(lambda a, b: (a * b, a + 0.0), [a, b])
    np.testing.assert_allclose(d1.numpy(), 2 * V + 1)
    np.testing.assert_allclose(d2.numpy(), np.ones(3))
    assert a.grad is None


def test_functions_of_tensors_of_any_shape():
    x, y = leaf(A), leaf(A.T)
    J = incubate.Jacobian(lambda x, y: x @ y, [x, y])
    want = np.zeros((2, 2, 6))
    for i in range(2):
        for j in range(2):
            e = np.zeros((2, 3))
            e[i] = A.T[:, j]
            want[i, j] = e.ravel()
    assert J.shape == [4, 12]
    np.testing.assert_allclose(J[:, :6].numpy(), want.reshape(4, 6))
    H = incubate.Hessian(lambda x: (x * x * x).sum(), x)
    np.testing.assert_allclose(H[:].numpy(), np.diag(6 * A.ravel()))
