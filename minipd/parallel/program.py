"""The training step as one global program.

Written on one process, with no communicator and global shapes: forward and backward of every micro-batch, the sum of
their gradients, clipping, and the optimizer's update of the program's state.  Nothing in it speaks of ranks but the
`match` operations that tie a gradient to its primal's placements; completion and partition do the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from minipd.framework.context import using
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Parameter, Tensor
from minipd.ir.backward import append_backward
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.ir.value import Value
from minipd.passes.fusion import fuse_forward

__all__ = ["loss_program", "train_program", "update_program", "write_gradients"]

INT64 = np.dtype(np.int64)
LEARNING_RATE = "learning_rate"


@contextmanager
def traced(tensors: Mapping[str, Tensor], values: Mapping[str, Value]) -> Any:
    """Inside, the handles hold the program's values of the same names."""
    before = {name: t.payload for name, t in tensors.items()}
    for name, t in tensors.items():
        t.payload = values[name]
    try:
        yield
    finally:
        for name, t in tensors.items():
            t.payload = before[name]


@contextmanager
def untouched_rng() -> Any:
    """Tracing draws nothing: the generator is afterwards where it was."""
    rng = current().rng
    before = rng.get_state()
    try:
        yield
    finally:
        rng.set_state(before)


def read_state(trace: Trace, tensors: Mapping[str, Tensor]) -> dict[str, Value]:
    """A `builtin.parameter` for each tensor, under its name, with its global shape."""
    return {name: trace.parameter(name, Meta(tuple(t.payload.shape), t.payload.dtype), isinstance(t, Parameter))
            for name, t in tensors.items()}


def loss_program(model: Any, batch_shape: tuple[int, int], fuse: bool = True,
                 grad: bool = False) -> tuple[Program, Trace]:
    """Inputs `ids`, `labels` and `n_tokens`, output `loss`: the model's loss on one global batch.

    fuse: operators of their own for what the model composes (`fuse_forward`).  grad: note through which values
    gradients flow (`stop_gradient`), so that they can be appended.
    """
    program = Program()
    trace = Trace(program)
    params = dict(model.named_parameters())
    with using(ground=trace, middle=None, grad=False), program.constraints.collect(True), untouched_rng():
        values = read_state(trace, params)
        ids, labels = (Tensor(trace.input(name, Meta(batch_shape, INT64))) for name in ("ids", "labels"))
        n_tokens = Tensor(trace.input("n_tokens", Meta((), current().default_dtype)))
        with traced(params, values), using(grad=grad):
            loss = model.loss(ids, labels, n_tokens)
        trace.build.output("loss", loss.payload)
    if fuse:
        fuse_forward(program)
    return program, trace


def train_program(model: Any, optimizer: Any, state: dict[str, Tensor], batch_shape: tuple[int, int],
                  n_micro: int, fuse: bool = True) -> tuple[Program, Trace]:
    """One optimizer step.

    Inputs: `ids_m` and `labels_m` of each micro-batch m, `n_tokens` and `learning_rate`.  State: `state` by name, the
    parameters and what the optimizer keeps.  Output: `loss`, the sum over the micro-batches.

    The optimizer is the eager one: traced, its handles are rebound to the program's new values, and what a handle of
    the state holds in the end is written.  fuse: as for `loss_program`, before gradients are appended.
    """
    program = Program()
    trace = Trace(program)
    with using(ground=trace, middle=None, grad=False), program.constraints.collect(True), untouched_rng():
        values = read_state(trace, state)
        loss, gradients = write_gradients(trace, model, values, batch_shape, n_micro, fuse)
        write_update(trace, optimizer, dict(model.named_parameters()), state, values, gradients)
        trace.build.output("loss", loss.payload)
    return program, trace


def update_program(optimizer: Any, params: Mapping[str, Tensor], state: Mapping[str, Tensor],
                   gradients: Mapping[str, Any]) -> tuple[Program, Trace]:
    """The update alone: inputs `learning_rate` and the gradients, each named and shaped as `gradients` says.

    params: the parameters by name, gradients: of some of them.  state: as for `train_program`.
    """
    program = Program()
    trace = Trace(program)
    with using(ground=trace, middle=None, grad=False), program.constraints.collect():
        values = read_state(trace, state)
        given = {name: Tensor(trace.input(gradient_name(name), meta)) for name, meta in gradients.items()}
        write_update(trace, optimizer, params, state, values, given)
    return program, trace


def gradient_name(name: str) -> str:
    """The input or output that is the gradient of what is called `name`."""
    return f"{name}@GRAD"           # as Paddle has it


def write_update(trace: Trace, optimizer: Any, params: Mapping[str, Tensor], state: Mapping[str, Tensor],
                 values: Mapping[str, Value], gradients: Mapping[str, Tensor]) -> None:
    """Append the optimizer's step with these gradients.

    The gradients are matched to their parameters here, once, after accumulation: until then that of data-parallel ranks
    is a Partial, and becomes whole only now.
    """
    rate, _ = optimizer.scalars()
    matched = [(params[name], ROWS["match"](g, Tensor(values[name]))) for name, g in gradients.items()]
    with traced({**state, LEARNING_RATE: rate}, {**values, LEARNING_RATE: trace.input(LEARNING_RATE, rate.payload)}):
        optimizer.apply_gradients(matched)
        new = {name: t.payload for name, t in state.items() if t.payload is not values[name]}
    for name, value in new.items():
        trace.build.set_parameter(name, value)


def write_gradients(trace: Trace, model: Any, values: dict[str, Value], batch_shape: tuple[int, int],
                    n_micro: int, fuse: bool = True) -> tuple[Tensor, dict[str, Tensor]]:
    """Append the model's loss on one global batch, and its gradient by parameter name (those that there are), which may
    be Partial.

    values: the program's values of the parameters.  Micro-batch by micro-batch, so that only one is alive at a time.
    """
    params = dict(model.named_parameters())
    part = (batch_shape[0] // n_micro, batch_shape[1])
    n_tokens = Tensor(trace.input("n_tokens", Meta((), current().default_dtype)))
    losses: list[Tensor] = []
    gradients: dict[str, list[Tensor]] = {}
    for m in range(n_micro):
        current().rng.set_micro(m)
        ids, labels = (Tensor(trace.input(f"{n}_{m}", Meta(part, INT64))) for n in ("ids", "labels"))
        with traced(params, values), using(grad=True):
            start = trace.program.global_block().back()
            loss = model.loss(ids, labels, n_tokens)
        if fuse:        # the forward's own values are gone afterwards; of its handles only the loss is used again
            loss.payload, = fuse_forward(trace.program, [loss.payload], after=start)
        wanted = [name for name, p in params.items() if not p.stop_gradient]
        found = append_backward(trace.program, [loss.payload], [values[n] for n in wanted], pin=True, trace=trace)
        losses.append(loss.detach())
        for name, g in zip(wanted, found, strict=True):
            if g is not None:
                gradients.setdefault(name, []).append(Tensor(g))
    return _sum(losses), {n: _sum(gs) for n, gs in gradients.items()}


def _sum(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else ROWS["add_n"](*parts)
