"""The dist interpreter: what it resolves, keeps, moves and remembers; in-place writes, hooks and dropout on shards."""

from __future__ import annotations

import copy
import gc
import weakref

import numpy as np
import pytest

import minipd as paddle
from minipd.autograd.engine import grad
from minipd.dist import interpreter
from minipd.dist.api import dtensor_from_local, reshard, shard_tensor
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.framework.context import using
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.static import InputSpec
from tests.dist.ranks import on_mesh

R, P = Replicate(), Partial()
S0, S1 = Shard(0), Shard(1)
RNG = np.random.default_rng(4)
X = RNG.normal(size=(5, 7))


def counted(function):
    """What `function()` returns, and the collectives it took on this rank."""
    before = dict(current().comm.counts)
    out = function()
    return out, {k: n - before.get(k, 0) for k, n in current().comm.counts.items() if n != before.get(k, 0)}


# ------------------------------------------------------------------------------------------------------ Partial
def test_a_partial_is_resolved_once_and_its_parts_are_freed():
    def run(mesh):
        x = shard_tensor(X, mesh, [S0]).sum(axis=0)
        assert x.placements == [P]
        parts = weakref.ref(x.payload.local)
        first, once = counted(lambda: x.exp())
        gc.collect()
        gone = parts() is None
        second, never = counted(lambda: (x.tanh(), x.abs(), x.numpy()))
        return x.placements, gone, type(x.payload.local), first.placements, second[0].placements, once, never
    assert on_mesh("x=2", run) == [([P], True, Meta, [R], [R], {"all_reduce": 1}, {})] * 2


def test_what_a_partial_was_resolved_to_serves_every_reader():
    """Resolved to shards first: who wants the whole starts from there, and the values are right in any order."""
    def run(mesh):
        total = X.sum(0)
        x = shard_tensor(X, mesh, [S0]).sum(axis=0)
        shards, first = counted(lambda: reshard(x, mesh, [S0]))
        whole, second = counted(lambda: x + 1.0)
        again, third = counted(lambda: reshard(x, mesh, [P]))
        for got, want in ((shards, total), (whole, total + 1), (again, total)):
            np.testing.assert_allclose(got.numpy(), want)
        return first, second, third, again.placements
    for first, second, third, placed in on_mesh("x=2", run):
        assert (first, second, third) == ({"reduce_scatter": 1}, {}, {}) and placed == [P]


def test_a_reading_resolves_but_keeps_shards():
    """A rank that prints a tensor does not hold the whole of it afterwards."""
    def run(mesh):
        x = shard_tensor(np.ones((4, 6, 8)), mesh, [S0, S1]).sum(axis=0)        # f64[6_tp, 8]{P_dp}
        assert x.placements == [P, S0]
        repr(x.numpy())
        return x.payload.held().local.shape, x.placements
    assert on_mesh("dp=2,tp=2", run) == [((3, 8), [P, S0])] * 4


def test_placements_never_change_in_place():
    def run(mesh):
        x, w = shard_tensor(X, mesh, [S0]), shard_tensor(X.T.copy(), mesh, [R])
        total = x.sum()
        before = [t.payload.placements for t in (x, w, total)]
        y = x.matmul(w) * total
        reshard(x, mesh, [R])
        y.sum().item()
        return before == [t.payload.placements for t in (x, w, total)], x.payload.local.shape
    assert on_mesh("x=2", run) == [(True, (3, 7)), (True, (2, 7))]


# ------------------------------------------------------------------------------------------------- communication
@pytest.mark.parametrize("like", [[R, P], [S0, S1], [P, P], [S1, S1], [S0, R]], ids=str)
def test_shape_only_operands_never_communicate(like):
    def run(mesh):
        target, row = dtensor_like((6, 8), mesh, like), shard_tensor(np.ones(8), mesh, [R, R])
        whole, n = counted(lambda: (paddle.full_like(target, 2.0), paddle.zeros_like(target)))
        wide, m = counted(lambda: row.expand_as(target))
        down, k = counted(lambda: shard_tensor(np.ones((6, 8)), mesh, [R, R]).reduce_as(
            dtensor_like((6, 1), mesh, [p if p == S0 else R for p in like])))
        for t, want in ((whole[0], np.full((6, 8), 2.0)), (wide, np.ones((6, 8))), (down, np.full((6, 1), 8.0))):
            np.testing.assert_array_equal(t.numpy(), want)
        return n, m, k
    assert on_mesh("dp=2,tp=2", run) == [({}, {}, {})] * 4


