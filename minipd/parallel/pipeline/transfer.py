"""What crosses between neighbouring stages: a reshard from one sub-mesh to the other, in two halves.

Each half is run by the ranks of one stage.  Both stages have a value under the same placements, so rank i of the one
talks to rank i of the other; but nothing here relies on it.
"""

from __future__ import annotations

from minipd.dist.mesh import ProcessMesh
from minipd.dist.reshard.across import Message, plan_across
from minipd.dist.reshard.blocks import give, take
from minipd.dist.sharding import local_blocks, local_shape
from minipd.dist.value import DistValue
from minipd.framework.context import Kernels
from minipd.framework.rank import current
from minipd.parallel.pipeline.stage import Boundary, Values

__all__ = ["Transfer"]

#: activations and gradients of a micro-batch are told apart by their tags, whatever the order of the jobs
ACTIVATION, GRADIENT = 0, 1


class Transfer:
    """The sends and receives of one rank.   meshes: those of all stages.  index: of this rank's stage."""

    def __init__(self, meshes: list[ProcessMesh], index: int):
        self.meshes, self.index = meshes, index
        self.rank, self.run = current().rank, Kernels().run

    def send(self, values: Values, boundaries: tuple[Boundary, ...], stage: int, micro: int, kind: int) -> None:
        """Give values of this stage to another one.  Does not wait."""
        for value, b in zip(values, boundaries, strict=True):
            self._check(value, b)
            held = local_blocks(b.shape, self.meshes[self.index], b.placements, self.rank)
            give(value.held().local, held, self._messages(b, self.index, stage), self.run, self.rank, 2 * micro + kind)

    def receive(self, boundaries: tuple[Boundary, ...], stage: int, micro: int, kind: int) -> Values:
        """Values of another stage, on this one's mesh.  Waits for them."""
        mesh, found = self.meshes[self.index], []
        for b in boundaries:
            wanted = local_blocks(b.shape, mesh, b.placements, self.rank)
            shape = local_shape(b.shape, mesh, b.placements, self.rank)
            local = take(None, (), wanted, shape, b.dtype, self._messages(b, stage, self.index), self.run, self.rank,
                         2 * micro + kind)
            found.append(DistValue(local, b.shape, b.dtype, mesh, b.placements))
        return tuple(found)

    def _messages(self, b: Boundary, source: int, target: int) -> tuple[Message, ...]:
        return plan_across(b.shape, self.meshes[source], b.placements, self.meshes[target], b.placements)

    def _check(self, value: DistValue, b: Boundary) -> None:
        held = value.held()
        if (held.shape, held.dtype, held.placements) != (b.shape, b.dtype, b.placements):
            expected = DistValue(None, b.shape, b.dtype, self.meshes[self.index], b.placements)
            raise ValueError(f"stage {self.index}: expected {b.name} to leave as {expected!r}, got {held!r}; reshard "
                             "it to the boundary's placements")
