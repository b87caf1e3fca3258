"""Tracing: what becomes of every kind of operand, of state, of in-place writes, of what handles know of gradients."""

import numpy as np
import pytest

from minipd.autograd.mode import no_grad
from minipd.executor import Executor, Scope
from minipd.framework.context import using
from minipd.framework.dim import symbol
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.ir.parser import parse
from minipd.ir.schema import op_attrs
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.ops.creation import full, full_like, ones, to_tensor
from minipd.ops.joining import concat, split
from minipd.ops.math import maximum, where
from minipd.ops.random import dropout
from minipd.ops.reshape import reshape

F32 = np.dtype(np.float32)


def spec(*shape, dtype=F32):
    return Meta(shape, dtype)


def names(program):
    return [op.name().removeprefix("pd_op.") for op in program.walk()]


def run(traced, *arrays, scope=None, **more):
    feed = dict(zip(traced.inputs, arrays, strict=True)) | traced.captures | more
    found = Executor(verify(traced.program)).run(feed, scope)
    return traced.structure.rebuild([found[name] for name in traced.outputs])


def array(*values):
    return np.array(values, np.float32)


# ------------------------------------------------------------------------------------------------ operands
def test_scalars_become_typed_fulls():
    traced = trace(lambda x, k: (maximum(x, 0.5), k + 2, where(x > 0.0, x, -1.0)),
                   spec(3), spec(3, dtype=np.dtype(np.int64)))
    fulls = [op for op in traced.program.walk() if op.name() == "pd_op.full" and op.result(0).shape == ()]
    assert [(op.attrs()["value"], op.result(0).dtype.name) for op in fulls] == [
        (0.5, "float32"), (2, "int64"), (0.0, "float32"), (-1.0, "float32")]
    a, b, c = run(traced, array(-1, 0.25, 2), np.array([1, 2, 3]))
    assert a.tolist() == [0.5, 0.5, 2] and b.tolist() == [3, 4, 5] and c.tolist() == [-1, 0.25, 2]


def test_attributes_that_paddle_lets_be_tensors_are_operands():
    traced = trace(lambda x: reshape(x, [-1]).sum(), spec(2, 3))
    total = next(op for op in traced.program.walk() if op.name() == "pd_op.sum")
    assert total.operand_source(1).get_defining_op().name() == "pd_op.full_int_array"
    assert op_attrs(total) == {"axis": (0,), "keepdim": False}


def test_outside_tensors_are_inputs_bound_by_identity():
    """Decision 2: never a constant; a run reads what the tensor holds then, and one tensor is one input."""
    w = ones([2])
    traced = trace(lambda x: x * w + w, spec(2))
    assert list(traced.captures.values()) == [w.payload] and traced.captures["captured_0"] is w.payload
    assert names(traced.program).count("data") == 2
    assert run(traced, array(1, 2)).tolist() == [2, 3]
    w.fill_(10.0)
    assert run(traced, array(1, 2)).tolist() == [20, 30]


def test_variadic_calls_and_several_results():
    def f(x, y):
        a, b = split(concat([x, y], 1), [1, 3], 1)
        return a, b
    traced = trace(f, spec(2, 1), spec(2, 3))
    a, b = run(traced, array([1], [2]), array([3, 4, 5], [6, 7, 8]))
    assert a.tolist() == [[1], [2]] and b.tolist() == [[3, 4, 5], [6, 7, 8]]


def test_a_distributed_tensors_place_is_elsewhere():
    class Odd:
        pass
    with pytest.raises(TypeError, match="expected a tensor or a number in a program, got Odd"):
        trace(lambda x: x + Tensor.__new__(Tensor) if False else _call_with(x, Odd()), spec(2))


def _call_with(x, odd):
    return current().ground.value(odd, [x.payload])


def test_the_users_line_and_the_layer_are_noted():
    def f(x):
        with current().rng.scope("decoder"), current().rng.scope("0"):
            return x.tanh()
    traced = trace(f, spec(2))
    attrs = next(op for op in traced.program.walk() if op.name() == "pd_op.tanh").attrs()
    assert attrs["struct_name"] == "/decoder/0/"
    assert attrs["op_callstack"][0].startswith(__file__) and attrs["op_callstack"][0].endswith(
        str(f.__code__.co_firstlineno + 2))


# ----------------------------------------------------------------------------------------------- symbolic sizes
def test_unknown_sizes_get_symbols():
    traced = trace(lambda x, y: (x + 1.0, y), spec(None, 4), spec(-1, symbol("S0")))
    assert [v.shape for v in traced.input_values] == [(symbol("S1"), 4), (symbol("S2"), symbol("S0"))]


