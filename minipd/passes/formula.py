"""Formulas: ordinary Python on symbols, which an interpreter turns into something.

    x * ops.rsqrt(ops.mean(ops.square(x), axis=axis, keepdim=True) + epsilon)

`ops.<name>` calls the operator of that name in the table; `+ - * / **` and unary minus are the operators that they are
in traced programs.  What a call means is up to the interpreter that made the symbols, as everywhere in minipd: the
source formula of a rule becomes a pattern (`matching`), its result formula operations of a program (`drr`).

What is no call of a row is written with its full name, and as it stands in a program: `ops.op("pd_op.if", condition,
regions=branches)`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from minipd.framework.row import ROWS, Row

__all__ = ["Attr", "Symbol", "ops", "reading"]


class Interpreter(Protocol):
    """Gives calls in a formula their meaning."""

    def call(self, row: Row, operands: tuple, attrs: dict[str, Any], results: int | None) -> Any:
        """The symbol (for rows with several results, the tuple of symbols) that a call gives.

        results: how many there are, of a row with any number of them; None: all, whatever their number.
        """
        ...

    def operation(self, name: str, operands: tuple, attrs: dict[str, Any], results: Any, regions: Any) -> Any:
        """The symbol, or the tuple of symbols, that an operation gives which is no call of a row."""
        ...

    def named(self, name: str, meaning: Any) -> None:
        """A value between inputs and outputs is given a name."""
        ...


#: who reads the formula that is being run
READER: ContextVar[Interpreter | None] = ContextVar("minipd.passes.formula.READER", default=None)


@contextmanager
def reading(interpreter: Interpreter) -> Iterator[None]:
    """Calls in formulas are this interpreter's, also those without a symbol among their operands."""
    token = READER.set(interpreter)
    try:
        yield
    finally:
        READER.reset(token)


class Symbol:
    """A tensor in a formula.  `meaning` belongs to the interpreter."""

    __array_ufunc__ = None              # numpy's numbers leave `number * symbol` to the symbol

    def __init__(self, interpreter: Interpreter, meaning: Any):
        self.interpreter, self.meaning = interpreter, meaning

    @property
    def shape(self) -> tuple:
        return self.meaning.shape

    @property
    def dtype(self) -> Any:
        return self.meaning.dtype

    @property
    def ndim(self) -> int:
        return self.meaning.ndim

    def named(self, name: str) -> Symbol:
        """The same tensor; constraints, results and post-processing may ask for it by this name."""
        self.interpreter.named(name, self.meaning)
        return self

    def __neg__(self) -> Any:
        return ops.scale(self, scale=-1.0)

    def __bool__(self) -> bool:
        raise TypeError("a formula cannot branch on a tensor's value: it is written down once, for all values")

    def __repr__(self) -> str:
        return repr(self.meaning)


def _binary(row: str, reflected: bool) -> Callable[[Symbol, Any], Any]:
    def operator(self: Symbol, other: Any) -> Any:
        return self.interpreter.call(ROWS[row], (other, self) if reflected else (self, other), {}, None)
    return operator


for _name, _row in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "pow"}.items():
    setattr(Symbol, f"__{_name}__", _binary(_row, False))
    setattr(Symbol, f"__r{_name}__", _binary(_row, True))


class Attr:
    """An attribute, or a constant operand, whose value a match will tell."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


class Operators:
    """`ops.<row>(*operands, **attributes)`: a call of any operator of the table, in a formula."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in ROWS:
            near = difflib.get_close_matches(name, ROWS, 3)
            raise AttributeError(f"ops.{name}: expected the name of an operator, got {name!r}; "
                                 + (f"did you mean {' or '.join(near)}?" if near else "`minipd ops` lists them"))
        row = ROWS[name]

        def call(*operands: Any, results: int | None = None, **attrs: Any) -> Any:
            return _reader(f"ops.{name}", operands).call(row, operands, attrs, results)
        return call

    def op(self, name: str, *operands: Any, results: Any = 1, regions: Any = None, **attrs: Any) -> Any:
        """An operation that is no call of a row, by its full name, with exactly its operands.

        results: in a source, how many it has, None for any number; in a result, their types.  regions: in a source,
        the attribute that stands for the operation's regions; in a result, the regions that it gets.
        """
        return _reader(f"ops.op({name!r})", operands).operation(name, operands, attrs, results, regions)


def _reader(called: str, operands: tuple) -> Interpreter:
    symbol = next((x for x in operands if isinstance(x, Symbol)), None)
    reader = READER.get() if symbol is None else symbol.interpreter
    if any(isinstance(x, (list, tuple)) for x in operands):
        raise TypeError(f"{called}: expected tensors one by one, got a list; write *xs")
    if reader is None or operands and symbol is None:
        raise TypeError(f"{called}: expected a tensor of the formula among the operands, got {operands}; "
                        "write numbers as numbers")
    return reader


ops = Operators()
