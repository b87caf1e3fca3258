"""Batches as distributed tensors: those of one rank."""

from __future__ import annotations

import numpy as np
import pytest

import minipd as paddle
import minipd.distributed as dist
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.framework.rank import current
from minipd.io import BatchSampler, DataLoader, Dataset, DistributedBatchSampler, IterableDataset, TensorDataset
from tests.dist.ranks import on_mesh
from tests.dist.refused import refused

R, P, S0, S1 = Replicate(), Partial(), Shard(0), Shard(1)


# -------------------------------------------------------------------------------------------------------------- loaders
class Pairs(Dataset):
    def __init__(self, n, nested=False):
        self.n, self.nested = n, nested

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        x, y = np.full((2,), i, "float32"), np.int64(i * 10)
        return {"inputs": [x, x + 0.5], "label": y} if self.nested else (x, y)


def whole_of(batch):
    return [t.numpy().tolist() for t in batch]


@pytest.mark.parametrize(("n", "shuffle", "workers"), [
    (7, False, 0), (8, True, 0), (9, False, 0), (9, True, 0), pytest.param(9, True, 2, marks=pytest.mark.long)])
def test_batches_are_those_of_one_rank(n, shuffle, workers):
    """Also a last batch that does not divide, or has fewer samples than there are ranks; and in the next epoch."""
    def loader():
        return DataLoader(Pairs(n), batch_size=4, shuffle=shuffle, num_workers=workers)

    def run(mesh):
        paddle.seed(5)
        sharded = dist.shard_dataloader(loader(), mesh, shard_dims="dp")
        assert len(sharded) == len(loader())
        return [[(whole_of(b), [t.placements for t in b], b[0]._local_shape) for b in sharded] for _ in range(2)]
    paddle.seed(5)
    one = loader()
    wanted = [[whole_of(b) for b in one] for _ in range(2)]
    for rank, epochs in enumerate(on_mesh("dp=2,mp=2" if not workers else "dp=2", run)):
        assert [[b for b, _, _ in e] for e in epochs] == wanted
        for batch, placed, local in epochs[0]:
            assert all(p[0] == S0 for p in placed)
            size = len(batch[0])
            assert local[0] == [-(-size // 2), size - -(-size // 2)][rank // 2 if not workers else rank]


def test_named_inputs_on_two_meshes():
    def run(mesh):
        first, second = mesh[0], mesh[1]
        loader = dist.shard_dataloader(DataLoader(Pairs(3, nested=True), batch_size=2), [[first, second], second],
                                       input_keys=["inputs", "label"], shard_dims="dp")
        rank, found = current().rank, []
        for batch in loader():
            a, b, label = *batch["inputs"], batch["label"]
            assert (a.process_mesh, b.process_mesh, label.process_mesh) == (first, second, second)
            found.append([list(t.shape) for t in (a, b, label)])
            mine = a if rank < 2 else b
            found.append(mine.numpy().tolist())
        return found
    for rank, found in enumerate(on_mesh("pp=2,dp=2", run)):
        more = 0.0 if rank < 2 else 0.5
        assert found == [[[2, 2], [2, 2], [2]], [[more, more], [1 + more, 1 + more]], [[1, 2], [1, 2], [1]],
                         [[2 + more, 2 + more]]]


def test_what_stays_ordinary():
    def run(mesh):
        loader = dist.shard_dataloader(DataLoader(Pairs(4, nested=True), batch_size=4), mesh, shard_dims=0,
                                       dense_tensor_idx=[[1], []])
        batch = next(iter(loader))
        return [t.is_dist() for t in (*batch["inputs"], batch["label"])], batch["inputs"][1].numpy()[:, 0].tolist()
    assert on_mesh("dp=2", run) == [([True, False, True], [0.5, 1.5]), ([True, False, True], [2.5, 3.5])]


def test_a_dataset_that_is_split_already():
    """Ranks have different samples, and as many as they like."""
    def run(mesh):
        mine = TensorDataset([paddle.arange(3 - current().rank) + 10 * current().rank])
        loader = dist.shard_dataloader(DataLoader(mine, batch_size=3), mesh, shard_dims="dp", is_dataset_splitted=True)
        return [b[0].tolist() for b in loader]
    assert on_mesh("dp=2", run) == [[[0, 1, 2, 10, 11]]] * 2


def test_other_samplers_and_datasets():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(np.arange(5.0))

    def run(mesh):
        own = DataLoader(Pairs(4), batch_sampler=BatchSampler(sampler=[3, 1, 2], batch_size=2))
        dealt = DataLoader(Pairs(4), batch_sampler=DistributedBatchSampler(Pairs(4), 1, 2, current().rank))
        joined = DataLoader(Pairs(4), batch_size=2,
                            collate_fn=lambda s: paddle.to_tensor(np.concatenate([x for x, _ in s])))
        return [[b[0].numpy()[:, 0].tolist() for b in dist.shard_dataloader(loader, mesh, shard_dims="dp")]
                for loader in (own, dealt)] + [
            [b.tolist() for b in dist.shard_dataloader(DataLoader(Stream(), batch_size=3), mesh, shard_dims="dp")],
            [b.tolist() for b in dist.shard_dataloader(joined, mesh, shard_dims="dp")],
            [b[0].placements for b in dist.shard_dataloader(DataLoader(Pairs(2), batch_size=2), mesh)]]
    for got in on_mesh("dp=2", run):
        assert got == [[[3.0, 1.0], [2.0]], [[0.0, 1.0], [2.0, 3.0]], [[0.0, 1.0, 2.0], [3.0, 4.0]],
                       [[0.0, 0.0, 1.0, 1.0], [2.0, 2.0, 3.0, 3.0]], [[R]]]


@pytest.mark.parametrize(("function", "text"), [
    (lambda d, m: dist.shard_dataloader([1], m), "TypeError: shard_dataloader: expected a DataLoader, got [1]"),
    (lambda d, m: dist.shard_dataloader(d, []), "ValueError: shard_dataloader: expected a mesh, or one for each in"),
    (lambda d, m: dist.shard_dataloader(d, m, shard_dims="tp"), "ValueError: expected an axis of the mesh x=2"),
    (lambda d, m: dist.shard_dataloader(d, m, shard_dims=["x", "x"]), "ValueError: shard_dataloader: expected "
                                                                      "shard_dims to be a mesh axis, or one for each"),
    (lambda d, m: dist.shard_dataloader(d, m, is_dataset_splitted=True), "ValueError: shard_dataloader: expected "
                                                                         "shard_dims, the mesh axis whose ranks"),
    (lambda d, m: next(iter(dist.shard_dataloader(d, [m, m, m]))), "ValueError: shard_dataloader: expected 3 inputs in "
                                                                   "a batch, one for each of the meshes, got 2"),
    (lambda d, m: dist.shard_dataloader(d, ProcessMesh([0, 3])), "ValueError: shard_dataloader: expected a mesh of the "
                                                                 "ranks 0 to 1 that were started"),
])
def test_refused_loaders(function, text):
    assert refused(lambda m: function(DataLoader(Pairs(4), batch_size=2), m)).startswith(text)


def test_a_rank_of_two_meshes():
    def run(mesh):
        if current().rank == 0:
            with pytest.raises(ValueError, match="expected rank 0 in one mesh, got it in x=1 and y=2"):
                dist.shard_dataloader(DataLoader(Pairs(4)), [mesh[0:1], ProcessMesh([0, 1], ["y"])])
    on_mesh("x=2", run)
