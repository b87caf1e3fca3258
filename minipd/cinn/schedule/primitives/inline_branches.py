"""`compute_inline` of a block with branches, as joined tensors have them: whoever reads it gets the branches.

    A { if (vj < 4) { t[vi, vj] = x[vi, vj + 4] }           B { if (vj < 4)
        else { t[vi, vj] = x[vi, vj - 4] } }                    { t = x[vi, vj + 4]  y[vi, vj] = exp(t) }
    B { y[vi, vj] = exp(t[vi, vj]) }                            else { t = x[vi, vj - 4]  y[vi, vj] = exp(t) } }
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from minipd.cinn.ir.ast import Expr, IfThenElse, Let, Load, ScheduleBlock, Stmt, Store
from minipd.cinn.ir.build import seq
from minipd.cinn.ir.walk import expressions, flattened, names, statements, substitute, walk
from minipd.cinn.schedule.errors import ScheduleError

__all__ = ["branches_of", "inlined"]

#: more arms than this in one block take longer to compile than they save
MOST_ARMS = 16
#: a reader's body, the Lets and the Store of one branch -> the body with these in it
Put = Callable[[Stmt, tuple[Let, ...], Store], Stmt]


def branches_of(block: ScheduleBlock, what: str) -> Store | None:
    """One of the Stores of a block with branches, which all store the same element; None for one without branches."""
    if not any(isinstance(x, IfThenElse) for x in statements(block.body)):
        return None
    stores = [x for x in statements(block.body) if isinstance(x, Store)]
    finals = _finals(block.body)
    if finals is None or len(finals) != len(stores) or len({(x.buffer, x.index) for x in stores}) != 1:
        raise ScheduleError(f"{what}: expected every branch of {block.name} to store the same element")
    return stores[0]


def _finals(s: Stmt) -> list[Stmt] | None:
    """The last statements of all branches; None where there is a condition without an else."""
    *_, last = flattened(s)
    if not isinstance(last, IfThenElse):
        return [last]
    if last.orelse is None:
        return None
    then, orelse = _finals(last.then), _finals(last.orelse)
    return None if then is None or orelse is None else then + orelse


def inlined(reader: ScheduleBlock, block: ScheduleBlock, store: Store, position: list[str], put: Put,
            what: str) -> ScheduleBlock:
    """The reader with the branches of `block` around copies of its body."""
    found = {e.index for whole in expressions(reader.body) for e in walk(whole)
             if isinstance(e, Load) and e.buffer == store.buffer}
    own = {v.name for v in reader.iter_vars}
    if len(found) != 1 or not all(names(i) <= own for i in next(iter(found))):
        raise ScheduleError(f"{what}: expected {reader.name} to read {store.buffer} at one place, which its iter vars "
                            "tell")
    values = dict(zip(position, found.pop(), strict=True))
    body = _around(reader.body, block.body, (), values, put)
    if sum(isinstance(x, IfThenElse) for x in statements(body)) >= MOST_ARMS:
        raise ScheduleError(f"{what}: {reader.name} would have more than {MOST_ARMS} branches")
    return replace(reader, body=body)


def _around(body: Stmt, made: Stmt, before: tuple[Let, ...], values: dict[str, Expr], put: Put) -> Stmt:
    """The body of the reader inside the branches of `made`.   before: the Lets on the way to these."""
    *lets, last = flattened(made)
    before = (*before, *(x for x in lets if isinstance(x, Let)))
    if isinstance(last, Store):
        return put(body, before, last)
    assert isinstance(last, IfThenElse) and last.orelse is not None
    known = dict(values)
    for let in before:
        known[let.name] = substitute(let.value, known)
    cond = substitute(last.cond, known)
    return IfThenElse(cond, _around(_where(body, cond, True), last.then, before, values, put),
                      _around(_where(body, cond, False), last.orelse, before, values, put))


def _where(body: Stmt, cond: Expr, holds: bool) -> Stmt:
    """A body where a condition is known to hold, or not to."""
    *lets, last = flattened(body)
    if not isinstance(last, IfThenElse):
        return body
    if last.cond == cond:
        chosen = last.then if holds else last.orelse
        return seq((*lets, *flattened(_where(chosen, cond, holds)))) if chosen is not None else body
    orelse = None if last.orelse is None else _where(last.orelse, cond, holds)
    return seq((*lets, replace(last, then=_where(last.then, cond, holds), orelse=orelse)))
