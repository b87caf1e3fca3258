"""SplitRecompute: what is cheap is computed again where it is read, rather than written and read back.

    kernel A: h = x + b; y = gelu(h)        h is read again by kernel B, after a matmul: A and B cannot be one kernel
    kernel B: dh = dy * gelu'(h)

B may as well compute x + b itself: it reads x instead of h, and A need not write h.  A producer is computed again where

* it is element-wise, down to what its kernel reads or keeps anyhow,
* fewer bytes move: h is no longer written (if nobody else wants it) and read, but what it is made of is read,
* it costs less than moving those bytes would,
* nothing big has to live longer for it than what is no longer kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from minipd.cinn.compute.cost import cost_of_op
from minipd.cinn.frontend.graph import outputs_of, sources_of
from minipd.cinn.frontend.pattern import reduces
from minipd.cinn.frontend.pattern_graph import PatternGraph, result_size
from minipd.cinn.frontend.traffic import sizes
from minipd.ir.operation import Operation
from minipd.ir.schema import result_values
from minipd.ir.value import Value

__all__ = ["split_recompute"]

#: how many additions take as long as moving a byte
ADDITIONS_PER_BYTE = 2.0


def split_recompute(graph: PatternGraph, step: str) -> None:
    """Give the readers in other patterns copies of their own of what is cheap."""
    for op in sorted(reversed(graph.members), key=result_size, reverse=True):
        if len(result_values(op)) == 1 and not reduces(op):
            for reader in graph.readers([op]) if op in graph.node else ():
                if reader in graph.readers_of.get(op, ()) and graph.node[reader] is not graph.node[op]:
                    _try(graph, step, op, reader)


@dataclass
class Cone:
    """The operators to compute again, the last first, and what they read."""

    ops: list[Operation] = field(default_factory=list)
    reads: dict[Value, None] = field(default_factory=dict)


def _try(graph: PatternGraph, step: str, op: Operation, reader: Operation) -> None:
    a, b = graph.node[op], graph.node[reader]
    if len(b.ops) == 1 or not graph.is_new(op, reader, step):       # (alone it may stay with the library)
        return
    had = set(sources_of(b.ops, graph.free)[1])
    kept = set(outputs_of(a.ops, graph.free))
    cone = _cone(graph, op, had, kept)
    value = op.result(0)
    wanted = any(graph.node[r] not in (a, b) for r in graph.readers_of[op])
    more = [v for v in cone.reads if v not in had]
    written = [v for v in more if v not in kept and graph.maker(v) is a]
    saved = sizes([value]) * (1 if wanted else 2) - sizes(more) - sizes(written)
    if saved <= 0:
        return
    if sum(map(cost_of_op, cone.ops)) * sizes([value]) / value.dtype.itemsize > ADDITIONS_PER_BYTE * saved:
        graph.refuse(step, op, reader, "Cost", f"to compute it again takes longer than to move {saved} bytes")
    elif not wanted and sizes(kept_longer := [v for v in more if graph.maker(v) is not None]) > sizes([value]):
        graph.refuse(step, op, reader, "Lifetime", f"{sizes(kept_longer)} bytes would have to be kept for it")
    else:
        graph.copy(step, cone.ops[::-1], op, reader)


def _cone(graph: PatternGraph, op: Operation, had: set[Value], kept: set[Value]) -> Cone:
    """From `op` up to what its reader's kernel reads anyhow, or its own kernel reads or writes."""
    cone = Cone()
    own = graph.node[op]
    pending = [op]
    while pending:
        each = pending.pop()
        if each in cone.ops:
            continue
        cone.ops.append(each)
        for value in sources_of([each], graph.free)[1]:
            maker = value.get_defining_op()
            if value in had or value in kept or maker is None or graph.maker(value) is not own or (
                    reduces(maker) or maker.num_results() > 1):
                cone.reads[value] = None
            else:
                pending.append(maker)
    return cone
