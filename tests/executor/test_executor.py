"""The executor: results, state, lifetime of values, and what errors say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipd.executor import Executor, Memory, Scope
from minipd.framework.dim import symbol
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir import DenseTensorType, Program
from minipd.ir.builder import Builder
from minipd.ir.interpret import interpret
from minipd.ir.traced import trace
from minipd.ops.broadcast import expand_as
from minipd.ops.elementary import tanh
from tests.ir.random_programs import programs

F32 = np.dtype(np.float32)


@pytest.fixture
def program():
    return Program()


@pytest.fixture
def build(program):
    return Builder(program.global_block())


def array(*values):
    return np.array(values, np.float32)


# ------------------------------------------------------------------------------------------------ the meaning
@given(programs(symbolic=False, max_ops=15), st.data())
@settings(max_examples=80)
@np.errstate(all="ignore")
def test_random_programs_mean_what_the_interpreter_says(program, data):
    """Some of the values become state, and have memory of their own; the others lie in the arena."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    build = Builder(program.global_block())
    tensors = [v for op in program.global_block().ops for v in op.results() if isinstance(v.type(), DenseTensorType)]
    stored = range(len(tensors)) if data.draw(st.booleans()) else data.draw(st.sets(st.integers(0, len(tensors) - 1)))
    for i in stored:
        build.set_parameter(f"result {i}", tensors[i])

    def filled(value):
        return (rng.standard_normal(value.shape) * 3).astype(value.dtype)
    feed = {op.attrs()["name"]: filled(op.result(0)) for op in program.walk() if op.name() == "pd_op.data"}
    scope = Scope({name: filled(v) for name, v in program.parameters().items()})
    first = dict(scope)
    _, expected = interpret(program, feed, first)
    executor = Executor(program)
    for _ in range(2):                  # the second time, the arena holds what the first has left there
        scope, memory = Scope(first), Memory()
        executor.run(feed, scope, memory)
        for name, want in expected.items():
            assert scope[name].dtype == want.dtype
            np.testing.assert_array_equal(scope[name].astype(np.float64), want.astype(np.float64), err_msg=name)
        assert memory.peak >= memory.live >= 0


# ----------------------------------------------------------------------------------------------------- inputs
def test_inputs_are_checked(program, build):
    build.output("y", build.data("x", (symbol("S0"), 2), "float32"))
    executor = Executor(program)
    with pytest.raises(ValueError, match="feed: expected the inputs x; missing x; unknown z"):
        executor.run({"z": array(1)})
    with pytest.raises(ValueError, match=r"input 'x': expected result 0 of pd_op.data: tensor<S0x2xf32>|f32\[S0, 2\]"):
        executor.run({"x": np.zeros((3, 2))})
    with pytest.raises(ValueError, match=r"input 'x': expected 2 for dimension 1 of \[S0, 2\], got shape \[3, 3\]"):
        executor.run({"x": np.zeros((3, 3), np.float32)})


def test_symbolic_attributes_are_bound_by_the_run():
    n = symbol("N")
    traced = trace(lambda x, y: (x.reshape([-1, 2]).sum(axis=1), y), Meta((n, 4), F32), Meta((n,), F32))
    executor = Executor(traced.program)
    for n in (1, 3):
        feed = {"input_0": np.ones((n, 4), np.float32), "input_1": np.ones(n, np.float32)}
        assert executor.run(feed)["output_0"].tolist() == [2.0] * (2 * n)
    with pytest.raises(ValueError, match="input 'input_1': expected N = 3 for dimension 0"):
        executor.run({"input_0": np.ones((3, 4), np.float32), "input_1": np.ones(2, np.float32)})


# ------------------------------------------------------------------------------------------------------ state
def test_state_is_read_and_written(program, build):
    w, x = build.parameter("w", (2,), "float32"), build.data("x", (2,), "float32")
    new, = build.call(ROWS["add"], (w, x), {})
    build.set_parameter("w", new)
    build.output("old", w)
    scope, executor = Scope(w=array(1, 2)), Executor(program)
    assert executor.run({"x": array(10, 20)}, scope)["old"].tolist() == [1, 2]
    assert executor.run({"x": array(10, 20)}, scope)["old"].tolist() == [11, 22]
    assert scope["w"].tolist() == [21, 42]
    assert executor.runs == 2 and executor.instructions == 2 * 5


def test_state_must_be_there_and_fit(program, build):
    build.output("y", build.parameter("w", (2,), "float32"))
    executor = Executor(program)
    with pytest.raises(KeyError, match="state 'w': expected it in the scope, which has v"):
        executor.run({}, Scope(v=array(1)))
    with pytest.raises(ValueError, match=r"state 'w': expected .*, got f32\[3\]"):
        executor.run({}, Scope(w=array(1, 2, 3)))


def test_a_run_that_fails_changes_nothing(program, build):
    w = build.parameter("w", (2,), "float32")
    new, = build.call(ROWS["tanh"], (w,), {})
    build.set_parameter("w", new)
    n = build.data("n", (symbol("S0"),), "float32")
    y, = build.call(ROWS["reshape"], (n,), {"shape": (1, symbol("S0"))})
    y.get_defining_op().operand_source(1).get_defining_op().set_attr("value", (2, 3))
    build.output("y", y)
    scope = Scope(w=array(1, 2))
    with pytest.raises(ValueError):
        Executor(program).run({"n": array(1)}, scope)
    assert scope["w"].tolist() == [1, 2]


