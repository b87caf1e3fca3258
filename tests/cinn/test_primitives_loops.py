"""Primitives that cut, join, swap and spread loops: what they make, and what they refuse."""

import numpy as np
import pytest

import minipd as paddle
from minipd.cinn.ir.ast import (
    INT64,
    Alloc,
    Dim,
    For,
    Function,
    IterVar,
    Let,
    Load,
    Param,
    Reduce,
    ScheduleBlock,
    Seq,
    Store,
    Var,
)
from minipd.cinn.ir.build import binary, index
from minipd.cinn.ir.interpreter import interpret
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.verify import verify
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.ir_schedule import IRSchedule
from tests.cinn.test_lower import softmax
from tests.cinn.test_primitives import Case, normal


def column_sum(x):
    return paddle.sum(x, 0)


def body(s):
    """The nests of a schedule, without declarations."""
    return [x for x in s.function.body.stmts if not isinstance(x, Alloc | Let)]


def shape(s):
    """Nests as nested lists: a loop is [its name, what is in it], a block its name."""
    def of(x):
        stmts = x.body.stmts if isinstance(x.body, Seq) else [x.body]
        return [x.var, *map(of, stmts)] if isinstance(x, For) else x.name
    return [of(x) for x in body(s)]


def doubled(*extents):
    """y = x + x over a nest i, j, ..; int extents are known, None are the array's."""
    names = "ijk"[:len(extents)]
    sizes = [Dim("x", k) if n is None else index(n) for k, n in enumerate(extents)]
    at = tuple(Var(f"v{a}") for a in names)
    x = Load("x", at, INT64)
    nest = ScheduleBlock("y", tuple(IterVar(v.name, n) for v, n in zip(at, sizes, strict=True)),
                         tuple(Var(a) for a in names), Store("y", at, binary("add", x, x)))
    for a, n in reversed(list(zip(names, sizes, strict=True))):
        nest = For(a, n, nest)
    return IRSchedule(Function("f", (Param("x", INT64, len(names)), Param("y", INT64, len(names), True)), nest))


def doubles(s, *sizes):
    verify(s.function)
    x = np.arange(np.prod(sizes)).reshape(sizes)
    y = np.empty_like(x)
    interpret(s.function, [x], [y], shuffle=1)
    np.testing.assert_array_equal(y, 2 * x)
    return True


# ---------------------------------------------------------------------------------------------------- split, fuse
@pytest.mark.parametrize("extent", [1, 7, 16, 17, None])
@pytest.mark.parametrize("factors", [(-1, 4), (4, -1), (-1, 2, 3), (2, -1, 3), (3, 2, -1)])
def test_split_anywhere(extent, factors):
    s = doubled(extent)
    assert s.split("i", factors) == [f"i_{k}" for k in range(len(factors))]
    for n in (1, 7, 16, 17) if extent is None else (extent,):
        assert doubles(s, n)


def test_split_prints():
    s = doubled(100)
    s.split("i", [-1, 16])
    assert "where (i_0 * 16 + i_1 < 100)" in text(s.function)
    assert "serial for (i_0, 0, 7)" in text(s.function)
    even = doubled(96)
    even.split("i", [-1, 16])
    assert "where" not in text(even.function)


@pytest.mark.parametrize("factors, message", [
    ([16], "expected two or more extents"), ([-1, -1], "of which one may be -1"), ([0, -1], "at least 1"),
    ([2, 3], "6 iterations are too few for an extent of 7; let one of the extents be -1")])
def test_split_refuses(factors, message):
    with pytest.raises(ScheduleError, match=message):
        doubled(7).split("i", factors)
    with pytest.raises(ScheduleError, match="no loop 'q' in f; there are i"):
        doubled(7).split("q", [-1, 2])


@pytest.mark.parametrize("n, parts, least, most, want", [
    (100, 4, 1, None, (4, 25)), (100, 16, 8, None, (13, 8)), (100, 2, 1, 10, (10, 10)), (5, 16, 1, None, (5, 1)),
    (101, 4, 1, None, (4, 26))])
