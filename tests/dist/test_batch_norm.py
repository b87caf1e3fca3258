"""Batch normalisation of a batch that is spread over ranks: the statistics are the whole batch's."""

import numpy as np
import pytest

import minipd as paddle
import minipd.distributed as dist
from minipd import nn
from minipd.dist.api import shard_layer, shard_tensor
from minipd.dist.placements import Replicate, Shard
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


PICTURES = np.random.default_rng(1).normal(size=(5, 2, 4, 3))


def network():
    """Its biases have been looked at through a reshape: their memory may be that of other tensors, too."""
    paddle.seed(3)
    net = nn.Sequential(nn.Conv2D(2, 3, 3, padding=1), nn.BatchNorm2D(3), nn.ReLU(), nn.BatchNorm2D(3))
    net.to(dtype="float64")
    return net, paddle.optimizer.Momentum(0.1, parameters=net.parameters())


def cube(y):
    return (y * y * y).mean() + y.sum() * 0.1


def epoch(net, opt, place):
    """(losses of three steps, parameters and running statistics)."""
    losses = []
    for i in range(3):
        loss = cube(net(place(PICTURES + i)))
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss.item())
    return losses, [t.numpy() for t in net.state_dict().values()]


def epoch_of_programs(net, opt, place):
    model = dist.to_static(net, None, cube, opt)
    return [float(model(place(PICTURES + i))) for i in range(3)], [t.numpy() for t in net.state_dict().values()]


@pytest.mark.parametrize("how", [epoch, epoch_of_programs])
@pytest.mark.parametrize("sharded", [False, True], ids=["plain", "sharded"])
@pytest.mark.parametrize("axes", [["dp"], ["tp"], ["dp", "tp"]], ids="-".join)
def test_training_on_several_ranks_is_training_on_one(how, sharded, axes):
    losses, state = epoch(*network(), paddle.to_tensor)
    split = [Shard(i) if axis in axes else Replicate() for i, axis in enumerate(("dp", "tp"))]

    def run(mesh):
        net, opt = network()
        if sharded:
            shard_layer(net, mesh)
        return how(net, opt, lambda x: shard_tensor(paddle.to_tensor(x), mesh, split))
    for got, own in on_mesh("dp=2,tp=2", run):
        np.testing.assert_allclose(got, losses, rtol=1e-10)
        for g, w in zip(own, state, strict=True):
            np.testing.assert_allclose(g, w, atol=1e-10)


def test_a_plain_tensor_that_is_written_stays_whole():
    """A view sees the write; what has no view takes the mesh, as in Paddle, but not the split."""
    def run(mesh):
        x, y = paddle.zeros([5]), paddle.zeros([5])
        view = y[1:3]
        for t in (x, y):
            t.set_value(shard_tensor(paddle.arange(5.0), mesh, [Shard(0)]))
        return x.placements, x.tolist(), y.tolist(), view.tolist()
    for placements, *values in on_mesh("x=2", run):
        assert placements == [Replicate()]
        assert values == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [1, 2]]


def test_ranks_outside_of_a_mesh_would_keep_old_values():
    def run(mesh):
        first, x = dist.ProcessMesh([0], ["x"]), paddle.zeros([5])
        view = x[1:3]
        with pytest.raises(ValueError) as said:
            x.set_value(shard_tensor(paddle.arange(5.0), first, [Replicate()]))
        return str(said.value), view.tolist()
    for said, values in on_mesh("x=2", run):
        assert "expected a value that all ranks [0, 1] have" in said and "shard_layer" in said
        assert values == [0, 0]
