"""What an engine asks of a stage: the interface behind which eager and static stages look alike.

A stage is what one rank computes of a pipeline: a consecutive part of the model, on the sub-mesh of the ranks that
have the same part.  It never communicates with other stages: values come in and go out of `forward` and `backward`, and
the engine carries them.  (What it does within its own sub-mesh, for dp and tp, is its own business.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.dist.value import DistValue
from minipd.framework.tensor import Parameter

__all__ = ["Batch", "Boundary", "Stage"]

Values = tuple[DistValue, ...]


class Batch(NamedTuple):
    """The inputs of one micro-batch, global: every stage is given all of them and takes what it needs.

    ids, labels: int [micro-batch, seq].  n_tokens: 0-D, the counted labels of the whole batch.
    """

    ids: np.ndarray
    labels: np.ndarray
    n_tokens: np.ndarray


class Boundary(NamedTuple):
    """A value that crosses from one stage to the next, and its gradient, which crosses back: floating, never Partial.

    Both stages have it under the same placements, each on its own sub-mesh.  shape: global, of one micro-batch.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    placements: tuple[Placement, ...]


class Stage(Protocol):
    """One stage of a pipeline on this rank.

    index: which stage this is, of `stages`.  mesh: its sub-mesh.
    parameters: those of this stage, by their names in the whole model.
    inputs, outputs: what crosses from the stage before (nothing, for the first) and to the stage after (nothing, for
        the last).  The inputs of a stage are the outputs of the stage before it, in order.

    Values that the stage takes and gives are on `mesh`, under the placements of their boundaries.
    """

    index: int
    stages: int
    mesh: ProcessMesh
    parameters: dict[str, Parameter]
    inputs: tuple[Boundary, ...]
    outputs: tuple[Boundary, ...]

    @property
    def gradients(self) -> Mapping[str, DistValue]:
        """Those of the parameters, as far as they have been added up since the last step; they may be Partial."""

    def forward(self, m: int, batch: Batch, received: Values) -> Values:
        """Compute micro-batch m from the `inputs`; keep what its backward needs.

        Returns the `outputs`; the last stage returns (loss,), this micro-batch's part of the loss, which stays here.
        The engine has entered the micro-batch: random draws are named after it already.
        """

    def backward(self, m: int, received: Values) -> Values:
        """From the gradients of the `outputs` (none, on the last stage), those of the `inputs`.

        The gradients of the parameters are added to those of earlier micro-batches; what was kept for m is let go.
        """

    def step(self) -> None:
        """Update the parameters with the gradients that have been added up, and forget these."""

    def evaluate(self, batch: Batch, received: Values) -> Values:
        """`forward` without keeping anything."""

    def programs(self) -> dict[str, str]:
        """File name -> text of the programs that this rank runs; {} if it runs none."""
