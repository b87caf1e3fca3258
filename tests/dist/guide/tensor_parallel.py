"""Tensor parallel: the first weight is split by columns, the second by rows."""

import paddle
import paddle.distributed as dist
from common import HIDDEN, INNER, alone, same, same_weights, trained

mesh = dist.ProcessMesh(list(range(dist.get_world_size())), dim_names=["mp"])


class TensorParallelMlp(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.w0 = dist.shard_tensor(self.create_parameter(shape=[HIDDEN, INNER]), mesh, [dist.Shard(1)])
        self.w1 = dist.shard_tensor(self.create_parameter(shape=[INNER, HIDDEN]), mesh, [dist.Shard(0)])

    def forward(self, x):
        y = paddle.matmul(x, self.w0)
        z = paddle.matmul(y, self.w1)
        return z


single, expected = alone()
paddle.seed(2026)
model = TensorParallelMlp()
assert model.w0.placements == [dist.Shard(1)] and model.w0.shape == [HIDDEN, INNER]
losses = trained(model, mesh, None)
same("loss", losses, expected)
same_weights(model, single)