def test_split_evenly(n, parts, least, most, want):
    s = doubled(n)
    outer, inner = s.split_evenly("i", parts, least, most)
    assert tuple(s._nests.loop(x, "").extent.value for x in (outer, inner)) == want
    assert doubles(s, n)
    unknown = doubled(None)
    unknown.split_evenly("i", parts, least, most)
    assert doubles(unknown, n)


def test_loops_of_one_extent_share_their_sizes():
    s = doubled(None, None)
    s.cache_write("y", "local")
    for block in s.get_all_blocks():
        s.split_evenly(s.get_loops(block)[0], 4, 2)
    sizes = [x for x in s.function.body.stmts if isinstance(x, Let)]
    assert len(sizes) in (2, 4)                 # x.shape[0] and y.shape[0] are two extents
    assert doubles(s, 9, 2)


def test_fuse_and_split_give_back_the_loops():
    s = doubled(6, 5)
    assert s.fuse(["i", "j"]) == "i_fused"
    assert "axis.bind(i_fused // 5, i_fused % 5)" in text(s.function)
    outer, _ = s.split("i_fused", [-1, 5])
    assert f"axis.bind({outer}, i_fused_1)" in text(s.function)
    assert doubles(s, 6, 5)


def test_what_was_split_is_fused_to_one_variable():
    s = doubled(12)
    s.fuse(s.split("i", [-1, 4]))
    assert "axis.bind(i_0_fused)" in text(s.function)


def test_fuse_refuses():
    s = doubled(6, 5, 4)
    with pytest.raises(ScheduleError, match="expected k to be all that is in i; there is j"):
        s.fuse(["i", "k"])
    s.parallel("i")
    with pytest.raises(ScheduleError, match="expected a serial loop, i is parallel already"):
        s.fuse(["i", "j"])


# -------------------------------------------------------------------------------------------------------- reorder
def test_reorder_leaves_others_in_place():
    s = doubled(2, 3, 4)
    s.reorder(["k", "i"])
    assert s.get_loops("y") == ["k", "j", "i"]
    assert doubles(s, 2, 3, 4)


def recurrence():
    """t[i + 1, j] = t[i, j + 1] + x[i, j]: the rows have to come one after the other, each as a whole."""
    n, at = index(4), (Var("vi"), Var("vj"))
    below, right = binary("add", Var("vi"), 1), binary("add", Var("vj"), 1)
    store = Store("t", (below, Var("vj")), binary("add", Load("t", (Var("vi"), right), INT64), Load("x", at, INT64)))
    step = ScheduleBlock("t", (IterVar("vi", n), IterVar("vj", n)), (Var("i"), Var("j")), store)
    zeros = ScheduleBlock("zero", (IterVar("va", index(6)), IterVar("vb", index(6))), (Var("a"), Var("b")),
                          Store("t", (Var("va"), Var("vb")), Load("x", (index(0), index(0)), INT64)))
    last = ScheduleBlock("y", (IterVar("vp", index(6)), IterVar("vq", index(6))), (Var("p"), Var("q")),
                         Store("y", (Var("vp"), Var("vq")), Load("t", (Var("vp"), Var("vq")), INT64)))
    params = Param("x", INT64, 2), Param("y", INT64, 2, True)
    return IRSchedule(Function("walk", params, Seq((
        Alloc("t", (index(6), index(6)), INT64),
        For("a", index(6), For("b", index(6), zeros)), For("i", n, For("j", n, step)),
        For("p", index(6), For("q", index(6), last))))))


def test_iterations_that_wait_for_each_other():
    s = recurrence()
    for primitive in ("parallel", "vectorize"):
        with pytest.raises(ScheduleError, match="iterations meet in t|contains a loop"):
            s.apply(primitive, "i")
    with pytest.raises(ScheduleError, match="iterations of i, j meet in t, which t writes"):
        s.reorder(["j", "i"])


