"""The operators that Paddle decomposes, and their gradients: against Paddle's answers, in parts, against float64."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import numpy as np
import pytest

import minipd as paddle
from minipd.cinn.compile import prepare
from minipd.cinn.compute.table import compute_of
from minipd.decomposition import DecomposePass
from minipd.decomposition.rules import call_decomp_rule, has_decomp_rule, has_vjp
from minipd.ir.backward import append_backward
from minipd.ir.dce import remove_dead_ops
from minipd.ir.trace import Trace
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.static import InputSpec
from tests.decomposition.cases import CASES, FORWARD, GRADIENT, NUMBERS, Case
from tests.decomposition.programs import run
from tests.decomposition.record import answer, weights

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

GOLDEN = {}
for _line in lzma.open(Path(__file__).parents[1] / "golden" / "decomposition.jsonl.xz", "rt"):
    _row = json.loads(_line)
    GOLDEN[_row["name"]] = _row

#: ours and Paddle's agree to this, relative to the largest of the values beside
ROUNDING = 3e-6

INF, NAN = (lambda x: ~np.isfinite(x)), np.isnan
#: case -> part ("out", or the number of the input that the gradient is for) -> where Paddle's kernel gives something
#: else than the formula: a predicate on the first input (or on all of them), and what it gives
PADDLES_OWN = {
    "abs": {"0": (INF, "0 times infinity")},
    "sqrt": {"out": (lambda x: x == np.inf, "NaN"), "0": (lambda x: (x == 0) | (x == np.inf), "-inf at -0, NaN")},
    "relu": {"out": (NAN, "0")}, "relu6": {"0": (NAN, "0")}, "leaky_relu": {"0": (NAN, "0")},
    "hardsigmoid": {"0": (NAN, "0")},
    "silu": {"0": (lambda x: np.abs(x) > 80, "e^-x times 0")},
    "swish": {"0": (lambda x: np.abs(x) > 80, "-0, and 0 for 1")},
    "gelu tanh": {"0": (lambda x: np.abs(x) > 1e29, "0 times infinity")},
    "softsign": {"0": (INF, "0, where the function has no value")},
    "hardswish": {"0": (INF, "0 times infinity")},
    "angle": {"out": (lambda x: NAN(x) | (x == 0), "0 for NaN and -0")},
    "pow": {"out": (lambda x: x == -np.inf, "infinity for (-inf)^3")},
    "swiglu": {"0": (lambda x, y: x > 1e29, "0 for e^x")},
    "elementwise_pow": {"1": (lambda x, y: (x == 0) & (y < 0) | (NAN(x) & (y == 0)), "infinity, of both signs")},
    "sigmoid_cross_entropy_with_logits": {"0": (lambda x, y: x == 0, "the slopes of max and |x| at their corners")},
    "huber_loss": {"0": (lambda x, y: NAN(x), "delta, for NaN"), "1": (lambda x, y: NAN(x), "delta, for NaN")},
    "log_softmax": {"out": (lambda x: x.max(-1, keepdims=True) - x > 60, "at least -64")},
}
#: inputs whose gradient Paddle leaves at 0, or does not give
NO_GRADIENT = {"masked_fill": {"2"}, "batch_norm": {"1", "2"}, "heaviside": {"0"}, "p_norm 0": {"0"}}


def close(got, want, what, own=None):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape, what
    compared = np.ones(want.shape, bool) if own is None else ~own
    finite = np.isfinite(want) & compared
    np.testing.assert_array_equal(got[compared & ~finite], want[compared & ~finite], err_msg=what)
    # a polynomial of Paddle's may lose what is below 1e-7 beside 1
    largest = np.abs(want[finite & (np.abs(want) < 1e3)]).max(initial=1.0)
    np.testing.assert_allclose(got[finite], want[finite], rtol=ROUNDING * 10, atol=ROUNDING * largest, err_msg=what)


def compare(name, found):
    """With Paddle's answer, but for what is known to be its own."""
    golden, inputs = GOLDEN[name], CASES[name].inputs
    own = {part: where(*inputs[:where.__code__.co_argcount] if hasattr(where, "__code__") else inputs[:1])
           for part, (where, _) in PADDLES_OWN.get(name, {}).items()}
    assert found["dtypes"] == golden["dtypes"]
    for got, want in zip(found["outputs"], golden["outputs"], strict=True):
        close(got, want, name, own.get("out"))
    for i in found["gradients"].keys() & golden["gradients"].keys() - NO_GRADIENT.get(name, set()):
        close(found["gradients"][i], golden["gradients"][i], f"{name}: gradient {i}", own.get(i))
    missing = golden["gradients"].keys() - found["gradients"].keys()
    assert missing <= NO_GRADIENT.get(name, set())


