"""full_graph=True: what a trace has read is guarded, so that no answer is stale; arguments and results; PyLayer, hooks.
"""

import types
from collections import namedtuple
from functools import partial

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.jit import explain, to_static

Pair = namedtuple("Pair", "first second")
SCALE = 2.0
TABLE = {"a": [1.0, 2.0]}
ARRAY = np.array([1.0, 2.0])


def helper(x):
    return x * SCALE


def x():
    return paddle.to_tensor([1.0, 10.0], dtype="float64")


def same_as_eager(compiled, eager, *args):
    got, want = compiled(*args), eager(*args)
    np.testing.assert_array_equal(got.numpy(), want.numpy())


class Config:
    def __init__(self, scale):
        self.scale, self.inner = scale, types.SimpleNamespace(bias=1.0)


class Plain:
    """Not a layer: what its methods read is known from their code."""

    factor = 3.0

    def __init__(self):
        self.scale, self.steps, self.act = 2.0, [1.0], paddle.tanh

    def shifted(self, x):
        return x + self.scale

    def run(self, x):
        return self.act(self.shifted(x)) * self.factor + sum(self.steps)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.scale, self.config, self.sizes = 2.0, Config(0.5), [1.0]
        self.inner = nn.Linear(2, 2)
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        y = self.inner(x.astype("float32")) * self.scale
        c = self.config
        return self.drop(y) + c.scale * len(self.sizes) + c.inner.bias


# ---------------------------------------------------------------------------------------------- what is noticed
@pytest.fixture
def globals_restored():
    kept = SCALE, TABLE["a"][:], ARRAY.copy()
    yield
    globals().update(SCALE=kept[0])
    TABLE["a"], ARRAY[...] = kept[1], kept[2]


def test_globals_of_the_function_and_of_what_it_calls(globals_restored):
    def f(x):
        return helper(x) + TABLE["a"][1] * paddle.to_tensor(ARRAY)
    compiled = to_static(f)
    steps = [lambda: None, lambda: globals().update(SCALE=5.0), lambda: TABLE["a"].__setitem__(1, 7.0),
             lambda: ARRAY.__setitem__(0, 3.0), lambda: globals().update(SCALE=2.0)]
    for change in steps:
        change()
        same_as_eager(compiled, f, x())
        same_as_eager(compiled, f, x())
    assert compiled.get_traced_count() == len(steps)
    assert compiled.traces[0] == "the first call" and "global SCALE is 5.0, was 2.0" in compiled.traces[1]
    assert "global TABLE has changed" in compiled.traces[2]


def test_a_helper_that_is_replaced(globals_restored):
    def f(x):
        return helper(x)
    compiled, old = to_static(f), helper
    same_as_eager(compiled, f, x())
    try:
        globals()["helper"] = lambda x: x - 1.0
        same_as_eager(compiled, f, x())
    finally:
        globals()["helper"] = old
    same_as_eager(compiled, f, x())


def test_closures_and_defaults():
    scale, config, flag = 2.0, Config(1.0), [True]

    def f(x, default=config):
        def inner(y):
            return y * scale + config.inner.bias
        return inner(x) * default.scale if flag[0] else x
    compiled = to_static(f)

    def change(n):
        nonlocal scale
        if n == 1:
            scale = 3.0
        elif n == 2:
            config.scale = 4.0
        elif n == 3:
            config.inner.bias = -1.0
        elif n == 4:
            flag[0] = False
    for n in range(5):
        change(n)
        same_as_eager(compiled, f, x())
    assert compiled.get_traced_count() == 5
    same_as_eager(compiled, f, x())
    assert compiled.get_traced_count() == 5


def test_attributes_of_a_plain_object():
    one = Plain()
    compiled = to_static(one.run)
    for change in (lambda: None, lambda: setattr(one, "scale", 5.0), lambda: one.steps.append(2.0),
                   lambda: setattr(one, "act", paddle.exp), lambda: setattr(one, "factor", 1.0),
                   lambda: setattr(one, "unread", 1.0)):
        change()
        same_as_eager(compiled, one.run, x() * 0.1)
    assert compiled.get_traced_count() == 5             # the last was nobody's affair


