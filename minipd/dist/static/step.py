"""A layer, its loss and its optimizer as one global program.

Written on one process, with no communicator and global shapes: the forward computation, its loss, in training also the
gradients and the optimizer's update of the program's state.  Nothing in it speaks of ranks but the marks that the user
has left (`shard_tensor`, `reshard`), and the `match` operations that tie a gradient to its primal's placements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from minipd.dist.dialect import DistTensorType
from minipd.dist.interpreter import MARKS
from minipd.dist.placements import whole
from minipd.dist.static.evaluation import Survey, placed_meta
from minipd.dist.value import DistValue
from minipd.framework.context import MetaOnly, using
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.backward import append_backward
from minipd.ir.program import Program
from minipd.ir.structure import Structure, flatten
from minipd.ir.trace import Trace
from minipd.ir.traced import TracedProgram, trace
from minipd.ir.value import Value
from minipd.jit.dy2static import explained, rewritten_layers, transformed
from minipd.nn.layer import Layer

__all__ = ["GlobalStep", "trace_step"]

MODES = ("train", "eval", "predict")


@dataclass
class GlobalStep:
    """A traced step.

    program: the global program.  inputs: the names of what a run is fed, in order.  state: name -> the tensor that
    holds this program state.  outputs: the names of results; structure: what is made of them.
    """

    program: Program
    trace: Trace
    inputs: tuple[str, ...]
    state: dict[str, Tensor]
    outputs: tuple[str, ...]
    structure: Structure


class PlacingTrace(Trace):
    """A trace that knows where values are: code that is traced may ask a tensor for its placements, as eagerly.

    placed: mesh and placements of inputs, by name.  noting: whether somebody will ask.
    """

    knows_places = True

    def knows(self, placed: Mapping[str, tuple]) -> None:
        """Before anything is traced."""
        self.placed, self.noting = placed, True
        self.survey = Survey()
        self.known: dict[Value, DistValue] = {}

    def input(self, name: str, meta: Any, stop_gradient: bool = True) -> Value:
        value = super().input(name, meta, stop_gradient)
        return self.place(value, *self.placed[name]) if name in self.placed else self.as_outside(value, meta)

    def parameter(self, name: str, meta: Any, trainable: bool = False) -> Value:
        return self.as_outside(super().parameter(name, meta, trainable), meta)

    def as_outside(self, value: Value, payload: Any) -> Value:
        """The value that stands for a tensor from outside, placed as that is."""
        return self.place(value, payload.mesh, whole(payload.held().placements)) if isinstance(payload, DistValue) \
            else value

    def place(self, value: Value, mesh: Any, placements: tuple) -> Value:
        value.set_type(DistTensorType(value.shape, value.dtype, mesh, placements))
        self.known[value] = placed_meta(value.shape, value.dtype, mesh, placements)
        return value

    def run(self, row: Any, payloads: Any, attrs: dict) -> Any:
        out = super().run(row, payloads, attrs)
        if row.name == "dtensor_from_local":
            self.place(out, attrs["mesh"], tuple(attrs["placements"]))
        elif self.noting and (row.name in MARKS or any(isinstance(p, Value) and p in self.known for p in payloads)):
            self.note(row, payloads, attrs, out if row.multi else (out,))
        return out

    def note(self, row: Any, payloads: Any, attrs: dict, values: tuple) -> None:
        """Find out where the results of a call are."""
        metas = [self.known.get(p, Meta(p.shape, p.dtype)) if isinstance(p, Value) else p for p in payloads]
        with using(ground=MetaOnly(), middle=self.survey, amp=None, grad=False):
            found = current().run(row, metas, attrs)
        for value, meta in zip(values, found if row.multi else (found,), strict=True):
            if type(meta) is DistValue:
                value.set_type(DistTensorType(value.shape, value.dtype, meta.mesh, meta.placements))
                self.known[value] = meta


class StepTrace(PlacingTrace):
    """The trace of a step.   by_hand: whether a hook or a PyLayer wants to see the backward pass, which the tape writes
    then.
    """

    def __init__(self, placed: Mapping[str, tuple] | None = None) -> None:
        super().__init__(Program())
        self.by_hand = False
        self.knows(placed or {})

    def by_tape(self) -> bool:
        super().by_tape()
        self.by_hand = True
        return True


def trace_step(mode: str, layer: Callable, loss: Callable | None, optimizer: Any, inputs: Sequence[Any],
               labels: Sequence[Any], casting: Callable[[], AbstractContextManager] = nullcontext, passes: int = 1,
               mean: bool = True) -> GlobalStep:
    """The program of one step.

    mode: "train" returns the loss, and updates the parameters; "eval" returns the loss; "predict" what the layer does.
    layer(*inputs), then loss(results, *labels).  optimizer: has its parameters.  inputs, labels: anything with a name,
    a (global) shape and a dtype, and `placed`, a mesh and placements (or None).  casting: the context in which the
    forward computation is traced (amp).
    passes: how many parts of a batch a training step computes one after the other.  inputs and labels are then those of
    all parts, part by part; gradients and losses are added up, and divided by `passes` if `mean`.
    Raises: ValueError for a loss that is not one number, or that no parameter moves.
    """
    specs = [*inputs, *labels] if passes == 1 else [
        each for m in range(passes) for group in (inputs, labels)
        for each in group[m * len(group) // passes:(m + 1) * len(group) // passes]]
    tracer = StepTrace({g.name: g.placed for g in specs if getattr(g, "placed", None) is not None})
    forward = _forward(mode, layer, loss, len(inputs) // passes)
    state = state_of(layer, loss, optimizer if mode == "train" else None)

    def step(*arguments: Tensor) -> Any:
        if mode != "train":
            with casting():
                out = forward(*arguments)
            leaves, structure = flatten(out)
            return structure.rebuild([_resolved(t) for t in leaves])
        n = len(arguments) // passes
        losses: list[Tensor] = []
        gradients: dict[str, list[Tensor]] = {}
        for m in range(passes):
            with using(grad=True), casting():
                out = _one_number(forward(*arguments[m * n:(m + 1) * n]))
            losses.append(Tensor(out.payload))           # the same value: what resolves one resolves the other
            for name, g in _gradients(tracer, optimizer, out).items():
                gradients.setdefault(name, []).append(g)
        _update(optimizer, {name: _total(gs, mean) for name, gs in gradients.items()})
        return _resolved(_total(losses, mean))
    with using(grad=False):
        traced: TracedProgram = trace(step, *specs, state=state, tracer=tracer)
    return GlobalStep(traced.program, tracer, traced.inputs, state, traced.outputs, traced.structure)


def _forward(mode: str, layer: Callable, loss: Callable | None, n_inputs: int) -> Callable:
    """What the user would write, as a function of the inputs and labels: control flow of tensors becomes a part of the
    program."""
    def forward(*arguments: Tensor) -> Any:
        with explained(), _rewritten(layer), _rewritten(loss):
            out = transformed(layer)(*arguments[:n_inputs])
            if mode == "predict":
                return out
            assert loss is not None
            outs = out if isinstance(out, (list, tuple)) else (out,)
            return transformed(loss)(*outs, *arguments[n_inputs:])
    return forward


def _rewritten(owner: Any) -> AbstractContextManager:
    return rewritten_layers(owner) if isinstance(owner, Layer) else nullcontext()


def state_of(layer: Any, loss: Any, optimizer: Any = None) -> dict[str, Tensor]:
    """Everything that lives from step to step, by name: parameters and buffers, and what the optimizer keeps."""
    found: dict[str, Tensor] = {}
    for owner in (layer, loss):
        if not hasattr(owner, "named_parameters"):
            continue
        found |= {p.name: p for _, p in owner.named_parameters()}
        found |= {b.name: b for _, b in owner.named_buffers() if b is not None}
    if optimizer is not None:
        found |= {t.name: t for t in optimizer.prepare().values()}
    return found


def _one_number(loss: Any) -> Tensor:
    if not isinstance(loss, Tensor) or any(d != 1 for d in loss.shape):
        got = f"one of shape {list(loss.shape)}" if isinstance(loss, Tensor) else repr(loss)
        raise ValueError(f"to_static: expected a loss of one number to train with, got {got}; take its mean() or sum()")
    return loss


def _total(parts: list[Tensor], mean: bool) -> Tensor:
    """The sum of what several passes have found, or its mean."""
    if len(parts) == 1:
        return parts[0]
    total = ROWS["add_n"](*parts)
    return total * (1.0 / len(parts)) if mean else total        # (a scale would resolve it first)


def _resolved(t: Tensor) -> Tensor:
    """A result that somebody will look at: a Partial one is whole at the end of the program, if it is not before."""
    partial = any(p.is_partial() for p in getattr(t.payload, "placements", ()))
    return ROWS["match"](t, t) if partial else t


def _gradients(tracer: StepTrace, optimizer: Any, loss: Tensor) -> dict[str, Tensor]:
    """Append the gradients of a loss; returns them by the names of their parameters, which may lack one."""
    params = [p for p in optimizer._parameter_list if not p.stop_gradient]
    if loss.stop_gradient:
        raise ValueError("to_static: expected a loss that depends on a parameter of the optimizer, got one with "
                         "stop_gradient=True; give the optimizer layer.parameters()")
    tracer.noting = False               # nobody asks gradients where they are
    try:
        if tracer.by_hand:
            loss.backward()
            found = {p.name: p.grad for p in params if p.grad is not None}
            for p in params:
                p.clear_gradient(False)
            return found
        reached = [p for p in params if not p.payload.stop_gradient]
        gs = append_backward(tracer.program, [loss.payload], [p.payload for p in reached], pin=True, trace=tracer)
        return {p.name: Tensor(g) for p, g in zip(reached, gs, strict=True) if g is not None}
    finally:
        tracer.noting = True


def _update(optimizer: Any, gradients: dict[str, Tensor]) -> None:
    """Append the optimizer's step.

    A gradient is matched to its parameter here, once, when all its contributions are added up: that of data-parallel
    ranks is a Partial until now.
    """
    missed = dict(optimizer._missed)
    for p in optimizer._parameter_list:     # views of the old values are not looked at again: nothing is to follow
        p.views = p.storage = None
    optimizer.apply_gradients([(p, ROWS["match"](gradients[p.name], p)) for p in optimizer._parameter_list
                               if p.name in gradients])
    optimizer._missed = missed              # steps are made when the program runs
