"""A kernel that may write over an operand gives the same result when it does."""

import numpy as np
import pytest

from minipd.executor.overwriting import overwritable
from minipd.framework.row import ROWS, ufunc_of
from tests.ops.case import CASES
from tests.ops.test_rows import LIBRARY  # noqa: F401  (the cases are there when it is)


def fits(row, case, trial):
    """Whether each buffer of `trial` (result -> operand) is one: an array like the result."""
    metas = row.infer_meta(*case.inputs, **case.attrs)
    metas = metas if row.multi else (metas,)
    return all(isinstance(x := case.inputs[i], np.ndarray) and (x.shape, x.dtype) == (metas[r].shape, metas[r].dtype)
               for r, i in trial.items())


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if overwritable(row) and ufunc_of(row) is None])
def test_results_written_over_operands(name):
    row = ROWS[name]
    together = overwritable(row)
    trials = [{r: i} for r, operands_of in together.items() for i in operands_of] + [
        {r: ways[0] for r, ways in together.items()}]
    for trial in trials:
        cases = [case for case in CASES[name] if fits(row, case, trial)]
        assert cases, f"no case of {name} has operands like its results: {trial} is not tried"
        for case in cases:
            expected = row.kernel(*case.inputs, **case.attrs)
            given = [np.array(x) if isinstance(x, np.ndarray) else x for x in case.inputs]
            outs = tuple(given[trial[r]] if r in trial else np.empty_like(e)
                         for r, e in enumerate(expected if row.multi else (expected,)))
            row.kernel_out(outs if row.multi else outs[0], *given, **case.attrs)
            for out, want in zip(outs, expected if row.multi else (expected,), strict=True):
                np.testing.assert_array_equal(out, want, err_msg=f"{case.label} {trial}")


def test_a_ufunc_may_write_over_any_operand():
    assert overwritable(ROWS["multiply"]) == {0: (0, 1)} and overwritable(ROWS["tanh"]) == {0: (0,)}


def test_what_is_not_stated_is_not_done():
    assert overwritable(ROWS["matmul"]) == overwritable(ROWS["sum"]) == overwritable(ROWS["reshape"]) == {}
