"""Blocks, barriers and concurrent loops: what the interpreter makes of them, and what verify and it refuse."""

import numpy as np
import pytest

from minipd.cinn.ir.ast import (
    INT64,
    Accumulate,
    Alloc,
    Call,
    Const,
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
from minipd.cinn.ir.build import binary, const, index, unary
from minipd.cinn.ir.interpreter import LoopError, interpret
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.verify import InvalidFunction, verify
from minipd.cinn.ir.walk import blocks, buffers_read, buffers_written, loops, rename, statements

F32 = np.dtype("f4")
i, j, vi, vj = Var("i"), Var("j"), Var("vi"), Var("vj")
X2, Y1 = Param("x", F32, 2), Param("y", F32, 1, True)
S_I, R_J = IterVar("vi", Dim("x", 0)), IterVar("vj", Dim("x", 1), "R")


def block(name, body, iter_vars=(S_I,), values=(i,), **more):
    return ScheduleBlock(name, tuple(iter_vars), tuple(values), body, **more)


def row_sum(kind="serial"):
    """Sums of rows: an init block, the sum, and a copy to the output."""
    return Function("row_sum", (X2, Y1), Seq((
        Alloc("s", (Dim("x", 0),), F32),
        For("i", Dim("x", 0), block("s__reduce_init", Store("s", (vi,), const(0, F32)))),
        For("i_s", Dim("x", 0), For("j", Dim("x", 1), block(
            "s", Reduce("s", (vi,), "add", Load("x", (vi, vj), F32)), (S_I, R_J), (Var("i_s"), j))), kind),
        For("i_y", Dim("x", 0), block("y", Store("y", (vi,), Load("s", (vi,), F32)), values=(Var("i_y"),))))))


def run(function, *inputs, shape=None, dtype=np.float32, shuffle=None):
    y = np.empty(len(inputs[0]) if shape is None else shape, dtype)
    interpret(function, inputs, [y], shuffle)
    return y


# ------------------------------------------------------------------------------------------------------ blocks
def test_a_reduction_in_blocks():
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    verify(row_sum())
    np.testing.assert_array_equal(run(row_sum(), x), x.sum(1))
    np.testing.assert_array_equal(run(row_sum("parallel"), x, shuffle=1), x.sum(1))


def test_blocks_print_as_in_paddles_documentation():
    split = block("y", Store("y", (vi,), binary("mul", Load("x", (vi,), F32), const(2, F32))),
                  values=(binary("add", binary("mul", i, 4), j),), annotations=(("auto_unroll", 8),),
                  predicate=binary("lt", binary("add", binary("mul", i, 4), j), Dim("x", 0)))
    inner = For("j", const(4, INT64), split, "vector")
    nest = For("i", const(3, INT64), inner, "parallel", (("a", 1),))
    f = Function("double", (Param("x", F32, 1), Y1), nest, ("scale",))
    assert text(f) == """\
# scale
function double (x: f32[:], y: f32[:] out)
{
  ScheduleBlock(root)
  {
    parallel for (i, 0, 3) attrs(a: 1)
    {
      vectorize for (j, 0, 4)
      {
        ScheduleBlock(y)
        {
          vi = axis.bind(i * 4 + j)
          where (i * 4 + j < x.shape[0])
          attrs(auto_unroll: 8)
          y[vi] = x[vi] * 2.0f
        }
      }
    }
  }
}
"""
    verify(f)
    x = np.arange(10, dtype=np.float32)
    np.testing.assert_array_equal(run(f, x), x * 2)


def test_all_other_statements_print():
    s = Seq((Alloc("t", (const(4, INT64),), F32, "shared"), SyncThreads(),
             For("i", const(4, INT64), IfThenElse(binary("lt", i, 2), Reduce("t", (i,), "max", const(1, F32)),
                                                  Reduce("t", (i,), "mul", Call("log1p", (const(1, F32),), F32))),
                 "threadIdx.x")))
    assert text(s).splitlines() == [
        "t := shared f32[4]", "__syncthreads()", "thread_bind[threadIdx.x] for (i, 0, 4)", "{", "  if (i < 2)", "  {",
        "    t[i] max= 1.0f", "  }", "  else", "  {", "    t[i] *= log1p(1.0f)", "  }", "}"]


@pytest.mark.parametrize("build, message", [
    (lambda: block("b", Seq(()), (S_I,), (i, j)), "block b: 1 iter vars, 2 values"),
    (lambda: block("b", Seq(()), (S_I, S_I), (i, j)), "two iter vars of one name"),
    (lambda: block("b", Seq(()), predicate=i), "expected a bool predicate, got int64"),
    (lambda: IterVar("v", const(2, INT64), "X"), "expected the kind S or R"),
    (lambda: IfThenElse(i, Seq(())), "expected a bool condition, got int64"),
    (lambda: For("i", const(2, INT64), Seq(()), "fast"), "no loop kind 'fast'; there are serial, parallel"),
    (lambda: Alloc("t", (), F32, "slow"), "no memory 'slow'"),
    (lambda: Reduce("s", (), "sub", const(1, F32)), "no accumulation 'sub'"),
    (lambda: Reduce("s", (), "and", const(1, F32)), "accumulation 'and' of float32"),
    (lambda: Accumulate("s", "add", Const(True, np.dtype(bool))), "accumulation 'add' of bool"),
    (lambda: Call("gamma", (), F32), "no function 'gamma'; there are log1p"),
    (lambda: Call("log1p", (i,), F32), "log1p of int64 as float32: expected one dtype"),
])
def test_what_cannot_be_built(build, message):
    with pytest.raises(TypeError, match=message):
        build()


def one_block(body=None, **how):
    body = body or Store("y", (vi,), Load("x", (vi,), F32))
    return Function("f", (Param("x", F32, 1), Y1), For("i", Dim("x", 0), block("y", body, **how)))


@pytest.mark.parametrize("function, message", [
    (one_block(values=(binary("add", i, 1),)), "vi is 3, outside of its extent 3"),
    (one_block(Store("y", (i,), Load("x", (vi,), F32))), "i: it has no value here"),
    (one_block(predicate=binary("lt", i, 2)), r"output y is not written at \[2\]"),
    (one_block(Reduce("y", (vi,), "add", Load("x", (vi,), F32))), r"y\[0\] is read before it is written"),
    (one_block(Reduce("x", (vi,), "add", Load("x", (vi,), F32))), "x is an input"),
    (one_block(SyncThreads()), "there are no threads here"),
])
def test_what_the_interpreter_refuses_of_blocks(function, message):
    with pytest.raises(LoopError, match=message):
        run(function, np.ones(3, np.float32))


def wrong_nest(*stmts):
    return Function("f", (Param("x", F32, 1), Y1), Seq(stmts))


GOOD = For("i", Dim("x", 0), block("y", Store("y", (vi,), Load("x", (vi,), F32))))


@pytest.mark.parametrize("function, message", [
    (wrong_nest(Store("y", (index(0),), const(1, F32))), "it stands in no block"),
    (wrong_nest(GOOD, GOOD), "y: two blocks of this name"),
    (wrong_nest(GOOD, For("i", Dim("x", 0), block("z", GOOD.body.body))), "i: two loops of this name"),
    (wrong_nest(Alloc("x", (), F32), GOOD), "x: two buffers of this name"),
    (wrong_nest(For("vi", Dim("x", 0), block("y", GOOD.body.body, values=(Var("vi"),)))), "vi is called like a loop"),
    (wrong_nest(For("i", Dim("x", 0), block("y", GOOD.body.body, values=(j,)))), "an iter value reads j"),
    (wrong_nest(For("i", Dim("x", 0), block("y", Store("y", (i,), const(1, F32))))), "the result reads i"),
    (wrong_nest(For("i", Dim("x", 0), block("y", Store("t", (vi,), const(1, F32))))), "no buffer t here"),
    (wrong_nest(For("i", Dim("x", 0), block("y", Store("y", (vi, vi), const(1, F32))))), "taken for float32 with 2"),
    (wrong_nest(For("i", Dim("x", 0), block("y", Store("y", (vi,), index(1))))), "taken for int64 with 1"),
    (wrong_nest(For("i", Dim("x", 0), block("y", Store("x", (vi,), const(1, F32))))), "it writes the input x"),
    (wrong_nest(For("i", Dim("x", 0), block("y", Let("a", const(1, F32))))), "expected a Store or Reduce at the end"),
    (wrong_nest(For("i", Dim("x", 0), block("y", Seq((Store("y", (vi,), const(1, F32)),) * 2)))), "expected Lets and"),
    (wrong_nest(For("i", Dim("x", 3), GOOD.body)), r"no parameter has x.shape\[3\]"),
    (wrong_nest(For("i", Dim("x", 0), block("y", GOOD.body.body, (IterVar("vi", Dim("x", 0), "R"),)))),
     "it reduces over vi, but ends in a Store"),
    (wrong_nest(For("i", Dim("x", 0), block("y", Reduce("y", (vi,), "add", const(1, F32)),
                                            (IterVar("vi", Dim("x", 0), "R"),)))), "has a reduced iter var"),
    (wrong_nest(For("i", Dim("x", 0), Init("a", const(1, F32)))), "it stands in no block"),
])
def test_what_verify_refuses(function, message):
    with pytest.raises(InvalidFunction, match=message):
        verify(function)


def test_a_block_may_end_in_arms():
    """A concatenation: each arm reads what is there only in its part."""
    x, z = Load("x", (vi,), F32), Load("z", (binary("sub", vi, Dim("x", 0)),), F32)
    both = binary("add", Dim("x", 0), Dim("z", 0))
    f = Function("concat", (Param("x", F32, 1), Param("z", F32, 1), Y1), For("i", both, block("y", IfThenElse(
        binary("lt", vi, Dim("x", 0)), Store("y", (vi,), x), Store("y", (vi,), z)), (IterVar("vi", both),))))
    verify(f)
    a, b = np.arange(3, dtype=np.float32), np.arange(10, 14, dtype=np.float32)
    np.testing.assert_array_equal(run(f, a, b, shape=7), np.concatenate([a, b]))


def test_sizes_may_have_names():
    half = binary("floordiv", Dim("x", 0), 2)
    position = binary("add", binary("mul", Var("i_0"), Var("n")), Var("i_1"))
    copy = block("y", Store("y", (vi,), Load("x", (vi,), F32)), values=(position,))
    f = Function("f", (Param("x", F32, 1), Y1), Seq((Let("n", half), For("i_0", Const(2, INT64), For(
        "i_1", Var("n"), copy)))))
    verify(f)
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(run(f, x), x)


def test_walking_and_renaming():
    f = row_sum()
    assert [b.name for b in blocks(f.body)] == ["s__reduce_init", "s", "y"]
    assert [x.var for x in loops(f.body)] == ["i", "i_s", "j", "i_y"]
    assert buffers_read(f.body) == {"s", "x"} and buffers_written(f.body) == {"s", "y"}
    new = rename(f.body, {"i_s": "k", "vi": "vk"}, {"s": "t"}, {"s": "t"})
    assert [b.name for b in blocks(new)] == ["s__reduce_init", "t", "y"]
    assert "vk, vj = axis.bind(k, j)" in text(new) and "t[vk] += x[vk, vj]" in text(new)
    assert "t := local" in text(new)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run(Function("f", f.params, new), x), x.sum(1))
    assert sum(isinstance(s, ScheduleBlock) for s in statements(new)) == 3


