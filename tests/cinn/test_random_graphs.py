"""Random groups in every way that there is to compute them: the same results, whatever the sizes, dtypes and values.

Where all numbers can be held exactly, the results are the same bit by bit.  Elsewhere float32 is compared with float64,
within bounds that follow from how each operator rounds.
"""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from minipd.cinn.compile import prepare
from minipd.cinn.dialect import FUSION
from minipd.cinn.frontend import build_groups
from minipd.framework.context import Kernels
from minipd.ir.evaluate import evaluate
from tests.cinn.random_programs import EXACT, SMOOTH, recipes
from tests.cinn.ways import ways

DTYPES = [np.dtype(d) for d in ("float64", "float32", "float16", ml_dtypes.bfloat16, "int32", "int64")]
#: up to which whole number a dtype holds all
LIMITS = dict(zip(DTYPES, (2.0 ** 53, 2.0 ** 24, 2.0 ** 11, 2.0 ** 8, 2.0 ** 31 - 1, 2.0 ** 53), strict=True))


def inputs_of(recipe, seed, special):
    """Small whole numbers; special: some of them infinite, or not numbers."""
    r = np.random.default_rng(seed)
    arrays = [r.integers(-3, 4, shape).astype(np.float64) for shape in recipe.shapes]
    if special:
        for x in arrays:
            if x.size > 2:
                x.flat[r.integers(x.size, size=2)] = r.choice([np.inf, -np.inf, np.nan], 2)
    return arrays


def each_group(program, feed, visit):
    """The outputs of a program, by library kernels; `visit(group, arrays)` is told of every group and gives its
    results."""
    found = {}

    def control(op, env, walk):
        assert op.name() == FUSION
        results = visit(op, [env[v] for v in op.operands_source()])
        env.update(zip(op.results(), results, strict=True))
    with np.errstate(all="ignore"):
        evaluate(program, Kernels().run, lambda op: feed[op.attributes["name"].value],
                 lambda op, array: found.update({op.attributes["output_name"].value: np.asarray(array)}), control)
    return list(found.values())


def check_all_ways(recipe, dtype, inputs, compiler):
    """Every group of the recipe's program gives the same in all ways, and the program what numpy gives."""
    exact = recipe.compute(inputs)
    assume(all(np.abs(y[np.isfinite(y)]).max(initial=0) <= LIMITS[dtype] for y in exact))

    def visit(group, arrays):
        (_, library), *others = ways(group, arrays, compiler)
        for name, results in others:
            for got, want in zip(results, library, strict=True):
                assert got.dtype == want.dtype and got.shape == want.shape
                np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64),
                                              err_msg=f"{name}: {group}")
        return library
    program = recipe.build(dtype)
    prepare(program)
    build_groups(program)
    feed = {f"x{n}": x.astype(dtype) for n, x in enumerate(inputs)}
    for got, number in zip(each_group(program, feed, visit), recipe.outputs, strict=True):
        np.testing.assert_array_equal(got.astype(np.float64), exact[number])


EXACTLY = {"recipe": recipes(EXACT), "dtype": st.sampled_from(DTYPES), "seed": st.integers(0, 99),
           "special": st.booleans()}


@settings(max_examples=60)
@given(**EXACTLY)
def test_loops_give_what_operators_give(recipe, dtype, seed, special):
    check_all_ways(recipe, dtype, inputs_of(recipe, seed, special and dtype.kind != "i"), None)


@settings(max_examples=5)
@given(**EXACTLY)
def test_kernels_give_what_operators_give(recipe, dtype, seed, special, compiler):
    check_all_ways(recipe, dtype, inputs_of(recipe, seed, special and dtype.kind != "i"), compiler)


@pytest.mark.long
@settings(max_examples=150)
@given(**EXACTLY)
def test_many_kernels_give_what_operators_give(recipe, dtype, seed, special, compiler):
    check_all_ways(recipe, dtype, inputs_of(recipe, seed, special and dtype.kind != "i"), compiler)


# --------------------------------------------------------------------------------------- float32 against float64
def check_bounds(recipe, seed, compiler):
    """Float32 in all ways is as near to numpy's float64 as rounding lets it be: `Recipe.bounded`, to first order; twice
    that, and a little for numbers that are too small to be normal."""
    r = np.random.default_rng(seed)
    inputs = [r.standard_normal(shape).astype(np.float32) for shape in recipe.shapes]
    with np.errstate(all="ignore"):
        values = recipe.bounded(inputs)
    assume(all(np.isfinite(error).all() and np.abs(y).max(initial=0) < 1e30 and error.max(initial=0) < 0.1
               for y, error in values))

    def visit(group, arrays):
        (_, library), *others = ways(group, arrays, compiler)
        # what a group is given has errors already: it is judged where the program ends
        chosen = others[(-1 if compiler is not None else seed) % len(others)][1]
        return [np.asarray(y) for y in chosen] if chosen else library
    program = recipe.build(np.dtype(np.float32))
    prepare(program)
    build_groups(program)
    feed = {f"x{n}": x for n, x in enumerate(inputs)}
    for got, number in zip(each_group(program, feed, visit), recipe.outputs, strict=True):
        want, error = values[number]
        assert got.dtype == np.float32
        wrong = np.abs(got.astype(np.float64) - want) > 2 * error + 1e-37
        assert not wrong.any(), (number, got[wrong], want[wrong], error[wrong])


SMOOTHLY = {"recipe": recipes(SMOOTH), "seed": st.integers(0, 99)}


@settings(max_examples=60)
@given(**SMOOTHLY)
def test_the_error_of_loops_in_float32(recipe, seed):
    check_bounds(recipe, seed, None)


@settings(max_examples=5)
@given(**SMOOTHLY)
def test_the_error_of_kernels_in_float32(recipe, seed, compiler):
    check_bounds(recipe, seed, compiler)


@pytest.mark.long
@settings(max_examples=150)
@given(**SMOOTHLY)
def test_the_error_of_many_kernels_in_float32(recipe, seed, compiler):
    check_bounds(recipe, seed, compiler)
