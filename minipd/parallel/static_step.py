"""One optimizer step, static: the global program is completed, cut to this rank's program, and run.

The programs are made once, on every rank alike and without communication.  The state stays where it is: a run reads and
writes what the model's and the optimizer's own tensors hold of this rank's shards.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from minipd.cinn.compile import build_cinn_pass
from minipd.cinn.kernels import kernel_sources
from minipd.dist.completion import complete
from minipd.dist.mesh import ProcessMesh
from minipd.dist.partition import output_types, partition
from minipd.dist.placements import Placement, Replicate
from minipd.dist.sharding import local_window
from minipd.dist.value import DistValue
from minipd.executor import Executor
from minipd.framework.context import Kernels
from minipd.framework.dim import bind_shape, is_symbolic, substitute_all
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.parallel.checkpoint import local_array
from minipd.parallel.program import LEARNING_RATE, loss_program, train_program
from minipd.parallel.step import Step

__all__ = ["StaticStep"]


class Shards(MutableMapping[str, np.ndarray]):
    """Distributed tensors as the scope of an executor: name -> what this rank holds."""

    def __init__(self, tensors: dict[str, Tensor]):
        self.tensors = tensors

    def __getitem__(self, name: str) -> np.ndarray:
        return local_array(self.tensors[name])

    def __setitem__(self, name: str, array: np.ndarray) -> None:
        t = self.tensors[name]
        if isinstance(t.payload, DistValue):
            t.payload.local = array
        else:
            t.payload = array

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"program state {name!r} belongs to a tensor and cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


class RankProgram:
    """A global program, ready to run as one rank.

    tensors: the program's state, distributed, by name.  split: the placements of inputs that are not replicated, by the
    beginning of their name.  n_micro: of how many micro-batches the program is; None: it is run within one.
    cinn: compile this rank's program into kernels; all ranks do it together.
    Tensors that the trace has captured are read as they are when the program runs.
    """

    def __init__(self, program: Program, trace: Trace, mesh: ProcessMesh, tensors: dict[str, Tensor],
                 split: dict[str, Sequence[Placement]], n_micro: int | None = None, cinn: bool = False):
        self.mesh, self.tensors, self.rank = mesh, tensors, current().rank
        self.split = {name: tuple(p) for name, p in split.items()}
        self.replicated = (Replicate(),) * mesh.ndim
        self.draws, self.micros, self.n_micro = dict(trace.draws), dict(trace.micros), n_micro
        self.captures = {name: trace.holders.get(name, Tensor(p)) for name, p in trace.captures.items()}
        self.captured_as = {name: self._whole_parts(t.payload) for name, t in self.captures.items()}
        self.whole = complete(program, mesh, self._marks)
        self.local = partition(program, mesh, self.rank)
        self.inputs = {op.attributes["name"].value: op.result(0).shape for op in program.global_block()
                       if op.name() == "pd_op.data" and is_symbolic(op.result(0).shape)}
        self.outputs = output_types(program)
        self.compiled = self.local.clone() if cinn else self.local
        if cinn:
            build_cinn_pass(self.compiled, current().comm)
        self.executor = Executor(self.compiled)
        self.scope = Shards(tensors)

    def _marks(self, op: Operation) -> tuple[Placement, ...]:
        if op.name() == "builtin.parameter":
            return self._whole_parts(self.tensors[op.attributes["parameter_name"].value].payload)
        name = op.attributes["name"].value
        return self.captured_as.get(name) or self._placements(name)

    def _whole_parts(self, payload: Any) -> tuple[Placement, ...]:
        """How a tensor from outside is placed in the program: as it is, but for what is Partial."""
        if not isinstance(payload, DistValue):
            return self.replicated
        return tuple(Replicate() if p.is_partial() else p for p in payload.held().placements)

    def _placements(self, name: str) -> tuple[Placement, ...]:
        return next((p for start, p in self.split.items() if name.startswith(start)), self.replicated)

    def __call__(self, feed: dict[str, np.ndarray]) -> dict[str, DistValue]:
        """Run once.  feed: the global inputs, of which this rank uses its part.  Returns the outputs, in parts.

        Raises: ValueError for sizes of symbolic dimensions for which the program was not made (which do not split
        evenly, for instance).
        """
        bindings: dict[str, int] = {}
        for name, shape in self.inputs.items():
            bind_shape(shape, feed[name].shape, bindings, f"input {name!r}")
        self.whole.constraints.check(bindings)
        parts = {name: self._part(array, self._placements(name)) for name, array in feed.items()}
        found = self.executor.run({**parts, **self._keys(), **self._captured()}, self.scope)
        return {n: DistValue(a, substitute_all(self.outputs[n].shape, bindings), a.dtype, self.mesh,
                             self.outputs[n].placements) for n, a in found.items()}

    def _part(self, array: np.ndarray, placements: tuple[Placement, ...]) -> np.ndarray:
        if placements is self.replicated:
            return array
        shape, at = local_window(array.shape, self.mesh, placements, self.rank)
        return array[tuple(slice(o, o + n) for o, n in zip(at, shape, strict=True))]

    def _keys(self) -> dict[str, np.ndarray]:
        """The keys of this run's random draws: those that eager execution would draw."""
        rng = current().rng
        if self.n_micro is None:
            return {name: rng.next_key(path) for name, path in self.draws.items()}
        keys: dict[str, np.ndarray] = {}
        for m in range(self.n_micro):
            rng.set_micro(m)
            keys |= {name: rng.next_key(path) for name, path in self.draws.items() if self.micros[name] == m}
        return keys

    def _captured(self) -> dict[str, np.ndarray]:
        return {name: self._captured_part(name, t) for name, t in self.captures.items()}

    def _captured_part(self, name: str, t: Tensor) -> np.ndarray:
        if isinstance(t.payload, DistValue):
            return t.payload.moved(self.captured_as[name], Kernels().run, self.rank).local
        if not isinstance(t.payload, np.ndarray):
            raise RuntimeError(f"captured tensor {t.name}: expected values, got {t.payload!r}; the traced function has "
                               "written it in place, so it must be program state, like parameters")
        return t.payload