def test_reductions_may_swap_and_be_vectors_but_not_parallel():
    case = Case(column_sum, normal(7, 5))
    s = case.s
    s.reorder(["j_sum_0", "i_sum_0"])
    s.vectorize("i_sum_0")
    s.parallel("j_sum_0")
    case.check()
    with pytest.raises(ScheduleError, match="its iterations meet in sum_0.*rfactor them first"):
        Case(column_sum, normal(7, 5)).s.parallel("i_sum_0")


# ---------------------------------------------------------------------------------------------- simple_compute_at
def test_softmax_becomes_one_nest():
    case = Case(softmax, normal(5, 7))
    s = case.s
    s.compute_inline("subtract_1")
    s.compute_inline("divide_4")
    for block in ("max_0", "exp_2", "sum_3__reduce_init", "sum_3", "y0"):
        s.simple_compute_at(block, "i_max_0__reduce_init")
        case.check()
    s.simple_compute_at("sum_3", "j_exp_2")
    case.check()
    row = "i_max_0__reduce_init"
    assert shape(s) == [[row, "max_0__reduce_init", ["j_max_0", "max_0"], "sum_3__reduce_init",
                         ["j_exp_2", "exp_2", "sum_3"], ["j_y0", "y0"]]]
    with pytest.raises(ScheduleError, match="exp_2 reads max_0|max_0 adds to max_0"):
        s.simple_compute_at("sum_3", "j_max_0")
    s.set_buffer("exp_2", "y0")
    s.parallel(row)
    case.check()
    case.check_trace()


def test_what_a_block_needs_moves_in_front():
    """The start of a column sum stands between the nests: it goes in front of the rows."""
    def both(x):
        y = paddle.exp(x)
        return y, paddle.sum(y, 0)
    case = Case(both, normal(6, 5))
    s = case.s
    s.simple_compute_at("sum_1", "i_exp_0")
    case.check()
    assert shape(s)[0] == ["j_sum_1__reduce_init", "sum_1__reduce_init"]
    s.simple_compute_at("y0", "j_exp_0")
    case.check()
    with pytest.raises(ScheduleError, match="expected at least the 2 loops that lead to j_exp_0 around y1"):
        s.simple_compute_at("y1", "j_exp_0")


def test_nests_that_wait_for_the_whole_are_not_joined():
    case = Case(lambda x: x / paddle.sum(x), normal(9))
    with pytest.raises(ScheduleError, match="would not come after that any more"):
        case.s.simple_compute_at("y0", case.s.get_loops("sum_0")[0])
    case.check()
    turned = Case(lambda x: paddle.exp(x).t() + x, normal(4, 4))
    with pytest.raises(ScheduleError, match="would not come after that any more"):
        turned.s.simple_compute_at(turned.s.get_all_blocks()[1], "i_exp_0")


# -------------------------------------------------------------------------------------------------------- rfactor
@pytest.mark.parametrize("rows", [2, 7, 16])
def test_sums_over_rows_in_chunks(rows):
    case = Case(column_sum, normal(rows, 5))
    s = case.s
    outer, _ = s.split_evenly("i_sum_0", 4)
    part = s.rfactor(outer)
    assert part == "sum_0_rf"
    s.parallel(outer)
    case.check()
    case.check_trace()


def test_rfactor_refuses():
    s = Case(column_sum, normal(7, 5)).s
    with pytest.raises(ScheduleError, match="does not fold that loop"):
        s.rfactor("j_sum_0")
    with pytest.raises(ScheduleError, match="no reduction"):
        s.rfactor("j_y0")


def test_rfactor_refuses_loops_that_are_both_rows_and_columns():
    """The partial results of a row would be combined once for each of them."""
    case = Case(lambda x: x.sum(1) + 1.0, normal(5, 8))
    s = case.s
    outer, inner = s.split("j_sum_0", [4, 2])
    s.fuse(["i_sum_0", outer])
    with pytest.raises(ScheduleError, match="keeps elements along it too"):
        s.rfactor(inner)
    case.check()


