"""Inputs on which systems with sharded tensors have gone wrong, on simulated ranks: eagerly, and compiled (`both`).

Each names the public report it comes from.  Expected values are computed by hand, or by numpy on the global value.
"""

from __future__ import annotations

import numpy as np
import pytest

import minipd as paddle
from minipd.autograd.engine import grad
from minipd.dist.api import dtensor_from_local, reshard, shard_tensor
from minipd.dist.comm.errors import MismatchError
from minipd.dist.comm.sim import World
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.sharding import local_window
from minipd.framework.rank import current
from minipd.nn import functional as F
from tests.dist.both import both, static
from tests.dist.ranks import on_mesh

R, P = Replicate(), Partial()


def S(dim, order=None):
    return Shard(dim) if order is None else Shard(dim, shard_order=order)


def parts(mesh, *locals_):
    """A Partial tensor, of which rank r holds locals_[r]."""
    return dtensor_from_local(np.array(locals_[current().rank], np.float64), mesh, [P])


# ------------------------------------------------------------------------------------------------------- D1
def test_mean_of_uneven_shards():
    """pytorch #162692: a mean of the shards' means weights the rows of short shards too much (6.5 here)."""
    assert both("x=2", lambda x: x.mean(), (np.arange(12.0).reshape(3, 4), [S(0)])) == [5.5]


def test_mean_with_an_empty_shard():
    assert both("x=2", lambda x: x.mean(), ([[0.0, 1, 2, 3]], [S(0)])) == [1.5]


# ------------------------------------------------------------------------------------------------------- D2
@pytest.mark.parametrize("ten", [10.0, "0-D", "replicated"])
def test_partial_plus_scalar(ten):
    """pytorch #163193: adding 10 to every part adds it once per rank (65 here)."""
    def run(x, given):
        other = {"0-D": paddle.full([], 10.0, "float64"), "replicated": given}.get(ten, ten)
        total = x.sum()
        return total + other, total - other, other - total
    found = both("x=2", run, (np.arange(10.0), [S(0)]), (np.float64(10), [R]))
    assert [float(a) for a in found] == [55.0, 35.0, -35.0]


def test_the_sum_of_shards_is_partial():
    def run(mesh):
        total = shard_tensor(np.arange(10.0), mesh, [S(0)]).sum()
        return total.placements, total.payload.local.item()
    assert on_mesh("x=2", run) == [([P], 10.0), ([P], 35.0)]


def test_partial_plus_scalar_on_one_axis_of_two():
    x = np.arange(10.0).reshape(5, 2)
    for placed in ([S(0), S(1)], [S(1), S(0)], [R, S(0)], [S(0), R]):
        assert both("x=2,y=2", lambda x: x.sum(axis=0) + 10.0, (x, placed))[0].tolist() == [30.0, 35.0]


# ------------------------------------------------------------------------------------------------------- D3
def test_partial_through_nonlinear_operators():
    """pytorch PR #174536, #165962, #159856: what is not linear sees the sum, never the parts (mixed signs show it)."""
    def run(positive, mixed):
        p, m = positive.sum(axis=0), mixed.sum(axis=0)              # locals [[1, 3] | [2, 1]] and [[-3, 2] | [2, -1]]
        return paddle.linalg.norm(p), p.max(), F.relu(m), p.min(), paddle.clip(p, max=3.5)
    norm, most, relu, least, clipped = both("x=2", run, ([[1.0, 3], [2, 1]], [S(0)]), ([[-3.0, 2], [2, -1]], [S(0)]))
    assert (float(norm), float(most), float(least)) == (5.0, 4.0, 3.0)
    assert relu.tolist() == [0.0, 1.0] and clipped.tolist() == [3.0, 3.5]


@pytest.mark.parametrize(("write", "values"), [
    (lambda p: p.relu_(), [0.0, 1.0]), (lambda p: p.clip_(max=0.5), [-1.0, 0.5])], ids=["relu_", "clip_"])
def test_inplace_changes_the_placements_of_its_tensor(write, values):
    """pytorch #163374: after an in-place relu or clip the tensor is no Partial any more."""
    def run(mesh):
        p = parts(mesh, [-3.0, 2], [2, -1])
        write(p)
        return p.placements, p.tolist()
    assert on_mesh("x=2", run) == [([R], values)] * 2