def test_one_program_for_all_sizes():
    traced = trace(lambda x: reshape(x, [-1]).mean(), spec(None, None))
    for shape in ((2, 3), (1, 1), (5, 4)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        assert run(traced, x) == pytest.approx(x.mean())


def test_what_was_assumed_is_in_the_program():
    traced = trace(lambda x: reshape(x, [-1, 4]), spec(None, 6))
    assert [str(c).split("  ")[0] for c in traced.program.constraints] == ["6*S0 % 4 == 0"]
    assert parse(traced.program.to_string("exact")) == traced.program
    assert run(traced, np.zeros((2, 6), np.float32)).shape == (3, 4)
    with pytest.raises(ValueError, match=r"expected 6\*S0 % 4 == 0, got 18 and 4 for S0=3"):
        run(traced, np.zeros((3, 6), np.float32))


# ------------------------------------------------------------------------------------------ state and mutation
def parameter(*values, name="w"):
    p = Parameter(array(*values))
    p.name = name
    return p


def test_state_is_read_once_and_written_at_the_end():
    w, seen, unused = parameter(1, 2), to_tensor(0.0), parameter(5, name="u")

    def step(x):
        y = (x * w + w).sum()
        with no_grad():
            w.set_value(w - 0.5)
            w.set_value(w * 2.0)
            seen.set_value(seen + 1.0)
        return y

    state = {"w": w, "seen": seen, "unused": unused}
    before = w.payload
    traced = trace(step, spec(2), state=state)
    assert w.payload is before and not w.stop_gradient and seen.tolist() == 0.0        # all is put back
    assert names(traced.program).count("builtin.parameter") == 2
    assert [op.attrs()["parameter_name"] for op in traced.program.walk() if op.name() == "builtin.set_parameter"] == [
        "w", "seen"]
    assert list(traced.state) == ["w", "seen"]
    scope = Scope(w=array(1, 2), seen=np.float32(0).reshape(()))
    assert run(traced, array(3, 4), scope=scope) == 14.0
    assert scope["w"].tolist() == [1, 3] and scope["seen"] == 1
    assert run(traced, array(3, 4), scope=scope) == 19.0
    assert scope["w"].tolist() == [1, 5] and scope["seen"] == 2


def test_a_training_step_with_backward_inside():
    w = parameter(1.0, -2.0)

    def step(x):
        loss = ((x * w).tanh() * x).sum()
        loss.backward()
        with no_grad():
            w.set_value(w - 0.1 * w.grad)
        w.clear_gradient()
        return loss

    traced = trace(step, spec(2), state={"w": w})
    assert w.grad is None and w.tolist() == [1, -2]
    scope = Scope(w=w.numpy())
    for _ in range(3):
        got = run(traced, array(0.5, 2), scope=scope)
        expected = step(to_tensor(array(0.5, 2)))
        assert got == expected.numpy()
        np.testing.assert_array_equal(scope["w"], w.numpy())


def test_state_comes_back_when_tracing_fails():
    w = parameter(1, 2)
    before = w.payload

    def f(x):
        (w * x).sum().backward()
        raise RuntimeError("user error")

    with pytest.raises(RuntimeError, match="user error"):
        trace(f, spec(2), state={"w": w})
    assert w.payload is before and w.grad is None and w.node is None
    assert type(current().ground).__name__ == "Kernels"


def test_tied_state_is_one_parameter():
    w = parameter(1, 2)
    traced = trace(lambda x: (x * w).sum(), spec(2), state={"embedding": w, "head": w})
    assert list(traced.state) == ["embedding"]


def test_state_must_keep_its_shape():
    w = parameter(1, 2)

    def f(x):
        w.payload = (x * w).sum().payload
        return x
    with pytest.raises(ValueError, match=r"state w: expected to be written as it was read"):
        trace(f, spec(2), state={"w": w})


def test_a_parameter_may_be_the_result():
    w = parameter(1, 2)
    traced = trace(lambda x: w, spec(2), state={"w": w})
    assert run(traced, array(0, 0), scope=Scope(w=array(7, 8))).tolist() == [7, 8]


def test_writes_rebind_and_views_follow():
    """x[i] = v, writes through views, and views of what was written: as eager mode has them."""
    def f(x):
        y = x * 1.0
        row, flat = y[1], reshape(y, [4])
        y[0] = 5.0                      # base: the views see it
        row[1] = 7.0                    # view: base and sibling see it
        flat[::2] = full([2], -1.0)
        y.add_(1.0)
        return y, row, flat, y.transpose([1, 0])

    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    traced = trace(f, spec(2, 2))
    assert "set_value" in names(traced.program)
    expected = [t.numpy() for t in f(to_tensor(x))]
    assert expected[0].tolist() == [[0, 6], [0, 8]]
    for got, want in zip(run(traced, x), expected, strict=True):
        np.testing.assert_array_equal(got, want)


def test_writing_an_outside_tensor_with_views_is_refused():
    w = ones([2, 2])
    row = w[0]

    def f(x):
        w.set_value(x)
        return row
    with pytest.raises(RuntimeError, match="whose memory other eager tensors share"):
        trace(f, spec(2, 2))


def test_values_of_another_program_are_refused():
    kept = []
    trace(lambda x: kept.append(x * 2.0), spec(2))
    with pytest.raises(ValueError, match="add: expected a value that is seen from here, got result 0 of pd_op.mul"):
        trace(lambda x: x + kept[0], spec(2))
    with pytest.raises(TypeError, match=r"numpy\(\): expected a tensor with values"):
        kept[0].numpy()


# ------------------------------------------------------------------------------------------------------ flags
def flags(program):
    return {op.name().removeprefix("pd_op."): op.result(0).stop_gradient for op in program.walk() if op.num_results()}


def test_flags_of_values_are_those_of_handles():
    w = parameter(1, 2)

    def f(x):
        y = x * w
        z = y.exp()
        with no_grad():
            u = y.tanh()
        v = y.detach().abs()
        return z, u, v, x.sin()

    found = flags(trace(f, spec(2), state={"w": w}).program)
    assert found == {"data": True, "builtin.parameter": False, "multiply": False, "exp": False, "tanh": True,
                     "share_data_": True, "abs": True, "sin": True}


def test_a_value_that_is_stopped_on_one_side_gets_a_second_name():
    w = parameter(1, 2)
    traced = trace(lambda x: (x * w) * (x * w).detach(), spec(2), state={"w": w})
    multiply = traced.program.global_block().ops[-2]
    left, right = multiply.operands_source()
    assert not left.stop_gradient and right.stop_gradient and right.get_defining_op().name() == "pd_op.share_data_"


# ------------------------------------------------------------------------------------------------ random draws
def test_every_run_draws_anew_and_as_eager_does():
    """Hard case B13 (Paddle 7796): two dropouts differ, two runs differ, the same seed gives the same sequence."""
    def f(x):
        with current().rng.scope("block"):
            return dropout(x, 0.5), dropout(x, 0.5)

    rng = current().rng
    rng.seed(3)
    state = rng.get_state()
    traced = trace(f, spec(64))
    assert rng.get_state() == state                                     # tracing draws nothing
    assert list(traced.draws.values()) == ["block", "block"]
    x = np.ones(64, np.float32)

    def static():
        return run(traced, x, **{name: rng.next_key(path) for name, path in traced.draws.items()})

    rng.seed(3)
    got = [static() for _ in range(2)]
    rng.seed(3)
    expected = [[t.numpy() for t in f(to_tensor(x))] for _ in range(2)]
    np.testing.assert_array_equal(got, expected)
    assert len({d.tobytes() for pair in got for d in pair}) == 4


# ---------------------------------------------------------------------------------------------------- results
def test_structure_of_results():
    traced = trace(lambda x: {"a": [x, None], "b": (x * 2.0, 3)}, spec(1))
    assert run(traced, array(4)) == {"a": [array(4), None], "b": (array(8), 3)}


def test_an_argument_must_have_shape_and_dtype():
    with pytest.raises(TypeError, match="expected something with a shape and a dtype for each argument, got 3"):
        trace(lambda x: x, 3)


def test_shape_only_operands():
    from minipd.ops.broadcast import expand_as
    traced = trace(lambda x, y: (expand_as(x, y), full_like(y, 2.0)), spec(1, 3), spec(2, 3))
    a, b = run(traced, array([1, 2, 3]), np.zeros((2, 3), np.float32))
    assert a.tolist() == [[1, 2, 3]] * 2 and b.tolist() == [[2, 2, 2]] * 2


def test_a_detached_tensor_still_shares_its_memory():
    """Writing the one is seen by the other, as in eager mode, though a program has no memory to share."""
    def f(x):
        y = x * 1.0
        d = y.detach()
        y[0] = 5.0
        d[1] = 7.0
        return y, d, d.stop_gradient

    a, b, stop = run(trace(f, spec(3)), array(1, 2, 3))
    assert a.tolist() == b.tolist() == [5, 7, 3] and stop
    assert [t.tolist() for t in f(to_tensor(array(1, 2, 3)))[:2]] == [[5, 7, 3]] * 2


def test_the_context_is_as_it_was():
    """Tracing leaves the interpreters as they were."""
    with using(grad=False) as context:
        ground = context.ground
        trace(lambda x: x, spec(2))
        assert context.ground is ground and not context.grad_enabled
