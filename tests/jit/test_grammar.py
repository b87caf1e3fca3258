"""The rows of Paddle's table of supported grammar (guides/jit/grammar_list): each computes, compiled, what it computes
eagerly, on inputs that take every branch, gradients included."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.jit import to_static
from minipd.static import InputSpec


def evaluated(f, args):
    """(values, gradients) of f of tensors made from these arguments."""
    tensors = [paddle.to_tensor(a, stop_gradient=not np.issubdtype(np.asarray(a).dtype, np.floating))
               if not isinstance(a, (bool, str, tuple)) else a for a in args]
    outs = f(*tensors)
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    flowing = [o.sum() for o in outs if isinstance(o, paddle.Tensor) and not o.stop_gradient]
    if flowing:
        sum(flowing[1:], flowing[0]).backward()
    return ([o.numpy() if isinstance(o, paddle.Tensor) else np.asarray(o) for o in outs],
            [None if not isinstance(t, paddle.Tensor) or t.grad is None else t.grad.numpy() for t in tensors])


def agree(f, *inputs):
    """Eager and compiled agree; returns the names of the operations of the last program."""
    compiled = to_static(f)
    for args in inputs:
        (values, grads), (found, found_grads) = evaluated(f, args), evaluated(compiled, args)
        assert len(values) == len(found)
        for a, b in zip(values, found, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-6, err_msg=str(args))
        for a, b in zip(grads, found_grads, strict=True):
            # a branch that does not use an input gives it no gradient eagerly, and zeros in a program
            np.testing.assert_allclose(0 if b is None else b, 0 if a is None else a, rtol=1e-6, err_msg=str(args))
    return [op.name() for op in compiled.main_program.walk()]


V = [1.0, 2.0, 3.0]


# --------------------------------------------------------------------------------------- control flow: if-else
def if_else(x):
    if x.sum() > 0:
        y = x * 2.0
    else:
        y = x * x
    return y + 1.0


def elif_chain(x):
    if x > 10.0:
        r = x + 1.0
    elif x > 0.0:
        r = x * x
    elif x > -10.0:
        r = -x
    else:
        r = x * 0.5
    return r


def if_without_else(x):
    y = x
    if x > 0.0:
        y = x * 3.0
    return y * y


def nested_if(x, y):
    if x > 0.0:
        if y > 0.0:
            r = x * y
        else:
            r = x - y
    else:
        r = y * 2.0
        if y > x:
            r = r + x
    return r


def number_of_elements_is_one(x):
    if x.reshape([1, 1]):
        return x * 2.0
    return x + 5.0


@pytest.mark.parametrize("f, inputs", [
    (if_else, [(V,), ([-1.0, -2.0],)]), (elif_chain, [(11.0,), (2.0,), (-3.0,), (-20.0,)]),
    (if_without_else, [(2.0,), (-2.0,)]), (number_of_elements_is_one, [(2.0,), (0.0,)]),
    (nested_if, [(1.0, 2.0), (1.0, -2.0), (-1.0, 3.0), (-1.0, -3.0)]),
], ids=lambda x: getattr(x, "__name__", ""))
def test_if_else(f, inputs):
    assert "pd_op.if" in agree(f, *inputs)


def test_an_if_of_python_stays_one():
    def f(x, flag):
        if flag:
            return x * 2.0
        return x - 1.0
    names = agree(f, (V, True), (V, False))
    assert "pd_op.if" not in names


# ------------------------------------------------------------------------------------------ control flow: while
def while_tensor(x):
    s = 0.0
    while s < 10.0:
        s = s + x * x + 1.0
    return s


def while_several(x):
    i, y = paddle.to_tensor(0), x
    while i < 4 and y < 100.0:
        y = y * x + 1.0
        i += 1
    return y, i


def while_else(x):
    while x < 5.0:
        x = x + 2.0
    else:
        x = x * 10.0
    return x


def while_in_while(x):
    n = paddle.to_tensor(0)
    while x < 50.0:
        m = paddle.to_tensor(0)
        while m < 2:
            x = x * 1.5
            m = m + 1
        n = n + m
    return x, n


@pytest.mark.parametrize("f, inputs", [
    (while_tensor, [(1.0,), (3.0,)]), (while_several, [(1.0,), (3.0,), (200.0,)]), (while_else, [(1.0,), (9.0,)]),
    (while_in_while, [(2.0,), (60.0,)]),
], ids=lambda x: getattr(x, "__name__", ""))
def test_while(f, inputs):
    assert "pd_op.while" in agree(f, *inputs)


def test_a_while_of_python_stays_one():
    def f(x):
        n = 0
        while n < 3:
            n += 1
            x = x * n
        return x
    names = agree(f, (V,))
    assert "pd_op.while" not in names and sum(n in ("pd_op.scale", "pd_op.multiply") for n in names) == 3


# -------------------------------------------------------------------------------------------- control flow: for
def for_range_tensor(x, n):
    s = x * 0.0
    for i in range(n):
        s = s + x * i
    return s


def for_range_of_three(x, n):
    s = x
    for i in range(n, -1, -2):
        s = s * 2.0 + i
    return s


def for_tensor(x):
    s = 0.0
    for row in x:
        s = s + row * row
    return s


def for_enumerate(x):
    s = 0.0
    for i, row in enumerate(x, 1):
        s = s + row * i
    return s


def for_zip(x, y):
    s = 0.0
    for a, b in zip(x, y, strict=False):
        s = s + a * b
    return s


def for_list(x):
    s = x
    for k in [1.0, 2.0, 3.0]:
        s = s * k
    return s


@pytest.mark.parametrize("f, inputs, kind", [
    (for_range_tensor, [(V, 4), (V, 0), (V, 1)], "pd_op.while"), (for_range_of_three, [(V, 5), (V, 0), (V, -1)],
                                                                 "pd_op.while"),
    (for_tensor, [(V,), ([[1.0, 2.0], [3.0, 4.0]],)], None), (for_enumerate, [(V,)], None),
    (for_zip, [(V, [4.0, 5.0, 6.0])], None), (for_list, [(V,)], None),
], ids=lambda x: getattr(x, "__name__", ""))
def test_for(f, inputs, kind):
    names = agree(f, *inputs)
    assert (kind is None or kind in names) and ("pd_op.while" in names) == (kind == "pd_op.while")


def test_variables_that_a_loop_defines():
    def f(x, n):
        for i in range(n):
            h = x * i
        return h, i
    agree(f, (V, 1), (V, 4))


@pytest.mark.parametrize("f, count", [(for_tensor, 1), (for_enumerate, 1), (for_zip, 2)])
def test_a_for_over_an_open_dimension_is_a_loop_of_the_program(f, count):
    compiled = to_static(f, input_spec=[InputSpec([None], "float32", stop_gradient=False)] * count)
    for n in (1, 3, 4):
        tensors = [np.random.default_rng(i).standard_normal(n).astype("float32") for i in range(count)]
        for a, b in zip(*(evaluated(g, tensors) for g in (f, compiled)), strict=True):
            for left, right in zip(a, b, strict=True):
                np.testing.assert_allclose(right, left, rtol=1e-5)
    assert len(compiled.cache) == 1 and "pd_op.while" in [op.name() for op in compiled.main_program.walk()]


# ----------------------------------------------------------------------------------- break, continue, return
def break_on_tensor(x):
    found = -1
    for i, v in enumerate(x):
        if v == 2.0:
            found = i
            break
    return paddle.to_tensor(found) if isinstance(found, int) else found


def break_and_continue_in_while(x):
    i, y = paddle.to_tensor(0), x
    while i < 6:
        i += 1
        if i == 2:
            continue
        y = y * x
        if y > 50.0:
            break
        y = y + 1.0
    return y, i


def break_in_nested_loops(x):
    count = 0
    for _ in range(3):
        for _ in range(3):
            if x > 20.0:
                break
            x = x * 2.0
            count = count + 1
        else:
            x = x + 1.0
    return x, count


def while_true(x):
    while True:
        x = x * 2.0
        if x > 10.0:
            break
    return x


def return_in_for(x):
    for _ in range(5):
        x = x * 2.0
        if x > 6.0:
            return x + 100.0
    return x


def return_in_while(x):
    i = paddle.to_tensor(0)
    while i < 5:
        x = x * 2.0
        if x > 6.0:
            return x * i, i
        i += 1
    return x, i


def return_in_nested_loops(x):
    i = paddle.to_tensor(0)
    while i < 3:
        for k in range(3):
            x = x + k
            if x > 8.0:
                return x * 10.0
        i = i + 1
    return -x


def early_returns(x):
    if x > 0.0:
        if x > 5.0:
            return x
        x = x * 3.0
    else:
        x = x - 1.0
        if x < -5.0:
            return x * 7.0
    return x + 0.5


@pytest.mark.parametrize("f, inputs", [
    (break_on_tensor, [(V,), ([2.0, 2.0, 3.0],), ([1.0, 1.0, 3.0],)]),
    (break_and_continue_in_while, [(1.0,), (3.0,), (100.0,)]), (break_in_nested_loops, [(1.0,), (3.0,), (30.0,)]),
    (while_true, [(1.0,), (30.0,)]), (return_in_for, [(1.0,), (0.01,)]), (return_in_while, [(1.0,), (0.01,), (9.0,)]),
    (return_in_nested_loops, [(1.0,), (-30.0,), (9.0,)]), (early_returns, [(2.0,), (6.0,), (-2.0,), (-8.0,)]),
], ids=lambda x: getattr(x, "__name__", ""))
def test_break_continue_return(f, inputs):
    agree(f, *inputs)


# ---------------------------------------------------------------------------------------------------- operators
def test_arithmetic_and_comparisons():
    def f(x, y):
        return x + y, x - y, x * y, x / y, x ** 2.0, x > y, x < y, x >= y, x <= y, x == y
    agree(f, (V, [3.0, 2.0, 1.0]))


def and_or_not(x, y):
    if x > 0.0 and y > 0.0 or not x > -5.0:
        return x * y
    return x - y


def chained(x):
    return x * 2.0 if 0.0 < x < 5.0 else -x


def value_of_and(x, y):
    return (x and y) + (x or y)


def one_is_no_tensor(x, flag):
    return x * 2.0 if flag and x > 0.0 else x * 3.0


def right_side_waits(x, i):
    return x[i] * 2.0 if i < 3 and x[i] > 1.0 else x.sum()


@pytest.mark.parametrize("f, inputs", [
    (and_or_not, [(1.0, 2.0), (1.0, -2.0), (-1.0, 2.0), (-6.0, 2.0)]), (chained, [(2.0,), (-2.0,), (7.0,)]),
    (value_of_and, [(2.0, 3.0), (0.0, 3.0), (2.0, 0.0)]), (one_is_no_tensor, [(2.0, True), (-2.0, True), (2.0, False)]),
    (right_side_waits, [(V, 0), (V, 2), (V, 7)]),
], ids=lambda x: getattr(x, "__name__", ""))
def test_and_or_not(f, inputs):
    agree(f, *inputs)


def test_membership():
    def f(x):
        inside, outside = x in [1.0, 2.0], x not in (1.0, 5.0)
        return (x * 2.0 if inside else x), (x * 3.0 if outside else x)
    agree(f, (1.0,), (2.0,), (5.0,), (9.0,))


@pytest.mark.parametrize("value", [2.75, -2.75, 0.0])
def test_casts(value):
    def f(x):
        return int(x), float(x), bool(x), int(x * 3.0) + 1
    names = agree(f, (value,))
    assert names.count("pd_op.cast") >= 3


# -------------------------------------------------------------------------------------------------- Tensor.shape
def test_shape():
    def f(x):
        if x.shape[0] > 2:
            return x.reshape([x.shape[1], x.shape[0]]) * len(x)
        return x * x.ndim
    names = agree(f, (np.ones((3, 2)),), (np.ones((2, 5)),))
    assert "pd_op.if" not in names


# ----------------------------------------------------------------------------------------------- python functions
def test_print(capsys):
    def f(x):
        print("before", x)
        if x > 0.0:
            print("positive", x * 2.0)
        return x
    compiled = to_static(f)
    compiled(paddle.to_tensor(1.5))
    text = capsys.readouterr().out
    assert "message: before" in text and "data: [1.500000]" in text
    assert "message: positive" in text and "data: [3.000000]" in text
    compiled(paddle.to_tensor(-2.5))
    text = capsys.readouterr().out
    assert "data: [-2.500000]" in text and "positive" not in text


def test_max_min_any_all():
    def f(x, y):
        signs = [v > 0.0 for v in x]
        return (max(x[0], y), min([y, x[1], 0.5]), x * 2.0 if any(signs) else x, x * 3.0 if all(signs) else x,
                max(1, 2), any([0, 2]), all(()))
    agree(f, ([1.0, 2.0], 1.5), ([-1.0, 2.0], -3.0), ([-1.0, -2.0], 0.0))


def test_len():
    def f(x):
        return x * len(x), len([x, x])
    agree(f, (V,))
    g = to_static(lambda x: x.sum() * len(x), input_spec=[InputSpec([None], "float32")])
    assert g(paddle.to_tensor(V)).item() == 18.0 and g(paddle.to_tensor([5.0])).item() == 5.0


def test_lambda():
    def f(x):
        pick = lambda t, k=2.0: t * k if t.sum() > 1.0 else t - k     # noqa: E731
        return pick(x), (lambda *ts: ts[0] + ts[-1])(x, x)
    agree(f, (V,), ([-1.0, 0.5],))


def largest(*xs, start=0.0):
    best = start
    for x in xs:
        if x > best:
            best = x
    return best


def clipped(x, low=-1.0, *, high=1.0):
    if x < low:
        return low + 0.0 * x
    if x > high:
        return high + 0.0 * x
    return x


def test_functions_that_are_called():
    def f(x, y):
        def inner(z):
            nonlocal count
            if z > 0.0:
                count = count + 1.0
            return clipped(z, high=y)
        count = 0.0
        return inner(x) * inner(y), count, largest(x, y, x * y, start=x * 0.0)
    agree(f, (2.0, 3.0), (-2.0, 3.0), (2.0, -3.0), (-0.5, 0.5))


def test_recursion_on_a_python_number():
    def power(x, n):
        if n == 0:
            return x * 0.0 + 1.0
        half = power(x, n // 2)
        return half * half * x if n % 2 else half * half
    agree(lambda x: power(x, 5) if x > 0.0 else power(x, 2), (2.0,), (-3.0,))


# ------------------------------------------------------------------------------------------ errors and exceptions
def test_assert():
    def f(x):
        assert x > 0.0, "expected a positive x"
        return x * 2.0
    agree(f, (1.0,), (3.0,))
    with pytest.raises(ValueError, match="expected a positive x"):
        to_static(f)(paddle.to_tensor(-1.0))


def test_raise():
    def f(x):
        if x > 0.0:
            y = x * 2.0
        elif x < -5.0:
            y = -x
        else:
            raise ValueError(f"nothing between {-5} and 0")
        return y
    agree(f, (1.0,), (-7.0,))
    with pytest.raises(ValueError, match="ValueError: nothing between -5 and 0"):
        to_static(f)(paddle.to_tensor(-1.0))


# ----------------------------------------------------------------------------------------------------- containers
def test_list():
    def f(x, y):
        xs = [x]
        xs.append(y)
        xs[0] = x * 2.0
        if x.sum() > 0.0:
            xs.append(x * y)
        else:
            xs.append(x - y)
        last = xs.pop()
        xs.sort(key=lambda t: 0)
        return xs[0] + xs[-1] * last
    agree(f, (V, V), ([-1.0, -2.0], [3.0, 4.0]))


def test_list_index():
    def f(x, y):
        xs, names = [x, y, x * 2.0], ["a", "b", "c"]
        at = names.index("b") if x.sum() > 0.0 else names.index("c", 1)
        if names.index("a") == 0:           # Python's own: the list, and what is asked for, are
            xs.insert(names.index("c"), xs[xs.index(x)] * 3.0)
        return xs[2] + xs[3] * at, at
    agree(f, (V, V), ([-1.0, -2.0], [3.0, 4.0]))
    with pytest.raises(TypeError, match=r"bool\(\): expected a tensor with values.*`return xs.index"):
        def unknown(x, y):
            xs = [x, y]
            return xs.index(y)
        to_static(unknown)(paddle.to_tensor(1.0), paddle.to_tensor(2.0))


def test_list_in_a_loop_of_python():
    def f(x):
        rows = []
        for row in x:
            if row > 1.5:
                rows.append(row * 2.0)
            else:
                rows.append(row)
        return paddle.stack(rows), paddle.stack([r * i for i, r in enumerate(x) if i != 1])
    agree(f, (V,))


def test_list_of_fixed_length_in_a_loop_of_the_program():
    def f(x):
        pair = [x, x * 0.0]
        while pair[0] < 20.0:
            pair[0] = pair[0] * 2.0
            pair[1] = pair[1] + pair[0]
        return pair
    agree(f, (1.0,), (30.0,))


def test_dict():
    def f(x):
        state = {"h": x, "n": 0}
        while state["h"].sum() < 30.0:
            state["h"] = state["h"] * 2.0
            state["n"] += 1
        if state["h"].max() > 20.0:
            state["flag"] = x
        else:
            state["flag"] = x * 0.0
        return state["h"], state["n"], state["flag"]
    agree(f, (V,), ([40.0],), ([1.0],))


# --------------------------------------------------------------------------------------------------- third party
def test_numpy_on_what_is_no_tensor():
    def f(x):
        weights = np.arange(3.0, dtype="float32")
        if np.sum(weights) > 2.0:
            return x * paddle.to_tensor(weights)
        return x
    names = agree(f, (V,))
    assert "pd_op.if" not in names


def test_saved_and_loaded(tmp_path):
    def f(x):
        for i in range(3):
            if i == 2:
                break
            x = x + 1.0
        if x.sum() > 10.0:
            return x * 2.0
        while x.sum() < 5.0:
            x = x + 1.0
        return x
    with pytest.warns(UserWarning, match="a function is saved"):
        paddle.jit.save(to_static(f, input_spec=[InputSpec([None], "float32")]), str(tmp_path / "f"))
    loaded = paddle.jit.load(str(tmp_path / "f"))
    for value in (V, [-4.0, 1.0], [9.0]):
        np.testing.assert_allclose(loaded(paddle.to_tensor(value)).numpy(), f(paddle.to_tensor(value)).numpy())


# ---------------------------------------------------------------------------------------- beyond Paddle's table
class Gate(nn.Layer):
    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([3])

    def forward(self, x):
        if x.mean() > 0.0:
            return x * self.weight
        return x - self.weight


class Stack(Gate):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(Gate(), nn.Linear(3, 3), Gate())
        self.register_buffer("calls", paddle.zeros([]))

    def forward(self, x):
        y = super().forward(x)
        if y.sum() > 1.0:
            self.calls.add_(paddle.ones([]))
            y = self.inner(y)
        return y


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_layers(sign):
    paddle.seed(0)
    eager, compiled = Stack(), Stack()
    compiled.set_state_dict(eager.state_dict())
    compiled = to_static(compiled)
    x = paddle.to_tensor(np.random.default_rng(1).standard_normal((4, 3)).astype("float32")) * sign
    for _ in range(2):
        for model in (eager, compiled):
            model.clear_gradients()
            model(x).sum().backward()
        assert compiled.calls.item() == eager.calls.item()
        for a, b in zip(eager.parameters(), compiled.parameters(), strict=True):
            np.testing.assert_allclose(0 if b.grad is None else b.grad.numpy(), 0 if a.grad is None else a.grad.numpy(),
                                       rtol=1e-5, atol=1e-6)


def test_layers_in_containers_of_the_library(tmp_path):
    model, x = nn.Sequential(nn.Linear(3, 3), Gate()), paddle.to_tensor([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
    want = [model(v).numpy() for v in (x, -x)]
    compiled = to_static(model)
    for v, y in zip((x, -x), want, strict=True):
        np.testing.assert_allclose(compiled(v).numpy(), y, rtol=1e-6)
    paddle.jit.save(compiled, str(tmp_path / "model"), input_spec=[InputSpec([None, 3], "float32")])
    loaded = paddle.jit.load(str(tmp_path / "model"))
    for v, y in zip((x, -x), want, strict=True):
        np.testing.assert_allclose(loaded(v).numpy(), y, rtol=1e-6)


def test_writing_tensors_in_branches_and_loops():
    def f(x):
        y = x * 1.0
        if x.sum() > 0.0:
            y[0] = 5.0
        else:
            y[1] = x[0] * 7.0
            y.multiply_(paddle.to_tensor(2.0))
        i = paddle.to_tensor(0)
        while i < 2:
            y[i] = x[i] * (i + 1)
            i += 1
        return y * x
    agree(f, (V,), ([-1.0, -2.0],))


def test_views_of_a_tensor_that_a_branch_writes():
    def f(x):
        y = x * 1.0
        row = y[0]
        if x.sum() > 0.0:
            row.add_(paddle.to_tensor(10.0))
        else:
            y.add_(paddle.ones([2, 2]))
        return y * 1.0, row * 2.0
    for value in (np.arange(1.0, 5.0), -np.arange(1.0, 5.0)):
        x = paddle.to_tensor(value.reshape(2, 2))
        for eager, compiled in zip(f(x), to_static(f)(x), strict=True):
            assert compiled.tolist() == eager.tolist()


def test_attributes_in_branches():
    class State:
        pass

    def f(x):
        state = State()
        state.h, state.inner = x, State()
        state.inner.n = 1.0
        if x > 0.0:
            state.h = x * 2.0
            state.inner.n = x
        else:
            state.inner.n = 4.0 + x
        while state.h < 10.0:
            state.h = state.h + 3.0
        return state.h, state.inner.n
    agree(f, (1.0,), (-1.0,), (20.0,))


def test_match_try_with_walrus():
    def f(x, mode):
        match mode:
            case "double":
                y = x * 2.0
            case ("scale", k):
                y = x * k
            case _:
                y = x
        try:
            with paddle.amp.auto_cast(enable=False):
                if (z := y.sum()) > 3.0:
                    y = y + z
            if x.sum() < 0.0:
                return y
        except ZeroDivisionError:
            return x
        finally:
            y = y * 2.0
        return y
    for mode in ("double", ("scale", 3.0), "other"):
        compiled = to_static(f)
        x = paddle.to_tensor(V)
        with pytest.raises(TypeError, match=r"bool\(\): expected a tensor with values"):
            compiled(x, mode)               # a return that may or may not leave a `try`
    def g(x, mode):
        match mode:
            case ("scale", k) if k > 1.0:
                y = x * k
            case _:
                y = x
        with paddle.amp.auto_cast(enable=False):
            if (z := y.sum()) > 3.0:
                return y + z
            return y - z
    agree(g, (V, ("scale", 3.0)), (V, "other"), ([-1.0], "other"))


def test_global_variables():
    global COUNT
    COUNT = 0.0

    def f(x):
        global COUNT
        COUNT = 1.0
        if x > 0.0:
            COUNT = x * 2.0
        result = COUNT + x
        COUNT = 0.0
        return result
    agree(f, (1.0,), (-1.0,))
    assert COUNT == 0.0


def ranges(x, n):
    for i in range(n):
        x = x + i
    for i in range(1, n):
        x = x + i
    for _ in range(n, 0, -1):
        x = x * 1.5
    for i in range(0, n, 2):
        x = x + i * 10
    for j, i in enumerate(range(2, n)):
        x = x + j * i
    x = x + len(range(n))
    for i in range(n):
        if i > 1:
            break
    else:
        x = x - 100.0
    return x


@pytest.mark.parametrize("n", [-2, 0, 1, 2, 3, 5])
def test_ranges_that_may_be_empty(n):
    x = paddle.to_tensor([1.0])
    assert to_static(ranges)(x, paddle.to_tensor(n)).tolist() == ranges(x, n).tolist()


def test_a_loop_over_a_range_is_written_as_a_reader_would():
    def f(x, n):
        s = x
        for i in range(n):
            s = s + x * i
            if s.sum() > 100.0:
                break
        return s
    compiled = to_static(f)
    assert compiled(paddle.ones([2]), paddle.to_tensor(3)).tolist() == [4.0, 4.0]
    ops = list(compiled.concrete_program.main_program.walk())
    outside = [op.name() for op in ops if op.parent is ops[0].parent]
    assert outside == ["pd_op.data", "pd_op.data", "pd_op.full", "pd_op.less_than", "pd_op.full", "pd_op.while",
                       "builtin.shadow_output"]
    loop = next(op for op in ops if op.name() == "pd_op.while")
    assert loop.num_results() == 3                              # s, did_break, and the count
    names = [op.name() for op in ops]
    assert names.count("pd_op.if") == 1 and names.count("pd_op.logical_and") == 1
