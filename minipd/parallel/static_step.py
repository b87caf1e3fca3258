"""One optimizer step, static: the global program is completed, cut to this rank's program, and run.

The programs are made once, on every rank alike and without communication.  The state stays where it is: a run reads and
writes what the model's and the optimizer's own tensors hold of this rank's shards.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from minipd.dist.completion import complete
from minipd.dist.mesh import ProcessMesh
from minipd.dist.partition import output_placements, partition
from minipd.dist.placements import Placement, Replicate
from minipd.dist.sharding import local_window
from minipd.dist.value import DistValue
from minipd.executor import Executor
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.parallel.program import loss_program, train_program
from minipd.parallel.step import count_tokens, micro_batches, share

__all__ = ["StaticStep"]


class Shards(MutableMapping[str, np.ndarray]):
    """Distributed tensors as the scope of an executor: name -> what this rank holds."""

    def __init__(self, tensors: dict[str, Tensor]):
        self.tensors = tensors

    def __getitem__(self, name: str) -> np.ndarray:
        return self.tensors[name].payload.local

    def __setitem__(self, name: str, array: np.ndarray) -> None:
        self.tensors[name].payload.local = array

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"program state {name!r} belongs to a tensor and cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


class RankProgram:
    """A global program, ready to run as one rank.

    tensors: the program's state, distributed, by name.  split: the placements of inputs that are not replicated, by the
    beginning of their name.
    """

    def __init__(self, program: Program, trace: Trace, mesh: ProcessMesh, tensors: dict[str, Tensor],
                 split: dict[str, Sequence[Placement]]):
        self.mesh, self.tensors, self.rank = mesh, tensors, current().rank
        self.split = {name: tuple(p) for name, p in split.items()}
        self.replicated = (Replicate(),) * mesh.ndim
        self.captures, self.draws = dict(trace.captures), dict(trace.draws)
        self.whole = complete(program, mesh, self._marks)
        self.local = partition(program, mesh, self.rank)
        self.outputs = output_placements(program)
        self.executor = Executor(self.local)
        self.scope = Shards(tensors)
        self.shapes = {op.attributes["name"].value: op.result(0).shape for op in program.global_block()
                       if op.name() == "pd_op.data"}

    def _marks(self, op: Operation) -> tuple[Placement, ...]:
        if op.name() == "builtin.parameter":
            return self.tensors[op.attributes["parameter_name"].value].payload.placements
        return self._placements(op.attributes["name"].value)

    def _placements(self, name: str) -> tuple[Placement, ...]:
        return next((p for start, p in self.split.items() if name.startswith(start)), self.replicated)

    def __call__(self, feed: dict[str, np.ndarray]) -> dict[str, DistValue]:
        """Run once.  feed: the global inputs, of which this rank uses its part.  Returns the outputs, in parts."""
        keys = {name: current().rng.next_key(path) for name, path in self.draws.items()}
        found = self.executor.run({n: self._part(n, a) for n, a in {**feed, **keys, **self.captures}.items()},
                                  self.scope)
        return {n: DistValue(a, (), a.dtype, self.mesh, self.outputs[n]) for n, a in found.items()}

    def _part(self, name: str, array: np.ndarray) -> np.ndarray:
        placements = self._placements(name)
        if placements is self.replicated:
            return array
        shape, at = local_window(array.shape, self.mesh, placements, self.rank)
        return array[tuple(slice(o, o + n) for o, n in zip(at, shape, strict=True))]


class StaticStep:
    """Runs steps as programs; the same interface as `EagerStep`."""

    def __init__(self, model: Any, optimizer: Any, mesh: ProcessMesh, placements: Sequence[Placement],
                 batch_shape: tuple[int, int], n_micro: int):
        self.model, self.optimizer, self.mesh, self.n_micro = model, optimizer, mesh, n_micro
        params = dict(model.named_parameters())
        split = {"ids": placements, "labels": placements}
        program, trace = train_program(model, optimizer, batch_shape, n_micro)
        self.train = RankProgram(program, trace, mesh, {**params, **optimizer.state_tensors()}, split)
        program, trace = loss_program(model, batch_shape)
        self.loss = RankProgram(program, trace, mesh, params, split)

    def __call__(self, ids: np.ndarray, labels: np.ndarray) -> DistValue:
        """Train on one global batch, int [batch, seq], which every rank passes.  Returns the loss, in parts."""
        feed = {"n_tokens": self._count(labels), **self.optimizer.scalars()}
        for m, (i, y) in enumerate(zip(micro_batches(ids, self.n_micro), micro_batches(labels, self.n_micro),
                                       strict=True)):
            feed[f"ids_{m}"], feed[f"labels_{m}"] = i, y
        loss = self.train(feed)["loss"]
        self.optimizer.count_step()
        return loss

    def evaluate(self, ids: np.ndarray, labels: np.ndarray) -> DistValue:
        """The loss of one global batch, in parts."""
        return self.loss({"ids": ids, "labels": labels, "n_tokens": self._count(labels)})["loss"]

    def _count(self, labels: np.ndarray) -> np.ndarray:
        return count_tokens(labels, current().default_dtype)

    def share(self, loss: DistValue) -> float:
        """This rank's part of a loss that `__call__` or `evaluate` returned."""
        return share(loss, self.mesh, current().rank)

    def programs(self) -> dict[str, str]:
        """File name -> text of the programs that run: the completed global one, and this rank's."""
        return {"step.global.pir": self.train.whole.to_string("exact"),
                f"step.rank{self.train.rank}.pir": self.train.local.to_string("exact")}
