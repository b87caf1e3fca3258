"""`compute_inline`: whoever reads an element computes it; `reverse_compute_inline`: whoever makes an element goes on to
what is computed of it.  Either way, a buffer less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from minipd.cinn.ir.ast import (
    Alloc,
    Cast,
    Const,
    Dim,
    Expr,
    Function,
    IfThenElse,
    IterVar,
    Let,
    Load,
    ScheduleBlock,
    Seq,
    Stmt,
    Store,
    Var,
)
from minipd.cinn.ir.build import seq
from minipd.cinn.ir.walk import flattened, map_children, map_expressions, own_expressions, statements, substitute, walk
from minipd.cinn.schedule.dependences import precedes
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.nests import Access, Nests, unconditional
from minipd.cinn.schedule.primitives.inline_branches import branches_of, inlined

__all__ = ["compute_inline", "reverse_compute_inline"]


def compute_inline(nests: Nests, block: str) -> tuple[Function, None]:
    """The block goes; each block that reads an element of its buffer has Lets in front that compute it, or, of a block
    with branches, these branches around copies of its body.

    Needs: the block is one Store to a temporary, at an index of different iter vars, and all that writes there; what it
    reads is final by then; someone reads its buffer.

        A { t[vi] = exp(x[vi]) }  B { y[vi] = t[vi] * t[vi] }       B { t = exp(x[vi])  y[vi] = t * t }
    """
    what = f"compute_inline({block})"
    stmt = nests.block(block, what)
    branch = branches_of(stmt, what)
    lets, store = _simple(nests, stmt, what) if branch is None else ((), _alone(nests, stmt, branch, what))
    _check_final(nests, nests.accesses(block), what)
    readers = dict.fromkeys(a.block for a in nests.reads(store.buffer))
    if not readers:
        raise ScheduleError(f"{what}: nothing reads {store.buffer}")
    for a in nests.reads(store.buffer):
        if not precedes(nests, _own(nests, block, store.buffer), a):
            raise ScheduleError(f"{what}: {a.block} may read {store.buffer} before {block} writes it")
    edits: dict[int, list[Stmt]] = {id(stmt): []}
    position = [_name_of(i) for i in store.index]
    for reader in readers:
        old = nests.block(reader, what)

        def put(body: Stmt, lets: tuple[Let, ...], store: Store, old: ScheduleBlock = old) -> Stmt:
            return _Inliner(old, lets, store, position).body(body, {})
        new = replace(old, body=put(old.body, lets, store)) if branch is None else inlined(
            old, stmt, store, position, put, what)
        edits[id(old)] = [new]
    heads = [x for x in nests.heads if not (isinstance(x, Alloc) and x.buffer == store.buffer)]
    return nests.edited(edits, heads), None


def reverse_compute_inline(nests: Nests, block: str) -> tuple[Function, None]:
    """The block goes; the one that stores what it reads goes on to compute and to store what the block would.

    Needs: the block is one Store, and the only reader of a temporary, at an index of all its iter vars; one block
    stores to that, likewise; and whatever else the block reads is final by then.

        A { t[vi] = exp(x[vi]) }  B { y[vi] = t[vi] + 1 }       A { t = exp(x[vi])  y[vi] = t + 1 }
    """
    what = f"reverse_compute_inline({block})"
    stmt = nests.block(block, what)
    lets, store = unconditional(stmt) or ((), None)
    if not isinstance(store, Store):
        raise ScheduleError(f"{what}: expected a block that is one Store")
    for a in nests.accesses(block):
        if a.op is None and a.buffer in nests.allocs and {x.block for x in nests.reads(a.buffer)} == {block}:
            writers = {x.block for x in nests.writes(a.buffer)}
            index = _read_at(stmt, a.buffer)
            if len(writers) == 1 and index is not None:
                return _reversed(nests, stmt, lets, store, a.buffer, index, writers.pop(), what), None
    raise ScheduleError(f"{what}: expected it to read a temporary that nobody else reads and one block stores, at an "
                        "index of all its iter vars")


def _reversed(nests: Nests, stmt: ScheduleBlock, lets: tuple[Let, ...], store: Store, buffer: str,
              index: tuple[str, ...], producer: str, what: str) -> Function:
    maker = nests.block(producer, what)
    made_lets, made = _simple(nests, maker, what)
    if [n.extent for n in _ordered(maker, [_name_of(i) for i in made.index])] != [
            n.extent for n in _ordered(stmt, list(index))] or nests.writes(store.buffer) != [
            a for a in nests.accesses(stmt.name) if a.op is not None]:
        raise ScheduleError(f"{what}: expected {stmt.name} to compute an element for each one of {buffer}, and to be "
                            f"all that writes {store.buffer}")
    here = nests.blocks[producer]
    for a in nests.accesses(stmt.name):
        if a.buffer == buffer:
            continue
        for w in nests.writes(a.buffer) if a.op is None else [r for r in nests.reads(a.buffer)]:
            if a.op is None and not (nests.blocks[w.block].path < here.path and not set(
                    nests.loops_of(w.block)) & set(nests.loops_of(producer))):
                raise ScheduleError(f"{what}: {stmt.name} reads {a.buffer}, which {w.block} may write after {producer}")
            if a.op is not None and nests.blocks[w.block].path < nests.blocks[stmt.name].path:
                raise ScheduleError(f"{what}: {w.block} reads {a.buffer} before")
    values: dict[str, Expr] = dict(zip(index, made.index, strict=True))
    taken = {v.name for v in maker.iter_vars} | {x.name for x in made_lets}
    name = _free(buffer, taken)
    body: list[Stmt] = [*made_lets, Let(name, made.value)]
    taken.add(name)
    steps: list[Let | Store] = [*lets, store]
    for x in steps:
        def put(e: Expr) -> Expr:
            if isinstance(e, Load) and e.buffer == buffer:
                return Var(name, e.dtype)
            return map_children(put, e)
        new = map_expressions(lambda e: substitute(put(e), values), x)
        if isinstance(new, Let):
            free = _free(new.name, taken)
            taken.add(free)
            values[new.name] = Var(free, new.value.dtype)
            new = replace(new, name=free)
        body.append(new)
    heads = [x for x in nests.heads if not (isinstance(x, Alloc) and x.buffer == buffer)]
    return nests.edited({id(maker): [replace(maker, body=Seq(tuple(body)))], id(stmt): []}, heads)


def _ordered(block: ScheduleBlock, names: list[str]) -> list[IterVar]:
    by_name = {v.name: v for v in block.iter_vars}
    return [by_name[n] for n in names]


def _read_at(stmt: ScheduleBlock, buffer: str) -> tuple[str, ...] | None:
    """The iter vars by which a block reads a buffer, if they are all that it has."""
    found = {e.index for s in statements(stmt.body) for whole in own_expressions(s) for e in walk(whole)
             if isinstance(e, Load) and e.buffer == buffer}
    if len(found) != 1:
        return None
    index = found.pop()
    names = [i.name for i in index if isinstance(i, Var)]
    own = {v.name for v in stmt.iter_vars}
    return tuple(names) if len(names) == len(index) and len(set(names)) == len(names) and set(names) == own else None


# ------------------------------------------------------------------------------------------------- preconditions
def _simple(nests: Nests, stmt: ScheduleBlock, what: str) -> tuple[tuple[Let, ...], Store]:
    """The body of a block that computes each element of a temporary by itself."""
    lets, store = unconditional(stmt) or ((), None)
    if not isinstance(store, Store):
        raise ScheduleError(f"{what}: expected {stmt.name} to be one Store without branches, it is "
                            f"{'a block with branches' if store is None else 'a reduction'}")
    return lets, _alone(nests, stmt, store, what)


def _alone(nests: Nests, stmt: ScheduleBlock, store: Store, what: str) -> Store:
    """A Store that is all that writes to a temporary, each element once."""
    if store.buffer not in nests.allocs:
        raise ScheduleError(f"{what}: {store.buffer} is an output; expected a temporary")
    others = sorted({a.block for a in nests.writes(store.buffer)} - {stmt.name})
    if others:
        raise ScheduleError(f"{what}: {', '.join(others)} writes to {store.buffer} too")
    index = [i.name for i in store.index if isinstance(i, Var)]
    own = {v.name for v in stmt.iter_vars}
    if len(index) != len(store.index) or set(index) != own or len(set(index)) != len(index):
        raise ScheduleError(f"{what}: expected an index of all iter vars of {stmt.name}, once each")
    if any(a.op is None and a.buffer == store.buffer for a in nests.accesses(stmt.name)):
        raise ScheduleError(f"{what}: {stmt.name} reads what it writes")
    return store


def _check_final(nests: Nests, accesses: tuple[Access, ...], what: str) -> None:
    """Refuse unless what is read has its last value by then."""
    for a in accesses:
        for w in nests.writes(a.buffer) if a.op is None else ():
            if not precedes(nests, w, a):
                raise ScheduleError(f"{what}: {a.block} reads {a.buffer}, which {w.block} may write later")


def _own(nests: Nests, block: str, buffer: str) -> Access:
    return next(a for a in nests.accesses(block) if a.op is not None and a.buffer == buffer)


def _name_of(i: Expr) -> str:
    assert isinstance(i, Var)
    return i.name


def _free(name: str, taken: set[str]) -> str:
    candidate, n = name, 0
    while candidate in taken:
        n += 1
        candidate = f"{name}_{n}"
    return candidate


# ------------------------------------------------------------------------------------------------------ inlining
class _Inliner:
    """Puts what one block computes into another one.   position: the iter vars along the axes of the buffer."""

    def __init__(self, reader: ScheduleBlock, lets: tuple[Let, ...], store: Store, position: list[str]):
        self.lets, self.store, self.position = lets, store, position
        self.taken = {v.name for v in reader.iter_vars} | {
            x.name for x in statements(reader.body) if isinstance(x, Let)}

    def body(self, s: Stmt, known: Mapping[str, Expr]) -> Stmt:
        """s with Lets in front of whoever reads the buffer; known: the Lets before it."""
        known = dict(known)
        out: list[Stmt] = []
        for x in flattened(s):
            if isinstance(x, IfThenElse):
                cond = self.put(x.cond, known, out)
                orelse = None if x.orelse is None else self.body(x.orelse, known)
                out.append(IfThenElse(cond, self.body(x.then, known), orelse))
                continue
            out.append(map_expressions(lambda e: self.put(e, known, out), x))
            if isinstance(x, Let):
                known[x.name] = out[-1].value  # type: ignore[union-attr]
        return seq(out)

    def put(self, e: Expr, known: dict[str, Expr], out: list[Stmt]) -> Expr:
        """e without reads of the buffer."""
        e = map_children(lambda x: self.put(x, known, out), e)
        if not (isinstance(e, Load) and e.buffer == self.store.buffer):
            return e
        values: dict[str, Expr] = dict(zip(self.position, e.index, strict=True))
        for let in self.lets:
            values[let.name] = self.let(let.name, substitute(let.value, values), known, out)
        value = substitute(self.store.value, values)
        return value if _plain(value) else self.let(self.store.buffer, value, known, out)

    def let(self, name: str, value: Expr, known: dict[str, Expr], out: list[Stmt]) -> Expr:
        """A variable of that value, of which there may be one already."""
        if value in known.values():
            return Var(next(n for n, v in known.items() if v == value), value.dtype)
        name = _free(name, self.taken)
        self.taken.add(name)
        known[name] = value
        out.append(Let(name, value))
        return Var(name, value.dtype)


def _plain(e: Expr) -> bool:
    """Whether an expression is not worth a name."""
    return isinstance(e, Const | Var | Dim) or (isinstance(e, Load) and all(_index(i) for i in e.index)) or (
        isinstance(e, Cast) and isinstance(e.x, Const | Var | Load) and _plain(e.x))


def _index(e: Expr) -> bool:
    return not any(isinstance(x, Load) for x in walk(e))
