"""What called functions change in branches and loops that the program decides: merged, handed on, or refused."""

import weakref
from collections import Counter, deque
from types import SimpleNamespace

import numpy as np
import pytest

import minipd as paddle
from minipd.jit import to_static
from minipd.jit.dy2static import inside
from minipd.jit.dy2static.inside import from_around
from minipd.static.nn import cond, while_loop

G = 0.0


def tensor(*values):
    return paddle.to_tensor(np.array(values, np.float32))


def numbers(x):
    if isinstance(x, paddle.Tensor):
        return x.tolist()
    if isinstance(x, dict):
        return {k: numbers(v) for k, v in x.items()}
    return [numbers(v) for v in x] if isinstance(x, (list, tuple, deque)) else x


def same_as_eager(make, *starts):
    """make() gives a function, and what to look at after each call."""
    runs = []
    for compiled in (lambda f: f, to_static):
        function, state = make()
        function = compiled(function)
        runs.append([(numbers(function(tensor(*start))), numbers(state())) for start in starts])
    assert runs[0] == runs[1]


def attribute():
    o = SimpleNamespace(n=0.0)

    def helper(x):
        o.n = x.sum()
        return x * 2.0

    def f(x):
        return helper(x) if x.sum() > 0 else x
    return f, lambda: o.n


def module_variable():
    global G
    G = 0.0

    def helper(x):
        global G
        G = G + 1.0
        return x

    def f(x):
        if x.sum() > 0:
            x = helper(x)
        return x
    return f, lambda: G


def variable_around():
    n = 0.0

    def helper(x):
        nonlocal n
        n = n + x.sum()

    def f(x):
        if x.sum() > 0:
            helper(x)
        return x + n
    return f, lambda: n


def loop():
    o = SimpleNamespace(h=tensor(0.0), n=0)

    def step(x):
        o.h = o.h + x
        o.n += 1

    def f(x):
        i = tensor(0.0)
        while i.sum() < x.sum():
            step(x)
            i = i + 1.0
        return o.h + 0.0
    return f, lambda: (o.h, o.n)


def containers():
    q, d, items, count = deque([0.0, 0.0], maxlen=2), {"a": 0.0}, [0.0, 0.0], Counter(a=2)

    def helper(x):
        q.append(x.sum())
        d.update(a=x.sum())
        items[1] = x.sum()

    def f(x):
        if x.sum() > 0:
            helper(x)
            count["a"] += 1
        else:
            helper(x * 3.0)
        return x
    return f, lambda: (q, d, items, dict(count))


def made_inside():
    class P:
        def __init__(self, x):
            self.x, self.items = x, []

    def helper(x):
        p, out = P(x), []
        p.items.append(x)
        for i in range(3):
            out.append(p.items[0] + i)
        p.x = x * 2.0
        return out, p.x

    def f(x):
        if x.sum() > 0:
            out, y = helper(x)
        else:
            out, y = [x, x, x], x
        return [*out, y]
    return f, lambda: None


def returned_list():
    log = [tensor(0.0)]

    def put(x):
        log[0] = x
        return log

    def f(x):
        return put(x) if x.sum() > 0 else [x * 5.0]
    return f, lambda: log


def nested():
    o = SimpleNamespace(n=0.0)

    def inner(x):
        if x.sum() > 2.0:
            o.n = o.n + x.sum()

    def f(x):
        i = tensor(0.0)
        while i.sum() < 3.0:
            if x.sum() > 1.0:
                inner(x + i)
            i = i + 1.0
        return x
    return f, lambda: o.n


def alternatives():
    o = SimpleNamespace(n=1.0)

    def add(x):
        o.n += 1.0
        return x.sum() > 5.0

    def f(x):
        y = x.sum() > 0.0 and add(x)
        return paddle.cast(y, "float32") if isinstance(y, paddle.Tensor) else x
    return f, lambda: o.n


@pytest.mark.parametrize("make", [attribute, module_variable, variable_around, loop, containers, made_inside,
                                  returned_list, nested, alternatives])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_a_called_function_changes(make):
    same_as_eager(make, [2.0], [-1.0], [3.0], [0.5])


