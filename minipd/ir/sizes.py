"""How large values are, as far as a program tells: enough to compare two ways of computing the same."""

from __future__ import annotations

from minipd.framework.dim import DimExpr, prod, substitute_all
from minipd.ir.value import Value

__all__ = ["nbytes"]

#: what a symbolic dimension counts as
SYMBOL = 128


def nbytes(value: Value) -> int:
    """The size of a tensor in bytes; each symbol counts as 128.

    >>> from minipd.framework.dim import symbol
    >>> from minipd.ir.builder import Builder
    >>> from minipd.ir.program import Program
    >>> nbytes(Builder(Program().global_block()).data("x", (symbol("S0"), 10), "float32"))
    5120
    """
    n = prod(value.shape)
    if isinstance(n, DimExpr):
        n = substitute_all(n, dict.fromkeys(n.symbols, SYMBOL))
    return int(n) * value.dtype.itemsize
