"""One optimizer step, eager: micro-batch by micro-batch, gradients added up, then the optimizer.

`EagerStep` and `StaticStep` (in `static_step.py`) are two ways to run the same step; a trainer takes either.  They
communicate the same: the SPMD rules that place an eager call place an operation of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.autograd.mode import no_grad
from minipd.dist.api import shard_tensor
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor

__all__ = ["EagerStep", "shard_model"]

IGNORED = -100


def shard_model(model: Any, mesh: ProcessMesh, placements: Callable[[str, ProcessMesh], list[Placement]]) -> None:
    """Distribute a model's parameters in place: `placements(name, mesh)` says where each goes.  Lazily made parameters
    are filled now; a rank never holds more than its shards."""
    for name, p in model.named_parameters():
        shard_tensor(p, mesh, placements(name, mesh))


def micro_batches(batch: np.ndarray, n: int) -> list[np.ndarray]:
    """The global batch in n parts of consecutive sequences."""
    return np.split(batch, n)


def count_tokens(labels: np.ndarray, dtype: Any) -> np.ndarray:
    """How many labels of the *whole* batch count, 0-D; 1 where none does, so that the loss is 0 and no NaN.

    Every part of the loss is divided by this one number, so the parts of micro-batches and of data-parallel ranks add up
    to the mean over the batch's tokens, however unevenly they are masked.
    """
    return np.array(max(int((labels != IGNORED).sum()), 1), dtype)


def share(value: Any, mesh: ProcessMesh, rank: int) -> float:
    """This rank's part of a distributed scalar: the parts of all ranks of the mesh add up to its value."""
    at = mesh.coordinate(rank)
    spoken_for = any(isinstance(p, Replicate) and at[axis] for axis, p in enumerate(value.placements))
    return 0.0 if spoken_for else float(value.local if value.resolved is None else value.resolved.local)


class EagerStep:
    """Runs steps operator by operator.

    model: has `loss(ids, labels, n_tokens)`.  batch_shape: (sequences, tokens) of the global batch.
    """

    def __init__(self, model: Any, optimizer: Any, mesh: ProcessMesh, placements: Sequence[Placement],
                 batch_shape: tuple[int, int], n_micro: int):
        self.model, self.optimizer, self.mesh, self.n_micro = model, optimizer, mesh, n_micro
        self.placements = tuple(placements)

    def __call__(self, ids: np.ndarray, labels: np.ndarray) -> Tensor:
        """Train on one global batch, int [batch, seq], which every rank passes.  Returns the loss, in parts."""
        total = None
        n_tokens = Tensor(count_tokens(labels, current().default_dtype))
        parts = zip(micro_batches(ids, self.n_micro), micro_batches(labels, self.n_micro), strict=True)
        for m, (i, y) in enumerate(parts):
            current().rng.set_micro(m)
            loss = self.model.loss(self._shard(i), self._shard(y), n_tokens)
            loss.backward()
            total = loss.detach() if total is None else total + loss.detach()
        self.optimizer.step()
        self.optimizer.clear_grad()
        assert total is not None
        return total

    def evaluate(self, ids: np.ndarray, labels: np.ndarray) -> Tensor:
        """The loss of one global batch, in parts."""
        with no_grad():
            n_tokens = Tensor(count_tokens(labels, current().default_dtype))
            return self.model.loss(self._shard(ids), self._shard(labels), n_tokens)

    def _shard(self, batch: np.ndarray) -> Tensor:
        return shard_tensor(batch, self.mesh, self.placements)

    def share(self, loss: Tensor) -> float:
        """This rank's part of a loss that `__call__` or `evaluate` returned."""
        return share(loss.payload, self.mesh, current().rank)

    def programs(self) -> dict[str, str]:
        """File name -> text of the programs that run: none."""
        return {}
