"""A program and its gradient, compiled, and how a call of it stands on the tape: as one node."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np

from minipd.autograd.tape import Node, node_of
from minipd.executor import Executor
from minipd.executor.executor import NO_SIZES
from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Recipe, VjpCall
from minipd.framework.tensor import Storage, Tensor
from minipd.ir.dce import remove_dead_ops
from minipd.ir.operation import captured
from minipd.ir.program import Program
from minipd.ir.value import Value
from minipd.jit.joint import Joint, with_backward
from minipd.jit.replay import STATE, replay
from minipd.jit.stages import Options, run_stages
from minipd.profiler.recording import TracerEventType, spanned

__all__: list[str] = []

class Call:
    """What the tape wants to know of a recorded call, for a whole compiled program.

    expand: given the node, computes the call again, operator by operator on the tape; see `Recorded.expand`.
    exhausts: given the node and gradients of its results, whether the node is done with after a pass.
    """

    multi, raw_gradient = True, True

    def __init__(self, name: str, expand: Callable[[Node], None] | None = None,
                 exhausts: Callable[[Node, Sequence[Tensor | None]], bool] | None = None):
        self.name, self.expand, self.exhausts = name, expand, exhausts


class Runnable:
    """A program, ready to run forward and backward.

    program: as it was traced and fused.  inputs: the names of what a call feeds; `given` are these, and behind them
    the state that is read, with `STATE` before its names.  outputs: the names of its results.  flows: those through
    which a gradient flows.  joint: the two programs, None where there is no gradient.
    """

    def __init__(self, name: str, program: Program, inputs: Sequence[str], outputs: Sequence[str], options: Options,
                 gradient: bool, joint: Joint | None = None):
        self.name, self.options, self.outputs = name, options, tuple(outputs)
        self.names = f"{name} (compiled)", f"{name} (compiled, backward)"       # in a profile
        self._on_tape: tuple[Call, Recipe] | None = None
        self._reached: dict[tuple[bool, ...], list[bool]] = {}
        with using(amp=None):               # its casts are in the program by now
            self.program = program if joint is not None else self.before_gradient(program)
            values = {n: self.program.get_output_value_by_name(n) for n in self.outputs}
            self.flows = [n for n, v in values.items() if gradient and _flows(v)]
            wrt = {n: v for n, v in self.sources().items() if _flows(v)}
            if joint is None and self.flows and wrt:
                joint = with_backward(self.program, self.flows, wrt, options.backend is not None, self.pins)
            self.joint = joint
            forward = self.program.clone() if joint is None else joint.forward
            self.forward = self.ready(forward, "forward")
            self.backward = None if joint is None else self.ready(joint.backward, "backward")
        self.state = tuple(self.program.parameters())
        self.given = (*inputs, *(STATE + n for n in self.state))
        self.written = {op.attributes["parameter_name"].value for op in self.program.global_block()
                        if op.name() == "builtin.set_parameter"}
        self._places()

    #: whether gradients are brought to the placements of what they are gradients of
    pins = False

    def before_gradient(self, program: Program) -> Program:
        """The stages in front of a gradient."""
        return run_stages(program, self.options, "trace", self.name)

    def ready(self, program: Program, which: str) -> Executor:
        """The "forward" or "backward" program, to run."""
        return Executor(run_stages(program, self.options, "compile", f"{self.name} ({which})"))

    def made_by(self, which: str) -> Sequence[str]:
        """What `run` or `run_back` find: names, in order."""
        run = self.forward if which == "forward" else self.backward
        assert run is not None
        return list(run.prepared.outputs)

    @functools.cached_property
    def differentiable(self) -> Program:
        """The part of the program that leads to the results through which a gradient flows."""
        part = self.program.clone()
        for op in reversed(list(part.global_block())):
            if op.name() == "builtin.set_parameter" or (
                    op.name() == "builtin.shadow_output" and op.attributes["output_name"].value not in self.flows):
                op.erase()
        remove_dead_ops(part)
        return part

    @functools.cached_property
    def reach(self) -> list[tuple[frozenset[int], frozenset[str]]]:
        """Per entry of `flows`, what it was computed from: which others, and which inputs and state."""
        places = {self.program.get_output_value_by_name(n): i for i, n in enumerate(self.flows)}
        names = {value: name for name, value in self.sources().items()}
        found = []
        for start in places:
            seen = {start}
            todo = [start]
            while todo:
                op = todo.pop().get_defining_op()
                for value in () if op is None else (*op.operands_source(), *(captured(op) if op.regions else ())):
                    if value not in seen:
                        seen.add(value)
                        todo.append(value)
            found.append((frozenset(places[v] for v in seen & places.keys()),
                          frozenset(names[v] for v in seen & names.keys())))
        return found

    def reached(self, given: tuple[bool, ...]) -> list[bool]:
        """Which of `wanting` something is owed to, where only these results have a gradient."""
        found = self._reached.get(given)
        if found is None:
            assert self.joint is not None
            names: frozenset[str] = frozenset().union(*(
                names for it, (_, names) in zip(given, self.reach, strict=True) if it))
            found = self._reached[given] = [n in names for n in self.joint.wrt]
        return found

    def sources(self) -> dict[str, Value]:
        """Inputs and state of the program by name; what could be asked a gradient of."""
        return sources_of(self.program)

    def _places(self) -> None:
        """Where everything is that the two programs read, among what a call of them has at hand: numbers instead of
        names, which a call then need not look up."""
        run, joint = self.forward.prepared, self.joint
        at = {name: i for i, name in enumerate(self.given)}
        made = {name: i for i, name in enumerate(self.made_by("forward"))}
        self.inputs = [at[n] for n in run.inputs]
        self.reads = [at[STATE + n] for n in run.state]
        self.results = [made[n] for n in self.outputs]
        if joint is None or self.backward is None:
            return
        back = self.backward.prepared
        self.flowing = [made[n] for n in self.flows]
        self.saved = [made[n] for n in joint.saved]
        self.wanting = [at[n] for n in joint.wrt]
        self.needed = [at[n] for n in (*joint.feeds, *(STATE + n for n in joint.state))]
        #: behind what was given, in a backward run: what was saved, and the gradients of the results
        behind = [*joint.saved, *(f"grad_{i}" for i in range(len(self.flows)))]
        at.update((name, len(self.given) + i) for i, name in enumerate(behind))
        self.back_inputs = [at[n] for n in back.inputs]
        self.back_reads = [at[STATE + n] for n in back.state]
        found = {name: i for i, name in enumerate(self.made_by("backward"))}
        self.gradients = [found[n] for n in joint.wrt]
        self.rewritten = [at[STATE + n] for n in self.state if n in self.written]

    def run(self, arrays: Sequence[Any], scope: Any) -> tuple[list[Any], Mapping[str, int]]:
        """Run forward.  arrays: what is given.  Returns the outputs of `forward`, and the sizes of open dimensions."""
        inputs, sizes = [arrays[i] for i in self.inputs], NO_SIZES
        if not self.forward.fixed:
            sizes = self.forward.sizes(dict(zip(self.forward.prepared.inputs, inputs, strict=True)))
        return spanned(self.names[0], TracerEventType.Forward, self.forward.call, inputs,
                       [arrays[i] for i in self.reads], scope, sizes), sizes

    def run_back(self, arrays: Sequence[Any], sizes: Mapping[str, int]) -> list[np.ndarray]:
        """Run backward.  arrays: what was given, what was saved, and the gradients of the results.  sizes: as the
        forward run found them.  Returns the gradients of `wanting`."""
        assert self.backward is not None
        inputs = [arrays[i] for i in self.back_inputs]
        if not self.backward.fixed:
            sizes = self.backward.sizes(dict(zip(self.backward.prepared.inputs, inputs, strict=True)), sizes)
        found = spanned(self.names[1], TracerEventType.Backward, self.backward.call, inputs,
                        [arrays[i] for i in self.back_reads], {}, sizes)
        return [found[i] for i in self.gradients]

    def before(self, arrays: list[Any]) -> list[Any]:
        """What is given, as it is before a run that will be on the tape: what that writes over is copied."""
        if not self.rewritten:
            return arrays
        arrays = arrays.copy()
        for i in self.rewritten:
            arrays[i] = arrays[i].copy()
        return arrays

    def on_tape(self, slots: Sequence[int], n_out: int) -> tuple[Call, Recipe]:
        """What the nodes of all calls have in common.  slots: the numbers that a node's results have, for each of
        `flows`.  n_out: how many results it has."""
        if self._on_tape is None:
            few = len(slots) != n_out

            def ours(gs: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
                return [gs[slot] for slot in slots] if few else gs

            def vjp(gs: Sequence[Tensor | None], run: Recorded) -> list[Tensor | None]:
                return run.gradients(ours(gs))

            def expand(node: Node) -> None:
                if node.saved is not None:          # else it was freed, and the engine says so
                    node.saved[0].expand(node, slots)
            self._on_tape = (Call(self.name, expand, lambda node, gs: node.saved[0].exhausts(ours(gs))),
                             Recipe((), (), (), "", ((VjpCall(vjp, None, ()), (0,)),)))
        return self._on_tape


def sources_of(program: Program) -> dict[str, Value]:
    """Inputs and state by name."""
    data: dict[str, Value] = {op.attributes["name"].value: op.result(0) for op in program.global_block()
                              if op.name() == "pd_op.data"}
    return data | {STATE + n: v for n, v in program.parameters().items()}


def _flows(v: Value) -> bool:
    return not v.stop_gradient and v.dtype in dtypes.INEXACT


class Recorded:
    """One run of a `Runnable`, as the node on the tape keeps it.

    arrays: what the run was given (`Runnable.given`), as it was before.  sources: the tensors behind it.
    found: what the run left.  sizes: of open dimensions.
    """

    def __init__(self, runnable: Runnable, sources: Sources, arrays: list[Any], found: list[Any],
                 sizes: Mapping[str, int]):
        self.runnable, self.arrays, self.sources, self.sizes = runnable, arrays, sources, sizes
        self.kept = [found[i] for i in runnable.saved]
        self.shapes = [(found[i].shape, found[i].dtype) for i in runnable.flowing]

    def fill(self, node: Node, slots: Sequence[int], n_out: int) -> None:
        """Make `node` the node of this run; the rest as in `Runnable.on_tape`."""
        of = self.sources.slots
        node.row, node.recipe = self.runnable.on_tape(slots, n_out)
        node.edges = [of[i] for i in self.runnable.wanting]
        node.saved, node.attrs, node.n_out = [self], {}, n_out

    def gradients(self, gs: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The gradients of the tensors that want one, from those of the results."""
        runnable = self.runnable
        assert runnable.joint is not None
        self.check(runnable.needed)
        given = [np.zeros(*meta) if g is None else g.payload for g, meta in zip(gs, self.shapes, strict=True)]
        for g, (shape, dtype) in zip(given, self.shapes, strict=True):
            if g.shape != shape or g.dtype != dtype:
                raise ValueError(f"{runnable.name}: expected a gradient like its result, {describe(Meta(shape, dtype))}"
                                 f", got {describe(g)}")
        grads = runnable.run_back([*self.arrays, *self.kept, *given], self.sizes)
        reached = runnable.reached(tuple([g is not None for g in gs]))
        return [Tensor(grad) if it else None for it, grad in zip(reached, grads, strict=True)]

    def exhausts(self, gs: Sequence[Tensor | None]) -> bool:
        """Whether a pass with these gradients goes through everything that was recorded: no result without a gradient
        leads anywhere else."""
        if all([g is not None for g in gs]):
            return True
        reach = self.runnable.reach
        visited = frozenset().union(*(flows for g, (flows, _) in zip(gs, reach, strict=True) if g is not None))
        return len(visited) == len(reach)

    def check(self, places: Sequence[int]) -> None:
        """Raise RuntimeError if what was given in one of these places was written in place since."""
        written = self.sources.written(places)
        if written is not None:
            raise RuntimeError(
                f"{self.runnable.name}: tensor {written} was written in place after the compiled "
                "function had read it, and its gradient needs the old values: write it after backward()")

    def expand(self, node: Node, slots: Sequence[int]) -> None:
        """Let `node` hand on gradients to nodes of the single operators, which compute the call again.

        The node keeps its place on the tape, and what has been made of its results stays right.  Hooks on a result, and
        gradients with respect to one, then count what other results of the same call owe to it too; and the operators'
        rules can be differentiated again.
        """
        program, given = self.runnable.differentiable, self.runnable.given
        read = {name for name, value in sources_of(program).items() if not value.use_empty()}
        self.check([i for i, name in enumerate(given) if name in read])
        first = node.seq
        outs, made = replay(program, {name: self.sources.again(i, array)
                                      for i, (name, array) in enumerate(zip(given, self.arrays, strict=True))})
        for i, other in enumerate(made):        # between what the call had read and the call itself
            other.seq = first - 1 + (i + 1) / (len(made) + 1)       # type: ignore[assignment]
        results = [outs[name] for name in self.runnable.flows]
        hand_over(node, self.runnable.name, list(zip(slots, results, strict=True)), node.n_out)


