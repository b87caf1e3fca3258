"""A loop-IR function as the source text of a numba kernel.

    def rms_norm(tasks, x, w, y):
        # square, mean, rsqrt, multiply
        x_dim0 = x.shape[0]
        for task in prange(tasks):
            for i in range(x_dim0 * task // tasks, x_dim0 * (task + 1) // tasks):
                ...

The kernel takes the number of tasks into which an outermost parallel loop is cut, then the function's arrays.  One text
serves both ways of compiling it: numba reads `prange` as `range` unless it compiles with threads.  The text is the same
for the same function, always; kernels on disk are found by it.

What the text takes care of, because it decides whether LLVM vectorizes a loop, or whether the numbers are right:

* numba makes int64 of int32 + int32, and wraps negative indices around: every int operation is cast to its own dtype,
  computed indices are made unsigned, and loops run from 0 (a flat parallel loop over slices of its arrays).
* A division in an inner loop by a scalar from outside is a product with its reciprocal; an infinity that a condition
  puts in the place of a number is hidden in loops that look for the largest one.
* Selections and extrema are single instructions, exp, log, tanh, sin, cos of float32 polynomials (`scalar`, `math`).
* 0-D arrays come as [1] arrays: within threads numba makes plain scalars of them.
* float16 and bfloat16 arrays are uint16 arrays of their bits; scalars of these dtypes are float32 that they can hold.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import ml_dtypes
import numpy as np

from minipd.cinn.ir.ast import (
    BOOL,
    STORAGE_ONLY,
    Accumulate,
    Alloc,
    Binary,
    Cast,
    Const,
    Dim,
    Expr,
    For,
    Function,
    Init,
    Let,
    Load,
    Select,
    Seq,
    Stmt,
    Store,
    Unary,
    Var,
)
from minipd.cinn.ir.walk import expressions, names, statements, walk

__all__ = ["numba_source"]

#: Names that the text uses itself.
RESERVED = {*keyword.kwlist, *keyword.softkwlist, "np", "math", "scalar", "libm", "prange", "range", "abs", "tasks",
            "task", "start", "stop"}

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
         "ne": "!=", "and": "&", "or": "|"}
#: How strongly Python's operators bind; comparisons and everything weaker get parentheses.
STRENGTH = {"*": 6, "/": 6, "//": 6, "%": 6, "+": 5, "-": 5, "&": 3, "|": 2}
COMPARISON, NEGATION, ATOM = 1, 7, 9

#: The bits of a storage dtype, and the names of its conversions in `scalar`.
SHORT = {np.dtype(np.float16): "float16", np.dtype(ml_dtypes.bfloat16): "bfloat16"}

#: An expression's text and how strongly its outermost operator binds.
Text = tuple[str, int]


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
    from numba import prange
    <BLANKLINE>
    from minipd.cinn.codegen import math, scalar
    <BLANKLINE>
    <BLANKLINE>
    def double(tasks, x, y):
        # scale
        x_dim0 = x.shape[0]
        for task in prange(tasks):
            start, stop = x_dim0 * task // tasks, x_dim0 * (task + 1) // tasks
            x_part = x[start:stop]
            y_part = y[start:stop]
            for i in range(stop - start):
                y_part[i] = x_part[i] * np.float32(2.0)
    <BLANKLINE>
    """
    return _Writer(function).module()


def python_name(name: str) -> str:
    """`name` as a Python identifier that the text does not use itself.

    >>> python_name("cinn.group"), python_name("0"), python_name("in")
    ('cinn_group', '_0', 'in_')
    """
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
    if not plain or plain[0].isdigit():
        plain = "_" + plain
    return plain + "_" if plain in RESERVED else plain


