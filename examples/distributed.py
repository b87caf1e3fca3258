"""Tensors and training over four ranks: a mesh, a sharded matmul, a reshard, a gradient; then a model, data parallel
and tensor parallel at once, eagerly and compiled.

    minipd launch -n 4 examples/distributed.py

Every rank runs this file, which is written as if there were one; what each holds of a tensor, its placements say.
`f32[6_dp, 8]{P_tp}` has its rows split over the mesh axis dp, and is partial over tp: along tp each rank has a part of
a sum.
"""

from __future__ import annotations

import minipd as paddle
import minipd.distributed as dist
from minipd.dist.reshard.plan import describe, plan


def main() -> None:
    mesh = dist.ProcessMesh([[0, 1], [2, 3]], dim_names=["dp", "tp"])
    show("mesh", mesh)
    one_matmul(mesh)
    eager, compiled = (train(mesh, static) for static in (False, True))
    show("eager", " ".join(f"{loss:.4f}" for loss in eager))
    show("static", " ".join(f"{loss:.4f}" for loss in compiled))
    assert all(abs(a - b) < 1e-5 for a, b in zip(eager, compiled, strict=True))


def one_matmul(mesh: dist.ProcessMesh) -> None:
    paddle.seed(0)                              # the same numbers on every rank, of which each keeps its part
    x = dist.shard_tensor(paddle.randn([6, 4]), mesh, [dist.Shard(0), dist.Shard(1)])
    w = dist.shard_tensor(paddle.randn([4, 8]), mesh, [dist.Replicate(), dist.Shard(0)], stop_gradient=False)
    show("x", x)
    show("w", w)

    y = x @ w                                   # both are split over what is summed: each rank has a part of the sum
    show("x @ w", y)
    z = moved(y, [dist.Shard(0), dist.Shard(1)])
    whole = dist.unshard_dtensor(x) @ dist.unshard_dtensor(w)
    assert abs(z.numpy() - whole.numpy()).max() < 1e-5

    z.square().sum().backward()                 # the ranks along dp saw other rows: their gradients add up
    show("dw", w.grad)
    moved(w.grad, w.placements)


class Mlp(paddle.nn.Layer):
    """Nothing in it says that there are several ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = paddle.nn.Linear(4, 16), paddle.nn.Linear(16, 1)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.down(paddle.nn.functional.gelu(self.up(x)))


def place(name: str, layer: paddle.nn.Layer, mesh: dist.ProcessMesh) -> None:
    """The first weight by columns, the second by rows: between them nothing is communicated."""
    by = {"up": [dist.Replicate(), dist.Shard(1)], "down": [dist.Replicate(), dist.Shard(0)]}
    if name in by:
        layer.weight = dist.shard_tensor(layer.weight, mesh, by[name])


def train(mesh: dist.ProcessMesh, static: bool) -> list[float]:
    """The losses of some steps; the batch is split over dp, the weights over tp."""
    paddle.seed(1)
    model = dist.shard_layer(Mlp(), mesh, place)
    adam = dist.shard_optimizer(paddle.optimizer.AdamW(0.02, parameters=model.parameters()))
    data = paddle.io.TensorDataset([x := paddle.randn([24, 4]), x.sum(axis=1, keepdim=True)])
    loader = dist.shard_dataloader(paddle.io.DataLoader(data, batch_size=8), meshes=mesh, shard_dims="dp")
    mse = paddle.nn.MSELoss()
    losses = []
    if static:
        step = dist.to_static(model, loader, mse, adam)
        step.train()
        losses = [float(step(*batch)) for _ in range(2) for batch in loader]
        return losses
    for _ in range(2):
        for x, wanted in loader:
            loss = mse(model(x), wanted)
            loss.backward()
            adam.step()
            adam.clear_grad()
            losses.append(float(loss))
    show("up.w", model.up.weight)
    return losses


def show(name: str, thing: object, note: str = "") -> None:
    """A line, from rank 0 only."""
    if dist.get_rank() == 0:
        held = f"{thing.payload!r:<24} rank 0 has {thing._local_shape}" \
            if isinstance(thing, paddle.Tensor) else thing if isinstance(thing, str) else repr(thing)
        print(f"{name:<5} {held}{note and '    '}{note}")


def moved(x: paddle.Tensor, placements: list) -> paddle.Tensor:
    """x under other placements, and what it took."""
    y = dist.reshard(x, x.process_mesh, placements)
    steps = plan(tuple(x.placements), tuple(placements), x.process_mesh, x.ndim)
    show("  to", y, describe(steps, x.process_mesh))
    return y


if __name__ == "__main__":
    main()
