"""A function in block form with its loops and blocks by name, and how to edit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from minipd.cinn.ir.ast import (
    Alloc,
    Binary,
    Expr,
    For,
    Function,
    IfThenElse,
    Let,
    Load,
    Reduce,
    ScheduleBlock,
    Seq,
    Stmt,
    Store,
)
from minipd.cinn.ir.build import seq
from minipd.cinn.ir.walk import flattened, map_bodies, map_children, statements, substitute, walk
from minipd.cinn.schedule.affine import Poly, normal, poly
from minipd.cinn.schedule.errors import ScheduleError

__all__ = ["Access", "Cache", "Nests", "Place", "inside", "unconditional", "with_values"]


@dataclass(frozen=True, slots=True)
class Access:
    """That a block touches an element of a buffer.

    index: in terms of the loops around the block; None for an axis where it depends on data.
    op: None for a read, "=" for a store, the operation of a Reduce.
    """

    block: str
    buffer: str
    index: tuple[Poly | None, ...]
    op: str | None

    @property
    def does(self) -> str:
        """Who touches it, and how, in words."""
        return f"{self.block} {'reads' if self.op is None else 'writes' if self.op == '=' else 'adds to'}"


#: the accesses of blocks, by id; the block is kept, so that no other one gets its id
Cache = dict[int, tuple[ScheduleBlock, tuple[Access, ...]]]


class Place(NamedTuple):
    """A loop or a block, the loops around it from outside in, and its position: in each of the sequences on the way."""

    stmt: For | ScheduleBlock
    around: tuple[For, ...]
    path: tuple[int, ...]


def inside(s: Stmt) -> Iterator[ScheduleBlock]:
    """The blocks in s, in order."""
    if isinstance(s, ScheduleBlock):
        yield s
    elif isinstance(s, For | Seq):
        for x in flattened(s.body if isinstance(s, For) else s):
            yield from inside(x)


class Nests:
    """loops, blocks: their places.   kinds: of all loops.   extents: of all loops, as polynomials.   cache: shared
    between functions that share blocks."""

    def __init__(self, function: Function, cache: Cache | None = None):
        self.function = function
        self.cache: Cache = {} if cache is None else cache
        self.loops: dict[str, Place] = {}
        self.blocks: dict[str, Place] = {}
        self.kinds: set[str] = set()
        #: in which of the nests a statement is, by its id
        self.top: dict[int, int] = {}
        self.heads: list[Let | Alloc] = []
        self.nests: list[Stmt] = []
        for x in flattened(function.body):
            if isinstance(x, Let | Alloc):
                self.heads.append(x)
            else:
                self.nests.append(x)
        self.top.update((id(x), n) for n, x in enumerate(self.nests))
        self._visit(self.nests, (), ())

    def _visit(self, stmts: Sequence[Stmt], around: tuple[For, ...], path: tuple[int, ...]) -> None:
        for n, s in enumerate(stmts):
            if isinstance(s, For):
                here = (*path, n)
                self.loops[s.var] = Place(s, around, here)
                self.kinds.add(s.kind)
                self.top[id(s)] = here[0]
                self._visit(flattened(s.body), (*around, s), here)
            elif isinstance(s, ScheduleBlock):
                self.blocks[s.name] = Place(s, around, (*path, n))
                self.top[id(s)] = path[0] if path else n

    # ---------------------------------------------------------------------------------------------------- finding
    def loop(self, name: str, what: str) -> For:
        """The loop of that name.   Raises: ScheduleError, on behalf of the primitive `what`."""
        if name not in self.loops:
            raise ScheduleError(f"{what}: no loop {name!r} in {self.function.name}; "
                                f"there are {', '.join(self.loops) or 'none'}")
        loop = self.loops[name].stmt
        assert isinstance(loop, For)
        return loop

    def block(self, name: str, what: str) -> ScheduleBlock:
        """The block of that name.   Raises: ScheduleError, on behalf of the primitive `what`."""
        if name not in self.blocks:
            raise ScheduleError(f"{what}: no block {name!r} in {self.function.name}; there are "
                                f"{', '.join(self.blocks) or 'none'}")
        block = self.blocks[name].stmt
        assert isinstance(block, ScheduleBlock)
        return block

    def loops_of(self, block: str) -> tuple[str, ...]:
        """The loops around a block, from outside in."""
        return tuple(loop.var for loop in self.blocks[block].around)

    @cached_property
    def extents(self) -> dict[str, Poly]:
        return {name: _extent(place.stmt.extent) for name, place in self.loops.items()}  # type: ignore[union-attr]

    @cached_property
    def alone(self) -> dict[str, Poly]:
        """The only value of variables of loops with one iteration."""
        return {v: Poly({}) for v, n in self.extents.items() if n.constant == 1}

    @cached_property
    def allocs(self) -> dict[str, Alloc]:
        return {x.buffer: x for x in self.heads if isinstance(x, Alloc)}

    def rank(self, buffer: str) -> int:
        """How many axes a buffer has."""
        return len(self.allocs[buffer].shape) if buffer in self.allocs else self.function.param(buffer).ndim

    def dtype(self, buffer: str) -> np.dtype:
        return self.allocs[buffer].dtype if buffer in self.allocs else self.function.param(buffer).dtype

    @cached_property
    def taken(self) -> set[str]:
        """Every name that loops, blocks, buffers and what stands in blocks have."""
        found = {p.name for p in self.function.params} | self.loops.keys() | self.blocks.keys()
        found |= {x.buffer if isinstance(x, Alloc) else x.name for x in self.heads}
        for place in self.blocks.values():
            block = place.stmt
            assert isinstance(block, ScheduleBlock)
            found |= {v.name for v in block.iter_vars}
            found |= {x.name for x in statements(block.body) if isinstance(x, Let)}
        return found

    def unused(self, name: str, *also: str) -> str:
        """`name`, or with a number behind it, so that nothing in the function is called so."""
        taken = self.taken.union(also)
        candidate, n = name, 1
        while candidate in taken:
            n += 1
            candidate = f"{name}_{n}"
        return candidate

    # --------------------------------------------------------------------------------------------------- accesses
    def accesses(self, block: str) -> tuple[Access, ...]:
        """What a block touches, in no order."""
        stmt = self.blocks[block].stmt
        assert isinstance(stmt, ScheduleBlock)
        known = self.cache.get(id(stmt))
        if known is None:
            self.cache[id(stmt)] = known = stmt, _accesses(stmt, self.alone, self.extents)
        return known[1]

    @cached_property
    def by_buffer(self) -> dict[str, list[Access]]:
        """All accesses, by buffer."""
        found: dict[str, list[Access]] = {}
        for block, place in self.blocks.items():
            known = self.cache.get(id(place.stmt))
            for access in known[1] if known is not None else self.accesses(block):
                if access.buffer in found:
                    found[access.buffer].append(access)
                else:
                    found[access.buffer] = [access]
        return found

    def writes(self, buffer: str) -> list[Access]:
        return [a for a in self.by_buffer.get(buffer, ()) if a.op is not None]

    def reads(self, buffer: str) -> list[Access]:
        return [a for a in self.by_buffer.get(buffer, ()) if a.op is None]

    # ---------------------------------------------------------------------------------------------------- editing
    def edited(self, new: Mapping[int, Sequence[Stmt]], heads: Sequence[Stmt] | None = None) -> Function:
        """The function with other statements for those whose id is in `new`; loops that are left empty go.

        heads: what stands at the top instead of today's Lets and Allocs; Lets come first.
        """
        top: Sequence[Stmt] = self.heads if heads is None else heads
        lets = [x for x in top if isinstance(x, Let)]
        others = [x for x in top if not isinstance(x, Let)]
        changed = {self.top[s] for s in new}
        nests = [y for n, x in enumerate(self.nests) for y in (_spliced([x], new) if n in changed else [x])]
        return replace(self.function, body=Seq((*lets, *others, *nests)))


def _spliced(stmts: Sequence[Stmt], new: Mapping[int, Sequence[Stmt]]) -> list[Stmt]:
    out: list[Stmt] = []
    for s in stmts:
        if id(s) in new:
            out += new[id(s)]
        elif isinstance(s, For):
            old = flattened(s.body)
            body = _spliced(old, new)
            if body:
                same = len(body) == len(old) and all(x is y for x, y in zip(body, old, strict=True))
                out.append(s if same else replace(s, body=seq(body)))
        else:
            out.append(s)
    return out


@lru_cache(maxsize=4096)
def _extent(e: Expr) -> Poly:
    found = poly(e, {}, {})
    return Poly.atom(e) if found is None else found


def _accesses(block: ScheduleBlock, alone: Mapping[str, Poly], extents: Mapping[str, Poly]) -> tuple[Access, ...]:
    env: dict[str, Poly | None] = {}
    for v, value in zip(block.iter_vars, block.iter_values, strict=True):
        env[v.name] = poly(value, alone, extents)
    found: dict[Access, None] = {}

    def read(e: Expr) -> None:
        for x in walk(e):
            if isinstance(x, Load):
                found[Access(block.name, x.buffer, where(x.index), None)] = None

    def where(index: tuple[Expr, ...]) -> tuple[Poly | None, ...]:
        return tuple(poly(i, env, extents) for i in index)  # type: ignore[arg-type]
    for s in statements(block.body):
        match s:
            case Let(name=name, value=value):
                read(value)
                env[name] = poly(value, env, extents) if value.dtype.kind == "i" else None  # type: ignore[arg-type]
            case Store(buffer=buffer, index=index, value=value):
                read(value)
                found[Access(block.name, buffer, where(index), "=")] = None
            case Reduce(buffer=buffer, index=index, op=op, value=value):
                read(value)
                found[Access(block.name, buffer, where(index), op)] = None
            case IfThenElse(cond=cond):
                read(cond)
    return tuple(found)


def unconditional(block: ScheduleBlock) -> tuple[tuple[Let, ...], Store | Reduce] | None:
    """A body that is Lets and one Store or Reduce; None for one with branches."""
    *lets, last = flattened(block.body)
    if isinstance(last, Store | Reduce) and all(isinstance(x, Let) for x in lets):
        return tuple(x for x in lets if isinstance(x, Let)), last
    return None


def _condition(e: Expr, extents: Mapping[str, Poly]) -> Expr:
    """A predicate with its index arithmetic collected, so that equal ones look alike."""
    if isinstance(e, Binary) and e.x.dtype.kind == "i":
        return replace(e, x=normal(e.x, extents), y=normal(e.y, extents))
    return map_children(lambda x: _condition(x, extents), e)


def with_values(s: Stmt, values: Mapping[str, Expr], extents: Mapping[str, Poly]) -> Stmt:
    """s with loop variables replaced in the iter values and predicates of its blocks, iter values collected."""
    if isinstance(s, ScheduleBlock):
        def put(e: Expr) -> Expr:
            new = substitute(e, values)
            return e if new is e else normal(new, extents)
        predicate = None if s.predicate is None else _condition(substitute(s.predicate, values), extents)
        return replace(s, iter_values=tuple(map(put, s.iter_values)), predicate=predicate)
    return map_bodies(lambda x: with_values(x, values, extents), s)
