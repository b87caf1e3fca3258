"""The passes of whole programs: weights folded, what is redundant removed, products moved together."""

import numpy as np
import pytest

import minipd as paddle
from minipd.executor import Executor
from minipd.executor.layout import Layout
from minipd.framework import dtype as dtypes
from minipd.framework.row import ROWS
from minipd.ir import Program
from minipd.ir.builder import Builder
from minipd.ir.verify import verify
from minipd.nn import Layer, Linear
from minipd.passes import create_pass
from minipd.passes.compare import difference, outcome, random_feed, random_state
from minipd.passes.library.remove_redundant_cast import holds
from minipd.passes.show import program_of
from minipd.static.effects import Assert
from minipd.static.nn import cond, while_loop
from tests.passes.meaning import names

F = paddle.nn.functional
FOLD = "constant_folding_pass"


class Net(Layer):
    """A function of parameters and an input."""

    def __init__(self, function, **shapes):
        super().__init__()
        self.function = function
        for name, shape in shapes.items():
            setattr(self, name, self.create_parameter(list(shape)))

    def forward(self, x):
        return self.function(self, x)


def applied(name, program, scoped=False, **options):
    """The program after the pass, checked to compute the same, and (the number of changes, the parameters it has)."""
    changed, state = program.clone(), random_state(program)
    after = dict(state)
    made = create_pass(name, {**options, **({"param_scope": after} if scoped else {})})
    count = made.run(changed)
    verify(changed)
    found = difference(outcome(program, random_feed(program), state), outcome(changed, random_feed(changed), after),
                       0.0 if made.exact else None)
    assert found is None, found
    assert (count == 0) == (changed == program)
    assert made.run(changed) == 0, "a second run finds nothing"
    return changed, count, after


def after(name, function, *specs, **options):
    """The operations after the pass, and the number of its changes."""
    changed, count, _ = applied(name, program_of(function, *specs), **options)
    return names(changed), count


# --------------------------------------------------------------------------------------------- constant folding
def test_what_weights_become_is_a_parameter_and_what_is_no_longer_read_is_none():
    net = Net(lambda s, x: x @ (s.w.t() * 2.0 + 1.0) + (s.b + s.b), w=(5, 7), b=(5,))
    changed, count, state = applied(FOLD, program_of(net, (3, 7)), scoped=True)
    assert names(changed) == ["matmul", "add"] and count == 4
    assert set(state) == set(changed.parameters()) == {"constant_folding@_0", "constant_folding@_1"}
    again = random_state(program_of(net, (3, 7)))
    np.testing.assert_array_equal(np.sort([a.ndim for a in state.values()]), [1, 2])
    matrix, = (a for a in state.values() if a.ndim == 2)
    np.testing.assert_array_equal(matrix, again["w"].T * np.float32(2) + np.float32(1))
    assert matrix.flags.c_contiguous


def test_weights_in_a_list_are_folded_with_it():
    net = Net(lambda s, x: x @ paddle.concat([s.w, s.v], 1), w=(5, 3), v=(5, 2))
    changed, count, state = applied(FOLD, program_of(net, (3, 5)), scoped=True)
    assert names(changed) == ["matmul"] and count == 1 and "builtin.combine" not in {
        op.name() for op in changed.walk()} and len(state) == 1


def test_parts_of_a_weight_are_folded_with_it():
    def f(s, x):
        a, b = paddle.split(s.w, 2, axis=1)
        return x @ a, x @ b
    changed, count, state = applied(FOLD, program_of(Net(f, w=(4, 6)), (3, 4)), scoped=True)
    assert names(changed) == ["matmul", "matmul"] and count == 2 and len(state) == 2

    def g(x):
        a, b = paddle.split(paddle.full([6], 2.0), 2)
        return x + a * b
    assert after(FOLD, g, (3,)) == (["add"], 3)


def test_a_parameter_that_is_used_otherwise_stays():
    net = Net(lambda s, x: (x @ s.w.t(), s.w + x), w=(4, 4))
    _, count, state = applied(FOLD, program_of(net, (4, 4)), scoped=True)
    assert count == 1 and set(state) == {"w", "constant_folding@_0"}


def test_state_that_the_program_writes_is_no_constant():
    program = Program()
    build = Builder(program.global_block())
    w = build.parameter("w", (3,), "float32")
    y, = build.call(ROWS["exp"], (w,), {})
    build.output("y", y), build.set_parameter("w", y)
    assert applied(FOLD, program, scoped=True)[1] == 0


