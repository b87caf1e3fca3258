"""`parallelize`: a model written for one rank, laid out by a plan; and the same with sequence parallelism."""

import sys

import numpy as np
import paddle
import paddle.distributed as dist
from common import same
from paddle import nn

n, rank = dist.get_world_size(), dist.get_rank()
mesh = dist.ProcessMesh(np.arange(n).reshape(-1, 2), dim_names=["dp", "mp"])
BATCH, SEQ, WIDTH, HEADS, CLASSES = 4, 6, 8, 2, 10


class Attention(nn.Layer):
    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.o_proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (f(x).reshape([0, 0, HEADS, WIDTH // HEADS]) for f in (self.q_proj, self.k_proj, self.v_proj))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.reshape([0, 0, WIDTH]))


class Mlp(nn.Layer):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 16), nn.Linear(16, WIDTH)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


class Block(nn.Layer):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.mlp = Attention(), Mlp()

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(CLASSES, WIDTH)
        self.blocks = nn.LayerList([Block(), Block()])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def losses(model, opt):
    rng, found = np.random.default_rng(5), []
    for _ in range(3):
        ids = paddle.to_tensor(rng.integers(0, CLASSES, (BATCH, SEQ + 1)))
        loss = nn.functional.cross_entropy(model(ids[:, :-1]), ids[:, 1:]).mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        found.append(float(loss))
    return found


def fresh():
    paddle.seed(11)
    model = Model()
    return model, paddle.optimizer.AdamW(0.01, parameters=model.parameters())


expected = losses(*fresh())
plan = {
    "embedding": dist.ColWiseParallel(gather_output=True),
    "blocks.*.attention.q_proj": dist.ColWiseParallel(), "blocks.*.attention.k_proj": dist.ColWiseParallel(),
    "blocks.*.attention.v_proj": dist.ColWiseParallel(), "blocks.*.attention.o_proj": dist.RowWiseParallel(),
    "blocks.*.mlp.up": dist.ColWiseParallel(), "blocks.*.mlp.down": dist.RowWiseParallel(),
    "head.weight": dist.ColWiseParallel(),
}
model, opt = dist.parallelize(*fresh(), mesh=mesh, config={"dp_config": {"sharding_level": 0},
                                                           "mp_config": {"parallelize_plan": plan}})
assert model.blocks[0].attention.q_proj.weight.placements[1] == dist.Shard(1)
assert model.blocks[1].attention.o_proj.weight.placements[1] == dist.Shard(0)
same("tensor parallel plan", losses(model, opt), expected, rtol=1e-4)

if "some" not in sys.argv:                              # what follows needs reduce-scatter, which Paddle's CPU lacks
    sequence = {**plan, "embedding": [dist.ColWiseParallel(gather_output=True), dist.SequenceParallelBegin()],
                "blocks.*.norm1": dist.SequenceParallelEnable(), "blocks.*.norm2": dist.SequenceParallelEnable(),
                "blocks.*.attention": dist.SequenceParallelDisable(), "blocks.*.mlp": dist.SequenceParallelDisable(),
                "norm": dist.SequenceParallelEnd()}
    model, opt = dist.parallelize(*fresh(), mesh=mesh, config={"mp_config": {"parallelize_plan": sequence}})
    same("sequence parallel plan", losses(model, opt), expected, rtol=1e-4)
print(f"rank {rank}: done")
