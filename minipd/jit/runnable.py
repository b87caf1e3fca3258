"""A program and its gradient, compiled, and how a call of it stands on the tape: as one node."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np

from minipd.autograd.tape import Node, node_of
from minipd.executor import Executor
from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.row import Recipe, VjpCall
from minipd.framework.tensor import Tensor
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

    program: as it was traced and fused.  outputs: the names of its results.  flows: those through which a gradient
    flows.  joint: the two programs, None where there is no gradient.
    """

    def __init__(self, name: str, program: Program, outputs: Sequence[str], options: Options, gradient: bool,
                 joint: Joint | None = None):
        self.name, self.options, self.outputs = name, options, tuple(outputs)
        with using(amp=None):               # its casts are in the program by now
            self.program = program if joint is not None else run_stages(program, options, "trace", name)
            values = {n: self.program.get_output_value_by_name(n) for n in self.outputs}
            self.flows = [n for n, v in values.items() if gradient and _flows(v)]
            wrt = {n: v for n, v in self.sources().items() if _flows(v)}
            if joint is None and self.flows and wrt:
                joint = with_backward(self.program, self.flows, wrt, options.backend is not None)
            self.joint = joint
            forward = self.program.clone() if joint is None else joint.forward
            self.forward = Executor(run_stages(forward, options, "compile", f"{name} (forward)"))
            self.backward = None if joint is None else Executor(
                run_stages(joint.backward, options, "compile", f"{name} (backward)"))
        self.state = tuple(self.program.parameters())
        self.needed = frozenset(() if joint is None else (*joint.feeds, *(STATE + n for n in joint.state)))
        self.written = {op.attributes["parameter_name"].value for op in self.program.global_block()
                        if op.name() == "builtin.set_parameter"}

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

    def sources(self) -> dict[str, Value]:
        """Inputs and state of the program by name; what could be asked a gradient of."""
        return sources_of(self.program)

    def run(self, feed: dict[str, Any], scope: Any) -> dict[str, np.ndarray]:
        """Run forward.  feed: at least an array for every input."""
        return spanned(f"{self.name} (compiled)", TracerEventType.Forward, self.forward.run,
                       {n: feed[n] for n in self.forward.inputs}, scope)

    def before(self, scope: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The state, as it is before a run that will be on the tape."""
        return {n: scope[n].copy() if n in self.written else scope[n] for n in self.state}


def sources_of(program: Program) -> dict[str, Value]:
    """Inputs and state by name."""
    data: dict[str, Value] = {op.attributes["name"].value: op.result(0) for op in program.global_block()
                              if op.name() == "pd_op.data"}
    return data | {STATE + n: v for n, v in program.parameters().items()}


def _flows(v: Value) -> bool:
    return not v.stop_gradient and v.dtype in dtypes.INEXACT


class Recorded:
    """One run of a `Runnable`, as the node on the tape keeps it.

    sources: the tensors behind the inputs and the state, by name.  feed, found, state: what the run read
    and left.
    """

    def __init__(self, runnable: Runnable, sources: Mapping[str, Source], feed: dict[str, Any],
                 found: dict[str, np.ndarray], state: dict[str, np.ndarray]):
        joint = runnable.joint
        assert joint is not None
        self.runnable, self.feed, self.state, self.sources = runnable, feed, state, sources
        self.kept = {n: found[n] for n in joint.saved} | {n: feed[n] for n in joint.feeds}
        self.shapes = [(found[n].shape, found[n].dtype) for n in runnable.flows]

    def fill(self, node: Node, slots: Sequence[int], n_out: int) -> None:
        """Make `node` the node of this run.  slots: the numbers that the node's results have, for each of `flows`."""
        joint = self.runnable.joint
        assert joint is not None
        n_flows = len(slots)

        def ours(gs: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
            return [gs[slot] for slot in slots] if n_flows != n_out else gs

        def vjp(gs: Sequence[Tensor | None], run: Recorded) -> list[Tensor | None]:
            return run.gradients(ours(gs))

        def expand(node: Node) -> None:
            if node.saved is not None:          # else it was freed, and the engine says so
                node.saved[0].expand(node, slots)

        node.row = Call(self.runnable.name, expand, lambda node, gs: node.saved[0].exhausts(ours(gs)))
        sources = self.sources
        node.edges = [sources[n].slot for n in joint.wrt]
        node.recipe = Recipe((), (), (), "", ((VjpCall(vjp, None, ()), (0,)),))
        node.saved, node.attrs, node.n_out = [self], {}, n_out

    def gradients(self, gs: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The gradients of the tensors that want one, from those of the results."""
        runnable, joint = self.runnable, self.runnable.joint
        assert joint is not None and runnable.backward is not None
        self.check(runnable.needed)
        both = self.kept | {f"grad_{i}": np.zeros(*meta) if g is None else g.payload
                            for i, (g, meta) in enumerate(zip(gs, self.shapes, strict=True))}
        reached: frozenset[str] = frozenset().union(*(
            names for g, (_, names) in zip(gs, runnable.reach, strict=True) if g is not None))
        grads = spanned(f"{runnable.name} (compiled, backward)", TracerEventType.Backward, runnable.backward.run,
                        {n: both[n] for n in runnable.backward.inputs}, {n: self.state[n] for n in joint.state},
                        sizes=runnable.forward.sizes({n: self.feed[n] for n in runnable.forward.inputs}))
        return [Tensor(grads[n]) if n in reached else None for n in joint.wrt]

    def exhausts(self, gs: Sequence[Tensor | None]) -> bool:
        """Whether a pass with these gradients goes through everything that was recorded: no result without a gradient
        leads anywhere else."""
        reach = self.runnable.reach
        visited = frozenset().union(*(flows for g, (flows, _) in zip(gs, reach, strict=True) if g is not None))
        return len(visited) == len(reach)

    def check(self, names: Any) -> None:
        """Raise RuntimeError if one of these inputs was written in place since."""
        for name in names:
            source = self.sources.get(name)
            written = None if source is None else source.written()
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
        program = self.runnable.differentiable
        self.check(name for name, value in sources_of(program).items() if not value.use_empty())
        arrays = {**self.feed, **{STATE + n: array for n, array in self.state.items()}}
        handles = {name: source.again(arrays[name]) for name, source in self.sources.items()}
        first = node.seq
        outs, made = replay(program, {**arrays, **handles})
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


class Source:
    """A tensor that a run has read, and what it was then.

    slot: where its gradient goes, None if it wants none.  (It does not keep the tensor: one that is written in place
    gets a node that keeps what was read of it, and both would keep each other.)
    """

    __slots__ = ("slot", "storage", "tensor", "version")

    def __init__(self, tensor: Tensor, slot: Any):
        self.tensor, self.slot, self.storage = ref(tensor), slot, tensor.storage
        self.version = 0 if self.storage is None else self.storage.version

    def written(self) -> Any:
        """The name of the tensor if its memory has been written in place since, else None."""
        x, storage = self.tensor(), self.storage
        if storage is None and x is not None:
            storage = x.storage
        if storage is None or storage.version == self.version:
            return None
        return "of an argument" if x is None else x.name

    def again(self, array: np.ndarray) -> Tensor:
        """A handle on what was read, with the history that it had."""
        x = Tensor(array)
        if self.slot is not None:
            (x.node, x.index), x.stop_gradient = self.slot, False
        return x
