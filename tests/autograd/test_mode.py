"""`no_grad`, `enable_grad`, `set_grad_enabled`: as context managers, decorators and calls, around generators, after
exceptions."""

import pytest

import minipd as paddle


@pytest.fixture
def x():
    yield paddle.to_tensor([1.0], stop_gradient=False)
    assert paddle.is_grad_enabled()             # whatever a test did, it is undone


def recorded(x):
    return not (x * 2.0).stop_gradient


def test_context_managers_nest(x):
    with paddle.no_grad():
        assert not recorded(x) and not paddle.is_grad_enabled()
        with paddle.enable_grad():
            assert recorded(x)
            with paddle.set_grad_enabled(False):
                assert not recorded(x)
            assert recorded(x)
        assert not recorded(x)
    assert recorded(x)


def test_one_manager_entered_twice(x):
    off = paddle.no_grad()
    with off:
        with paddle.enable_grad():
            with off:
                assert not recorded(x)
            assert recorded(x)
        assert not recorded(x)
    assert recorded(x)


def test_exceptions_restore(x):
    with pytest.raises(KeyError):
        with paddle.no_grad():
            raise KeyError
    assert recorded(x)

    @paddle.no_grad()
    def fails():
        raise KeyError
    with pytest.raises(KeyError):
        fails()
    assert recorded(x)


@pytest.mark.parametrize("decorator", [lambda: paddle.no_grad, lambda: paddle.no_grad(),
                                       lambda: paddle.set_grad_enabled(False)])
def test_decorators(x, decorator):
    """With or without parentheses, the function keeps its name, its arguments and its recursion."""
    @decorator()
    def f(n, *, k=1):
        """Docs."""
        return [recorded(x)] + (f(n - 1, k=k) if n else [k])
    assert f.__name__ == "f" and f.__doc__ == "Docs."
    assert f(2, k=5) == [False, False, False, 5]
    assert recorded(x)


def test_decorated_function_may_enable_again(x):
    @paddle.no_grad()
    def f():
        return recorded(x), g(), recorded(x)

    @paddle.enable_grad()
    def g():
        return recorded(x)
    assert f() == (False, True, False)


def test_set_grad_enabled_takes_effect_when_called(x):
    """As in Paddle: a plain call switches until the next one; `with` restores what was before the call."""
    paddle.set_grad_enabled(False)
    assert not recorded(x)
    paddle.set_grad_enabled(True)
    assert recorded(x)
    with paddle.set_grad_enabled(False):
        assert not recorded(x)
    assert recorded(x)


def test_generators_are_off_inside_only(x):
    """The body runs when the generator is resumed: off there, as it was in the caller in between."""
    @paddle.no_grad()
    def generate():
        got = recorded(x)
        while True:
            with paddle.enable_grad():
                sent = yield got, recorded(x)
            got = (sent, recorded(x))

    g = generate()
    assert next(g) == (False, True)
    assert recorded(x)
    assert g.send("sent") == (("sent", False), True)
    assert recorded(x)
    g.close()
    assert recorded(x)


def test_a_generators_return_value_and_exceptions(x):
    @paddle.no_grad
    def generate():
        try:
            yield recorded(x)
        except KeyError:
            yield recorded(x)
        return "end"

    g = generate()
    assert next(g) is False
    assert g.throw(KeyError) is False
    assert recorded(x)
    with pytest.raises(StopIteration) as stop:
        next(g)
    assert stop.value.value == "end"
    assert recorded(x)


def test_a_manager_open_in_a_generator_that_is_dropped(x):
    """The manager in the generator's frame closes with the generator, not at its next resumption."""
    def generate():
        with paddle.no_grad():
            yield recorded(x)

    g = generate()
    assert next(g) is False
    g.close()
    assert recorded(x)


def test_results_under_no_grad_are_constants(x):
    with paddle.no_grad():
        y = x * 2.0
    assert y.stop_gradient and y.is_leaf
    (x * y).backward()
    assert x.grad.tolist() == [2.0]


def test_what_was_recorded_stays_recorded(x):
    y = x * 3.0
    with paddle.no_grad():
        y.backward()
    assert x.grad.tolist() == [3.0]
    z = x * x
    with paddle.no_grad():
        (g,) = paddle.grad(z, x, create_graph=True)
    assert g.tolist() == [2.0] and not g.stop_gradient
