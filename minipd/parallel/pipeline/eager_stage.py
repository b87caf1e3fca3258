"""A stage run operator by operator: some pieces of the model, and a tape per micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.autograd.mode import no_grad
from minipd.dist.api import reshard, shard_tensor
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.framework.row import ROWS
from minipd.framework.tensor import Parameter, Tensor
from minipd.parallel.pipeline.stage import Batch, Boundary, Values

__all__ = ["EagerStage"]


class EagerStage:
    """The pieces of `model` that belong to one stage (see `stage.Stage`).

    model: has `pieces(seq_len)`, a list of (name, function of one tensor) that make its logits of the ids, and
    `loss_of(logits, labels, n_tokens)`.  stage_of: the stage of a piece, by its name.  placements: those of a batch on
    the stage's mesh.  boundary: what crosses between two pieces, a hidden state.
    """

    def __init__(self, model: Any, optimizer: Any, mesh: ProcessMesh, index: int, stages: int,
                 stage_of: Callable[[str], int], placements: list[Placement], boundary: Boundary):
        self.model, self.optimizer, self.mesh, self.index, self.stages = model, optimizer, mesh, index, stages
        self.stage_of, self.placements = stage_of, tuple(placements)
        self.parameters: dict[str, Parameter] = {n: p for n, p in model.named_parameters() if stage_of(n) == index}
        self.first, self.last = index == 0, index == stages - 1
        self.inputs: tuple[Boundary, ...] = () if self.first else (boundary,)
        self.outputs: tuple[Boundary, ...] = () if self.last else (boundary,)
        self.kept: dict[int, tuple[Tensor | None, Tensor]] = {}     # micro-batch -> what came in, what went out

    def forward(self, m: int, batch: Batch, received: Values) -> Values:
        x, out = self._run(batch, received)
        self.kept[m] = x, out
        return (out.payload,)

    def evaluate(self, batch: Batch, received: Values) -> Values:
        with no_grad():
            return (self._run(batch, received)[1].payload,)

    def _run(self, batch: Batch, received: Values) -> tuple[Tensor | None, Tensor]:
        """What came in, as the leaf of a tape of its own, and what goes out."""
        leaf = None
        if received:
            leaf = Tensor(received[0])
            leaf.stop_gradient = False
        x = self.pieces(self._shard(batch.ids) if leaf is None else leaf, batch.ids.shape[1])
        if self.last:
            return leaf, self.model.loss_of(x, self._shard(batch.labels), Tensor(batch.n_tokens))
        # as the next stage expects it; the gradient comes back so too
        return leaf, reshard(x, self.mesh, self.outputs[0].placements)

    def pieces(self, x: Tensor, seq_len: int) -> Tensor:
        """From what enters this stage (the first: ids) to what leaves it (the last: logits)."""
        for name, piece in self.model.pieces(seq_len):
            if self.stage_of(name) == self.index:
                x = piece(x)
        return x

    def backward(self, m: int, received: Values) -> Values:
        x, out = self.kept.pop(m)
        out.backward(Tensor(received[0]) if received else None)
        if x is None:
            return ()
        # of tp's ranks each has a part of it; the stage before wants the gradient whole, as x was
        return (ROWS["match"](x.grad, x).payload,)

    def step(self) -> None:
        self.optimizer.step()
        self.optimizer.clear_grad()

    def programs(self) -> dict[str, str]:
        return {}

    def _shard(self, batch: np.ndarray) -> Tensor:
        return shard_tensor(batch, self.mesh, self.placements)