def test_there_are_as_many_as_in_paddle():
    assert (len(FORWARD), len(GRADIENT)) == (56, 51)
    assert {n.split()[0] for n in CASES} | {"fused_rms_norm_quant"} == {*FORWARD, *GRADIENT}


@pytest.mark.parametrize("name", FORWARD)
def test_every_operator_has_a_rule(name):
    assert has_decomp_rule(f"pd_op.{name}")


OURS = {"squared_l2_norm": Case(lambda paddle, x: call_decomp_rule("pd_op.squared_l2_norm", x),
                                CASES["squared_l2_norm"].inputs)}


@pytest.mark.parametrize("name", CASES)
def test_eager_values_and_gradients_are_paddles(name):
    compare(name, answer(paddle, OURS.get(name, CASES[name]), "float32"))


def program_of(name, dtype="float32", gradients=True):
    """The case as a program with inputs x0, ..., outputs y0, ... and gradients g0, ..., and what to feed it."""
    case = OURS.get(name, CASES[name])
    arrays = [x.astype(dtype) if x.dtype.kind == "f" else x for x in case.inputs]
    running = (1, 2) if name == "batch_norm_" else ()
    specs = [InputSpec(list(x.shape), str(x.dtype), f"x{i}", stop_gradient=x.dtype.kind != "f" or i in running)
             for i, x in enumerate(arrays)]
    traced = trace(lambda *xs: case.call(paddle, *(x * 1.0 if i in running else x for i, x in enumerate(xs))), *specs)
    program, feed = traced.program, {f"x{i}": x for i, x in enumerate(arrays)}
    outs = traced.output_values
    flowing = [i for i, v in enumerate(outs) if not v.stop_gradient]
    if gradients and flowing:
        tracer = Trace(program)
        seeds = []
        for i in flowing:
            feed[f"w{i}"] = weights(i, tuple(outs[i].shape)).astype(dtype)
            seeds.append(tracer.input(f"w{i}", feed[f"w{i}"]))
        wrt = {i: v for i, v in enumerate(traced.input_values) if not v.stop_gradient}
        found = append_backward(program, [outs[i] for i in flowing], list(wrt.values()), seeds, trace=tracer)
        for i, g in zip(wrt, found, strict=True):
            if g is not None:
                tracer.build.output(f"g{i}", g)
    return program, {k: v for k, v in feed.items() if any(
        op.name() == "pd_op.data" and op.attributes["name"].value == k for op in program.walk())}


def found_in(program, feed):
    results = run(program, feed)
    outs = [results[f"output_{i}"] for i in range(sum(k.startswith("output_") for k in results))]
    return {"outputs": outs, "dtypes": [str(o.dtype) for o in outs],
            "gradients": {k[1:]: v for k, v in results.items() if k.startswith("g")}}


@pytest.mark.parametrize("name", [n for n in CASES if n.split()[0] in FORWARD])
def test_in_parts_it_gives_the_same(name):
    """The forward call, and its gradient, with nothing left that has a rule."""
    program, feed = program_of(name)
    DecomposePass().run(program)
    verify(program)
    assert not [op.name() for op in program.walk() if op.row is not None and has_decomp_rule(op)]
    compare(name, found_in(program, feed))


#: what the library computes for the compiler, and moves: no loops of ours, and nothing that has parts
LIBRARY = {"matmul", "embedding", "embedding_grad", "gather", "index_add", "index_put", "gather_nd", "scatter_nd_add",
           "take_along_axis", "take_along_axis_grad", "concat", "split", "slice", "set_value", "roll", "transpose",
           "flip", "diagonal", "fill_diagonal_tensor", "pad", "dropout", "floor", "angle", "sign", "expm1", "log1p",
           "full_int_array", "strided_slice", "as_strided", "conj"}


