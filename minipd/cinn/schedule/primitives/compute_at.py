"""`compute_at` and `reverse_compute_at`: a block goes into a loop of another nest, where it runs over as much as is
needed there.

Its iter vars are told by the elements that the blocks in the loop touch.  An index such as i_0 * 64 + i_1, of which the
loop is i_0, gives i_0 * 64 and a new loop over 64.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from minipd.cinn.ir.ast import Expr, For, Function, Reduce, ScheduleBlock, Seq, Stmt, Store, Var
from minipd.cinn.ir.build import binary, seq
from minipd.cinn.ir.walk import flattened, names, statements
from minipd.cinn.schedule.affine import Poly, bounds_of, poly
from minipd.cinn.schedule.dependences import conflicts, met, met_in, precedes, touch
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.nests import Access, Nests, inside, unconditional
from minipd.cinn.schedule.primitives.simple_compute_at import check_order

__all__ = ["compute_at", "reverse_compute_at"]


@dataclass(frozen=True)
class Range:
    """An iter var runs over `size` values from `first` on; size None: first is its only value."""

    first: Poly
    size: Poly | None = None


def compute_at(nests: Nests, block: str, loop: str) -> tuple[Function, None]:
    """The block computes, at the start of each iteration of `loop`, the elements that are read in it.

    Needs: all that reads what the block writes is in the loop; what the block reads is final before the loop's nest, or
    where the block then is; and a block that does not simply store runs once for each element.

        for (i, 0, n) { A { t[i] = f(x[i]) } }              for (i, 0, n) { A { t[i] = f(x[i]) }
        for (i, 0, n) { B { y[i] = t[i] + t[i] } }                          B { y[i] = t[i] + t[i] } }
    """
    what = f"compute_at({block}, {loop})"
    stmt, target = _found(nests, block, loop, what)
    write = next(a for a in nests.accesses(block) if a.op is not None)
    if write.buffer not in nests.allocs:
        raise ScheduleError(f"{what}: {write.buffer} is an output, which has to be written in full")
    users = {b.name for b in inside(target)}
    others = sorted({a.block for a in nests.reads(write.buffer)} - users - {block})
    if others:
        raise ScheduleError(f"{what}: {', '.join(others)} reads {write.buffer} too, outside of {loop}")
    reads = [a for a in nests.reads(write.buffer) if a.block in users]
    if not reads:
        raise ScheduleError(f"{what}: nothing in {loop} reads {write.buffer}")
    ranges = _ranges(nests, stmt, write, reads, loop)
    return _moved(nests, stmt, target, ranges, True, what), None


def reverse_compute_at(nests: Nests, block: str, loop: str) -> tuple[Function, None]:
    """The block goes on, at the end of each iteration of `loop`, with the elements that have been made in it.

    Needs: a block in the loop that fills a buffer which the block reads, at an index of its iter vars; all that the
    block reads is final by then; and a block that does not simply store runs once for each element.

        for (i, 0, n) { for (j, 0, m) { A { t[i, j] } }}        for (i, 0, n) { for (j, 0, m) { A { t[i, j] } }
        for (i, 0, n) { for (j, 0, m) { B { y[i, j] } }}                        for (j, 0, m) { B { y[i, j] } }}
    """
    what = f"reverse_compute_at({block}, {loop})"
    stmt, target = _found(nests, block, loop, what)
    made = [w for b in inside(target) if _fills(b) for w in nests.accesses(b.name) if w.op is not None]
    for r in nests.accesses(block):
        for w in made:
            if r.op is None and r.buffer == w.buffer:
                return _moved(nests, stmt, target, _ranges(nests, stmt, r, [w], loop), False, what), None
    raise ScheduleError(f"{what}: {block} reads nothing that is written in {loop}")


def _fills(block: ScheduleBlock) -> bool:
    """Whether a block writes one element for each combination of its spatial iter vars, so that it fills a buffer: its
    predicate leaves out only what lies outside."""
    stores = [s for s in statements(block.body) if isinstance(s, Store | Reduce)]
    index = [i.name if isinstance(i, Var) else "" for i in stores[0].index]
    return sorted(index) == sorted(v.name for v in block.iter_vars if v.kind == "S")


def _found(nests: Nests, block: str, loop: str, what: str) -> tuple[ScheduleBlock, For]:
    target, stmt = nests.loop(loop, what), nests.block(block, what)
    if target in nests.blocks[block].around:
        raise ScheduleError(f"{what}: {block} is in {loop} already")
    if stmt.predicate is not None:
        raise ScheduleError(f"{what}: {block} has a predicate; move it before its loops are split")
    if any(x.kind != "serial" for x in nests.blocks[block].around):
        raise ScheduleError(f"{what}: expected serial loops around {block}; do this first")
    return stmt, target


def _ranges(nests: Nests, stmt: ScheduleBlock, own: Access, others: Iterable[Access], loop: str) -> dict[str, Range]:
    """The iter vars of a block that the elements touched by others in the loop tell; missing ones run over all.

    own: an access of the block; those of its axes that are an iter var each tell that one.
    """
    line = {x.var for x in nests.loops[loop].around} | {loop}
    here = {value.name: v.name for v, value in zip(stmt.iter_vars, stmt.iter_values, strict=True)
            if isinstance(value, Var)}
    found: dict[str, Range] = {}
    for axis, p in enumerate(own.index):
        only = None if p is None else p.expr
        if not isinstance(only, Var) or only.name not in here:
            continue
        ranges = {_range(nests, a.index[axis], line) for a in others}
        if len(ranges) == 1 and None not in ranges:
            found[here[only.name]] = ranges.pop()  # type: ignore[assignment]
    return found


def _range(nests: Nests, p: Poly | None, line: set[str]) -> Range | None:
    """What an index runs over within an iteration of the loops `line`."""
    if p is None:
        return None
    outer = Poly({m: c for m, c in p.terms.items() if set().union(*map(names, m)) <= line})
    inner = p - outer
    if not inner.terms:
        return Range(outer)
    between = bounds_of(inner, {v: n for v, n in nests.extents.items() if v not in line})
    if between is None or not line & outer.names:
        return None
    return Range(outer + between[0], between[1] - between[0] + Poly.number(1))


def _moved(nests: Nests, stmt: ScheduleBlock, target: For, ranges: dict[str, Range], first: bool,
           what: str) -> Function:
    """The block in the loop, at its start or its end, with new loops over what `ranges` leaves open."""
    values: list[Expr] = []
    loops: list[tuple[str, Expr]] = []
    predicate: Expr | None = None
    for v in stmt.iter_vars:
        known = ranges.get(v.name)
        position = Poly({}) if known is None else known.first
        if known is None or known.size is not None:
            name = nests.unused(f"{v.name.removeprefix('v')}_{stmt.name}_at", *(n for n, _ in loops))
            loops.append((name, v.extent if known is None or known.size is None else known.size.expr))
            position = position + Poly.atom(Var(name))
        value = position.expr
        values.append(value)
        for condition in [] if known is None else _bounded(nests, position, dict(loops), v.extent):
            predicate = condition if predicate is None else binary("and", predicate, condition)
    new: Stmt = replace(stmt, iter_values=tuple(values), predicate=predicate)
    for name, extent in reversed(loops):
        new = For(name, extent, new)
    body = flattened(target.body)
    host = replace(target, body=seq((new, *body) if first else (*body, new)))
    needed = [] if first else _needed(nests, stmt, target)
    edits: dict[int, list[Stmt]] = {id(stmt): [], id(target): [host], **{id(s): [] for s in needed}}
    after = Nests(nests.edited(edits), nests.cache)
    if needed:
        at = nests.loops[target.var].path[0]
        after = Nests(replace(after.function, body=Seq((*after.heads, *after.nests[:at], *needed, *after.nests[at:]))),
                      nests.cache)
        check_order(nests, after, {b.name for s in needed for b in inside(s)}, frozenset(), what)
    _check(nests, after, stmt, {b.name for b in inside(target)} if first else set(), what)
    return after.function


def _needed(nests: Nests, stmt: ScheduleBlock, target: For) -> list[Stmt]:
    """The nests between the target's and the block's that have to come before the block: the start of its reduction."""
    moving, found = {stmt.name}, []
    for s in reversed(nests.nests[nests.loops[target.var].path[0] + 1:nests.blocks[stmt.name].path[0]]):
        own = {b.name for b in inside(s)}
        if next(conflicts(nests, moving, own), None):
            moving |= own
            found.append(s)
    return found[::-1]


def _check(old: Nests, new: Nests, stmt: ScheduleBlock, users: set[str], what: str) -> None:
    """users: blocks that read what the block stores in the same iteration of the loop.  That it is stored again later,
    the same as before, does them no harm."""
    parts = unconditional(stmt)
    again = parts is not None and isinstance(parts[1], Store) and len(old.writes(parts[1].buffer)) == 1
    around, folded = new.blocks[stmt.name].around, _folded(new, stmt.name)
    for x in around:
        meeting = x.kind not in ("serial", "unroll") and next(met_in(new, x.var, [stmt.name], True), None)
        if meeting:
            raise ScheduleError(f"{what}: iterations of {x.var}, which is {x.kind}, would meet in {meeting[0].buffer}")
    for a in new.accesses(stmt.name):
        apart = met(new, a, a).apart
        if a.op is not None and not again and any(apart.get(x.var) != 0 and new.extents[x.var].constant != 1
                                                  and x.var not in folded for x in around):
            raise ScheduleError(f"{what}: {stmt.name} would run more than once for an element of {a.buffer}")
        for b in new.by_buffer[a.buffer]:
            if b.block == stmt.name or not touch(a, b) or (again and a.op is not None and b.block in users):
                continue
            one, two = (a, b) if old.blocks[a.block].path < old.blocks[b.block].path else (b, a)
            if not precedes(new, one, two):
                raise ScheduleError(f"{what}: {one.does} {a.buffer}, and {two.does} it after that; it would not "
                                    "come after that any more")


def _folded(nests: Nests, block: str) -> set[str]:
    """The loops that only the reduced iter vars of a block depend on."""
    stmt = nests.block(block, "")
    kinds: dict[str, set[str]] = {"S": set(), "R": set()}
    for v, value in zip(stmt.iter_vars, stmt.iter_values, strict=True):
        kinds[v.kind] |= names(value)
    return kinds["R"] - kinds["S"]


def _bounded(nests: Nests, position: Poly, loops: dict[str, Expr], extent: Expr) -> list[Expr]:
    """What is to be asked so that a position lies within an extent, unless that is seen.  The blocks around, too, may
    have a predicate that leaves out what lies outside, at either end where they go backwards."""
    own = {name: p for name, n in loops.items() if (p := poly(n, {}, {})) is not None}
    between, size = bounds_of(position, {**nests.extents, **own}), poly(extent, {}, {})
    asked: list[Expr] = []
    if between is None or not between[0].is_natural:
        asked.append(binary("ge", position.expr, 0))
    if between is None or size is None or not (size - Poly.number(1) - between[1]).is_natural:
        asked.append(binary("lt", position.expr, extent))
    return asked