def test_calls_mean_what_numpy_and_scipy_mean():
    f = one_block(Store("y", (vi,), Call("log1p", (Load("x", (vi,), F32),), F32)))
    x = np.array([0, 1, 1e-8], np.float32)
    np.testing.assert_array_equal(run(f, x), np.log1p(x))
    f = one_block(Store("y", (vi,), Call("gammaln", (Load("x", (vi,), F32),), F32)))
    np.testing.assert_allclose(run(f, np.array([1, 3, 5], np.float32)), [0, np.log(2), np.log(24)], rtol=1e-6)


# ----------------------------------------------------------------------------------------- iterations that meet
def over(*body, kind="parallel", params=None, extent=None):
    return Function("f", params or (Param("x", F32, 1), Y1), For("i", extent or Dim("x", 0), Seq(body), kind))


@pytest.mark.parametrize("kind", ["parallel", "blockIdx.x", "threadIdx.x"])
@pytest.mark.parametrize("shuffle", [None, 0])
@pytest.mark.parametrize("stmts, message", [
    ([Store("y", (index(0),), Load("x", (i,), F32))], r"y\[0\] is read or written in another iteration"),
    ([Store("y", (i,), Load("x", (i,), F32)), Let("a", Load("y", (index(0),), F32))],
     "is written in another iteration|read before"),
    ([IfThenElse(binary("gt", i, 0), Let("a", Load("y", (index(0),), F32))), Store("y", (i,), Load("x", (i,), F32))],
     "is written in another iteration|read before"),
])
def test_iterations_that_meet(stmts, message, kind, shuffle):
    with pytest.raises(LoopError, match=message):
        run(over(*stmts, kind=kind), np.ones(3, np.float32), shuffle=shuffle)


