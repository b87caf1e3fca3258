"""From block form to flat form: what each pass makes, and that all of them keep what the function means."""

import numpy as np
import pytest

from minipd.cinn.ir.ast import (
    Accumulate,
    Alloc,
    Dim,
    For,
    Function,
    IfThenElse,
    Init,
    IterVar,
    Let,
    Load,
    Param,
    Reduce,
    ScheduleBlock,
    Seq,
    Store,
    SyncThreads,
    Var,
)
from minipd.cinn.ir.build import binary, cast, const, index, unary
from minipd.cinn.ir.interpreter import interpret
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.verify import verify
from minipd.cinn.ir.walk import in_block_form, map_expressions, substitute
from minipd.cinn.optim import finalize, steps
from minipd.cinn.optim.fuse_loops import fuse_loops
from minipd.cinn.optim.hoist import eliminate_invariant_loop
from minipd.cinn.optim.merge import merge
from minipd.cinn.optim.share import share

F32 = np.dtype("f4")
BF16 = cast(Var("a", F32), np.dtype("f2")).dtype
X, X2 = Param("x0", F32, 1), Param("x0", F32, 2)
Y, Y2 = Param("y0", F32, 1, True), Param("y0", F32, 2, True)
ROWS, COLUMNS = Dim("x0", 0), Dim("x0", 1)
RNG = np.random.default_rng(0)


def v(name):
    return Var(name)


def x0(*at):
    return Load("x0", at, F32)


def block(name, body, predicate=None, **iter_values):
    """iter_values: name -> (extent, value), R behind it for a reduced one."""
    iter_vars = tuple(IterVar(n, index(e), *kind) for n, (e, _, *kind) in iter_values.items())
    return ScheduleBlock(name, iter_vars, tuple(index(at) for _, at, *_ in iter_values.values()), body, predicate)


def loop(var, extent, *body, kind="serial"):
    return For(var, index(extent), Seq(body) if len(body) != 1 else body[0], kind)


def same(function, inputs, shapes, rtol=1e-6):
    """Every step of finalize gives what the function gives."""
    verify(function)
    want = [np.empty(s, p.dtype) for s, p in zip(shapes, [p for p in function.params if p.output], strict=True)]
    interpret(function, inputs, want, shuffle=0)
    final = function
    for name, final in steps(function):
        found = [np.empty_like(w) for w in want]
        interpret(final, inputs, found, shuffle=1)
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a.astype("f8"), b.astype("f8"), rtol=rtol, atol=1e-6, err_msg=name)
    assert not in_block_form(final.body)
    assert final == finalize(function)
    return final


def body_of(function):
    """The lines of the body."""
    return [line[2:] for line in text(function).splitlines()[2 + bool(function.comment):-1]]


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


