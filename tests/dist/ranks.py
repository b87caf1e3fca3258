"""Running a function on simulated ranks, each with its own context."""

from minipd.dist.simulate import simulate as on_mesh

__all__ = ["on_mesh"]
