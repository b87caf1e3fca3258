"""The trace interpreter: running code writes a program.

`Trace` stands where kernels stand in eager mode.  A call of a row appends an operation; the `Value` that comes back is
the payload of the Tensor that user code goes on with.  What else may stand among the operands:

* a Python number: a weak scalar, which becomes a `pd_op.full` of the dtype of the tensors beside it;
* an array (or any other payload with shape and dtype): a tensor that was made outside of the trace.  It is
  *captured* as an input bound by identity, never baked in as a constant: a run reads what the array holds then;
* a `Meta`: an operand of which only the shape is read.

Program state (parameters, moments, running statistics) is named by the caller of `trace`: read once by
`builtin.parameter`, written at the end by `builtin.set_parameter`.  Mutation lives in handles, the program is
functional.

Whether a gradient flows is known to handles (`stop_gradient`, `detach`, `no_grad`), and a gradient of the program must
agree with it.  So `around` keeps the flags of values equal to those of handles, and gives a value a second name
(`pd_op.share_data_`, which has no gradient) where one handle on it stops the gradient and another does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.constraints import user_line
from minipd.framework.context import Ground
from minipd.framework.dim import DimExpr
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import ROWS, Row
from minipd.framework.spelling import Spelled, SpelledInt, SpelledTuple
from minipd.framework.tensor import Tensor
from minipd.framework.views import live_views
from minipd.ir.block import Block
from minipd.ir.builder import Builder
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.types import DenseTensorType
from minipd.ir.value import Value, describe
from minipd.ir.whole import Call, written_behind

__all__ = ["Trace"]

KEY = Meta((2,), np.dtype(np.int64))


class Trace(Ground):
    """Appends to `program`; with `block`, to the end of one of its blocks.

    captures: the names of inputs -> the outside payloads they are bound to.  holders: the same names -> the tensors
    that held these payloads, where calls were given tensors: what they hold when the program runs is what it should
    read.
    draws: the names of inputs that are keys of random draws -> the path of the layer that draws; every run of the
    program draws them anew, in this order.  micros: the same names -> the micro-batch in which the draw was traced.
    tells: whether a traced tensor has a text (see `ir.text`).
    """

    tells = True

    def __init__(self, program: Program, block: Block | None = None):
        self.program = program
        self.build = Builder(program.global_block() if block is None else block)
        self.captures: dict[str, Any] = {}
        self.holders: dict[str, Tensor] = {}
        self.draws: dict[str, str] = {}
        self.micros: dict[str, int] = {}
        self._captured: dict[int, Value] = {}       # id of a captured payload (kept alive by `captures`) -> its value
        self._seen: dict[int, Tensor] = {}          # id of an outside payload -> the tensor that came with it
        self._entry: Operation | None = None        # inputs stand together at the start; the last one so far
        self.input_names = {op.attributes["name"].value for op in program.global_block() if op.name() == "pd_op.data"}
        self.scopes: list[Scope] = []
        self.layers = CalledLayers()
        self.draws_inside = False                   # whether a region has drawn random numbers
        self._inside_whole = False

    # ---------------------------------------------------------------------------------- the interpreter protocol
    def run(self, row: Row, payloads: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """Append a call of `row`; returns its result, or the tuple of its results."""
        values = [self.value(p, payloads, row) for p in payloads]
        where, path = self.where()
        extra: dict[str, Any] = {"op_callstack": (where,)}
        if path:
            extra["struct_name"] = f"/{path.replace('.', '/')}/"
        written = [(name, v.given) for name, v in attrs.items() if isinstance(v, Spelled)]
        if written:
            attrs = {name: tuple(v) if isinstance(v, SpelledTuple) else int(v) if isinstance(v, SpelledInt) else v
                     for name, v in attrs.items()}
        if self.layers.path:
            written.append(("struct_name", self.layers.path))
        if written:
            extra["as_written"] = tuple(written)
        results = self.build.call(row, values, attrs, extra)
        return results if row.multi else results[0]

    def whole(self, function: Callable, args: tuple, named: dict[str, Any]) -> Any:
        """Make a call of a function that is one operator of Paddle's, and note what it wrote."""
        if self._inside_whole:
            return function(*args, **named)
        build, block, before = self.build, self.build.block, self.build.block.back()
        call = Call(function, args, named)
        self._inside_whole = True
        try:
            out = function(*args, **named)
        finally:
            self._inside_whole = False
        if self.build is build and build.block is block:            # no segment has ended meanwhile
            call.note(out, written_behind(block, before), self._known, self._is_key)
        return out

    def _known(self, payload: Any) -> Value | None:
        """The value that stands for a payload, if there is one."""
        return payload if isinstance(payload, Value) else self._captured.get(id(payload))

    def _is_key(self, op: Operation) -> bool:
        return op.name() == "pd_op.draw_key" or op.name() == "pd_op.data" and op.attributes["name"].value in self.draws

    def where(self) -> tuple[str, str]:
        """The user's line, and the path of the layer, to which a call belongs."""
        return user_line(), current().rng.path

    def key(self, rng: Any) -> Value:
        """The key of a random draw: an input that every run draws anew.

        In a region it is drawn when the region runs, as often as it does.  The draws behind it come later in the run
        too, so that they are counted as eager mode counts them.
        """
        self.draws_inside = self.draws_inside or bool(self.scopes)
        if self.draws_inside:
            return self.run(ROWS["draw_key"], (), {"path": rng.path})
        name = self._new_name("key")
        self.draws[name], _ = rng.next_name()
        self.micros[name] = rng.micro
        return self.input(name, KEY)

    def around(self, handler: Callable) -> Callable:
        """The outermost handler of the context, with the flags of values kept equal to those of handles."""
        def traced(row: Row, inputs: Any, attrs: dict) -> Any:
            flows = False
            for x in inputs:
                if isinstance(x, Tensor) and isinstance(x.payload, Value):
                    self.meet(x)
                    flows = flows or not x.stop_gradient
                elif isinstance(x, Tensor):
                    self._seen[id(x.payload)] = x
            if flows and not row.view and current().grad_enabled:
                inputs = [x if i in row.shape_only else self.stopped(x) for i, x in enumerate(inputs)]
            out = handler(row, inputs, attrs)
            for o in out if row.multi else (out,):
                if isinstance(o.payload, Value) and o.payload.stop_gradient != o.stop_gradient:
                    o.payload.stop_gradient = o.stop_gradient
            return out
        return traced

    def meet(self, x: Tensor) -> None:
        """A handle enters a call: note that it wants a gradient, and that a region reads it."""
        if not x.stop_gradient and x.payload.stop_gradient:
            x.payload.stop_gradient = False
        if self.scopes:
            self.scopes[-1].read(x)

    def rebinding(self, x: Tensor) -> None:
        """A handle from around the regions that are being written will hold another value."""
        for scope in self.scopes:
            scope.note_write(x)

    def stopped(self, x: Any) -> Any:
        """The operand x of a call through which a gradient flows; if x stops it though its value does not, a handle on
        a second name of the value."""
        if isinstance(x, Tensor) and x.stop_gradient and isinstance(x.payload, Value) and not x.payload.stop_gradient:
            second, = self.build.call(ROWS["share_data_"], (x.payload,), {})
            return Tensor(second)
        return x

    # ------------------------------------------------------------------------------------- payloads as values
    def value(self, payload: Any, beside: Sequence[Any] = (), row: Row | None = None) -> Value:
        """The value of any payload; `beside`: the operands with which it stands, which give a scalar its dtype.

        Raises: ValueError for a value that cannot be seen from here, TypeError for what is no payload.
        """
        if isinstance(payload, Value):
            self._check_visible(payload, row)
            return payload
        if isinstance(payload, (bool, int, float, complex, np.generic, DimExpr)):
            number = payload.item() if isinstance(payload, np.generic) else payload
            return self.build.full((), number, scalar_dtype(payload, beside))
        if isinstance(payload, Meta):
            shape, dtype = tuple(payload.shape), payload.dtype
            found, = self.build.call(ROWS["shape_only"], (), {"shape": shape, "dtype": dtype})
            return found
        if hasattr(payload, "shape") and hasattr(payload, "dtype"):
            return self._capture(payload)
        raise TypeError(f"{'operand' if row is None else row.name}: expected a tensor or a number in a program, got "
                        f"{type(payload).__name__} {payload!r}")

    def _capture(self, payload: Any) -> Value:
        """The input that stands for a payload from outside of the trace: one per payload, by identity.

        The name of a new input is `captured_0`, `captured_1`, ...; `captures` binds it to the payload, and `holders` to
        the tensor that came with the payload, if that tensor still holds it.
        """
        found = self._captured.get(id(payload))
        if found is None:
            name = self._new_name("captured")
            self.captures[name] = payload
            holder = self._seen.get(id(payload))
            if holder is not None and holder.payload is payload:
                self.holders[name] = holder
            found = self._captured[id(payload)] = self.input(name, payload)
        return found

    def _check_visible(self, value: Value, row: Row | None) -> None:
        """A value of a region is not seen outside; handles that were written in place inside still hold one."""
        block: Block | None = self.build.block
        target = value.parent_block()
        while block is not None and block is not target:
            block = block.parent_block
        if block is None:
            raise ValueError(
                f"{'use' if row is None else row.name}: expected a value that is seen from here, got "
                f"{describe(value)}, which belongs to another program or to a branch that is finished. A tensor "
                "that a branch of cond writes in place must be returned by the branch, and the result used instead")

    def _new_name(self, prefix: str) -> str:
        """A name that no input has yet."""
        n = 0
        while f"{prefix}_{n}" in self.input_names:
            n += 1
        return f"{prefix}_{n}"

    # ---------------------------------------------------------------------------------------- inputs and outputs
    def input(self, name: str, meta: Any, stop_gradient: bool = True) -> Value:
        """A new input of the program, in front of everything that computes."""
        self.input_names.add(name)
        return self._at_entry(lambda build: build.data(name, meta.shape, meta.dtype, stop_gradient))

    def parameter(self, name: str, meta: Any, trainable: bool = False) -> Value:
        """A read of program state."""
        return self._at_entry(lambda build: build.parameter(name, meta.shape, meta.dtype, trainable))

    def read(self, op: Operation, shape: tuple) -> Value:
        """The same input or parameter as `op` of another program, of another shape (a shard's)."""
        type = DenseTensorType(shape, op.result(0).dtype)
        if op.name() == "pd_op.data":
            self.input_names.add(op.attributes["name"].value)

        def copy(build: Builder) -> Value:
            attributes = {**op.attributes, **({"shape": type.shape} if op.name() == "pd_op.data" else {})}
            return build.build(op.name(), (), attributes, [type]).result(0)
        return self._at_entry(copy)

    def write(self, op: Operation, payload: Any) -> None:
        """The same output or write of state as `op` of another program, of this program's value."""
        self.build.build(op.name(), [self.value(payload)], dict(op.attributes))

    def _at_entry(self, insert: Callable[[Builder], Value]) -> Value:
        block = self.program.global_block()
        build = Builder(block, block.front() if self._entry is None else self._entry.next)
        value = insert(build)
        self._entry = value.get_defining_op()
        return value

    def forget(self, op: Operation) -> None:
        """Erase an input or a read of state that nothing uses."""
        if op is self._entry:
            self._entry = op.prev
        op.erase()

    def by_tape(self) -> bool:
        """Raises: NotImplementedError in a region, whose gradient is made of the rules of its operators."""
        if self.scopes:
            raise NotImplementedError(
                f"a hook or a PyLayer at {user_line()}: expected it outside of the branches and loops that tensors "
                "decide, got it in one, whose gradient comes from the rules of operators and would not call it; let "
                "Python decide (a bool, a number, a `for` over a range), or put it around the whole")
        return False

    # ------------------------------------------------------------------------------------------------- regions
    @contextmanager
    def inside(self, block: Block) -> Iterator[Scope]:
        """Append to `block`, a region of an operation that is in its place, and note what the region reads."""
        before = self.build.block, self.build.before
        scope = Scope(block)
        self.build.set_insertion_point_to_block_end(block)
        self.scopes.append(scope)
        try:
            yield scope
        finally:
            self.scopes.pop()
            self.build.block, self.build.before = before
            for handle in scope.handles.values():
                if self.scopes:
                    self.scopes[-1].read(handle)


