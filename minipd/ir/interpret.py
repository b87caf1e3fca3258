"""What a program means, spelled out: numpy, one operation after the other, and everything checked.

`interpret` is the specification that the executor, passes and compiled kernels are tested against.  It plans nothing
and shares no memory, and it trusts nobody:

* inputs and state are what the program declares, and its assumptions about sizes hold;
* every result has the type that its operation states, at the sizes of this run;
* parts that are read or written (slice, set_value) lie inside of the tensor: numpy would clip in silence;
* a number that stands for a place (gather, embedding, labels) is in range, which the rows' own kernels check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.context import Kernels
from minipd.framework.dim import bind_shape, substitute_all
from minipd.framework.meta import describe
from minipd.framework.row import Row
from minipd.ir.evaluate import decide, evaluate
from minipd.ir.operation import Operation, user_error
from minipd.ir.program import Program
from minipd.ir.schema import result_values
from minipd.ir.types import TensorType
from minipd.ir.value import Value

__all__ = ["interpret"]

Arrays = dict[str, np.ndarray]


def interpret(program: Program, feed: Mapping[str, np.ndarray] | None = None,
              state: Mapping[str, np.ndarray] | None = None) -> tuple[Arrays, Arrays]:
    """Run a program by the book; returns its outputs and the state that it wrote, by name.

    feed: an array for every input.  state: program state by name; it is not changed.
    Raises: ValueError, with the operation and the user's line, for anything that is not as the program states.

    >>> from minipd.framework.row import ROWS
    >>> from minipd.ir.builder import Builder
    >>> program = Program()
    >>> build = Builder(program.global_block())
    >>> x, w = build.data("x", (2,), "float32"), build.parameter("w", (2,), "float32")
    >>> y, = build.call(ROWS["multiply"], (x, w), {})
    >>> _ = build.output("y", y), build.set_parameter("w", y)
    >>> interpret(program, {"x": np.array([1, 2], np.float32)}, {"w": np.array([3, 4], np.float32)})
    ({'y': array([3., 8.], dtype=float32)}, {'w': array([3., 8.], dtype=float32)})
    """
    run = Interpretation(program, feed or {}, state or {})
    evaluate(program, run.call, run.read, run.write, run.control, run.after)
    return run.outputs, run.written


class Interpretation:
    """One run.  sizes: what the symbols are.  outputs, written: what it leaves."""

    def __init__(self, program: Program, feed: Mapping[str, np.ndarray], state: Mapping[str, np.ndarray]):
        if program.form != "minipd":
            raise ValueError(f"interpret: expected a program of minipd's operators, got one in the form of "
                             f"{program.form}; read it with ir.paddle.from_paddle first")
        self.feed, self.state = feed, state
        self.outputs: Arrays = {}
        self.written: Arrays = {}
        self.sizes: dict[str, int] = {}
        self._kernels = Kernels()
        inputs = {op.attributes["name"].value: op for op in program.global_block() if op.name() == "pd_op.data"}
        if inputs.keys() != feed.keys():
            raise ValueError(f"interpret: expected the inputs {', '.join(inputs) or 'none'}, got {', '.join(feed)}")
        for name, op in inputs.items():
            bind_shape(op.result(0).shape, feed[name].shape, self.sizes, f"input {name!r}")
        program.constraints.check(self.sizes)

    def read(self, op: Operation) -> np.ndarray:
        fed = op.name() == "pd_op.data"
        name = op.attributes["name" if fed else "parameter_name"].value
        try:
            array = (self.feed if fed else self.state)[name]
        except KeyError:
            raise KeyError(f"state {name!r}: expected it, got {', '.join(self.state) or 'none'}") from None
        return np.array(array)

    def write(self, op: Operation, array: np.ndarray) -> None:
        if op.name() == "builtin.set_parameter":
            self.written[op.attributes["parameter_name"].value] = np.array(array)
        else:
            self.outputs[op.attributes["output_name"].value] = np.array(array)

    def call(self, row: Row, arrays: list[Any], attrs: dict[str, Any]) -> Any:
        attrs = substitute_all(attrs, self.sizes)
        _check_parts(row, arrays, attrs)
        made = self._kernels.run(row, arrays, attrs)
        return tuple(map(np.asarray, made)) if row.multi else np.asarray(made)

    def control(self, op: Operation, env: dict[Value, Any], walk: Any) -> None:
        decide(op, env, walk)

    def after(self, op: Operation, env: dict[Value, Any]) -> None:
        """Every result of `op` is of the type that it states."""
        for number, value in enumerate(op.results() if op.row is None else result_values(op)):
            type = value.type()
            if value in env and isinstance(type, TensorType):
                wanted = substitute_all(type.shape, self.sizes), dtypes.to_np(type.dtype)
                got = env[value]
                if not isinstance(got, np.ndarray) or (got.shape, got.dtype) != wanted:
                    shown = describe(got) if isinstance(got, np.ndarray) else repr(got)
                    raise ValueError(user_error(op, f"result {number}: expected {type}, at the sizes "
                                                    f"{self.sizes} of this run {list(wanted[0])}, got {shown}"))


def _check_parts(row: Row, arrays: list[Any], attrs: dict[str, Any]) -> None:
    """The parts that a row reads or writes lie inside of its operand."""
    if row.name not in ("slice", "strided_slice", "set_value"):
        return
    strides = attrs.get("strides", (1,) * len(attrs["axes"]))
    for axis, start, end, stride in zip(attrs["axes"], attrs["starts"], attrs["ends"], strides, strict=True):
        n = arrays[0].shape[axis]
        taken = range(start, end, stride)
        if len(taken) and not (0 <= taken[0] < n and 0 <= taken[-1] < n):
            raise ValueError(f"{row.name}: expected a part inside of axis {axis} of {describe(arrays[0])}, got "
                             f"{start}:{end}:{stride}")
