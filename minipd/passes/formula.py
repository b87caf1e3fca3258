"""Formulas: ordinary Python on symbols, which an interpreter turns into something.

    x * ops.rsqrt(ops.mean(ops.square(x), axis=axis, keepdim=True) + epsilon)

`ops.<name>` calls the operator of that name in the table; `+ - * / **` and unary minus are the operators that they are
in traced programs.  What a call means is up to the interpreter that made the symbols, as everywhere in minipd: the
source formula of a rule becomes a pattern (`matching`), its result formula operations of a program (`drr`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from minipd.framework.row import ROWS, Row

__all__ = ["Attr", "Symbol", "ops"]


class Interpreter(Protocol):
    """Gives calls in a formula their meaning."""

    def call(self, row: Row, operands: tuple, attrs: dict[str, Any]) -> Any:
        """The symbol (for rows with several results, the tuple of symbols) that a call gives."""
        ...


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

    def __neg__(self) -> Any:
        return ops.scale(self, scale=-1.0)

    def __bool__(self) -> bool:
        raise TypeError("a formula cannot branch on a tensor's value: it is written down once, for all values")

    def __repr__(self) -> str:
        return repr(self.meaning)


def _binary(row: str, reflected: bool) -> Callable[[Symbol, Any], Any]:
    def operator(self: Symbol, other: Any) -> Any:
        return self.interpreter.call(ROWS[row], (other, self) if reflected else (self, other), {})
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
            raise AttributeError(f"ops.{name}: expected the name of an operator, got {name!r}; `minipd ops` lists them")
        row = ROWS[name]

        def call(*operands: Any, **attrs: Any) -> Any:
            symbol = next((x for x in operands if isinstance(x, Symbol)), None)
            if symbol is None:
                raise TypeError(f"ops.{name}: expected a tensor of the formula among the operands, got {operands}; "
                                "write numbers as numbers")
            return symbol.interpreter.call(row, operands, attrs)
        return call


ops = Operators()
