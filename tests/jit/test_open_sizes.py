"""Compiled functions that ask about open sizes: the right answer at every size, and no more programs than answers."""

import random
import sys

import numpy as np
import pytest

import minipd as paddle
from minipd.executor import Executor
from minipd.framework.constraints import Contradiction, UnknownSize
from minipd.ir.parser import parse
from minipd.ir.traced import trace
from minipd.ir.types import DenseTensorType
from minipd.nn import functional as F
from minipd.static import InputSpec

SIZES = (0, 1, 2, 5, 7, 16)


def size_is_one(x):
    if x.shape[0] == 1:
        return x * 10
    return x + 1


def size_is_not_one(x):
    return x * 10 if x.shape[0] != 1 else x + 1


def shape_is_a_list(x):
    return x * 10 if x.shape == [1, 3] else x + 1


def shape_is_a_tuple(x):
    return x * 10 if (1, 3) == tuple(x.shape) else x + 1


def size_is_among(x):
    return x * 10 if x.shape[0] in (1, 5) else x + 1


def size_is_not_among(x):
    return x * 10 if x.shape[0] not in [1, 5] else x + 1


def size_is_a_key(x):
    return x * {1: 2.0, 5: 3.0}.get(x.shape[0], 7.0)


def size_is_in_a_set(x):
    return x * 10 if x.shape[0] in {1, 5} else x + 1


def shape_is_matched(x):
    match list(x.shape):
        case [1, n]:
            return x * n
        case [n, 3]:
            return x + n
    return x


def size_is_large(x):
    if x.shape[0] > 4:
        return x * 10
    return x + 1


def size_is_between(x):
    return x * 10 if 2 <= x.shape[0] < 7 else x + 1


def size_is_true(x):
    return x.mean() if x.shape[0] else x.sum()


def size_is_not_true(x):
    return x.sum() if not x.shape[0] else x.mean()


def size_and_more(x):
    return x * 10 if x.shape[0] and x.shape[1] == 3 and len(x.shape) == 2 else x + 1


def size_divides(x):
    return x * 10 if x.shape[0] % 4 == 0 else x + 1


def size_is_odd(x):
    return x * 10 if x.shape[0] % 2 else x + 1


def rest_is_a_size(x):
    return x[: x.shape[0] - x.shape[0] % 4] * 2


def half_is_one(x):
    return x * 10 if x.shape[0] // 2 == 1 else x + 1


def number_of_elements(x):
    return x * 10 if x.shape[0] * x.shape[1] == 15 else x + 1


def value_of_the_size(x):
    return x * float(int(x.shape[0]))


def largest_size(x):
    return x * max(x.shape)


def sizes_in_order(x):
    return x * sorted(x.shape)[0]


def count_of_ones(x):
    return x + x.shape.count(1)


def an_assertion(x):
    assert x.shape[0] >= 0 and x.shape[1] == 3
    return x + 1


def asked_twice(x):
    y = x * 10 if x.shape[0] > 4 else x
    return y + 1 if x.shape[0] > 2 else y


def loop_over_rows(x):
    total = paddle.zeros([3])
    for i in range(x.shape[0]):
        total = total + x[i] * (i + 1)
    return total


def loop_in_python(x):
    return x + sum([i * i for i in [*range(3)]][: int(x.shape[0])])


def chunks_of_four(x):
    n = x.shape[0]
    if n > 4 and n % 2 == 1:
        return paddle.concat([x[:4] * 2, x[4:]])
    return x


def beside_eight_rows(x):
    return x + paddle.ones([1 if x.shape[0] == 0 else 5, 3]) if x.shape[0] in (0, 1, 5) else x


#: function -> how many programs serve SIZES, and how many of them it takes to serve all sizes
FUNCTIONS = {
    size_is_one: 2, size_is_not_one: 2, shape_is_a_list: 2, shape_is_a_tuple: 2, size_is_among: 3,
    size_is_not_among: 3, size_is_a_key: 6, size_is_in_a_set: 6, shape_is_matched: 2, size_is_large: 2,
    size_is_true: 2, size_is_not_true: 2, size_and_more: 2, size_divides: 2, size_is_odd: 2,
    rest_is_a_size: 1, half_is_one: 2, number_of_elements: 2, value_of_the_size: 6, an_assertion: 1, asked_twice: 2,
    loop_over_rows: 1, loop_in_python: 6, beside_eight_rows: 4, count_of_ones: 2,
}
#: those of which the number of programs depends on the order of calls, with the most
VARYING = {size_is_between: 4, largest_size: 6, sizes_in_order: 6, chunks_of_four: 3}


