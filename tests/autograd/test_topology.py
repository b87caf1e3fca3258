"""Gradients of graphs in which values are used several times, in every order, at any depth."""

import copy
import sys

import numpy as np
import pytest

import minipd as paddle


def leaf(data, dtype="float64"):
    return paddle.to_tensor(data, dtype=dtype, stop_gradient=False)


def test_a_value_with_two_users_waits_for_both():
    """Hard case A1 (karpathy/micrograd #2, #68): an intermediate's rule must see its whole gradient."""
    a, b = leaf(2.0), leaf(3.0)
    c = a + b
    d = a * b
    e = c + d
    f = c * d
    (e + f).backward()
    assert (a.grad.item(), b.grad.item()) == (25.0, 19.0)


def test_both_operands_are_one_tensor():
    a = leaf(1.0)
    b = a + a
    c = b + b
    c.backward()
    assert a.grad.item() == 4.0
    x = leaf([3.0])
    (x * x).backward()
    assert x.grad.tolist() == [6.0]


def test_a_long_and_a_short_way_from_one_value():
    """The short way's gradient arrives first; the rule still runs once, on the sum."""
    x = leaf(2.0)
    y = x * x
    long = y
    for _ in range(10):
        long = long * 1.0
    calls = []
    y.register_hook(lambda g: calls.append(g.item()))
    (y * 3.0 + long * 5.0).backward()
    assert calls == [8.0] and x.grad.item() == 32.0


def test_five_thousand_operators_deep():
    """Hard case A3 (karpathy/micrograd PR #90): neither walking, printing, copying nor dropping a chain recurses."""
    x = leaf(0.0)
    y = x
    for _ in range(5000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0 and y.item() == 5000.0

    y = x
    for _ in range(5000):
        y = y + 1
    assert "5000." in repr(y)
    assert "add" in repr(y.node)
    assert copy.deepcopy(y).item() == 5000.0
    assert paddle.grad(y, x)[0].item() == 1.0
    depth = sys.getrecursionlimit()
    sys.setrecursionlimit(200)      # dropping the only handle frees 5000 nodes one inside the other
    try:
        del y
    finally:
        sys.setrecursionlimit(depth)


def test_the_gradient_of_a_deep_gradient():
    x = leaf(2.0)
    y = x
    for _ in range(1500):
        y = y * 1.0
    (dx,) = paddle.grad(y * y, x, create_graph=True)
    (ddx,) = paddle.grad(dx, x)
    assert (dx.item(), ddx.item()) == (4.0, 2.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [[], [3]])
def test_gradients_keep_the_dtype_of_their_tensor(dtype, shape):
    """Hard case A4 (dlsyscourse/hw2 #11): however many contributions are added up, and from wherever they come."""
    w = paddle.ones(shape, dtype)
    w.stop_gradient = False
    (w * w + w).sum().backward()
    (w * 2 + 0.5 * w - w / 4).sum().backward()
    w.sum().backward(paddle.to_tensor(1.0, dtype="float64"))        # a gradient given in another dtype
    assert w.grad.dtype.name == dtype and w.grad.shape == shape
    np.testing.assert_array_equal(w.grad.numpy().astype(float), 3 + 2.25 + 1)


def test_gradients_of_several_passes_add_up():
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    first = x.grad
    (x * 3.0).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    assert first.tolist() == [2.0, 4.0]         # what was handed out does not change
    x.clear_gradient(set_to_zero=False)
    assert x.grad is None
    x.sum().backward()
    x.clear_gradient()
    assert x.grad.tolist() == [0.0, 0.0]


def test_gradients_of_two_leaves_are_two_memories():
    """x + w hands one array to both; writing one gradient must not reach the other, nor the array handed in."""
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    seed = paddle.to_tensor([1.0, 1.0], dtype="float64")
    (x + w).backward(seed)
    with paddle.no_grad():
        x.grad.zero_()
        x.grad[0:1].fill_(7.0)
    assert w.grad.tolist() == [1.0, 1.0] and seed.tolist() == [1.0, 1.0] and x.grad.tolist() == [7.0, 0.0]
    y = leaf([1.0, 2.0])
    y.sum().backward()
    with paddle.no_grad():
        y.grad.scale_(scale=2.0)                     # a broadcast gradient is no read-only view for the user
    assert y.grad.tolist() == [2.0, 2.0]
    z = leaf([1.0])
    given = paddle.to_tensor([5.0], dtype="float64", stop_gradient=False)
    z.backward(given)
    assert z.grad is not given


def test_several_roots():
    x = leaf([1.0, 2.0])
    y, z = x * 2.0, x * x
    paddle.autograd.backward([y, z], [None, paddle.to_tensor([10.0, 100.0], dtype="float64")])
    assert x.grad.tolist() == [22.0, 402.0]
    a = leaf(3.0)
    b = a * 2.0
    paddle.autograd.backward([b, b * b])         # one root is inside the graph of the other
    assert a.grad.item() == 2.0 + 24.0
    with pytest.raises(ValueError, match="expected 2 gradients, one per output"):
        paddle.autograd.backward([b, b], [None])


def test_a_leaf_is_its_own_root():
    x = leaf([3.0, 4.0])
    x.backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_the_gradient_given_must_fit():
    x = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match=r"gradient given for .* has shape \[1\], expected \[2\]"):
        (x * x).backward(paddle.to_tensor([1.0]))
    with pytest.raises(RuntimeError, match="stop_gradient=True: nothing that made it wants a gradient"):
        paddle.to_tensor([1.0]).backward()
    with pytest.raises(TypeError, match="expected a Tensor as the gradient of .*, got list"):
        (x * x).backward([1.0, 2.0])


def test_results_that_have_no_gradient():
    """Comparisons, indices and ints end the graph: nothing comes back through them, and nothing fails."""
    x = leaf([3.0, 1.0])
    assert (x > 2.0).stop_gradient and x.argmax().stop_gradient and x.astype("int32").stop_gradient
    kept = (x > 2.0).astype("float64")
    (x * kept).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]


def test_only_the_results_used_have_gradients():
    """A row with several results gets None, or zeros, for those that nobody used."""
    x = leaf(np.arange(6.0).reshape(2, 3))
    first, _, last = paddle.split(x, 3, axis=1)
    (first * 2.0 + last * last).sum().backward()
    assert x.grad.tolist() == [[2, 0, 4], [2, 0, 10]]
    y = leaf(np.arange(4.0))
    paddle.split(y, [1, 3])[1].sum().backward()
    assert y.grad.tolist() == [0, 1, 1, 1]
