"""Parameters that two stages use, such as an embedding that is the output layer too: each stage has a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.rows import StageSum
from minipd.framework.tensor import Tensor
from minipd.nn.clip import Pairs
from minipd.parallel.pipeline.clip import ClipGradByStagesNorm
from minipd.parallel.pipeline.model_slice import ModelSlice

__all__ = ["TiedGradients", "stages_clip"]


class TiedGradients:
    """The `grad_clip` of an optimizer whose stage has copies: adds up their gradients over the two stages, then clips.

    Each copy has the gradient of its own use of the parameter.  Both then get the update of the sum, the same to the
    bit: so they begin equal and stay so, and no value has to be sent.

    mesh: the whole mesh, with an axis of stages.  copies: name of a parameter -> the two stages that have it.  clip:
    clips afterwards, and counts a copy on one of them only; None: nothing does.
    """

    shared = True

    def __init__(self, mesh: ProcessMesh, copies: Mapping[str, tuple[int, int]], clip: Any = None, axis: str = "pp"):
        self.clip, self.axis = clip, axis
        at = mesh.axis(axis)
        self.pairs = {name: ProcessMesh(np.take(mesh.mesh, stages, at), mesh.dim_names)
                      for name, stages in copies.items()}

    def __call__(self, params_grads: Pairs) -> Pairs:
        return self.checked(params_grads)[0]

    def checked(self, params_grads: Pairs) -> tuple[Pairs, Tensor | None]:
        """See `ClipGradByGlobalNorm.checked`."""
        together = [(p, StageSum(g, mesh=self.pairs[p.name], axis=self.axis) if p.name in self.pairs else g)
                    for p, g in params_grads]
        return (together, None) if self.clip is None else self.clip.checked(together)


def stages_clip(part: ModelSlice, clip_norm: float, axis: str = "pp") -> Any:
    """The `grad_clip` of a stage's optimizer: by the norm of all stages' gradients (0: not), with copies added up.

    There is always one, and it is shared: a stage that has nothing to train counts the step as the others do.
    """
    own = {n: p for n, p in part.parameters.items() if n in part.copies}
    stages = {p.name: (part.first_stage_of(n), part.copies[n]) for n, p in own.items()}
    counted_there = [name for name, (first, _) in stages.items() if first != part.index]
    clip = ClipGradByStagesNorm(clip_norm, part.whole, axis, counted_there) if clip_norm else None
    return TiedGradients(part.whole, stages, clip, axis) if stages or clip is None else clip
