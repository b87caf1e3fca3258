"""Oracle: which programs have a gradient, and which must be refused, told by hand."""

import pytest

import minipd as paddle
from minipd.autograd import saved_tensors_hooks
from tools.course.checking import check


def leaf(data):
    return paddle.to_tensor(data, "float64", stop_gradient=False)


def outcome(loss):
    """"refused" if the backward pass raises RuntimeError, else "not refused"."""
    try:
        loss.backward()
    except RuntimeError:
        return "refused"
    return "not refused"


def test_nothing_was_written():
    x = leaf([3.0])
    (x * x).backward()
    check([6.0], x.grad.numpy(), "the gradient of x * x at x = 3")


def test_numbers_and_shapes_come_back():
    x = leaf([[1.0, 2.0]])
    (x * 2.0).backward()
    check([[2.0, 2.0]], x.grad.numpy(), "the gradient of x * 2.0: the number was saved, too")
    b = leaf([1.0])
    (x * 1.0 + b).sum().backward()
    check([2.0], b.grad.numpy(), "the gradient of b in x + b, b of shape [1]: only its shape was saved")
    (x + x).reshape([2]).sum().backward()


def test_a_list_of_operands_comes_back():
    x, y = leaf([1.0]), leaf([2.0])
    paddle.concat([x * x, y * y]).sum().backward()
    check(([2.0], [4.0]), (x.grad.tolist(), y.grad.tolist()), "the gradients of concat([x * x, y * y]), x = 1, y = 2")


def test_what_a_hook_has_packed_comes_back():
    x = leaf([3.0])
    with saved_tensors_hooks(lambda t: t.numpy(), paddle.to_tensor):
        y = x * x * x
    (dx,) = paddle.grad(y, x, create_graph=True)
    check([27.0], dx, "the gradient of x * x * x at 3, under saved_tensors_hooks: what was saved is Packed")
    check([18.0], lambda: paddle.grad(dx, x)[0], "the second derivative of x * x * x at 3, under saved_tensors_hooks")


def test_a_written_operand_is_refused():
    x = leaf([3.0])
    h = x * 1.0
    y = h * h
    h.add_(paddle.ones([1], "float64"))
    check("refused", outcome(y), "y = h * h, then h.add_(1), then backward()")


def test_a_written_result_is_refused():
    x = leaf([1.0])
    y = x.exp()
    y.add_(paddle.ones([1], "float64"))
    check("refused", outcome(y), "y = exp(x), whose rule reads y; then y.add_(1), then backward()")


def test_a_write_through_a_view_is_refused():
    x = leaf([[1.0, 2.0]])
    h = x * 1.0
    y = (h * h).sum()
    h[0].zero_()
    check("refused", outcome(y), "y = h * h, then h[0].zero_(), then backward()")


def test_a_written_constant_is_refused():
    x, w = leaf([3.0]), paddle.to_tensor([2.0], "float64")
    y = x * w
    w.zero_()
    check("refused", outcome(y), "y = x * w, w with stop_gradient=True; then w.zero_(), then backward()")


def test_a_write_before_the_use_is_legal():
    x, w = leaf([3.0]), paddle.to_tensor([2.0], "float64")
    w.scale_(5.0)
    y = x * w
    check("not refused", outcome(y), "w.scale_(5), then y = x * w, then backward()")
    check([10.0], x.grad.numpy(), "the gradient of x * w after w = 2 became 10")
    h = leaf([3.0]) * 1.0
    h.add_(paddle.ones([1], "float64"))
    check("not refused", outcome(h * h), "h.add_(1), then y = h * h, then backward()")


def test_what_no_rule_reads_may_be_written():
    x, w = leaf([3.0]), paddle.to_tensor([2.0], "float64")
    y = x + w
    w.zero_()
    check("not refused", outcome(y), "y = x + w, then w.zero_(), then backward(): the rule of `add` reads no values")


def test_the_message():
    h = leaf([3.0]) * 1.0
    h.name = "hidden"
    y = h * h
    h.scale_(2.0)
    h.scale_(2.0)
    with pytest.raises(RuntimeError) as caught:
        y.backward()
    text = str(caught.value)
    check((True, True, True), ("hidden" in text, "0" in text, "2" in text),
          f"does the message name the tensor (hidden) and both versions (0 and 2)? It says: {text}")


def test_what_comes_back_has_its_history():
    x = leaf(3.0)
    (dx,) = paddle.grad(x * x * x, x, create_graph=True)
    check(27.0, dx.item(), "the first derivative of x^3 at 3")
    (ddx,) = paddle.grad(dx, x)
    check(18.0, ddx.item(), "the second derivative of x^3 at 3")
    y = leaf(1.0)
    (dy,) = paddle.grad(y.exp(), y, create_graph=True)
    (ddy,) = paddle.grad(dy, y)
    check(2.718281828459045, ddy.item(), "the second derivative of e^y at 1 (the rule of exp keeps its result)")
    z = leaf([1.0, 2.0, 3.0, 4.0])
    left, right = paddle.split(z, 2)
    (dz,) = paddle.grad((right * right * right).sum(), z, create_graph=True)
    (ddz,) = paddle.grad(dz.sum(), z)
    check([0.0, 0.0, 18.0, 24.0], ddz.tolist(),
          "the second derivative of sum(b * b * b), for a, b = split([1, 2, 3, 4], 2): b is the node's second result")
