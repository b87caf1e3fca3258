"""Dead code elimination: nothing that matters goes, everything else does."""

import numpy as np
from hypothesis import given, settings

from minipd.executor import Executor, Scope
from minipd.framework.meta import Meta
from minipd.ir.dce import remove_dead_ops
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.ops.creation import full
from minipd.static.effects import Print
from minipd.static.nn import cond, while_loop
from tests.ir.random_programs import programs

F32 = np.dtype(np.float32)


@given(programs(symbolic=False))
@settings(max_examples=50)
@np.errstate(all="ignore")
def test_the_meaning_stays(program):
    def run(p):
        rng = np.random.default_rng(0)
        feed = {op.attrs()["name"]: rng.standard_normal(op.result(0).shape).astype(op.result(0).dtype)
                for op in program.walk() if op.name() == "pd_op.data"}
        scope = Scope({n: rng.standard_normal(v.shape).astype(v.dtype) for n, v in program.parameters().items()})
        Executor(p).run(feed, scope)
        return scope

    before, copy = run(program), program.clone()
    gone = remove_dead_ops(copy)
    assert copy.num_ops() == program.num_ops() - gone
    assert remove_dead_ops(verify(copy)) == 0
    after = run(copy)
    assert before.keys() == after.keys()
    for name in before:
        np.testing.assert_array_equal(before[name], after[name])


def test_chains_go_and_inputs_stay():
    traced = trace(lambda x, y: (x * 2.0, (x.exp() + y).sum())[0], Meta((2,), F32), Meta((2,), F32))
    assert remove_dead_ops(traced.program) == 4
    assert [op.name() for op in traced.program.walk()] == [
        "pd_op.data", "pd_op.data", "pd_op.full", "pd_op.multiply", "builtin.shadow_output"]


def test_in_branches_too():
    def f(x):
        h = x.exp()

        def branch():
            (h * h).tanh()
            return x
        return cond(x.sum() > 0.0, branch, lambda: -x)
    traced = trace(f, Meta((2,), F32))
    assert remove_dead_ops(traced.program) == 3
    assert not {"pd_op.exp", "pd_op.multiply", "pd_op.tanh"} & {op.name() for op in traced.program.walk()}


def test_results_of_branches_and_loops_that_nobody_reads():
    def f(x, n):
        unread, y = cond(x.sum() > 0.0, lambda: (x.exp(), x * 2.0), lambda: (x.tanh(), x))
        i, z, _, kept = while_loop(lambda i, *_: i < n, lambda i, z, t, kept: (i + 1, z * y, t, kept + z),
                                   [full([], 0, "int64"), y, x.sin(), x])
        return z
    traced = trace(f, Meta((2,), F32), Meta((), np.dtype(np.int64)))
    inputs = {"input_0": np.array([1.5, -0.5], np.float32), "input_1": np.array(3)}

    def run():
        return Executor(traced.program).run(inputs)["output_0"]
    before = run()
    remove_dead_ops(traced.program)
    np.testing.assert_array_equal(run(), before)
    ops = {op.name(): op for op in verify(traced.program).walk()}
    assert ops["pd_op.if"].num_results() == 1
    assert len(ops["pd_op.if"].attributes["stop_gradient"].items) == 1
    # the sum that only feeds itself stays: to see that nobody needs it takes more than its users
    assert ops["pd_op.while"].num_results() == 3 and ops["pd_op.while"].num_operands() == 4
    assert not {"pd_op.exp", "pd_op.tanh", "pd_op.sin"} & ops.keys()
    assert remove_dead_ops(traced.program) == 0


def test_an_effect_in_a_branch_without_results_stays():
    def f(x):
        cond(x.sum() > 0.0, lambda: (Print(x), x.exp()), lambda: (x, x))
        return x
    traced = trace(f, Meta((2,), F32))
    remove_dead_ops(traced.program)
    names = [op.name() for op in verify(traced.program).walk()]
    assert "pd_op.if" in names and "pd_op.print" in names and "pd_op.exp" not in names
