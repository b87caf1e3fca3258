"""Products of vectors and matrices, and einsum: against numpy, by gradients, and while tracing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minipd as paddle
from minipd.framework.context import MetaOnly, using
from minipd.framework.dim import symbol
from minipd.framework.meta import Meta
from minipd.framework.tensor import Tensor
from minipd.ops.matrices.chain import _best_splits
from tests.nn.finite import check_gradients

RNG = np.random.default_rng(0)


def arrays(*shapes):
    return [RNG.normal(size=s) for s in shapes]


def tensors(*shapes):
    return [paddle.to_tensor(a) for a in arrays(*shapes)]


PRODUCTS = [
    (paddle.mm, [(2, 3), (3, 4)], np.matmul),
    (paddle.bmm, [(5, 2, 3), (5, 3, 4)], np.matmul),
    (paddle.mv, [(2, 3), (3,)], np.matmul),
    (paddle.dot, [(3,), (3,)], np.dot),
    (paddle.dot, [(2, 3), (2, 3)], lambda x, y: np.array([a @ b for a, b in zip(x, y, strict=True)])),
    (paddle.linalg.vecdot, [(2, 3), (3,)], lambda x, y: x @ y),
    (paddle.inner, [(2, 3), (4, 5, 3)], np.inner),
    (paddle.inner, [(3,), (3,)], np.inner),
    (paddle.inner, [(), (2, 3)], np.inner),
    (paddle.outer, [(2, 3), (4,)], np.outer),
    (paddle.kron, [(2, 3), (4, 5)], np.kron),
    (paddle.kron, [(2, 1, 3), (2, 2)], np.kron),
    (paddle.kron, [(), (2,)], np.kron),
    (paddle.cross, [(4, 3), (4, 3)], np.cross),
    (lambda x, y: paddle.cross(x, y, axis=0), [(3, 4), (3, 4)], lambda x, y: np.cross(x, y, axis=0)),
    (lambda x, y: paddle.tensordot(x, y, 1), [(2, 3), (3, 4)], lambda x, y: np.tensordot(x, y, 1)),
    (lambda x, y: paddle.tensordot(x, y, 0), [(2,), (3,)], lambda x, y: np.tensordot(x, y, 0)),
    (lambda x, y: paddle.tensordot(x, y, [[1, 0], [0, -1]]), [(2, 3, 4), (3, 5, 2)],
     lambda x, y: np.tensordot(x, y, ((1, 0), (0, 2)))),
    (lambda x, y: paddle.tensordot(x, y, [[0, 1, 3], [1, 0]]), [(2, 3, 4, 5), (3, 2, 4, 5)],
     lambda x, y: np.tensordot(x, y, ((0, 1, 3), (1, 0, 3)))),
    (lambda x, y: paddle.tensordot(x, y, [0, 1]), [(2, 3, 4), (2, 3, 5)],
     lambda x, y: np.tensordot(x, y, ((0, 1), (0, 1)))),
    (lambda x: paddle.trace(x, -1, 0, 2), [(3, 2, 4)], lambda x: np.trace(x, -1, 0, 2)),
    (lambda x, y: paddle.addmm(x, y, y, beta=0.5, alpha=2.0), [(3,), (3, 3)], lambda x, y: 0.5 * x + 2 * y @ y),
    (lambda x, y: paddle.baddbmm(x, y, y, alpha=2.0), [(2, 1, 3), (2, 3, 3)], lambda x, y: x + 2 * y @ y),
    (lambda *xs: paddle.linalg.multi_dot(xs), [(5,), (5, 2), (2, 4), (4, 3)], lambda *xs: np.linalg.multi_dot(xs)),
    (lambda *xs: paddle.linalg.multi_dot(xs), [(2, 3), (3,)], lambda *xs: np.linalg.multi_dot(xs)),
]  # fmt: skip


@pytest.mark.parametrize(("f", "shapes", "want"), PRODUCTS)
def test_products(f, shapes, want):
    xs = arrays(*shapes)
    got = f(*map(paddle.to_tensor, xs))
    np.testing.assert_allclose(got.numpy(), want(*xs), rtol=1e-13, atol=1e-13)
    assert got.shape == list(np.shape(want(*xs)))
    check_gradients(f, *xs)


def test_the_order_of_a_chain_takes_the_fewest_multiplications():
    # 10x100, 100x5, 5x50: (AB)C takes 5000 + 2500, A(BC) 25000 + 50000
    assert _best_splits([10, 100, 5, 50])[0, 2] == 1
    assert _best_splits([50, 5, 100, 10])[0, 2] == 0


def test_ints_multiply_too():
    x = paddle.to_tensor([[1, 2], [3, 4]])
    assert paddle.mm(x, x).tolist() == [[7, 10], [15, 22]]
    assert paddle.kron(x, x)[0].tolist() == [1, 2, 2, 4]
    assert paddle.trace(x).item() == 5 and str(paddle.trace(x.astype("int32")).dtype) == "paddle.int64"
    assert paddle.einsum("ij,j->i", x, paddle.to_tensor([1, 1])).tolist() == [3, 7]


@pytest.mark.parametrize(("f", "said"), [
    (lambda: paddle.bmm(*tensors((2, 3), (2, 3))), "bmm: expected operands of 3 and 3 dimensions, got f64.2, 3."),
    (lambda: paddle.bmm(*tensors((2, 3, 4), (3, 4, 5))), "bmm: expected as many matrices .* got f64.2, 3, 4. and f64"),
    (lambda: paddle.bmm(*tensors((2, 3, 4), (2, 5, 5))), "matmul of f64.2, 3, 4. and f64.2, 5, 5.: the inner sizes"),
    (lambda: paddle.mv(*tensors((2, 3), (2, 3))), "mv: expected operands of 2 and 1 dimensions"),
    (lambda: paddle.dot(*tensors((2,), (3,))), r"dot: expected two tensors of one shape.* got f64\[2\] and f64\[3\]"),
    (lambda: paddle.inner(*tensors((2,), (3,))), "inner: expected operands with equal last dimensions"),
    (lambda: paddle.cross(*tensors((2,), (2,))), r"cross: expected a dimension of size 3, got f64\[2\]"),
    (lambda: paddle.cross(*tensors((3, 2), (3, 2)), axis=1), "cross: expected axis 1 of size 3"),
    (lambda: paddle.cross(*tensors((3, 2), (3, 1))), "cross: expected operands of one shape"),
    (lambda: paddle.addmm(*tensors((2,), (3, 4), (4, 3))), r"addmm.*\[2\]"),
    (lambda: paddle.addmm(*tensors((2, 3, 3), (3, 4), (4, 3))), "addmm: expected an input that broadcasts"),
    (lambda: paddle.tensordot(*tensors((2, 3), (2, 3)), axes=1), "tensordot: expected axis 1 of f64.2, 3. and axis 0"),
    (lambda: paddle.tensordot(*tensors((2, 3), (2, 3)), axes=3), "tensordot: expected 0 to 2 axes"),
    (lambda: paddle.tensordot(*tensors((2, 3), (2, 3)), axes=[[0, 0], [0, 0]]), "name an axis twice"),
    (lambda: paddle.linalg.multi_dot(tensors((2, 3))), "multi_dot: expected at least two tensors, got 1"),
    (lambda: paddle.linalg.multi_dot(tensors((2, 3), (3,), (3, 2))), "multi_dot: expected matrices"),
    (lambda: paddle.einsum("ij,jk->ik", *tensors((2, 3))), "einsum: expected an operand for each of the 2 words"),
    (lambda: paddle.einsum("ij,jk->ik", *tensors((2, 3), (4, 5))), "einsum: 'j' in 'ij,jk->ik' is 3 in one .* and 4"),
    (lambda: paddle.einsum("ij->i", *tensors((2, 3, 4))), "einsum: expected an operand of 2 dimensions for 'ij'"),
    (lambda: paddle.einsum("ij->ii", *tensors((2, 3))), "einsum: expected each letter of the result once.* got 'i'"),
    (lambda: paddle.einsum("i1->i", *tensors((2, 3))), "einsum: expected letters and '...', got '1'"),
    (lambda: paddle.einsum("ij->k", *tensors((2, 3))), "einsum: expected each letter of the result once.* got 'k'"),
])
def test_what_products_refuse(f, said):
    with pytest.raises(ValueError, match=said):
        f()


# ------------------------------------------------------------------------------------------------ einsum
EQUATIONS = [
    ("i->", (4,)), ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("iji->j", (3, 2, 3)),
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("i,j->ij", (2,), (3,)), ("i,i->", (3,), (3,)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("ij,ij->ij", (2, 3), (2, 3)), ("ij,kl->jk", (2, 3), (4, 5)),
    ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)), ("...ij,...jk->...ik", (5, 2, 3), (3, 4)), ("...i->...", (2, 3)),
    ("i...,i...->...", (3, 2), (3, 4, 2)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,j,kj->ik", (2, 3), (3,), (4, 3)), ("bn,anm,bm->ba", (2, 3), (5, 3, 4), (2, 4)), ("ij,jk->ik", (2, 1), (3, 4)),
    ("ii,ij->ij", (3, 3), (3, 2)), (" i j , j -> i ", (2, 3), (3,)), ("ij,ik->ijk", (0, 3), (0, 4)),
    ("ij,j->i", (2, 0), (0,)), (",i->i", (), (3,)),
]  # fmt: skip


@pytest.mark.parametrize("case", EQUATIONS, ids=[c[0] for c in EQUATIONS])
def test_einsum(case):
    equation, *shapes = case
    xs = arrays(*shapes)
    want = np.einsum(equation.replace(" ", ""), *(np.broadcast_to(x, (2, 3)) if x.shape == (2, 1) else x for x in xs))
    got = paddle.einsum(equation, *map(paddle.to_tensor, xs))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)
    if all(x.size for x in xs):
        check_gradients(lambda *ts: paddle.einsum(equation, *ts), *xs)


@given(st.data())
def test_any_einsum(data):
    sizes = dict(zip("abcde", data.draw(st.lists(st.integers(1, 3), min_size=5, max_size=5)), strict=True))
    words = data.draw(st.lists(st.text("abcde", min_size=1, max_size=4), min_size=1, max_size=3))
    used = sorted(set("".join(words)))
    result = "".join(data.draw(st.permutations(used)))[:data.draw(st.integers(0, len(used)))]
    xs = arrays(*(tuple(sizes[c] for c in word) for word in words))
    equation = f"{','.join(words)}->{result}"
    got = paddle.einsum(equation, *map(paddle.to_tensor, xs)).numpy()
    np.testing.assert_allclose(got, np.einsum(equation, *xs), rtol=1e-10, atol=1e-10)


def test_einsum_of_symbolic_shapes():
    b, n = symbol("B"), symbol("N")
    x, y = (Tensor(Meta(s, np.dtype("float32"))) for s in ((b, n, 4), (b, 4, n)))
    with using(ground=MetaOnly()):
        assert tuple(paddle.einsum("bij,bjk->bik", x, y).payload.shape) == (b, n, n)
        assert tuple(paddle.einsum("bij,bji->b", x, y).payload.shape) == (b,)


def test_results_written_into_tensors():
    x, y = tensors((2, 3), (3, 2))
    out = paddle.zeros([2, 2], "float64")
    assert paddle.matmul(x, y, out=out) is out
    np.testing.assert_allclose(out.numpy(), x.numpy() @ y.numpy())
    want = 0.5 * out.numpy() + x.numpy() @ y.numpy()
    assert out.addmm_(x, y, beta=0.5) is out
    np.testing.assert_allclose(out.numpy(), want)
    with pytest.raises(ValueError, match=r"out: expected a tensor like the result, f64\[2, 2\], got f64\[2, 3\]"):
        paddle.matmul(x, y, out=x)