def test_attributes_of_layers():
    net = Net()
    compiled, eager = to_static(lambda x: net(x)), net

    def hooked():
        net.inner.register_forward_post_hook(lambda layer, inputs, out: out * 2.0)
    changes = [lambda: setattr(net, "scale", 3.0), lambda: setattr(net.config, "scale", 1.5),
               lambda: setattr(net.config.inner, "bias", 0.0), lambda: net.sizes.append(1.0),
               lambda: setattr(net.drop, "p", 1.0), net.eval, net.train,
               lambda: setattr(net, "inner", nn.Linear(2, 2)), hooked, hooked,
               lambda: setattr(net.inner, "weight", nn.Linear(2, 2).weight)]
    same_as_eager(compiled, eager, x())
    for change in changes:
        change()
        same_as_eager(compiled, eager, x())
    # train() went back to what was compiled before
    assert compiled.get_traced_count() == len(changes)
    net.inner.bias.set_value(paddle.ones([2]))          # the values of a tensor are not the program's affair
    same_as_eager(compiled, eager, x())
    assert compiled.get_traced_count() == len(changes)


def test_values_that_python_has_looked_at():
    threshold = paddle.to_tensor(0.5)

    def f(x):
        return x * 2.0 if threshold.item() < 1.0 else x
    compiled = to_static(f)
    for value in (0.5, 2.0, 0.5):
        threshold.set_value(np.float32(value))
        same_as_eager(compiled, f, x())
    assert compiled.get_traced_count() == 2


def test_a_list_to_which_the_function_only_appends():
    seen = []

    def f(x):
        seen.append("called")
        return x + 1.0
    compiled = to_static(f)
    for _ in range(3):
        compiled(x())
    assert seen == 3 * ["called"]
    assert compiled.get_traced_count() == 1


# ------------------------------------------------------------------------------------------ bounds, and explain
def test_too_many_programs_are_told_and_forgotten():
    state = types.SimpleNamespace(n=0.0)

    def f(x):
        state.n += 1.0                  # changes what it reads: no program serves twice
        return x * state.n
    compiled = to_static(f)
    with pytest.warns(RuntimeWarning, match=r"keeps 8 programs for one signature and was traced 8 times.*attribute "
                                            r"SimpleNamespace.n is 1.0, was 0.0"):
        for n in range(1, 12):
            assert compiled(x()).tolist() == [n, 10.0 * n]
    assert sum(map(len, compiled.cache.values())) == 8


def test_explain():
    net = Net()
    compiled = to_static(net)
    first = explain(compiled, x())
    second = explain(compiled, x())
    assert (first.segments[0].how, second.segments[0].how) == ("compiled", "found")
    assert "matmul" in first.segments[0].ops or "linear" in str(first.segments[0].ops)
    net.scale = 4.0
    third = explain(compiled, x())
    assert third.traces == ("the first call", f"attribute {net.full_name()}.scale is 4.0, was 2.0")
    assert any(g.endswith("Config.scale") for g in third.guards)
    assert "trace 1: attribute" in str(third) and third.cached == 2


# --------------------------------------------------------------------------------------- arguments and results
def test_arguments_that_are_written():
    def f(a, b):
        a[0] = 5.0
        b.add_(a)
        return a * b
    found = []
    for g in (f, to_static(f)):
        a, b = x(), x()
        view = b[1:]
        out = [g(a, b).tolist() for _ in range(2)]
        found.append((out, a.tolist(), b.tolist(), view.tolist()))
    assert found[0] == found[1]


def test_an_argument_that_is_given_twice():
    def f(a, b):
        a.add_(paddle.ones([2], "float64"))
        return b * 2.0
    compiled = to_static(f)
    for _ in range(2):
        a, b = x(), x()
        assert compiled(a, b).tolist() == [2.0, 20.0]
        assert compiled(a, a).tolist() == [6.0, 24.0] and a.tolist() == [3.0, 12.0]
    with pytest.raises(RuntimeError, match="shares memory with .*, which the program reads too"):
        compiled(a, a.detach())
    assert to_static(f, full_graph=False)(b, b.detach()).tolist() == [4.0, 22.0]


def test_an_argument_that_is_no_tensor():
    def f(a, config, k=1.0):
        return a * config.scale + config.inner.bias * k
    compiled, config = to_static(f), Config(2.0)
    for change in (lambda: None, lambda: setattr(config, "scale", 3.0), lambda: setattr(config.inner, "bias", 0.5)):
        change()
        same_as_eager(compiled, f, x(), config)
        same_as_eager(compiled, f, x(), config)
    assert compiled.get_traced_count() == 3
    zero, negative = compiled(x(), config, 0.0), compiled(x(), Config(1.0), k=-0.0)
    assert zero.tolist() == [3.0, 30.0] and negative.tolist() == [1.0, 10.0]


