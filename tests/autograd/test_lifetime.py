"""How long a graph lives: until its backward pass, or until nobody holds it; and what a second pass says."""

import gc
import weakref

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.context import Kernels
from minipd.nn import functional as F


def leaf(data):
    return paddle.to_tensor(data, dtype="float64", stop_gradient=False)


class Watched(np.ndarray):
    """An array that can be referred to weakly: numpy's own cannot."""


@pytest.fixture
def no_collector():
    """Only reference counts free anything: a cycle would keep its members alive."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def watch(node):
    """Weak references to everything that the graph above `node` consists of: the nodes' rules and saved values."""
    found, todo, seen = [], [node], set()
    while todo:
        n = todo.pop()
        if n in seen:
            continue
        seen.add(n)
        found.append(weakref.ref(n))
        todo += [edge[0] for edge in n.edges if edge is not None]
    return found


def alive(refs):
    return [r() for r in refs if r() is not None]


def busy_graph(x):
    """One of everything: views, writes, several results, hooks, values used twice."""
    y = F.softmax(x.reshape([2, 3]) * 2.0)
    a, b, c = paddle.split(y, 3, axis=1)
    z = paddle.concat([a * b, paddle.exp(c), x[:2].reshape([2, 1])], axis=1)
    z[0] = z[1] * 3.0
    z.tanh_()
    z.register_hook(lambda g: g * 2.0)
    return (z * z).sum()


def test_dropping_the_last_handle_frees_the_graph(no_collector):
    x = leaf(np.arange(6.0))
    refs = watch(busy_graph(x).node)
    assert [n for n in alive(refs) if n.row is not None] == []      # the leaf's own node stays with the leaf


def test_dropping_the_leaf_too_frees_everything(no_collector):
    x = leaf(np.arange(6.0))
    handle = weakref.ref(x)
    loss = busy_graph(x)
    refs = watch(loss.node)
    loss.backward()
    assert x.grad is not None
    del x, loss
    assert handle() is None and alive(refs) == []


def test_a_leaf_may_go_before_its_graph(no_collector):
    """Nobody can read its gradient any more, so there is nothing to store it in; the others still get theirs."""
    x, w = leaf([1.0]), leaf([2.0])
    y = x * w
    handle = weakref.ref(x)
    y2 = y * 1.0
    del x
    y2.backward()
    assert w.grad.tolist() == [1.0]
    del y, y2
    assert handle() is None


def test_a_hook_that_holds_its_own_tensor_is_the_users_cycle(no_collector):
    """... but the library adds none: without such a hook, in-place results and views free themselves."""
    x = leaf([1.0, 2.0])
    y = x * 1.0
    y.multiply_(x)
    y[0:1] = x[1:2] * 5.0
    y.add_(y)
    refs = watch(y.node)
    del y
    assert [n for n in alive(refs) if n.row is not None] == []


def saved_arrays(node):
    """Every array that the graph above `node` keeps for its rules."""
    found, todo, seen = {}, [node], set()
    while todo:
        n = todo.pop()
        if n in seen:
            continue
        seen.add(n)
        todo += [edge[0] for edge in n.edges if edge is not None]
        stack = [n.saved]
        while stack:
            v = stack.pop()
            if isinstance(v, np.ndarray):
                found[id(v)] = v
            elif isinstance(v, (list, tuple)):
                stack += v
    return list(found.values())


def test_backward_frees_what_was_saved():
    x = leaf(np.ones(4))
    y = x.exp()
    z = (y * y).tanh()
    loss = z.sum()
    assert saved_arrays(loss.node)
    loss.backward(retain_graph=True)
    assert saved_arrays(loss.node)
    loss.backward()
    assert saved_arrays(loss.node) == []
    assert x.grad is not None


def test_saved_arrays_die_during_the_pass(no_collector):
    """A value is dropped as soon as its last rule has run, not when the pass ends: that is what bounds the memory."""
    seen = []

    class Counting(Kernels):
        def run(self, row, payloads, attrs):
            out = super().run(row, payloads, attrs)
            if type(out) is np.ndarray and row.name == "exp":
                out = out.view(Watched)
                made.append(weakref.ref(out))
            return out

    made: list = []
    x = leaf(np.ones(3))
    with paddle.framework.context.using(ground=Counting()):
        y = x.exp()
        y.register_hook(lambda g: seen.append(made[1]() is not None))
        z = y.exp()
        z.register_hook(lambda g: seen.append(made[1]() is not None))
        loss = z.sum()
        del y, z
        loss.backward()
    assert seen == [True, False]


def test_a_second_pass_needs_retain_graph():
    x = leaf([3.0])
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match=r"backward through multiply a second time.*freed by the first: call the "
                                           r"first backward\(retain_graph=True\)"):
        y.backward()
    assert x.grad.tolist() == [6.0]


def test_retaining_twice():
    x = leaf([3.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [18.0]


def test_two_graphs_that_share_a_part():
    x = leaf([2.0])
    shared = x * x
    a, b = shared * 3.0, shared * 5.0
    a.backward()
    with pytest.raises(RuntimeError, match="backward through multiply a second time"):
        b.backward()
    x.clear_gradient()
    shared = x * x
    a, b = shared * 3.0, shared * 5.0
    a.backward(retain_graph=True)
    b.backward()
    assert x.grad.tolist() == [32.0]


def test_a_graph_of_operators_that_save_nothing_may_be_walked_twice_or_says_so():
    """Paddle lets such a pass through, for it frees saved values only; here every freed node says so."""
    x = leaf([2.0])
    y = x + 1.0
    y.backward()
    with pytest.raises(RuntimeError, match="backward through add a second time"):
        y.backward()


def test_paddle_grad_frees_like_backward():
    x = leaf([3.0])
    y = x * x
    paddle.grad(y, x)
    with pytest.raises(RuntimeError, match="second time"):
        paddle.grad(y, x)
    y = x * x
    assert paddle.grad(y, x, retain_graph=True)[0].tolist() == paddle.grad(y, x)[0].tolist() == [6.0]
    y = x * x
    paddle.grad(y, x, create_graph=True)
    assert paddle.grad(y, x)[0].tolist() == [6.0]


def test_the_gradient_does_not_keep_the_graph(no_collector):
    x = leaf([3.0])
    y = x * x
    ref = weakref.ref(y.node)
    y.backward()
    assert x.grad.node is None
    del y
    assert ref() is None


def test_nothing_is_recorded_that_nobody_wants():
    x = paddle.to_tensor([1.0])
    assert (x * 2.0).node is None
    w = leaf([1.0])
    node = (w * paddle.to_tensor([5.0], dtype="float64")).node
    assert len(node.recipe.rules) == 1 and node.edges[1] is None    # no rule for the constant, so w is not saved
    assert [a.tolist() for a in saved_arrays(node)] == [[5.0]]
