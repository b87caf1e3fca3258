"""`to_static` functions of distributed tensors.

A function is traced as for one rank, with global shapes.  Its program, and that of its gradient, are completed from
where the tensors are that it is given and that it reads around itself, and cut to this rank's.  On the tape a call is
one node, as on one rank; it takes and leaves distributed tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minipd.dist.completion import complete
from minipd.dist.crossing import elsewhere
from minipd.dist.dialect import DistTensorType
from minipd.dist.mesh import ProcessMesh
from minipd.dist.partition import output_types, partition
from minipd.dist.placements import whole
from minipd.dist.sharding import local_part
from minipd.dist.static.step import PlacingTrace
from minipd.dist.value import DistValue
from minipd.executor import Executor, TensorScope
from minipd.framework.context import Kernels, using
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.framework.views import rebind
from minipd.ir.builder import Builder
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.jit.capture import CapturingTrace
from minipd.jit.replay import STATE
from minipd.jit.runnable import Runnable, sources_of
from minipd.jit.spread import Spread, register_spread
from minipd.jit.stages import run_stages

__all__: list[str] = []

Place = tuple[ProcessMesh, tuple]


class SpreadTrace(PlacingTrace, CapturingTrace):
    """The trace of a function of distributed tensors."""

    def __init__(self, placed: Mapping[str, Place]) -> None:
        CapturingTrace.__init__(self)
        self.knows(placed)


class SpreadState(TensorScope):
    """Tensors as the scope of an executor that is given what it reads.

    The executor will write over what it has written itself: so what the tape may have kept is a copy.
    """

    def __getitem__(self, name: str) -> np.ndarray:
        p = self.tensors[name].payload
        return p.held().local if isinstance(p, DistValue) else p

    def __setitem__(self, name: str, array: np.ndarray) -> None:
        x = self.tensors[name]
        p, array = x.payload, array.copy()
        new = DistValue(array, p.shape, p.dtype, *p.placed) if isinstance(p, DistValue) else array
        with using(grad=False):
            rebind(x, Tensor(new), "a compiled function")


class SpreadRunnable(Runnable):
    """places: where inputs and state are, by the names in `given`; None for what is on no mesh.

    types: those of what the programs are fed and make, by name.
    left: the stacks that the forward program leaves for the backward one: when it is completed, and cut.
    """

    pins = True

    def __init__(self, places: Mapping[str, Place | None], *given: Any):
        self.places = {n: p for n, p in places.items() if p is not None}
        meshes = {mesh for mesh, _ in self.places.values()}
        self.mesh = meshes.pop() if len(meshes) == 1 else None
        self.rank = current().rank
        self.types: dict[str, dict[str, Any]] = {}
        self.left: tuple[dict, dict] = {}, {}
        super().__init__(*given)

    # ------------------------------------------------------------------------------------------------ the programs
    def before_gradient(self, program: Program) -> Program:
        """Patterns are fused in what a rank runs."""
        return program

    def ready(self, program: Program, which: str) -> Executor:
        places = dict(self.places)
        if which == "backward":
            assert self.joint is not None
            made = self.types["forward"]
            found = {f"grad_{i}": made[name] for i, name in enumerate(self.flows)} | {
                name: made[name] for name in self.joint.saved}
            places |= {n: (t.mesh, whole(t.placements)) for n, t in found.items() if isinstance(t, DistTensorType)}
            places |= shapes_as_inputs(program)

        def marks(op: Operation) -> Place | None:
            state = op.name() == "builtin.parameter"
            return places.get(STATE + op.attributes["parameter_name"].value if state else op.attributes["name"].value)
        complete(program, self.mesh, marks, self.left[0])
        self.types[which] = output_types(program)
        self.types[f"{which} inputs"] = {name: value.type() for name, value in sources_of(program).items()}
        local = partition(program, self.mesh, self.rank, self.left[1])
        shapes_as_they_were(local)
        return Executor(run_stages(local, self.options, "compile", f"{self.name} ({which}, rank {self.rank})"))

    def made_by(self, which: str) -> Sequence[str]:
        return list(self.types[which])

    # ---------------------------------------------------------------------------------------------------- running
    def run(self, arrays: Sequence[Any], scope: Any) -> tuple[list[Any], Mapping[str, int]]:
        found = self._run(self.forward, "forward", arrays, self.inputs, self.reads, scope, self.given)
        return found, {}

    def run_back(self, arrays: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
        found = self._run(self.backward, "backward", arrays, self.back_inputs, self.back_reads, {}, self._at_hand())
        return [found[i] for i in self.gradients]

    def _at_hand(self) -> Sequence[str]:
        assert self.joint is not None
        return (*self.given, *self.joint.saved, *(f"grad_{i}" for i in range(len(self.flows))))

    def _run(self, run: Any, which: str, arrays: Sequence[Any], inputs: list[int], reads: list[int], scope: Any,
             names: Sequence[str]) -> list[Any]:
        """Everything that a program makes, in the order of `made_by`."""
        kinds = self.types[f"{which} inputs"]
        fed = [[self._part(arrays[i], kinds.get(names[i])) for i in some] for some in (inputs, reads)]
        found = dict(zip(run.prepared.outputs, run.call(*fed, scope, {}), strict=True))
        return [self._value(found.get(name), kind) for name, kind in self.types[which].items()]

    def _part(self, x: Any, kind: Any) -> Any:
        """What this rank feeds."""
        if not isinstance(kind, DistTensorType):
            return x
        if isinstance(x, DistValue):
            if x.mesh != kind.mesh:
                x = current().run(ROWS["reshard"], [x], {"mesh": kind.mesh, "placements": kind.placements})
            return x.moved(kind.placements, Kernels().run, self.rank).local
        return local_part(x, kind.mesh, kind.placements, self.rank)

    def _value(self, local: Any, kind: Any) -> Any:
        if not isinstance(kind, DistTensorType):
            return local
        if local is None:
            return elsewhere(kind.shape, kind.dtype, kind.mesh, kind.placements)
        return DistValue(local, kind.shape, kind.dtype, kind.mesh, kind.placements)

    def before(self, arrays: list[Any]) -> list[Any]:
        """A distributed tensor that is written gets another value; the old one stays as it is."""
        return [x.copy() if i in self.rewritten and isinstance(x, np.ndarray) else x for i, x in enumerate(arrays)]


SHAPE = "shape of "


def shapes_as_inputs(program: Program) -> dict[str, Place]:
    """What is only the shape of a value that is on a mesh (`shape_only`) becomes an input, while the program is
    completed and cut: an input can be placed.  Returns where they are."""
    places: dict[str, Place] = {}
    for op in program.global_block().ops:
        kind = op.result(0).type() if op.name() == "pd_op.shape_only" else None
        if isinstance(kind, DistTensorType):
            name = f"{SHAPE}{len(places)}"
            op.result(0).replace_all_uses_with(Builder(program.global_block(), op).data(name, kind.shape, kind.dtype))
            places[name] = kind.mesh, kind.placements
            op.erase()
    return places


def shapes_as_they_were(local: Program) -> None:
    """The inputs that were made of shapes are shapes again, of what this rank has."""
    for op in local.global_block().ops:
        if op.name() == "pd_op.data" and op.attributes["name"].value.startswith(SHAPE):
            value: Any = op.result(0)
            shape, = Builder(local.global_block(), op).call(ROWS["shape_only"], (), {"shape": value.shape,
                                                                                     "dtype": value.dtype})
            value.replace_all_uses_with(shape)
            op.erase()


register_spread(Spread(SpreadTrace, SpreadRunnable, SpreadState))