def test_without_the_values_parameters_are_not_folded():
    assert after(FOLD, Net(lambda s, x: x @ s.w.t(), w=(4, 4)), (4, 4)) == (["transpose", "matmul"], 0)


def test_a_view_that_is_larger_is_not_written_down_and_a_random_draw_is_not_folded():
    big = Net(lambda s, x: x + s.w.expand([200, 400]), w=(1, 400))
    assert after(FOLD, big, (200, 400), scoped=True)[1] == 0
    key = Net(lambda s, x: x + paddle.rand([3]), w=(3,))
    program = program_of(key, (3,))
    assert create_pass(FOLD, {"param_scope": {}}).run(program) == 0


def test_many_equal_numbers_are_a_parameter_where_there_is_a_place_for_them():
    """A run would fill a `full`."""
    zeros = Net(lambda s, x: x + (s.w - s.w), w=(65,))
    assert len(applied(FOLD, program_of(zeros, (65,)), scoped=True)[2]) == 1
    few = Net(lambda s, x: x + (s.w - s.w), w=(64,))
    assert len(applied(FOLD, program_of(few, (64,)), scoped=True)[2]) == 0


def test_ranges_are_folded_where_there_is_a_place_for_them():
    def f(s, x):
        return x + paddle.arange(8, dtype="float32") * 2.0
    assert after(FOLD, Net(f, w=(1,)), (8,), scoped=True) == (["add"], 2)
    assert after(FOLD, lambda x: x + paddle.arange(8, dtype="float32") * 2.0, (8,))[1] == 0


def test_between_constants_anything_may_lie():
    """A matrix is no `full`, but what comes of it is one."""
    program = Program()
    build = Builder(program.global_block())
    ones = build.full((3, 3), 1.0, "float32")
    triangle, = build.call(ROWS["tril"], (ones,), {})
    total, = build.call(ROWS["sum"], (triangle,), {"axis": (0, 1), "keepdim": False})
    build.output("y", total)
    changed, count, _ = applied(FOLD, program)
    assert count == 2 and names(changed) == []


def test_what_cannot_be_computed_is_left_to_the_run():
    """A branch that is never taken may hold it."""
    def f(x):
        return cond(x.sum() > 1e9, lambda: x + paddle.full([2], 1).gather(paddle.full([1], 7)).cast("float32"),
                    lambda: x)
    program = program_of(f, (1,))
    create_pass(FOLD).run(program)
    assert "pd_op.gather" in [op.name() for op in program.walk()]
    assert outcome(program, {"x": np.zeros(1, np.float32)})


def test_values_that_do_not_fit_the_program_are_refused():
    program = program_of(Net(lambda s, x: x @ s.w.t(), w=(4, 4)), (4, 4))
    with pytest.raises(ValueError, match=r"expected param_scope\['w'\] to be .*4, 4.*got f32.3, 4"):
        create_pass(FOLD, {"param_scope": {"w": np.zeros((3, 4), np.float32)}}).run(program)


# ------------------------------------------------------------------------------------------------- redundant ones
def test_numbers_that_change_nothing():
    name = "identity_op_clean_pass"
    assert after(name, lambda x: ((1.0 * x) * 1.0 / 1.0 - 0.0) ** 1.0 + 0.0, (2, 3)) == (["add"], 5)
    assert after(name, lambda x: 1.0 / x - (1.0 - x), (2, 3))[1] == 0
    assert after(name, lambda x: x - (-0.0), (2, 3))[1] == 0
    assert after(name, lambda x: x * 1, "i32[3]")[1] == 1
    assert after(name, lambda x: x * paddle.full([2, 1, 1], 1.0), (3, 4))[1] == 0       # it broadcasts


def test_casts_that_lead_back_are_an_identity_if_they_do_not_round():
    name = "identity_op_clean_pass"
    assert after(name, lambda x: x.cast("float64").cast("float32").exp(), "f32[3]") == (["exp"], 1)
    assert after(name, lambda x: x.cast("float16").cast("float32").exp(), "f32[3]")[1] == 0