# ------------------------------------------------------------------------------------------------------- D5
def test_partial_times_and_over():
    """pytorch PR #157340: products of parts are no parts of the product (11 here)."""
    def run(x, y, r):
        a, b = x.sum(), y.sum()                                     # P[1 | 2], P[3 | 4]
        return a * b, a * r, a / r, r / a, a + r
    found = both("x=2", run, ([1.0, 2], [S(0)]), ([3.0, 4], [S(0)]), (4.0, [R]))
    assert [float(a) for a in found] == [21.0, 12.0, 0.75, 4 / 3, 7.0]


def test_which_products_stay_partial():
    def run(mesh):
        a, r = parts(mesh, 1.0, 2.0), shard_tensor(np.float64(4.0), mesh, [R])
        return (a * r).placements, (a / r).placements, (r / a).placements, (a * a).placements
    assert on_mesh("x=2", run) == [([P], [P], [R], [R])] * 2


# ------------------------------------------------------------------------------------------------------- D7
def test_reshape_through_a_sharded_dimension():
    """pytorch #179502: the local reshape of a column shard holds other elements than the shard of the reshape."""
    whole = np.arange(96.0).reshape(12, 8)
    found, = both("x=4", lambda x: x.reshape([16, 6]), (whole, [S(1)]))
    np.testing.assert_array_equal(found, whole.reshape(16, 6))
    for shape in ([96], [4, 3, 8], [2, 2, 3, 8], [3, 4, 8], [12, 2, 4], [6, 16]):
        for placed in ([S(0)], [S(1)]):
            found, = both("x=4", lambda x, shape=shape: x.reshape(shape), (whole, placed))
            np.testing.assert_array_equal(found, whole.reshape(shape))


def test_reshapes_that_stay_local():
    """Paddle PR #74352: merging keeps the shard of the outermost dimension, splitting that of a factor that divides."""
    whole = np.arange(96.0).reshape(12, 8)

    def run(mesh):
        x, y = shard_tensor(whole, mesh, [S(0)]), shard_tensor(whole, mesh, [S(1)])
        out = [x.reshape(s).placements for s in ([96], [4, 3, 8], [12, 2, 4])] + [y.reshape([12, 4, 2]).placements]
        return out, dict(current().comm.counts)
    assert on_mesh("x=4", run) == [([[S(0)], [S(0)], [S(0)], [S(1)]], {})] * 4


# ------------------------------------------------------------------------------------------------------- D9
def test_round_trip_of_uneven_shards():
    """pytorch #103306, #144109: (5, 10) over 4 ranks is 2, 2, 1, 0 rows, and comes back as (5, 10)."""
    whole = np.arange(50.0).reshape(5, 10)

    def run(mesh):
        x = shard_tensor(whole, mesh, [S(0)])
        back = reshard(x, mesh, [R])
        with pytest.raises(ValueError, match=rf"expected a local shape \[{x.payload.local.shape[0]}, 10\]"):
            dtensor_from_local(np.zeros((current().rank + 3, 10)), mesh, [S(0)], shape=(5, 10))
        with pytest.raises(ValueError, match=r"expected a local shape \[4, 10\] on rank 0"):
            dtensor_from_local(np.zeros((current().rank + 2, 10)), mesh, [S(0)])        # [2, 3, 4, 5]: 14 rows
        return x.payload.local.shape[0], back.payload.local
    rows, wholes = zip(*on_mesh("x=4", run), strict=True)
    assert rows == (2, 2, 1, 0)
    for w in wholes:
        np.testing.assert_array_equal(w, whole)
    mesh = parse_mesh("x=4")
    found, = static("x=4", lambda x: reshard(reshard(x, mesh, [S(0)]), mesh, [R]), (whole, [R]))
    np.testing.assert_array_equal(found, whole)