def test_gradients_flow_through_what_is_left():
    o, w = SimpleNamespace(h=None), tensor(3.0)
    w.stop_gradient = False

    def keep(x):
        o.h = x * w

    def f(x):
        o.h = x
        if x.sum() > 0:
            keep(x)
        return x
    to_static(f)(tensor(2.0))
    (o.h * 5.0).sum().backward()
    assert o.h.tolist() == [6.0] and w.grad.tolist() == [10.0]


def test_a_list_does_not_grow_on_one_side():
    log = []

    def f(x):
        if x.sum() > 0:
            log.append(x)
        return x
    with pytest.raises(TypeError, match=r"`log` is \[Tensor f32\[1\]\] when .* and \[\] when .*full_graph=False"):
        to_static(f)(tensor(1.0))
    assert log == []


def test_an_attribute_of_a_loop_needs_a_start():
    o = SimpleNamespace()

    def step(x):
        o.h = x

    def f(x):
        while x.sum() < 10.0:
            x = x * 2.0
            step(x)
        return x
    with pytest.raises(TypeError, match="`o.h` is set by a function that the loop at .* calls, and has no value"):
        to_static(f)(tensor(1.0))
    assert not hasattr(o, "h")


@pytest.mark.parametrize("flow", [lambda x, f: cond(x.sum() > 0, lambda: f(x), lambda: x),
                                  lambda x, f: while_loop(lambda x: x.sum() < 9.0, f, [x])[0]])
def test_functions_of_cond_and_while_loop_change_nothing(flow):
    o = SimpleNamespace(n=0)

    def body(x):
        o.n += 1
        return x * 2.0
    with pytest.raises(TypeError, match=r"expected functions that return what they compute, got .*`o.n` from 0 to 1"):
        to_static(lambda x: flow(x, body))(tensor(1.0))
    assert o.n == 0


def test_a_failed_trace_leaves_nothing():
    o = SimpleNamespace(n=0, log=[])

    def f(x):
        o.n = x * 2.0
        o.log.append(o.n)
        return o.n.numpy()
    with pytest.raises(TypeError, match="which is being traced"):
        to_static(f)(tensor(1.0))
    assert o.n == 0 and o.log == []


def test_who_is_held_by_somebody_else():
    class P:
        pass
    kept, p = [1], P()
    made, cycle, p.kept = [[2]], [], kept
    cycle.append(cycle)
    left = [made, cycle, p]
    inner = id(made[0])
    del made, cycle, p
    around = from_around([left])
    assert id(kept) in around
    assert not {id(left[0]), id(left[1]), id(left[2]), inner} & around


def test_a_tensor_that_every_call_replaces_is_no_reason_to_trace_again():
    o = SimpleNamespace(h=tensor(0.0))

    def f(x):
        o.h = (o.h + x) * 0.5
        return o.h * 2.0
    compiled, left = to_static(f), []
    for _ in range(3):
        compiled(tensor(1.0))
        left.append(o.h)
    assert numbers(left) == [[0.5], [0.75], [0.875]]            # each call has left one of its own
    assert compiled.get_traced_count() == 1
    o.h = tensor(3.0)
    assert compiled(tensor(1.0)).tolist() == [4.0] and compiled.get_traced_count() == 2
    o.h = paddle.zeros([2])
    assert compiled(tensor(1.0)).tolist() == [1.0, 1.0] and compiled.get_traced_count() == 3


def test_a_tensor_with_two_names_stays_one_of_them():
    o = SimpleNamespace(h=tensor(0.0))
    o.first = o.h

    def f(x):
        o.h = o.h + x
        return o.h + o.first
    compiled = to_static(f)
    assert [compiled(tensor(1.0)).item() for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]


def test_one_tensor_twice_among_the_results():
    x = tensor(1.0, 2.0)
    x.stop_gradient = False

    def f(x):
        y = x * 2.0
        return y, [y], x, y.detach()
    y, (again,), same, _ = to_static(f)(x)
    assert again is y and same is x
    (y + again * 3.0).sum().backward()
    assert x.grad.tolist() == [8.0, 8.0]