def test_loops_one_behind_the_other_do_not_meet():
    back = binary("sub", binary("sub", Dim("x", 0), 1), i)
    two = Function("f", (Param("x", F32, 1), Param("t", F32, 1, True), Y1), For("k", const(2, INT64), Seq((
        For("i", Dim("x", 0), Store("t", (i,), Load("x", (i,), F32)), "parallel"),
        For("i", Dim("x", 0), Store("y", (i,), Load("t", (back,), F32)), "parallel")))))
    x, t, y = np.arange(4, dtype=np.float32), np.empty(4, np.float32), np.empty(4, np.float32)
    interpret(two, [x], [t, y], shuffle=3)
    np.testing.assert_array_equal(y, x[::-1])


def test_parallel_iterations_have_arrays_of_their_own():
    f = over(Alloc("t", (index(1),), F32), Store("t", (index(0),), Load("x", (i,), F32)),
             Store("y", (i,), Load("t", (index(0),), F32)))
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(run(f, x, shuffle=5), x)


# --------------------------------------------------------------------------------------------------- GPU threads
def reversed_in_blocks(*, sync=True, memory="shared", threads=4):
    """Each GPU block turns its four elements around, through shared memory."""
    b, t = Var("b"), Var("t")
    at = binary("add", binary("mul", b, 4), t)
    body = [Store("s", (t,), Load("x", (at,), F32)), SyncThreads(),
            Store("y", (at,), Load("s", (binary("sub", index(3), t),), F32))]
    if not sync:
        del body[1]
    inner = For("t", index(threads), Seq(tuple(body)), "threadIdx.x")
    nest = For("b", binary("floordiv", Dim("x", 0), 4), inner, "blockIdx.x")
    return Function("reverse", (Param("x", F32, 1), Y1), Seq((Alloc("s", (index(4),), F32, memory), nest)))