def test_a_written_argument_has_a_history():
    def f(a, w):
        a.add_(w)
        return a * w
    found = []
    for g in (f, to_static(f)):
        a, w = x(), x()
        w.stop_gradient = False
        out = g(a, w)
        (out.sum() + (a * a).sum()).backward()
        found.append(w.grad.tolist())
    assert found[0] == found[1]


def test_what_is_returned_is_what_was_given():
    layer = nn.Linear(2, 2)
    outside = x()

    @to_static
    def f(a, b=None, *rest, **named):
        return {"a": a, "sum": a + outside, "pair": Pair(outside, layer.weight), "rest": [*rest, b, 3, "text"], **named}
    a, c = x(), x()
    for _ in range(2):
        out = f(a, None, c, 1.5, k=c)
        assert out["a"] is a and out["k"] is c and out["rest"][0] is c and out["rest"][1:] == [1.5, None, 3, "text"]
        assert type(out["pair"]) is Pair and out["pair"].first is outside and out["pair"].second is layer.weight
        assert out["sum"].tolist() == [2.0, 20.0]
    assert f.get_traced_count() == 1


def test_leaving_gradients_behind_is_refused():
    layer = nn.Linear(2, 1)

    @to_static
    def f(a):
        loss = layer(a).sum()
        loss.backward()
        return loss
    with pytest.raises(TypeError, match="leaves .grad of .* as it was.*use paddle.grad.*full_graph=False"):
        f(paddle.ones([3, 2]))
    assert layer.weight.grad is None


@pytest.mark.parametrize("full_graph", [True, False])
def test_a_buffer_that_is_assigned_is_written(full_graph):
    class Counts(nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", paddle.zeros([1]))

        def forward(self, a):
            self.calls = self.calls + 1
            return a * self.calls
    layer = Counts()
    compiled = to_static(layer, full_graph=full_graph)
    for n in (1.0, 2.0, 3.0):
        assert compiled(paddle.ones([2])).tolist() == [n, n] and layer.calls.tolist() == [n]
    assert list(layer.state_dict()) == ["calls"]
    assert not full_graph or layer.forward.get_traced_count() == 1


# ------------------------------------------------------------------------------- rules and hooks of the user's own
class Tenfold(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * k, x.exp()

    @staticmethod
    def backward(ctx, g, h):
        x, = ctx.saved_tensor()
        return g * 10.0 * ctx.k + h * x


@pytest.mark.parametrize("backend", [None, "CINN"])
def test_pylayers_and_hooks_are_a_part_of_the_program(backend):
    layer = nn.Linear(2, 2)
    outside = x()
    outside.stop_gradient = False

    def f(a):
        h, e = Tenfold.apply(a * outside, 2.0)
        h.register_hook(lambda g: g * 3.0)
        y = layer(h.astype("float32")).astype("float64") + h
        if a.sum() > 0:
            y = y * 2.0
        return y + e, h
    found = []
    for g in (f, to_static(f, backend=backend), to_static(f, full_graph=False, backend=backend)):
        for _ in range(2):
            a = x()
            a.stop_gradient = False
            for p in (outside, *layer.parameters()):
                p.clear_gradient(False)
            out, h = g(a)
            (out.sum() + (h * h).sum()).backward()
            found.append([out, h, a.grad, outside.grad, *(p.grad for p in layer.parameters())])
    for other in found[1:]:
        for got, want in zip(other, found[0], strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)


def test_a_hook_that_looks():
    seen = []

    def f(a):
        h = a * 2.0
        h.register_hook(lambda g: seen.append(g.tolist()))
        return h.exp()
    a = x() * 0.1
    a.stop_gradient = False
    def shape(a):
        h = a * 2.0
        h.register_hook(lambda g: seen.append(g.shape))
        return h.exp()
    with pytest.raises(TypeError, match="a change of `seen`: they run when backward"):
        to_static(shape)(a)
    compiled = to_static(f, full_graph=False)
    for _ in range(2):
        compiled(a).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), 4 * np.exp(2 * a.numpy()))
    assert len(seen) == 2


