"""Tensors and autograd where real systems have gone wrong: one test per report that no other test retells."""

import copy
import math

import numpy as np
import pytest

import minipd as paddle
from minipd.nn import functional as F


def leaf(data, dtype="float64"):
    return paddle.to_tensor(data, dtype=dtype, stop_gradient=False)


def test_gradients_are_pushed_in_topological_order():
    """Hard case A1 (karpathy/micrograd #2, #68, PR #64): a node's rule runs once, when its gradient is complete.

    Recursing into the children right after a node's own rule is right on trees only: d has two users, and e is reached
    by a short way and a long one.
    """
    a = leaf(3.0)
    runs = []
    d = a * 2.0
    d.register_hook(lambda g: runs.append(g.item()))
    e = d * d                                   # both operands are one tensor
    f = e + d
    (f * e).backward()                          # y = (d^2 + d) d^2,  dy/dd = 4 d^3 + 3 d^2 = 972 at d = 6
    assert runs == [972.0] and a.grad.item() == 1944.0


def test_many_costs_hang_on_one_chain():
    """Hard case A3 (HEmile/storchastic #87; karpathy/micrograd PR #90): no recursion, however many nodes there are."""
    x = leaf(1.0)
    y, costs = x, []
    for _ in range(3000):
        y = y + 1.0
        costs.append(y * y)
    total = paddle.add_n(costs)
    total.backward()
    assert x.grad.item() == 2.0 * sum(range(2, 3002))
    assert copy.deepcopy(total).item() == total.item()


@pytest.mark.parametrize("shape", [[], [3], [2, 3]])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_pythons_sum_does_not_change_the_dtype(shape, dtype):
    """Hard case A4 (dlsyscourse/hw2 #11): Python's sum() begins with the int 0, and a 0-D float32 must stay one."""
    w = paddle.full(shape, 2.0, dtype)
    w.stop_gradient = False
    loss = sum([w * w, w, w * 3.0])
    assert loss.dtype == w.dtype and (0 + w).dtype == w.dtype and (np.float64(1.0) * w).dtype == w.dtype
    loss.sum().backward()
    assert w.grad.dtype == w.dtype and w.grad.shape == w.shape
    np.testing.assert_array_equal(w.grad.numpy().astype(float), np.full(shape, 8.0))


@pytest.mark.parametrize("n", range(1, 6))
def test_slices_of_every_step(n):
    """Hard case A5 (ml-explore/mlx #4444): steps that jump past the end, forward and backward, exhaustively."""
    ends = [None, *range(-n - 1, n + 2)]
    for start in ends:
        for stop in ends:
            for step in (-n - 1, -3, -2, -1, 1, 2, 3, n + 1):
                part = slice(start, stop, step)
                x = leaf(np.zeros(n))
                want = np.zeros(n)
                weights = np.arange(1.0, len(want[part]) + 1)
                want[part] = weights
                (x[part] * paddle.to_tensor(weights)).sum().backward()
                assert x.grad.tolist() == want.tolist(), part


def test_negative_axes_in_gradients():
    """Hard case A7 (pytorch #5943): the axes that a gradient rule saves are counted from the front."""
    g = np.arange(6.0).reshape(3, 2)
    u = leaf(np.zeros((2, 3)))
    paddle.transpose(u, (-1, -2)).backward(paddle.to_tensor(g))
    assert u.grad.tolist() == g.T.tolist()
    x = leaf(np.zeros((2, 3)))
    (paddle.split(paddle.concat([x, x], axis=-1), [2, 4], axis=-1)[1].unsqueeze(-1).squeeze(-1).sum(axis=-2)
     * paddle.to_tensor([1.0, 2.0, 3.0, 4.0], "float64")).sum().backward()
    assert x.grad.tolist() == [[2.0, 3.0, 5.0]] * 2
    for f in (paddle.sum, paddle.mean, paddle.max, paddle.logsumexp):
        with pytest.raises(ValueError, match="names a dimension of the 2-D tensor twice"):
            f(x, axis=(0, -2))


def test_a_write_after_saving_and_one_before():
    """Hard case A8 (Paddle PR #27901, #45119): the first raises and says what to do, the second is legal."""
    for early in (True, False):
        a = leaf(np.ones((4, 2, 3)))
        b = a**2
        c = None if early else b**2
        b[1:2] = 3.3
        c = b**2 if early else c
        if early:
            F.relu(c).sum().backward()
            assert a.grad[:, 0, 0].tolist() == [4.0, 0.0, 4.0, 4.0]
        else:
            with pytest.raises(RuntimeError, match="of pow and modified .* expected version 0, found 1.*clone"):
                F.relu(c).sum().backward()


