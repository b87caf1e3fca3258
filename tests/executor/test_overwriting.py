"""A kernel that may write over an operand gives the same result when it does."""

import numpy as np
import pytest

from minipd.executor.overwriting import overwritable
from minipd.framework.row import ROWS, ufunc_of

RNG = np.random.default_rng(0)
X, Y = (RNG.standard_normal((3, 4)) for _ in range(2))
LABEL = np.array([[1], [3], [-100]])
POSITIVE = np.abs(X) + 0.5
#: what the rows that are written in steps are called with
CALLS = {
    "where": ((X > 0, X, Y), {}), "add_n": ((X, Y, X + Y), {}), "log": ((POSITIVE,), {}), "rsqrt": ((POSITIVE,), {}),
    "scale": ((X,), {"scale": 2.0, "bias": 3.0, "bias_after_scale": False}), "assign": ((X,), {}), "relu": ((X,), {}),
    "sigmoid": ((X,), {}), "silu": ((X,), {}), "swiglu": ((X, Y), {}), "softmax": ((X,), {"axis": 1}),
    "cross_entropy_with_softmax": ((X, LABEL), {"axis": 1}),
    "cross_entropy_with_softmax_grad": ((LABEL, X, Y[:, :1]), {"axis": 1}),
    "sgd": ((X, Y, np.array(0.1), np.array(False)), {}),
    "adamw": ((X, Y, Y * 0.5, POSITIVE, np.array(3.0), np.array(0.1), np.array(False)), {}),
    "set_value": ((X, Y[:2]), {"axes": (0,), "starts": (1,), "ends": (3,), "strides": (1,)}),
}


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if overwritable(row) and ufunc_of(row) is None])
def test_results_written_over_operands(name):
    row = ROWS[name]
    operands, attrs = CALLS[name]
    expected = row.kernel(*operands, **attrs)
    expected = expected if row.multi else (expected,)
    together = overwritable(row)
    trials = [{r: i} for r, operands_of in together.items() for i in operands_of] + [
        {r: ways[0] for r, ways in together.items()}]
    for trial in trials:
        given = [np.array(x) for x in operands]
        outs = tuple(given[trial[r]] if r in trial else np.empty_like(e) for r, e in enumerate(expected))
        row.kernel_out(outs if row.multi else outs[0], *given, **attrs)
        for out, want in zip(outs, expected, strict=True):
            np.testing.assert_array_equal(out, want, err_msg=str(trial))


def test_a_ufunc_may_write_over_any_operand():
    assert overwritable(ROWS["multiply"]) == {0: (0, 1)} and overwritable(ROWS["tanh"]) == {0: (0,)}


def test_what_is_not_stated_is_not_done():
    assert overwritable(ROWS["matmul"]) == overwritable(ROWS["sum"]) == overwritable(ROWS["reshape"]) == {}
