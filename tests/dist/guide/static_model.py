"""What a DistModel can do besides training: programs to look at, evaluation, prediction, its state."""

import numpy as np
import paddle
import paddle.distributed as dist
from common import BATCH, HIDDEN, INNER, SEQ, Mlp, adamw, create_dataloader, loss_fn, same, train, train_static

n, rank = dist.get_world_size(), dist.get_rank()
mesh = dist.ProcessMesh(list(range(n)), dim_names=["x"])


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.w0 = dist.shard_tensor(self.create_parameter(shape=[HIDDEN, INNER]), mesh, [dist.Shard(1)])
        self.w1 = dist.shard_tensor(self.create_parameter(shape=[INNER, HIDDEN]), mesh, [dist.Shard(0)])

    def forward(self, x):
        return paddle.matmul(paddle.matmul(x, self.w0), self.w1)


paddle.seed(4)
single = Mlp()
batches = list(create_dataloader())
before = [float(loss_fn(single(x), y)) for x, y in batches]
answer = single(batches[0][0]).numpy()
expected = [float(loss) for loss in train(single, adamw(single), create_dataloader(), epochs=1)]
after = [float(loss_fn(single(x), y)) for x, y in batches]

paddle.seed(4)
net = Net()
opt = dist.shard_optimizer(adamw(net))
loader = dist.shard_dataloader(create_dataloader(), meshes=mesh)
model = dist.to_static(net, loader, loss_fn, opt, dist.Strategy())

model.predict()
out = model(next(iter(loader))[0])
same("prediction", np.array(out[0] if isinstance(out, list) else out), answer)
model.eval()
same("loss before", [float(model(x, y)) for x, y in loader], before)
same("loss", [float(loss) for loss in train_static(model, loader, epochs=1)], expected)
model.eval()
same("loss after", [float(model(x, y)) for x, y in loader()], after)

program = model.dist_main_program("train")
text = str(program)
assert "pd_op.matmul" in text and "all_reduce" in text, text
assert "all_reduce" not in str(model.serial_main_program("train"))
state = model.state_dict("param")
for name, p in net.named_parameters():
    held = state[name] if name in state else state[p.name]
    assert held.is_dist() and held.placements == p.placements
    same(f"{name} in the state", held.numpy(), dict(single.named_parameters())[name].numpy())
assert net.w0.shape == [HIDDEN, INNER] and batches[0][0].shape == [BATCH, SEQ, HIDDEN]
model.set_state_dict({name: dist.shard_tensor(paddle.zeros(t.shape), t.process_mesh, t.placements)
                      for name, t in state.items()})
model.eval()
first = next(iter(loader))
same("loss of zeros", float(model(*first)), float((batches[0][1] ** 2).sum()))
print(f"rank {rank}: done")
