"""Batch normalisation of a batch that is spread over ranks: the statistics are the whole batch's."""

import numpy as np

import minipd as paddle
from minipd import nn
from minipd.dist.api import shard_tensor
from minipd.dist.placements import Shard
from tests.dist.ranks import on_mesh

X = np.random.default_rng(0).normal(size=(7, 3, 5))         # 7 over 2 ranks: 4 and 3, so the mean of means is wrong


def trained(layer, x):
    """(output, running statistics, gradients) of one step."""
    layer.to(dtype="float64")
    x.stop_gradient = False
    out = layer(x)
    (out * out * out).sum().backward()
    return [t.numpy() for t in (out, layer._mean, layer._variance, x.grad, layer.weight.grad)]


def test_statistics_are_those_of_the_global_batch():
    want = trained(nn.BatchNorm1D(3), paddle.to_tensor(X))

    def run(mesh):
        def placed():
            return shard_tensor(paddle.to_tensor(X), mesh, [Shard(0), Shard(2)])
        return trained(nn.SyncBatchNorm(3), placed()), trained(nn.BatchNorm1D(3), placed())
    for both in on_mesh("x=2,y=2", run):
        for got in both:
            for g, w in zip(got, want, strict=True):
                np.testing.assert_allclose(g, w, atol=1e-13)


def test_a_rank_with_a_batch_of_its_own_is_told_that_nothing_is_synchronised():
    def run(mesh):
        try:
            nn.SyncBatchNorm(3)(paddle.to_tensor(X))
        except RuntimeError as error:
            return str(error)
    for said in on_mesh("x=2", run):
        assert said.startswith("SyncBatchNorm: expected a distributed tensor, got a plain one on a rank among 2")
