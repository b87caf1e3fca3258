"""A stage run operator by operator: a slice of the model, and a tape per micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.autograd.mode import no_grad
from minipd.dist.api import reshard, shard_tensor
from minipd.dist.placements import Placement
from minipd.dist.value import DistValue
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.parallel.pipeline.model_slice import ModelSlice
from minipd.parallel.pipeline.stage import Batch, Boundary, Values

__all__ = ["EagerStage"]


class EagerStage:
    """One stage (see `stage.Stage`) of a model with `loss_of(logits, labels, n_tokens)`.

    placements: those of a batch on the stage's mesh.  boundary: what crosses between two pieces, a hidden state.
    """

    def __init__(self, part: ModelSlice, optimizer: Any, placements: Sequence[Placement], boundary: Boundary):
        self.part, self.optimizer, self.placements = part, optimizer, tuple(placements)
        self.index, self.stages, self.mesh, self.parameters = part.index, len(part.meshes), part.mesh, part.parameters
        self.inputs: tuple[Boundary, ...] = () if part.first else (boundary,)
        self.outputs: tuple[Boundary, ...] = () if part.last else (boundary,)
        self.kept: dict[int, tuple[Tensor | None, Tensor]] = {}     # micro-batch -> what came in, what went out

    @property
    def gradients(self) -> dict[str, DistValue]:
        return {name: p.grad.payload for name, p in self.parameters.items() if p.grad is not None}

    def forward(self, m: int, batch: Batch, received: Values) -> Values:
        self.kept[m] = self._run(batch, received)
        return (self.kept[m][1].payload,)

    def evaluate(self, batch: Batch, received: Values) -> Values:
        with no_grad():
            return (self._run(batch, received)[1].payload,)

    def _run(self, batch: Batch, received: Values) -> tuple[Tensor | None, Tensor]:
        """What came in, as the leaf of a tape of its own, and what goes out."""
        leaf = None
        if received:
            leaf = Tensor(received[0])
            leaf.stop_gradient = False
        x = self.part(self._shard(batch.ids) if leaf is None else leaf, batch.ids.shape[1])
        if self.part.last:
            return leaf, self.part.model.loss_of(x, self._shard(batch.labels), Tensor(batch.n_tokens))
        # as the next stage expects it; the gradient comes back so too
        return leaf, reshard(x, self.mesh, self.outputs[0].placements)

    def backward(self, m: int, received: Values) -> Values:
        x, out = self.kept.pop(m)
        if not out.stop_gradient:           # as on a first stage whose parameters are all frozen: nobody wants one
            out.backward(Tensor(received[0]) if received else None)         # type: ignore[attr-defined]
        if x is None:
            return ()
        # each rank of tp may have a part of it only; the stage before wants the gradient whole, as x was
        return (ROWS["match"](x.grad, x).payload,)

    def step(self) -> None:
        self.optimizer.step()
        self.optimizer.clear_grad()

    def programs(self) -> dict[str, str]:
        return {}

    def _shard(self, batch: np.ndarray) -> Tensor:
        return shard_tensor(batch, self.mesh, self.placements)
