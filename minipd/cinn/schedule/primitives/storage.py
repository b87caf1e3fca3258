"""`set_buffer`: where a value lives."""

from __future__ import annotations

from dataclasses import replace

from minipd.cinn.ir.ast import MEMORIES, Alloc, Function, Store, Var
from minipd.cinn.ir.walk import rename
from minipd.cinn.schedule.dependences import precedes
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.nests import Nests, unconditional

__all__ = ["set_buffer"]

def set_buffer(nests: Nests, block: str, place: str) -> tuple[Function, None]:
    """What the block writes lives in that memory ("local", "shared", "global"), or in an output that is written later.

    An output needs: the same dtype and extents; one block stores to it, nobody reads it; whoever reads or writes an
    element of the temporary does so before that element of the output is stored.

        A { t[vi] = exp(x[vi]) }  B { y[vi] = t[vi] / s }       A { y[vi] = exp(x[vi]) }  B { y[vi] = y[vi] / s }
    """
    what = f"set_buffer({block}, {place!r})"
    writes = [a for a in nests.accesses(nests.block(block, what).name) if a.op is not None]
    buffer = writes[0].buffer
    alloc = nests.allocs.get(buffer)
    if alloc is None:
        raise ScheduleError(f"{what}: {buffer} is an output; expected a temporary")
    if place in MEMORIES:
        heads = [replace(x, memory=place) if x is alloc else x for x in nests.heads]  # type: ignore[arg-type]
        return nests.edited({}, heads), None
    outputs = [p.name for p in nests.function.params if p.output]
    if place not in outputs:
        raise ScheduleError(f"{what}: expected {', '.join(MEMORIES)} or an output: {', '.join(outputs)}")
    stores = nests.writes(place)
    if len(stores) != 1 or nests.reads(place):
        raise ScheduleError(f"{what}: expected one block to store {place}, and none to read it")
    if nests.dtype(place) != alloc.dtype or _extents(nests, stores[0].block, place) != alloc.shape:
        raise ScheduleError(f"{what}: {buffer} and {place} differ in dtype or extents")
    for a in nests.by_buffer[buffer]:
        if not precedes(nests, a, stores[0]):
            raise ScheduleError(f"{what}: {a.block} may need {buffer} after {stores[0].block} has written over it")
    heads = [x for x in nests.heads if not (isinstance(x, Alloc) and x.buffer == buffer)]
    touched = {a.block for a in nests.by_buffer[buffer]}
    edits = {id(nests.block(b, what)): [rename(nests.block(b, what), buffers={buffer: place})] for b in touched}
    return nests.edited(edits, heads), None  # type: ignore[arg-type]


def _extents(nests: Nests, block: str, buffer: str) -> tuple[object, ...] | None:
    """How far a block that is one Store at an index of its iter vars fills a buffer."""
    stmt = nests.block(block, "")
    parts = unconditional(stmt)
    if parts is None or not isinstance(parts[1], Store) or parts[1].buffer != buffer:
        return None
    extents = {v.name: v.extent for v in stmt.iter_vars}
    return tuple(extents[i.name] if isinstance(i, Var) else None for i in parts[1].index)
