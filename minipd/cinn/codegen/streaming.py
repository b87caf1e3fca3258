"""Results too large for the cache go around it.

A store to memory that is not in the cache reads the line first.  Stores that bypass the cache (non-temporal ones) do
not, which saves a third of what a copy moves; but whoever reads the result next finds it in memory.  So this pays where
the result would not stay in the cache anyway.  Lines have to be written whole, so a row of the result is first put
together in a local one:

    y_local = np.empty(y.shape[1] if y.nbytes >= 67108864 else 0, np.float32)
    for i in ...:
        y_row = y_local if y_local.size else y[i]
        for j in range(4096):
            y_row[j] = ...
        if y_local.size:
            scalar.stream(y_local, y[i])

Measured with RMSNorm on 2 cores: 67 MB take 0.84 of the time, read back at once 0.91; 33 MB 1.5 times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from minipd.cinn.ir.ast import Const, Expr, For, Function, Let, Load, Param, Stmt, Store
from minipd.cinn.ir.walk import (
    bodies,
    buffers_read,
    buffers_written,
    names,
    own_expressions,
    statements,
    stmts_of,
    walk,
)

__all__ = ["STREAMED_FROM", "StreamedRow", "streamed_rows"]

#: Bytes from which a result goes around the cache.
STREAMED_FROM = 1 << 26

#: Shorter rows are not worth the text: results of so many of them are rare.  Longer ones do not fit into the cache.
LEAST_ROW, MOST_ROW = 2048, 65536


class StreamedRow(NamedTuple):
    """A row of `param`, at `place`, that each iteration of a loop writes in full; first, last: the numbers of the first
    and the last statement of the loop's body that use it."""

    param: Param
    place: tuple[Expr, ...]
    first: int
    last: int


def streamed_rows(function: Function) -> dict[int, list[StreamedRow]]:
    """id of a loop -> the rows of outputs that may go around the cache."""
    found: dict[int, list[StreamedRow]] = {}
    for param in function.params:
        if param.output and param.ndim >= 2:
            for loop, row in _rows(function, param):
                found.setdefault(id(loop), []).append(row)
    return found


def _rows(function: Function, param: Param) -> Iterator[tuple[For, StreamedRow]]:
    """The loop each of whose iterations writes one row of the output, if there is one."""
    accesses = list(_accesses(function.body, param.name, ()))
    places = {index[:-1] for index, _ in accesses}
    if len(places) != 1:
        return
    (place,) = places
    common = [loop for loop in accesses[0][1] if all(any(loop is x for x in loops) for _, loops in accesses)]
    for loop in reversed(common):
        body = stmts_of(loop.body)
        lets = {s.name: s.value for s in body if isinstance(s, Let)}
        used = set().union(*map(names, place))
        varies = loop.var in used or any(loop.var in names(lets[name]) for name in used & lets.keys())
        if not varies or used & _declared_in_loops(body):
            continue
        touching = [n for n, s in enumerate(body) if param.name in buffers_written(s) | buffers_read(s)]
        first = body[touching[0]]
        if param.name not in buffers_read(first) and LEAST_ROW <= _length(first) <= MOST_ROW:
            yield loop, StreamedRow(param, place, touching[0], touching[-1])
        return


def _accesses(stmt: Stmt, buffer: str, loops: tuple[For, ...]) -> Iterator[tuple[tuple[Expr, ...], tuple[For, ...]]]:
    """Each index at which the buffer is read or written, with the loops around."""
    for s in stmts_of(stmt):
        if isinstance(s, Store) and s.buffer == buffer:
            yield s.index, loops
        for e in own_expressions(s):
            yield from ((x.index, loops) for x in walk(e) if isinstance(x, Load) and x.buffer == buffer)
        around = (*loops, s) if isinstance(s, For) else loops
        for inner in bodies(s):
            yield from _accesses(inner, buffer, around)


def _declared_in_loops(body: Sequence[Stmt]) -> set[str]:
    """Names of loops inside, and of what stands in them."""
    inside = [x for s in body if isinstance(s, For) for x in statements(s)]
    return {x.var if isinstance(x, For) else x.name for x in inside if isinstance(x, For | Let)}


def _length(stmt: Stmt) -> int:
    """About how many elements the loops of a statement go over: of a block's min(1024, what is left) 1024."""
    length = 1
    for x in statements(stmt):
        if isinstance(x, For):
            known = [int(e.value) for e in walk(x.extent) if isinstance(e, Const) and e.value > 1]
            length *= min(known, default=1)
    return length
