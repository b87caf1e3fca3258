"""Clipping by the global norm where each stage of a pipeline has the gradients of its own parameters only."""

from __future__ import annotations

from collections.abc import Collection

from minipd.dist.mesh import ProcessMesh
from minipd.dist.rows import StageSum
from minipd.framework.tensor import Tensor
from minipd.nn.clip import ClipGradByGlobalNorm, Pairs, sum_of_squares
from minipd.ops.cast import cast
from minipd.ops.creation import full
from minipd.ops.elementary import sqrt

__all__ = ["ClipGradByStagesNorm"]


class ClipGradByStagesNorm(ClipGradByGlobalNorm):
    """`ClipGradByGlobalNorm` with the norm of the gradients of all stages: every parameter is on one stage, so the
    stages' sums of squares add up to that of the whole model, which is taken root of on each of them.

    Without the sum each stage would clip by a norm of its own, and the update would no longer be along the gradient.
    With it all stages see the same norm: a NaN on one of them makes all of them skip the step.  A stage without
    gradients (its parameters are frozen) adds nothing, but adds.

    mesh: the whole mesh.  axis: the name of the axis along which the stages are.  copies: names of parameters that this
    stage has a copy of, and another one counts.
    """

    shared = True

    def __init__(self, clip_norm: float, mesh: ProcessMesh, axis: str = "pp", copies: Collection[str] = ()):
        super().__init__(clip_norm)
        self.mesh, self.axis, self.copies = mesh, axis, frozenset(copies)

    def counted(self, params_grads: Pairs) -> list[Tensor]:
        return [g for p, g in params_grads if p.name not in self.copies]

    def norm(self, grads: list[Tensor]) -> Tensor:
        squares = sum_of_squares(grads) if grads else full([], 0.0)
        # in float64 on every stage, whatever the dtypes of its gradients
        return cast(sqrt(StageSum(cast(squares, "float64"), mesh=self.mesh, axis=self.axis)), squares.dtype)
