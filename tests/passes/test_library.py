"""The passes of the library: the program means the same, and is smaller where it should be."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

import minipd as paddle
from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir import Program
from minipd.ir.builder import Builder
from minipd.ir.traced import trace
from minipd.passes import PassManager, create_pass
from minipd.static.nn import cond
from tests.ir.random_programs import programs
from tests.passes.meaning import names, observed, run, same

F32, F64 = np.dtype("float32"), np.dtype("float64")
CSE, FOLD, DCE, CLEAN = ("common_subexpression_elimination_pass", "constant_folding_pass", "dead_code_elimination_pass",
                         "identity_op_clean_pass")


def applied(name, program, **attrs):
    return same(program, create_pass(name, attrs).run)


def traced(f, *shapes, dtype=F32):
    return trace(f, *(Meta(s, dtype) for s in shapes)).program


# ------------------------------------------------------------------------------------------------ all of them
@given(programs(symbolic=False, max_ops=20).map(observed))
@settings(max_examples=40)
def test_all_passes_together_keep_it_and_then_find_nothing_more(program):
    manager = PassManager(debug=True)
    for name in (FOLD, CSE, CLEAN, DCE):
        manager.add_pass(name)
    changed, _ = same(program, manager.run)
    while manager.run(changed):         # what one pass leaves, an earlier one may find
        pass
    assert all(r.changes == 0 and r.ops_before == r.ops_after for r in manager.statistics)


def test_rules_of_the_library_are_read_when_they_are_used_and_all_of_them_are_rules():
    """In a process of its own: others may have been used here."""
    code = ("import minipd\n"
            "from minipd.passes.pattern import RULES\n"
            "rules = [rule for each in RULES.values() for rule in each]\n"
            "print(sum('sources' in vars(rule) for rule in rules))\n"
            "for rule in rules:\n"
            "    rule.read()\n"
            "print(len(rules) > 100, all(rule.roots for rule in rules))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["0", "True", "True"], done.stderr


# ------------------------------------------------------------------------------------------------ CSE
def test_equal_operations_become_one_and_operands_commute():
    program, gone = applied(CSE, traced(lambda x, y: (x * y + y * x, x - y, y - x, x.sum(0), x.sum([0])),
                                        (2, 3), (2, 3)))
    assert names(program) == ["multiply", "add", "subtract", "subtract", "sum"]
    assert gone == 3                    # a product, a sum, and the axis of the sum


def test_attributes_and_types_tell_operations_apart():
    program, gone = applied(CSE, traced(lambda x: (x.sum(0), x.sum(1), x.sum(0, keepdim=True), x * 2.0, x * 0.0,
                                                   x * -0.0), (2, 2)))
    assert gone == 1                    # the axis of the third sum, and that is all: 0.0 is not -0.0
    assert names(program) == ["sum", "sum", "sum", "multiply", "multiply", "multiply"]


def test_b13_two_dropouts_are_two_masks():
    """Oneflow #9941, Paddle #7796: two draws are two masks, also if nothing tells the operations apart."""
    program = Program()
    build = Builder(program.global_block())
    x, key = build.data("x", (64,), "float32"), build.data("key", (2,), "int64")
    d1, d2 = (build.call(ROWS["dropout"], (x, key), {"p": 0.5, "mode": "upscale_in_train"})[0] for _ in range(2))
    build.output("a", d1), build.output("b", d2)
    changed, gone = applied(CSE, program)
    assert gone == 0 and names(changed) == ["dropout", "dropout"]

    def net(x):
        return paddle.nn.functional.dropout(x, 0.5), paddle.nn.functional.dropout(x, 0.5)
    found = trace(net, Meta((64,), F32))
    changed, gone = applied(CSE, found.program)
    keys = {name: np.array([i, 7]) for i, name in enumerate(found.draws)}
    assert gone == 0 and len(keys) == 2
    before, after = (run(p, bound=keys)[0] for p in (found.program, changed))
    assert (before["output_0"] != before["output_1"]).any()
    for name in before:
        np.testing.assert_array_equal(before[name], after[name])


def test_what_stops_a_gradient_is_not_what_lets_it_through():
    def f(x):
        with paddle.no_grad():
            stopped = x.exp()
        return x.exp() * stopped
    spec = paddle.static.InputSpec((2,), "float32", stop_gradient=False)
    changed, gone = applied(CSE, trace(f, spec).program)
    assert gone == 0 and names(changed).count("exp") == 2


