"""Data, tensor and pipeline parallel at once: two meshes of a grid of ranks each."""

import numpy as np
import paddle
import paddle.distributed as dist
from common import HIDDEN, INNER, alone, same, same_weights, trained

ranks = dist.get_world_size()
# two stages; what is left of the ranks goes to tensor parallelism first
mp = 2 if ranks >= 4 else 1
dist.auto_parallel.set_mesh(dist.ProcessMesh(np.arange(ranks).reshape(2, -1, mp), dim_names=["pp", "dp", "mp"]))


def stage(index):
    return dist.auto_parallel.get_mesh().get_mesh_with_dim("pp", index)


class HybridMlp(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.w0 = dist.shard_tensor(self.create_parameter(shape=[HIDDEN, INNER]), stage(0),
                                    [dist.Replicate(), dist.Shard(1)])
        self.w1 = dist.shard_tensor(self.create_parameter(shape=[INNER, HIDDEN]), stage(1),
                                    [dist.Replicate(), dist.Shard(0)])

    def forward(self, x):
        y = paddle.matmul(x, self.w0)
        y = dist.reshard(y, stage(1), [dist.Shard(0), dist.Shard(2)])
        z = paddle.matmul(y, self.w1)
        return z


single, expected = alone()
paddle.seed(2026)
model = HybridMlp()
losses = trained(model, [stage(0), stage(1)], "dp", last=stage(1))
if losses:
    same("loss", losses, expected)
same_weights(model, single)
