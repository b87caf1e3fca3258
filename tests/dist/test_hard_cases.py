"""Inputs on which systems with sharded tensors have gone wrong, run eagerly on simulated ranks.

Each names the public report it comes from.  Expected values are computed by hand, or by numpy on the global value.
"""

from __future__ import annotations

import numpy as np
import pytest

import minipd as paddle
from minipd.dist.api import dtensor_from_local, reshard, shard_tensor
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.framework.rank import current
from minipd.nn import functional as F
from tests.dist.ranks import on_mesh

R, P = Replicate(), Partial()


def S(dim):
    return Shard(dim)


def parts(mesh, *locals_):
    """A Partial tensor, of which rank r holds locals_[r]."""
    return dtensor_from_local(np.array(locals_[current().rank], np.float64), mesh, [P])


def test_mean_of_uneven_shards():
    """pytorch #162692: a mean of the shards' means weights the rows of short shards too much (6.5 here)."""
    def run(mesh):
        x = shard_tensor(np.arange(12.0).reshape(3, 4), mesh, [S(0)])
        empty_on_one = shard_tensor(np.array([[0.0, 1, 2, 3]]), mesh, [S(0)])
        return x.mean().item(), empty_on_one.mean().item()
    assert on_mesh("x=2", run) == [(5.5, 1.5)] * 2


@pytest.mark.parametrize("ten", [10.0, "0-D", "replicated"])
def test_partial_plus_scalar(ten):
    """pytorch #163193: adding 10 to every part adds it once per rank (65 here)."""
    def run(mesh):
        other = {"0-D": paddle.to_tensor(np.float64(10)),
                 "replicated": shard_tensor(np.float64(10), mesh, [R])}.get(ten, ten)
        total = shard_tensor(np.arange(10.0), mesh, [S(0)]).sum()
        assert total.payload.placements == (P,)
        return (total + other).item(), (total - other).item(), (other - total).item()
    assert on_mesh("x=2", run) == [(55.0, 35.0, -35.0)] * 2


def test_partial_plus_scalar_on_one_axis_of_two():
    def run(mesh):
        total = shard_tensor(np.arange(10.0).reshape(5, 2), mesh, [S(0), S(1)]).sum(axis=0)
        return (total + 10.0).tolist()
    assert on_mesh("x=2,y=2", run) == [[30.0, 35.0]] * 4


def test_partial_through_nonlinear_operators():
    """pytorch PR #174536, #165962, #159856: what is not linear sees the sum, never the parts (mixed signs show it)."""
    def run(mesh):
        positive, mixed = parts(mesh, [1.0, 3], [2, 1]), parts(mesh, [-3.0, 2], [2, -1])
        norm = paddle.sqrt((positive * positive).sum())
        return norm.item(), positive.max().item(), F.relu(mixed).tolist()
    assert on_mesh("x=2", run) == [(5.0, 4.0, [0.0, 1.0])] * 2


def test_inplace_changes_the_placements_of_its_tensor():
    """pytorch #163374: after an in-place relu the tensor is no Partial any more."""
    def run(mesh):
        p = parts(mesh, [-3.0, 2], [2, -1])
        p.relu_()
        return p.payload.placements, p.tolist()
    assert on_mesh("x=2", run) == [((R,), [0.0, 1.0])] * 2


def test_partial_times_and_over():
    """pytorch PR #157340: products of parts are no parts of the product (11 here)."""
    def run(mesh):
        a, b, r = parts(mesh, 1.0, 2.0), parts(mesh, 3.0, 4.0), shard_tensor(np.float64(4.0), mesh, [R])
        return (a * b).item(), (a * r).item(), (a / r).item(), (r / a).item(), (a + r).item()
    assert on_mesh("x=2", run) == [(21.0, 12.0, 0.75, 4 / 3, 7.0)] * 2


def test_reshape_through_a_sharded_dimension():
    """pytorch #179502: the local reshape of a column shard holds other elements than the shard of the reshape."""
    whole = np.arange(96.0).reshape(12, 8)

    def run(mesh):
        x = shard_tensor(whole, mesh, [S(1)])
        merged = shard_tensor(whole, mesh, [S(0)]).reshape([96])
        split = shard_tensor(whole, mesh, [S(0)]).reshape([4, 3, 8])
        return x.reshape([16, 6]).numpy(), merged.payload.placements, merged.numpy(), split.payload.placements
    for values, merged, flat, split in on_mesh("x=4", run):
        np.testing.assert_array_equal(values, whole.reshape(16, 6))
        np.testing.assert_array_equal(flat, whole.ravel())
        assert merged == (S(0),) and split == (S(0),)           # the legal cases stay local


def test_round_trip_of_uneven_shards():
    """pytorch #103306, #144109: (5, 10) over 4 ranks is 2, 2, 1, 0 rows, and comes back as (5, 10)."""
    whole = np.arange(50.0).reshape(5, 10)

    def run(mesh):
        x = shard_tensor(whole, mesh, [S(0)])
        back = reshard(x, mesh, [R])
        with pytest.raises(ValueError, match=rf"expected a local shape \[{x.payload.local.shape[0]}, 10\]"):
            dtensor_from_local(np.zeros((current().rank + 3, 10)), mesh, [S(0)], shape=(5, 10))
        return x.payload.local.shape[0], back.payload.local
    rows, wholes = zip(*on_mesh("x=4", run), strict=True)
    assert rows == (2, 2, 1, 0)
    for w in wholes:
        np.testing.assert_array_equal(w, whole)


