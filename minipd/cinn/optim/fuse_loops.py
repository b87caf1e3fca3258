"""`fuse_loops`: neighbouring loops that read the same elements are one loop, which reads them once.

    for (j, 0, 24)                              for (j, 0, 24)
    {                                           {
      y[j] = x[j] * c[j] - x[j + 24] * s[j]       y[j] = x[j] * c[j] - x[j + 24] * s[j]
    }                                             y[j + 24] = x[j + 24] * c[j] + x[j] * s[j]
    for (j, 0, 24)                              }
    {
      y[j + 24] = x[j + 24] * c[j] + x[j] * s[j]
    }

The halves of rotary embedding are such loops once their conditions are bounds: each element is read for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from minipd.cinn.ir.ast import Const, Expr, For, Function, Let, Load, Seq, Stmt, Store
from minipd.cinn.ir.linear import coefficient, constant_of, difference, polynomial
from minipd.cinn.ir.walk import buffers_written, map_statements, names, rename
from minipd.cinn.optim.tree import declared, loads_in

__all__ = ["fuse_loops"]

Access = tuple[str, tuple[Expr, ...]]


def fuse_loops(function: Function) -> Function:
    """The function in which neighbouring innermost loops that read the same elements are one, where no iteration needs
    what another one of the other loop writes."""
    return replace(function, body=map_statements(_neighbours, function.body))


def _neighbours(s: Stmt) -> Stmt:
    if not isinstance(s, Seq):
        return s
    out: list[Stmt] = []
    for x in s.stmts:
        fused = _fused(out[-1], x) if out else None
        if fused is None:
            out.append(x)
        else:
            out[-1] = fused
    return s if len(out) == len(s.stmts) else Seq(tuple(out))


def _fused(first: Stmt, second: Stmt) -> For | None:
    """Both loops as one; None if they are to stay two."""
    if not (isinstance(first, For) and isinstance(second, For) and _is_plain(first) and _is_plain(second)):
        return None
    if (first.extent, first.kind, first.annotations) != (second.extent, second.kind, second.annotations):
        return None
    if first.var in declared(second.body):
        return None
    again = second if first.var == second.var else rename(second, {second.var: first.var})
    assert isinstance(again, For)
    own, other = list(_reads(first.body)), list(_reads(again.body))
    scalars = declared(first.body) | declared(again.body)
    alike = {a for a in own if first.var in _names(a) and not _names(a) & scalars} & set(other)
    if not alike or not _may_be_one(first, again, scalars):
        return None
    return replace(first, body=Seq((_scope(first.body), _scope(again.body))))


def _is_plain(loop: For) -> bool:
    """Whether a loop runs in any order and has nothing inside but scalars and stores."""
    return loop.kind in ("serial", "vector") and all(isinstance(x, Let | Store) for x in _flat(loop.body))


def _flat(s: Stmt) -> Iterator[Stmt]:
    if isinstance(s, Seq):
        for x in s.stmts:
            yield from _flat(x)
    else:
        yield s


def _scope(s: Stmt) -> Seq:
    return s if isinstance(s, Seq) else Seq((s,))


def _reads(s: Stmt) -> Iterator[Access]:
    return ((e.buffer, e.index) for e in loads_in(s))


def _writes(s: Stmt) -> Iterator[Access]:
    return ((x.buffer, x.index) for x in _flat(s) if isinstance(x, Store))


def _names(access: Access) -> set[str]:
    return set().union(*map(names, access[1]))


def _may_be_one(first: For, second: For, scalars: set[str]) -> bool:
    """Whether no iteration of one loop touches what another iteration of the other one writes."""
    changed = buffers_written(first.body) | buffers_written(second.body)
    return all(
        _apart(a, b, first, scalars)
        for mine, others in ((_writes(first.body), [*_writes(second.body), *_reads(second.body)]),
                             (_reads(first.body), list(_writes(second.body))))
        for a in mine for b in others if a[0] == b[0] and a[0] in changed)


def _apart(a: Access, b: Access, loop: For, scalars: set[str]) -> bool:
    """Whether a and b are never the same element in different iterations of the loop."""
    if (_names(a) | _names(b)) & scalars or any(isinstance(e, Load) for e in (*a[1], *b[1])):
        return False
    for x, y in zip(a[1], b[1], strict=True):
        step = _step(x, loop.var)
        if step is None or step != _step(y, loop.var):
            continue
        distance = constant_of(difference(polynomial(x), polynomial(y)))
        if distance is None:
            continue
        # Of iterations i and k, the elements are (i - k) * step + distance apart.
        if distance % step or distance == 0:
            return True
        if isinstance(loop.extent, Const) and abs(distance // step) >= loop.extent.value:
            return True
    return False


def _step(e: Expr, var: str) -> int | None:
    """By how much e grows in each iteration, if that is a number other than 0."""
    found = coefficient(polynomial(e), var)
    return None if found is None else constant_of(found[0]) or None
