"""One compiled signature: the programs, what their inputs are bound to, and how a call runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minipd.autograd.tape import record_call
from minipd.executor import Executor, TensorScope
from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.structure import Structure, flatten
from minipd.ir.traced import TracedProgram, trace
from minipd.ir.value import Value
from minipd.jit.capture import CapturingTrace
from minipd.jit.joint import with_backward
from minipd.jit.signature import Argument
from minipd.jit.stages import Options, run_stages
from minipd.profiler.recording import TracerEventType, spanned

__all__: list[str] = []


class Handles(TensorScope):
    """Tensors as the scope of an executor."""

    def __getitem__(self, name: str) -> np.ndarray:
        return self.tensors[name].payload

    def __setitem__(self, name: str, array: np.ndarray) -> None:
        x = self.tensors[name]
        if x.storage is None:
            x.payload = array
        elif x.payload is not array:            # others see this memory
            np.copyto(x.payload, array)
            x.storage.version += 1
            x.seen = x.storage.version


class Call:
    """What the tape wants to know of a recorded call, for a whole compiled program."""

    multi, raw_gradient = True, True

    def __init__(self, name: str):
        self.name = name


class Compiled:
    """A traced function, ready to run.

    fn: takes tensors, in the order of `arguments`.  state: tensors that it may read and write, by name.
    program: as it was traced and fused.  handles: the names of inputs -> outside tensors that they are bound to.
    """

    def __init__(self, name: str, fn: Callable, arguments: Sequence[Argument], state: Mapping[str, Tensor],
                 options: Options):
        self.name, self.options = name, options
        state, again = dict(state), True
        while again:
            tracer = CapturingTrace()
            try:
                self.traced: TracedProgram = trace(fn, *arguments, state=state, tracer=tracer)
            finally:
                written = tracer.release()
            # an outside tensor that the function writes is state too, which only the trace tells: trace once more
            state |= {f"written_{len(state) + i}": x for i, x in enumerate(written)}
            again = bool(written)
        self.handles, self.state = dict(tracer.handles), self.traced.state
        self.scope = Handles(self.state)
        self.guards = [(x, *_meta(x)) for x in (*self.handles.values(), *self.state.values())]
        traced = self.traced
        with using(amp=None):               # its casts are in the program by now
            self.program = traced.program = run_stages(traced.program, options, "trace", name)
            self.written = {op.attributes["parameter_name"].value for op in self.program.global_block()
                            if op.name() == "builtin.set_parameter"}
            self._gradient()

    def _gradient(self) -> None:
        """Compile the forward program, and the backward one if there is a gradient to record."""
        program, traced = self.program, self.traced
        self.flows = [n for n, v in zip(traced.outputs, traced.output_values, strict=True)
                      if current().grad_enabled and not v.stop_gradient and v.dtype in dtypes.INEXACT]
        wrt = {n: v for n, v in self._sources().items() if not v.stop_gradient and v.dtype in dtypes.INEXACT}
        fuses = self.options.backend is not None
        self.joint = with_backward(program, self.flows, wrt, fuses) if self.flows and wrt else None
        forward = program.clone() if self.joint is None else self.joint.forward
        self.forward = Executor(run_stages(forward, self.options, "compile", f"{self.name} (forward)"))
        self.backward = None if self.joint is None else Executor(
            run_stages(self.joint.backward, self.options, "compile", f"{self.name} (backward)"))

    def _sources(self) -> dict[str, Value]:
        """Inputs and state of the program by name; what could be asked a gradient of."""
        data: dict[str, Value] = {op.attributes["name"].value: op.result(0) for op in self.program.global_block()
                                  if op.name() == "pd_op.data"}
        return data | {f"state {n}": v for n, v in self.program.parameters().items()}

    def holds(self) -> bool:
        """Whether the outside tensors still are what they were when the function was traced."""
        return all(_meta(x) == tuple(meta) for x, *meta in self.guards)

    # ---------------------------------------------------------------------------------------------------- calls
    def __call__(self, tensors: Sequence[Tensor]) -> Any:
        """Run on these tensors; returns what the function returned."""
        traced, rng = self.traced, current().rng
        given = dict(zip(traced.inputs, tensors, strict=True)) | self.handles
        feed = {n: x.payload for n, x in given.items()} | {n: rng.next_key(p) for n, p in traced.draws.items()}
        feed |= traced.captures
        before = {n: self.scope[n].copy() if n in self.written else self.scope[n]
                  for n in (self.joint.state if self.joint is not None else ())}
        feed = {n: feed[n] for n in self.forward.inputs}
        found = spanned(f"{self.name} (compiled)", TracerEventType.Forward, self.forward.run, feed, self.scope)
        outs = [Tensor(found[name]) for name in traced.outputs]
        if self.joint is not None:
            self._record(given, feed, before, found, dict(zip(traced.outputs, outs, strict=True)))
        return traced.structure.rebuild(outs)

    def _record(self, given: dict[str, Tensor], feed: dict[str, Any], before: dict[str, np.ndarray],
                found: dict[str, np.ndarray], outs: dict[str, Tensor]) -> None:
        """Put the call on the tape, as one node."""
        joint, backward = self.joint, self.backward
        assert joint is not None and backward is not None
        state = {f"state {n}": x for n, x in self.state.items()}
        wrt = [(given | state)[n] for n in joint.wrt]
        kept = {n: found[n] for n in joint.saved} | {n: feed[n] for n in joint.feeds}
        read = [(x, 0 if x.storage is None else x.storage.version) for x in (*given.values(), *self.state.values())]
        results = [outs[n] for n in self.flows]
        shapes = [(x.payload.shape, x.payload.dtype) for x in results]
        sizes = self.forward.sizes(feed)

        def vjp(gs: Sequence[Tensor | None]) -> list[Tensor | None]:
            if current().grad_enabled:
                raise NotImplementedError(f"{self.name}: expected a first derivative, got create_graph=True through a "
                                          "compiled function; call the function without to_static for second ones")
            for x, version in read:
                if x.storage is not None and x.storage.version != version:
                    raise RuntimeError(f"{self.name}: tensor {x.name} was written in place after the compiled function "
                                       "had read it, and its gradient needs the old values: write it after backward()")
            seeds = {f"grad_{i}": np.zeros(*meta) if g is None else g.payload
                     for i, (g, meta) in enumerate(zip(gs, shapes, strict=True))}
            both = kept | seeds
            grads = spanned(f"{self.name} (compiled, backward)", TracerEventType.Backward, backward.run,
                            {n: both[n] for n in backward.inputs}, dict(before), sizes=sizes)
            return [Tensor(grads[n]) for n in joint.wrt]

        for x in results:
            x.stop_gradient = False
        record_call(Call(self.name), wrt, results, vjp)


def _meta(x: Tensor) -> tuple:
    return tuple(x.payload.shape), x.payload.dtype, x.stop_gradient


def rebuilt(structure: Structure, fn: Callable) -> Callable:
    """`fn(*args, **kwargs)` as a function of the tensors in them."""
    def on_tensors(*tensors: Tensor) -> Any:
        args, kwargs = structure.rebuild(list(tensors))
        return fn(*args, **kwargs)
    return on_tensors


def flat(args: tuple, kwargs: dict) -> tuple[list[Tensor], Structure]:
    """The tensors in the arguments of a call, and what is around them."""
    return flatten((args, kwargs))
