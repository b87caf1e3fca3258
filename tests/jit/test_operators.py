"""Every row through `to_static`, as one program and in segments: values and gradients are bit by bit the eager ones."""

import numpy as np
import pytest

import minipd as paddle
from minipd.jit import to_static
from tests.ops.test_rows import LIBRARY, rows

CASES = __import__("tests.ops.all_cases", fromlist=["CASES"]).CASES
#: cases of each row in `make test`: what they call is compiled, which takes longer than the call; the others are long
FIRST = 2


def called(row, case, compile):
    """What two calls return, and the gradients of the inputs."""
    row = LIBRARY[row]
    wrt = case.differentiable()

    def f(*xs):
        given = iter(xs)
        out = row(*[next(given) if isinstance(x, np.ndarray) else x for x in case.inputs], **case.attrs)
        outs = out if row.multi else (out,)
        seen = [o for o in outs if o.stop_gradient or o.dtype.np.kind not in "fc"]
        return [o * 2.0 for o in outs if not any(o is s for s in seen)], seen
    f, found = compile(f), []
    for _ in range(2):
        xs = [paddle.to_tensor(x, stop_gradient=i not in wrt) for i, x in enumerate(case.inputs)
              if isinstance(x, np.ndarray)]
        flowing, seen = f(*xs)
        total = [o.abs().sum() if o.dtype.np.kind == "c" else o.sum() for o in flowing]
        if total:
            sum(total).backward()
        found += [o.numpy() for o in (*flowing, *seen)]
        found += [None if x.grad is None else x.grad.numpy() for x in xs]
    return found


def agree(name, mode, cases):
    for case in cases:
        want = called(name, case, lambda f: f)
        got = called(name, case, lambda f: to_static(f, full_graph=mode == "one program"))
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            if b is None:
                assert a is None, case.label
            else:
                assert a.dtype == b.dtype and a.shape == b.shape, case.label
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=case.label)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mode", ["one program", "segments"])
@rows()
def test_a_row(name, mode):
    agree(name, mode, CASES[name][:FIRST])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mode", ["one program", "segments"])
@rows()
def test_the_other_cases_of_a_row(name, mode):
    """About three minutes in all."""
    agree(name, mode, CASES[name][FIRST:])
