"""Draws the pictures of this chapter, with the library's own drawers.

    python chapters/06_hybrid_parallel_llama/img/draw.py
"""

from __future__ import annotations

from pathlib import Path

from minipd import viz
from minipd.dist.mesh import parse_mesh
from minipd.models.placements import parameter_placements
from minipd.parallel.pipeline.schedule import schedule
from minipd.viz.svg import Svg

TWICE = {"forward": 1, "backward": 2, "optimizer": 0}


def pictures() -> dict[str, Svg]:
    """File name -> picture."""
    mesh = parse_mesh("dp=2,tp=2")
    placed = {"column": ("mlp.up_proj.weight", (4, 8)), "row": ("mlp.down_proj.weight", (8, 4))}
    return {
        **{f"{kind}.svg": viz.sharding(shape, mesh, parameter_placements(name, mesh), name=name)
           for kind, (name, shape) in placed.items()},
        "three_axes.svg": viz.mesh(parse_mesh("pp=2,dp=2,tp=2")),
        "f_then_b.svg": viz.schedule(schedule("FThenB", 4, 6), TWICE, "FThenB: 4 stages, 6 micro-batches"),
        "one_f_one_b.svg": viz.schedule(schedule("1F1B", 4, 6), TWICE, "1F1B: 4 stages, 6 micro-batches"),
    }


def main() -> None:
    for name, picture in pictures().items():
        picture.save(Path(__file__).with_name(name))


if __name__ == "__main__":
    main()