# ------------------------------------------------------------------------------------------------------- D10
def test_offsets_with_two_axes_on_one_dimension():
    """pytorch #161368: two elements over 2 x 4 ranks: the first axis has 1 and 1, the second 1, 0, 0, 0 of each."""
    mesh, placed = parse_mesh("x=2,y=4"), (S(0), S(0))
    windows = [local_window((2,), mesh, placed, rank) for rank in range(8)]
    assert [shape for (shape,), _ in windows] == [1, 0, 0, 0, 1, 0, 0, 0]
    assert windows[0] == ((1,), (0,)) and windows[4] == ((1,), (1,))
    held = [o + i for (n,), (o,) in windows for i in range(n)]
    assert sorted(held) == [0, 1]

    def run(mesh):
        x = shard_tensor(np.array([3.0, 4.0]), mesh, placed)
        return x.payload.local.tolist(), reshard(x, mesh, [R, R]).payload.local.tolist(), (x + 1.0).sum().item()
    assert on_mesh("x=2,y=4", run) == [([3.0] if r == 0 else [4.0] if r == 4 else [], [3.0, 4.0], 9.0)
                                       for r in range(8)]


# ------------------------------------------------------------------------------------------------------- D11
A = np.arange(1.0, 9).reshape(4, 2)
SQUARE = np.arange(16.0).reshape(4, 4)
PRODUCT = [[56.0, 62, 68, 74], [152, 174, 196, 218], [248, 286, 324, 362], [344, 398, 452, 506]]
SWAPPED = [S(0, 1), S(0, 0)]            # the inner axis splits first


def test_order_of_two_shardings_of_one_dimension():
    """pytorch #166598, Paddle PR #73233: ranks hold rows 1, 2, 3, 4, or 1, 3, 2, 4 in the other order."""
    def run(mesh):
        grid = ProcessMesh([[0, 1], [2, 3]], ["x", "y"])
        plain, other = shard_tensor(A, grid, [S(0), S(0)]), shard_tensor(A, grid, SWAPPED)
        return [t.payload.local.tolist()[0] for t in (plain, other)], other.numpy().tolist(), \
            reshard(other, grid, [S(0), S(0)]).payload.local.tolist()[0]
    for rank, ((row, other), whole, back) in enumerate(on_mesh("x=4", run)):
        assert row == A[rank].tolist() == back and other == A[[0, 2, 1, 3][rank]].tolist() and whole == A.tolist()


def test_a_contraction_over_a_dimension_split_in_different_orders():
    for left, right in (([S(1), S(1)], [S(0), S(0)]), ([S(1), S(1)], SWAPPED), ([S(1, 1), S(1, 0)], [S(0), S(0)]),
                        ([S(1, 1), S(1, 0)], SWAPPED)):
        assert both("x=2,y=2", paddle.matmul, (SQUARE, left), (SQUARE, right))[0].tolist() == PRODUCT


