"""e^x of a float32, without a branch and without a library."""

import numpy as np
from numba import njit

from minipd.cinn.codegen import math
from tools.course.checking import check

F32 = np.float32


@njit(error_model="numpy")
def _run(x, out):
    for i in range(x.size):
        out[i] = math.exp(x[i])


def exp(x):
    x = np.asarray(x, F32)
    out = np.empty_like(x)
    _run(x, out)
    return out


def exact(x):
    """By float64, rounded once."""
    with np.errstate(all="ignore"):
        return np.exp(np.asarray(x, np.float64)).astype(F32)


def ulps(x):
    """How many units in the last place exp is wrong, for each x; inf where it is no number and should be."""
    x = np.asarray(x, F32)
    got = exp(x)
    with np.errstate(all="ignore"):
        want = np.exp(x.astype(np.float64))
        near = want.astype(F32)
        wrong = np.abs(got.astype(np.float64) - want) / np.spacing(np.abs(near)).astype(np.float64)
    same = (got == near) | (np.isnan(got) & np.isnan(near))
    return np.where(np.isfinite(near) & np.isfinite(got), wrong, np.where(same, 0, np.inf))


def within(x, on):
    """At most two units in the last place; the first x that is worse is shown."""
    def worst():
        errors = ulps(x)
        bad = np.flatnonzero(~(errors <= 2))
        return [] if not bad.size else [f"exp({x[bad[0]]:.9g}) = {exp(x[bad[:1]])[0]:.9g}, and e^x is "
                                        f"{exact(x[bad[:1]])[0]:.9g}: {errors[bad[0]]:.3g} units in the last place"]
    x = np.asarray(x, F32)
    check([], worst, f"{on}: what is more than 2 units in the last place wrong")


def test_zero():
    check([1.0], lambda: exp([0.0]), "exp([0])")


def test_one_and_minus_one():
    check(exact([1, -1]), lambda: exp([1, -1]), "exp([1, -1])", rtol=3e-7)


def test_powers_of_two():
    """x = k ln 2."""
    k = np.array([-3, -1, 1, 2, 10], np.float64)
    check(2.0 ** k, lambda: exp(k * np.log(2)), "exp of -3, -1, 1, 2 and 10 times ln 2", rtol=2e-6)


def test_between():
    within(np.linspace(-0.35, 0.35, 4001), "x from -0.35 to 0.35")


def test_a_score():
    within(np.linspace(-20, 20, 40001), "x from -20 to 20")


def test_large():
    check([np.inf, np.inf, np.inf], lambda: exp([89.0, 1000.0, np.inf]), "exp([89, 1000, inf])")
    within(np.linspace(80, 88.7, 5001), "x from 80 to 88.7")


def test_masked():
    """What a mask has made -inf counts nothing."""
    check([0.0, 0.0, 0.0], lambda: exp([-np.inf, -1000.0, -104.5]), "exp([-inf, -1000, -104.5])")


def test_nan():
    check([np.nan, 1.0], lambda: exp([np.nan, 0.0]), "exp([nan, 0])")


def test_denormal_results():
    within(np.linspace(-103.9, -87.4, 4001), "x from -103.9 to -87.4, where e^x has fewer digits")


def test_all_bits():
    """Every 16381st of all float32."""
    within(np.arange(0, 2**32, 16381, dtype=np.uint64).astype(np.uint32).view(F32), "x over all float32, in steps")