def test_transpositions_in_a_row():
    name = "remove_redundant_transpose_pass"
    assert after(name, lambda x: x.transpose([1, 0, 2]).transpose([2, 0, 1]), (2, 3, 4)) == (["transpose"], 1)
    assert after(name, lambda x: x.transpose([1, 0, 2]).transpose([1, 0, 2]).exp(), (2, 3, 4)) == (["exp"], 1)
    assert after(name, lambda x: x.transpose([1, 2, 0]).transpose([1, 2, 0]).transpose([1, 2, 0]).exp(), (2, 3, 4)) == (
        ["exp"], 2)


def test_a_transposition_that_is_read_stays():
    def f(x):
        y = x.transpose([1, 0, 2])
        return y.exp(), y.transpose([0, 2, 1])
    assert after("remove_redundant_transpose_pass", f, (2, 3, 4))[1] == 0

    def back(x):
        y = x.transpose([1, 0])
        return y.exp(), y.transpose([1, 0]).tanh()
    assert after("remove_redundant_transpose_pass", back, (2, 3)) == (["transpose", "exp", "tanh"], 1)


def test_a_cast_that_is_read_stays():
    def f(x):
        y = x.cast("float64")
        return y.exp(), y.cast("float32").tanh(), y.cast("float16")
    assert after("remove_redundant_cast_pass", f, "f32[3]") == (["cast", "exp", "tanh", "cast"], 2)


def test_reshapes_in_a_row_also_where_one_between_is_read():
    def f(x):
        y = x.reshape([3, 4]).unsqueeze(0)
        return y.squeeze(0).exp(), y.flatten()
    left, count = after("remove_redundant_reshape_pass", f, (2, 6))
    assert left == ["reshape", "exp", "reshape"] and count == 3
    assert after("remove_redundant_reshape_pass", lambda x: x.reshape([2, 6]).transpose([1, 0]).reshape([12]), (12,))[
        1] == 0


def test_a_reshape_of_open_sizes():
    left, count = after("remove_redundant_reshape_pass", lambda x: x.flatten().reshape([-1, 2]), "f32[S, 4]")
    assert left == ["reshape"] and count == 1


@pytest.mark.parametrize("through, stays", [("float64", []), ("float16", ["cast", "cast"]),
                                            ("bfloat16", ["cast", "cast"]), ("int64", ["cast", "cast"])])
def test_casts_there_and_back(through, stays):
    assert after("remove_redundant_cast_pass", lambda x: x.cast(through).cast("float32").exp(), "f32[5]")[0] == [
        *stays, "exp"]


def test_casts_on():
    assert after("remove_redundant_cast_pass", lambda x: x.cast("float32").cast("float64"), "bf16[5]") == (["cast"], 1)
    assert after("remove_redundant_cast_pass", lambda x: x.cast("int64").cast("float32"), "i32[5]") == (["cast"], 1)
    assert after("remove_redundant_cast_pass", lambda x: x.cast("float32").cast("int64"), "i32[5]")[1] == 0


@pytest.mark.parametrize("narrow", [np.dtype(t) for t in ("bool", "int8", "uint8", "int16", "float16", "bfloat16")])
@pytest.mark.parametrize("wide", [t.np for t in dtypes.ALL if t.np.kind != "c"], ids=str)
def test_a_dtype_holds_another_if_all_its_values_come_back(narrow, wide):
    """All of them: there are at most 65536."""
    size = narrow.itemsize
    values = (np.array([False, True]) if narrow.kind == "b" else
              np.arange(256 ** size, dtype=np.uint32).astype(f"u{size}").view(narrow))
    number = np.float64 if narrow.kind != "b" else bool
    with np.errstate(all="ignore"):
        there = values.astype(wide)
        equal = there.astype(number) == values.astype(number)
        whole = bool(np.all(equal | (values != values)))
    exact = whole and (wide.kind != "b" or narrow.kind == "b") and (wide.kind not in "iu" or narrow.kind in "biu")
    assert holds(wide, narrow) == exact


def test_products_with_numbers_are_one():
    name = "remove_redundant_scale_pass"
    for f in (lambda x: (x * 0.3) * 0.1, lambda x: 0.1 * (0.3 * x), lambda x: x * 0.3 / 0.7, lambda x: x / 0.3 * 0.7):
        assert after(name, f, (50,)) == (["multiply"], 1)
        assert after(name, f, "bf16[50]")[1] == 1
    assert after(name, lambda x: x * 2.0 * 3.0 / 4.0 * 5.0, (50,)) == (["multiply"], 3)
    assert after(name, lambda x: x.scale(0.3, 0.2).scale(0.1, -0.4), (50,)) == (["scale"], 1)
    assert after(name, lambda x: x.scale(0.3).scale(0.1), (50,)) == (["scale"], 1)


