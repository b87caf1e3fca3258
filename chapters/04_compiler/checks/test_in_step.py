"""Which inputs a kernel may write its results over."""

import itertools

import numpy as np

from minipd.cinn.ir.ast import INT64, Accumulate, Const, For, Function, Init, Let, Load, Param, Seq, Store, Var
from minipd.cinn.ir.build import binary
from minipd.cinn.ir.interpreter import interpret
from minipd.cinn.ir.printer import text
from minipd.cinn.overwriting import overwritable
from tools.course.checking import check

F64 = np.dtype("float64")
I, J, K = Var("i"), Var("j"), Var("k")
N = Const(3, INT64)


def load(buffer, *index):
    return Load(buffer, index, F64)


def over(var, *stmts):
    return For(var, N, Seq(stmts) if len(stmts) > 1 else stmts[0])


def function(body, x=1, y=1, **others):
    """A function of x and others (name -> number of axes) with the result y; all extents are 3."""
    axes = {"x": x, **others, "y": y}
    return Function("f", tuple(Param(n, F64, d, n == "y") for n, d in axes.items()), body)


def may(want, f):
    """Whether y may be written over x."""
    check(want, lambda: 0 in overwritable(f).get(0, ()), f"whether y may be written over x in\n{text(f)}")


def test_element_by_element():
    may(True, function(over("i", Store("y", (I,), binary("mul", load("x", I), load("x", I))))))


def test_another_element():
    may(False, function(over("i", Store("y", (I,), load("x", binary("sub", Const(2, INT64), I))))))


def test_one_element_for_all():
    may(False, function(over("i", Store("y", (I,), load("x", Const(0, INT64))))))


def test_two_axes():
    may(True, function(over("i", over("j", Store("y", (I, J), load("x", I, J)))), 2, 2))


def test_transposed():
    may(False, function(over("i", over("j", Store("y", (I, J), load("x", J, I)))), 2, 2))


def test_a_loop_that_the_index_does_not_name():
    """y[j] = x[j] + b[i]: in the second iteration of i, x[j] is y[j] already."""
    body = over("i", over("j", Store("y", (J,), binary("add", load("x", J), load("b", I)))))
    may(False, function(body, b=1))


def test_a_row_is_read_before_it_is_written():
    """What softmax and the norms do: a sum over the row, then the row once more."""
    row = (Init("s", Const(0.0, F64)), over("j", Accumulate("s", "add", load("x", I, J))),
           over("j", Store("y", (I, J), binary("div", load("x", I, J), Var("s", F64)))))
    may(True, function(over("i", *row), 2, 2))


def test_loops_of_other_names():
    row = (Init("s", Const(0.0, F64)), over("k", Accumulate("s", "add", load("x", I, K))),
           over("j", Store("y", (I, J), binary("div", load("x", I, J), Var("s", F64)))))
    may(True, function(over("i", *row), 2, 2))


def test_another_row_is_read():
    row = (Init("s", Const(0.0, F64)), over("k", Accumulate("s", "add", load("x", Const(0, INT64), K))),
           over("j", Store("y", (I, J), binary("mul", load("x", I, J), Var("s", F64)))))
    may(False, function(over("i", *row), 2, 2))


def test_a_column_is_read():
    row = (Init("s", Const(0.0, F64)), over("k", Accumulate("s", "add", load("x", K, I))),
           over("j", Store("y", (I, J), binary("mul", load("x", I, J), Var("s", F64)))))
    may(False, function(over("i", *row), 2, 2))


def test_all_is_read_before_anything_is_written():
    body = Seq((Init("s", Const(0.0, F64)), over("i", Accumulate("s", "add", load("x", I))),
                over("j", Store("y", (J,), binary("div", load("x", J), Var("s", F64))))))
    may(True, function(body))


def test_read_again_after_it_was_written():
    body = Seq((over("i", Store("y", (I,), load("x", I))),
                Init("s", Const(0.0, F64)), over("i", Accumulate("s", "add", load("x", I))),
                Store("z", (), Var("s", F64))))
    f = function(body)
    may(False, Function(f.name, (*f.params, Param("z", F64, 0, True)), body))


def test_an_index_with_a_name():
    body = over("i", Let("k", binary("sub", Const(2, INT64), I)), Store("y", (K,), load("x", K)))
    may(True, function(body))
    body = over("i", Let("k", binary("sub", Const(2, INT64), I)), Store("y", (I,), load("x", K)))
    may(False, function(body))


def test_random_functions():
    """Whatever is allowed is right: run it with one array for both, and with two."""
    rng = np.random.default_rng(0)
    indices = [*itertools.product((I, J, Const(1, INT64), binary("sub", Const(2, INT64), I)), repeat=2)]
    stored = [(I, J), (J, I), (I, binary("sub", Const(2, INT64), J))]
    allowed = 0
    for _ in range(400):
        place = stored[int(rng.integers(0, len(stored)))]
        reads = [indices[int(k)] if rng.random() < 0.4 else place for k in rng.integers(0, len(indices), 2)]
        value = binary("add", load("x", *reads[0]), binary("mul", load("x", *reads[1]), load("x", *place)))
        inner = over("j", Store("y", place, value))
        if rng.random() < 0.5:
            rows = over("j", Accumulate("s", "add", load("x", *reads[0])))
            inner = Seq((Init("s", Const(0.0, F64)), rows, over("j", Store("y", place, binary(
                "mul", load("x", *place), Var("s", F64))))))
        f = function(over("i", inner), 2, 2)
        if 0 not in overwritable(f).get(0, ()):
            continue
        allowed += 1
        x = rng.standard_normal((3, 3))
        apart, shared = np.empty((3, 3)), x.copy()
        interpret(f, [x], [apart])
        interpret(f, [shared], [shared])
        check(apart, shared, f"y, written over x = {np.round(x, 2).tolist()}, in\n{text(f)}")
    check(True, allowed > 5, "whether anything is allowed in 400 random functions")
