"""Gradients of programs against the tape and against finite differences."""

import numpy as np
import pytest

from minipd.autograd.engine import grad
from minipd.autograd.mode import no_grad
from minipd.executor import Executor
from minipd.framework.meta import Meta
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.ops.creation import to_tensor
from minipd.ops.embedding import embedding
from minipd.ops.joining import concat, split
from minipd.ops.loss import cross_entropy_with_softmax
from minipd.ops.math import add_n, where


class Spec(Meta):
    """An input that wants a gradient."""

    stop_gradient = False
    name = None


def spec(*shape, dtype=np.float64):
    return Spec(shape, np.dtype(dtype))


def with_gradients(f, *specs, wrt=None, **options):
    """The program of f with the gradients of its (first) result as further outputs g0, g1, ..."""
    traced = trace(f, *specs)
    values = traced.input_values if wrt is None else [traced.input_values[i] for i in wrt]
    found = append_backward(traced.program, traced.output_values[:1], values, **options)
    build = Builder(traced.program.global_block())
    for i, g in enumerate(found):
        if g is not None:
            build.output(f"g{i}", g)
    verify(traced.program)
    return traced, found


def run(traced, *arrays):
    return Executor(traced.program).run(dict(zip(traced.inputs, arrays, strict=True)) | traced.captures)


def gradients(f, *arrays):
    """What the tape gives."""
    xs = [to_tensor(a) for a in arrays]
    for x in xs:
        x.stop_gradient = False
    return [g.numpy() for g in grad(f(*xs), xs)]


def same_as_tape(f, *arrays, symbolic=True):
    shapes = [(None, *a.shape[1:]) if symbolic and a.ndim else a.shape for a in arrays]
    traced, _ = with_gradients(f, *(spec(*s) for s in shapes))
    found = run(traced, *arrays)
    for i, want in enumerate(gradients(f, *arrays)):
        np.testing.assert_allclose(found[f"g{i}"], want, rtol=1e-13, atol=1e-13)


X = np.random.default_rng(0).standard_normal((4, 3))
Y = np.random.default_rng(1).standard_normal((4, 3))
W = np.random.default_rng(2).standard_normal((3, 5))


def test_shared_intermediates():
    """Hard case A1 (micrograd issue 2): a value with several users is complete before its own rule runs."""
    def f(a, b):
        c, d = a + b, a * b
        e, g = c + d, c * d
        return e + g
    traced, _ = with_gradients(f, spec(), spec())
    found = run(traced, np.float64(2).reshape(()), np.float64(3).reshape(()))
    assert (found["output_0"], found["g0"], found["g1"]) == (41, 25, 19)


def test_contributions_are_summed_once():
    traced, _ = with_gradients(lambda x: (x * 2.0 + x.exp() + x.tanh()).sum(), spec(3))
    sums = [op for op in traced.program.walk() if op.name() == "pd_op.add_n"]
    assert len(sums) == 1 and len(sums[0].operand_source(0).get_defining_op().operands()) == 3


def test_the_same_operand_twice():
    traced, _ = with_gradients(lambda x: (x + x).sum(), spec(2))
    assert run(traced, np.ones(2))["g0"].tolist() == [2, 2]


def test_against_the_tape():
    same_as_tape(lambda x, y: ((x * y).exp() / (y * y + 1.0)).sum(), X, Y)
    same_as_tape(lambda x, w: ((x @ w).tanh() ** 2.0).mean(), X, W, symbolic=False)
    same_as_tape(lambda x, y: concat([x, y], 1).reshape([-1]).max(), X, Y, symbolic=False)
    same_as_tape(lambda x: split(x, [1, 2], 1)[1].sum(), X)
    same_as_tape(lambda x, y: add_n([x, y, x]).square().sum(), X, Y)
    same_as_tape(lambda x, y: where(x > y, x * 2.0, y).transpose([1, 0])[1:, ::2].sum(), X, Y, symbolic=False)
    same_as_tape(lambda x: x.sum(axis=0, keepdim=True).expand([4, 3]).sqrt().sum(), np.abs(X), symbolic=False)


def test_a_language_models_loss():
    ids, labels = np.array([[1, 0, 2]]), np.array([[2, 2, 0]])

    def f(table):
        h = embedding(to_tensor(ids), table)
        return cross_entropy_with_softmax(h @ table.t(), to_tensor(labels[..., None]))[1].mean()
    same_as_tape(f, W.T, symbolic=False)