def dtensor_like(shape, mesh, placements):
    """Zeros whose values nobody may ask for: reading them would fail."""
    t = shard_tensor(np.zeros(shape), mesh, placements)
    t.payload.local = Meta(t.payload.local.shape, t.payload.local.dtype)
    return t


def test_gradients_of_leaves_are_reduced_when_they_are_read():
    """Backward of x * w + b communicates nothing: many gradients of one parameter may come together before they are
    reduced once."""
    def run(mesh):
        x = shard_tensor(X, mesh, [S0])
        w, b = (shard_tensor(np.ones(7), mesh, [R], stop_gradient=False) for _ in range(2))
        loss = (x * w + b).sum()
        _, never = counted(loss.backward)
        assert w.grad.placements == b.grad.placements == [P]
        _, once = counted(lambda: [ROWS["match"](p.grad, p) for p in (w, b)])
        return never, once, w.grad.numpy(), b.grad.numpy()
    for never, once, w, b in on_mesh("x=2", run):
        assert (never, once) == ({}, {"all_reduce": 2})
        np.testing.assert_allclose(w, X.sum(0))
        np.testing.assert_array_equal(b, np.full(7, 5.0))


def test_repeated_calls_are_looked_up(monkeypatch):
    def run(mesh):
        calls = []
        monkeypatch.setattr(interpreter, "infer", lambda row, *a: calls.append(row.name) or infer(row, *a))
        x, y = shard_tensor(X, mesh, [S0]), shard_tensor(X, mesh, [R])
        for _ in range(3):
            x * y
        x * x, y * x, x * 2.0, x * 3.0
        return calls
    infer = interpreter.infer
    #: (S, R), (S, S), (R, S), and with a number, whichever
    assert on_mesh("x=1", run) == [["multiply"] * 4]


def test_a_cached_call_keeps_its_own_attributes():
    """1 == True and 0.0 == -0.0, but a tensor of them is not the same."""
    def run(mesh):
        x = shard_tensor(np.ones((4, 2), np.int64), mesh, [S0])
        zeros = [ROWS["full_like"](x, value=v, dtype=np.dtype("float64")).numpy() for v in (0.0, -0.0)]
        sums = [(x * n).dtype.name for n in (2, 2.5, 2, True)]
        casts = [ROWS["cast"](x, dtype=np.dtype(d)).payload.local.dtype.name for d in ("int32", "float32", "int32")]
        return [bool(np.signbit(z).all()) for z in zeros], sums, casts
    assert on_mesh("x=2", run) == [([False, True], ["int64", "float32", "int64", "int64"],
                                    ["int32", "float32", "int32"])] * 2


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(interpreter, "REMEMBERED", 8)

    def run(mesh):
        x = shard_tensor(np.arange(40.0), mesh, [R])
        got = [x[i:i + 2].sum().item() for i in range(30)]
        return got == [2.0 * i + 1 for i in range(30)], len(current().middle.cache) <= 8
    assert on_mesh("x=2", run) == [(True, True)] * 2


def test_values_are_read_under_any_interpreter():
    """While tracing, a distributed tensor from outside has values; one of the program has none."""
    def run(mesh):
        x = shard_tensor(np.arange(4.0), mesh, [S0])
        found = []

        def traced(y):
            found.append(x.numpy().tolist())
            return y + found[0][3]
        program = trace(traced, InputSpec([2], "float64"))
        with using(middle=None):
            found.append(x.tolist())
        return found, len(program.captures)
    assert on_mesh("x=2", run) == [([[0.0, 1, 2, 3]] * 2, 0)] * 2


