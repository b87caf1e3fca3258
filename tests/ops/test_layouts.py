"""Every row on operands in every memory layout: hypothesis draws a case, a dtype and the layout of each operand.

What an operator computes depends on the values of its operands, not on where in memory they lie: the result is that of
contiguous operands, and numpy's, also when written into a buffer; so is the gradient, whose incoming gradients lie
anywhere too; and no operand changes.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from minipd.autograd.engine import grad
from minipd.framework import dtype as dtypes
from minipd.framework.row import Trait
from minipd.framework.tensor import Tensor
from tests.ops.case import CASES
from tests.ops.test_rows import LIBRARY, assert_close, cast_inputs, dtypes_of, random_like, rows, run, wanted

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

LAYOUTS = {}
#: Rows whose operands are not just any numbers: repeated along a dimension they would be no such operand any more
#: (invertible and definite matrices, sorted and distinct values, indices that hold each place once).
NOT_STRETCHED = set("""
    inverse determinant slogdet solve triangular_solve cholesky qr svd eigh eig lu pinv matrix_exp searchsorted
    pivots_to_permutation multinomial warpctc warpctc_grad warprnnt warprnnt_grad unpool
    fractional_max_pool2d fractional_max_pool3d
""".split())


def layout(make):
    LAYOUTS[make.__name__] = make
    return make


def copied(x, room):
    room[...] = x
    return room


@layout
def contiguous(x):
    return np.array(x, order="C")


@layout
def fortran(x):
    return np.array(x, order="F")


@layout
def transposed(x):
    """Row-major, but for the order of the dimensions: the first goes last."""
    front = tuple(range(1, x.ndim)) + (0,) * (x.ndim > 0)
    return copied(x, np.zeros([x.shape[i] for i in front], x.dtype).transpose(np.argsort(front)))


@layout
def strided(x):
    """Every second element of every dimension, from the second on."""
    room = np.ones([2 * n + 1 for n in x.shape], x.dtype)
    return copied(x, room[(*(slice(1, None, 2) for _ in x.shape), ...)])


@layout
def reversed_(x):
    """Negative strides."""
    return copied(x, np.zeros(x.shape, x.dtype)[(*(slice(None, None, -1) for _ in x.shape), ...)])


@layout
def offset(x):
    """In the middle of a larger buffer, at an odd place."""
    return copied(x, np.ones(x.size + 5, x.dtype)[3:3 + x.size].reshape(x.shape))


@layout
def read_only(x):
    out = np.array(x)
    out.flags.writeable = False
    return out


@layout
def stretched(x):
    """Stride 0 along the first dimension: its first element, as often as it is long.  (The values change.)"""
    return np.broadcast_to(x[:1], x.shape) if x.ndim else x


@st.composite
def calls(draw, name):
    """(case, dtype, contiguous inputs, the same values in other layouts)."""
    case = draw(st.sampled_from(CASES[name]))
    dtype = draw(st.sampled_from(dtypes_of(name, case)))
    written_out = LIBRARY[name].has_vjp and case.wrt == ()              # answers for these very values
    known = [kind for kind in LAYOUTS if kind != "stretched" or name not in NOT_STRETCHED and not written_out]
    plain, laid = [], []
    for x in cast_inputs(case, dtype):
        if isinstance(x, np.ndarray):
            kind = draw(st.sampled_from(known))
            odd = LAYOUTS[kind](x)
            note(f"{kind} {odd.dtype}{list(odd.shape)} strides {odd.strides}")
            laid.append(odd)
            plain.append(np.array(odd, order="C"))
        else:
            laid.append(x)
            plain.append(x)
    return case, dtype, plain, laid, draw(st.sampled_from(known))


def gradients(name, case, inputs, weights):
    xs = [Tensor(x) if isinstance(x, np.ndarray) else x for x in inputs]
    for i in case.differentiable():
        xs[i].stop_gradient = False
    out = LIBRARY[name](*xs, **case.attrs)
    outs = [o for o in (out if LIBRARY[name].multi else [out]) if o.payload.dtype in dtypes.INEXACT]
    return grad(outs, [xs[i] for i in case.differentiable()], [Tensor(w) for w in weights])


def near(got, want, room):
    """Within some roundings of the largest value: sums in another order cancel differently."""
    assert got.shape == want.shape and got.dtype == want.dtype
    wide = np.promote_types(np.float64, got.dtype)
    eps = float(dtypes.finfo(got.dtype).eps)
    got, want = got.astype(wide), want.astype(wide)
    scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
    np.testing.assert_allclose(got, want, rtol=room * eps, atol=room * eps * scale)


def check_layouts(name, call):
    case, dtype, plain, laid, kind = call
    before = [np.array(x) if isinstance(x, np.ndarray) else x for x in laid]
    results = run(name, laid, case.attrs)
    for got, want in zip(results, run(name, plain, case.attrs), strict=True):
        assert_close(got, want)
    exact = Trait.EXACT in LIBRARY[name].traits
    for got, want in zip(results, wanted(case, plain), strict=True):
        want = np.asarray(want)
        if got.dtype.kind in "iu" and want.dtype.kind in "iuf":
            want = want.astype(np.int64).astype(got.dtype)              # ints wrap around
        elif exact and got.dtype in dtypes.INEXACT:
            want = want.astype(got.dtype)
        assert_close(got, want, exact)
    if LIBRARY[name].kernel_out is not None:
        buffers = tuple(np.empty_like(o) for o in results)
        LIBRARY[name].kernel_out_for(laid)(buffers if LIBRARY[name].multi else buffers[0], *laid, **case.attrs)
        for got, want in zip(buffers, results, strict=True):
            assert_close(got, want)
    if LIBRARY[name].has_vjp and case.differentiable() and (dtype.kind in "fc" or dtype in dtypes.FLOATS):
        outs = [o for o in results if o.dtype in dtypes.INEXACT]
        weights = [w.astype(o.dtype) for w, o in zip(random_like(outs, 4), outs, strict=True)]
        odd = [LAYOUTS[kind](w) for w in weights]
        even = [np.array(w, order="C") for w in odd]
        for got, want in zip(gradients(name, case, laid, odd), gradients(name, case, plain, even), strict=True):
            near(got.payload, want.payload, 16)
    for x, was in zip(laid, before, strict=True):
        assert not isinstance(x, np.ndarray) or x.tobytes() == was.tobytes()


def layouts(name, examples):
    @settings(max_examples=examples, phases=[Phase.generate, Phase.shrink],
              suppress_health_check=list(HealthCheck))
    @given(calls(name))
    def test(call):
        check_layouts(name, call)
    test()


@rows()
def test_layouts(name):
    layouts(name, 24)


@pytest.mark.long
@rows()
def test_many_layouts(name):
    layouts(name, 300)
