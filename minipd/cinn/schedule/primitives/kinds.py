"""Primitives that say how the iterations of a loop run: `parallel`, `vectorize`, `unroll`, `bind`."""

from __future__ import annotations

from dataclasses import replace

from minipd.cinn.ir.ast import BLOCK_AXES, GPU_AXES, THREAD_AXES, Const, For, Function
from minipd.cinn.schedule.dependences import met, met_in
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.nests import Nests, inside
from minipd.cinn.schedule.primitives.loops import split

__all__ = ["bind", "check_kinds", "parallel", "unroll", "vectorize"]


def parallel(nests: Nests, loop: str) -> tuple[Function, None]:
    """The loop may run on several threads.   Needs: a serial loop of which no iteration touches what another writes."""
    what = f"parallel({loop})"
    found = _serial(nests, loop, what)
    _check_apart(nests, found, what, True, "; rfactor them first")
    return _as_kind(nests, found, "parallel"), None


def vectorize(nests: Nests, loop: str, factor: int | None = None) -> tuple[Function, list[str] | None]:
    """The loop runs in SIMD lanes.   Needs: a serial loop without one inside, whose iterations meet in reductions only.

    factor: split it first, so that the vector has this many lanes; the two loops are then what is returned.
    """
    what = f"vectorize({loop})" if factor is None else f"vectorize({loop}, {factor})"
    found = _serial(nests, loop, what)
    if any(len(nests.loops[x].around) and found in nests.loops[x].around for x in nests.loops):
        raise ScheduleError(f"{what}: it contains a loop; expected an innermost one")
    _check_apart(nests, found, what, False, "")
    if factor is None:
        return _as_kind(nests, found, "vector"), None
    function, names = split(nests, loop, [-1, factor])
    cut = Nests(function, nests.cache)
    return _as_kind(cut, cut.loop(names[1], what), "vector"), names


def unroll(nests: Nests, loop: str) -> tuple[Function, None]:
    """The iterations are written out one after the other.   Needs: a serial loop of known extent."""
    what = f"unroll({loop})"
    found = _serial(nests, loop, what)
    if not isinstance(found.extent, Const):
        raise ScheduleError(f"{what}: its extent is known only when the function runs")
    return _as_kind(nests, found, "unroll"), None


def bind(nests: Nests, loop: str, axis: str) -> tuple[Function, None]:
    """The iterations are the blocks, or the threads, of a GPU along an axis.   Needs: a serial loop, no iteration of
    which touches what another writes; no loop around it or inside bound to that axis; threads inside
    blocks; and arrays of which each block or thread has its own not shared by several."""
    what = f"bind({loop}, {axis!r})"
    found = _serial(nests, loop, what)
    if axis not in GPU_AXES:
        raise ScheduleError(f"{what}: no such axis; there are {', '.join(GPU_AXES)}")
    around = [x for x in nests.loops[loop].around if x.kind in GPU_AXES]
    within = [p.stmt for p in nests.loops.values() if found in p.around and isinstance(p.stmt, For)]
    for other in (*around, *within):
        if other.kind == axis:
            raise ScheduleError(f"{what}: {other.var} is bound to that axis already")
    if (axis in BLOCK_AXES and any(x.kind in THREAD_AXES for x in around)) or (
            axis in THREAD_AXES and any(x.kind in BLOCK_AXES for x in within)):
        raise ScheduleError(f"{what}: expected loops over threads inside those over blocks")
    _check_apart(nests, found, what, True, "")
    return _as_kind(nests, found, axis), None


def check_kinds(nests: Nests, what: str) -> None:
    """Refuse what no primitive may leave: a loop inside a vector, and a GPU array that is not where it is read."""
    for place in nests.loops.values() if "vector" in nests.kinds else ():
        for x in place.around:
            if x.kind == "vector":
                raise ScheduleError(f"{what}: there would be a loop in {x.var}, which is a vector")
    if not nests.kinds.isdisjoint(GPU_AXES):
        _check_memory(nests, what)


def _check_memory(nests: Nests, what: str) -> None:
    """Refuse where a GPU block or a thread reads what another one has written to an array of its own.

    A "local" array belongs to a thread, a "shared" one to a block, where these are loops around its use; else it is
    everyone's.
    """
    for buffer, alloc in nests.allocs.items():
        owners = {"local": GPU_AXES, "shared": BLOCK_AXES, "global": ()}[alloc.memory]
        own = {a.block: [x.var for x in nests.blocks[a.block].around if x.kind in owners]
               for a in nests.by_buffer.get(buffer, ())}
        if not any(own.values()):
            continue
        for a in nests.writes(buffer):
            for b in nests.by_buffer[buffer]:
                apart = met(nests, a, b).apart
                if own[a.block] != own[b.block] or any(
                        apart.get(x) != 0 and nests.extents[x].constant != 1 for x in own[a.block]):
                    raise ScheduleError(f"{what}: {b.block} would not see what {a.block} writes to the {alloc.memory} "
                                        f"array {buffer}; set_buffer({a.block}, 'global') first")


def _serial(nests: Nests, loop: str, what: str) -> For:
    found = nests.loop(loop, what)
    if found.kind != "serial":
        raise ScheduleError(f"{what}: expected a serial loop, {loop} is {found.kind} already")
    return found


def _check_apart(nests: Nests, loop: For, what: str, reduces: bool, advice: str) -> None:
    met = next(met_in(nests, loop.var, [b.name for b in inside(loop)], reduces), None)
    if met is not None:
        raise ScheduleError(f"{what}: its iterations meet in {met[0].buffer}, which {met[0].block} writes and "
                            f"{met[1].block} touches{advice}")


def _as_kind(nests: Nests, loop: For, kind: str) -> Function:
    return nests.edited({id(loop): [replace(loop, kind=kind)]})