def test_gathering_the_inner_axis_keeps_the_order_of_rows():
    def run(mesh):
        inner = reshard(shard_tensor(A, mesh, [S(0), S(0)]), mesh, [S(0), R])
        other = reshard(shard_tensor(A, mesh, SWAPPED), mesh, [S(0), R])
        return inner.payload.local.tolist(), other.payload.local.tolist()
    for rank, held in enumerate(on_mesh("x=2,y=2", run)):
        assert held == (A[rank // 2 * 2:rank // 2 * 2 + 2].tolist(),) * 2
    grid = parse_mesh("x=2,y=2")
    for src in ([S(0), S(0)], SWAPPED):
        assert static("x=2,y=2", lambda x: reshard(x, grid, [S(0), R]), (A, src))[0].tolist() == A.tolist()


# ------------------------------------------------------------------------------------------------------- D12
ROUTES = [([S(0)], [R]), ([R], [S(0)]), ([P], [R]), ([P], [S(1)]), ([R], [P]), ([S(0)], [S(1)]), ([S(1)], [P])]
GRAD = np.arange(6.0, 12).reshape(2, 3)


@pytest.mark.parametrize(("src", "dst"), ROUTES)
def test_gradient_of_reshard(src, dst):
    """Paddle PR #73236, jax #3970: a reshard is the identity on the global value, so its gradient is too."""
    mesh = parse_mesh("x=2")

    def run(x, weight):
        y = reshard(reshard(x, mesh, src), mesh, dst)
        return grad((y * weight).sum(), [x])
    found, = both("x=2", run, (np.arange(6.0).reshape(2, 3), [R]), (GRAD, [R]))
    np.testing.assert_array_equal(found, GRAD)


@pytest.mark.parametrize(("src", "dst", "forward", "backward"), [
    (P, S(0), {"reduce_scatter": 1}, {"all_gather": 1}), (P, R, {"all_reduce": 1}, {}),
    (R, S(0), {}, {"all_gather": 1}), (S(0), R, {"all_gather": 1}, {}), (R, P, {}, {}),
    (S(0), S(1), {"all_to_all": 1}, {"all_to_all": 1})], ids=str)
def test_collectives_of_a_reshard_and_of_its_gradient(src, dst, forward, backward):
    """The gradient's are the transposed ones, for a gradient that is placed as the reshard left its value.  The
    gradient of the gradient is the reshard again: nothing more."""
    def counts(since):
        return {k: n - since.get(k, 0) for k, n in current().comm.counts.items() if n != since.get(k, 0)}

    def run(mesh):
        x = shard_tensor(np.ones((2, 2)), mesh, [src], stop_gradient=False)
        y = reshard(x, mesh, [dst])
        there, now = counts({}), dict(current().comm.counts)
        g = shard_tensor(np.ones((2, 2)), mesh, [R if dst.is_partial() else dst], stop_gradient=False)
        dx, = grad([y], [x], [g], create_graph=True)
        back, now = counts(now), dict(current().comm.counts)
        grad([dx], [g], [shard_tensor(np.ones((2, 2)), mesh, [R if src.is_partial() else src])])
        again = counts(now)
        return there, back, again
    for there, back, again in on_mesh("x=2", run):
        assert (there, back) == (forward, backward)
        assert sum(again.values()) <= sum(forward.values())


def test_gradient_of_a_replicated_weight_over_sharded_data():
    """jax #3970: L = sum (w^2 + 1) d with d = [0, 1] over two ranks: dL/dw = 2 on both, not [0, 4]."""
    found = both("x=2", lambda w, d: grad(((w * w + 1.0) * d).sum(), [w]), (1.0, [R]), ([0.0, 1.0], [S(0)]))
    assert found == [2.0]


# ------------------------------------------------------------------------------------------------------- D14
def test_broadcasting_of_sharded_dimensions():
    """Paddle PR #54373: a dimension of size 1 is not split, and dimensions align to the right."""
    x, y = np.arange(4.0).reshape(4, 1), np.arange(6.0).reshape(1, 6)
    assert on_mesh("x=2,y=2", lambda m: (shard_tensor(x, m, [S(0), R]) * shard_tensor(y, m, [R, S(1)])).placements) == \
        [[S(0), S(1)]] * 4
    for px in ([S(0), R], [R, S(0)], [S(1), S(0)]):
        for py in ([R, S(1)], [S(1), R], [S(0), S(1)], [S(0), S(0)]):
            found, = both("x=2,y=2", lambda a, b: a * b, (x, px), (y, py))
            np.testing.assert_array_equal(found, x * y)


def test_dimensions_that_align_to_the_right():
    x, b = np.arange(24.0).reshape(4, 6), np.arange(6.0)
    for px in ([S(0)], [S(1)], [R]):
        found, = both("x=2", lambda a, b: a + b, (x, px), (b, [S(0)]))
        np.testing.assert_array_equal(found, x + b)

    def run(mesh):
        y = shard_tensor(x, mesh, [S(0)]) + shard_tensor(b, mesh, [S(0)])
        return y.placements, dict(current().comm.counts)
    assert on_mesh("x=2", run) == [([S(0)], {"all_gather": 1})] * 2         # the smaller one moves


# ------------------------------------------------------------------------------------------------------- D15
def test_no_collective_on_an_axis_of_one_rank():
    """Paddle PR #67386."""
    mesh = parse_mesh("x=2,y=1")

    def run(x, w):
        return x.matmul(w).sum(), reshard(reshard(x, mesh, [R, S(1)]), mesh, [R, R])

    def counted(grid):
        before = dict(current().comm.counts)
        run(shard_tensor(SQUARE, grid, [R, S(1)]), shard_tensor(SQUARE, grid, [R, S(0)]))
        return before, dict(current().comm.counts)
    total, same = both("x=2,y=1", run, (SQUARE, [R, S(1)]), (SQUARE, [R, S(0)]))
    assert float(total) == (SQUARE @ SQUARE).sum() and same.tolist() == SQUARE.tolist()
    assert on_mesh("x=2,y=1", counted) == [({}, {})] * 2


def test_mismatched_collectives_are_an_error():
    """CollectiveFingerPrint errors: (3,) here and (4,) there raise, with the number of the call, and never hang."""
    with pytest.raises(MismatchError, match=r"all_reduce#17") as error:
        def rank(comm):
            for _ in range(17):
                comm.all_reduce(np.ones(2), (0, 1))
            comm.all_reduce(np.ones(3 + comm.rank), (0, 1))
        World(2).run(rank)
    assert "[3]" in str(error.value) and "[4]" in str(error.value)


def test_a_sum_that_is_reduced_already():
    """jax #19175: there is no psum of a replicated value to call twice; a reshard of what is whole does nothing."""
    def run(mesh):
        whole = reshard(parts(mesh, [1.0], [2.0]), mesh, [R])
        again = reshard(whole, mesh, [R])
        return again.tolist(), reshard(reshard(again, mesh, [P]), mesh, [R]).tolist(), dict(current().comm.counts)
    assert on_mesh("x=2", run) == [([3.0], [3.0], {"all_reduce": 2})] * 2


# ------------------------------------------------------------------------------------------------------- E1
TABLE = np.arange(30.0).reshape(10, 3) + 1
TOKENS = np.array([[0, 9, 3, 3]])


@pytest.mark.parametrize("rows", [10, 12])
def test_vocabulary_parallel_embedding(rows):
    """picotron, Megatron-LM #1754: 10 rows over 4 ranks are 3, 3, 3, 1; or 12 with padding.  The row of padding_idx
    gets no gradient, nor do the padded ones; duplicates add up."""
    table = np.zeros((rows, 3))
    table[:10] = TABLE

    def run(ids, weight):
        out = F.embedding(ids, weight, padding_idx=3)
        return out, *grad((out * 2.0).sum(), [weight])
    shown = table.copy()
    shown[3] = 0.0              # as Paddle: the row of padding_idx reads as zeros
    for placed in ([S(0)], [S(1)], [R]):
        out, g = both("tp=4", run, (TOKENS, [R]), (table, placed))
        np.testing.assert_array_equal(out, shown[TOKENS])
        expected = np.zeros((rows, 3))
        expected[[0, 9]] = 2.0
        np.testing.assert_array_equal(g, expected)


def test_duplicates_in_a_vocabulary_parallel_embedding_add_up():
    def run(ids, weight):
        return grad(F.embedding(ids, weight).sum(), [weight])
    g, = both("tp=4", run, (TOKENS, [R]), (TABLE, [S(0)]))
    assert g[:, 0].tolist() == [1, 0, 0, 2, 0, 0, 0, 0, 0, 1]


# ------------------------------------------------------------------------------------------------------- E2
def cross_entropy(logits, label, **more):
    """(loss, gradient) on two ranks that have half of the classes each."""
    def run(x, y):
        loss = F.cross_entropy(x, y, **more)
        return loss, *grad(loss, [x])
    loss, g = both("tp=2", run, (np.array([logits], np.float64), [S(1)]), (np.array([label]), [R]))
    return float(loss), g


def test_vocabulary_parallel_cross_entropy():
    """Megatron-LM #7452, oslo PR #85: the maximum is global, ignored labels give 0 and no NaN."""
    loss, g = cross_entropy([0, 0, 0, 0], 0)
    assert loss == pytest.approx(np.log(4), abs=1e-12)
    np.testing.assert_allclose(g, [[-0.75, 0.25, 0.25, 0.25]], atol=1e-12)
    assert cross_entropy([0, 1, 2, 3], 2)[0] == pytest.approx(1.4401896985611953, abs=1e-12)
    assert cross_entropy([1e4, 0, -1e4, 1e4], 0)[0] == pytest.approx(np.log(2), abs=1e-12)
    loss, g = cross_entropy([0, 1, 2, 3], -100)
    assert loss == 0.0
    np.testing.assert_array_equal(g, np.zeros((1, 4)))


def test_label_smoothing_runs_over_the_whole_vocabulary():
    """Megatron-LM #7452: epsilon 0.1 on logits 0 1 2 3, target 2: 1.49019 (plain: 1.44019)."""
    loss, g = cross_entropy([0, 1, 2, 3], 2, label_smoothing=0.1)
    assert loss == pytest.approx(1.4901896985611953, abs=1e-12)
    p = np.exp([0.0, 1, 2, 3]) / np.exp([0.0, 1, 2, 3]).sum()
    np.testing.assert_allclose(g[0], p - [0.025, 0.025, 0.925, 0.025], atol=1e-12)


def test_logits_that_are_whole_are_not_reduced_again():
    """Megatron-LM #7452: logits gathered before, then reduced once more, gave log 4 + log 2.  A placement says that
    they are whole, so nothing is added, and nothing communicates."""
    def run(mesh):
        x = reshard(shard_tensor(np.zeros((1, 4)), mesh, [S(1)]), mesh, [R])
        before = dict(current().comm.counts)
        return F.cross_entropy(x, paddle.to_tensor([0])).item(), dict(current().comm.counts) == before
    for loss, quiet in on_mesh("tp=2", run):
        assert loss == pytest.approx(np.log(4), abs=1e-12) and quiet


def test_padded_vocabulary_columns():
    """Columns of -inf, which pad a vocabulary to a round number, change neither loss nor gradient."""
    p = np.exp([0.0, 1, 2]) / np.exp([0.0, 1, 2]).sum()
    loss, g = cross_entropy([0.0, 1, 2, -np.inf], 1)
    assert loss == pytest.approx(-np.log(p[1]), abs=1e-12)
    np.testing.assert_allclose(g, [[p[0], p[1] - 1, p[2], 0]], atol=1e-12)


# -------------------------------------------------------------------------------------------------- E8
def test_global_norm_counts_replicated_gradients_once():
    """NeMo-RL PR #3788, torchtitan #596: replicated [3] and sharded [4 | 0] have norm 5, not sqrt(9 + 9 + 16)."""
    from minipd.nn.clip import ClipGradByGlobalNorm

    def run(mesh):
        a = shard_tensor(np.zeros(1), mesh, [R], stop_gradient=False)
        b = shard_tensor(np.zeros(2), mesh, [S(0)], stop_gradient=False)
        grads = [shard_tensor(np.array([3.0]), mesh, [R]), shard_tensor(np.array([4.0, 0.0]), mesh, [S(0)])]
        clipped = ClipGradByGlobalNorm(1.0)(list(zip([a, b], grads, strict=True)))
        return [g.tolist() for _, g in clipped], current().comm.counts["all_reduce"]
    for clipped, n in on_mesh("tp=2", run):
        np.testing.assert_allclose(np.concatenate(clipped), [0.6, 0.8, 0.0], atol=1e-6)
        assert n == 1


def test_a_step_with_nan_on_one_rank_is_skipped_on_all():
    """The norm is NaN everywhere, so nobody moves, no moment changes and the step does not count."""
    from minipd.optimizer import AdamW

    def run(mesh):
        p = shard_tensor(paddle.create_parameter([4], "float64"), mesh, [S(0)])
        adamw = AdamW(0.1, parameters=[p], grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0))
        seen = []
        for bad in (0.0, np.nan, 0.0):
            p.grad = shard_tensor(np.array([1.0, 2, 3, 4 + bad]), mesh, [S(0)])
            adamw.step()
            seen.append((p.tolist(), adamw.state_of(p)["moment1"].tolist(), int(adamw.scalars()[1])))
        return seen
    for first, skipped, last in on_mesh("tp=2", run):
        assert skipped == first and first[2] == 1 and last[2] == 2
        assert last[0] != first[0] and np.isfinite(last[0]).all()