@pytest.mark.parametrize("name", [n for n in CASES if n.split()[0] in {*FORWARD, *GRADIENT}])
def test_the_compiler_gets_nothing_big(name):
    """Of forward call and gradient together, prepared for the compiler: loops, and calls of the library's kernels."""
    program, feed = program_of(name)
    prepare(program)
    remove_dead_ops(program)
    verify(program)
    rows = [op.row for op in program.walk() if op.row is not None]
    assert not {row.name for row in rows if compute_of(row) is None} - LIBRARY
    compare(name, found_in(program, feed))


@pytest.mark.parametrize("name", GRADIENT)
def test_every_gradient_is_written_in_operators(name):
    program, _ = program_of(name)
    assert any(k.startswith("g") for k in run(program, program_of(name)[1])) or name in ("floor", "angle")
    assert not any(op.name().endswith("_grad") and not has_vjp(op) for op in program.walk())


#: case -> how many units in the last place of float32 a value may be off, beside a number of that size (absolute)
BOUNDS = {name: (8.0, 0.0) for name, case in CASES.items() if case.values}
BOUNDS |= {"gelu": (8.0, 0.2), "gelu tanh": (8.0, 0.2), "bce_loss": (8.0, 1e-3), "log_loss": (8.0, 1.0),
           "kldiv_loss": (8.0, 1.0), "log_softmax": (8.0, 1.0), "hardsigmoid": (8.0, 0.5), "hardswish": (8.0, 3.0),
           "sin": (8.0, 1e-3), "cos": (8.0, 1e-3)}
del BOUNDS["p_norm 2"]          # it squares, and 1e30 has no square


@pytest.mark.parametrize("name", BOUNDS)
def test_float32_is_as_exact_as_it_can_be(name):
    """Against the same rule in float64, where the inputs, rounded to float32, are the same numbers."""
    case = CASES[name]
    exact = Case(case.call, tuple(x.astype(np.float32).astype(np.float64) if x.dtype.kind == "f" else x
                                  for x in case.inputs))
    got, want = (np.asarray(answer(paddle, exact, dtype)["outputs"][0], np.float64) for dtype in ("float32", "float64"))
    units, beside = BOUNDS[name]
    with np.errstate(over="ignore"):
        rounded = want.astype(np.float32).astype(np.float64)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    unit = np.spacing(np.maximum(np.abs(rounded[finite]), beside).astype(np.float32)).astype(np.float64)
    assert (np.abs(got[finite] - want[finite]) / np.maximum(unit, 1e-38)).max(initial=0.0) <= units


@pytest.mark.parametrize("name", BOUNDS)
def test_gradients_in_float32_are_those_in_float64(name):
    """To 1e-6 beside the larger of 1 and the gradient; infinite and no numbers where these are."""
    case = CASES[name]
    exact = Case(case.call, tuple(x.astype(np.float32).astype(np.float64) if x.dtype.kind == "f" else x
                                  for x in case.inputs))
    found, wanted = (answer(paddle, exact, dtype)["gradients"] for dtype in ("float32", "float64"))
    assert found.keys() == wanted.keys()
    for i in wanted:
        got, want = np.asarray(found[i], np.float64), np.asarray(wanted[i], np.float64)
        with np.errstate(over="ignore"):
            rounded = want.astype(np.float32).astype(np.float64)
        finite = np.isfinite(rounded)
        np.testing.assert_array_equal(got[~finite], rounded[~finite])
        assert (np.abs(got - want)[finite] / np.maximum(np.abs(want[finite]), 1.0)).max(initial=0.0) <= 1e-6


def test_numbers_are_met_in_every_magnitude():
    assert np.isnan(NUMBERS).any() and np.isinf(NUMBERS).sum() == 2 and (NUMBERS == 0).sum() == 2


#: it writes its arguments
NOT_COMPILED = {"batch_norm_"}


@pytest.mark.long
@pytest.mark.parametrize("name", [n for n in CASES if n not in NOT_COMPILED])
def test_compiled_values_and_gradients_are_paddles(name):
    case = OURS.get(name, CASES[name])
    compiled = paddle.jit.to_static(lambda *xs: case.call(paddle, *xs), backend="CINN")
    compare(name, answer(paddle, Case(lambda _, *xs: compiled(*xs), case.inputs), "float32"))