# ---------------------------------------------------------------------------- decompositions and their derivatives
LABELS = np.array([[3], [-100], [0], [6], [2]])
FUNCTIONS = {
    "softmax": lambda x: F.softmax(x, axis=1),
    "softmax along rows": lambda x: F.softmax(x, axis=0),
    "mean": lambda x: x.mean(),
    "mean of rows": lambda x: x.mean(axis=1, keepdim=True) * x,
    "mean of columns": lambda x: x.mean(axis=0),
    "loss": lambda x: ROWS["cross_entropy_with_softmax"](x, paddle.to_tensor(LABELS), axis=1)[1],
    "loss and softmax": lambda x: sum(p.sum() for p in ROWS["cross_entropy_with_softmax"](
        x * x, paddle.to_tensor(LABELS), axis=1)),
}


def two_derivatives(function, x):
    """f(x); the gradient of sum(f w); the gradient of sum(grad v)."""
    y = function(x)
    w = Tensor(np.cos(np.arange(float(y.size))).reshape(tuple(y.shape)))
    g, = grad(y, x, w, create_graph=True)
    second = None
    if not g.stop_gradient:
        second, = grad(g, x, Tensor(np.sin(np.arange(35.0)).reshape(5, 7)), allow_unused=True)
    return y.numpy(), g.numpy(), None if second is None else second.numpy()


@pytest.mark.parametrize("placements", [[S0, S1], [S1, S0], [S1, S1], [S1, R], [P, S1], [P, P], [S0, P]], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_decompositions_and_two_derivatives(name, placements):
    want = two_derivatives(FUNCTIONS[name], paddle.to_tensor(X, stop_gradient=False))

    def run(mesh):
        return two_derivatives(FUNCTIONS[name], shard_tensor(X, mesh, placements, stop_gradient=False))
    for got in on_mesh("x=2,y=2", run):
        for g, w in zip(got, want, strict=True):
            if w is None or g is None:
                assert not np.any(0 if g is None else g) and not np.any(0 if w is None else w)
            else:
                np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-12)


def test_decompositions_reduce_without_gathering():
    """Cross entropy over split classes: a maximum, a sum, and the labels' elements.  A mean: the mean of means."""
    def run(mesh):
        x = shard_tensor(X, mesh, [S1])
        _, loss = counted(lambda: ROWS["cross_entropy_with_softmax"](x, paddle.to_tensor(LABELS), axis=1)[1].numpy())
        _, mean = counted(lambda: x.mean().numpy())
        return loss, mean
    assert on_mesh("x=2", run) == [({"all_reduce": 3}, {"all_reduce": 1})] * 2


@pytest.mark.parametrize("bad", [7, -1, 100])
def test_labels_that_are_no_class_of_any_shard(bad):
    """The global number of classes is known to each rank; -100 is ignored, everything else must be a class."""
    def run(mesh):
        x = shard_tensor(X, mesh, [S1])
        labels = paddle.to_tensor(np.where(LABELS == 6, bad, LABELS))
        with pytest.raises(ValueError) as error:
            F.cross_entropy(x, labels.squeeze(1))
        return str(error.value), error.value.__notes__
    for text, notes in on_mesh("tp=2", run):
        assert text.startswith("take_along_axis: expected numbers in 0 .. 6, along axis 1 of the whole of which this "
                               "rank has f64[5, ") and text.endswith(f"got {bad}")
        where = "in the decomposition of cross_entropy_with_softmax(f64[5, 7], i64[5, 1])"
        assert any(n.startswith(where) for n in notes)


def test_ids_that_are_no_row_of_any_shard():
    def run(mesh):
        table = shard_tensor(X, mesh, [S0], stop_gradient=False)
        out = F.embedding(paddle.to_tensor([[0, 4], [2, 2]]), table)
        out.sum().backward()
        with pytest.raises(ValueError, match=r"embedding: expected numbers in 0 \.\. 4, the rows of the whole of which "
                                             r"this rank has f64\[\d, 7\], got 5"):
            F.embedding(paddle.to_tensor([[0, 5]]), table)
        return out.numpy(), table.grad.numpy()[:, 0].tolist()
    for out, g in on_mesh("tp=3", run):
        np.testing.assert_array_equal(out, X[[[0, 4], [2, 2]]])
        assert g == [1, 0, 2, 0, 1]