def test_a_variable_that_outlives_the_call_must_have_a_value():
    global G
    G = 0.0
    v = 0.0

    def f(x):
        global G
        if x.sum() > 0:
            G = x
        return x

    def g(x):
        nonlocal v
        v = 1.0
        if x.sum() > 0:
            v = "text"
        return x
    for fn, name in ((f, "G"), (g, "v")):
        with pytest.raises(TypeError, match=f"`{name}` is .* when the condition is True.*outlives the call"):
            to_static(fn)(tensor(1.0, 2.0))
    assert G == 0.0 and v == 0.0

    def local(x):
        w = 0.0

        def helper():
            nonlocal w
            if x.sum() > 0:
                w = "text"
        helper()
        return x
    assert to_static(local)(tensor(1.0)).tolist() == [1.0]          # nobody can ask for it


def test_a_reference_to_an_object_that_is_gone():
    class Holder:
        n = tensor(1.0)
    o, live = Holder(), Holder()
    gone = [weakref.proxy(o), weakref.proxy(live)]
    del o

    def f(x):
        gone.append(x.sum())
        if x.sum() > 0:
            live.n = x
        return x * live.n
    assert to_static(f)(tensor(2.0)).tolist() == [4.0] and live.n.tolist() == [2.0] and gone[2].item() == 2.0


@pytest.fixture
def looked_at(monkeypatch):
    """How many objects have been looked at to tell what a block has made."""
    seen, leads_on = [0], inside.leads_on

    def counted(x):
        seen[0] += 1
        return leads_on(x)
    monkeypatch.setattr(inside, "leads_on", counted)
    return seen


class Config:
    def __init__(self, owner):
        self.owner, self.steps, self.all = owner, 0, owner.samples


class Trainer:
    """It holds much; some of that refers to it."""

    def __init__(self, n):
        self.samples = []
        self.config, self.last = Config(self), tensor(0.0)
        self.samples += [SimpleNamespace(values=[i], of=self) for i in range(n)]

    def note(self, x):
        self.config.steps = self.config.steps + 1
        self.last = x

    def step(self, x):
        self.current = self.samples
        if x.sum() > 0:
            self.note(x)
        else:
            self.note(-x)
        made = SimpleNamespace(n=x, of=self)
        if x.max() > 0:
            made.n = made.n + 1.0
        return made.n


TRAINER = Trainer(0)


def test_what_a_trace_looks_at_does_not_grow_with_what_an_object_holds(looked_at):
    def of_argument(trainer, x):
        return trainer.step(x)

    def of_module(x):
        return TRAINER.step(x)

    def seen(n, kind):
        t = Trainer(n)
        TRAINER.__dict__.update(vars(t))
        f = {"method": to_static(t.step), "argument": lambda x: to_static(of_argument)(t, x), "module": to_static(
            of_module), "closure": to_static(lambda x: t.step(x))}[kind]
        looked_at[0] = 0
        for x, last in ((tensor(1.0, 2.0), [1.0, 2.0]), (tensor(-1.0, -3.0), [1.0, 3.0])):
            assert f(x).tolist() == (x + (1.0 if x.max() > 0 else 0.0)).tolist()
            held = TRAINER if kind == "module" else t
            assert held.last.tolist() == last and held.current is held.samples
        assert held.config.steps == 2
        return looked_at[0]
    for kind in ("method", "argument", "module", "closure"):
        few, many = seen(10, kind), seen(3000, kind)
        assert many <= few + 100, (kind, few, many)


def test_variables_of_a_module_are_not_searched_for_what_a_trace_has_made(looked_at):
    global G, MUCH
    G, MUCH = tensor(0.0), [[i] for i in range(3000)]

    def helper(x):
        global G
        G = G + x.sum()

    def f(x):
        if x.max() > 0:
            helper(x)
        return x
    to_static(f)(tensor(1.0, 2.0))
    assert G.item() == 3.0 and looked_at[0] < 3000