def test_products_with_numbers_that_are_not():
    name = "remove_redundant_scale_pass"
    assert after(name, lambda x: x * 0.3 + 0.1, (50,))[1] == 0
    assert after(name, lambda x: x * 3 * 5, "i32[50]")[1] == 0
    assert after(name, lambda x: x * 1e-30 * 1e-30, (50,))[1] == 0          # 0 in float32
    assert after(name, lambda x: x * 1e30 * 1e30, (50,))[1] == 0            # infinite
    assert after(name, lambda x: x * 1e-30 * 1e-9, (50,))[1] == 0           # not normal
    assert after(name, lambda x: x * 0.0 * 2.0, (50,))[1] == 0
    assert after(name, lambda x: x * 2.0 / 0.0, (50,))[1] == 0
    assert after(name, lambda x: x.scale(2.0, 1.0, bias_after_scale=False).scale(3.0), (50,))[1] == 0

    def read(x):
        y = x * 2.0
        return y * 3.0, y
    assert after(name, read, (50,))[1] == 0


# ------------------------------------------------------------------------------------------------------ products
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_products_of_transposed_factors(left, right):
    x, y = ((2, 4, 3) if left else (2, 3, 4)), ((2, 5, 4) if right else (2, 4, 5))

    def f(x, y):
        return x.transpose([0, 2, 1]).matmul(y.transpose([0, 2, 1]), left, right).transpose([0, 2, 1])
    swapped = [(s[0], s[2], s[1]) for s in (x, y)]
    assert after("matmul_transpose_fuse_pass", f, *swapped) == (["matmul"], 3)


def test_other_transpositions_stay_and_so_does_one_that_is_read():
    name = "matmul_transpose_fuse_pass"
    assert after(name, lambda x, y: x.transpose([1, 0, 2]) @ y, (3, 2, 4), (2, 4, 5))[1] == 0

    def f(x, y):
        z = y.transpose([1, 0])
        return x @ z, z.exp()
    assert after(name, f, (3, 4), (5, 4))[1] == 0


@pytest.mark.parametrize("scale", [lambda t: t * 0.3, lambda t: 0.3 * t, lambda t: t / 3.0, lambda t: t.scale(0.3)])
def test_a_scale_goes_where_there_is_less_to_scale(scale):
    name = "matmul_scale_fuse_pass"
    left, count = after(name, lambda q, k: scale(q.matmul(k, transpose_y=True)), (8, 2), (9, 2))
    assert count == 1 and left[-1] == "matmul"
    assert after(name, lambda q, k: scale(q @ k), (3, 8), (8, 2))[1] == 0       # the product is the smallest
    weighed, count = after(name, Net(lambda s, x: scale(x @ s.w), w=(8, 2)), (3, 8))
    assert count == 1 and weighed[-1] == "matmul"


def test_a_scale_with_a_bias_stays_and_so_does_that_of_a_product_that_is_read():
    name = "matmul_scale_fuse_pass"
    assert after(name, lambda q, k: q.matmul(k, transpose_y=True).scale(0.3, 1.0), (8, 2), (8, 2))[1] == 0

    def f(q, k):
        s = q.matmul(k, transpose_y=True)
        return s * 0.3, s
    assert after(name, f, (8, 2), (8, 2))[1] == 0


@pytest.mark.parametrize("scale", [lambda t: t * 0.3, lambda t: t / 3.0, lambda t: t.scale(0.3)])
def test_a_scaled_factor_leaves_its_scale_to_a_weight(scale):
    name = "scale_matmul_fuse_pass"
    left, count = after(name, Net(lambda s, x: scale(x) @ s.w, w=(8, 2)), (3, 8))
    assert count == 1 and left[-1] == "matmul"
    assert after(name, lambda x, y: scale(x) @ y, (3, 8), (8, 2))[1] == 0


def test_scales_are_gone_when_they_are_folded():
    program = program_of(Net(lambda s, x: (x * 0.5) @ s.w, w=(8, 2)), (3, 8))
    changed, _, _ = applied("scale_matmul_fuse_pass", program)
    assert names(applied(FOLD, changed, scoped=True)[0]) == ["matmul"]