class _Writer:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.lines: list[str] = []
        self.depth = 0
        #: the Python name of each name in scope, and for each Python name what it stands for: numba wants one type
        self.scope: dict[str, str] = {}
        self.taken: dict[str, object] = {}
        self.loop_vars: set[str] = set()
        #: inside a parallel loop: it is the outermost that is cut into tasks
        self.in_parallel = False
        #: in a flat parallel loop: its variable, and for each buffer the slice that is this task's
        self.part_var: str | None = None
        self.parts: dict[str, str] = {}
        #: the Python name of each divisor's reciprocal
        self.reciprocals: dict[Expr, str] = {}
        #: the Python name of each infinity that LLVM is not to know
        self.hidden: dict[Expr, str] = {}
        self.allocated: set[int] = set()

    # ------------------------------------------------------------------------------------------------- the frame
    def module(self) -> str:
        f = self.function
        for param in f.params:
            self.declare(param.name, ("array", param.name))
        name = python_name(f.name)
        head = ["import math as libm", "", "import numpy as np", "from numba import prange", "",
                "from minipd.cinn.codegen import math, scalar", "", "",
                f"def {name}({', '.join(['tasks', *(self.scope[p.name] for p in f.params)])}):"]
        with self.indented():
            for line in _wrapped(f.comment):
                self.write(f"# {line}")
            for dim in _dims(f):
                self.write(f"{self.dim(dim)} = {self.scope[dim.param]}.shape[{dim.axis}]")
            self.statement(f.body)
            if not self.lines:
                self.write("pass")
        return "\n".join([*head, *self.lines, ""])

    def write(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def indented(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1

    def declare(self, name: str, kind: object) -> str:
        """The Python name of a new `name`; one that stood for something of another kind gets a number."""
        plain = candidate = python_name(name)
        number = 1
        while self.taken.setdefault(candidate, kind) != kind:
            number += 1
            candidate = f"{plain}_{number}"
        self.scope[name] = candidate
        return candidate

    def dim(self, dim: Dim) -> str:
        return self.declare(f"{self.scope[dim.param]}_dim{dim.axis}", ("dim", dim))

    # ------------------------------------------------------------------------------------------------ statements
    def statement(self, s: Stmt) -> None:
        match s:
            case Seq(stmts=stmts):
                before = dict(self.scope)
                for x in stmts:
                    self.statement(x)
                self.scope = before
            case For(kind="parallel") if not self.in_parallel:
                self.parallel(s)
            case For():
                self.loop(s, f"range({self.expression(s.extent)})")
            case Let(name=name, value=value) | Init(name=name, value=value):
                text = self.expression(value)
                self.write(f"{self.declare(name, ('scalar', value.dtype))} = {text}")
            case Accumulate(name=name, op=op, value=value):
                target = Var(name, value.dtype)
                self.write(f"{self.scope[name]} = {self.combine(op, target, value)[0]}")
            case Alloc():
                if id(s) not in self.allocated:
                    self.allocate(s)
            case Store(buffer=buffer, index=index, value=value):
                self.write(f"{self.element(buffer, index)} = {self.stored(value)}")

    def loop(self, s: For, iterable: str) -> None:
        before = dict(self.scope)
        with self.prepared(s):
            variable = self.declare(s.var, ("scalar", np.dtype(np.int64)))
            self.write(f"for {variable} in {iterable}:")
            self.body(s)
        self.scope = before

    @contextmanager
    def prepared(self, s: For) -> Iterator[None]:
        """Have before an innermost loop the reciprocals of what it divides by, and does not change, and the infinities
        that take no part in its maxima and minima."""
        if not any(isinstance(x, For) for x in statements(s.body)):
            for divisor in dict.fromkeys(_divisors(s)):
                text = f"{_constant(1, divisor.dtype)} / {self.expression(divisor)}"
                name = self.declare(f"per_{self.scope[divisor.name]}", ("scalar", divisor.dtype))
                self.write(f"{name} = {text}")
                self.reciprocals[divisor] = name
            for const in dict.fromkeys(_neutral(s)):
                text = f"scalar.hidden({_constant(const.value, const.dtype)})"
                name = self.declare("lowest" if const.value < 0 else "highest", ("scalar", const.dtype))
                self.write(f"{name} = {text}")
                self.hidden[const] = name
        yield
        self.reciprocals.clear()
        self.hidden.clear()

    def body(self, s: For) -> None:
        with self.indented():
            self.loop_vars.add(s.var)
            length = len(self.lines)
            self.statement(s.body)
            if len(self.lines) == length:
                self.write("pass")
            self.loop_vars.discard(s.var)

    def allocate(self, s: Alloc) -> None:
        shape = ", ".join(self.expression(n) for n in s.shape)
        dtype = "np.uint16" if s.dtype in STORAGE_ONLY else _numba_dtype(s.dtype)
        self.write(f"{self.declare(s.buffer, ('array', s.dtype, len(s.shape)))} = np.empty(({shape},), {dtype})")

    def parallel(self, s: For) -> None:
        """Cut a loop into tasks.  What each iteration would allocate, each task has once, where that is possible."""
        before = dict(self.scope)
        extent = self.expression(s.extent, at_least=NEGATION)
        bounds = f"{extent} * task // tasks", f"{extent} * (task + 1) // tasks"
        self.in_parallel = True
        self.write("for task in prange(tasks):")
        with self.indented():
            for alloc in _hoistable(s):
                self.allocate(alloc)
                self.allocated.add(id(alloc))
            if any(isinstance(x, For) for x in statements(s.body)):
                self.loop(s, f"range({', '.join(bounds)})")
            else:
                self.write(f"start, stop = {', '.join(bounds)}")
                self.flat(s)
        self.in_parallel = False
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
                    self.scope[_PART] = counter
                    self.statement(s.body)
            self.scope = before
        self.part_var = None
        self.parts.clear()

    # ----------------------------------------------------------------------------------------------- expressions
    def expression(self, e: Expr, at_least: int = 0) -> str:
        """e as text; in parentheses if its operator binds less than `at_least`."""
        text, strength = self.text(e)
        return text if strength >= at_least else f"({text})"

    def text(self, e: Expr) -> Text:
        match e:
            case Const(value=value, dtype=dtype):
                return self.hidden.get(e) or _constant(value, dtype), ATOM
            case Var(name=name):
                return self.scope[name], ATOM
            case Dim():
                return self.dim(e), ATOM
            case Load(buffer=buffer, index=index, dtype=dtype):
                element = self.element(buffer, index)
                return (f"scalar.from_{SHORT[dtype]}({element})" if dtype in STORAGE_ONLY else element), ATOM
            case Unary(op=op, x=x):
                return self.unary(op, x)
            case Binary(op=op, x=x, y=y):
                return self.combine(op, x, y)
            case Select(cond=cond, x=x, y=y):
                return f"scalar.select({self.expression(cond)}, {self.expression(x)}, {self.expression(y)})", ATOM
            case Cast(x=x, dtype=dtype):
                return self.cast(x, dtype)
        raise AssertionError(e)

    def unary(self, op: str, x: Expr) -> Text:
        dtype = x.dtype
        if op in ("exp", "log", "tanh", "sin", "cos"):
            return f"{'math' if dtype == np.float32 else 'libm'}.{op}({self.expression(x)})", ATOM
        match op:
            case "neg":
                return self.exact(dtype, f"-{self.expression(x, NEGATION + 1)}", NEGATION)
            case "abs":
                if dtype.kind == "u":
                    return self.text(x)
                return self.exact(dtype, f"abs({self.expression(x)})", ATOM)
            case "sqrt":
                return f"libm.sqrt({self.expression(x)})", ATOM
            case "rsqrt":
                return f"{_constant(1, dtype)} / libm.sqrt({self.expression(x)})", STRENGTH["/"]
            case "floor":
                return f"np.floor({self.expression(x)})", ATOM
            case "not":
                return f"not {self.expression(x, COMPARISON)}", 0
            case "isfinite":
                return f"abs({self.expression(x)}) < {_constant(np.inf, dtype)}", COMPARISON
        raise AssertionError(op)

    def combine(self, op: str, x: Expr, y: Expr) -> Text:
        """A binary operator."""
        dtype = x.dtype
        if op in ("max", "min"):
            a, b = self.expression(x), self.expression(y)
            if dtype.kind == "f":
                return f"scalar.{op}imum({a}, {b})", ATOM
            if dtype == BOOL:
                return self.infix("|" if op == "max" else "&", x, y)
            compare = ">" if op == "max" else "<"
            condition = f"{self.expression(x, COMPARISON + 1)} {compare} {self.expression(y, COMPARISON + 1)}"
            return f"scalar.select({condition}, {a}, {b})", ATOM
        if op == "add" and dtype == BOOL:
            return self.infix("|", x, y)
        if op == "pow":
            return self.power(x, y)
        if op in ("mod", "floordiv"):
            return self.division(op, x, y)
        if op == "div" and y in self.reciprocals:
            return f"{self.expression(x, STRENGTH['*'])} * {self.reciprocals[y]}", STRENGTH["*"]
        if op in ("eq", "ne", "lt", "le", "gt", "ge"):
            return f"{self.expression(x, COMPARISON + 1)} {INFIX[op]} {self.expression(y, COMPARISON + 1)}", COMPARISON
        return self.exact(dtype, *self.infix(INFIX[op], x, y))

    def infix(self, sign: str, x: Expr, y: Expr) -> Text:
        strength = STRENGTH[sign]
        return f"{self.expression(x, strength)} {sign} {self.expression(y, strength + 1)}", strength

    def exact(self, dtype: np.dtype, text: str, strength: int) -> Text:
        """The text of an operation in `dtype`, which numba would compute in a wider int."""
        if dtype.kind in "iu" and dtype.itemsize < 8:
            return f"np.{dtype.name}({text})", ATOM
        return text, strength

    def division(self, op: str, x: Expr, y: Expr) -> Text:
        """mod and floordiv."""
        if x.dtype.kind == "f":
            return f"scalar.{op}_{x.dtype.name}({self.expression(x)}, {self.expression(y)})", ATOM
        if x.dtype == np.int64 and isinstance(y, Const) and y.value > 0:
            return self.infix("//" if op == "floordiv" else "%", x, y)
        return self.wide(op, x, y)

    def wide(self, op: str, x: Expr, y: Expr) -> Text:
        """A helper for ints, which there is for int64 and uint64."""
        unsigned = x.dtype == np.uint64
        a, b = self.expression(x), self.expression(y)
        if x.dtype.itemsize < 8:
            a, b = f"np.int64({a})", f"np.int64({b})"
        return self.exact(x.dtype, f"scalar.{'uint' if unsigned else 'int'}_{op}({a}, {b})", ATOM)

    def power(self, x: Expr, y: Expr) -> Text:
        """Small constant powers as products."""
        dtype = x.dtype
        if dtype.kind in "iu":
            return self.wide("power", x, y)
        if isinstance(y, Const) and y.value in (2, 3, 4) and isinstance(x, Var | Const | Load):
            factor = self.expression(x, ATOM)
            square = f"{factor} * {factor}"
            return {2: square, 3: f"{square} * {factor}", 4: f"({square}) * ({square})"}[int(y.value)], STRENGTH["*"]
        return f"scalar.power_{dtype.name}({self.expression(x)}, {self.expression(y)})", ATOM

    def cast(self, x: Expr, dtype: np.dtype) -> Text:
        if dtype == x.dtype or x.dtype in STORAGE_ONLY and dtype == np.float32:
            return self.text(x)
        if dtype in STORAGE_ONLY:
            return f"scalar.round_{SHORT[dtype]}({self.single(x, dtype)})", ATOM
        if dtype == BOOL:
            zero = _constant(0, np.dtype(np.float32) if x.dtype in STORAGE_ONLY else x.dtype)
            return f"{self.expression(x, COMPARISON + 1)} != {zero}", COMPARISON
        return f"{_numba_dtype(dtype)}({self.expression(x)})", ATOM

    def single(self, x: Expr, goal: np.dtype) -> str:
        """x as the float32 that rounds to `goal` as x does."""
        if x.dtype == np.float64 and goal == np.float16:
            return f"scalar.round_odd({self.expression(x)})"
        if x.dtype == np.float32 or x.dtype in STORAGE_ONLY:
            return self.expression(x)
        return f"np.float32({self.expression(x)})"

    def stored(self, value: Expr) -> str:
        """A value as its buffer holds it."""
        if value.dtype not in STORAGE_ONLY:
            return self.expression(value)
        inner = value.x if isinstance(value, Cast) else value
        return f"scalar.to_{SHORT[value.dtype]}({self.single(inner, value.dtype)})"

    # ---------------------------------------------------------------------------------------------------- access
    def element(self, buffer: str, index: tuple[Expr, ...]) -> str:
        """buffer[index].  A task's slice stands for the buffer where the first index is the task's loop variable."""
        if index and self.part_var is not None and index[0] == Var(self.part_var) and buffer in self.parts:
            counter = self.scope.get(_PART, self.scope[self.part_var])
            rest = [self.index(i) for i in index[1:]]
            return f"{self.parts[buffer]}[{', '.join([counter, *rest])}]"
        return f"{self.scope[buffer]}[{', '.join(map(self.index, index)) or 0}]"

    def index(self, e: Expr) -> str:
        """An index.  One that is computed is made unsigned, or numba would add the extent to it if it were negative."""
        if isinstance(e, Const):
            return str(int(e.value))
        if isinstance(e, Var) and e.name in self.loop_vars:
            return self.expression(e)
        return f"np.uint64({self.expression(e)})"


#: The name in scope of the counter within a task's slices, where the loop variable is used by itself, too.
_PART = "<position in the task's slices>"


def _numba_dtype(dtype: np.dtype) -> str:
    return "np.bool_" if dtype == BOOL else f"np.{dtype.name}"


def _constant(value: bool | int | float, dtype: np.dtype) -> str:
    """A number as a literal of exactly that dtype."""
    if dtype == BOOL:
        return str(bool(value))
    if dtype.kind in "iu":
        return str(int(value)) if dtype == np.int64 else f"np.{dtype.name}({int(value)})"
    number = float(value)
    literal = repr(number) if np.isfinite(number) else "np.nan" if number != number else f"{'-' * (number < 0)}np.inf"
    name = "float64" if dtype == np.float64 else "float32"
    return literal if name == "float64" and np.isfinite(number) and number >= 0 else f"np.{name}({literal})"


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