def rows(n):
    return paddle.to_tensor(np.random.default_rng(n).uniform(-1, 1, (n, 3)).astype(np.float32))


def at_every_size(function, seed=0, rounds=3, sizes=SIZES):
    compiled = paddle.jit.to_static(function, input_spec=[InputSpec([None, 3], "float32")])
    order = [n for _ in range(rounds) for n in random.Random(f"{seed} {function.__name__}").sample(sizes, len(sizes))]
    for n in order:
        x = rows(n)
        got, want = compiled(x), function(x)
        assert got.shape == want.shape
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6, atol=1e-6)
    return compiled


@pytest.mark.filterwarnings("ignore:Mean of empty|invalid value|divide by zero:RuntimeWarning")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_right_branch_at_every_size(function, seed):
    compiled = at_every_size(function, seed)
    assert len(compiled.traces) == FUNCTIONS[function], compiled.traces


@pytest.mark.parametrize("function", VARYING, ids=lambda f: f.__name__)
def test_programs_never_answer_twice_alike(function):
    for seed in range(3):
        compiled = at_every_size(function, seed)
        assert 2 <= len(compiled.traces) <= VARYING[function], compiled.traces


@pytest.mark.parametrize("backend", [None, "CINN"])
def test_gradients_follow_the_branch_of_the_call(backend):
    scale = paddle.to_tensor(np.float32([1, 2, 3]), stop_gradient=False)

    def loss(x):
        y = x * scale if x.shape[0] > 4 else x * x * scale
        return y.sum() / (x.shape[0] + 1)
    compiled = paddle.jit.to_static(loss, input_spec=[InputSpec([None, 3], "float32", stop_gradient=False)],
                                    backend=backend)
    for n in (7, 2, 16, 0, 5, 1, 2):
        found = []
        for function in (compiled, loss):
            x = rows(n)
            x.stop_gradient = False
            scale.clear_gradient()
            function(x).backward()
            found.append((x.grad.numpy(), scale.grad.numpy()))
        for got, want in zip(*found, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    assert len(compiled.traces) == 2


def test_two_open_sizes():
    def f(x, y):
        if x.shape[0] == y.shape[0]:
            return x + y
        if x.shape[0] < y.shape[0]:
            return paddle.concat([x, y])
        return x * 2
    compiled = paddle.jit.to_static(f, input_spec=[InputSpec([None, 3], "float32"), InputSpec([None, 3], "float32")])
    pairs = [(a, b) for a in SIZES for b in SIZES]
    random.Random(0).shuffle(pairs)
    for a, b in pairs:
        np.testing.assert_array_equal(compiled(rows(a), rows(b)).numpy(), f(rows(a), rows(b)).numpy())
    assert len(compiled.traces) == 3


def test_a_layer_and_its_helpers_ask():
    class Net(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.linear = paddle.nn.Linear(3, 2)

        def forward(self, x):
            return self.linear(helper(x)) if len(x.shape) == 2 else x

    def helper(x):
        return x.mean(0, keepdim=True) if x.shape[0] >= 5 else x
    net = Net()
    want = {n: net(rows(n)).numpy() for n in SIZES[1:]}
    compiled = paddle.jit.to_static(net, input_spec=[InputSpec([None, 3], "float32")])
    for n in (7, 1, 16, 2, 5):
        np.testing.assert_allclose(compiled(rows(n)).numpy(), want[n], rtol=1e-5, atol=1e-6)
    assert compiled.forward.get_traced_count() == 2


def test_a_rule_that_assumes_more_than_the_call_fulfils():
    def f(x):
        return x + paddle.ones([8, 3])
    compiled = paddle.jit.to_static(f, input_spec=[InputSpec([None, 3], "float32")])
    for n in (8, 1, 8, 1):
        np.testing.assert_array_equal(compiled(rows(n)).numpy(), f(rows(n)).numpy())
    assert compiled.traces == ["the first call", "S0 == 8 does not hold for S0=1"]
    for function in (f, compiled):
        with pytest.raises(ValueError) as raised:
            function(rows(5))
        assert "Trace again" not in str(raised.value)


def test_a_rule_that_must_know():
    def f(x):
        return x.reshape([-1, x.shape[0] * x.shape[1]]).split(x.shape[0] and 1)[0]
    compiled = at_every_size(f, sizes=(1, 2, 5, 7, 16))
    assert len(compiled.traces) == 1


@pytest.mark.parametrize("function", [
    lambda x: paddle.unbind(x, 0)[-1], lambda x: paddle.tensor_split(x, 2)[0], lambda x: paddle.add_n(list(x)),
    lambda x: paddle.fft.rfft(x, axis=0), lambda x: paddle.fft.fft(x, n=4, axis=0),
    lambda x: x.unstack()[0], lambda x: paddle.split(x, [1, x.shape[0] - 1])[1], lambda x: x[-2:], lambda x: x[1:],
    lambda x: x[:4] * 2, lambda x: paddle.split(x, [2, 3])[0] if x.shape[0] == 5 else x])
def test_what_needs_the_size_gets_a_program_for_it(function):
    compiled = paddle.jit.to_static(function, input_spec=[InputSpec([None, 3], "float32")])
    for n in (5, 2, 1, 5, 2):
        np.testing.assert_allclose(compiled(rows(n)).numpy(), function(rows(n)).numpy(), rtol=1e-5, atol=1e-6)
    assert len(compiled.traces) <= 3


def test_an_error_is_the_one_of_eager_mode():
    def f(x):
        return paddle.split(x, 2)[0] @ x
    compiled = paddle.jit.to_static(f, input_spec=[InputSpec([None, 3], "float32")])
    for n in (5, 6):
        with pytest.raises(ValueError) as eager:
            f(rows(n))
        with pytest.raises(ValueError) as raised:
            compiled(rows(n))
        assert str(raised.value).splitlines()[0] == str(eager.value).splitlines()[0]


def test_explain_and_the_warning_count_them():
    compiled = paddle.jit.to_static(size_is_large, input_spec=[InputSpec([None, 3], "float32")])
    compiled(rows(7))
    report = paddle.jit.explain(compiled, rows(2))
    assert report.traces == ("the first call", "S0 >= 5 does not hold for S0=2") and report.cached == 2
    assert "4 >= S0" in report.guards
    compiled = paddle.jit.to_static(value_of_the_size, input_spec=[InputSpec([None, 3], "float32")])
    with pytest.warns(RuntimeWarning, match="keeps 8 programs for one signature and was traced 8 times, lately because "
                                            "of: the first call; S0 == 1 does not hold for S0=2"):
        for n in range(1, 10):
            compiled(rows(n))


def test_a_signature_whose_program_came_before_any_call():
    compiled = paddle.jit.to_static(size_is_one, input_spec=[InputSpec([None, 3], "float32")])
    assert [c.relation for c in compiled.concrete_program.main_program.constraints] == ["S0 != 1"]
    for n in (1, 5, 1):
        np.testing.assert_array_equal(compiled(rows(n)).numpy(), size_is_one(rows(n)).numpy())
    assert compiled.traces == ["the first call", "S0 != 1 does not hold for S0=1"]
    with pytest.raises(TypeError, match="S0 > 4: expected a size known while tracing"):
        paddle.jit.to_static(size_is_large, input_spec=[InputSpec([None, 3], "float32")]).concrete_program  # noqa: B018


# --------------------------------------------------------------------------------- where no sizes are known
SPEC = InputSpec([None, 3], "float32", "x")


@pytest.mark.parametrize("function, assumed", [
    (size_is_one, "S0 != 1"), (size_is_not_one, "S0 != 1"), (shape_is_a_list, "S0 != 1"), (half_is_one, "S0//2 != 1"),
    (number_of_elements, "3*S0 != 15"), (lambda x: x if x.shape[0] == -1 else x + 1, None),
    (lambda x: x if x.shape[0] == "many" else x + 1, None), (lambda x: x if x.shape[0] == 2.5 else x + 1, None),
    (lambda x: x if x.shape[0] == 2.0 else x + 1, "S0 != 2"), (lambda x: x if x.shape == x.shape else x + 1, None),
])
def test_an_equality_is_false_by_assumption(function, assumed):
    program = trace(function, SPEC).program
    assert [c.relation for c in program.constraints] == ([] if assumed is None else [assumed])
    again = parse(program.to_string("exact"))
    assert again == program and [str(c) for c in again.constraints] == [str(c) for c in program.constraints]
    executor, served = Executor(program), 0
    for n in SIZES:
        if all(c.holds({"S0": n}) for c in program.constraints):
            got, = executor.run({"x": rows(n).numpy()}).values()
            np.testing.assert_allclose(got, function(rows(n)).numpy(), rtol=1e-6)
            served += 1
        else:
            with pytest.raises(ValueError, match="!="):
                executor.run({"x": rows(n).numpy()})
    assert served >= len(SIZES) - 2


def test_an_assumption_is_used():
    def f(x):
        if x.shape[0] == 0:
            return x
        return x + 1 if x.shape[0] > 0 else x
    assert [c.relation for c in trace(f, SPEC).program.constraints] == ["S0 != 0"]

    def contradicts(x):
        return x if x.shape[0] == 8 else x + paddle.ones([8, 3])
    with pytest.raises(Contradiction, match=r"expected S0 == 8, which no sizes fulfil together with S0 != 8"):
        trace(contradicts, SPEC)


@pytest.mark.parametrize("function", [size_is_large, value_of_the_size, size_is_true, size_is_in_a_set, size_is_a_key])
def test_other_questions_raise(function):
    with pytest.raises(UnknownSize, match="expected a size known while tracing, got the symbolic dimension S0"):
        trace(function, SPEC)


def test_static_mode_assumes_too():
    main = paddle.static.Program()
    with paddle.static.program_guard(main):
        x = paddle.static.data("x", [None, 3], "float32")
        y = size_is_one(x)
    executor = paddle.static.Executor()
    got, = executor.run(main, feed={"x": rows(5).numpy()}, fetch_list=[y])
    np.testing.assert_array_equal(got, size_is_one(rows(5)).numpy())
    with pytest.raises(ValueError, match="expected S0 != 1, got 1 and 1"):
        executor.run(main, feed={"x": rows(1).numpy()}, fetch_list=[y])


def test_a_saved_program_tells_what_it_assumed(tmp_path):
    def f(x):
        return x * 10 if x.shape[0] == 1 else x + 1
    paddle.jit.save(paddle.jit.to_static(f, input_spec=[SPEC]), str(tmp_path / "f"))
    loaded = paddle.jit.load(str(tmp_path / "f"))
    np.testing.assert_array_equal(loaded(rows(5)).numpy(), f(rows(5)).numpy())
    with pytest.raises(ValueError, match="expected the condition to be true"):
        loaded(rows(1))


def test_a_saved_program_tells_what_it_took_for_divisible(tmp_path):
    def f(x):
        return x * 10 if x.shape[0] % 3 == 0 else x + 1
    paddle.jit.save(paddle.jit.to_static(f, input_spec=[SPEC]), str(tmp_path / "f"))
    loaded = paddle.jit.load(str(tmp_path / "f"))
    for n in (0, 3, 9):
        np.testing.assert_array_equal(loaded(rows(n)).numpy(), f(rows(n)).numpy())
    for n in (1, 5):
        with pytest.raises(ValueError, match="expected the condition to be true"):
            loaded(rows(n))


def test_the_library_asks_structurally():
    for function in (lambda x: F.softmax(x, 0), lambda x: x.reshape([x.shape[0], 1, 3]).squeeze(1), lambda x: x.T @ x,
                     lambda x: paddle.concat([x, x]), lambda x: F.layer_norm(x, [3]), lambda x: x.tile([2, 1])):
        assert not list(trace(function, SPEC).program.constraints)


@pytest.mark.parametrize("sizes_known", [False, True])
def test_forgetting_a_type_asks_nothing(sizes_known, monkeypatch):
    """A type that nobody uses any more leaves the table of types, wherever Python is then."""
    complaints = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    asked = []

    def f(x):
        DenseTensorType((x.shape[0] * 7 + 3, 3), "float32")
        asked.append(x.shape[0])
        return x + 1.0

    open_rows = InputSpec([None, 2], "float32")
    if sizes_known:
        compiled = paddle.jit.to_static(f, input_spec=[open_rows])
        compiled(paddle.ones([4, 2]))
        program = compiled.main_program
    else:
        program = trace(f, open_rows).program
    assert asked and not complaints and not list(program.constraints)