# ------------------------------------------------------------------------------------------------ horizontal fusion
class Heads(Layer):
    def __init__(self, *sizes, biases=True):
        super().__init__()
        self.parts = paddle.nn.LayerList([Linear(6, n, bias_attr=None if biases else False) for n in sizes])

    def forward(self, x):
        return tuple(part(x) for part in self.parts)


@pytest.mark.parametrize("shape", [(5, 6), (2, 5, 6), "f32[S, 6]"])
@pytest.mark.parametrize("biases", [True, False])
def test_products_of_one_tensor_become_one(shape, biases):
    program = program_of(Heads(4, 2, 3, biases=biases), shape)
    changed, count, _ = applied("horizontal_fuse_pass", program)
    assert count == 2 and names(changed).count("matmul") == 1 and names(changed).count("add") == int(biases)
    folded, _, _ = applied(FOLD, changed, scoped=True)
    assert sorted(names(folded)) == sorted(["matmul", *["add"] * biases, *["slice"] * 3])


def test_weights_that_are_computed_come_along():
    net = Net(lambda s, x: (x @ s.w.t(), x @ s.v.t()), w=(4, 6), v=(3, 6))
    assert after("horizontal_fuse_pass", net, (5, 6), at_least=2)[1] == 1


def test_a_bias_that_not_all_have_or_that_is_not_all_stays_behind():
    net = Net(lambda s, x: (x @ s.w + s.b, x @ s.v), w=(6, 4), v=(6, 4), b=(4,))
    left, count = after("horizontal_fuse_pass", net, (5, 6), at_least=2)
    assert count == 1 and left.count("add") == 1

    def f(s, x):
        y = x @ s.w
        return y + s.b, y, x @ s.v + s.b
    left, count = after("horizontal_fuse_pass", Net(f, w=(6, 4), v=(6, 4), b=(4,)), (5, 6), at_least=2)
    assert count == 1 and left.count("add") == 2


def test_activations_other_tensors_and_other_flags_are_not_put_together():
    name, two = "horizontal_fuse_pass", {"at_least": 2}
    assert after(name, lambda x, y, z: (x @ y, x @ z), (2, 3), (3, 4), (3, 4), **two)[1] == 0
    assert after(name, Net(lambda s, x: (x @ s.w, x.exp() @ s.v), w=(6, 4), v=(6, 4)), (5, 6), **two)[1] == 0
    assert after(name, Net(lambda s, x: (x @ s.w, x.matmul(s.v, transpose_y=True)), w=(6, 4), v=(4, 6)), (5, 6), **two)[
        1] == 0


def test_few_products_and_large_ones_stay():
    name = "horizontal_fuse_pass"
    assert after(name, Heads(4, 2), (5, 6))[1] == 0
    assert after(name, Heads(4, 2, 3, biases=False), (5, 6), max_elements=6 * 9 - 1)[1] == 0
    assert after(name, Heads(4, 2, 3, biases=False), (5, 6), max_elements=6 * 9)[1] == 2


def test_a_branch_has_products_of_its_own():
    def f(s, x):
        return cond(x.sum() > 0.0, lambda: x @ s.w + x @ s.v, lambda: x @ s.w)
    left, count = after("horizontal_fuse_pass", Net(f, w=(6, 4), v=(6, 4)), (5, 6), at_least=2)
    assert count == 1 and left.count("matmul") == 2


# --------------------------------------------------------------------------------------------------- in place
def test_marks_say_what_the_executor_does():
    def f(x, y):
        a = x.exp()                         # x belongs to the caller
        b = a.tanh()                        # a is read later
        c = b + a                           # over either
        d = c.reshape([8, 3]).exp()         # over a view of all of c
        e = d.reshape([4, 6]) * y
        return e.sum(1) * 2.0 + 1.0
    program = program_of(f, (4, 6), (4, 6))
    assert create_pass("inplace_pass").run(program) == 4
    executor = Executor(program)
    layout = Layout(executor.prepared, {})
    done = [v.get_defining_op().attributes["op_name"].value for v in layout.over]
    marked = [op.name() for op in program.global_block() if "is_inplace" in op.attributes]
    assert marked == done == ["pd_op.add", "pd_op.exp", "pd_op.multiply", "pd_op.multiply"]
    assert create_pass("inplace_pass").run(program) == 0


