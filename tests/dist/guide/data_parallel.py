"""Data parallel: the batch is split over the ranks, every rank has all weights."""

import paddle
import paddle.distributed as dist
from common import Mlp, alone, same, same_weights, trained

mesh = dist.ProcessMesh(list(range(dist.get_world_size())), dim_names=["x"])
single, expected = alone()

paddle.seed(2026)
model = Mlp()
losses = trained(model, mesh, "x")
same("loss", losses, expected)
same_weights(model, single)