class StaticStep(Step):
    """Runs steps as programs.

    fuse: with operators of their own for what the model composes (`fuse_forward`).  cinn: compiled into kernels.
    """

    def __init__(self, model: Any, optimizer: Any, mesh: ProcessMesh, placements: Sequence[Placement],
                 batch_shape: tuple[int, int], n_micro: int = 1, fuse: bool = True, cinn: bool = False):
        super().__init__(model, optimizer, mesh, placements, n_micro)
        split = {"ids": placements, "labels": placements}
        program, trace = train_program(model, optimizer, self.state(), batch_shape, n_micro, fuse)
        self.train = RankProgram(program, trace, mesh, self.state(), split, n_micro, cinn)
        program, trace = loss_program(model, batch_shape, fuse)
        self.loss = RankProgram(program, trace, mesh, dict(model.named_parameters()), split, cinn=cinn)

    def __call__(self, ids: np.ndarray, labels: np.ndarray) -> DistValue:
        """Train on one global batch, int [batch, seq], which every rank passes.  Returns the loss, in parts."""
        self.enter()
        feed = {"n_tokens": self.count(labels), LEARNING_RATE: self.optimizer.scalars()[0].payload}
        for m, (i, y) in enumerate(self.parts(ids, labels)):
            feed[f"ids_{m}"], feed[f"labels_{m}"] = i, y
        return self.train(feed)["loss"]

    def evaluate(self, ids: np.ndarray, labels: np.ndarray) -> DistValue:
        """The loss of one global batch, in parts."""
        return self.loss({"ids": ids, "labels": labels, "n_tokens": self.count(labels)})["loss"]

    def programs(self) -> dict[str, str]:
        """File name -> text: the completed global program, this rank's, and what it was compiled into."""
        rank, texts = f"step.rank{self.train.rank}", {"step.global.pir": self.train.whole.to_string("exact")}
        texts[f"{rank}.pir"] = self.train.local.to_string("exact")
        if self.train.compiled is not self.train.local:
            texts[f"{rank}.cinn.pir"] = self.train.compiled.to_string("exact")
            texts[f"{rank}.kernels.py"] = kernel_sources(self.train.compiled)
        return texts
