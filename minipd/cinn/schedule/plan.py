"""The first schedule: a fixed order of primitives, each applied wherever its precondition and its rule of thumb allow.

    share           what a body computes twice gets a name
    hoist           what is fixed in a loop moves in front of it
    merge           what several loops had fixed alike is computed once
    cache_row       expensive values of one pass over a row are kept for the next, in the row of an output, or in a
                    local row where that fits into the cache
    parallelize     loops at the top whose iterations are independent
    chunk           loops at the top that accumulate over their iterations
    block           long sums of float32
    vectorize       innermost loops

`Schedule` records each step; `explain(function)` prints them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minipd.cinn.ir.ast import Accumulate, Binary, Const, Expr, For, Function, Let, Unary
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.simplify import simplify
from minipd.cinn.ir.walk import statements, walk
from minipd.cinn.schedule.hoist import hoist
from minipd.cinn.schedule.loops import block, chunk, dependences, parallelize, vectorize
from minipd.cinn.schedule.rows import cache_row, full_value, kept_in, output_for
from minipd.cinn.schedule.share import merge, share
from minipd.cinn.schedule.tree import Path, accumulated, declared, innermost, loops, stmts_of, stores_of

__all__ = ["Options", "Schedule", "explain", "schedule"]

FLOAT32 = np.dtype(np.float32)
#: what an operator costs, in additions; others cost 1
COST = {"exp": 10, "log": 12, "tanh": 15, "erf": 25, "erfc": 22, "sin": 12, "cos": 12, "pow": 25, "div": 3, "sqrt": 3,
        "rsqrt": 4}


@dataclass(frozen=True)
class Options:
    """The numbers behind the rules of thumb.

    row_bytes: the longest local row.  keep_cost: what a value must cost to be kept rather than computed again.
    chunks: how many chunks a loop over rows gets, each of least_rows to most_rows; flat_chunks, least_elements: the
    same for a loop over single elements, whose partial results are scalars.  parallel_elements: a loop nest with fewer
    iterations in all stays on one thread.  block: the length of a block of a long sum.  block_from: sums up to here
    have no blocks (the lanes of a vector are as many partial sums).
    """

    row_bytes: int = 256 * 1024
    keep_cost: int = 8
    chunks: int = 16
    least_rows: int = 4
    most_rows: int = 1024
    flat_chunks: int = 64
    least_elements: int = 1024
    parallel_elements: int = 16384
    block: int = 1024
    block_from: int = 4096


@dataclass
class Schedule:
    """A function on its way through primitives.  steps: (what was done, the function after it)."""

    function: Function
    steps: list[tuple[str, Function]] = field(default_factory=list)

    def apply(self, primitive: Callable[..., Function], *args: Any) -> None:
        """Go on with primitive(function, *args); recorded if it changes something."""
        new = primitive(self.function, *args)
        if new != self.function:
            self.function = new
            self.steps.append((f"{primitive.__name__}{args}", new))


def schedule(function: Function, options: Options = Options()) -> Function:  # noqa: B008  (immutable)
    """The function as it is to be compiled."""
    return _scheduled(function, options).function


def explain(function: Function, options: Options = Options()) -> str:  # noqa: B008
    """The text of the function after every step."""
    steps = _scheduled(function, options).steps
    return "\n".join(f"## {what}\n{text(f)}" for what, f in [("lowered", function), *steps])


def _scheduled(function: Function, options: Options) -> Schedule:
    s = Schedule(function)
    s.apply(simplify)
    _each_loop(s, lambda path, loop: s.apply(share, path))
    for depth in range(max([len(p) for p, _ in loops(s.function)], default=0), 0, -1):
        for path, _ in reversed([x for x in loops(s.function) if len(x[0]) == depth]):
            s.apply(hoist, path)
    _each_loop(s, lambda path, loop: s.apply(merge, path))
    while _keep_one_row(s, options):
        s.apply(simplify)
    _spread_top_loops(s, options)
    _each_loop(s, lambda path, loop: s.apply(block, path, options.block) if _long_sum(loop, options) else None)
    _each_loop(s, lambda path, loop: s.apply(vectorize, path) if _lanes(loop) else None)
    s.apply(simplify)
    return s


def _each_loop(s: Schedule, visit: Callable[[Path, For], None]) -> None:
    """Visit the loops from the last to the first: what a primitive does to one moves no loop that is still to come."""
    for path, loop in reversed(loops(s.function)):
        visit(path, loop)


# -------------------------------------------------------------------------------------------------------- rows
def _keep_one_row(s: Schedule, options: Options) -> bool:
    """Keep the first value that is worth it; False if there is none."""
    passes = [(path, loop) for path, loop in loops(s.function) if innermost(loop)]
    for k, (later, b) in enumerate(passes):
        for first, a in passes[:k]:
            if first[:-1] != later[:-1] or (a.var, a.extent) != (b.var, b.extent):
                continue
            for let in reversed(stmts_of(b.body)):
                if not isinstance(let, Let):
                    continue
                value = full_value(b, let.name)
                if value is None or cost(value) < options.keep_cost or value != full_value(a, let.name):
                    continue
                known = kept_in(s.function, first, later, let.name)
                places: list[str | None] = [known] if known else [*output_for(s.function, first, later, value.dtype)]
                if isinstance(b.extent, Const) and b.extent.value * value.dtype.itemsize <= options.row_bytes:
                    places.append(None)
                if places:
                    s.apply(cache_row, first, later, let.name, places[0])
                    return True
    return False


def cost(e: Expr) -> int:
    """What an expression costs, in additions."""
    return sum(COST.get(x.op, 1) for x in walk(e) if isinstance(x, Unary | Binary) and x.dtype.kind == "f")


# --------------------------------------------------------------------------------------------------- top loops
def _spread_top_loops(s: Schedule, options: Options) -> None:
    def visit(path: Path, loop: For) -> None:
        if len(path) != 1 or _small(loop, options):
            return
        if dependences(loop):
            if innermost(loop):
                s.apply(chunk, path, options.flat_chunks, options.least_elements)
            elif not isinstance(loop.extent, Const) or loop.extent.value > options.least_rows:
                s.apply(chunk, path, options.chunks, options.least_rows, options.most_rows)
        elif any(x.buffer in outputs for x in stores_of(loop)):     # not what only sets accumulators to their start
            s.apply(parallelize, path)
    outputs = {p.name for p in s.function.params if p.output}
    _each_loop(s, visit)


def _small(loop: For, options: Options) -> bool:
    """Whether the loop nest is known to run over few elements."""
    total = 1
    for x in [loop, *(x for x in statements(loop.body) if isinstance(x, For))]:
        if not isinstance(x.extent, Const):
            return False
        total *= int(x.extent.value)
    return total < options.parallel_elements


def _long_sum(loop: For, options: Options) -> bool:
    sums = {x.name for x in statements(loop.body) if isinstance(x, Accumulate) and x.op == "add"
            and x.value.dtype == FLOAT32} - declared(loop.body)
    return innermost(loop) and bool(sums) and not (
        isinstance(loop.extent, Const) and loop.extent.value <= options.block_from)


def _lanes(loop: For) -> bool:
    return innermost(loop) and loop.kind == "serial" and not dependences(loop) - accumulated(loop.body)
