"""Every row of the operator library, case by case: values, dtypes, shape rule, buffers, first and second derivatives.

The table of cases is in `cases_*.py`; a row without cases fails here.  There are thousands of cases, so a test is a row
and loops over its cases; a failure names the cases that failed.
"""

import numpy as np
import pytest

import minipd  # noqa: F401  (wires every floor)
from minipd.autograd.engine import grad
from minipd.autograd.mode import no_grad
from minipd.framework import dtype as dtypes
from minipd.framework.context import MetaOnly, kernel_of, using
from minipd.framework.dim import Constraints, DimExpr, substitute_all, symbol
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS, Trait
from minipd.framework.tensor import Tensor
from minipd.ops.matrices.parts import hermitian_part
from tests.ops.all_cases import CASES, DTYPES

F64 = np.dtype("float64")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NaN and infinity, which some cases are about
LIBRARY = {name: row for name, row in ROWS.items() if row.infer_meta.__module__.startswith("minipd.ops.")}
FLOATS = [t.np for t in (dtypes.float64, dtypes.float32, dtypes.float16, dtypes.bfloat16)]
INTS = [t.np for t in (dtypes.int64, dtypes.int32, dtypes.int16, dtypes.int8, dtypes.uint8)]


def rows(keep=lambda row: True):
    return pytest.mark.parametrize("name", [name for name in CASES if name in LIBRARY and keep(LIBRARY[name])])


def for_each(items, check):
    """check(*item) for each; all failures are told, with the cases they belong to."""
    failed = []
    for item in items:
        try:
            check(*item)
        except Exception as error:
            error.add_note("case: " + ", ".join(getattr(x, "label", str(x)) for x in item))
            failed.append(error)
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise ExceptionGroup(f"{len(failed)} cases", failed)


# ------------------------------------------------------------------------------------------------ the table
def test_every_row_has_cases():
    assert set(CASES) == set(LIBRARY)


def test_every_gradient_rule_is_checked():
    for name, row in LIBRARY.items():
        targets = set()
        for call in row.vjp_rules:
            targets |= {call.target} if call.target is not None else set(range(len(row.inputs)))
        checked = {min(i, len(row.inputs) - 1) for case in CASES[name]
                   for i in (*case.differentiable(), *case.refused)}
        assert targets <= checked, f"{name}: no case differentiates inputs {targets - checked}"


def dtypes_of(name, case):
    """The dtypes in which a case makes sense: as written, and with its float arrays cast."""
    arrays = [x for x in case.inputs if isinstance(x, np.ndarray) and x.dtype == F64]
    if not arrays:
        return [F64]
    found = list(FLOATS[:2] if DTYPES[name] == "wide" else FLOATS)
    numbers = [x for x in case.inputs if isinstance(x, (int, float))]
    finite = all(np.isfinite(x).all() for x in arrays)
    if DTYPES[name] in ("ints", "any") and finite and all(x == int(x) for x in numbers):
        found += INTS
    if DTYPES[name] == "any" and finite and not numbers:
        found.append(dtypes.bool.np)
    return found


def with_dtypes(name, keep=lambda case, dtype: True):
    return [(case, dtype) for case in CASES[name] for dtype in dtypes_of(name, case) if keep(case, dtype)]


def cast_inputs(case, dtype):
    """The case's inputs in another dtype.  Ints come from thrice the value, so that they differ and still fit."""
    def cast(x):
        if not isinstance(x, np.ndarray) or x.dtype != F64 or dtype == F64:
            return x
        if dtype in dtypes.FLOATS:
            return x.astype(dtype)
        if dtype.kind == "b":
            return np.asarray(x > 0.3)
        whole = np.rint(3 * x)
        return np.asarray(np.abs(whole) if dtype.kind == "u" else whole).astype(dtype)
    if dtype.kind in "iu":
        return tuple(int(x) if type(x) is float else cast(x) for x in case.inputs)
    return tuple(map(cast, case.inputs))


def wide(x):
    """What the reference computes on: float64, complex128, int64 or bool."""
    if not isinstance(x, np.ndarray) or x.dtype.kind in "bc":
        return x
    return x.astype(np.int64 if x.dtype.kind in "iu" else F64)


def tensors(inputs):
    return [Tensor(x) if isinstance(x, np.ndarray) else x for x in inputs]


