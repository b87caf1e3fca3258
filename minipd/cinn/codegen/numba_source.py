"""A loop-IR function as the source text of a numba kernel.

    def rms_norm(task, tasks, x, w, y):
        # square, mean, rsqrt, multiply
        x_dim0 = x.shape[0]
        for i in range(x_dim0 * task // tasks, x_dim0 * (task + 1) // tasks):
            ...

A call does one of the `tasks` into which an outermost parallel loop is cut; threads call it at once.  A function with
several phases (see `phases`) takes the number of one first, and scratch arrays after its own.  The text is the same for
the same function, always; kernels on disk are found by it.

What the text takes care of, because it decides whether LLVM vectorizes a loop, or whether the numbers are right:

* numba makes int64 of int32 + int32, and wraps negative indices around: every int operation is cast to its own dtype,
  computed indices are made unsigned, and loops run from 0 (a flat parallel loop over slices of its arrays).
* A division in an inner loop by a scalar from outside is a product with its reciprocal; an infinity that a condition
  puts in the place of a number is hidden in loops that look for the largest one.
* Selections and extrema are single instructions, exp, log, tanh, erf, sin, cos of float32 polynomials (`scalar`,
  `math`).
* Rows of results larger than the cache go around it (`streaming`).
* 0-D arrays come as [1] arrays: numba indexes them by no empty tuple.
* float16 and bfloat16 arrays are uint16 arrays of their bits; scalars of these dtypes are float32 that they can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from minipd.cinn.codegen.expressions import COUNTER, NEGATION, Expressions, constant, python_name, storage_name
from minipd.cinn.codegen.phases import Phase, phases_of
from minipd.cinn.codegen.streaming import STREAMED_FROM, StreamedRow, streamed_rows
from minipd.cinn.ir.ast import (
    Accumulate,
    Alloc,
    Binary,
    Const,
    Dim,
    Expr,
    For,
    Function,
    IfThenElse,
    Init,
    Let,
    Load,
    Param,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
)
from minipd.cinn.ir.walk import expressions, names, statements, stmts_of, walk

__all__ = ["numba_source"]

#: how floats are folded in an order that is left open, which lets LLVM do it in vectors
FOLDED = {"add": "scalar.plus", "mul": "scalar.times"}


def numba_source(function: Function) -> str:
    """The module that defines `function` as a kernel of the same name (made a Python name, if it is none).

    >>> from minipd.cinn.ir.ast import Param
    >>> i, f32 = Var("i"), np.dtype("float32")
    >>> body = Store("y", (i,), Binary("mul", Load("x", (i,), f32), Const(2.0, f32), f32))
    >>> double = Function("double", (Param("x", f32, 1), Param("y", f32, 1, output=True)),
    ...                   For("i", Dim("x", 0), body, "parallel"), ("scale",))
    >>> print(numba_source(double))
    import math as libm
    <BLANKLINE>
    import numpy as np
    <BLANKLINE>
    from minipd.cinn.codegen import math, scalar
    <BLANKLINE>
    <BLANKLINE>
    def double(task, tasks, x, y):
        # scale
        x_dim0 = x.shape[0]
        start, stop = x_dim0 * task // tasks, x_dim0 * (task + 1) // tasks
        x_part = x[start:stop]
        y_part = y[start:stop]
        for i in range(stop - start):
            y_part[i] = x_part[i] * np.float32(2.0)
    <BLANKLINE>
    """
    return _Writer(function).module()


class _Writer(Expressions):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function
        self.lines: list[str] = []
        self.depth = 0
        self.allocated: set[int] = set()
        self.streamed = streamed_rows(function)

    # ------------------------------------------------------------------------------------------------- the frame
    def module(self) -> str:
        f, cut = self.function, phases_of(self.function)
        several = len(cut.phases) > 1
        arrays = [self.declare(param.name, ("array", param.name)) for param in f.params]
        arrays += [self.declare(alloc.buffer, ("array", alloc.dtype, len(alloc.shape))) for alloc in cut.scratch]
        taken = ", ".join([*(["phase"] if several else []), "task", "tasks", *arrays])
        head = ["import math as libm", "", "import numpy as np", "",
                "from minipd.cinn.codegen import math, scalar", "", "",
                f"def {python_name(f.name)}({taken}):"]
        with self.indented():
            for line in _wrapped(f.comment):
                self.write(f"# {line}")
            about = len(self.lines)
            for dim in _dims(f):
                self.write(f"{self.dim(dim)} = {self.scope[dim.param]}.shape[{dim.axis}]")
            for let in cut.before:
                self.statement(let)
            for number, phase in enumerate(cut.phases):
                if several:
                    self.write(f"{'elif' if number else 'if'} phase == {number}:")
                    with self.indented():
                        self.phase(phase, cut.kept)
                else:
                    self.phase(phase, cut.kept)
            if len(self.lines) == about:        # (arrays without elements)
                self.write("pass")
        return "\n".join([*head, *self.lines, ""])

    def phase(self, phase: Phase, kept: dict[Var, str]) -> None:
        for v in phase.takes:
            cell = self.scope[kept[v]]
            self.write(f"{self.declare(v.name, ('scalar', v.dtype))} = {cell}[0]")
        for s in phase.stmts:
            if phase.parallel:
                assert isinstance(s, For)
                self.parallel(s)
            else:
                self.statement(s)
        for v in phase.leaves:
            self.write(f"{self.scope[kept[v]]}[0] = {self.scope[v.name]}")

    def write(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def indented(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1

    # ------------------------------------------------------------------------------------------------ statements
    def statement(self, s: Stmt) -> None:
        match s:
            case Seq(stmts=stmts):
                before = dict(self.scope)
                for x in stmts:
                    self.statement(x)
                self.scope = before
            case For():
                self.loop(s, f"range({self.expression(s.extent)})")
            case Let(name=name, value=value) | Init(name=name, value=value):
                text = self.expression(value)
                self.write(f"{self.declare(name, ('scalar', value.dtype))} = {text}")
            case Accumulate(name=name, op=op, value=value):
                if (grown := FOLDED.get(op)) and value.dtype.kind == "f":
                    self.write(f"{self.scope[name]} = {grown}({self.scope[name]}, {self.expression(value)})")
                else:
                    self.write(f"{self.scope[name]} = {self.combine(op, Var(name, value.dtype), value)[0]}")
            case Alloc():
                if id(s) not in self.allocated:
                    self.allocate(s)
            case Store(buffer=buffer, index=index, value=value):
                self.write(f"{self.element(buffer, index)} = {self.stored(value)}")
            case IfThenElse(cond=cond, then=then, orelse=orelse):
                self.branch(f"if {self.expression(cond)}:", then)
                if orelse is not None:
                    self.branch("else:", orelse)
            case _:
                raise TypeError(f"numba kernels have no {type(s).__name__}: finalize the function first")

    def branch(self, head: str, s: Stmt) -> None:
        """One arm of a condition."""
        before = dict(self.scope)
        self.write(head)
        with self.indented():
            length = len(self.lines)
            self.statement(s)
            if len(self.lines) == length:
                self.write("pass")
        self.scope = before

    def loop(self, s: For, iterable: str) -> None:
        before = dict(self.scope)
        locals_ = {row: self.local_row(row.param) for row in self.streamed.get(id(s), ())}
        with self.prepared(s):
            variable = self.declare(s.var, ("scalar", np.dtype(np.int64)))
            self.write(f"for {variable} in {iterable}:")
            self.body(s, locals_)
        self.scope = before

    @contextmanager
    def prepared(self, s: For) -> Iterator[None]:
        """Have before an innermost loop the reciprocals of what it divides by, and does not change, and the infinities
        that take no part in its maxima and minima."""
        if not any(isinstance(x, For) for x in statements(s.body)):
            for divisor in dict.fromkeys(_divisors(s)):
                text = f"{constant(1, divisor.dtype)} / {self.expression(divisor)}"
                name = self.declare(f"per_{self.scope[divisor.name]}", ("scalar", divisor.dtype))
                self.write(f"{name} = {text}")
                self.reciprocals[divisor] = name
            for const in dict.fromkeys(_neutral(s)):
                text = f"scalar.hidden({constant(const.value, const.dtype)})"
                name = self.declare("lowest" if const.value < 0 else "highest", ("scalar", const.dtype))
                self.write(f"{name} = {text}")
                self.hidden[const] = name
        yield
        self.reciprocals.clear()
        self.hidden.clear()

    def body(self, s: For, local_rows: dict[StreamedRow, str]) -> None:
        with self.indented():
            self.loop_vars.add(s.var)
            length = len(self.lines)
            before = dict(self.scope)
            for number, stmt in enumerate(stmts_of(s.body)):
                for row, local in local_rows.items():
                    if row.first == number:
                        self.begin_row(row, local)
                self.statement(stmt)
                for row, local in local_rows.items():
                    if row.last == number:
                        self.end_row(row, local)
            self.scope = before
            if len(self.lines) == length:
                self.write("pass")
            self.loop_vars.discard(s.var)

    # ------------------------------------------------------------------------- rows that may go around the cache
    def local_row(self, param: Param) -> str:
        """The text of a local row, which has no elements where the rows of the array are written in place."""
        whole = self.scope[param.name]
        name = self.declare(f"{whole}_local", ("row", param.dtype))
        size = f"{whole}.shape[{param.ndim - 1}] if {whole}.nbytes >= {STREAMED_FROM} else 0"
        self.write(f"{name} = np.empty({size}, {storage_name(param.dtype)})")
        return name

    def begin_row(self, row: StreamedRow, local: str) -> None:
        name = self.declare(f"{self.scope[row.param.name]}_row", ("row", row.param.dtype))
        self.write(f"{name} = {local} if {local}.size else {self.place(row)}")
        self.rows[row.param.name] = name

    def end_row(self, row: StreamedRow, local: str) -> None:
        del self.rows[row.param.name]
        self.write(f"if {local}.size:")
        with self.indented():
            self.write(f"scalar.stream({local}, {self.place(row)})")

    def place(self, row: StreamedRow) -> str:
        return f"{self.scope[row.param.name]}[{', '.join(map(self.index, row.place))}]"

    def allocate(self, s: Alloc) -> None:
        shape = ", ".join(self.expression(n) for n in s.shape)
        name = self.declare(s.buffer, ("array", s.dtype, len(s.shape)))
        self.write(f"{name} = np.empty(({shape},), {storage_name(s.dtype)})")

    def parallel(self, s: For) -> None:
        """A task's share of a loop.  What each iteration would allocate, each task has once, where that is possible."""
        before = dict(self.scope)
        extent = self.expression(s.extent, at_least=NEGATION)
        bounds = f"{extent} * task // tasks", f"{extent} * (task + 1) // tasks"
        for alloc in _hoistable(s):
            self.allocate(alloc)
            self.allocated.add(id(alloc))
        if any(isinstance(x, For) for x in statements(s.body)):
            self.loop(s, f"range({', '.join(bounds)})")
        else:
            self.write(f"start, stop = {', '.join(bounds)}")
            self.flat(s)
        self.scope = before

    def flat(self, s: For) -> None:
        """A parallel loop with no loop inside, over slices: it runs from 0, which keeps it free of negative indices."""
        accesses = list(_accesses(s.body))
        first = Var(s.var)
        for param in self.function.params:
            if any(buffer == param.name and index and index[0] == first for buffer, index in accesses):
                whole = self.scope[param.name]
                self.parts[param.name] = self.declare(f"{whole}_part", ("part", whole))
                self.write(f"{self.parts[param.name]} = {whole}[start:stop]")
        sliced = [index[0] for buffer, index in accesses if index and index[0] == first and buffer in self.parts]
        uses = [e for root in expressions(s.body) for e in walk(root) if e == first]
        self.part_var = s.var
        if len(uses) == len(sliced):
            self.loop(s, "range(stop - start)")
        else:
            before = dict(self.scope)
            with self.prepared(s):
                counter = self.declare(f"{s.var}_part", ("scalar", np.dtype(np.int64)))
                self.write(f"for {counter} in range(stop - start):")
                with self.indented():
                    self.write(f"{self.declare(s.var, ('scalar', np.dtype(np.int64)))} = start + {counter}")
                    self.scope[COUNTER] = counter
                    self.statement(s.body)
            self.scope = before
        self.part_var = None
        self.parts.clear()