def test_rfactor_of_partial_results():
    """The loop over chunks is an axis of the partial results, and says where in the row their sums begin."""
    case = Case(lambda x: x.sum(1) + 1.0, normal(5, 12))
    s = case.s
    outer, inner = s.split("j_sum_0", [3, 4])
    part = s.rfactor(outer)
    _, _, last = s.get_loops(part)
    lanes, _ = s.split(last, [2, 2])
    assert s.rfactor(lanes) == f"{part}_rf"
    case.check()


def test_rfactor_of_a_partial_result():
    """Its own loop is kept as it is, and says where the columns of a chunk begin, too."""
    case = Case(lambda x: x.sum(1) + 1.0, normal(5, 8))
    s = case.s
    outer, inner = s.split("j_sum_0", [2, 4])
    assert s.rfactor(outer) == "sum_0_rf"
    assert s.rfactor(inner) == "sum_0_rf_rf"
    case.check()


def test_rfactor_beside_a_loop_of_no_axis():
    """The start of the partial results has no such loop, and does not ask for it."""
    case = Case(lambda x: x.sum(1) + 1.0, normal(5, 8))
    s = case.s
    s.split(s.add_unit_loop("sum_0"), [2, -1])
    s.rfactor("j_sum_0")
    case.check()


# ------------------------------------------------------------------------------------------------------ inlining
def test_inlined_blocks_keep_their_names():
    case = Case(lambda x: paddle.exp(x - 1.0) * paddle.exp(x - 1.0), normal(9))
    s = case.s
    for block in s.get_all_blocks()[:-1]:
        s.compute_inline(block)
        case.check()
    assert s.get_all_blocks() == ["y0"] and not any(isinstance(x, Alloc) for x in s.function.body.stmts)


def test_what_cannot_be_inlined():
    s = Case(softmax, normal(5, 7)).s
    with pytest.raises(ScheduleError, match="it is a reduction"):
        s.compute_inline("max_0")
    with pytest.raises(ScheduleError, match="max_0 writes to max_0 too"):
        s.compute_inline("max_0__reduce_init")
    with pytest.raises(ScheduleError, match="y0 is an output; expected a temporary"):
        s.compute_inline("y0")


def test_a_buffer_that_is_needed_later_is_not_overwritten():
    def twice(x):
        y = paddle.exp(x)
        return y / paddle.sum(y, -1, keepdim=True), y * 2.0
    s = Case(twice, normal(4, 5)).s
    for block in s.get_all_blocks():
        if block.startswith(("divide", "scale", "multiply")):
            s.compute_inline(block)
    with pytest.raises(ScheduleError, match="may need exp_0 after y0 has written over it"):
        s.set_buffer("exp_0", "y0")


# --------------------------------------------------------------------------------------------------- GPU loops
def test_arrays_of_threads():
    case = Case(lambda x: paddle.exp(x) / paddle.sum(x, -1, keepdim=True), normal(4, 5))
    s = case.s
    with pytest.raises(ScheduleError, match=r"would not see what exp_0 writes to the local array exp_0; set_buffer"):
        s.bind("i_exp_0", "blockIdx.x")
    s.set_buffer("exp_0", "global")
    s.bind("i_exp_0", "blockIdx.x")
    s.bind("j_exp_0", "threadIdx.x")
    case.check()
    with pytest.raises(ScheduleError, match="i_exp_0 is bound to that axis already|expected a serial loop"):
        s.bind("i_exp_0", "blockIdx.x")
    with pytest.raises(ScheduleError, match="no such axis; there are blockIdx.x"):
        s.bind("i_y0", "warp")


def test_reduce_over_a_whole_is_one_block():
    """No loops but those of the reduction: rfactor gives each chunk a partial result."""
    case = Case(lambda x: paddle.sum(x), normal(100))
    s = case.s
    loop = s.get_loops("sum_0")[0]
    outer, inner = s.split(loop, [-1, 16])
    s.rfactor(outer)
    s.vectorize(inner)
    case.check()
    assert isinstance(s.get_block("sum_0_rf").body, Reduce | Seq)