def test_a_mark_that_is_no_longer_true_goes():
    program = program_of(lambda x: x.exp().tanh() + x, (4, 6))
    create_pass("inplace_pass").run(program)
    exp, = (op for op in program.global_block() if op.name() == "pd_op.exp")
    Builder(program.global_block()).output("seen", exp.result(0))
    assert create_pass("inplace_pass").run(program) == 1
    assert not any("is_inplace" in op.attributes for op in program.global_block())


# ---------------------------------------------------------------------------------------------- inputs and outputs
def test_parameters_that_nothing_reads_are_kept_on_demand():
    program = program_of(Net(lambda s, x: x + s.w, w=(2,)), (2,))
    Builder(program.global_block(), program.global_block().front()).parameter("dead", (3,), "float32")
    kept = program.clone()
    assert create_pass("add_shadow_output_after_dead_parameter_pass").run(kept) == 1
    create_pass("dead_code_elimination_pass").run(kept), create_pass("dead_code_elimination_pass").run(program)
    assert set(kept.parameters()) == {"w", "dead"} and set(program.parameters()) == {"w"}
    assert create_pass("add_shadow_output_after_dead_parameter_pass").run(kept) == 0


def test_what_is_fetched_is_an_output():
    program = Program()
    build = Builder(program.global_block())
    x = build.data("x", (2,), "float32")
    y, = build.call(ROWS["exp"], (x,), {})
    build.build("pd_op.fetch", [y], {"name": "y", "col": 0, "persistable": [True], "stop_gradient": [True]}, [y.type()])
    assert create_pass("replace_fetch_with_shadow_output_pass").run(program) == 1
    verify(program)
    out = Executor(program).run({"x": np.zeros(2, np.float32)})
    assert list(out) == ["y"] and out["y"].tolist() == [1, 1]


def test_checks_can_be_removed():
    program = program_of(lambda x: (Assert((x > 0.0).all(), [x]), x + 1.0)[1], (3,))
    feed = {"x": np.array([-1, 0, 1], np.float32)}
    with pytest.raises(ValueError, match="Assert"):
        Executor(program).run(feed)
    assert create_pass("delete_assert_op_pass").run(program) == 1
    assert next(iter(Executor(program).run(feed).values())).tolist() == [0, 1, 2]


# ------------------------------------------------------------------------------------ common subexpressions, effects
CSE = "common_subexpression_elimination_pass"


def test_a_loop_uses_what_is_outside_and_computes_once_inside():
    def f(x):
        outside = x.exp()
        _, y = while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + x.exp() + a.tanh() * a.tanh()),
                          [paddle.full([], 0, "int64"), x])
        return y + outside + y.tanh()
    left, _ = after(CSE, f, (3,))
    assert left.count("exp") == 1 and left.count("tanh") == 2


def test_what_two_branches_share_is_not_moved_out():
    def f(x):
        return cond(x.sum() > 0.0, lambda: x.exp() + x.exp(), lambda: x.exp() * 2.0)
    left, count = after(CSE, f, (3,))
    assert count == 1 and left.count("exp") == 2


def test_effects_and_draws_are_never_merged():
    program = Program()
    build = Builder(program.global_block())
    x = build.data("x", (2,), "float32")
    for i in range(2):
        seen, = build.call(ROWS["print"], (x,), {})
        key, = build.call(ROWS["draw_key"], (), {"path": "layer"})
        noise, = build.call(ROWS["uniform"], (key,), {"shape": (2,), "dtype": np.dtype("float32"), "min": 0.0,
                                                      "max": 1.0})
        build.output(f"seen{i}", seen), build.output(f"noise{i}", noise)
    before = program.clone()
    assert create_pass(CSE).run(program) == 0 and program == before
    for name in ("dead_code_elimination_pass", FOLD, "identity_op_clean_pass"):
        create_pass(name).run(program)
    assert names(program).count("print") == names(program).count("draw_key") == 2


def test_draws_in_a_loop_stay_one_an_iteration():
    def f(x):
        _, y = while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a + F.dropout(x, 0.5) + F.dropout(x, 0.5)),
                          [paddle.full([], 0, "int64"), x])
        return y
    program = program_of(f, (64,))
    create_pass(CSE).run(program)
    assert names(program).count("dropout") == 2