def run(name, inputs, attrs):
    """The results as arrays, through the front door."""
    with no_grad():
        out = LIBRARY[name](*tensors(inputs), **attrs)
    return [o.payload for o in (out if LIBRARY[name].multi else (out,))]


def wanted(case, inputs):
    out = case.want(*map(wide, inputs), **case.attrs)
    return out if isinstance(out, (tuple, list)) else (out,)


def assert_close(got, want, exact=False):
    """Exact, or within a few roundings of the result's dtype (relative to the largest value, for sums cancel)."""
    want = np.asarray(want)
    assert got.shape == want.shape
    if got.dtype not in dtypes.INEXACT:
        np.testing.assert_array_equal(got, want)
        return
    got64, want64 = (x.astype(np.promote_types(F64, got.dtype)) for x in (got, want))
    if exact:
        np.testing.assert_array_equal(got64, want64)
        return
    eps = float(dtypes.finfo(got.dtype).eps)
    scale = np.abs(want64[np.isfinite(want64)]).max(initial=0.0)
    np.testing.assert_allclose(got64, want64, rtol=8 * eps, atol=4 * eps * scale)


# ------------------------------------------------------------------------------------------------ values
@rows()
def test_values_and_dtypes(name):
    row = LIBRARY[name]
    exact = Trait.EXACT in row.traits

    def check(case, dtype):
        inputs = cast_inputs(case, dtype)
        metas = row.infer_meta(*inputs, **case.attrs)
        for o, want, meta in zip(run(name, inputs, case.attrs), wanted(case, inputs), metas if row.multi else (metas,),
                                 strict=True):
            assert type(o) is np.ndarray
            assert (o.shape, o.dtype) == (meta.shape, meta.dtype)
            want = np.asarray(want)
            if o.dtype.kind in "iu" and want.dtype.kind in "iuf":
                want = want.astype(np.int64).astype(o.dtype)               # ints wrap around
            elif exact and o.dtype in dtypes.INEXACT:
                want = want.astype(o.dtype)
            assert_close(o, want, exact)

    for_each(with_dtypes(name), check)


def strided(x):
    """The same values in memory that is not contiguous and in another order of dimensions; read-only."""
    if not isinstance(x, np.ndarray) or x.ndim == 0:
        return x
    room = np.zeros(tuple(2 * n + 1 for n in reversed(x.shape)), x.dtype)
    view = room[tuple(slice(1, None, 2) for _ in x.shape)].T
    view[...] = x
    view.flags.writeable = False
    return view


@rows()
def test_operands_in_any_layout(name):
    def check(case):
        plain = run(name, case.inputs, case.attrs)
        odd = run(name, tuple(map(strided, case.inputs)), case.attrs)
        for p, o in zip(plain, odd, strict=True):
            assert_close(o, p)

    for_each([(case,) for case in CASES[name]], check)


@rows(lambda row: row.kernel_out is not None)
def test_kernel_out_fills_buffers_with_what_kernel_returns(name):
    row = LIBRARY[name]

    def check(case, dtype):
        inputs = cast_inputs(case, dtype)
        result = kernel_of(row, inputs)(*inputs, **case.attrs)
        results = [np.asarray(o) for o in (result if row.multi else (result,))]
        for room in (1, 2):                 # contiguous buffers and others, full of something else
            buffers = tuple(np.full((*o.shape, room), 7, o.dtype)[..., 0] for o in results)
            row.kernel_out_for(inputs)(buffers if row.multi else buffers[0], *inputs, **case.attrs)
            for buffer, o in zip(buffers, results, strict=True):
                assert_close(buffer, o)

    for_each(with_dtypes(name), check)


# ------------------------------------------------------------------------------------------------ shape rule
def symbolic_call(case):
    """The case with every size above 1 a symbol: (operands, attributes, the symbols' values)."""
    bindings = {}

    def s(size):
        if size < 2:
            return size
        bindings[f"N{size}"] = size
        return symbol(f"N{size}")

    fixed = {(i, axis % case.inputs[i].ndim) for i, axis in case.fixed}
    inputs = [Meta(tuple(n if (i, axis) in fixed else s(n) for axis, n in enumerate(x.shape)), x.dtype)
              if isinstance(x, np.ndarray) else x for i, x in enumerate(case.inputs)]
    return inputs, case.symbolic(s) if case.symbolic else case.attrs, bindings


