"""Expressions of the loop IR as Python text, of which numba makes what the loop IR means.

Every operation stays in its dtype, which numba would widen: int32 + int32 is cast back to int32.  Names of the loop IR
become Python names, one for each type, as numba wants it.
"""

from __future__ import annotations

import keyword

import ml_dtypes
import numpy as np

from minipd.cinn.ir.ast import (
    BOOL,
    COMPARISONS,
    STORAGE_ONLY,
    Binary,
    Call,
    Cast,
    Const,
    Dim,
    Expr,
    Load,
    Select,
    Unary,
    Var,
)
from minipd.cinn.ir.operators import BINARY

__all__ = ["Expressions", "constant", "dtype_name", "python_name", "storage_name"]

#: Names that the text uses itself.
RESERVED = {*keyword.kwlist, *keyword.softkwlist, "np", "math", "scalar", "libm", "range", "abs", "phase", "task",
            "tasks", "start", "stop"}

#: What stands between operands: Python's `and` and `or` would be branches.
INFIX = {**{name: operator.sign for name, operator in BINARY.items()}, "and": "&", "or": "|"}
#: How strongly Python's operators bind; comparisons and everything weaker get parentheses.
STRENGTH = {"*": 6, "/": 6, "//": 6, "%": 6, "+": 5, "-": 5, "&": 3, "|": 2}
COMPARISON, NEGATION, ATOM = 1, 7, 9

#: The bits of a storage dtype, and the names of its conversions in `scalar`.
SHORT = {np.dtype(np.float16): "float16", np.dtype(ml_dtypes.bfloat16): "bfloat16"}

#: An expression's text and how strongly its outermost operator binds.
Text = tuple[str, int]


def python_name(name: str) -> str:
    """`name` as a Python identifier that the text does not use itself.

    >>> python_name("cinn.group"), python_name("0"), python_name("in")
    ('cinn_group', '_0', 'in_')
    """
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
    if not plain or plain[0].isdigit():
        plain = "_" + plain
    return plain + "_" if plain in RESERVED else plain


#: The name in scope of the counter within a task's slices, where the loop variable is used by itself, too.
COUNTER = "<position in the task's slices>"


class Expressions:
    """What is in scope at a place of the text, and how expressions read there.

    scope: the Python name of each name.  taken: what each Python name stands for.  loop_vars: the variables of loops
    that run from 0.  part_var, parts: in a task's slices, the loop's variable, and the slice of each buffer.  rows: the
    row that stands for a buffer where an iteration uses no other.
    reciprocals, hidden: the Python names of divisors' reciprocals, and of infinities that LLVM is not to know.
    """

    def __init__(self) -> None:
        self.scope: dict[str, str] = {}
        self.taken: dict[str, object] = {}
        self.loop_vars: set[str] = set()
        self.part_var: str | None = None
        self.parts: dict[str, str] = {}
        self.rows: dict[str, str] = {}
        self.reciprocals: dict[Expr, str] = {}
        self.hidden: dict[Expr, str] = {}

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

    # ----------------------------------------------------------------------------------------------- expressions
    def expression(self, e: Expr, at_least: int = 0) -> str:
        """e as text; in parentheses if its operator binds less than `at_least`."""
        text, strength = self.text(e)
        return text if strength >= at_least else f"({text})"

    def text(self, e: Expr) -> Text:
        match e:
            case Const(value=value, dtype=dtype):
                return self.hidden.get(e) or constant(value, dtype), ATOM
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
            case Call(name=name, args=args):        # numpy's name, which numba has
                return f"np.{name}({', '.join(map(self.expression, args))})", ATOM
        raise AssertionError(e)

    def unary(self, op: str, x: Expr) -> Text:
        dtype = x.dtype
        if op in ("exp", "log", "tanh", "erf", "erfc", "sin", "cos"):
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
                return f"{constant(1, dtype)} / libm.sqrt({self.expression(x)})", STRENGTH["/"]
            case "floor":
                return f"np.floor({self.expression(x)})", ATOM
            case "not":
                return f"not {self.expression(x, COMPARISON)}", 0
            case "isfinite":
                return f"abs({self.expression(x)}) < {constant(np.inf, dtype)}", COMPARISON
        raise AssertionError(op)

    def combine(self, op: str, x: Expr, y: Expr) -> Text:
        """A binary operator."""
        dtype = x.dtype
        if op in ("max", "min"):
            if dtype == BOOL:
                return self.infix("|" if op == "max" else "&", x, y)
            return f"scalar.{op}imum({self.expression(x)}, {self.expression(y)})", ATOM
        if op == "add" and dtype == BOOL:
            return self.infix("|", x, y)
        if op == "pow":
            return self.power(x, y)
        if op in ("mod", "floordiv"):
            return self.division(op, x, y)
        if op == "div" and y in self.reciprocals:
            return f"{self.expression(x, STRENGTH['*'])} * {self.reciprocals[y]}", STRENGTH["*"]
        if op in COMPARISONS:
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
            zero = constant(0, np.dtype(np.float32) if x.dtype in STORAGE_ONLY else x.dtype)
            return f"{self.expression(x, COMPARISON + 1)} != {zero}", COMPARISON
        return f"{dtype_name(dtype)}({self.expression(x)})", ATOM

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
        if buffer in self.rows:
            return f"{self.rows[buffer]}[{self.index(index[-1])}]"
        if index and self.part_var is not None and index[0] == Var(self.part_var) and buffer in self.parts:
            counter = self.scope.get(COUNTER, self.scope[self.part_var])
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


def dtype_name(dtype: np.dtype) -> str:
    return "np.bool_" if dtype == BOOL else f"np.{dtype.name}"


def storage_name(dtype: np.dtype) -> str:
    """What the elements of an array are for numba, which knows no bfloat16 and computes with no float16."""
    return "np.uint16" if dtype in STORAGE_ONLY else dtype_name(dtype)


def constant(value: bool | int | float, dtype: np.dtype) -> str:
    """A number as a literal of exactly that dtype."""
    if dtype == BOOL:
        return str(bool(value))
    if dtype.kind in "iu":
        return str(int(value)) if dtype == np.int64 else f"np.{dtype.name}({int(value)})"
    number = float(value)
    literal = repr(number) if np.isfinite(number) else "np.nan" if number != number else f"{'-' * (number < 0)}np.inf"
    name = "float64" if dtype == np.float64 else "float32"
    return literal if name == "float64" and np.isfinite(number) and number >= 0 else f"np.{name}({literal})"