# ------------------------------------------------------------------------------------------------------ in place
def test_in_place_writes():
    def run(mesh):
        x = shard_tensor(X, mesh, [S0])
        total = x.sum(axis=0)
        handles = x, total
        x.multiply_(paddle.to_tensor(2.0 * np.ones((5, 7))))
        total.add_(paddle.ones([7], "float64"))
        x[1:3] = 7.0
        y = shard_tensor(X, mesh, [S1])
        y.set_value(np.zeros((5, 7)))
        y.fill_(3.0)
        return handles == (x, total), x.numpy(), total.numpy(), y.numpy(), y.placements, y.payload.local.shape[0]
    twice = 2 * X
    twice[1:3] = 7.0
    for same, x, total, y, placed, rows in on_mesh("x=2", run):
        assert same and placed == [S1] and rows == 5
        np.testing.assert_allclose(x, twice)
        np.testing.assert_allclose(total, X.sum(0) + 1)
        np.testing.assert_array_equal(y, np.full((5, 7), 3.0))


def test_gradients_through_in_place_writes():
    """x was saved before it was written: its payload is immutable, so the gradient is that of the old value."""
    def step(x):
        y = x * 1.0
        z = y * y
        y.multiply_(x)
        y[0] = 0.0
        (z + y * 3.0).sum().backward()
        return x.grad.numpy()
    x = paddle.to_tensor(X, stop_gradient=False)
    z = (x * 1.0)
    y = z * x
    y[0] = 0.0
    (z * z + y * 3.0).sum().backward()
    for got in on_mesh("x=2,y=2", lambda m: step(shard_tensor(X, m, [S0, S1], stop_gradient=False))):
        np.testing.assert_allclose(got, x.grad.numpy())


def test_in_place_writes_that_are_refused():
    def run(mesh):
        leaf = shard_tensor(X, mesh, [S0], stop_gradient=False)
        with pytest.raises(RuntimeError, match="which wants a gradient"):
            leaf.add_(leaf)
        x = shard_tensor(X, mesh, [S0])
        view = x.transpose([1, 0])
        for write in (x.zero_, view.zero_):
            with pytest.raises(RuntimeError, match="a distributed tensor with views: the views would keep the old"):
                write()
        y = leaf * 1.0
        copied = copy.copy(y)
        with pytest.raises(RuntimeError, match="its gradient history would miss that write"):
            y.fill_(0.0)
        assert copied.numpy()[0, 0] == X[0, 0]
        with pytest.raises(ValueError, match="expected a result like the tensor written"):
            shard_tensor(np.ones(3), mesh, [R]).add_(paddle.ones([2, 3], "float64"))
        del view, write
        x.zero_()
        return x.numpy().any(), leaf.numpy()[0, 0] == X[0, 0]
    assert on_mesh("x=2", run) == [(False, True)] * 2


def test_detached_handles_see_writes():
    """As they do eagerly, where they share memory: through whichever handle it is written."""
    def run(mesh):
        x = shard_tensor(X, mesh, [S0])
        first = x.detach()
        second, third = copy.copy(first), x.detach()
        x.fill_(2.0)
        seen = [t.numpy()[4, 6] for t in (x, first, second, third)]
        second.fill_(3.0)
        del second
        return seen, [t.numpy()[4, 6] for t in (x, first, third)]
    assert on_mesh("x=2", run) == [([2.0] * 4, [3.0] * 3)] * 2


def test_a_parameter_that_was_detached_is_updated():
    def run(mesh):
        p = shard_tensor(paddle.create_parameter([4], default_initializer=paddle.nn.initializer.Constant(1.0)), mesh,
                         [S0])
        seen = p.detach()
        (p * p).sum().backward()
        paddle.optimizer.SGD(0.25, parameters=[p]).step()
        return p.tolist(), seen.tolist()
    assert on_mesh("x=2", run) == [([0.5] * 4, [0.5] * 4)] * 2


