"""The phases of a function: what may run at once.

An outermost parallel loop is a phase, which is cut into tasks; the statements between two such loops are a phase for
one task.  All tasks of a phase end before the next phase begins.

    total = 0.0                                phase 0, one task
    for i in range(x.shape[0]):
        total += x[i]
    parallel for i in range(x.shape[0]):       phase 1
        y[i] = x[i] / total

What lives longer than a phase cannot be a variable of the kernel: arrays, and scalars such as `total`, which become
arrays of one element, are the kernel's scratch memory; who calls it has allocated them.  Sizes, and scalars read from
inputs, are computed anew in each phase.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from minipd.cinn.ir.ast import (
    INT64,
    STORAGE_ONLY,
    Accumulate,
    Alloc,
    Const,
    Expr,
    For,
    Function,
    Init,
    Let,
    Load,
    Stmt,
    Var,
)
from minipd.cinn.ir.walk import expressions, flattened, names, statements, walk

__all__ = ["Phase", "Phases", "phases_of"]


@dataclass(frozen=True)
class Phase:
    """Attributes:
        stmts: what it runs; of a parallel phase one loop.
        parallel: whether it is cut into tasks.
        takes: the scalars that it takes from earlier phases.
        leaves: those that it leaves for later ones.
    """

    stmts: tuple[Stmt, ...]
    parallel: bool
    takes: tuple[Var, ...] = ()
    leaves: tuple[Var, ...] = ()


@dataclass(frozen=True)
class Phases:
    """Attributes:
        before: scalars that every phase computes for itself.
        scratch: arrays that several phases see.
        kept: the scalars that phases leave, and in which of these arrays.
    """

    before: tuple[Let, ...]
    scratch: tuple[Alloc, ...]
    kept: dict[Var, str]
    phases: tuple[Phase, ...]


def phases_of(function: Function) -> Phases:
    """How a function is cut into phases.

    >>> from minipd.cinn.ir.ast import Param
    >>> f32 = np.dtype("float32")
    >>> load = Load("x", (Var("i"),), f32)
    >>> from minipd.cinn.ir.build import binary, const, seq
    >>> from minipd.cinn.ir.ast import Dim, Store
    >>> loop = For("i", Dim("x", 0), Accumulate("total", "add", load))
    >>> store = Store("y", (Var("i"),), binary("div", load, Var("total", f32)))
    >>> f = Function("f", (Param("x", f32, 1), Param("y", f32, 1, True)),
    ...              seq([Init("total", const(0, f32)), loop, For("i", Dim("x", 0), store, "parallel")]))
    >>> found = phases_of(f)
    >>> [(phase.parallel, [v.name for v in phase.takes], [v.name for v in phase.leaves]) for phase in found.phases]
    [(False, [], ['total']), (True, ['total'], [])]
    >>> [alloc.buffer for alloc in found.scratch]
    ['total_kept']
    """
    fixed = {p.name for p in function.params if not p.output}
    times = Counter(map(_bound, statements(function.body)))
    before: list[Let] = []
    scratch: list[Alloc] = []
    runs: list[tuple[bool, list[Stmt]]] = []
    for s in flattened(function.body):
        if isinstance(s, Alloc):
            scratch.append(s)
        elif isinstance(s, Let) and times[s.name] == 1 and _is_known(s.value, {let.name for let in before}, fixed):
            before.append(s)            # (a loop before it that has a scalar of that name would overwrite it)
        elif isinstance(s, For) and s.kind == "parallel":
            runs.append((True, [s]))
        elif runs and not runs[-1][0]:
            runs[-1][1].append(s)
        else:
            runs.append((False, [s]))
    return _linked(tuple(before), tuple(scratch), runs)


def _bound(s: Stmt) -> str | None:
    """The scalar that a statement gives a name to."""
    return s.name if isinstance(s, Let | Init) else s.var if isinstance(s, For) else None


def _is_known(value: Expr, before: set[str], fixed: set[str]) -> bool:
    """Whether a scalar can be computed in any phase: from sizes, inputs, and what is known already."""
    return names(value) <= before and all(e.buffer in fixed for e in walk(value) if isinstance(e, Load))


def _linked(before: tuple[Let, ...], scratch: tuple[Alloc, ...], runs: list[tuple[bool, list[Stmt]]]) -> Phases:
    """The phases, with what each takes from those before it."""
    takes: list[set[Var]] = []
    changes: list[set[Var]] = []
    known: set[Var] = set()
    for _, stmts in runs:
        inside = [x for s in stmts for x in statements(s)]
        own = {Var(s.name, s.value.dtype) for s in stmts if isinstance(s, Init | Let)}
        changed = own | {Var(x.name, x.value.dtype) for x in inside if isinstance(x, Accumulate)}
        used = {e for s in stmts for root in expressions(s) for e in walk(root) if isinstance(e, Var)}
        takes.append((used | changed) & known - own)
        changes.append(changed)
        known |= own
    wanted: set[Var] = set().union(*takes)
    kept = {v: f"{v.name}_kept" for v in sorted(wanted, key=lambda v: v.name)}
    one = Const(1, INT64)
    cells = tuple(Alloc(cell, (one,), np.dtype(np.float32) if v.dtype in STORAGE_ONLY else v.dtype)
                  for v, cell in kept.items())
    phases = tuple(
        Phase(tuple(stmts), parallel, tuple(v for v in kept if v in taken), tuple(v for v in kept if v in changed))
        for (parallel, stmts), taken, changed in zip(runs, takes, changes, strict=True))
    return Phases(before, (*scratch, *cells), kept, phases)
