"""Layers and optimizers: shard_layer, shard_optimizer, LocalLayer, local_map, the loader."""

import numpy as np
import paddle
import paddle.distributed as dist
from common import BATCH, HIDDEN, SEQ, RandomDataset, create_dataloader, same
from paddle import nn
from paddle.io import DataLoader

n, rank = dist.get_world_size(), dist.get_rank()
mesh = dist.ProcessMesh(list(range(n)), dim_names=["x"])


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(HIDDEN, 8)
        self.norm = nn.LayerNorm(8)
        self.fc2 = nn.Linear(8, 3)

    def forward(self, x):
        return self.fc2(nn.functional.gelu(self.norm(self.fc1(x))))


def shard_fn(name, sublayer, process_mesh):
    if name == "fc1":
        sublayer.weight = dist.shard_tensor(sublayer.weight, process_mesh, [dist.Shard(1)])
        sublayer.bias = dist.shard_tensor(sublayer.bias, process_mesh, [dist.Shard(0)])


def steps(net, opt, spread=lambda x: x):
    losses = []
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=[BATCH, HIDDEN]).astype("float32")
        loss = net(spread(paddle.to_tensor(x))).square().mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(float(loss))
    return losses


paddle.seed(3)
plain = Net()
expected = steps(plain, paddle.optimizer.AdamW(0.01, parameters=plain.parameters()))

# ---- shard_layer, with hooks on what goes in and what comes out
paddle.seed(3)
net = dist.shard_layer(Net(), mesh, shard_fn,
                       input_fn=lambda inputs, m: dist.shard_tensor(inputs[0], m, [dist.Replicate()]),
                       output_fn=lambda out, m: dist.reshard(out, m, [dist.Replicate()]))
assert net.fc1.weight.placements == [dist.Shard(1)] and net.fc2.weight.placements[0].is_replicated()
opt = dist.shard_optimizer(paddle.optimizer.AdamW(0.01, parameters=net.parameters()))
same("shard_layer", steps(net, opt), expected)

# ---- a clip by the norm of all gradients, with the batch split
paddle.seed(3)
net = dist.shard_layer(Net(), mesh)
opt = paddle.optimizer.AdamW(0.01, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.5))
opt = dist.shard_optimizer(opt)
spread = steps(net, opt, lambda x: dist.shard_tensor(x, mesh, [dist.Shard(0)]))
paddle.seed(3)
plain = Net()
clipped = paddle.optimizer.AdamW(0.01, parameters=plain.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.5))
same("clipping", spread, steps(plain, clipped))

# ---- what a layer makes of local values, and a function
values = np.arange(4 * n * 2, dtype="float32").reshape(4 * n, 2)


class LocalSum(dist.LocalLayer):
    def __init__(self):
        super().__init__(out_dist_attrs=[(mesh, [dist.Partial()])], grad_dist_attrs=[(mesh, [dist.Shard(0)])])

    def forward(self, x):
        assert not x.is_dist() and x.shape == [4, 2]
        return x.sum()


x = dist.shard_tensor(values, mesh, [dist.Shard(0)])
x.stop_gradient = False
total = LocalSum()(x)
assert total.placements == [dist.Partial()]
assert float(dist.reshard(total, mesh, [dist.Replicate()])) == values.sum()

halved = dist.local_map(lambda x: x / 2.0, out_placements=[[dist.Shard(0)]], in_placements=[[dist.Shard(0)]],
                        process_mesh=mesh)(x)
assert halved.placements == [dist.Shard(0)]
np.testing.assert_array_equal(halved.numpy(), values / 2)

# ---- the loader: what comes out of it, with the batch split over the ranks and without
plain_batches = [(x.numpy(), y.numpy()) for x, y in create_dataloader()]
for shard_dims, placements in (("x", [dist.Shard(0)]), (0, [dist.Shard(0)]), (None, [dist.Replicate()])):
    loader = dist.shard_dataloader(create_dataloader(), meshes=[mesh], shard_dims=shard_dims)
    assert len(loader) == len(plain_batches)
    for (x, y), (wanted_x, wanted_y) in zip(loader, plain_batches, strict=True):
        assert x.shape == [BATCH, SEQ, HIDDEN] and x.placements == placements == y.placements
        np.testing.assert_array_equal(dist.unshard_dtensor(x).numpy(), wanted_x)
        np.testing.assert_array_equal(dist.unshard_dtensor(y).numpy(), wanted_y)


class Named(RandomDataset):
    def __getitem__(self, index):
        return {"data": self.inputs[index], "label": self.labels[index]}


loader = dist.shard_dataloader(DataLoader(Named(), batch_size=BATCH), meshes=[mesh, mesh],
                               input_keys=["data", "label"], shard_dims="x")
for batch in loader():
    assert batch["data"].shape == [BATCH, SEQ, HIDDEN] and batch["label"].placements == [dist.Shard(0)]
print(f"rank {rank}: done")
