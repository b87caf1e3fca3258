"""`paddle.grad`: which inputs, through what, and what it leaves alone."""

import pytest

import minipd as paddle


def leaf(*data):
    return paddle.to_tensor(list(data), dtype="float64", stop_gradient=False)


def test_leaves_keep_their_grad():
    x = leaf(3.0)
    (x * x).backward()
    assert paddle.grad(x * x * x, x)[0].tolist() == [27.0]
    assert x.grad.tolist() == [6.0]


def test_of_values_inside_the_graph():
    x = leaf(3.0)
    a = x * 2.0
    y = a * a
    assert [g.tolist() for g in paddle.grad(y, [a, x, y], retain_graph=True)] == [[12.0], [24.0], [1.0]]
    assert x.grad is None and a.grad is None
    assert paddle.grad(x, x)[0].tolist() == [1.0]


def test_the_same_input_twice():
    x = leaf(3.0)
    assert [g.tolist() for g in paddle.grad(x * x, [x, x])] == [[6.0], [6.0]]


def test_unused_inputs():
    x, w = leaf(1.0), leaf(2.0)
    with pytest.raises(ValueError, match=r"do not depend on input .* f64\[1\]; pass allow_unused=True"):
        paddle.grad(x * x, [x, w])
    got = paddle.grad(x * x, [x, w], allow_unused=True)
    assert got[0].tolist() == [2.0] and got[1] is None
    later = x * x
    y = x * 3.0
    assert paddle.grad(y, later, allow_unused=True) == [None]       # made before y, but no part of it


def test_an_unused_input_is_refused_before_anything_is_freed():
    x, w = leaf(1.0), leaf(2.0)
    y = x * x
    with pytest.raises(ValueError, match="do not depend on input"):
        paddle.grad(y, [x, w])
    assert paddle.grad(y, x)[0].tolist() == [2.0]


def test_inputs_must_want_a_gradient():
    x, c = leaf(1.0), paddle.to_tensor([1.0], dtype="float64")
    with pytest.raises(RuntimeError, match="grad: input .* has stop_gradient=True"):
        paddle.grad(x * c, c)
    with pytest.raises(ValueError, match="only_inputs=False is not supported"):
        paddle.grad(x * c, x, only_inputs=False)


def test_no_grad_vars():
    """Gradients do not flow through them: as if they were constants."""
    x = leaf(3.0)
    a = x * 2.0
    y = a * x
    assert paddle.grad(y, x, no_grad_vars=[a], retain_graph=True)[0].tolist() == [6.0]
    assert paddle.grad(y, x)[0].tolist() == [12.0]
    b = x * 2.0
    with pytest.raises(ValueError, match="do not depend on input"):
        paddle.grad(b * b, x, no_grad_vars=b)
    b = x * 2.0
    assert paddle.grad(b * b, x, no_grad_vars=b, allow_unused=True) == [None]


def test_no_grad_vars_next_to_infinities():
    """Cut means cut: no 0 * inf behind it."""
    x = leaf(0.0)
    a = x.sqrt()                                # slope inf at 0
    assert paddle.grad(a + x, x, no_grad_vars=[a])[0].tolist() == [1.0]


def test_given_output_gradients():
    x = leaf(1.0)
    ys = [x * 2.0, x * 3.0]
    assert paddle.grad(ys, x, [None, paddle.to_tensor([5.0], dtype="float64")])[0].tolist() == [17.0]
    y = x * 2.0
    with pytest.raises(ValueError, match="expected 1 gradients, one per output"):
        paddle.grad(y, x, [None, None])


def test_what_does_not_lead_to_the_inputs_is_left_alone():
    """Only the ways from the outputs to the inputs are walked: other rules do not run, nor are they freed."""
    x, w = leaf(2.0), leaf(5.0)
    a = x * x
    b = w * w
    ran = []
    b.register_hook(lambda g: ran.append("b"))
    x.register_hook(lambda g: ran.append("x"))
    assert paddle.grad(a * b, a)[0].tolist() == [25.0]
    assert ran == []
    (a + b).backward()
    assert ran == ["b", "x"] and x.grad.tolist() == [4.0] and w.grad.tolist() == [10.0]


def test_differentiable_output_gradients():
    """The gradient given takes part: d(v * dy/dx)/dv = dy/dx."""
    x, v = leaf(3.0), leaf(1.0)
    (vjp,) = paddle.grad(x * x, x, v, create_graph=True)
    assert paddle.grad(vjp, v)[0].tolist() == [6.0]