# -------------------------------------------------------------------------------------------------- whole chains
def chunked_column_sum(rows, chunks=3):
    """Sums over rows, each chunk of rows on its own first, as rfactor leaves it."""
    size = -(-rows // chunks)
    vc, vi, vj, c = v("vc"), v("vi"), v("vj"), v("i_chunk")
    at = binary("add", binary("mul", c, size), v("i_step"))
    inside = binary("lt", at, ROWS)
    square = Store("square_1", (vi, vj), binary("mul", x0(vi, vj), x0(vi, vj)))
    return Function("sums", (X2, Y), Seq((
        Alloc("s_rf", (index(chunks), COLUMNS), F32), Alloc("sum_0", (COLUMNS,), F32),
        Alloc("square_1", (ROWS, COLUMNS), F32),
        loop("i_chunk", chunks,
             loop("j1", COLUMNS, block("s_rf__reduce_init", Store("s_rf", (vc, vj), const(0, F32)),
                                       vc=(chunks, c), vj=(COLUMNS, v("j1")))),
             loop("i_step", size, loop(
                 "j2", COLUMNS, block("square_1", square, inside, vi=(ROWS, at), vj=(COLUMNS, v("j2"))),
                 block("s_rf", Reduce("s_rf", (vc, vj), "add", Load("square_1", (vi, vj), F32)), inside,
                       vc=(chunks, c), vi=(ROWS, at, "R"), vj=(COLUMNS, v("j2"))), kind="vector")), kind="parallel"),
        loop("j3", COLUMNS, block("sum_0__reduce_init", Store("sum_0", (vj,), const(0, F32)), vj=(COLUMNS, v("j3")))),
        loop("c2", chunks, loop("j4", COLUMNS, block("sum_0", Reduce(
            "sum_0", (vj,), "add", Load("s_rf", (vc, vj), F32)), vc=(chunks, v("c2"), "R"), vj=(COLUMNS, v("j4"))))),
        loop("j5", COLUMNS, block("y0", Store("y0", (vj,), Load("sum_0", (vj,), F32)), vj=(COLUMNS, v("j5")))))))


@pytest.mark.parametrize("rows", [3, 7, 12])
def test_column_sums_in_chunks(rows):
    x = normal(rows, 5)
    f = same(chunked_column_sum(rows), [x], [(5,)], rtol=1e-5)
    y = np.empty(5, F32)
    interpret(f, [x], [y])
    np.testing.assert_allclose(y, (x.astype("f8") ** 2).sum(0), rtol=1e-5)
    if rows == 7:
        assert body_of(f)[:20] == """\
s_rf := local f32[3, x0.shape[1]]
sum_0 := local f32[x0.shape[1]]
parallel for (i_chunk, 0, 3)
{
  serial for (j, 0, x0.shape[1])
  {
    s_rf[i_chunk, j] = 0.0f
  }
  serial for (i_step, 0, min(3, x0.shape[0] - i_chunk * 3))
  {
    i = i_chunk * 3 + i_step
    vectorize for (j, 0, x0.shape[1])
    {
      v0 = x0[i, j]
      square_1 = v0 * v0
      s_rf[i_chunk, j] = s_rf[i_chunk, j] + square_1
    }
  }
}
serial for (j, 0, x0.shape[1])""".splitlines()


def softmax(rows, columns, dtype=F32):
    """As the schedule leaves it: one pass over the row for each reduction, exponentials kept in the output."""
    vi, vj = v("vi"), v("vj")
    n = index(rows)
    out = Param("y0", dtype, 2, True)
    top, total = Load("max_0", (vi,), F32), Load("sum_3", (vi,), F32)
    kept = Load("y0", (vi, vj), dtype)

    def row(name, body):
        return block(name, body, vi=(n, v("i_max_0")))

    def element(name, body, j, *kind):
        return block(name, body, vi=(n, v("i_max_0")), vj=(COLUMNS, v(j), *kind))

    return Function("softmax", (X2, out), Seq((
        Alloc("max_0", (n,), F32), Alloc("sum_3", (n,), F32),
        loop("i_max_0", n, row("max_0__reduce_init", Store("max_0", (vi,), const(-np.inf, F32))),
             loop("j_max_0", COLUMNS, element("max_0", Reduce("max_0", (vi,), "max", x0(vi, vj)), "j_max_0", "R")),
             row("sum_3__reduce_init", Store("sum_3", (vi,), const(0, F32))),
             loop("j_exp_2", COLUMNS,
                  element("exp_2", Seq((Let("subtract_1", binary("sub", x0(vi, vj), top)),
                                        Store("y0", (vi, vj), cast(unary("exp", Var("subtract_1", F32)), dtype)))),
                          "j_exp_2"),
                  element("sum_3", Reduce("sum_3", (vi,), "add", cast(kept, F32)), "j_exp_2", "R"), kind="vector"),
             loop("j_y0", COLUMNS, element("y0", Store("y0", (vi, vj), cast(binary("div", cast(kept, F32), total),
                                                                           dtype)), "j_y0"), kind="vector"),
             kind="parallel"))))


def test_softmax():
    x = normal(4, 7)
    f = same(softmax(4, 7), [x], [(4, 7)], rtol=1e-6)
    assert body_of(f) == """\
parallel for (i, 0, 4)
{
  max_0 := -inf
  serial for (j, 0, x0.shape[1])
  {
    v0 = x0[i, j]
    max_0 max= v0
  }
  sum_3 := 0.0f
  vectorize for (j, 0, x0.shape[1])
  {
    v0 = x0[i, j]
    subtract_1 = v0 - max_0
    exp_2 = exp(subtract_1)
    y0[i, j] = exp_2
    sum_3 += exp_2
  }
  vectorize for (j, 0, x0.shape[1])
  {
    y0[i, j] = y0[i, j] / sum_3
  }
}""".splitlines()
    y = np.empty((4, 7), F32)
    interpret(f, [x], [y])
    np.testing.assert_allclose(y, np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-6)


def test_what_is_rounded_when_it_is_stored_is_read_rounded():
    same(softmax(4, 7, BF16), [normal(4, 7)], [(4, 7)], rtol=0)


def test_a_long_sum_in_blocks_of_chunks():
    """Two levels of partial sums: scalars within, an array of chunks around."""
    n, vc, vb, vi = 100, v("vc"), v("vb"), v("vi")
    c, b, s = v("i_chunk"), v("i_block"), v("i_step")
    within = binary("add", binary("mul", b, 8), s)
    at = binary("add", binary("mul", c, 32), within)

    def inside(e):
        return binary("lt", e, ROWS)

    f = Function("total", (X, Param("y0", F32, 0, True)), Seq((
        Alloc("t_rf", (index(4),), F32), Alloc("t_rf_rf", (index(4), index(4)), F32), Alloc("t", (), F32),
        loop("i_chunk", 4, block("t_rf__reduce_init", Store("t_rf", (vc,), const(0, F32)), vc=(4, c)),
             loop("i_block", 4,
                  block("t_rf_rf__reduce_init", Store("t_rf_rf", (vc, vb), const(0, F32)), vc=(4, c), vb=(4, b)),
                  loop("i_step", 8, block("t_rf_rf", Reduce("t_rf_rf", (vc, vb), "add", x0(vi)), inside(at),
                                          vc=(4, c), vb=(4, b), vi=(n, at, "R")), kind="vector"),
                  block("t_rf", Reduce("t_rf", (vc,), "add", Load("t_rf_rf", (vc, vb), F32)),
                        vc=(4, c), vb=(4, b, "R"))), kind="parallel"),
        block("t__reduce_init", Store("t", (), const(0, F32))),
        loop("i2", 4, block("t", Reduce("t", (), "add", Load("t_rf", (vc,), F32)), vc=(4, v("i2"), "R"))),
        block("y0", Store("y0", (), Load("t", (), F32))))))
    found = same(f, [np.arange(n, dtype=F32)], [()])
    assert body_of(found) == """\
t_rf := local f32[4]
parallel for (i_chunk, 0, 4)
{
  t_rf_part := 0.0f
  serial for (i_block, 0, 4)
  {
    t_rf_rf := 0.0f
    vectorize for (i_step, 0, min(8, x0.shape[0] - i_chunk * 32 - i_block * 8))
    {
      i = i_chunk * 32 + i_block * 8 + i_step
      v0 = x0[i]
      t_rf_rf += v0
    }
    t_rf_part += t_rf_rf
  }
  t_rf[i_chunk] = t_rf_part
}
t := 0.0f
serial for (i, 0, 4)
{
  t += t_rf[i]
}
y0[()] = t""".splitlines()


def concat(kind="serial"):
    """y0 = [-x0[:, h:], x0[:, :h]] as a block of two arms, and one that reads it."""
    vi, vj, h = v("vi"), v("vj"), 3
    arms = IfThenElse(binary("lt", vj, h), Store("t", (vi, vj), unary("neg", x0(vi, binary("add", vj, h)))),
                      Store("t", (vi, vj), x0(vi, binary("sub", vj, h))))
    return Function("rotate", (X2, Y2), Seq((
        Alloc("t", (ROWS, index(2 * h)), F32), loop("i", ROWS, loop(
            "j", 2 * h, block("t", arms, vi=(ROWS, v("i")), vj=(2 * h, v("j"))),
            block("y0", Store("y0", (vi, vj), binary("add", x0(vi, vj), Load("t", (vi, vj), F32))),
                  vi=(ROWS, v("i")), vj=(2 * h, v("j"))), kind=kind)))))


@pytest.mark.parametrize("kind", ["serial", "vector"])
def test_a_loop_is_cut_where_its_body_does_something_else(kind):
    """And what reads the same elements is one loop again."""
    x = normal(2, 6)
    f = same(concat(kind), [x], [(2, 6)])
    word = {"vector": "vectorize"}.get(kind, kind)
    assert body_of(f) == f"""\
serial for (i, 0, x0.shape[0])
{{
  {word} for (j, 0, 3)
  {{
    v0 = x0[i, j + 3]
    t = -v0
    v0_2 = x0[i, j]
    y0[i, j] = v0_2 + t
    y0[i, j + 3] = v0 + v0_2
  }}
}}""".splitlines()
    y = np.empty((2, 6), F32)
    interpret(f, [x], [y])
    np.testing.assert_array_equal(y, x + np.concatenate([-x[:, 3:], x[:, :3]], 1))


def of_row(value, *at, buffer="y0"):
    return Store(buffer, (v("i"), index(at[0])), value)


J, AFTER = v("j"), binary("add", v("j"), 3)
#: (the stores of two loops over j and k, alike but for the name; whether they may be one)
NEIGHBOURS = {
    "halves": (of_row(x0(v("i"), J), J), of_row(x0(v("i"), J), AFTER), True),
    "the same element": (of_row(x0(v("i"), J), J), of_row(x0(v("i"), J), J), True),
    "odd ones": (of_row(x0(v("i"), J), binary("mul", J, 2)),
                 of_row(x0(v("i"), J), binary("add", binary("mul", J, 2), 1)), True),
    "halves that overlap": (of_row(x0(v("i"), J), J), of_row(x0(v("i"), J), binary("add", J, 2)), False),
    "backwards": (of_row(x0(v("i"), J), J), of_row(x0(v("i"), J), binary("sub", 2, J)), False),
    "always one": (of_row(x0(v("i"), J), J), of_row(x0(v("i"), J), 1), False),
    "an element that comes later": (of_row(x0(v("i"), J), J), of_row(
        binary("add", x0(v("i"), J), Load("y0", (v("i"), binary("sub", 2, J)), F32)), AFTER), False),
    "an element of this iteration": (of_row(x0(v("i"), J), J), of_row(
        binary("add", x0(v("i"), J), Load("y0", (v("i"), J), F32)), AFTER), True),
    "nothing alike": (of_row(x0(v("i"), J), J), of_row(x0(v("i"), AFTER), AFTER), False),
}


@pytest.mark.parametrize("case", NEIGHBOURS)
def test_loops_that_read_the_same_elements_are_one(case):
    first, second, one = NEIGHBOURS[case]
    f = Function("f", (X2, Y2), loop("i", ROWS, loop("z", 6, of_row(const(0, F32), v("z"))), loop("j", 3, first), For(
        "k", index(3), map_expressions(lambda e: substitute(e, {"j": v("k")}), second))))
    fused = fuse_loops(f)
    both(f, fused, normal(2, 6), shapes=[(2, 6)])
    assert text(fused).count("for (") == (3 if one else 4)


def test_loops_of_other_extents_or_kinds_stay():
    for other in (loop("k", 2, of_row(x0(v("i"), v("k")), v("k"))),
                  loop("k", 3, of_row(x0(v("i"), v("k")), v("k")), kind="vector"),
                  loop("k", 3, Init("s", x0(v("i"), v("k"))), of_row(Var("s", F32), v("k")))):
        f = Function("f", (X2, Y2), loop("i", ROWS, loop("j", 3, of_row(x0(v("i"), J), J)), other))
        assert fuse_loops(f) == f


def test_a_loop_is_cut_at_both_ends_of_what_is_in_between():
    """A padded row: the condition has two parts."""
    vi, inside = v("vi"), binary("and", binary("ge", v("vi"), 1), binary("lt", v("vi"), binary("add", ROWS, 1)))
    n = binary("add", ROWS, 3)
    body = IfThenElse(inside, Store("y0", (vi,), x0(binary("sub", vi, 1))), Store("y0", (vi,), const(0.5, F32)))
    f = same(Function("pad", (X, Y), loop("i", n, block("y0", body, vi=(n, v("i"))))), [normal(4)], [(7,)])
    assert body_of(f) == """\
y0[0] = 0.5f
serial for (i, 0, x0.shape[0])
{
  v0 = x0[i]
  y0[i + 1] = v0
}
serial for (i, 0, 2)
{
  y0[i + x0.shape[0] + 1] = 0.5f
}""".splitlines()


def test_a_loop_is_cut_at_one_iteration():
    """The diagonal."""
    vi, vj = v("vi"), v("vj")
    body = IfThenElse(binary("eq", vi, vj), Store("y0", (vi, vj), const(1, F32)), Store("y0", (vi, vj), const(0, F32)))
    nest = loop("i", ROWS, loop("j", ROWS, block("y0", body, vi=(ROWS, v("i")), vj=(ROWS, v("j")))))
    f = same(Function("eye", (X, Y2), nest), [normal(4)], [(4, 4)])
    assert "if" not in text(f) and text(f).count("for (j") == 3


@pytest.mark.parametrize("where", [("or", "lt", "ge"), ("and", "ne", "lt")])
def test_other_conditions_of_a_loop(where):
    vi, (op, first, second) = v("vi"), where
    cond = binary(op, binary(first, vi, 2), binary(second, vi, 4))
    body = IfThenElse(cond, Store("y0", (vi,), x0(vi)), Store("y0", (vi,), const(0.5, F32)))
    f = same(Function("f", (X, Y), loop("i", ROWS, block("y0", body, vi=(ROWS, v("i"))))), [normal(7)], [(7,)])
    assert "if" not in text(f)


def test_conditions_that_no_bound_can_say_stay():
    vi = v("vi")
    cond = binary("eq", binary("mod", vi, 2), 0)
    body = IfThenElse(cond, Store("y0", (vi,), x0(vi)), Store("y0", (vi,), const(0.5, F32)))
    f = same(Function("f", (X, Y), loop("i", ROWS, block("y0", body, vi=(ROWS, v("i"))))), [normal(7)], [(7,)])
    assert "if (i % 2 == 0)" in text(f)


def test_an_element_that_is_set_in_a_loop_stays_an_array():
    """The last one wins: no scalar, which is set once, can stand for it."""
    vi = v("vi")
    f = same(Function("last", (X, Param("y0", F32, 0, True)), Seq((
        Alloc("t", (), F32), loop("i", ROWS, block("t", Store("t", (), x0(vi)), vi=(ROWS, v("i")))),
        block("y0", Store("y0", (), Load("t", (), F32)))))), [normal(5)], [()])
    assert body_of(f)[0] == "t := local f32[1]" and body_of(f)[-1] == "y0[()] = t[0]"


def test_unrolled_loops_are_written_out():
    vi = v("vi")
    at = binary("add", binary("mul", v("i"), 3), v("k"))
    t = Let("t", binary("mul", x0(vi), x0(vi)))
    body = Seq((t, Store("y0", (vi,), binary("add", Var("t", F32), Var("t", F32)))))

    def nest(extent):
        return loop("i", 2, loop("k", extent, block("y0", body, vi=(ROWS, at)), kind="unroll"))
    f = same(Function("f", (X, Y), nest(3)), [normal(6)], [(6,)])
    assert text(f).count(" for ") == 1 and text(f).count("y0[") == 3
    f = same(Function("f", (X, Y), nest(binary("floordiv", ROWS, 2))), [normal(6)], [(6,)])
    assert "serial for (k" in text(f)


# ------------------------------------------------------------------------------------------------- single passes
def flat(*body, params=(X, Y)):
    return Function("f", params, Seq(body))


def both(function, other, *inputs, shapes):
    """Two functions that mean the same."""
    results = []
    for f in (function, other):
        results.append([np.empty(s, p.dtype) for s, p in zip(shapes, [p for p in f.params if p.output], strict=True)])
        interpret(f, inputs, results[-1])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


Z = Param("z0", F32, 1, True)
EXP = unary("exp", x0(v("i")))


def test_share_gives_a_name_to_what_comes_twice():
    f = flat(loop("i", ROWS, Store("y0", (v("i"),), binary("add", EXP, EXP)),
                  Store("z0", (v("i"),), binary("mul", EXP, x0(v("i"))))), params=(X, Y, Z))
    shared = share(f)
    assert body_of(shared)[2:-1] == ["  t2 = x0[i]", "  t = exp(t2)", "  y0[i] = t + t", "  z0[i] = t * t2"]
    both(f, shared, normal(4), shapes=[(4,), (4,)])


def test_share_and_merge_leave_what_changes():
    """An element that is written in between is read again."""
    y = Load("y0", (v("i"),), F32)
    def store(value):
        return Store("y0", (v("i"),), value)
    f = flat(loop("i", ROWS, store(x0(v("i"))), Let("a", unary("exp", y)), store(Var("a", F32)),
                  Let("b", unary("exp", y)), store(Var("b", F32))))
    for change in (share, merge, eliminate_invariant_loop):
        assert text(change(f)).count("exp(y0[i])") == 2
        both(f, change(f), normal(4), shapes=[(4,)])
    total = Var("s", F32)
    f = flat(Init("s", const(0, F32)), Let("a", binary("add", total, const(1, F32))),
             loop("i", ROWS, Accumulate("s", "add", x0(v("i")))), Let("b", binary("add", total, const(1, F32))),
             Store("y0", (), binary("sub", Var("b", F32), Var("a", F32))), params=(X, Param("y0", F32, 0, True)))
    for change in (share, merge, eliminate_invariant_loop):
        both(f, change(f), normal(4), shapes=[()])


def test_merge_gives_loops_one_name_for_what_they_both_had_fixed():
    def inner(buffer, name):
        return loop(f"j_{buffer}", COLUMNS, Let(name, x0(v("i"), index(0))), Store(
            buffer, (v("i"), v(f"j_{buffer}")), binary("mul", x0(v("i"), v(f"j_{buffer}")), Var(name, F32))))
    f = Function("f", (X2, Y2, Param("z0", F32, 2, True)), loop("i", ROWS, inner("y0", "a"), inner("z0", "b")))
    hoisted = eliminate_invariant_loop(f)
    assert body_of(hoisted)[2] == "  a = x0[i, 0]" and text(hoisted).count("x0[i, 0]") == 1
    both(f, hoisted, normal(2, 3), shapes=[(2, 3)] * 2)


def test_a_name_means_something_else_in_the_loop_next_to_it():
    """What is hoisted out of the first and the third loop is called as what the second has for itself."""
    def inner(k, value):
        j = f"j{k}"
        return loop(j, COLUMNS, Let("a", value(v(j))), Store(f"y{k}", (v("i"), v(j)), Var("a", F32)))
    params = (X2, *(Param(f"y{k}", F32, 2, True) for k in range(3)))
    f = Function("f", params, loop("i", ROWS, inner(0, lambda j: x0(v("i"), index(0))), inner(
        1, lambda j: x0(v("i"), j)), inner(2, lambda j: x0(v("i"), index(1)))))
    both(f, eliminate_invariant_loop(f), normal(2, 3), shapes=[(2, 3)] * 3)


def test_a_load_stays_in_a_loop_that_may_be_skipped():
    """Before the second row, there is no row above."""
    above = x0(binary("sub", v("i"), 1), index(0))
    f = Function("f", (X2, Y2), loop(
        "i", ROWS, loop("j", COLUMNS, Store("y0", (v("i"), v("j")), const(0, F32))),
        loop("k", binary("min", v("i"), COLUMNS), Let("a", above), Store("y0", (v("i"), v("k")), Var("a", F32)))))
    both(f, eliminate_invariant_loop(f), normal(3, 4), shapes=[(3, 4)])


def test_what_threads_share_stays_around_them():
    """Four elements turned around in shared memory, by a GPU block for each four."""
    vb, vt, b, t = v("vb"), v("vt"), v("b"), v("t")
    groups = binary("floordiv", ROWS, 4)

    def at(k):
        return binary("add", binary("mul", vb, 4), k)

    def each(name, body):
        return block(name, body, vb=(groups, b), vt=(4, t))
    back = binary("sub", index(3), vt)
    f = Function("turn", (X, Y), Seq((
        Alloc("s", (groups, index(4)), F32, "shared"), Alloc("own", (groups, index(4)), F32),
        loop("b", groups, loop("t", 4, each("s", Store("s", (vb, vt), x0(at(vt)))), SyncThreads(),
                               each("own", Store("own", (vb, vt), Load("s", (vb, back), F32))),
                               each("y0", Store("y0", (at(vt),), unary("neg", Load("own", (vb, vt), F32)))),
                               kind="threadIdx.x"), kind="blockIdx.x"))))
    found = same(f, [normal(8)], [(8,)])
    assert body_of(found)[:5] == [
        "thread_bind[blockIdx.x] for (b, 0, x0.shape[0] // 4)", "{", "  s := shared f32[4]",
        "  thread_bind[threadIdx.x] for (t, 0, 4)", "  {"]
    assert text(found).count("shared") == 1 and "local" not in text(found)