@pytest.mark.parametrize("shuffle", [None, 0, 1])
def test_threads_meet_at_a_barrier(shuffle):
    x = np.arange(12, dtype=np.float32)
    np.testing.assert_array_equal(run(reversed_in_blocks(), x, shuffle=shuffle), x.reshape(3, 4)[:, ::-1].ravel())
    with pytest.raises(LoopError, match="is written in another iteration|read before"):
        run(reversed_in_blocks(sync=False), x, shuffle=shuffle)
    with pytest.raises(LoopError, match="read before it is written"):       # each thread has its own
        run(reversed_in_blocks(memory="local"), x, shuffle=shuffle)
    with pytest.raises(LoopError, match="is read or written in another iteration"):     # all GPU blocks have one
        run(reversed_in_blocks(memory="global"), x, shuffle=shuffle)


def test_shared_memory_is_new_in_every_gpu_block():
    """c6: what an earlier block has left there is not to be relied upon."""
    b, t = Var("b"), Var("t")
    body = IfThenElse(binary("eq", b, 0), Store("s", (t,), const(1, F32)))
    f = Function("f", (Param("x", F32, 1), Y1), Seq((Alloc("s", (index(2),), F32, "shared"), For("b", index(2), For(
        "t", index(2), Seq((body, SyncThreads(), Store("y", (binary("add", binary("mul", b, 2), t),),
                                                       Load("s", (t,), F32)))), "threadIdx.x"), "blockIdx.x"))))
    with pytest.raises(LoopError, match=r"s\[0\] is read before it is written"):
        run(f, np.ones(4, np.float32))


