"""An operator of two operands, said with less: what holds for ints, and what for floats."""

import itertools

import numpy as np

from minipd.cinn.ir.ast import BOOL, INT64, Const, Function, Let, Param, Seq, Store, Var
from minipd.cinn.ir.build import binary, const, unary
from minipd.cinn.ir.interpreter import LoopError, interpret
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.simplify import simplify_expression
from tools.course.checking import check

F32, U8 = np.dtype("float32"), np.dtype("uint8")
V, W, I, J, B = Var("v", F32), Var("w", F32), Var("i"), Var("j"), Var("b", BOOL)
FLOATS = (0.0, -0.0, 1.0, -2.5, float("inf"), float("-inf"), float("nan"))


def becomes(want, e):
    check(want, lambda: text(simplify_expression(e)), f"{text(e)}  ({e.x.dtype})")


def f(value):
    return const(value, F32)


def test_nothing_is_added():
    becomes("v", binary("add", V, f(0)))
    becomes("v", binary("add", f(0), V))
    becomes("i", binary("add", I, 0))
    becomes("i", binary("add", 0, I))


def test_nothing_is_subtracted():
    becomes("v", binary("sub", V, f(0)))
    becomes("0.0f - v", binary("sub", f(0), V))


def test_factors_of_one():
    becomes("v", binary("mul", V, f(1)))
    becomes("v", binary("mul", f(1), V))
    becomes("i", binary("mul", I, 1))
    becomes("i", binary("mul", 1, I))


def test_divided_by_one():
    becomes("v", binary("div", V, f(1)))
    becomes("1.0f / v", binary("div", f(1), V))


def test_times_zero():
    """NaN * 0 is NaN; an int times 0 is 0."""
    becomes("v * 0.0f", binary("mul", V, f(0)))
    becomes("0", binary("mul", I, 0))


def test_a_number_and_itself():
    becomes("v - v", binary("sub", V, V))
    becomes("0", binary("sub", I, I))


def test_two_constants():
    becomes("5", binary("add", const(2, INT64), 3))
    becomes("0.75f", binary("div", f(3), f(4)))
    becomes("True", binary("lt", const(2, INT64), 3))
    becomes("44", binary("add", const(200, U8), const(100, U8)))
    becomes("7 % 0", binary("mod", const(7, INT64), 0))


def test_truth():
    yes, no = Const(True, BOOL), Const(False, BOOL)
    becomes("b", binary("and", yes, B))
    becomes("b", binary("and", B, yes))
    becomes("False", binary("and", B, no))
    becomes("b", binary("or", no, B))
    becomes("True", binary("or", yes, B))


def test_what_stays():
    becomes("v + w", binary("add", V, W))
    becomes("v * 2.0f", binary("mul", V, f(2)))
    becomes("max(v, 0.0f)", binary("max", V, f(0)))
    becomes("v < 0.0f", binary("lt", V, f(0)))


def test_deep_inside():
    becomes("i * 8", binary("floordiv", binary("add", binary("mul", I, 8), 0), 1))
    e = binary("mul", unary("exp", binary("add", V, f(0))), f(1))
    check("exp(v)", lambda: text(simplify_expression(e)), "exp(v + 0.0f) * 1.0f")


def value(e, **scalars):
    """What the interpreter of loops gives for the expression; "LoopError" where it has none."""
    lets = [Let(n, const(v, {"v": F32, "w": F32, "b": BOOL}.get(n, INT64))) for n, v in scalars.items()]
    out = np.empty((), e.dtype)
    try:
        interpret(Function("e", (Param("y", e.dtype, 0, output=True),), Seq((*lets, Store("y", (), e)))), [], [out])
    except LoopError:
        return "LoopError"
    return out.item()


def test_the_value_stays():
    """Every operator on v, w and some constants, for values that are infinite or no numbers, too."""
    operands = [V, W, *map(f, (0, 1, 2))]
    for op, x, y in itertools.product(("add", "sub", "mul", "div", "max", "min", "lt", "eq"), operands, operands):
        e = binary(op, x, y)
        for v, w in itertools.product(FLOATS, (0.0, 3.0)):
            check(value(e, v=v, w=w), lambda e=e, v=v, w=w: value(simplify_expression(e), v=v, w=w),
                  f"{text(e)} for v = {v}, w = {w}")


def test_the_value_of_ints_stays():
    operands = [I, J, *(const(n, INT64) for n in (0, 1, 2))]
    for op, x, y in itertools.product(("add", "sub", "mul", "floordiv", "mod", "max", "min"), operands, operands):
        e = binary(op, x, y)
        for i, j in itertools.product((0, 1, 5), (1, 3)):
            check(value(e, i=i, j=j), lambda e=e, i=i, j=j: value(simplify_expression(e), i=i, j=j),
                  f"{text(e)} for i = {i}, j = {j}")
