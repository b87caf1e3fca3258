"""`rfactor`: a reduction in two steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from minipd.cinn.ir.ast import (
    Alloc,
    Expr,
    For,
    Function,
    IterVar,
    Let,
    Load,
    Reduce,
    ScheduleBlock,
    Seq,
    Stmt,
    Store,
    Var,
)
from minipd.cinn.ir.build import conjunction, identity
from minipd.cinn.ir.walk import conjuncts, flattened, map_statements, names, statements, substitute
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.nests import Nests, inside

__all__ = ["rfactor"]


def rfactor(nests: Nests, loop: str) -> tuple[Function, str]:
    """Each iteration of the loop gets a partial result of its own: block x becomes x_rf, which makes these, and x,
    which combines them.  The start of x_rf comes first of all in the function.

    Needs: a loop that one reduction folds, and nothing but that reduction in the nest around it.

        for (k, 0, 4) { for (i, 0, 8) {         for (k, 0, 4) { x_rf__reduce_init { x_rf[k] = 0 } }
            x { x += a[k, i] } } }              for (k, 0, 4) { for (i, 0, 8) { x_rf { x_rf[k] += a[k, i] } } }
                                                for (k, 0, 4) { x { x += x_rf[k] } }
    """
    what = f"rfactor({loop})"
    target = nests.loop(loop, what)
    line = [*nests.loops[loop].around, target]
    top = line[0]
    found = list(inside(top))
    if len(found) != 1:
        raise ScheduleError(f"{what}: expected one reduction in the nest, there are {', '.join(b.name for b in found)}")
    block = found[0]
    reduces = {(x.buffer, x.index, x.op): x for x in statements(block.body) if isinstance(x, Reduce)}
    if len(reduces) != 1:                       # in each arm of a block with branches the same
        raise ScheduleError(f"{what}: {block.name} is no reduction")
    reduce, = reduces.values()
    if reduce.buffer not in nests.allocs:
        raise ScheduleError(f"{what}: {reduce.buffer} is an output; expected a temporary")
    loops = nests.blocks[block.name].around
    around = {x.var for x in loops}
    folded = {n for v, value in zip(block.iter_vars, block.iter_values, strict=True) if v.kind == "R"
              for n in names(value) & around}
    spatial = {n for v, value in zip(block.iter_vars, block.iter_values, strict=True) if v.kind == "S"
               for n in names(value) & around}
    if loop not in folded or loop in spatial:
        raise ScheduleError(f"{what}: {block.name} does not fold that loop")
    # a loop that is all of an axis is no such case: each of its iterations has elements of its own
    alone = {value.name for v, value in zip(block.iter_vars, block.iter_values, strict=True)
             if v.kind == "S" and isinstance(value, Var)}
    if mixed := [x.var for x in loops if x.var in folded & spatial - alone]:
        raise ScheduleError(f"{what}: {block.name} folds {', '.join(mixed)}, and keeps elements along it too; expected "
                            "loops that are fused of one kind: do this before you fuse them")
    part = nests.unused(f"{block.name}_rf")
    start = f"{part}__reduce_init"
    alloc = nests.allocs[reduce.buffer]
    at = nests.unused(f"v{loop}")
    where = (Var(at), *reduce.index)
    dtype = reduce.value.dtype

    iter_vars, values = list(block.iter_vars), list(block.iter_values)
    whole = next((k for k, value in enumerate(values) if value == Var(loop)), None)
    if whole is not None:                       # the loop is all of an iter var, which is no longer folded
        old = iter_vars[whole]
        where = (Var(old.name), *reduce.index)
        iter_vars[whole] = IterVar(old.name, old.extent, "S")
    else:
        iter_vars.insert(0, IterVar(at, target.extent, "S"))
        values.insert(0, Var(loop))

    def redirected(s: Stmt) -> Stmt:
        return Reduce(part, where, s.op, s.value) if isinstance(s, Reduce) else s
    first = replace(block, name=part, iter_vars=tuple(iter_vars), iter_values=tuple(values),
                    body=map_statements(redirected, block.body))

    kept = [x for x in loops if x.var in spatial or x is target]
    own = [(v, value) for v, value in zip(block.iter_vars, block.iter_values, strict=True) if v.kind == "S"]
    # what asks where the reduction ends is asked no more: every partial result has a start, and is combined
    asked = [] if block.predicate is None else conjuncts(block.predicate)
    kept_conditions = [e for e in asked if names(e) & around <= spatial]
    predicate = conjunction(kept_conditions) if kept_conditions else None

    def nest(name: str, kind: str, body: Stmt) -> Stmt:
        new: dict[str, Expr] = {x.var: Var(nests.unused(f"{x.var}_{name}")) for x in kept}
        position = IterVar(at, target.extent, "R" if kind == "R" else "S")
        made: Stmt = ScheduleBlock(
            name, (position, *(v for v, _ in own)), (new[loop], *(substitute(value, new) for _, value in own)), body,
            None if predicate is None else substitute(predicate, new))
        return _around(made, kept, new)
    value = Load(part, (Var(at), *reduce.index), dtype)
    init = nest(start, "S", Store(part, (Var(at), *reduce.index), identity(reduce.op, dtype)))
    last = nest(block.name, "R", Reduce(reduce.buffer, reduce.index, reduce.op, value))
    heads = [*nests.heads, Alloc(part, (target.extent, *alloc.shape), dtype)]
    function = nests.edited({id(top): [_replaced(top, block, first), last]}, heads)
    assert isinstance(function.body, Seq)
    at_top = sum(isinstance(x, Let | Alloc) for x in function.body.stmts)
    stmts = function.body.stmts
    return replace(function, body=Seq((*stmts[:at_top], init, *stmts[at_top:]))), part


def _around(body: Stmt, loops: Sequence[For], new: dict[str, Expr]) -> Stmt:
    for x in reversed(loops):
        name = new[x.var]
        assert isinstance(name, Var)
        body = For(name.name, x.extent, body)
    return body


def _replaced(s: Stmt, old: ScheduleBlock, new: ScheduleBlock) -> Stmt:
    if s is old:
        return new
    assert isinstance(s, For)
    inner, = flattened(s.body)
    return replace(s, body=_replaced(inner, old, new))