def symbolic_cases(name, keep=lambda case: True):
    """Attributes that name sizes (a target shape) fit symbolic operands only if the case says how."""
    sizes = {"shape", "sections", "window"}
    return [(case,) for case in CASES[name] if keep(case) and (case.symbolic or not sizes & case.attrs.keys())]


@rows()
def test_the_shape_rule_holds_for_symbols(name):
    row = LIBRARY[name]

    def check(case):
        inputs, attrs, bindings = symbolic_call(case)
        constraints = Constraints()
        with constraints.collect():
            metas = row.infer_meta(*inputs, **attrs)
        constraints.check(bindings)
        real = row.infer_meta(*case.inputs, **case.attrs)
        for m, r in zip(metas if row.multi else (metas,), real if row.multi else (real,), strict=True):
            assert substitute_all(m.shape, bindings) == r.shape and m.dtype == r.dtype

    for_each(symbolic_cases(name), check)


@rows(lambda row: row.has_vjp)
def test_gradients_of_symbolic_shapes(name):
    """The gradient rules on shapes alone: each gradient has its primal's (symbolic) shape and dtype."""
    row = LIBRARY[name]

    def check(case):
        inputs, attrs, bindings = symbolic_call(case)
        constraints = Constraints()
        with constraints.collect(), using(ground=MetaOnly()):
            xs = [Tensor(x) if isinstance(x, Meta) else x for x in inputs]
            for i in case.differentiable():
                xs[i].stop_gradient = False
            out = row(*xs, **attrs)
            outs = [o for o in (out if row.multi else [out]) if o.payload.dtype in dtypes.INEXACT]
            wanted = [xs[i] for i in case.differentiable()]
            gs = grad(outs, wanted, [Tensor(o.payload) for o in outs], create_graph=True)
        constraints.check(bindings)
        for i, g in zip(case.differentiable(), gs, strict=True):
            assert not any(isinstance(d, DimExpr) and d.denominator > 1 for d in g.payload.shape)
            assert substitute_all(tuple(g.payload.shape), bindings) == case.inputs[i].shape
            assert g.payload.dtype == case.inputs[i].dtype

    for_each(symbolic_cases(name, lambda case: case.differentiable()), check)


@rows(lambda row: any(case.refused for case in CASES.get(row.name, ())))
def test_a_derivative_that_is_not_available_is_refused(name):
    for case in CASES[name]:
        for i in case.refused:
            xs = tensors(case.inputs)
            xs[i].stop_gradient = False
            with pytest.raises(NotImplementedError, match="derivative in .* is not available"):
                LIBRARY[name](*xs, **case.attrs).sum().backward()


# ------------------------------------------------------------------------------------------------ derivatives
def numeric_gradient(f, arrays, at):
    """d f(arrays) / d arrays[at], f a real number: central differences of order h^4, element by element.

    Of a complex array it is the direction in which f grows: d f / d real part + i d f / d imaginary part.
    """
    h = 1e-3
    out = np.zeros_like(arrays[at])
    for where in np.ndindex(out.shape):
        for direction in (1, 1j) if out.dtype.kind == "c" else (1,):
            for steps, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
                moved = [np.array(a) for a in arrays]
                moved[at][where] += direction * steps * h
                out[where] += direction * weight / (12 * h) * f(moved)
    return out


def inner(a, b):
    """The real number that stands for a . b where gradients are taken."""
    return np.vdot(a, b).real


class Function:
    """Some results of a call as a function of the differentiable inputs."""

    def __init__(self, name, case, used):
        self.row, self.case, self.used, self.wrt = LIBRARY[name], case, used, case.differentiable()
        self.start = [case.inputs[i] for i in self.wrt]

    def results(self, xs):
        operands = tensors(self.case.inputs)
        for i, x in zip(self.wrt, xs, strict=True):
            operands[i] = hermitian_part(x) if i in self.case.symmetric else x
        out = self.row(*operands, **self.case.attrs)
        outs = list(out) if self.row.multi else [out]
        return [outs[i] for i in self.used]

    def values(self, arrays):
        with no_grad():
            return [o.payload for o in self.results([Tensor(a) for a in arrays])]

    def gradients(self, arrays, weights, track=False):
        """Gradients of sum(weights * results), by the tape: (inputs, weights as tensors, gradients)."""
        xs, ws = [Tensor(np.array(a)) for a in arrays], [Tensor(np.array(w)) for w in weights]
        for t in xs + (ws if track else []):
            t.stop_gradient = False
        return xs, ws, grad(self.results(xs), xs, ws, create_graph=track)


