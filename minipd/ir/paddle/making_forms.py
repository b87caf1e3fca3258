"""Forms of operators whose result has a size that they are told."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import is_symbolic
from minipd.ir.operation import Operation
from minipd.ir.paddle.form import loads
from minipd.ir.paddle.load import Loader
from minipd.ops.repeating import repeat_interleave

__all__: list[str] = []


@loads("full_with_tensor")
def load_full_with_tensor(at: Loader, op: Operation) -> Any:
    """A number, which may be one that the program computes, in a shape that it may compute too."""
    a = at.attrs(op)
    (value,) = at.inputs(op)
    number = at.row("reshape", at.row("cast", value, dtype=a["dtype"]), shape=())
    return at.row("expand", number, shape=tuple(a["shape"]))


@loads("repeat_interleave")
def load_repeat_interleave(at: Loader, op: Operation) -> Any:
    """Paddle says -1 for a size that it is not told."""
    a, (x,) = at.attrs(op), at.inputs(op)
    if is_symbolic(x.shape[a["axis"]]):
        raise at.refuse()
    size = None if a["output_size"] == -1 else a["output_size"]
    return at.call(repeat_interleave, x, a["repeats"], a["axis"], output_size=size)
