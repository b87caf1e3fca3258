"""Primitives that cut, join and swap loops: `split`, `split_evenly`, `fuse`, `reorder`, `add_unit_loop`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from minipd.cinn.ir.ast import Alloc, Const, Expr, For, Function, Let, ScheduleBlock, Stmt, Var
from minipd.cinn.ir.build import binary, index
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.simplify import simplify_expression
from minipd.cinn.ir.walk import flattened, map_bodies
from minipd.cinn.schedule.affine import Poly, poly
from minipd.cinn.schedule.dependences import met, touch
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.nests import Nests, inside, with_values

__all__ = ["add_unit_loop", "fuse", "reorder", "split", "split_evenly"]


def split(nests: Nests, loop: str, factors: Sequence[int]) -> tuple[Function, list[str]]:
    """A loop as several ones, of these extents from outside in; one of them may be -1: what it takes.

    Where the extents don't come out even, the blocks get a predicate.   Needs: a serial loop.

        for (i, 0, 100) { A[i] }        for (i_0, 0, 7) { for (i_1, 0, 16) { where (i_0 * 16 + i_1 < 100) A[...] }}
    """
    what = f"split({loop}, {list(factors)})"
    old = _serial(nests, loop, what)
    known = [f for f in factors if f != -1]
    if len(factors) < 2 or len(known) < len(factors) - 1 or any(f < 1 for f in known):
        raise ScheduleError(f"{what}: expected two or more extents of at least 1, of which one may be -1")
    product = math.prod(known)
    extents: list[Expr] = [index(f) for f in factors]
    if len(known) < len(factors):
        extents[list(factors).index(-1)] = _ceil_div(old.extent, index(product))
        even = _even(old.extent, product)
    else:
        if not isinstance(old.extent, Const) or old.extent.value > product:
            raise ScheduleError(f"{what}: {product} iterations are too few for an extent of {text(old.extent)}; "
                                "let one of the extents be -1")
        even = old.extent.value == product
    return _split(nests, old, extents, even)


def split_evenly(nests: Nests, loop: str, parts: int, at_least: int = 1,
                 at_most: int | None = None) -> tuple[Function, list[str]]:
    """A loop as one over chunks and one over the iterations of a chunk; how many, the extent says alone.

    There are `parts` chunks, or fewer, so that each has `at_least` so many iterations, or more, so that none has more
    than `at_most`.  Where the extent is known only when the function runs, Lets at the top compute both numbers; loops
    of one extent that are split alike share them.   Needs: a serial loop.
    """
    numbers = f"{parts}, at_least={at_least}, at_most={at_most}"
    what = f"split_evenly({loop}, {numbers})"
    old = _serial(nests, loop, what)
    if parts < 1 or at_least < 1 or (at_most is not None and at_most < at_least):
        raise ScheduleError(f"{what}: expected 1 <= parts and 1 <= at_least <= at_most")
    per = _ceil_div(old.extent, index(parts))
    if at_most is not None:
        per = binary("min", per, at_most)
    heads = list(nests.heads)
    letter = loop.split("_")[0]
    size = _named(nests, heads, f"{letter}_size", simplify_expression(binary("max", per, at_least)))
    chunks = _named(nests, heads, f"{letter}_chunks", _ceil_div(old.extent, size))
    even = isinstance(size, Const) and _even(old.extent, int(size.value))
    return _split(nests, old, [chunks, size], even, heads)


def _named(nests: Nests, heads: list[Let | Alloc], name: str, value: Expr) -> Expr:
    """A number as it is; anything else as a Let at the top, of which there may be one already."""
    if isinstance(value, Const):
        return value
    for head in heads:
        if isinstance(head, Let) and head.value == value:
            return Var(head.name)
    name = nests.unused(name, *(x.name for x in heads if isinstance(x, Let)))
    heads.append(Let(name, value))
    return Var(name)


def _split(nests: Nests, old: For, extents: list[Expr], even: bool,
           heads: Sequence[Stmt] | None = None) -> tuple[Function, list[str]]:
    names = [nests.unused(f"{old.var}_{k}") for k in range(len(extents))]
    known = dict(nests.extents)
    position = Poly({})
    for name, extent in zip(names, extents, strict=True):
        size = poly(extent, {}, {})
        assert size is not None
        known[name] = size
        position = position * size + Poly.atom(Var(name))
    body = with_values(old.body, {old.var: position.expr}, known)
    if not even:
        body = _where(body, binary("lt", position.expr, old.extent))
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = For(name, extent, body)
    assert isinstance(body, For)
    new = replace(body, annotations=old.annotations)
    return nests.edited({id(old): [new]}, heads), names


def _where(s: Stmt, predicate: Expr) -> Stmt:
    """s with one more condition on each block in it."""
    if isinstance(s, ScheduleBlock):
        return replace(s, predicate=predicate if s.predicate is None else binary("and", s.predicate, predicate))
    return map_bodies(lambda x: _where(x, predicate), s)


def fuse(nests: Nests, loops: Sequence[str]) -> tuple[Function, str]:
    """Loops, each the only thing in the one before, as a single one.   Needs: serial loops.

        for (i, 0, 8) { for (j, 0, 5) { A[i, j] }}      for (i_fused, 0, 40) { A[i_fused // 5, i_fused % 5] }
    """
    what = f"fuse({', '.join(loops)})"
    if len(loops) < 2:
        raise ScheduleError(f"{what}: expected two or more loops")
    chain = [_serial(nests, loop, what) for loop in loops]
    for outer, inner in zip(chain, chain[1:], strict=False):
        _only(outer, inner, what)
    name = nests.unused(f"{loops[0]}_fused")
    rest: Poly = Poly.atom(Var(name))
    total: Expr = index(1)
    for loop in chain:
        total = simplify_expression(binary("mul", total, loop.extent))
    size = poly(total, {}, {})
    assert size is not None
    known = {**nests.extents, name: size}
    values: dict[str, Expr] = {}
    for loop in reversed(chain[1:]):
        for part, op in ((loop.var, "mod"), (None, "floordiv")):
            found = poly(binary(op, rest.expr, loop.extent), {}, known)
            assert found is not None
            if part is not None:
                values[part] = found.expr
            else:
                rest = found
    values[chain[0].var] = rest.expr
    new = For(name, total, with_values(chain[-1].body, values, known), annotations=chain[0].annotations)
    return nests.edited({id(chain[0]): [new]}), name


def reorder(nests: Nests, loops: Sequence[str]) -> tuple[Function, None]:
    """The loops in this order, from outside in; others between them stay where they are.

    Needs: from the outermost to the innermost of them, each loop is the only thing in the one before; and no element is
    touched in another order, unless all that is done to it is to add up.
    """
    what = f"reorder({', '.join(loops)})"
    if len(set(loops)) != len(loops) or len(loops) < 2:
        raise ScheduleError(f"{what}: expected two or more different loops")
    old = [_serial(nests, loop, what) for loop in loops]
    deepest = max(loops, key=lambda loop: len(nests.loops[loop].path))
    line = [*nests.loops[deepest].around, nests.loop(deepest, what)]
    for loop in old:
        if loop not in line:
            raise ScheduleError(f"{what}: {loop.var} is not one of the loops around {deepest}: "
                                f"{', '.join(x.var for x in line)}")
    chain = [_serial(nests, x.var, what) for x in line[min(map(line.index, old)):]]
    for outer, inner in zip(chain, chain[1:], strict=False):
        _only(outer, inner, what)
    order = iter(old)
    new = [next(order) if loop in old else loop for loop in chain]
    _check_order(nests, [x.var for x in chain], [x.var for x in new], what)
    body = chain[-1].body
    for loop in reversed(new):
        body = replace(loop, body=body)
    return nests.edited({id(chain[0]): [body]}), None


def _check_order(nests: Nests, old: list[str], new: list[str], what: str) -> None:
    """Refuse if two instances that touch one element might swap: if they may differ in two loops that swap."""
    fixed = frozenset(loop.var for loop in nests.loops[old[0]].around)
    blocks = {b.name for b in inside(nests.loops[old[-1]].stmt)}
    for name in blocks:
        for a in nests.accesses(name):
            for b in nests.by_buffer[a.buffer] if a.op is not None else ():
                if b.block not in blocks or not touch(a, b):
                    continue
                found = met(nests, a, b, fixed)
                free = [v for v in old if found.apart.get(v) != 0 and nests.extents[v].constant != 1]
                if not found.never and free != [v for v in new if v in free]:
                    raise ScheduleError(f"{what}: iterations of {', '.join(free)} meet in {a.buffer}, which {a.block} "
                                        f"writes" + (f" and {b.block} touches" if b.block != a.block else ""))


def add_unit_loop(nests: Nests, block: str) -> tuple[Function, str]:
    """A loop of one iteration right around a block."""
    old = nests.block(block, f"add_unit_loop({block})")
    name = nests.unused(f"unit_{block}")
    return nests.edited({id(old): [For(name, index(1), old)]}), name


# ------------------------------------------------------------------------------------------------------- the rest
def _serial(nests: Nests, loop: str, what: str) -> For:
    found = nests.loop(loop, what)
    if found.kind != "serial":
        raise ScheduleError(f"{what}: expected a serial loop, {loop} is {found.kind} already; do this first")
    return found


def _only(outer: For, inner: For, what: str) -> None:
    """Refuse if there is anything else in the outer loop."""
    found = flattened(outer.body)
    if len(found) != 1 or found[0] is not inner:
        there = [x.var if isinstance(x, For) else getattr(x, "name", "a barrier") for x in found]
        raise ScheduleError(f"{what}: expected {inner.var} to be all that is in {outer.var}; there is "
                            f"{', '.join(there)}")


def _ceil_div(n: Expr, size: Expr) -> Expr:
    return simplify_expression(binary("floordiv", binary("add", n, binary("sub", size, 1)), size))


def _even(extent: Expr, size: int) -> bool:
    """Whether an extent is seen to be a multiple."""
    p = poly(extent, {}, {})
    return p is not None and all(c % size == 0 for c in p.terms.values())