def hand_over(node: Node, name: str, results: Sequence[tuple[int, Tensor]], n_out: int) -> None:
    """Let `node` hand on the gradients of its results, each to where that of the same tensor goes that was recorded by
    single operators.  results: pairs of a number and that tensor."""
    flowing = [(slot, x) for slot, x in results if not x.stop_gradient]
    slots = [slot for slot, _ in flowing]

    def vjp(gs: Sequence[Tensor | None]) -> list[Tensor | None]:
        return [gs[slot] for slot in slots]

    node.edges = [(node_of(x), x.index) for _, x in flowing]
    node.recipe = Recipe((), (), (), "", ((VjpCall(vjp, None, ()), ()),))
    node.saved, node.row, node.n_out = [], Call(name), n_out
    node.attrs = dict(zip(slots, node.edges, strict=True))


class Sources:
    """The tensors that a run was given, and what they were then, one list for each fact.

    tensors: weak references, None for what is no tensor.  slots: where their gradients go, None where none is wanted.
    (It does not keep a tensor: one that is written in place gets a node that keeps what was read of it, and both would
    keep each other.)
    """

    __slots__ = ("slots", "storages", "tensors", "versions")

    def __init__(self, tensors: list[Any], slots: list[Any], storages: list[Storage | None]):
        self.tensors, self.slots, self.storages = tensors, slots, storages
        self.versions = [0 if s is None else s.version for s in storages]

    def add(self, x: Tensor, slot: Any) -> None:
        """One more tensor is read."""
        storage = x.storage
        self.tensors.append(ref(x))
        self.slots.append(slot)
        self.storages.append(storage)
        self.versions.append(0 if storage is None else storage.version)

    def forget(self, n: int) -> None:
        """All but the first n have not been read."""
        for facts in (self.tensors, self.slots, self.storages, self.versions):
            del facts[n:]                                               # type: ignore[attr-defined]

    def written(self, places: Sequence[int]) -> str | None:
        """The name of a tensor in one of these places whose memory has been written in place since; None if there is
        none."""
        for i in places:
            storage, it = self.storages[i], self.tensors[i]
            x = None if it is None else it()
            if storage is None and x is not None:
                storage = x.storage
            if storage is not None and storage.version != self.versions[i]:
                return "of an argument" if x is None else x.name
        return None

    def again(self, place: int, array: Any) -> Any:
        """A handle on what was read, with the history that it had; what was no tensor is itself."""
        if self.tensors[place] is None:
            return array
        x, slot = Tensor(array), self.slots[place]
        if slot is not None:
            (x.node, x.index), x.stop_gradient = slot, False
        return x