def test_in_place_writes():
    """A program is functional, so a value that was read and then written in place is still there for its gradient."""
    def f(x):
        y = x * 1.0
        row = y[0]
        row.multiply_(3.0)
        y[1] = row * y[2]
        return (y * y).sum()

    def functional(x):
        first = x[0:1] * 3.0
        y = concat([first, first * x[2:3], x[2:]], 0)
        return (y * y).sum()
    traced, _ = with_gradients(f, spec(4, 3))
    want, = gradients(functional, X)
    np.testing.assert_allclose(run(traced, X)["g0"], want, rtol=1e-13)


def test_finite_differences():
    def f(x):
        return (x.tanh() * x.exp()).sum()
    traced, _ = with_gradients(f, spec(4, 3))
    found = run(traced, X)
    for i in np.ndindex(X.shape):
        d = np.zeros_like(X)
        d[i] = 1e-6
        slope = (run(traced, X + d)["output_0"] - run(traced, X - d)["output_0"]) / 2e-6
        assert found["g0"][i] == pytest.approx(slope, abs=1e-8)


def test_only_what_is_needed():
    traced, (g,) = with_gradients(lambda x, w: (x @ w).sum(), spec(4, 3), spec(3, 5), wrt=[1])
    assert sum(op.name() == "pd_op.matmul" for op in traced.program.walk()) == 2       # forward, and one of two rules


def test_what_the_loss_does_not_depend_on():
    _, found = with_gradients(lambda x, y: x.sum(), spec(2), spec(2))
    assert found[0] is not None and found[1] is None


def test_several_losses_with_given_gradients():
    traced = trace(lambda x: (x * 2.0, x.exp()), spec(2))
    build = Builder(traced.program.global_block())
    seed = build.full((2,), 10.0, "float64")
    g, = append_backward(traced.program, traced.output_values, traced.input_values, [seed, None])
    build.output("g", g)
    assert run(traced, np.zeros(2))["g"].tolist() == [21, 21]


def test_gradients_of_intermediates():
    kept = []

    def f(x):
        kept.append(x.exp())
        return (kept[0] * kept[0]).sum()
    traced = trace(f, spec(2))
    h = kept[0].payload
    gh, gx = append_backward(traced.program, traced.output_values, [h, *traced.input_values])
    build = Builder(traced.program.global_block())
    build.output("gh", gh)
    build.output("gx", gx)
    found = run(traced, np.zeros(2))
    assert found["gh"].tolist() == [2, 2] and found["gx"].tolist() == [2, 2]


def test_second_derivatives():
    def f(x):
        return (x * x * x).sum()
    traced, (g,) = with_gradients(f, spec(3), create_graph=True)
    gg, = append_backward(traced.program, [g], traced.input_values)
    Builder(traced.program.global_block()).output("gg", gg)
    found = run(traced, np.array([1.0, 2, 3]))
    assert found["g0"].tolist() == [3, 12, 27] and found["gg"].tolist() == [6, 12, 18]


def test_where_the_gradient_is_stopped():
    """detach, no_grad and stop_gradient say the same to the program as to the tape."""
    def f(x):
        h = x.exp()
        with no_grad():
            k = h * 2.0
        stopped = h * 1.0
        stopped.stop_gradient = True
        return (h * h.detach() + h * k + stopped * x).sum()
    same_as_tape(f, X)


def test_a_new_leaf_inside_ends_the_gradient():
    def f(x):
        leaf = x.exp().detach()
        leaf.stop_gradient = False
        return (leaf * x).sum()
    same_as_tape(f, X)


def test_values_without_gradient_are_refused():
    traced = trace(lambda x: x.sum(), Meta((2,), np.dtype("float64")))
    with pytest.raises(ValueError, match="expected values through which gradients flow, got result 0 of pd_op.sum.*"
                                         "set stop_gradient=False on the inputs before they are traced"):
        append_backward(traced.program, traced.output_values, traced.input_values)


def test_a_chain_of_5000_operations():
    """Hard case A3 (micrograd PR 90)."""
    def f(x):
        for _ in range(5000):
            x = x + 1.0
        return x
    traced, _ = with_gradients(f, spec())
    found = run(traced, np.float64(0).reshape(()))
    assert found["output_0"] == 5000 and found["g0"] == 1


def test_dtypes_stay():
    """Hard case A4 (dlsys hw2 issue 11): one or several contributions, 0-D and N-D, have their primal's dtype."""
    for shape in ((), (2,)):
        traced, found = with_gradients(lambda w: (w * w + w).sum(), spec(*shape, dtype=np.float32))
        assert found[0].dtype == np.float32
        assert run(traced, np.ones(shape, np.float32))["g0"].dtype == np.float32
