"""`simple_compute_at`: two nests over the same iterations become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from minipd.cinn.ir.ast import Expr, For, Function, Stmt, Var
from minipd.cinn.ir.build import seq
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.walk import flattened
from minipd.cinn.schedule.dependences import conflicts, precedes, touch
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.nests import Access, Nests, inside, with_values

__all__ = ["check_order", "simple_compute_at"]


def simple_compute_at(nests: Nests, block: str, loop: str) -> tuple[Function, None]:
    """What is in the nest of `block` goes to the end of the body of `loop`; its outer loops are then `loop` and those
    around it.

    What stands between the two nests and has to come before `block` moves in front of the loop's nest.

    Needs: the loops of `block`, from the first one that `loop`'s nest does not share, are perfectly nested, serial and
    of the same extents as those of `loop`; and whoever touches an element that the block writes still does so in the
    same order.

        for (i, 0, n) { A[i] }  for (k, 0, n) { B[k] }          for (i, 0, n) { A[i]  B[i] }
    """
    what = f"simple_compute_at({block}, {loop})"
    target = nests.loop(loop, what)
    nests.block(block, what)
    line = [*nests.loops[loop].around, target]
    own = nests.blocks[block].around
    shared = 0
    while shared < min(len(line), len(own)) and line[shared] is own[shared]:
        shared += 1
    if shared == len(line):
        raise ScheduleError(f"{what}: {block} is in {loop} already")
    if len(own) < len(line):
        raise ScheduleError(f"{what}: expected at least the {len(line)} loops that lead to {loop} around {block}, it "
                            f"has {len(own)}: {', '.join(x.var for x in own) or 'none'}; reverse_compute_at makes up "
                            "for loops that are missing")
    pairs = list(zip(line[shared:], own[shared:], strict=False))
    for host, guest in pairs:
        if host.extent != guest.extent or host.kind != "serial" or guest.kind != "serial":
            raise ScheduleError(f"{what}: expected serial loops of one extent, got {_head(host)} and {_head(guest)}")
    for (_, guest), (_, inner) in zip(pairs, pairs[1:], strict=False):
        found = flattened(guest.body)
        if len(found) != 1 or found[0] is not inner:
            raise ScheduleError(f"{what}: {guest.var} has more in it than {inner.var}")
    names: dict[str, Expr] = {guest.var: Var(host.var) for host, guest in pairs}
    moved = flattened(with_values(pairs[-1][1].body, names, nests.extents))
    new_host: Stmt = replace(target, body=seq((*flattened(target.body), *moved)))
    for (host, _), (inner, _) in reversed(list(zip(pairs, pairs[1:], strict=False))):
        new_host = replace(host, body=seq(new_host if x is inner else x for x in flattened(host.body)))
    siblings = list(flattened(own[shared - 1].body)) if shared else nests.nests
    order, moving = _arranged(nests, siblings, pairs[0], new_host)
    if shared:
        around = own[shared - 1]
        function = nests.edited({id(around): [replace(around, body=seq(order))]})
    else:
        function = replace(nests.function, body=seq((*nests.heads, *order)))
    check_order(nests, Nests(function, nests.cache), moving, frozenset(x.var for x in line[:shared]), what)
    return function, None


def _head(loop: For) -> str:
    return f"{loop.kind} ({loop.var}, 0, {text(loop.extent)})"


def _arranged(nests: Nests, siblings: Sequence[Stmt], pair: tuple[For, For],
              new_host: Stmt) -> tuple[list[Stmt], set[str]]:
    """The statements around both nests, without the guest's: what this needs moves in front of the host.  And the
    blocks that move."""
    host, guest = pair
    at, of = _index(siblings, host), _index(siblings, guest)
    moving = {b.name for b in inside(guest)}
    if of < at:
        return [new_host if x is host else x for x in siblings if x is not guest], moving
    needed: list[Stmt] = []
    others: list[Stmt] = []
    fixed = frozenset(x.var for x in nests.loops[host.var].around)
    for s in reversed(siblings[at + 1:of]):
        blocks = [b.name for b in inside(s)]
        if next(conflicts(nests, moving, blocks, fixed), None):
            needed.insert(0, s)
            moving.update(blocks)
        else:
            others.insert(0, s)
    return [*siblings[:at], *needed, new_host, *others, *siblings[of + 1:]], moving


def _index(stmts: Sequence[Stmt], wanted: Stmt) -> int:
    return next(n for n, s in enumerate(stmts) if s is wanted)


def check_order(old: Nests, new: Nests, moved: set[str], fixed: frozenset[str], what: str) -> None:
    """Refuse unless what blocks did one after the other within an iteration of the `fixed` loops is still done so.

    moved: blocks that were in one statement of the sequence inside these loops.   In the old function, the order of
    statements there decides who is first.
    """
    depth = len(fixed)
    for buffer, accesses in new.by_buffer.items():
        mine = [a for a in accesses if a.block in moved]
        for a in mine:
            for b in accesses:
                if b.block in moved or not touch(a, b) or not _together(old, a, b, depth):
                    continue
                first, second = (a, b) if old.blocks[a.block].path < old.blocks[b.block].path else (b, a)
                if not precedes(new, first, second, fixed):
                    raise ScheduleError(f"{what}: {first.does} {buffer}, and {second.does} it after that; it would "
                                        "not come after that any more")


def _together(old: Nests, a: Access, b: Access, depth: int) -> bool:
    """Whether both blocks are in the loops that the first `depth` numbers of their paths lead through."""
    return old.blocks[a.block].path[:depth] == old.blocks[b.block].path[:depth]
