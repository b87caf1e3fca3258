"""Pipeline parallel: half of the ranks have the first weight, half the second; between them the value changes mesh."""

import paddle
import paddle.distributed as dist
from common import HIDDEN, INNER, alone, same, same_weights, trained

ranks = list(range(dist.get_world_size()))
mesh0 = dist.ProcessMesh(ranks[:len(ranks) // 2], dim_names=["x"])
mesh1 = dist.ProcessMesh(ranks[len(ranks) // 2:], dim_names=["x"])


class PipelineMlp(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.w0 = dist.shard_tensor(self.create_parameter(shape=[HIDDEN, INNER]), mesh0, [dist.Replicate()])
        self.w1 = dist.shard_tensor(self.create_parameter(shape=[INNER, HIDDEN]), mesh1, [dist.Replicate()])

    def forward(self, x):
        y = paddle.matmul(x, self.w0)
        y = dist.reshard(y, mesh1, [dist.Replicate()])
        z = paddle.matmul(y, self.w1)
        return z


single, expected = alone()
paddle.seed(2026)
model = PipelineMlp()
losses = trained(model, [mesh0, mesh1], None, last=mesh1)
if losses:
    same("loss", losses, expected)
same_weights(model, single)