def test_second_derivatives_through_branches_and_loops():
    def f(a):
        i = paddle.zeros([], "int64")
        while i < 3:
            a = a * a.tanh()
            i = i + 1
        if a.sum() > 0:
            a = a * a
        return a
    found = []
    for g in (f, to_static(f), to_static(f, full_graph=False)):
        a = x() * 0.3
        a.stop_gradient = False
        first, = paddle.grad(g(a).sum(), a, create_graph=True)
        second, = paddle.grad(first.sum(), a)
        found.append((first.numpy(), second.numpy()))
    for got in found[1:]:
        np.testing.assert_allclose(got[0], found[0][0], rtol=1e-10)
        np.testing.assert_allclose(got[1], found[0][1], rtol=1e-10)


def test_what_changes_between_two_calls_belongs_to_the_signature():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1D(3), nn.ReLU())
    other = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1D(3), nn.ReLU())
    other.set_state_dict(net.state_dict())
    compiled = to_static(net)
    rng = np.random.default_rng(0)

    def both():
        a = rng.standard_normal((4, 2)).astype("float32")
        outs = [m(paddle.to_tensor(a)) for m in (compiled, other)]
        np.testing.assert_allclose(outs[0].numpy(), outs[1].numpy(), rtol=1e-5, atol=1e-6)
        assert outs[0].stop_gradient == outs[1].stop_gradient
        for p, q in zip(net.state_dict().values(), other.state_dict().values(), strict=True):
            np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-5, atol=1e-6)
    for change in ("train", "eval", "train"):
        getattr(net, change)(), getattr(other, change)()
        both(), both()
    for m in (net, other):
        m[0].weight.stop_gradient = True
        m[0].bias.stop_gradient = True
    both()
    with paddle.no_grad():
        both()
    with paddle.amp.auto_cast(dtype="bfloat16"):
        a = paddle.ones([4, 2])
        assert compiled(a).dtype == other(a).dtype


class Bag:
    pass


@pytest.mark.parametrize("asked", [
    lambda v, o: v * (3.0 if hasattr(o, "gain") else 2.0),
    lambda v, o: v * getattr(o, "gain", 2.0)])
@pytest.mark.parametrize("kind", [Bag, nn.Layer])
def test_an_attribute_that_was_not_there(kind, asked):
    there = kind()

    def f(v):
        return asked(v, there)
    compiled = to_static(f)
    for change in (lambda: None, lambda: setattr(there, "gain", 5.0), lambda: delattr(there, "gain")):
        change()
        same_as_eager(compiled, f, x())
        same_as_eager(compiled, f, x())
    assert compiled.get_traced_count() == 2


@pytest.mark.parametrize("through", [lambda v, layer: layer.parts(v), lambda v, layer: v * len(layer.parts)])
def test_a_layer_that_has_got_one_more(through):
    layer = nn.Layer()
    layer.parts = nn.Sequential(nn.ReLU())

    def f(v):
        return through(v, layer)
    compiled = to_static(f)
    same_as_eager(compiled, f, x())
    layer.parts.add_sublayer("another", nn.Tanh())
    same_as_eager(compiled, f, x())
    same_as_eager(compiled, f, x())
    assert compiled.get_traced_count() == 2


def test_what_a_layer_has_from_its_class():
    class Scaled(nn.Layer):
        by = 2.0

        def forward(self, v):
            return self.twisted(v) * self.by

        def twisted(self, v):
            return -v
    layer = Scaled()
    compiled = to_static(lambda v: layer(v))
    for change in (lambda: None, lambda: setattr(Scaled, "by", 3.0), lambda: setattr(layer, "by", 4.0),
                   lambda: setattr(layer, "twisted", lambda v: v + 1.0), lambda: delattr(layer, "twisted")):
        change()
        same_as_eager(compiled, layer, x())
        same_as_eager(compiled, layer, x())


def test_a_partial_counts_by_what_it_holds():
    def scaled(v, by):
        return v * by * factor
    factor, part = 1.0, partial(scaled, by=2.0)

    def f(v):
        return part(v)
    compiled = to_static(f)
    same_as_eager(compiled, f, x())
    part.keywords["by"] = 3.0
    same_as_eager(compiled, f, x())
    factor = 5.0                                # `scaled` reads it
    same_as_eager(compiled, f, x())
    part = partial(scaled, by=3.0)              # one like it
    same_as_eager(compiled, f, x())
    assert compiled.get_traced_count() == 3


def test_explain_calls_the_function():
    compiled = to_static(lambda v, by: v * by)
    with pytest.raises(TypeError, match="explain: expected the arguments of a call.*'by'.*write explain"):
        explain(compiled, x())
    assert explain(compiled, x(), by=2.0).segments[0].ops == ("full", "multiply")