def to_differentiate(name):
    """Each differentiable case; of rows with several results also each result alone (that is no index)."""
    for case in CASES[name]:
        if case.differentiable():
            outs = run(name, case.inputs, case.attrs)
            every = tuple(i for i, o in enumerate(outs) if o.dtype in dtypes.INEXACT)
            for used in [every] + [(i,) for i in every if len(every) > 1]:
                yield case, used


def random_like(arrays, seed):
    rng = np.random.default_rng(seed)
    found = [np.asarray(rng.uniform(-1, 1, a.shape)) for a in arrays]
    return [np.asarray(x + 1j * rng.uniform(-1, 1, x.shape)) if a.dtype.kind == "c" else x
            for x, a in zip(found, arrays, strict=True)]


@rows(lambda row: row.has_vjp)
def test_gradients_against_finite_differences(name):
    def check(case, used):
        f = Function(name, case, used)
        weights = random_like(f.values(f.start), 1)

        def weighted(arrays):
            return sum(inner(w, o) for w, o in zip(weights, f.values(arrays), strict=True))

        _, _, gs = f.gradients(f.start, weights)
        for at, g in enumerate(gs):
            assert g.stop_gradient
            assert g.payload.shape == f.start[at].shape and g.payload.dtype == f.start[at].dtype
            np.testing.assert_allclose(g.payload, numeric_gradient(weighted, f.start, at), rtol=1e-8, atol=1e-8)

    for_each(to_differentiate(name), check)


@rows(lambda row: row.has_vjp)
def test_second_derivatives_against_finite_differences(name):
    """The gradient is itself a function of the inputs and of the incoming gradient: both are differentiated again."""
    def check(case, used):
        f = Function(name, case, used)
        weights = random_like(f.values(f.start), 1)
        directions = random_like(f.start, 2)
        xs, ws, gs = f.gradients(f.start, weights, track=True)
        reached = [(g, v) for g, v in zip(gs, directions, strict=True) if not g.stop_gradient]
        second = grad([g for g, _ in reached], xs + ws, [Tensor(v) for _, v in reached], allow_unused=True)
        start, n = f.start + weights, len(f.start)

        def along(arrays):
            _, _, gs = f.gradients(arrays[:n], arrays[n:])
            return sum(inner(v, g.payload) for v, g in zip(directions, gs, strict=True))

        for at, g in enumerate(second):
            numeric = numeric_gradient(along, start, at)
            got = np.zeros(start[at].shape) if g is None else g.payload
            np.testing.assert_allclose(got, numeric, rtol=1e-7, atol=1e-7)

    for_each([(case, used) for case, used in to_differentiate(name) if case.smooth], check)


@rows(lambda row: row.has_vjp)
def test_gradients_in_other_dtypes(name):
    """The same as in float64 up to rounding, and of the input's dtype (0-D and empty ones too)."""
    def gradients(case, inputs, dtype):
        xs = tensors(inputs)
        for i in case.differentiable():
            xs[i].stop_gradient = False
        out = LIBRARY[name](*xs, **case.attrs)
        outs = [o for o in (out if LIBRARY[name].multi else [out]) if o.payload.dtype in dtypes.INEXACT]
        weights = random_like([o.payload for o in outs], 3)
        weights = [Tensor(w.astype(o.payload.dtype)) for w, o in zip(weights, outs, strict=True)]
        return grad(outs, [xs[i] for i in case.differentiable()], weights)

    def check(case, dtype):
        inputs = cast_inputs(case, dtype)
        exact = gradients(case, [wide(x) for x in inputs], F64)
        for i, g, want in zip(case.differentiable(), gradients(case, inputs, dtype), exact, strict=True):
            assert g.payload.shape == inputs[i].shape and g.payload.dtype == dtype
            eps = float(dtypes.finfo(dtype).eps)
            scale = max(float(np.abs(want.payload).max(initial=0.0)), 1.0)
            np.testing.assert_allclose(g.payload.astype(F64), want.payload, rtol=16 * eps, atol=16 * eps * scale)

    for_each(with_dtypes(name, lambda case, dtype: case.differentiable() and dtype in FLOATS[1:]), check)