# ------------------------------------------------------------------------------------------- no_grad and hooks
def test_no_grad():
    def run(mesh):
        x = shard_tensor(X, mesh, [S0], stop_gradient=False)
        with paddle.no_grad():
            y = F.softmax(x, axis=0)
        z = F.softmax(x, axis=0)
        return y.stop_gradient, y.node is None, z.stop_gradient
    assert on_mesh("x=2", run) == [(True, True, False)] * 2


@pytest.mark.parametrize("placements", [[S0, S1], [S1, R], [P, S0], [R, P]], ids=str)
def test_hooks_see_global_gradients(placements):
    """Whole in shape and values; a Partial one has been reduced; what the hook returns goes on."""
    def step(x):
        seen = []
        y = x * 1.0

        def hook(g):
            seen.append((list(g.shape), g.numpy()))
            return g * 2.0
        y.register_hook(hook)
        x.register_hook(lambda g: seen.append((list(g.shape), g.numpy())))
        (F.softmax(y, axis=1) * y).sum().backward()
        return seen, x.grad.numpy()
    want, g = step(paddle.to_tensor(X, stop_gradient=False))
    for seen, got in on_mesh("x=2,y=2", lambda m: step(shard_tensor(X, m, placements, stop_gradient=False))):
        np.testing.assert_allclose(got, g, rtol=1e-10, atol=1e-13)
        for (shape, values), (shape2, values2) in zip(seen, want, strict=True):
            assert shape == shape2 == [5, 7]
            np.testing.assert_allclose(values, values2, rtol=1e-10, atol=1e-13)


def test_gradients_enter_a_rule_with_their_primals_placements():
    """A Partial one is reduced there, once; that of a leaf is left as it comes."""
    def run(mesh):
        seen = []
        w = shard_tensor(np.ones((7, 4)), mesh, [R, S1], stop_gradient=False)
        x = shard_tensor(X, mesh, [S0, R], stop_gradient=False)
        y = x * 1.0
        y.register_hook(lambda g: seen.append(g.placements))
        _, n = counted(lambda: y.matmul(w).sum().backward())
        return seen, x.grad.placements, w.grad.placements, n
    assert on_mesh("dp=2,tp=2", run) == [([[S0, R]], [S0, R], [P, S1], {"all_reduce": 1})] * 4


def test_a_plain_leaf_beside_distributed_tensors():
    """It counts as replicated; the gradient, read as a whole, is right."""
    def run(mesh):
        b = paddle.to_tensor(np.arange(7.0), stop_gradient=False)
        (shard_tensor(X, mesh, [S0]) * (b * b)).sum().backward()
        return b.grad.numpy()
    for g in on_mesh("x=2", run):
        np.testing.assert_allclose(g, 2 * np.arange(7) * X.sum(0))


