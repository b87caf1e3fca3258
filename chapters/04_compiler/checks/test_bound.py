"""What a condition says about a loop variable."""

import itertools

import numpy as np

from minipd.cinn.ir.ast import INT64, Binary, Const, Dim, Var
from minipd.cinn.ir.build import binary
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.walk import names
from minipd.cinn.optim.conditions import _bound
from tools.course.checking import check

I, J = Var("i"), Var("j")
N = Dim("x", 0)
F64 = np.dtype("float64")


def number(e, known):
    """The value of an expression of ints."""
    match e:
        case Const(value=value):
            return value
        case Var(name=name):
            return known[name]
        case Dim():
            return known["n"]
        case Binary(op=op, x=x, y=y):
            a, b = number(x, known), number(y, known)
            return {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "floordiv": lambda: a // b,
                    "mod": lambda: a % b, "min": lambda: min(a, b), "max": lambda: max(a, b), "lt": lambda: a < b,
                    "le": lambda: a <= b, "gt": lambda: a > b, "ge": lambda: a >= b, "eq": lambda: a == b}[op]()
    raise AssertionError(e)


def sides(cond):
    """For which j, of -12 to 12, the condition holds, and for which the bound says so, for some i and n."""
    found = _bound(cond, "j")
    if found is None:
        return None
    assert "j" not in names(found.at)
    return [[j for j in range(-12, 13) if (j < at if found.upper else j >= at)]
            for i, n in itertools.product(range(4), range(3)) for at in [number(found.at, {"i": i, "n": n})]]


def says(cond):
    """A bound that holds exactly where the condition does."""
    want = [[j for j in range(-12, 13) if number(cond, {"i": i, "n": n, "j": j})]
            for i, n in itertools.product(range(4), range(3))]
    check(want, lambda: sides(cond), f"{text(cond)}: the j from -12 to 12 for which it holds, for each i from 0 to 3 "
          "and each x.shape[0] from 0 to 2")


def one(cond, upper, at):
    """A bound that is a number, by hand."""
    def got():
        found = _bound(cond, "j")
        return None if found is None else (found.upper, text(found.at))
    check((upper, at), got, f"{text(cond)}: whether it bounds j from above, and by what")


def none(cond, on):
    check(None, lambda: _bound(cond, "j"), on)


def test_below_a_number():
    one(binary("lt", J, 5), True, "5")


def test_at_most():
    one(binary("le", J, 5), True, "6")


def test_from_a_number_on():
    one(binary("ge", J, 3), False, "3")


def test_above():
    one(binary("gt", J, 3), False, "4")


def test_the_other_way_round():
    one(binary("lt", 3, J), False, "4")
    one(binary("ge", 3, J), True, "4")


def test_moved():
    """j + 2 < 5."""
    one(binary("lt", binary("add", J, 2), 5), True, "3")


def test_blocks():
    """i * 4 + j < 10: the second loop of a split by four."""
    says(binary("lt", binary("add", binary("mul", I, 4), J), 10))


def test_every_fourth():
    """4 j < 10 holds for 0, 1 and 2: up to 3."""
    one(binary("lt", binary("mul", J, 4), 10), True, "3")


def test_every_fourth_evenly():
    one(binary("lt", binary("mul", J, 4), 12), True, "3")


def test_every_fourth_from_below():
    """4 j >= 10 holds from 3 on."""
    one(binary("ge", binary("mul", J, 4), 10), False, "3")
    one(binary("ge", binary("mul", J, 4), 12), False, "3")


def test_turned():
    """5 - j < 3: from 3 on."""
    one(binary("lt", binary("sub", 5, J), 3), False, "3")
    says(binary("ge", binary("sub", 5, binary("mul", J, 2)), I))


def test_a_size():
    says(binary("lt", J, N))
    says(binary("lt", binary("add", binary("mul", J, 3), I), N))


def test_on_both_sides():
    """j * 3 < j + 7 is j * 2 < 7."""
    says(binary("lt", binary("mul", J, 3), binary("add", J, 7)))


def test_no_bound():
    none(binary("eq", J, 3), "j == 3: neither above nor below")
    none(binary("lt", I, 3), "i < 3: nothing about j")
    none(binary("lt", binary("mul", J, I), 3), "j * i < 3: how many times j is not known")
    none(binary("lt", binary("mul", J, J), 3), "j * j < 3: no line")
    none(binary("lt", binary("mod", J, 4), 3), "j % 4 < 3: no line")
    none(Var("flag", binary("lt", J, 3).dtype), "a bool that is no comparison")
    none(binary("lt", Var("j", F64), Const(3.0, F64)), "j < 3.0, where j is a float")


def test_all_small_ones():
    for a, b, c in itertools.product((-3, -2, -1, 1, 2, 3), (-2, 0, 3), (-5, 0, 1, 6)):
        for op in ("lt", "le", "gt", "ge"):
            left = binary("add", binary("mul", J, Const(a, INT64)), binary("mul", I, Const(b, INT64)))
            says(binary(op, left, Const(c, INT64)))