def test_two_axes_on_one_dimension():
    """pytorch #166598: the outer mesh axis splits first; gathering the inner one must not permute rows."""
    a = np.arange(1.0, 9).reshape(4, 2)
    square = np.arange(16.0).reshape(4, 4)

    def run(mesh):
        x = shard_tensor(a, mesh, [S(0), S(0)])
        inner = reshard(x, mesh, [S(0), R])
        left, right = shard_tensor(square, mesh, [S(1), S(1)]), shard_tensor(square, mesh, [S(0), S(0)])
        return x.payload.local.tolist(), inner.payload.local.tolist(), paddle.matmul(left, right).numpy()
    for rank, (rows, gathered, product) in enumerate(on_mesh("x=2,y=2", run)):
        assert rows == a[rank:rank + 1].tolist()
        assert gathered == a[rank // 2 * 2:rank // 2 * 2 + 2].tolist()
        np.testing.assert_array_equal(product, square @ square)


ROUTES = [([S(0)], [R]), ([R], [S(0)]), ([P], [R]), ([P], [S(1)]), ([R], [P]), ([S(0)], [S(1)]), ([S(1)], [P])]


@pytest.mark.parametrize(("src", "dst"), ROUTES)
def test_gradient_of_reshard(src, dst):
    """Paddle PR #73236, jax #3970: a reshard is the identity on the global value, so its gradient is too."""
    def run(mesh):
        x = shard_tensor(np.arange(6.0).reshape(2, 3), mesh, src, stop_gradient=False)
        y = reshard(x, mesh, dst)
        weight = shard_tensor(np.arange(6.0, 12).reshape(2, 3), mesh, [R])
        (y * weight).sum().backward()
        return x.grad.numpy()
    for g in on_mesh("x=2", run):
        np.testing.assert_array_equal(g, np.arange(6.0, 12).reshape(2, 3))


def test_gradient_collectives_of_reshard():
    """P -> S is a reduce_scatter forward and an all_gather backward; P -> R communicates forward only."""
    def run(mesh, dst):
        comm = current().comm
        x = shard_tensor(np.ones((2, 2)), mesh, [P], stop_gradient=False)
        y = reshard(x, mesh, dst)
        forward = dict(comm.counts)
        y.backward()
        return forward, {k: n - forward.get(k, 0) for k, n in comm.counts.items() if n - forward.get(k, 0)}
    assert on_mesh("x=2", lambda m: run(m, [S(0)])) == [({"reduce_scatter": 1}, {"all_gather": 1})] * 2
    assert on_mesh("x=2", lambda m: run(m, [R])) == [({"all_reduce": 1}, {})] * 2


def test_gradient_of_a_replicated_weight_over_sharded_data():
    """jax #3970: L = sum (w^2 + 1) d with d = [0, 1] over two ranks: dL/dw = 2 on both, not [0, 4]."""
    def run(mesh):
        w = shard_tensor(np.float64(1.0), mesh, [R], stop_gradient=False)
        d = shard_tensor(np.array([0.0, 1.0]), mesh, [S(0)])
        ((w * w + 1.0) * d).sum().backward()
        return w.grad.item()
    assert on_mesh("x=2", run) == [2.0, 2.0]


def test_vocabulary_parallel_cross_entropy():
    """Megatron-LM #7452, oslo PR #85: the maximum is global, ignored labels give 0 and no NaN."""
    def run(mesh, logits, labels):
        x = shard_tensor(np.array(logits, np.float64), mesh, [S(1)], stop_gradient=False)
        loss = F.cross_entropy(x, paddle.to_tensor(labels), ignore_index=-100)
        loss.backward()
        return loss.item(), x.grad.numpy()

    for loss, g in on_mesh("tp=2", lambda m: run(m, [[0, 0, 0, 0]], [0])):
        assert loss == pytest.approx(np.log(4), abs=1e-12)
        np.testing.assert_allclose(g, [[-0.75, 0.25, 0.25, 0.25]], atol=1e-12)
    for loss, _ in on_mesh("tp=2", lambda m: run(m, [[0, 1, 2, 3]], [2])):
        assert loss == pytest.approx(1.4401896985611953, abs=1e-12)
    for loss, _ in on_mesh("tp=2", lambda m: run(m, [[1e4, 0, -1e4, 1e4]], [0])):
        assert loss == pytest.approx(np.log(2), abs=1e-12)
    for loss, g in on_mesh("tp=2", lambda m: run(m, [[0, 1, 2, 3]], [-100])):
        assert loss == 0.0
        np.testing.assert_array_equal(g, np.zeros((1, 4)))


def test_padded_vocabulary_columns():
    """Columns of -inf, which pad a vocabulary to a round number, change neither loss nor gradient."""
    def run(mesh):
        logits = np.array([[0.0, 1, 2, -np.inf]])
        x = shard_tensor(logits, mesh, [S(1)], stop_gradient=False)
        loss = F.cross_entropy(x, paddle.to_tensor([1]))
        loss.backward()
        return loss.item(), x.grad.numpy()
    p = np.exp([0.0, 1, 2]) / np.exp([0.0, 1, 2]).sum()
    for loss, g in on_mesh("tp=2", run):
        assert loss == pytest.approx(-np.log(p[1]), abs=1e-12)
        np.testing.assert_allclose(g, [[p[0], p[1] - 1, p[2], 0]], atol=1e-12)


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