# -------------------------------------------------------------------------------------------------------- dropout
@pytest.mark.parametrize("placements", [[S0, R], [R, S1], [S0, S1], [S1, S0], [S0, S0], [R, R], [P, S1]], ids=str)
def test_dropout_masks_are_those_of_one_rank(placements):
    """E5, tt-metal #55947: shards' masks differ and concatenate, replicas' are equal, the gradient has the same one."""
    x = np.abs(X) + 1.0

    def step(t):
        paddle.seed(11)
        y = F.dropout(t, 0.4)
        z = F.dropout(t, 0.4)
        (y * t).sum().backward()
        return y.numpy(), z.numpy(), t.grad.numpy()
    y, z, g = step(paddle.to_tensor(x, stop_gradient=False))
    assert (y == 0).any() and (y != 0).any() and ((y == 0) != (z == 0)).any()
    for got in on_mesh("dp=2,tp=2", lambda m: step(shard_tensor(x, m, placements, stop_gradient=False))):
        for a, b in zip(got, (y, z, g), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


# ----------------------------------------------------------------------------------------------- meshes of parts
def test_gradients_on_a_mesh_with_an_axis_of_one():
    def run(mesh):
        x = shard_tensor(X, mesh, [S0, S1], stop_gradient=False)
        F.softmax(x, axis=1).square().sum().backward()
        return x.grad.numpy(), dict(current().comm.counts)
    x = paddle.to_tensor(X, stop_gradient=False)
    F.softmax(x, axis=1).square().sum().backward()
    for g, counts in on_mesh("dp=2,tp=1", run):
        np.testing.assert_allclose(g, x.grad.numpy(), rtol=1e-12)
        assert set(counts) == {"all_gather"}            # numpy() only: an axis of one rank splits nothing


def test_a_mesh_of_reordered_ranks():
    def run(mesh):
        other = ProcessMesh([[3, 1], [0, 2]], ["a", "b"])
        x = shard_tensor(X, other, [S0, S1], stop_gradient=False)
        (x.matmul(x.transpose([1, 0]))).tanh().sum().backward()
        return x.grad.numpy(), dtensor_from_local(np.array([float(current().rank)]), other, [P, P]).item()
    x = paddle.to_tensor(X, stop_gradient=False)
    (x.matmul(x.transpose([1, 0]))).tanh().sum().backward()
    for g, total in on_mesh("x=4", run):
        np.testing.assert_allclose(g, x.grad.numpy(), rtol=1e-10, atol=1e-12)
        assert total == 6.0


def test_a_rank_outside_knows_what_a_partial_was_resolved_to():
    """Else it would expect messages for other placements than those that the ranks inside send by."""
    def run(mesh):
        first, second = mesh[0], mesh[1]
        total = shard_tensor(np.ones((4, 6, 8)), first, [S0, S1]).sum(axis=0)           # f64[6_y, 8]{P_x}
        by = shard_tensor(np.arange(8.0), first, [S0, R])
        y = total * by                                                                  # brings total to [S1, S0]
        there = reshard(total, second, [R, S0])
        held = there.numpy() if second.contains(current().rank) else None
        return y.placements, list(total.payload.held().placements), held
    for rank, (y, total, there) in enumerate(on_mesh("pp=2,x=2,y=2", run)):
        assert (y, total) == ([S1, S0], [S1, S0])
        if rank >= 4:
            np.testing.assert_array_equal(there, np.full((6, 8), 4.0))


# --------------------------------------------------------------------------------------------------- several meshes
def test_what_is_replicated_on_a_larger_mesh_is_on_its_parts_too():
    """Nothing moves; the gradient comes back to where the value was."""
    def run(mesh):
        first, second = mesh[0], mesh[1]
        scale = shard_tensor(np.array([2.0, 3.0]), mesh, [R, R], stop_gradient=False)
        x = shard_tensor(np.ones((2, 2)), first, [S0])
        y, n = counted(lambda: x * scale)
        z = scale * reshard(y, second, [R])
        z.sum().backward()
        return y.process_mesh == first, z.process_mesh == second, n, scale.grad.process_mesh == mesh, scale.grad.numpy()
    for *where, n, home, g in on_mesh("pp=2,x=2", run):
        assert where == [True, True] and n == {} and home
        np.testing.assert_array_equal(g, [8.0, 12.0])           # sum of 2 rows of scale^2


def test_a_sum_over_several_meshes():
    """As for the norm of parameters that are on several meshes: on all their ranks together."""
    def run(mesh):
        parts = [shard_tensor(np.array([1.0, 2, 3]), mesh[0], [S0], stop_gradient=False).sum(),
                 shard_tensor(np.array(10.0), mesh[1], [R], stop_gradient=False)]
        total = paddle.add_n(parts)
        return total.process_mesh.process_ids, total.placements, total.item()
    assert on_mesh("pp=2,x=2", run) == [([0, 1, 2, 3], [R], 16.0)] * 4


def test_operands_on_different_meshes():
    def run(mesh):
        x, y = shard_tensor(X, mesh[0], [S0]), shard_tensor(X, mesh[1], [R])
        with pytest.raises(ValueError, match=r"add: expected operands on one mesh, got f64\[5_x, 7\] on x=2 of the "
                                             r"ranks \[0, 1\] and f64\[5, 7\] on x=2 of the ranks \[2, 3\]; reshard"):
            x + y
        return True
    assert on_mesh("pp=2,x=2", run) == [True] * 4
