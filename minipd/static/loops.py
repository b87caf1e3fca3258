"""`while_loop`: a loop whose end the program decides.

Eagerly a loop is Python's own.  While tracing, `cond` runs before the loop, then `body` and `cond` once more inside of
the region of a `pd_op.while`, on arguments that stand for what any iteration is given:

    (%4, %5) = "pd_op.while" (cond=%3, inputs=%0, %1) {
    ^%arg_0 {stop_gradient:true}, %arg_1 {stop_gradient:false}
        (%6) = "pd_op.scale" (%arg_0, ...) ...
        (%7) = "pd_op.less_than" (%6, %2) ...
        () = "cf.yield" (%7, %6, %8) ...
    }

What an iteration leaves must be what the next one can take.  Two things about that are known only when the body has
been traced, and then it is traced again with them: that a gradient flows into a variable that starts without one, and
the dtype of a variable that starts as a Python number.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.autograd.tape import record_call
from minipd.framework import dtype as dtypes
from minipd.framework.constraints import user_line
from minipd.framework.meta import describe
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.framework.views import rebind
from minipd.ir.attributes import ArrayAttribute
from minipd.ir.structure import Structure, flatten
from minipd.ir.trace import Trace, handle
from minipd.ir.value import BlockArgument, Value
from minipd.static.control_flow import NUMBERS, Recorded, as_tensors, check_condition, record, value_of

__all__ = ["while_loop", "write_loop"]


WRITE = "an in-place write in a loop"


def while_loop(cond: Callable, body: Callable, loop_vars: Sequence, is_test: bool = False,
               name: str | None = None) -> list:
    """Paddle's `paddle.static.nn.while_loop`: as long as `cond(*vars)` is true, `vars = body(*vars)`; returns the last.

    cond: gives a bool tensor of one element.  body: takes as many arguments as there are `loop_vars` and returns as
    many results.  loop_vars: nested lists, tuples or dicts of tensors and numbers; numbers become tensors.
    is_test: accepted as in Paddle, without effect.

    Raises: ValueError for no variables or another number of them; while tracing, TypeError where the body changes the
    structure, shape or dtype of a variable.

    >>> from minipd.ops.creation import to_tensor
    >>> i, s = while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s * 2.0), [0, to_tensor(1.0)])
    >>> i.item(), s.item()
    (4, 16.0)
    """
    for role, fn in (("cond", cond), ("body", body)):
        if not callable(fn):
            raise TypeError(f"while_loop: expected {role} to be a function of the loop variables, got {fn!r}")
    if not isinstance(loop_vars, (list, tuple)):
        raise TypeError(f"while_loop: expected loop_vars to be a list or a tuple, got {type(loop_vars).__name__}")
    if not loop_vars:
        raise ValueError("while_loop: expected at least one loop variable, got none; without one nothing can end it")
    ground = current().ground
    if isinstance(ground, Trace):
        names = names_of(body, len(loop_vars))
        try:
            return write_loop(ground, cond, body, list(loop_vars), names)
        except Writes as found:
            return _write_writing(ground, cond, body, list(loop_vars), names, found.tensors)
    values = as_tensors(list(loop_vars))
    while bool(cond(*values)):
        values = as_tensors(_results(body(*values), len(values)))
    return values


def _results(out: Any, number: int) -> list:
    """What the body returned, as a list."""
    found = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(found) != number:
        raise ValueError(f"while_loop: expected the body to return as many values as there are loop variables, "
                         f"{number}, got {len(found)}; return those that do not change too")
    return found


def write_loop(trace: Trace, cond: Callable, body: Callable, start: list, names: Sequence[str]) -> list:
    """Write the `pd_op.while`; returns the variables after it.  names: what errors call the variables."""
    return _Loop(trace, cond, body, start, names).write()


def _write_writing(trace: Trace, cond: Callable, body: Callable, start: list, names: Sequence[str],
                   written: dict[int, Tensor]) -> list:
    """A loop that writes tensors around it in place (`x[i] = v`, the statistics of a BatchNorm).

    What they hold goes from iteration to iteration too; and so does the condition, which may read them.
    """
    first = cond(*as_tensors(start))

    def iteration(_: Tensor, *values: Any) -> list:
        for x, now in zip(written.values(), values[len(names):], strict=True):
            rebind(x, now, WRITE)
        leaves, structure = flatten(as_tensors(_results(body(*values[:len(names)]), len(names))))
        going = cond(*structure.rebuild(leaves))
        results = structure.rebuild(list(map(_another, leaves)))        # they may be tensors from around themselves
        found = trace.scopes[-1].take_back()
        if not found.keys() <= written.keys():
            raise Writes({key: x for key, (x, _) in found.items()})
        return [going, *results, *(found[key][1] if key in found else _another(x) for key, x in written.items())]

    while True:
        try:
            every = [first, *start, *map(_another, written.values())]
            labels = ["of the condition", *names, *(x.name for x in written.values())]
            _, *values = write_loop(trace, lambda going, *_: going, iteration, every, labels)
            break
        except Writes as more:
            written = written | more.tensors
    for x, now in zip(written.values(), values[len(names):], strict=True):
        if x.view_of is None or id(x.view_of[0]) not in written:            # views follow their base
            rebind(x, now, WRITE)
    return values[:len(names)]


def _another(x: Tensor) -> Tensor:
    """Another handle on what a tensor holds now."""
    found = Tensor(x.payload)
    found.node, found.index, found.stop_gradient = x.node, x.index, x.stop_gradient
    return found


class Writes(Exception):
    """The body writes tensors around the loop in place: `tensors`, by id."""

    def __init__(self, tensors: dict[int, Tensor]):
        super().__init__("a loop that writes tensors around it")
        self.tensors = tensors


class _Again(Exception):
    """The body has to be traced once more."""


class _Loop:
    """A loop that is being traced.

    start: the tensors it starts with, flat.  structure: of the variables.  labels: what errors call them.
    numbers: which of them were given as Python numbers.  open: into which of them a gradient flows.  casts: those that
    are to start with another dtype, and with which.
    """

    def __init__(self, trace: Trace, cond: Callable, body: Callable, start: list, names: Sequence[str]):
        self.trace, self.cond, self.body, self.names = trace, cond, body, names
        self.start, self.structure = flatten(as_tensors(start))
        places = _places(start, names)
        self.labels = [label for label, _ in places]
        self.numbers = [not isinstance(x, Tensor) for _, x in places]
        self.open = [self._flows(x) for x in self.start]
        self.casts: dict[int, dtypes.DataType] = {}

    def write(self) -> list:
        while True:             # both reasons to trace again only ever add something
            drawn = current().rng.get_state()
            try:
                return self._write()
            except Writes:
                current().rng.set_state(drawn)
                raise
            except _Again:
                current().rng.set_state(drawn)
                for i, dtype in self.casts.items():
                    self.start[i] = self.start[i].astype(dtype)
                self.casts.clear()

    def _write(self) -> list:
        trace = self.trace
        first = self._condition(self.structure.rebuild(self.start))
        inputs = [value_of(trace, x) for x in self.start]
        extra = {"op_callstack": (user_line(),)}
        op = trace.build.build("pd_op.while", [value_of(trace, first), *inputs], extra, num_regions=1)
        block = op.regions[0].add_block()
        try:
            with trace.inside(block) as scope:
                given = [self._given(block.add_arg(v.type()), flows)
                         for v, flows in zip(inputs, self.open, strict=True)]
                values = as_tensors(_results(self.body(*self.structure.rebuild(given)), len(self.names)))
                leaves, structure = flatten(values)
                self._check_alike(inputs, leaves, structure)
                again = value_of(trace, self._condition(values))
                trace.build.build("cf.yield", [again, *(value_of(trace, x) for x in leaves)])
                if written := scope.take_back():
                    raise Writes({key: x for key, (x, _) in written.items()})
        except (_Again, Writes):
            scope.take_back()
            op.erase()
            raise
        outs = []
        for value, flows in zip(inputs, self.open, strict=True):
            result = op.add_result(value.type())
            result.stop_gradient = not flows
            outs.append(handle(result))
        record(trace, op, self.start, scope.handles, outs)
        return self.structure.rebuild(outs)

    def _given(self, arg: BlockArgument, flows: bool) -> Tensor:
        """What an iteration starts with.  It was computed: it is no leaf, and may be written in place."""
        arg.stop_gradient = not flows
        x = handle(arg)
        if flows:
            record_call(Recorded("an iteration"), [], [x], lambda gradients: [])
        return x

    def _condition(self, values: list) -> Tensor:
        pred = self.cond(*values)
        if not isinstance(pred, Tensor):
            raise TypeError(f"while_loop: expected cond to return a bool tensor, got {pred!r}; compare a loop variable "
                            "with something, or write a loop that Python decides as Python's own `while`")
        check_condition("while_loop", pred)
        return pred

    def _flows(self, x: Tensor) -> bool:
        return not x.stop_gradient and x.payload.dtype in dtypes.INEXACT and current().grad_enabled

    # -------------------------------------------------------------------------------- from iteration to iteration
    def _check_alike(self, inputs: list[Value], leaves: list[Tensor], structure: Structure) -> None:
        """An iteration leaves what the next can take.

        Raises: TypeError if not; _Again if it could, starting otherwise.
        """
        if structure != self.structure:
            raise TypeError(f"while_loop: expected the body to return the loop variables in their structure, "
                            f"{self._spelled(self.structure)}, got {self._spelled(structure)}; a variable cannot "
                            "become something else from one iteration to the next")
        changed = False
        for i, (before, after) in enumerate(zip(inputs, leaves, strict=True)):
            same = (tuple(after.payload.shape), after.payload.dtype) == (before.shape, before.dtype)
            if not same:
                self._restart(i, before, after)
                changed = True
            elif not self.open[i] and self._flows(after):
                self.open[i] = changed = True
        if changed:
            raise _Again

    def _restart(self, i: int, before: Value, after: Tensor) -> None:
        """A number that starts as an int may go on as a float; what else changes its type is refused."""
        shape, dtype = tuple(after.payload.shape), after.payload.dtype
        if self.numbers[i] and shape == () and np.can_cast(before.dtype, dtype, "same_kind"):
            self.casts[i] = dtypes.of(dtype)
            return
        what = "shape" if shape != before.shape else "dtype"
        start = "a Python number" if self.numbers[i] else "a tensor"
        advice = ("start with a tensor of the shape it will have (paddle.zeros)" if what == "shape" and self.numbers[i]
                  else "keep its shape (a sum, a fixed buffer that is written by index), or unroll the loop with a "
                       "Python `for`" if what == "shape" else "cast it before the loop or in the body")
        raise TypeError(
            f"while_loop: expected loop variable {self.labels[i]} to keep its type, got {describe(before)} before the "
            f"loop ({start}{_where(before)}) and {describe(after.payload)} after an iteration{_where(after.payload)}: "
            f"its {what} changes. What a loop carries has one type; {advice}")

    def _spelled(self, structure: Structure) -> str:
        return ", ".join(f"{n} = {x!r}" for n, x in zip(self.names, structure.tree, strict=True))


def _where(payload: Any) -> str:
    """`, made at file:line`, where that is known."""
    op = payload.get_defining_op() if isinstance(payload, Value) else None
    lines = None if op is None else op.attributes.get("op_callstack")
    return f", made at {lines.value[0]}" if isinstance(lines, ArrayAttribute) and lines.items else ""


def _places(trees: Sequence, names: Sequence[str]) -> list[tuple[str, Any]]:
    """The tensors and numbers in the variables, in order, each with what to call it: `h`, `state['c'][0]`."""
    found: list[tuple[str, Any]] = []

    def visit(node: Any, label: str) -> None:
        if isinstance(node, (list, tuple)):
            for i, x in enumerate(node):
                visit(x, f"{label}[{i}]")
        elif isinstance(node, dict):
            for k, x in node.items():
                visit(x, f"{label}[{k!r}]")
        elif isinstance(node, (Tensor, *NUMBERS)):
            found.append((label, node))
    for tree, name in zip(trees, names, strict=True):
        visit(tree, name)
    return found


def names_of(body: Callable, number: int) -> list[str]:
    """The names of the body's parameters, which are those of the loop variables; numbers where they do not say."""
    try:
        found = [p.name for p in inspect.signature(body).parameters.values()
                 if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        found = []
    return found[:number] + [str(i) for i in range(len(found[:number]), number)]
