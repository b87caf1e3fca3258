"""full_graph=False: whatever Python does in a function, it is what eager mode does; and what is compiled, and when."""

import gc
import io
import weakref
from collections import namedtuple
from contextlib import redirect_stdout

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.autograd import PyLayer
from minipd.jit import explain, to_static

R = np.random.default_rng(3)
Pair = namedtuple("Pair", "first second")


def tensor(*shape, wants=False, dtype=np.float64):
    return paddle.to_tensor(R.standard_normal(shape).astype(dtype), stop_gradient=not wants)


def segments(f):
    return to_static(f, full_graph=False)


class Double(PyLayer):
    """A gradient that no rule of an operator would give: ten times too large."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensor()
        return g * 20.0 * x


# ------------------------------------------------------------------------- functions that eager mode is the judge of
def branches(x, y):
    if x.sum() > 0:
        return x * y
    return x - y


def numbers(x, y):
    scale = float(x.abs().max()) + x[0, 0].item()
    return x * scale + y * int(scale)


def through_numpy(x, y):
    known = np.sort(x.numpy(), axis=0)
    return paddle.to_tensor(known) * y + np.asarray(y.detach()).sum()


def loops(x, y):
    n = 0
    while float((x * x).sum()) > 0.01:
        x = x * 0.5 + y * 1e-3
        n += 1
    return x * n


def writes(x, y):
    z = x * 2.0
    z[0] = y[1]
    z[1, 0] = 7.0
    view = z[:, 1:]
    view.add_(paddle.ones_like(view))
    with paddle.no_grad():
        seen = z * y
    return view * 2.0, seen, view[0].exp()


def views_of_views(x, y):
    z = (x + y).reshape([-1])
    part = z[2:8].reshape([2, 3])
    part[0] = 1.0
    print(part.numpy().round(6).tolist())
    part.multiply_(part)
    with paddle.no_grad():
        seen = z.tanh()
    return part.sum() + part[1], seen


def no_gradients(x, y):
    with paddle.no_grad():
        w = (x * y).exp()
    z = x * w
    return z + z.detach() * y, w


def hooks(x, y):
    h = x * y
    a = h.tanh()
    h.register_hook(lambda g: g * 3.0)
    a.register_hook(lambda g: g + 1.0)
    return a + h * x


def py_layer(x, y):
    h = Double.apply(x * y)
    return h + Double.apply(h)


def inner_gradient(x, y):
    z = (x * y).tanh()
    g, = paddle.grad(z.sum(), x, retain_graph=True)
    w = x * y
    h, = paddle.grad((w * 2.0).exp().sum(), w)          # what led to w is not freed
    return z * 2.0 + g + w * h


def second_derivative(x, y):
    z = (x * y).tanh() * x
    g, = paddle.grad(z.sum(), x, create_graph=True)
    return (g * g).sum() + y


def gradient_of_a_middle(x, y):
    h = x * y
    z = h.exp() + h * h
    g, = paddle.grad(z.sum(), h)
    return g


def casts(x, y):
    with paddle.amp.auto_cast(dtype="bfloat16", level="O1"):
        z = paddle.matmul(x.astype("float32"), y.astype("float32"), transpose_y=True)
        seen = z.dtype
    assert seen == paddle.bfloat16
    return z.astype("float64")


def recomputed(x, y):
    return paddle.distributed.fleet.utils.recompute(lambda a: (a * y).tanh() * a, x)


def draws(x, y):
    return nn.functional.dropout(x, 0.5) * y + paddle.uniform([3, 4], dtype="float64")


def structures(x, y):
    return {"a": [x * 2.0, None], "b": (3, "text"), "c": Pair(x, y + x)}


def stopped(x, y):
    z = x * y
    z.stop_gradient = True
    w = z * y
    w2 = (y * 2.0).detach()
    w2.stop_gradient = False
    return w + z * x, w2 * x


def data_dependent_shapes(x, y):
    places = (x > 0).nonzero()
    return y.masked_select(x > 0).sum() + places.shape[0], paddle.unique((x * 2).round())


def conditions_of_operators(x, y):
    return paddle.static.nn.cond(x.sum() > y.sum(), lambda: x * y, lambda: x + y)


def caught(x, y):
    try:
        x.matmul(y)
    except ValueError:
        return x + y


def printed(x, y):
    z = x + y
    print(f"{z.sum():.3f}", z.shape, len(z))
    print(z)
    return z


def integers(x, y):
    n = (x > 0).sum()
    return x[: int(n) % 3 + 1] * n, list(range(int(n)))


def copies(x, y):
    import copy
    z = x * y
    a, b = copy.copy(z), copy.deepcopy(z.detach())
    return a + 1.0, b * z


def in_place_of_a_result(x, y):
    z = x * y
    w = z.exp()
    z.add_(y)
    z.scale_(2.0)
    return z * w


def iterated(x, y):
    return sum(row * row for row in x) + paddle.stack([a * b for a, b in zip(x, y, strict=True)])


FUNCTIONS = [branches, numbers, through_numpy, loops, writes, views_of_views, no_gradients, hooks, py_layer,
             inner_gradient, second_derivative, gradient_of_a_middle, casts, recomputed, draws, structures, stopped,
             data_dependent_shapes, conditions_of_operators, caught, printed, integers, copies, in_place_of_a_result,
             iterated]


def leaves(tree):
    if isinstance(tree, dict):
        return [x for k in tree for x in [k, *leaves(tree[k])]]
    if isinstance(tree, (list, tuple)):
        return [type(tree).__name__, *[x for t in tree for x in leaves(t)]]
    return [tree]


def run(f, arrays, wants):
    """Everything that can be seen of two calls in a row: results, what is printed, gradients."""
    paddle.seed(11)
    seen = []
    for _ in range(2):
        xs = [paddle.to_tensor(a.copy(), stop_gradient=not w) for a, w in zip(arrays, wants, strict=True)]
        text = io.StringIO()
        with redirect_stdout(text):
            outs = leaves(f(*xs))
        tensors = [o for o in outs if isinstance(o, paddle.Tensor)]
        seen += [text.getvalue(), *outs, *[t.stop_gradient for t in tensors], *[t.is_leaf for t in tensors]]
        flowing = [t.sum() for t in tensors if not t.stop_gradient]
        if flowing:
            sum(flowing).backward()
        seen += [x.grad for x in xs]
    return seen


def check_alike(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        if isinstance(b, paddle.Tensor):
            assert type(a) is type(b) and a.dtype == b.dtype and type(a.payload) is np.ndarray
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12)
        else:
            assert a == b


#: these ask for gradients of their first argument
ASKING = (hooks, inner_gradient, second_derivative, gradient_of_a_middle)


@pytest.mark.parametrize("f,wants", [
    pytest.param(f, wants, id=f"{f.__name__}-{wants}") for f in FUNCTIONS
    for wants in ((True, True), (False, True), (False, False)) if wants[0] or f not in ASKING])
def test_it_is_what_eager_mode_does(f, wants):
    arrays = [R.standard_normal((3, 4)), R.standard_normal((3, 4)) + 2.0]
    check_alike(run(segments(f), arrays, wants), run(f, arrays, wants))


# ------------------------------------------------------------------------------------------- what lives around
def test_a_written_argument_is_written():
    def f(x, view):
        x.add_(paddle.ones([3]))
        y = view * 2.0                      # shares the memory of x
        view[0] = 10.0
        return x * y

    found = []
    for g in (f, segments(f)):
        x = paddle.to_tensor([1.0, 2.0, 3.0])
        other = x.detach()
        view = x[1:]
        out = [g(x, view[:1]).tolist() for _ in range(3)]
        found.append((out, x.tolist(), other.tolist(), view.tolist()))
    assert found[0] == found[1]


def test_outside_tensors_that_are_written():
    total, views = {}, {}

    def f(key, x):
        total[key].add_(x * 2.0)
        if total[key].sum() > 5.0:
            total[key].scale_(0.5)
        return views[key] + 1.0
    for key, g in (("eager", f), ("segments", segments(f))):
        total[key] = paddle.zeros([2])
        views[key] = total[key][:1]
        total[key, "seen"] = [g(key, paddle.ones([2])).tolist() for _ in range(5)]
    assert total["eager"].tolist() == total["segments"].tolist()
    assert total["eager", "seen"] == total["segments", "seen"]


def training(compile):
    """Five whole steps, with batch statistics, dropout, a hook, and a look at the loss."""
    paddle.seed(2)
    net = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1D(7), nn.ReLU(), nn.Dropout(0.3), nn.Linear(7, 1))
    optimizer = paddle.optimizer.AdamW(0.05, parameters=net.parameters(),
                                       grad_clip=nn.ClipGradByGlobalNorm(0.5))
    seen = []
    net[0].register_forward_post_hook(lambda layer, inputs, out: out * 1.1)

    def step(x, y):
        loss = ((net(x) - y) ** 2).mean()
        if float(loss) < 1e-9:
            return loss
        loss.backward()
        seen.append(float(net[0].weight.grad.abs().sum()))
        optimizer.step()
        optimizer.clear_grad()
        return loss
    step = compile(step)
    data = np.random.default_rng(4)
    for _ in range(5):
        x, y = data.standard_normal((6, 5)).astype("float32"), data.standard_normal((6, 1)).astype("float32")
        seen.append(step(paddle.to_tensor(x), paddle.to_tensor(y)).item())
    return seen, [v.numpy() for v in net.state_dict().values()], step


def test_training_steps():
    (seen, state, _), (seen2, state2, step) = training(lambda f: f), training(segments)
    np.testing.assert_allclose(seen2, seen, rtol=2e-5)
    for a, b in zip(state2, state, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    compiled = step.store.programs
    assert 0 < compiled <= 8        # of the first step, or two: later ones found everything


def test_side_effects_happen_at_every_call():
    calls = []

    @segments
    def f(x):
        calls.append(len(calls))
        y = x + len(calls)
        f.kept = y
        return y
    assert [f(paddle.zeros([])).item() for _ in range(3)] == [1.0, 2.0, 3.0] and calls == [0, 1, 2]
    assert type(f.kept.payload) is np.ndarray


def test_parameters_that_are_made_at_the_first_call():
    class Lazy(nn.Layer):
        def __init__(self):
            super().__init__()
            self.inner = None

        def forward(self, x):
            if self.inner is None:
                self.inner = nn.Linear(x.shape[1], 2)
            return self.inner(x)
    layer = Lazy()
    x = tensor(3, 4, dtype=np.float32)
    compiled = to_static(layer, full_graph=False)
    out = compiled(x)
    np.testing.assert_allclose(out.numpy(), layer.inner(x).numpy(), rtol=1e-6)
    np.testing.assert_allclose(compiled(x).numpy(), out.numpy())
    assert [n for n, _ in layer.named_parameters()] == ["inner.weight", "inner.bias"]


def test_what_is_computed_later_is_the_value_then():
    @segments
    def f(x):
        y = x * 1.0
        x[0] = 100.0            # after y was noted, before it is computed
        return y
    x = paddle.to_tensor([1.0, 2.0])
    assert f(x).tolist() == [1.0, 2.0] and x.tolist() == [100.0, 2.0]


def test_functions_inside_of_functions():
    inner = to_static(lambda x: x * 2.0)
    outer = segments(lambda x: inner(x) + float(segments(lambda y: y.sum())(x)))
    assert outer(paddle.ones([2])).tolist() == [4.0, 4.0] and not inner.cache


# ------------------------------------------------------------------------------------------------------ the tape
def test_a_segment_is_one_node():
    @segments
    def f(x):
        y = paddle.tanh(x * x) + x
        assert float(y.sum()) is not None
        return (y * y).sum()
    x = tensor(3, wants=True)
    z = f(x)
    assert z.node.row.name.endswith("f") and len(z.node.edges) == 1
    y_node, index = z.node.edges[0]
    assert y_node.row.name == z.node.row.name and y_node.edges == [(x.node, 0)]
    z.backward()
    t = np.tanh(x.numpy() ** 2)
    np.testing.assert_allclose(x.grad.numpy(), 2 * (t + x.numpy()) * (2 * x.numpy() * (1 - t * t) + 1))


@pytest.mark.parametrize("compile", [to_static, segments])
def test_a_result_asked_for_its_gradient_by_another_result(compile):
    """Both are results of one node; what one owes to the other is inside of it."""
    x = tensor(3, wants=True)
    h, z = compile(lambda v: (lambda h: (h, h * h))(v * 3.0))(x)
    g, = paddle.grad((z + h).sum(), h)
    np.testing.assert_allclose(g.numpy(), 2 * h.numpy() + 1)
    h, z = compile(lambda v: (lambda h: (h, h * h))(v * 3.0))(x)
    later = h * 5.0
    seen = []
    h.register_hook(lambda g: seen.append(g.numpy()))
    (later + z).sum().backward()
    np.testing.assert_allclose(seen[0], 5 + 2 * h.numpy())
    np.testing.assert_allclose(x.grad.numpy(), 3 * (5 + 2 * h.numpy()))


def test_nothing_is_kept_by_a_cycle():
    @segments
    def f(x):
        y = x * x
        y.add_(x)
        return y, x.exp()
    x = tensor(3, wants=True)
    f(x)
    gc.collect()
    gc.disable()
    try:
        node = weakref.ref(f(x)[0].node)
        assert node() is None
    finally:
        gc.enable()


def test_writing_what_backward_needs_is_refused():
    x, y = tensor(2, wants=True), tensor(2)
    z = segments(lambda a, b: a * b * b)(x, y)
    y.add_(y)
    with pytest.raises(RuntimeError, match="was written in place after the compiled function had read it"):
        z.sum().backward()


# --------------------------------------------------------------------------------------------- what is compiled
def test_the_second_call_compiles_nothing():
    f = segments(loops)
    x, y = tensor(3, 4), tensor(3, 4)
    f(x, y)
    programs = f.store.programs
    report = explain(f, x, y)
    assert f.store.programs == programs and all(s.how in ("found", "eager") for s in report.segments)
    assert report.hits >= 3 and len(set(report.ops_per_segment)) == 3       # the first round, the others, the last


def test_numbers_that_change_at_every_call_become_inputs():
    f = segments(lambda x, k: (x * k + 1.0).tanh() * k)
    x = tensor(3)
    for k in np.arange(0.5, 15).tolist():
        np.testing.assert_allclose(f(x, k).numpy(), np.tanh(x.numpy() * k + 1.0) * k)
    assert f.store.programs <= 7


def test_a_function_that_never_does_the_same_twice_goes_on_eagerly():
    f = segments(lambda x, n: (x * 2.0).reshape([1] * n).exp())
    f.store.limit = 3
    x = paddle.ones([1])
    with pytest.warns(RuntimeWarning, match="3 different programs .* runs eagerly"):
        for n in range(1, 8):
            assert f(x, n).shape == [1] * n
    assert explain(f, x, 7).segments[0].how == "eager"


def test_explain_says_where_and_why():
    def f(x):
        y = x * 2.0 + 1.0
        if y.sum() > 0:
            y = y * y
        return y.tanh() + y.numpy().size
    report = explain(segments(f), paddle.ones([2]))
    assert report.ops_per_segment == [4, 2, 1]
    first, second, third = report.segments
    assert first.reason == "bool()" and first.where.startswith(__file__) and first.how == "compiled"
    assert (second.reason, second.how) == ("numpy()", "compiled")
    assert (third.reason, third.how) == ("the end of the function", "eager")         # one operator
    text = str(report)
    assert "`if y.sum() > 0:`" in text and "3 segments" in text and "4 operators" in text
    assert explain(segments(f), paddle.ones([2])).result.shape == [2]
    with pytest.raises(TypeError, match="expected a function that to_static has made"):
        explain(f, paddle.ones([2]))


# ------------------------------------------------------------------------------------------------------- errors
def test_a_shape_that_does_not_fit_is_told_at_once():
    @segments
    def f(x, y):
        z = x * 2.0
        return z.matmul(y)
    with pytest.raises(ValueError, match="matmul") as caught:
        f(paddle.ones([2, 3]), paddle.ones([2, 3]))
    assert f.function.__code__ in [entry.frame.code.raw for entry in caught.traceback]


def test_an_error_of_a_kernel_names_the_line_of_the_call():
    @segments
    def f(x, i):
        y = x * 2.0
        z = paddle.gather(y, i)             # the line
        w = z + 1.0
        return w
    with pytest.raises(IndexError) as caught:
        f(paddle.ones([3]), paddle.to_tensor([7]))
    assert any("test_segments.py" in note for note in caught.value.__notes__)
    assert f(paddle.ones([3]), paddle.to_tensor([1])).tolist() == [3.0]


def test_what_happened_before_an_error_has_happened():
    state = paddle.zeros([2])

    @segments
    def f(x):
        state.add_(x)
        raise KeyError("user")
    with pytest.raises(KeyError, match="user"):
        f(paddle.ones([2]))
    assert state.tolist() == [1.0, 1.0] and type(state.payload) is np.ndarray


def test_a_segment_that_ends_with_the_function_is_told_by_its_return():
    def f(x, n=3):
        for _ in range(n):
            x = x * 2.0
            if float(x.sum()) > 10.0:
                return x + 1.0
        y = x - 1.0
        return y * 2.0
    compiled = to_static(f, full_graph=False)
    for start, line in ((5.0, "return x + 1.0"), (0.1, "return y * 2.0")):
        assert f"the end of the function at {__file__}:" in str(explain(compiled, paddle.full([2], start)))
        assert str(explain(compiled, paddle.full([2], start))).endswith(f"`{line}`")
    assert str(explain(to_static(lambda x: x * 2.0), paddle.ones([2]))).count("x * 2.0), paddle.ones([2])")
