"""What belongs to a rank stays with it: contexts side by side, switching layers, threads."""

import contextvars
import threading

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.context import Kernels, MetaOnly, RankContext, using
from minipd.framework.meta import Meta
from minipd.framework.rank import current, enter, leave


def in_context(function, context):
    """Call `function` as the rank `context`."""
    def call():
        token = enter(context)
        try:
            return function()
        finally:
            leave(token)
    return contextvars.copy_context().run(call)


# --------------------------------------------------------------------------------------------------- isolation
def test_everything_process_global_in_paddle_is_the_ranks_own():
    a, b = RankContext(0, 2), RankContext(1, 2)

    def change():
        paddle.set_grad_enabled(False)
        paddle.set_default_dtype("float64")
        paddle.seed(7)
        current().flags["x"] = 1
        return paddle.to_tensor(1.0).name, paddle.rand([1]).item(), current().rank

    def look():
        return (paddle.is_grad_enabled(), paddle.get_default_dtype(), current().flags, paddle.to_tensor(1.0).name,
                current().rank)

    name, first, rank = in_context(change, a)
    assert (name, rank) == ("generated_tensor_0", 0)
    assert in_context(look, b) == (True, "float32", {}, "generated_tensor_0", 1)
    assert in_context(look, a) == (False, "float64", {"x": 1}, "generated_tensor_1", 0)
    assert paddle.is_grad_enabled() and paddle.get_default_dtype() == "float32"
    assert in_context(lambda: (paddle.seed(7), paddle.rand([1]).item())[1], b) == pytest.approx(first, rel=1e-6)


def test_ranks_in_turns():
    """Two ranks, each in the middle of its own `no_grad` or trace of metas, taking turns as the simulator's do."""
    def rank(layers):
        with layers:
            while True:
                x = paddle.to_tensor([1.0], stop_gradient=False)
                yield (x * 2.0).stop_gradient, type((x * 2.0).payload)

    contexts = [contextvars.copy_context() for _ in range(3)]
    generators = []
    for n, (context, layers) in enumerate(zip(contexts, (paddle.no_grad(), using(ground=MetaOnly()), using()),
                                              strict=True)):
        context.run(enter, RankContext(n, 3))
        generators.append(rank(layers))
    for _ in range(3):
        got = [c.run(next, g) for c, g in zip(contexts, generators, strict=True)]
        assert got == [(True, np.ndarray), (False, Meta), (False, np.ndarray)]
    for c, g in zip(contexts, generators, strict=True):
        c.run(g.close)
        assert c.run(paddle.is_grad_enabled) and type(c.run(current).ground) is Kernels


def test_threads():
    """A thread is the same rank, with a grad mode of its own."""
    x = paddle.to_tensor([1.0], stop_gradient=False)
    inside, done = threading.Event(), threading.Event()
    got = []

    def other():
        with paddle.no_grad():
            got.append((x * 2.0).stop_gradient)
            inside.set()
            done.wait(10)
        got.append((x * 2.0).stop_gradient)
        got.append(current().rng is root.rng and current().rank == root.rank)

    root = current()
    thread = threading.Thread(target=other)
    with using(ground=MetaOnly()):
        thread.start()                      # what the main thread traces is none of its business
        inside.wait(10)
        assert not (x * 2.0).stop_gradient
    done.set()
    thread.join()
    assert got == [True, False, True]


def test_backward_in_another_thread():
    x = paddle.to_tensor([3.0], stop_gradient=False)
    y = x * x
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    assert x.grad.tolist() == [6.0]


def test_a_context_is_left_when_its_function_fails():
    with pytest.raises(KeyError):
        in_context(lambda: {}[0], RankContext(3, 4))
    assert current().rank == 0


# -------------------------------------------------------------------------------------------------------- using
def test_layers_that_are_not_named_stay():
    before = current().ground
    with using(ground=MetaOnly()) as context:
        ground = context.ground
        with using(grad=False):
            assert context.ground is ground and not context.grad_enabled
            with using(ground=before):
                assert not context.grad_enabled and context.ground is before
            assert context.ground is ground
        assert context.grad_enabled
    assert current().ground is before


def test_using_restores_after_exceptions():
    handler = current().handler
    with pytest.raises(ZeroDivisionError):
        with using(ground=MetaOnly(), grad=False):
            1 / 0
    assert type(current().ground) is Kernels and current().grad_enabled
    assert current().handler.__code__ is handler.__code__


def test_one_object_entered_inside_itself():
    layers = using(grad=False)
    with layers:
        with paddle.enable_grad():
            with layers:
                assert not current().grad_enabled
            assert current().grad_enabled
        assert not current().grad_enabled
    assert current().grad_enabled


def test_an_unknown_layer():
    with pytest.raises(TypeError, match="unexpected keyword argument 'midle'"):
        using(midle=None)


def test_metas_instead_of_values():
    """Shapes and dtypes are reckoned, nothing is computed, and values are not to be had."""
    with using(ground=MetaOnly()):
        x = paddle.ones([2, 3])
        y = (x @ x.transpose([1, 0])).sum(axis=0)
        assert (y.shape, y.dtype) == ([2], paddle.float32)
        with pytest.raises(TypeError, match=r"numpy\(\): expected a tensor with values, got f32\[2\]"):
            y.numpy()
        with pytest.raises(TypeError, match=r"bool\(\): expected a tensor with values"):
            if y.sum() > 0.0:
                pass


def test_a_collective_without_a_communicator():
    from minipd.framework.row import ROWS
    with pytest.raises(RuntimeError, match=r"all_reduce: this rank has no communicator; start ranks with `minipd "
                                           r"launch -n N script.py`, or simulate them"):
        ROWS["all_reduce"](paddle.ones([2]), group=(0, 1), op="sum")