def test_c7_a_thread_that_ends_before_a_barrier():
    t = Var("t")
    f = Function("f", (Param("x", F32, 1), Y1), For("t", Dim("x", 0), IfThenElse(binary("lt", t, 2), Seq((
        SyncThreads(), Store("y", (t,), Load("x", (t,), F32))))), "threadIdx.x"))
    with pytest.raises(LoopError, match="1 of 3 threads have ended while others wait at a __syncthreads"):
        run(f, np.ones(3, np.float32))
    np.testing.assert_array_equal(run(f, np.ones(2, np.float32)), [1, 1])


def test_c7_different_barriers():
    t = Var("t")
    f = Function("f", (Param("x", F32, 1), Y1), For("t", Dim("x", 0), Seq((
        IfThenElse(binary("lt", t, 2), SyncThreads(), SyncThreads()), Store("y", (t,), const(1, F32)))), "threadIdx.x"))
    with pytest.raises(LoopError, match="different __syncthreads"):
        run(f, np.ones(3, np.float32))


@pytest.mark.parametrize("shuffle", [None, 2])
def test_a_tree_reduction_in_two_dimensions_of_threads(shuffle):
    """Sums of rows: threadIdx.y picks the row, threadIdx.x adds in halves, with a barrier after each."""
    r, t = Var("r"), Var("t")
    steps = []
    for width in (4, 2, 1):
        far = Load("p", (r, binary("add", t, width)), F32)
        steps += [IfThenElse(binary("lt", t, width), Reduce("p", (r, t), "add", far)), SyncThreads()]
    body = Seq((Store("p", (r, t), Load("x", (r, t), F32)), SyncThreads(), *steps,
                IfThenElse(binary("eq", t, 0), Store("y", (r,), Load("p", (r, index(0)), F32)))))
    f = Function("f", (X2, Y1), Seq((Alloc("p", (Dim("x", 0), index(8)), F32, "shared"), For(
        "r", Dim("x", 0), For("t", index(8), body, "threadIdx.x"), "threadIdx.y"))))
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    np.testing.assert_array_equal(run(f, x, shuffle=shuffle), x.sum(1))


def test_barriers_between_loops_of_threads():
    """The makers of threads wait for them, and may come to a barrier themselves."""
    r, t = Var("r"), Var("t")
    first = For("t", index(2), Store("p", (r, t), Load("x", (r, t), F32)), "threadIdx.x")
    other = binary("sub", index(2), r)
    second = For("u", index(2), Store("y", (r, Var("u")), Load("p", (other, Var("u")), F32)), "threadIdx.x")
    f = Function("f", (X2, Param("y", F32, 2, True)), Seq((Alloc("p", (index(3), index(2)), F32, "shared"), For(
        "r", index(3), Seq((first, SyncThreads(), second)), "threadIdx.y"))))
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(run(f, x, shape=(3, 2)), x[::-1])


def test_what_does_not_belong_inside_threads():
    t = Var("t")
    inner = For("b", index(1), Store("y", (i,), const(1, F32)), "blockIdx.x")
    with pytest.raises(LoopError, match="inside a loop over blockIdx.x or over threads"):
        run(over(inner, kind="threadIdx.x"), np.ones(2, np.float32))
    shared = Alloc("s", (index(1),), F32, "shared")
    with pytest.raises(LoopError, match="shared memory belongs around the loops over threads"):
        run(Function("f", (Param("x", F32, 1), Y1), For("t", Dim("x", 0), Seq((shared, Store("y", (t,), unary(
            "exp", Load("x", (t,), F32))))), "threadIdx.x")), np.ones(2, np.float32))
    twice = For("t", Dim("x", 0), For("u", index(1), Store("y", (t,), const(1, F32)), "threadIdx.x"), "threadIdx.x")
    with pytest.raises(LoopError, match="inside a loop over threadIdx.x"):
        run(Function("f", (Param("x", F32, 1), Y1), twice), np.ones(2, np.float32))
