"""One tensor over four ranks: a mesh, a sharded matmul, a reshard, and a gradient.

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
    dist.init_parallel_env()
    mesh = dist.ProcessMesh([[0, 1], [2, 3]], dim_names=["dp", "tp"])
    show("mesh", mesh)

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
    dist.destroy_process_group()


def show(name: str, thing: object, note: str = "") -> None:
    """A line, from rank 0 only."""
    if dist.get_rank() == 0:
        held = f"{thing.payload!r:<24} rank 0 has {list(thing._local_value().shape)}" \
            if isinstance(thing, paddle.Tensor) else repr(thing)
        print(f"{name:<5} {held}{note and '    '}{note}")


def moved(x: paddle.Tensor, placements: list) -> paddle.Tensor:
    """x under other placements, and what it took."""
    y = dist.reshard(x, x.process_mesh, placements)
    steps = plan(tuple(x.placements), tuple(placements), x.process_mesh, x.ndim)
    show("  to", y, describe(steps, x.process_mesh))
    return y


if __name__ == "__main__":
    main()
