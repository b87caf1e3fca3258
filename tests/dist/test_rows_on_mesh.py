"""Every operator of the library on a mesh: however operands are placed, results and gradients are those of one rank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipd.autograd.engine import grad
from minipd.autograd.mode import no_grad
from minipd.dist.api import dtensor_from_local
from minipd.dist.mesh import parse_mesh
from minipd.framework import dtype as dtypes
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from tests.dist.every_rule import cut, draw_placements
from tests.dist.ranks import on_mesh
from tests.ops.all_cases import CASES

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NaN and infinity, which some cases are about

MESHES = [parse_mesh(text) for text in ("x=2,y=2", "x=3", "x=2,y=3", "x=2")]


def placed_cases(name):
    """Cases in which nothing is a shard already, with at least one array of values."""
    return [c for c in CASES[name] if "window" not in c.attrs and any(isinstance(x, np.ndarray) for x in c.inputs)]


@st.composite
def calls(draw, name):
    """(case, mesh, placements of each operand); None for numbers and keys."""
    case, mesh = draw(st.sampled_from(placed_cases(name))), draw(st.sampled_from(MESHES))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return case, mesh, draw_placements(ROWS[name], case.inputs, mesh, rng)


def derivatives(row, case, xs, weights):
    """(results, first derivatives of the weighted results, and the derivatives of those along fixed directions)."""
    wrt = case.differentiable()
    for i in wrt:
        xs[i].stop_gradient = False
    out = row(*xs, **case.attrs)
    outs = list(out) if row.multi else [out]
    tracked = [o for o in outs if not o.stop_gradient]
    if not wrt or not tracked:
        return outs, [], []
    ws = [Tensor(w) for w, o in zip(weights, outs, strict=True) if not o.stop_gradient]
    first = grad(tracked, [xs[i] for i in wrt], ws, create_graph=case.smooth, allow_unused=True)
    reached = [g for g in first if g is not None and not g.stop_gradient]
    if not case.smooth or not reached:
        return outs, first, []
    seeds = [Tensor(np.cos(np.arange(float(g.size))).reshape(tuple(g.shape))) for g in reached]
    return outs, first, grad(reached, [xs[i] for i in wrt], seeds, allow_unused=True)


def values(tensors):
    return [None if t is None else t.numpy() for t in tensors]


def close(got, want, what):
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if g is None or w is None:              # no gradient is zero
            assert not np.any(g if w is None else w), f"{what} {i}"
            continue
        assert g.shape == w.shape and g.dtype == w.dtype, f"{what} {i}: {g.dtype}{g.shape}, not {w.dtype}{w.shape}"
        eps = dtypes.finfo(w.dtype).eps if w.dtype in dtypes.INEXACT else 0
        g, w = (x.astype(np.promote_types(x.dtype, float)) for x in (g, w))
        scale = np.abs(w[np.isfinite(w)]).max(initial=4.0)              # parts of a sum are as large as 4
        np.testing.assert_allclose(g, w, rtol=1e-9 + 8 * eps, atol=(1e-11 + 4 * eps) * scale, err_msg=f"{what} {i}")


def check(name, case, mesh, placements):
    row = ROWS[name]
    with no_grad():
        out = row(*[Tensor(x) if isinstance(x, np.ndarray) else x for x in case.inputs], **case.attrs)
    rng = np.random.default_rng(1)
    weights = [np.asarray(rng.uniform(-1, 1, tuple(o.shape))) for o in (out if row.multi else (out,))]
    xs = [Tensor(x.copy()) if isinstance(x, np.ndarray) else x for x in case.inputs]
    single = derivatives(row, case, xs, weights)
    want = [values(part) for part in single]
    parts = [None if p is None else cut(x, mesh, p, rng) for x, p in zip(case.inputs, placements, strict=True)]

    def run(mesh):
        xs = []
        for x, p, locals_ in zip(case.inputs, placements, parts, strict=True):
            if p is None:
                xs.append(Tensor(x) if isinstance(x, np.ndarray) else x)
            else:
                xs.append(dtensor_from_local(locals_[current().rank], mesh, p, x.shape))
        return [values(part) for part in derivatives(row, case, xs, weights)]
    for got in on_mesh(mesh, run):
        for what, g, w in zip(("result", "gradient", "second derivative"), got, want, strict=True):
            close(g, w, what)


PLACED = [name for name in CASES if placed_cases(name)]


@pytest.mark.parametrize("name", PLACED)
@settings(max_examples=6)
@given(data=st.data())
def test_a_row_on_a_mesh(name, data):
    check(name, *data.draw(calls(name)))


@pytest.mark.long
@pytest.mark.parametrize("name", PLACED)
@settings(max_examples=80)
@given(data=st.data())
def test_a_row_on_meshes_in_many_placements(name, data):
    check(name, *data.draw(calls(name)))