def _dims(function: Function) -> list[Dim]:
    """The extents that the function uses, in order."""
    return list(dict.fromkeys(e for root in expressions(function.body) for e in walk(root) if isinstance(e, Dim)))


def _accesses(s: Stmt) -> Iterable[tuple[str, tuple[Expr, ...]]]:
    """Each (buffer, index) that is read or written in s."""
    for x in statements(s):
        if isinstance(x, Store):
            yield x.buffer, x.index
    for root in expressions(s):
        for e in walk(root):
            if isinstance(e, Load):
                yield e.buffer, e.index


def _hoistable(loop: For) -> list[Alloc]:
    """The allocations in a loop whose shape is known before it."""
    inner = {loop.var} | {x.var if isinstance(x, For) else x.name for x in statements(loop.body)
                          if isinstance(x, For | Let | Init)}
    known: Callable[[Expr], bool] = lambda e: not names(e) & inner and not any(isinstance(x, Load) for x in walk(e))
    return [x for x in statements(loop.body) if isinstance(x, Alloc) and all(map(known, x.shape))]


def _divisors(loop: For) -> list[Var]:
    """The scalars from outside of a loop that its body divides floats by."""
    inner = {x.name for x in statements(loop.body) if isinstance(x, Let | Init | Accumulate)}
    return [e.y for root in expressions(loop.body) for e in walk(root) if isinstance(e, Binary) and e.op == "div"
            and isinstance(e.y, Var) and e.y.name not in inner]


def _neutral(loop: For) -> list[Const]:
    """The infinities in the selects of a loop that accumulates maxima or minima of floats.

    Of `top = maximum(top, v if c else -inf)` LLVM makes `top = maximum(top, v) if c else top`, and then does not see
    the reduction any more.
    """
    if not any(isinstance(x, Accumulate) and x.op != "add" for x in statements(loop.body)):
        return []
    selects = [e for root in expressions(loop.body) for e in walk(root) if isinstance(e, Select)]
    return [arm for e in selects for arm in (e.x, e.y) if isinstance(arm, Const) and abs(arm.value) == np.inf]


def _wrapped(comment: tuple[str, ...], width: int = 100) -> list[str]:
    """The names of the fused operators, in lines."""
    lines: list[str] = []
    for name in comment:
        if lines and len(lines[-1]) + len(name) + 2 <= width:
            lines[-1] += f", {name}"
        else:
            if lines:
                lines[-1] += ","
            lines.append(name)
    return lines