def test_state_and_outputs_have_memory_of_their_own(program, build):
    """Later in-place writes to one must not be seen by another."""
    x, w = build.data("x", (2, 2), "float32"), build.parameter("w", (2, 2), "float32")
    flat, = build.call(ROWS["reshape"], (x,), {"shape": (4,)})
    build.set_parameter("a", flat)
    build.set_parameter("b", flat)
    build.set_parameter("c", w)
    build.output("flat", flat)
    build.output("w", w)
    feed, scope = {"x": np.zeros((2, 2), np.float32)}, Scope(w=np.zeros((2, 2), np.float32))
    out = Executor(program).run(feed, scope)
    arrays = [*feed.values(), *scope.values(), *out.values()]
    assert len(arrays) == 7
    for i, a in enumerate(arrays):
        a += i
    assert [a.ravel()[0] for a in arrays] == list(range(7))


# ---------------------------------------------------------------------------------------------------- lifetime
def peak(f, *arrays):
    traced = trace(f, *(Meta(a.shape, a.dtype) for a in arrays))
    memory = Memory()
    Executor(traced.program).run(dict(zip(traced.inputs, arrays, strict=True)), None, memory)
    return memory.peak


KB = np.zeros(1024 // 4, np.float32)
ALIGNED = 64        # the arena's own bytes: what is needed to align it


def test_what_is_dead_is_freed():
    def chain(n):
        def f(x):
            for _ in range(n):
                x = tanh(x)
            return x
        return f
    # one for all that are written over one another, one for the result
    assert peak(chain(3), KB) == peak(chain(50), KB) == 2 * KB.nbytes + ALIGNED


def test_what_is_alive_is_held():
    def f(x):
        ys = [tanh(x) for _ in range(5)]
        total = ys[0]
        for y in ys[1:]:
            total = total + y
        return total
    assert peak(f, KB) == 6 * KB.nbytes + ALIGNED      # five, and the result


def test_views_share_their_buffer():
    assert peak(lambda x: tanh(x).reshape([2, -1])[0], KB) == KB.nbytes         # the arena is empty


def test_a_shape_alone_keeps_nothing_alive():
    """A shape-only operand is replaced by a stand-in of one element (decision 5)."""
    big = np.zeros(4096, np.float32)

    def f(x):
        h = tanh(x)
        s = tanh(h).sum()                # h is read for the last time
        for _ in range(3):
            s = tanh(s)
        a, b = tanh(x), tanh(x)
        return expand_as(s, h) + a * b
    assert peak(f, big) <= 4 * big.nbytes


def test_the_last_use_inside_a_branch():
    from minipd.static.nn import cond

    def f(x):
        h = tanh(x)
        y = cond(x.sum() > -1.0, lambda: tanh(tanh(h)), lambda: h)
        return tanh(tanh(y))
    # h, which y may be; the two of the branch in one; what follows y, and the result
    assert 4 * KB.nbytes <= peak(f, KB) <= 4 * KB.nbytes + ALIGNED + 64     # the condition and its sum


# ------------------------------------------------------------------------------------------------------ errors
def test_errors_name_the_operation_and_its_operands():
    def f(x):
        return x.reshape([2, -1]).matmul(x.reshape([-1, 2]))
    traced = trace(f, Meta((4,), F32))
    matmul = next(op for op in traced.program.walk() if op.name() == "pd_op.matmul")
    matmul.operand(1).set_source(matmul.operand_source(0))
    reshape = matmul.operand_source(0).get_defining_op()
    reshape.operand_source(1).get_defining_op().set_attr("value", (4, 1))
    with pytest.raises(ValueError) as caught:
        Executor(traced.program).run({"input_0": array(1, 2, 3, 4)})
    note, = caught.value.__notes__
    assert note.startswith(f"pd_op.matmul (from {__file__}:") and "while running this operation" in note
    assert "its operands: result 0 of pd_op.reshape: tensor<2x2xf32>; result 0 of pd_op.reshape" in note



def test_unknown_operations_fail_when_they_are_to_run(program, build):
    x = build.data("x", (2,), "float32")
    build.output("y", build.build("pd_op.frobnicate", [x], {}, [x.type()]).result(0))
    executor = Executor(program)
    assert '"pd_op.frobnicate"' in str(executor.kernel_program)
    with pytest.raises(NotImplementedError, match=r"got pd_op\.frobnicate, which none does"):
        executor.run({"x": array(1, 2)})


def test_programs_in_paddles_form_are_refused(program):
    program.form = "paddle"
    with pytest.raises(ValueError, match="expected a program in minipd's form, got one in Paddle's; convert it"):
        Executor(program)


def test_fetch(program, build):
    x = build.data("x", (2,), "float32")
    build.build("pd_op.fetch", [x], {"name": "out", "col": 0}, [x.type()])
    assert Executor(program).run({"x": array(1, 2)})["out"].tolist() == [1, 2]