EMPTY = {
    "tile": (lambda x: paddle.tile(x, [1, 0]), [2, 1], [2, 0]),
    "expand_as": (lambda x: paddle.expand_as(x, paddle.zeros([3, 0], "float64")), [3, 1], [3, 0]),
    "expand": (lambda x: paddle.expand(x, [0, 3]), [1, 3], [0, 3]),
    "multiply": (lambda x: x * paddle.zeros([3, 0], "float64"), [3, 1], [3, 0]),
    "slice": (lambda x: x[2:2], [3, 1], [0, 1]),
    "gather": (lambda x: paddle.gather(x, paddle.zeros([0], "int64")), [3, 2], [0, 2]),
    "index_select": (lambda x: paddle.index_select(x, paddle.zeros([0], "int64"), axis=1), [3, 2], [3, 0]),
    "masked_select": (lambda x: x[x > 9.0], [3], [0]),
    "where": (lambda x: paddle.where(paddle.zeros([0, 3], "bool"), x, x), [1, 3], [0, 3]),
    "concat": (lambda x: paddle.concat([x, paddle.zeros([0, 2], "float64")])[3:], [3, 2], [0, 2]),
    "matmul": (lambda x: paddle.matmul(paddle.zeros([0, 2], "float64"), x), [2, 3], [0, 3]),
    "conv2d": (lambda x: F.conv2d(paddle.zeros([0, 1, 3, 3], "float64"), x), [1, 1, 2, 2], [0, 1, 2, 2]),
    "layer_norm": (lambda x: F.layer_norm(paddle.zeros([0, 3], "float64"), 3, weight=x), [3], [0, 3]),
    "embedding": (lambda x: F.embedding(paddle.zeros([0], "int64"), x), [4, 2], [0, 2]),
    "softmax": (lambda x: F.softmax(x[:0]), [2, 3], [0, 3]),
    "cumsum": (lambda x: paddle.cumsum(x[:0], axis=1), [2, 3], [0, 3]),
}


@pytest.mark.parametrize("name", EMPTY)
def test_gradients_of_what_an_empty_result_came_from(name):
    """Hard case A10 (Paddle PR #73040, #72984, #72986, #70504): zeros of the right shape, not garbage or None."""
    f, shape, result = EMPTY[name]
    x = leaf(np.ones(shape))
    y = f(x)
    assert y.shape == result
    y.sum().backward()
    assert x.grad.shape == shape and not x.grad.numpy().any()


def test_empty_reductions_and_a_compiled_step_without_elements():
    """Hard case A10: sum gives 0, mean NaN, max raises; a compiled kernel of no elements is not launched."""
    empty = paddle.zeros([0])
    assert empty.sum().item() == 0 and math.isnan(empty.mean().item())
    with pytest.raises(ValueError, match="empty"):
        empty.max()
    assert paddle.matmul(paddle.zeros([2, 0]), paddle.zeros([0, 3])).tolist() == [[0, 0, 0], [0, 0, 0]]
    step = paddle.jit.to_static(lambda x, w: (F.gelu(x * w) + 1.0).sum(axis=0), backend="CINN")
    w = leaf([[1.0, 2.0]], "float32")
    out = step(paddle.zeros([0, 2]), w)
    out.sum().backward()
    assert out.tolist() == [0, 0] and w.grad.tolist() == [[0, 0]]


def dead_rows(form):
    """Attention in which the second query sees no key: (output, gradients of q, k, v)."""
    rng = np.random.default_rng(0)
    q, k, v = (leaf(rng.normal(size=(1, 3, 1, 2)), "float32") for _ in range(3))
    mask = paddle.to_tensor([[[[0.0, -np.inf, -np.inf], [-np.inf] * 3, [0.0, 0.0, -np.inf]]]], "float32")
    out = form(q, k, v, mask)
    out.sum().backward()
    return out, [t.grad for t in (q, k, v)]


@pytest.mark.parametrize("backend", ["eager", None, "CINN"])
def test_rows_of_a_softmax_that_are_all_minus_infinity(backend):
    """Hard case A12 (pytorch #41508, PR #131060; tracel-ai/burn #4694): attention gives zeros there, and 0 * NaN does
    not poison the gradients of the other rows: computed eagerly, as a program, and compiled."""
    form = F.scaled_dot_product_attention
    if backend != "eager":
        form = paddle.jit.to_static(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), backend=backend)
    out, grads = dead_rows(form)
    assert not out.numpy()[:, 1].any() and out.numpy()[:, [0, 2]].all()
    assert all(np.isfinite(g.numpy()).all() for g in grads)
    assert not grads[0].numpy()[:, 1].any()
    plain = F.softmax(paddle.to_tensor([[0.0, -np.inf], [-np.inf, -np.inf]])).numpy()
    assert plain[0].tolist() == [1, 0] and np.isnan(plain[1]).all()         # the plain softmax follows numpy
