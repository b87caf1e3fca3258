"""The calls of a segment as a program, and as eager calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework.context import using
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.jit.paths import Step, value_of
from minipd.jit.runnable import Runnable
from minipd.jit.stages import Options

__all__: list[str] = []


class _Writing(Trace):
    """A trace that writes the calls of a path, each with the line where it was first made."""

    step: Step

    def where(self) -> tuple[str, str]:
        return self.step.line, self.step.scope


def compiled(name: str, last: Step, wanted: Sequence[int], options: Options) -> Runnable:
    """The program of the calls up to a step, of which these results are wanted."""
    tracer = _Writing(Program())
    context, path = current(), last.path()
    values: list[Any] = []              # by slot
    given: list[Any] = []               # by number
    with using(ground=tracer, middle=None, amp=None, saved_hooks=None, grad=True):
        for step in path:
            inputs = [_operand(o, tracer, values, given) for o in step.operands]
            tracer.step = step
            context.set_grad_enabled(step.grad)
            outs = context.handler(step.row, inputs, step.attrs)
            values += [o.payload for o in outs] if step.row.multi else [outs.payload]
        for slot in wanted:
            tracer.build.output(f"output_{slot}", values[slot])
    return Runnable(name, tracer.program, [f"input_{i}" for i in range(len(given))],
                    [f"output_{slot}" for slot in wanted], options, any(any(step.flows) for step in path))


def _operand(o: Any, tracer: Trace, values: list, given: list) -> Any:
    """A tensor on the value that an operand of a step stands for; numbers and metas are themselves."""
    if type(o) is int:
        if o < 0:
            value, stop = given[-1 - o]
        else:
            value, stop = values[o // 2], bool(o % 2)
    elif type(o) is tuple and len(o) == 4:
        n, stop, shape, dtype = o
        value = tracer.input(f"input_{n}", Meta(shape, dtype), stop)
        given.append((value, stop))
    elif type(o) is tuple:
        return value_of(o)
    else:
        return o
    x = Tensor(value)
    x.stop_gradient = stop
    return x


def handle(o: Any, values: list[Tensor], given: list[Tensor]) -> Any:
    """The eager operand that an operand of a step stands for."""
    if type(o) is int:
        if o < 0:
            return given[-1 - o]
        x = values[o // 2]
        return x.detach() if o % 2 and not x.stop_gradient else x
    if type(o) is tuple:
        return given[o[0]] if len(o) == 4 else value_of(o)
    return o
