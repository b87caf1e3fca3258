"""Layers and optimizers over a mesh: the numbers of one rank, and no more communication than counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.dist.api import shard_tensor
from minipd.dist.placements import Replicate, Shard
from minipd.framework.rank import current
from minipd.nn import functional as F
from minipd.optimizer import AdamW, lr
from tests.dist.ranks import on_mesh

R, S0, S1 = Replicate(), Shard(0), Shard(1)
VOCAB = 11                      # over 2 ranks: 6 and 5


class Model(nn.Layer):
    """An embedding with padding, grouped attention, dropout, a tied head: what sharding can get wrong."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, 8, padding_idx=3)
        self.norm = nn.RMSNorm(8)
        self.q, self.kv = nn.Linear(8, 8, bias_attr=False), nn.Linear(8, 4, bias_attr=False)
        self.out = nn.Linear(8, 8, weight_attr=nn.initializer.Normal(0.0, 0.3))
        self.drop = nn.Dropout(0.3)

    def forward(self, ids):
        h = self.embedding(ids)
        x = self.norm(h)
        b, s, _ = x.shape
        kv = self.kv(x).reshape([b, s, 2, 2])
        a = F.scaled_dot_product_attention(self.q(x).reshape([b, s, 4, 2]), kv, kv, is_causal=True)
        return paddle.matmul(h + self.drop(self.out(a.reshape([b, s, 8]))), self.embedding.weight, transpose_y=True)


TENSOR_PARALLEL = {"embedding.weight": S0, "q.weight": S1, "kv.weight": S1, "out.weight": S0}


def sharded_model(mesh):
    paddle.seed(5)
    with paddle.LazyGuard():
        model = Model().to(dtype="float64")
    for name, p in model.named_parameters():
        if mesh is None:
            p.initialize()
        else:
            shard_tensor(p, mesh, [R, TENSOR_PARALLEL.get(name, R)])
    return model


def batch(step, mesh):
    rng = np.random.default_rng(step)
    ids = rng.integers(0, VOCAB, (4, 6))
    labels = np.where(rng.uniform(size=(4, 6)) < [[0.1], [0.5], [0.9], [1.0]], -100, rng.integers(0, VOCAB, (4, 6)))
    return [paddle.to_tensor(a) if mesh is None else shard_tensor(a, mesh, [S0, R]) for a in (ids, labels)]


def train(mesh=None):
    """(losses, parameters, optimizer state) of 5 steps."""
    model = sharded_model(mesh)
    rate = lr.LinearWarmup(lr.CosineAnnealingDecay(0.01, 5), 2, 0.0, 0.01)
    adamw = AdamW(rate, parameters=model.parameters(), epsilon=1e-5, grad_clip=nn.ClipGradByGlobalNorm(0.05))
    losses = []
    for step in range(5):
        current().rng.set_step(step)
        ids, labels = batch(step, mesh)
        loss = F.cross_entropy(model(ids), labels)
        loss.backward()
        adamw.step()
        adamw.clear_grad()
        rate.step()
        losses.append(loss.item())
    state = {k: v.numpy() for k, v in adamw.state_dict().items() if hasattr(v, "numpy")}
    return np.array(losses), {k: v.numpy() for k, v in model.state_dict().items()}, list(state.values())


@pytest.fixture(scope="module")
def alone():
    return train()


@pytest.mark.parametrize("mesh", ["dp=1,tp=1", "dp=2,tp=1", "dp=1,tp=2", "dp=2,tp=2", "dp=4,tp=2"])
def test_training_is_that_of_one_rank(mesh, alone):
    """With uneven masks, an uneven vocabulary, dropout, padding, clipping: to 1e-12 of each tensor's largest value."""
    losses, params, state = alone
    for got_losses, got_params, got_state in on_mesh(mesh, train):
        np.testing.assert_allclose(got_losses, losses, rtol=1e-12)
        pairs = [*((got_params[k], params[k]) for k in params), *zip(got_state, state, strict=True)]
        for got, want in pairs:
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.abs(want).max())


def test_a_shard_is_filled_without_the_whole():
    def run(mesh):
        return {name: p.payload.local for name, p in sharded_model(mesh).named_parameters()}
    whole = {name: p.numpy() for name, p in sharded_model(None).named_parameters()}
    ranks = on_mesh("dp=1,tp=2", run)
    assert [r["embedding.weight"].shape for r in ranks] == [(6, 8), (5, 8)]
    for name, p in TENSOR_PARALLEL.items():
        np.testing.assert_array_equal(np.concatenate([r[name] for r in ranks], p.get_dim()), whole[name])


@pytest.mark.parametrize("mesh,count", [("dp=1,tp=1", 0), ("dp=2,tp=1", 6), ("dp=1,tp=2", 1), ("dp=2,tp=2", 6 + 1)])
def test_collectives_of_a_step(mesh, count):
    """One all-reduce per gradient over dp, and one for the global norm, whose sums of squares are partial over tp."""
    def run(mesh):
        model = sharded_model(mesh)
        adamw = AdamW(0.1, parameters=model.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.05))
        F.cross_entropy(model(batch(0, mesh)[0]), batch(1, mesh)[0]).backward()
        before = sum(current().comm.counts.values())
        adamw.step()
        return sum(current().comm.counts.values()) - before
    assert len(Model().parameters()) == 6
    assert set(on_mesh(mesh, run)) == {count}


def test_state_goes_from_mesh_to_mesh(alone):
    """Values of a single rank, loaded into shards, keep their placements."""
    def run(mesh):
        model = sharded_model(mesh)
        before = {name: p.payload.placements for name, p in model.named_parameters()}
        model.set_state_dict(alone[1])
        assert before == {name: p.payload.placements for name, p in model.named_parameters()}
        return {name: p.numpy() for name, p in model.named_parameters()}
    for got in on_mesh("dp=2,tp=2", run):
        for name, value in got.items():
            np.testing.assert_array_equal(value, alone[1][name])
