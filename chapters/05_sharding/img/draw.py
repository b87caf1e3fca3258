"""Draws the pictures of this chapter, with the library's own drawers.

    python chapters/05_sharding/img/draw.py
"""

from __future__ import annotations

from pathlib import Path

from minipd import viz
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
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
        "reshard.svg": viz.reshard((4, 6), square, [Partial(), Replicate()], [Replicate(), Shard(0)]),
    }


def main() -> None:
    for name, picture in pictures().items():
        picture.save(Path(__file__).with_name(name))


if __name__ == "__main__":
    main()
