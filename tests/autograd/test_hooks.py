"""`register_hook`: when hooks run, on what, in which order, and what they may change."""

import pytest

import minipd as paddle


def leaf(*data):
    return paddle.to_tensor(list(data), stop_gradient=False)


def test_hooks_run_in_order_on_the_complete_gradient():
    """Paddle's order: first registered, first called, each seeing what the one before has returned."""
    x = leaf(1.0, 2.0)
    y = x * 2.0
    seen = []
    y.register_hook(lambda g: seen.append(("a", g.tolist())))
    y.register_hook(lambda g: (seen.append(("b", g.tolist())), g * 10.0)[1])
    y.register_hook(lambda g: seen.append(("c", g.tolist())))
    (y + y * 3.0).sum().backward()              # two users of y
    assert seen == [("a", [4.0, 4.0]), ("b", [4.0, 4.0]), ("c", [40.0, 40.0])]
    assert x.grad.tolist() == [80.0, 80.0]


def test_a_leafs_hook_sees_each_pass_not_the_sum():
    x = leaf(1.0, 2.0)
    seen = []
    x.register_hook(lambda g: (seen.append(g.tolist()), g * 2.0)[1])
    (x * 3.0 + x * x).sum().backward()
    assert x.grad.tolist() == [10.0, 14.0]
    (x * 1.0).sum().backward()
    assert seen == [[5.0, 7.0], [1.0, 1.0]] and x.grad.tolist() == [12.0, 16.0]


def test_a_hook_may_come_after_the_tensor_was_used():
    x = leaf(1.0)
    y = x * x
    z = y * 3.0
    y.register_hook(lambda g: g * 0.0)
    x.register_hook(lambda g: g + 7.0)
    z.backward()
    assert x.grad.tolist() == [7.0]


def test_removing():
    x = leaf(1.0)
    y = x * 2.0
    count = []
    def hook(g):
        count.append(1)
    first, second = y.register_hook(hook), y.register_hook(hook)
    assert first.remove() is True and first.remove() is False       # the second one's registration stays
    y.backward(retain_graph=True)
    assert len(count) == 1
    assert second.remove() is True
    y.backward()
    assert len(count) == 1


def test_a_hook_may_remove_itself():
    x = leaf(1.0)
    y = x * 2.0
    seen = []
    once = y.register_hook(lambda g: (seen.append("once"), once.remove())[0])
    y.register_hook(lambda g: seen.append("always"))
    y.backward(retain_graph=True)
    y.backward()
    assert seen == ["once", "always", "always"]


def test_a_hook_on_one_result_of_several():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    a, b = paddle.split(x, 2)
    b.register_hook(lambda g: g * 100.0)
    (a + b).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 100.0, 100.0]
    y = leaf(1.0, 2.0)
    c, d = paddle.split(y, 2)
    d.register_hook(lambda g: pytest.fail("d got no gradient, so its hook has nothing to see"))
    c.backward()
    assert y.grad.tolist() == [1.0, 0.0]


def test_hooks_in_paddle_grad():
    """They apply to the inputs' gradients too; `.grad` stays as it is."""
    x = leaf(2.0)
    y = x * 3.0
    z = y * y
    y.register_hook(lambda g: g * 10.0)
    assert paddle.grad(z, y, retain_graph=True)[0].tolist() == [120.0]
    assert paddle.grad(z, x)[0].tolist() == [360.0]
    assert x.grad is None


def test_a_hooks_work_is_recorded_under_create_graph():
    x = leaf(2.0)
    y = x * 1.0
    hook = y.register_hook(lambda g: g * x)     # dx = 3 y^2 * x
    (dx,) = paddle.grad(y * y * y, x, create_graph=True)
    hook.remove()                               # it would run in the second pass too
    (ddx,) = paddle.grad(dx, x)                 # 6 y x + 3 y^2
    assert dx.tolist() == [24.0] and ddx.tolist() == [36.0]


def test_writing_the_gradient_in_a_hook_stays_there():
    """x + w passes one array on to both: a hook that writes it in place changes what it was given, nothing else."""
    x, w = leaf(1.0), leaf(1.0)
    a = x * 1.0
    a.register_hook(lambda g: g.scale_(scale=5.0))
    (a + w).backward()
    assert x.grad.tolist() == [5.0] and w.grad.tolist() == [1.0]


def test_errors():
    with pytest.raises(RuntimeError, match="register_hook: tensor .* has stop_gradient=True, so it gets no gradient"):
        paddle.to_tensor([1.0]).register_hook(lambda g: g)
    x = leaf(1.0, 2.0)
    y = x * 2.0
    y.register_hook(lambda g: "no tensor")
    with pytest.raises(TypeError, match="hook .* of the result of scale|hook .* of multiply|hook.*expected a Tensor or "
                                        "None, got str"):
        y.sum().backward()
    z = x * 2.0
    z.register_hook(lambda g: g.sum())
    with pytest.raises(ValueError, match=r"hook.*expected a gradient like the one it was given, f32\[2\], got f32\[\]"):
        z.sum().backward()


def test_an_error_in_a_hook_leaves_the_mode_as_it_was():
    x = leaf(1.0)
    y = x * 2.0
    def fail(g):
        raise KeyError("mine")
    y.register_hook(fail)
    with pytest.raises(KeyError, match="mine"):
        y.backward()
    assert paddle.is_grad_enabled() and not (x * 2.0).stop_gradient


def test_a_backward_pass_inside_a_hook():
    """Passes do not know of each other, and each restores the mode that it found."""
    x, w = leaf(3.0), leaf(2.0)
    other = w * w
    y = x * x
    modes = []

    def hook(g):
        other.backward()
        modes.append(paddle.is_grad_enabled())
        with paddle.enable_grad():
            (inner,) = paddle.grad(w * w * w, w)
        modes.append(paddle.is_grad_enabled())
        return g * inner
    y.register_hook(hook)
    y.backward()
    assert x.grad.tolist() == [6.0 * 12.0] and w.grad.tolist() == [4.0] and modes == [False, False]
    assert paddle.is_grad_enabled()
