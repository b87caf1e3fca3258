"""A data set without labels, `paddle.mean` for a loss, and a mark in `forward` whose result nobody uses."""

import numpy as np
import paddle
import paddle.distributed as dist
from common import BATCH, HIDDEN, INNER, SAMPLES, SEQ, STATIC, adamw, same
from paddle.io import BatchSampler, DataLoader, Dataset

mesh = dist.ProcessMesh(list(range(dist.get_world_size())), dim_names=["x"])
spread = False


class Sequences(Dataset):
    def __init__(self):
        super().__init__()
        self.rng = np.random.default_rng(3)
        self.samples = self.rng.uniform(size=[SAMPLES, SEQ, HIDDEN]).astype("float32")

    def __getitem__(self, index):
        return self.samples[index]

    def __len__(self):
        return SAMPLES


class Mlp(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.w0 = self.create_parameter(shape=[HIDDEN, INNER])
        self.w1 = self.create_parameter(shape=[INNER, HIDDEN])

    def forward(self, x):
        if spread:
            dist.shard_tensor(x, mesh, [dist.Shard(0)])
        y = paddle.matmul(x, self.w0)
        return paddle.matmul(y, self.w1)


def losses(static):
    paddle.seed(8)
    model = Mlp()
    dataset = Sequences()
    dataloader = DataLoader(dataset, batch_sampler=BatchSampler(dataset, batch_size=BATCH))
    opt = adamw(model)
    if spread:
        opt = dist.shard_optimizer(opt)
    found = []
    if static:
        dist_model = dist.to_static(model, dataloader, paddle.mean, opt)
        dist_model.train()
        for data in dataloader():
            found.append(float(dist_model(data)))
        return found
    for data in dataloader:
        loss = paddle.mean(model(data))
        loss.backward()
        opt.step()
        opt.clear_grad()
        found.append(float(loss))
    return found


expected = losses(static=False)
spread = True
same("loss", losses(STATIC), expected)
