"""A global program as one rank runs it: completed, cut to the rank's own program, compiled, executed.

Made on every rank alike and without communication (but for compiling, which the ranks share out).  The state stays
where it is: a run reads and writes what the tensors outside hold of this rank's shards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minipd.cinn.compile import apply_cinn_pass
from minipd.cinn.kernels import kernel_sources
from minipd.dist.completion import complete
from minipd.dist.dialect import DistTensorType
from minipd.dist.mesh import ProcessMesh
from minipd.dist.partition import output_types, partition
from minipd.dist.placements import whole
from minipd.dist.sharding import local_part, local_shape
from minipd.dist.value import DistValue
from minipd.executor import Executor, TensorScope
from minipd.framework.context import Kernels
from minipd.framework.dim import bind_shape, is_symbolic, substitute_all
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.trace import Trace

__all__ = ["RankProgram"]

Feed = Mapping[str, np.ndarray | DistValue]


class Shards(TensorScope):
    """Distributed tensors as the scope of an executor: name -> what this rank holds."""

    def __getitem__(self, name: str) -> np.ndarray:
        p = self.tensors[name].payload
        return p.held().local if isinstance(p, DistValue) else p

    def __setitem__(self, name: str, array: np.ndarray) -> None:
        t = self.tensors[name]
        if isinstance(t.payload, DistValue):
            t.payload.local = array
        else:
            t.payload = array


class ShardedProgram:
    """A global program, completed and cut to this rank's.

    mesh: where it runs; None for a program of several meshes, whose state and inputs say where they are.
    tensors: the program's state, distributed, by name.  split: the placements of inputs that are not replicated, by
    their names, or by what their names begin with; with several meshes, a mesh and placements each.
    n_micro: of how many micro-batches the program is; None: it is run within one.
    Tensors that the trace has captured are read as they are when the program runs.  The trace may be that of a larger
    program, of which this is a part.

    whole: the completed program.  local: this rank's.  inputs, outputs: name -> global value, global type.
    """

    def __init__(self, program: Program, trace: Trace, mesh: ProcessMesh | None, tensors: Mapping[str, Tensor],
                 split: Mapping[str, Any], n_micro: int | None = None):
        self.mesh, self.tensors, self.rank = mesh, tensors, current().rank
        self.split = {name: tuple(p) for name, p in split.items()}
        self.inputs: dict[str, Any] = {op.attributes["name"].value: op.result(0) for op in program.global_block()
                                       if op.name() == "pd_op.data"}
        self.draws, self.micros, self.n_micro = dict(trace.draws), dict(trace.micros), n_micro
        self.captures = {name: trace.holders.get(name, Tensor(p)) for name, p in trace.captures.items()
                         if name in self.inputs}
        self.whole = complete(program, mesh, self._marks)
        self.local = partition(program, mesh, self.rank)
        self.wanted = [op.attributes["name"].value for op in self.local.global_block() if op.name() == "pd_op.data"]
        self.outputs = output_types(program)
        self.scope = Shards(tensors)

    def _marks(self, op: Operation) -> Any:
        if op.name() == "builtin.parameter":
            return self._as_it_is(self.tensors[op.attributes["parameter_name"].value].payload)
        name = op.attributes["name"].value
        if name in self.captures:
            return self._as_it_is(self.captures[name].payload)
        found = self.split.get(name)
        return found or next((p for start, p in self.split.items() if name.startswith(start)), None)

    def _as_it_is(self, payload: Any) -> Any:
        """How a tensor from outside is placed in the program: as it is, but for what is Partial."""
        if not isinstance(payload, DistValue):
            return None
        return payload.mesh, whole(payload.held().placements)

    # -------------------------------------------------------------------------------------------- what a run is fed
    def sizes(self, feed: Feed) -> dict[str, int]:
        """The sizes of symbolic dimensions.

        Raises: ValueError for some for which the program was not made (which do not split evenly, for instance).
        """
        bindings: dict[str, int] = {}
        for name, value in self.inputs.items():
            if is_symbolic(value.shape) and name in feed:
                bind_shape(value.shape, feed[name].shape, bindings, f"input {name!r}")
        self.whole.constraints.check(bindings)
        return bindings

    def arrays(self, feed: Feed) -> dict[str, np.ndarray]:
        """What this rank feeds: its parts of the inputs, the keys of this run's random draws, captured tensors.

        feed: global arrays, of which this rank uses its part, and distributed values, placed as the input is.
        """
        keys = self._keys()                 # all of them, also those of others: every rank counts its draws alike
        return {name: keys[name] if name in keys else
                self._captured_part(name, self.captures[name]) if name in self.captures else
                self._part(name, feed[name]) for name in self.wanted if name in keys or name in self.captures
                or name in feed}

    def _part(self, name: str, value: np.ndarray | DistValue) -> np.ndarray:
        kind = self.inputs[name].type()
        if not isinstance(kind, DistTensorType):
            if isinstance(value, DistValue):
                raise ValueError(f"input {name!r}: expected an ordinary tensor, as the program was traced for, got "
                                 f"{value!r}; trace it again with a distributed one")
            return value
        mesh, placements = kind.mesh, kind.placements
        if isinstance(value, DistValue):
            if value.mesh != mesh or value.placements != placements:
                raise ValueError(f"input {name!r}: expected a value on {mesh.text()} of the ranks "
                                 f"{mesh.process_ids}, placed {list(placements)}, got {value!r} on "
                                 f"{value.mesh.text()} of the ranks {value.mesh.process_ids}; reshard it first")
            # a Partial that somebody has looked at is whole by now: fed as it is, it would be added up once more
            return value.moved(placements, Kernels().run, self.rank).local
        if local_shape(value.shape, mesh, placements, self.rank) == value.shape:
            return value
        return local_part(value, mesh, placements, self.rank)

    def _keys(self) -> dict[str, np.ndarray]:
        """The keys of the random draws: those that eager execution would draw."""
        rng = current().rng
        if self.n_micro is None:
            return {name: rng.next_key(path) for name, path in self.draws.items()}
        keys: dict[str, np.ndarray] = {}
        for m in range(self.n_micro):
            rng.set_micro(m)
            keys |= {name: rng.next_key(path) for name, path in self.draws.items() if self.micros[name] == m}
        return keys

    def _captured_part(self, name: str, t: Tensor) -> np.ndarray:
        if isinstance(t.payload, DistValue):
            return t.payload.moved(self.inputs[name].type().placements, Kernels().run, self.rank).local
        if not isinstance(t.payload, np.ndarray):
            raise RuntimeError(f"captured tensor {t.name}: expected values, got {t.payload!r}; the traced function has "
                               "written it in place, so it must be program state, like parameters")
        return t.payload

    def values(self, found: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, Any]:
        """Outputs, of which `found` is what this rank holds, as distributed values; as arrays where they are on no
        mesh."""
        return {n: self._value(self.outputs[n], a, sizes) for n, a in found.items()}

    def _value(self, kind: Any, local: np.ndarray, sizes: Mapping[str, int]) -> Any:
        if not isinstance(kind, DistTensorType):
            return local
        return DistValue(local, substitute_all(kind.shape, sizes), local.dtype, kind.mesh, kind.placements)


class Runnable:
    """A rank's own program, ready to run.  cinn: compiled into kernels; all ranks do it together."""

    def __init__(self, local: Program, cinn: bool):
        self.local = local
        self.compiled = local.clone() if cinn else local
        if cinn:
            apply_cinn_pass(self.compiled, current().comm)
        self.executor = Executor(self.compiled)

    def texts(self, name: str) -> dict[str, str]:
        """File name -> text: the program, and what it was compiled into."""
        texts = {f"{name}.pir": self.local.to_string("exact")}
        if self.compiled is not self.local:
            texts[f"{name}.cinn.pir"] = self.compiled.to_string("exact")
            texts[f"{name}.kernels.py"] = kernel_sources(self.compiled)
        return texts


class RankProgram(ShardedProgram, Runnable):
    """A global program, ready to run as one rank: see the classes that it is made of."""

    def __init__(self, program: Program, trace: Trace, mesh: ProcessMesh | None, tensors: Mapping[str, Tensor],
                 split: Mapping[str, Any], n_micro: int | None = None, cinn: bool = False):
        ShardedProgram.__init__(self, program, trace, mesh, tensors, split, n_micro)
        Runnable.__init__(self, self.local, cinn)

    def __call__(self, feed: Feed) -> dict[str, Any]:
        """Run once; returns the outputs, in parts.  feed: see `arrays`.

        Raises: ValueError for a feed that does not fit.
        """
        sizes = self.sizes(feed)
        return self.values(self.executor.run(self.arrays(feed), self.scope), sizes)
