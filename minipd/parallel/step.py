"""One optimizer step on a global batch: what the eager and the static way to run it share, and the eager one.

Both communicate the same: the SPMD rules that place an eager call place an operation of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minipd.autograd.mode import no_grad
from minipd.dist.api import shard_tensor
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate
from minipd.dist.value import DistValue
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor

__all__ = ["EagerStep", "Step", "shard_model"]

IGNORED = -100


def shard_model(model: Any, mesh: ProcessMesh, placements: Callable[[str, ProcessMesh], list[Placement]],
                here: Callable[[str], bool] = lambda name: True) -> dict[str, Parameter]:
    """Distribute a model's parameters in place: `placements(name, mesh)` says where each goes.  Lazily made parameters
    are filled now; a rank never holds more than its shards.

    here: which parameters live on `mesh` at all; the others, of other pipeline stages, stay as they are.
    Returns: those that do, by name.
    """
    mine = {name: p for name, p in model.named_parameters() if here(name)}
    for name, p in mine.items():
        shard_tensor(p, mesh, placements(name, mesh))
    return mine


def training_state(parameters: Mapping[str, Tensor], optimizer: Any) -> dict[str, Tensor]:
    """What a step changes, by name: these parameters, the optimizer's tensors for them, and the step count."""
    state: dict[str, Tensor] = dict(parameters)
    for name, p in parameters.items():
        state.update({f"{name}.{kept}": t for kept, t in optimizer.state_of(p).items()})
    return {**state, "step": optimizer.scalars()[1]}


class Step:
    """Trains `model` by one step per call: `step(ids, labels)` with a global batch, which every rank passes.

    model: has `loss(ids, labels, n_tokens)`, and distributed parameters.  placements: those of a batch.  n_micro: in
    how many parts, one after the other, a batch is computed.
    """

    def __init__(self, model: Any, optimizer: Any, mesh: ProcessMesh, placements: Sequence[Placement],
                 n_micro: int = 1):
        self.model, self.optimizer, self.mesh, self.n_micro = model, optimizer, mesh, n_micro
        self.placements = tuple(placements)
        self.entered: int | None = None
        optimizer.prepare()

    def __call__(self, ids: np.ndarray, labels: np.ndarray) -> DistValue | None:
        """Train on one global batch, int [batch, seq].  Returns the loss, in parts (see `share`); None on a rank that
        has no part of it."""
        raise NotImplementedError(f"{type(self).__name__} defines no __call__")

    def evaluate(self, ids: np.ndarray, labels: np.ndarray) -> DistValue | None:
        """The loss of one global batch, in parts; None on a rank that has no part of it."""
        raise NotImplementedError(f"{type(self).__name__} defines no evaluate")

    def enter(self) -> None:
        """Random draws are named after the training step: enter the next one, unless the caller has."""
        rng = current().rng
        if rng.step == self.entered:
            rng.set_step(rng.step + 1)
        self.entered = rng.step

    def programs(self) -> dict[str, str]:
        """File name -> text of the programs that run."""
        return {}

    def parameters(self) -> dict[str, Parameter]:
        """The parameters that this rank trains, by name."""
        return dict(self.model.named_parameters())

    def state(self) -> dict[str, Tensor]:
        """Everything that a step changes on this rank, by name: parameters, the optimizer's tensors, the step count."""
        return training_state(self.parameters(), self.optimizer)

    def parts(self, ids: np.ndarray, labels: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The micro-batches: consecutive sequences of the global batch.

        Raises: ValueError if they would not be equal.
        """
        if len(ids) % self.n_micro:
            raise ValueError(f"expected a batch that {self.n_micro} micro-batches can share, got {len(ids)} sequences; "
                             "change the batch or n_micro")
        return zip(np.split(ids, self.n_micro), np.split(labels, self.n_micro), strict=True)

    def count(self, labels: np.ndarray) -> np.ndarray:
        """How many labels of the *whole* batch count, 0-D; 1 where none does, so that the loss is 0 and no NaN.

        Every part of the loss is divided by this one number, so the parts of micro-batches and of data-parallel ranks
        add up to the mean over the batch's tokens, however unevenly they are masked.
        """
        return np.array(max(int((labels != IGNORED).sum()), 1), current().default_dtype)

    def share(self, loss: DistValue | None) -> float:
        """This rank's part of a loss: the parts of all ranks of the mesh add up to it."""
        if loss is None:
            return 0.0
        at = loss.mesh.coordinate(current().rank)
        if any(isinstance(p, Replicate) and at[axis] for axis, p in enumerate(loss.held().placements)):
            return 0.0                                  # another rank holds the same and speaks for both
        return float(loss.held().local)


class EagerStep(Step):
    """Runs steps operator by operator: gradients of the micro-batches are added up, then the optimizer steps."""

    def __call__(self, ids: np.ndarray, labels: np.ndarray) -> DistValue:
        """Train on one global batch, int [batch, seq].  Returns the loss, in parts."""
        self.enter()
        total = None
        n_tokens = Tensor(self.count(labels))
        for m, (i, y) in enumerate(self.parts(ids, labels)):
            current().rng.set_micro(m)
            loss = self.model.loss(self._shard(i), self._shard(y), n_tokens)
            loss.backward()
            part = Tensor(loss.payload)
            total = part if total is None else total + part
        self.optimizer.step()
        self.optimizer.clear_grad()
        assert total is not None
        return total.payload

    def evaluate(self, ids: np.ndarray, labels: np.ndarray) -> DistValue:
        """The loss of one global batch, in parts."""
        with no_grad():
            return self.model.loss(self._shard(ids), self._shard(labels), Tensor(self.count(labels))).payload

    def _shard(self, batch: np.ndarray) -> Tensor:
        return shard_tensor(batch, self.mesh, self.placements)
