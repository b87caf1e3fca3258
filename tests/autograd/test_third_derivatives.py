"""Third derivatives by the tape, against finite differences of the second: each smooth element-wise row, and sums."""

import numpy as np
import pytest

from minipd.autograd.engine import grad
from minipd.framework.row import Trait
from minipd.framework.tensor import Tensor
from tests.ops.case import CASES
from tests.ops.test_rows import LIBRARY, Function, inner, numeric_gradient, random_like

SUMS = set("matmul conv2d softmax log_softmax standardize rms_norm cumsum logsumexp prod cumprod".split())


def case_of(name):
    """The smallest smooth case that has several elements; None if there is none."""
    smooth = [case for case in CASES[name] if case.smooth and not case.symmetric and case.differentiable() and all(
        case.inputs[i].dtype == np.float64 and case.inputs[i].size for i in case.differentiable())]
    several = [case for case in smooth if sum(case.inputs[i].size for i in case.differentiable()) > 1]
    return min(several, key=lambda case: sum(case.inputs[i].size for i in case.differentiable()), default=None)


ROWS = [name for name, row in LIBRARY.items() if row.has_vjp and (Trait.ELEMENTWISE in row.traits or name in SUMS)
        and case_of(name) is not None]


def second(f, arrays, weights, directions, track):
    """(the inputs, the second derivative along `directions`), of those inputs that it depends on."""
    xs, _, first = f.gradients(arrays, weights, track=True)
    reached = [(g, Tensor(v)) for g, v in zip(first, directions, strict=True) if not g.stop_gradient]
    if not reached:
        return xs, [None] * len(xs)
    return xs, grad([g for g, _ in reached], xs, [v for _, v in reached], create_graph=track, allow_unused=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ROWS)
def test_third_derivatives_against_finite_differences(name):
    case = case_of(name)
    f = Function(name, case, (0,))
    weights = random_like(f.values(f.start), 1)
    v, u = random_like(f.start, 2), random_like(f.start, 3)

    def along(arrays):
        _, gs = second(f, arrays, weights, v, track=False)
        return sum(inner(d, g.payload) for d, g in zip(u, gs, strict=True) if g is not None)

    xs, gs = second(f, f.start, weights, v, track=True)
    reached = [(g, Tensor(d)) for g, d in zip(gs, u, strict=True) if g is not None and not g.stop_gradient]
    third = [None] * len(xs)
    if reached:
        third = grad([g for g, _ in reached], xs, [d for _, d in reached], allow_unused=True)
    for at, g in enumerate(third):
        want = numeric_gradient(along, f.start, at)
        got = np.zeros(want.shape) if g is None else g.payload
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(want).max(initial=0.0)))


def test_the_table_is_not_empty():
    assert len(ROWS) > 60 and set(SUMS) <= set(ROWS)
