"""A checkpoint of one layout is read into another: weights, and what the optimizer keeps."""

import os
import sys
import tempfile

import numpy as np
import paddle
import paddle.distributed as dist
from common import HIDDEN, INNER, Mlp, adamw, create_dataloader, same, train

n, rank = dist.get_world_size(), dist.get_rank()
mesh = dist.ProcessMesh(list(range(n)), dim_names=["x"])
path = next((a for a in sys.argv[1:] if os.path.isdir(a)), None) or tempfile.gettempdir()
path = os.path.join(path, "checkpoint")


def placed(first, second, seed):
    paddle.seed(seed)
    model = Mlp()
    model.w0 = dist.shard_tensor(model.w0, mesh, [first])
    model.w1 = dist.shard_tensor(model.w1, mesh, [second])
    return model


model = placed(dist.Shard(1), dist.Shard(0), 1)
loader = dist.shard_dataloader(create_dataloader(), meshes=mesh, shard_dims=None)
opt = dist.shard_optimizer(adamw(model))
train(model, opt, loader, epochs=1)
dist.save_state_dict(model.state_dict(), path)

other = placed(dist.Shard(0), dist.Replicate(), 2)
assert not np.array_equal(other.w0.numpy(), model.w0.numpy())
dist.load_state_dict(state := other.state_dict(), path)
other.set_state_dict(state)
assert other.w0.placements == [dist.Shard(0)] and other.w0.shape == [HIDDEN, INNER]
for name, p in other.named_parameters():
    same(f"{name} of the checkpoint", p.numpy(), dict(model.named_parameters())[name].numpy(), rtol=0)
print(f"rank {rank}: done")
