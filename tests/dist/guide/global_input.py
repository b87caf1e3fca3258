"""A tensor that all ranks have, used on both stages of a pipeline."""

import numpy as np
import paddle
import paddle.distributed as dist
from common import HIDDEN, INNER, SEQ, alone, same, same_weights, trained

ranks = np.arange(dist.get_world_size())
everyone = dist.ProcessMesh(ranks.reshape(2, -1), dim_names=["pp", "mp"])
mesh0, mesh1 = everyone.get_mesh_with_dim("pp", 0), everyone.get_mesh_with_dim("pp", 1)


class Mlp(paddle.nn.Layer):
    """Adds a sum of the whole table to what comes in, and to what goes out."""

    def __init__(self, parallel=True):
        super().__init__()
        self.w0 = self.create_parameter(shape=[HIDDEN, INNER])
        self.w1 = self.create_parameter(shape=[INNER, HIDDEN])
        self.table = paddle.uniform([SEQ, HIDDEN], min=-0.1, max=0.1)
        self.parallel = parallel
        if parallel:
            self.w0 = dist.shard_tensor(self.w0, mesh0, [dist.Shard(1)])
            self.w1 = dist.shard_tensor(self.w1, mesh1, [dist.Shard(0)])
            self.table = dist.shard_tensor(self.table, everyone, [dist.Replicate(), dist.Replicate()])

    def there(self, x, mesh, placement):
        return dist.reshard(x, mesh, [placement]) if self.parallel else x

    def forward(self, x):
        table = self.table * 0.5
        x = x + self.there(table, mesh0, dist.Replicate())
        y = self.there(paddle.matmul(x, self.w0), mesh1, dist.Shard(2))
        return paddle.matmul(y, self.w1) + self.there(table, mesh1, dist.Replicate())


single, expected = alone(lambda: Mlp(False))
paddle.seed(2026)
model = Mlp()
losses = trained(model, [mesh0, mesh1], None, last=mesh1)
if losses:
    same("loss", losses, expected)
same_weights(model, single)
