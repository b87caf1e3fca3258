"""`cache_read` and `cache_write`: a copy of a buffer, in another memory, for one reader or for all writers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from minipd.cinn.ir.ast import (
    MEMORIES,
    Alloc,
    Dim,
    Expr,
    For,
    Function,
    IterVar,
    Load,
    ScheduleBlock,
    Seq,
    Stmt,
    Store,
    Var,
)
from minipd.cinn.ir.walk import rename
from minipd.cinn.schedule.affine import Poly, bounds_of, poly
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.nests import Nests

__all__ = ["cache_read", "cache_write"]

def cache_read(nests: Nests, block: str, buffer: str, memory: str) -> tuple[Function, str]:
    """The block reads a copy of the buffer, which a new block makes in front of its nest; returns the new block's name.

    Needs: whoever writes to the buffer is in a nest before that of the block.

        B { y[vi] = x[vi] + x[0] }          x_shared { x_shared[v0] = x[v0] }  B { y[vi] = x_shared[vi] + x_shared[0] }
    """
    what = f"cache_read({block}, {buffer!r}, {memory!r})"
    reader = nests.block(block, what)
    read = list(dict.fromkeys(a.buffer for a in nests.accesses(block) if a.op is None))
    if buffer not in read:
        raise ScheduleError(f"{what}: {block} does not read {buffer}; it reads {', '.join(read) or 'nothing'}")
    top = nests.blocks[block].path[0]
    for w in nests.writes(buffer):
        if nests.blocks[w.block].path[0] >= top:
            raise ScheduleError(f"{what}: {w.block} writes to {buffer} in the nest of {block}, or behind it")
    name, shape = nests.unused(f"{buffer}_{memory}"), _shape(nests, buffer)
    heads = [*nests.heads, Alloc(name, shape, nests.dtype(buffer), _memory(memory, what))]
    copy = _copy(nests, name, buffer, name, shape)
    return _with_nest(nests, {id(reader): _renamed(reader, buffer, name)}, heads, copy, top), name


def cache_write(nests: Nests, block: str, memory: str) -> tuple[Function, str]:
    """What the block writes goes into a new buffer, from which a new block behind its nest copies it to where it was
    to go; returns the new block's name.

    All that writes to the buffer, as a reduction's start does, and reads it in these nests, turns to the new one.
    Needs: someone behind these nests who reads the buffer, which they are seen to fill; or that it is an output.

        B { y[vi] = x[vi] + 1 }         B { y_local[vi] = x[vi] + 1 }  y_local_copy { y[v0] = y_local[v0] }
    """
    what = f"cache_write({block}, {memory!r})"
    nests.block(block, what)
    buffer = next(a.buffer for a in nests.accesses(block) if a.op is not None)
    writers = {a.block for a in nests.writes(buffer)}
    last = max(nests.blocks[w].path[0] for w in writers)
    inside = [b for b in dict.fromkeys(a.block for a in nests.by_buffer[buffer]) if nests.blocks[b].path[0] <= last]
    if buffer in nests.allocs and all(a.block in inside for a in nests.by_buffer[buffer]):
        raise ScheduleError(f"{what}: what reads {buffer} is in these nests and would turn to the new buffer; nothing "
                            f"would read the copy; set_buffer({block}, {memory!r}) says where {buffer} is")
    if buffer in nests.allocs and not any(_fills(nests, a.block) for a in nests.writes(buffer) if a.op == "="):
        raise ScheduleError(f"{what}: {buffer} may be written in part, and the copy would read all of it; do this "
                            "before compute_at, and before loops are split or fused")
    name, shape = nests.unused(f"{buffer}_{memory}"), _shape(nests, buffer)
    edits = {id(nests.block(b, what)): _renamed(nests.block(b, what), buffer, name) for b in inside}
    heads = [*nests.heads, Alloc(name, shape, nests.dtype(buffer), _memory(memory, what))]
    made = nests.unused(f"{name}_copy", name)
    return _with_nest(nests, edits, heads, _copy(nests, made, name, buffer, shape), last + 1), made


def _fills(nests: Nests, block: str) -> bool:
    """Whether a block is seen to run for every position of its iter vars, each of which has loops of its own."""
    stmt = nests.block(block, "")
    seen: set[str] = set()
    for v, value in zip(stmt.iter_vars, stmt.iter_values, strict=True):
        at, extent = poly(value, nests.alone, nests.extents), poly(v.extent, {}, {})
        bounds = None if at is None else bounds_of(at, nests.extents)
        if at is None or extent is None or bounds is None or at.names & seen or not (
                bounds[1] + Poly.number(1) - extent).is_natural:
            return False
        seen |= at.names
    return True


def _memory(name: str, what: str) -> str:
    if name not in MEMORIES:
        raise ScheduleError(f"{what}: expected one of {', '.join(MEMORIES)}")
    return name


def _shape(nests: Nests, buffer: str) -> tuple[Expr, ...]:
    if buffer in nests.allocs:
        return nests.allocs[buffer].shape
    return tuple(Dim(buffer, axis) for axis in range(nests.rank(buffer)))


def _copy(nests: Nests, name: str, source: str, target: str, shape: Sequence[Expr]) -> Stmt:
    """A nest that copies a buffer into another one."""
    iter_vars = tuple(IterVar(f"v{k}", n, "S") for k, n in enumerate(shape))
    loops = [nests.unused(f"c{k}_{name}") for k in range(len(shape))]
    index = tuple(Var(v.name) for v in iter_vars)
    known = source in nests.allocs or any(p.name == source for p in nests.function.params)
    dtype = nests.dtype(source if known else target)
    store = Store(target, index, Load(source, index, dtype))
    copy: Stmt = ScheduleBlock(name, iter_vars, tuple(map(Var, loops)), store)
    for loop, n in reversed(list(zip(loops, shape, strict=True))):
        copy = For(loop, n, copy)
    return copy


def _renamed(block: ScheduleBlock, old: str, new: str) -> ScheduleBlock:
    found = rename(block, buffers={old: new})
    assert isinstance(found, ScheduleBlock)
    return found


def _with_nest(nests: Nests, edits: dict[int, ScheduleBlock], heads: Sequence[Stmt], nest: Stmt, at: int) -> Function:
    """The function with blocks replaced, and one more nest at that place among the nests."""
    function = nests.edited({k: [b] for k, b in edits.items()}, heads)
    new = Nests(function)
    return replace(function, body=Seq((*new.heads, *new.nests[:at], nest, *new.nests[at:])))
