"""What stands in a statement of the flat form."""

from __future__ import annotations

from minipd.cinn.ir.ast import Accumulate, Alloc, Init, Let, Load, Stmt, Store
from minipd.cinn.ir.walk import expressions, statements, walk

__all__ = ["accumulated", "declared", "loads_of", "stores_of"]


def declared(s: Stmt) -> set[str]:
    """The scalars and buffers that s declares somewhere inside."""
    return {x.buffer if isinstance(x, Alloc) else x.name for x in statements(s) if isinstance(x, Let | Init | Alloc)}


def stores_of(s: Stmt) -> list[Store]:
    return [x for x in statements(s) if isinstance(x, Store)]


def loads_of(s: Stmt) -> list[Load]:
    return [e for whole in expressions(s) for e in walk(whole) if isinstance(e, Load)]


def accumulated(s: Stmt) -> set[str]:
    """The accumulators that s adds to."""
    return {x.name for x in statements(s) if isinstance(x, Accumulate)}