#: what a write in place changes of a handle
WRITTEN = ("payload", "node", "index", "stop_gradient")


class CalledLayers:
    """Paddle's name for where an operation belongs: the classes of the layers that are being called, `/Net/Linear_1/`.

    The number tells calls of one class apart that were made by one call of the layer around them; the first has none.
    """

    def __init__(self) -> None:
        self.path = ""
        self._around: list[tuple[str, dict[str, int]]] = []     # the path outside of each call, and what it has called

    def enter(self, name: str) -> None:
        n = 0
        if self._around:
            counts = self._around[-1][1]
            n = counts[name] = counts.get(name, -1) + 1
        self._around.append((self.path, {}))
        self.path = f"{self.path or '/'}{name}{f'_{n}' if n else ''}/"

    def leave(self) -> None:
        self.path, _ = self._around.pop()


class Scope:
    """What a region reads from around it: value -> a handle on it, as it was when it was first read.

    held: id -> a tensor from around that is written in the region, and what it was before, to be put back.
    """

    def __init__(self, block: Block):
        self.block = block
        self.handles: dict[Value, Tensor] = {}
        self.held: dict[int, tuple[Tensor, dict[str, Any]]] = {}

    def note_write(self, x: Tensor) -> None:
        """`x`, and its views, will be written."""
        if id(x) in self.held or isinstance(x.payload, Value) and self.defines(x.payload):
            return
        self.held[id(x)] = x, {name: getattr(x, name) for name in WRITTEN}
        for view in live_views(x):
            self.note_write(view)

    def take_back(self) -> dict[int, tuple[Tensor, Tensor]]:
        """Let what has been written in the region be as it was around it; returns id -> (the tensor, a handle on what
        it held at the end)."""
        found = {}
        for key, (x, before) in self.held.items():
            now = Tensor(x.payload)
            now.node, now.index, now.stop_gradient = x.node, x.index, x.stop_gradient
            found[key] = x, now
            for name, value in before.items():
                setattr(x, name, value)
        self.held.clear()
        return found

    def read(self, x: Tensor) -> None:
        if x.payload in self.handles or self.defines(x.payload):
            return
        seen = Tensor(x.payload)            # x itself may be rebound later
        seen.stop_gradient = x.stop_gradient
        if not x.stop_gradient:
            from minipd.autograd.tape import node_of
            seen.node, seen.index = node_of(x), x.index
        self.handles[x.payload] = seen

    def defines(self, value: Value) -> bool:
        """Whether a value comes into being inside of the region."""
        block = value.parent_block()
        while block is not None and block is not self.block:
            block = block.parent_block
        return block is not None


def scalar_dtype(number: Any, beside: Sequence[Any]) -> np.dtype:
    """The dtype of a weak scalar: that of the tensors beside it (a mask is not one of them), else its own.

    >>> scalar_dtype(0.0, [Meta((2,), np.dtype("bool")), Meta((2,), np.dtype("float64")), 0.0])
    dtype('float64')
    """
    if isinstance(number, (bool, np.bool_)):
        return dtypes.bool.np
    for x in beside:
        if hasattr(x, "dtype") and not isinstance(x, np.generic) and x.dtype != np.bool_:
            return x.dtype
    if isinstance(number, (complex, np.complexfloating)):
        return dtypes.complex_of(current().default_dtype)
    return current().default_dtype if isinstance(number, (float, np.floating)) else dtypes.int64.np


def handle(value: Value) -> Tensor:
    """A Tensor on a value, with its `stop_gradient`."""
    x = Tensor(value)
    x.stop_gradient = value.stop_gradient
    return x