def test_a_branch_uses_what_is_outside_but_not_the_other_way_round():
    def f(x):
        outside = x.exp()
        inside = cond(x.sum() > 0.0, lambda: x.exp() + x.tanh(), lambda: x.tanh())
        return outside + inside, x.tanh()
    changed, gone = applied(CSE, traced(f, (3,)))
    assert gone == 1 and names(changed).count("exp") == 1 and names(changed).count("tanh") == 3


def test_collectives_stay():
    import minipd.dist.rows  # noqa: F401
    program = Program()
    build = Builder(program.global_block())
    x = build.data("x", (2,), "float32")
    for i in range(2):
        build.output(f"y{i}", build.call(ROWS["all_reduce"], (x,), {"group": (0, 1), "op": "sum"})[0])
    assert create_pass(CSE).run(program) == 0


# ------------------------------------------------------------------------------------------------ folding
def test_folds_to_what_the_kernel_computes_to_the_bit():
    def f(x):
        a = paddle.full([3], 0.1) * 0.3 + 1.0
        return x + (a / 3.0).cast("float64").exp().cast("float32"), x * a.sum()
    changed, folded = applied(FOLD, traced(f, (3,)))
    assert folded == 7 and names(changed) == ["add", "multiply"]


@pytest.mark.parametrize("dtype", sorted(dtypes.FLOATS, key=str), ids=str)
@pytest.mark.parametrize("value", [0.1, -0.0, float("nan"), float("inf"), 1e-30])
def test_folded_values_are_bitwise(dtype, value):
    program = Program()
    build = Builder(program.global_block())
    y = build.full((2,), value, dtype)
    for name in ("square", "abs", "tanh"):
        y, = build.call(ROWS[name], (y,), {})
    build.output("y", y)
    (before, _), changed = run(program), program.clone()
    assert create_pass(FOLD).run(changed) == 3
    after, _ = run(changed)
    assert names(changed) == [] and before["y"].tobytes() == after["y"].tobytes()


def test_shapes_are_constants_though_values_are_not():
    changed, folded = applied(FOLD, traced(lambda x: x + paddle.full_like(x, 2.0), (2, 3)))
    assert folded == 1 and names(changed) == ["add"]


def test_not_folded_random_large_uneven_and_what_gradients_flow_through():
    def f(x):
        return x + paddle.arange(3, dtype="float32"), x + paddle.rand([3])
    assert applied(FOLD, traced(lambda x: x + paddle.full([3], 2.0).exp(), (3,)), max_elements=2)[1] == 0
    found = trace(f, Meta((3,), F32))
    assert create_pass(FOLD).run(found.program) == 0

    program = Program()
    build = Builder(program.global_block())
    w = build.full((2,), 3.0, "float32")
    w.stop_gradient = False             # somebody may ask for its gradient
    y, = build.call(ROWS["exp"], (w,), {})
    build.output("y", y)
    assert create_pass(FOLD).run(program) == 0


def test_lists_of_int64_are_constants_too():
    program = Program()
    build = Builder(program.global_block())
    y, = build.call(ROWS["add"], (build.constant((1, 2)), build.constant((10, 20))), {})
    build.output("y", y)
    changed, folded = applied(FOLD, program)
    assert folded == 1 and run(changed)[0]["y"].tolist() == [11, 22]


# ------------------------------------------------------------------------------------------------ identities
def test_identities_are_removed():
    def f(x):
        return x.reshape([2, 3]).transpose([0, 1]).cast("float32").scale(1.0) + paddle.concat([x], 0)
    changed, gone = applied(CLEAN, traced(f, (2, 3)))
    assert names(changed) == ["add"] and gone >= 3


def test_what_moves_or_stops_something_is_no_identity():
    spec = paddle.static.InputSpec((2, 2), "float32", stop_gradient=False)
    program = trace(lambda x: (x.transpose([1, 0]) * x.detach() + x.scale(1.0, 2.0)), spec).program
    changed, gone = applied(CLEAN, program)
    assert gone == 0 and changed == program


# ------------------------------------------------------------------------------------------------ the table
def test_an_unknown_pass_is_refused_with_its_neighbours():
    with pytest.raises(KeyError, match="did you mean dead_code_elimination_pass"):
        create_pass("dead_code_elimination")
