"""Draws the pictures of this chapter, with the library's own drawers.

    python chapters/05_sharding/img/draw.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from minipd import distributed as dist
from minipd import viz
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.framework.meta import Meta
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.viz.svg import Svg


def pictures() -> dict[str, Svg]:
    """File name -> picture."""
    square = parse_mesh("dp=2,tp=2")
    return {
        "mesh.svg": viz.mesh(ProcessMesh([[0, 1, 2], [3, 4, 5]], ["dp", "tp"])),
        "sharded.svg": viz.sharding((4, 6), square, [Shard(0), Shard(1)]),
        "uneven.svg": viz.sharding((5, 4), square, [Shard(0), Shard(0)]),
        "across.svg": viz.reshard((6, 4), ProcessMesh([0, 1], ["tp"]), [Shard(0)], [Shard(0)],
                                  to=ProcessMesh([2, 3, 4], ["tp"])),
        "parts.svg": viz.sharding((6, 4), ProcessMesh([0, 1], ["tp"]), [Shard(0, split_factor=3)]),
        "placed.svg": viz.placed(two_layers(), rank=3),
        "reshard.svg": viz.reshard((4, 6), square, [Partial(), Replicate()], [Replicate(), Shard(0)]),
    }


def two_layers() -> Program:
    """Column parallel, then row parallel, the batch over dp."""
    mesh, f32 = parse_mesh("dp=2,tp=2"), np.dtype("float32")

    def layers(x, w, v):
        x = dist.shard_tensor(x, mesh, [Shard(0), Replicate()])
        w = dist.shard_tensor(w, mesh, [Replicate(), Shard(1)])
        v = dist.shard_tensor(v, mesh, [Replicate(), Shard(0)])
        return F.relu(F.relu(x @ w) @ v)
    return trace(layers, Meta((4, 8), f32), Meta((8, 16), f32), Meta((16, 8), f32)).program


def main() -> None:
    for name, picture in pictures().items():
        picture.save(Path(__file__).with_name(name))


if __name__ == "__main__":
    main()
