"""What a function in block form says about itself: its blocks, their axes, and who reads whom where.

Lowering names axes by letters, the same in every nest: block `exp_2` has the iter vars vi, vj and runs in the loops
i_exp_2, j_exp_2.  Here a block's axes are those letters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minipd.cinn.compute.cost import cost
from minipd.cinn.ir.ast import (
    Const,
    Expr,
    Function,
    IfThenElse,
    Load,
    Reduce,
    ScheduleBlock,
    Stmt,
    Store,
    Var,
)
from minipd.cinn.ir.walk import blocks, expressions, statements, walk

__all__ = ["INIT", "BlockInfo", "Read", "group_of", "number"]

INIT = "__reduce_init"

@dataclass(frozen=True)
class Read:
    """A block reads a buffer; along the axes in `aligned` it reads where it stands itself."""

    buffer: str
    aligned: frozenset[str]


@dataclass(frozen=True)
class BlockInfo:
    """One block.

    Attributes:
        axes: the letters of its iter vars, in the order of the loops around it.
        folded: those that it reduces.
        extents: along each axis.
        reads: which buffers of other blocks it reads.
        kind: "element" (one store to a temporary), "pieces" (a store in one of several arms), "reduction", "init" (the
            start of one) or "output".
        dtype: of the elements that it writes.
        cost: of its own formula, in additions.
        op: how a reduction combines.
    """

    name: str
    axes: tuple[str, ...]
    folded: frozenset[str]
    extents: dict[str, Expr]
    reads: tuple[Read, ...]
    kind: str
    dtype: np.dtype
    cost: int
    op: str | None = None

    @property
    def kept(self) -> tuple[str, ...]:
        """The axes of its result."""
        return tuple(a for a in self.axes if a not in self.folded)

    @property
    def terminal(self) -> bool:
        """Whether it keeps a nest of its own, whatever the schedule."""
        return self.kind != "element"


def group_of(function: Function) -> dict[str, BlockInfo]:
    """The blocks of a function as lowering gives it, in order."""
    outputs = {p.name for p in function.params if p.output}
    found: dict[str, BlockInfo] = {}
    written: dict[str, tuple[str, ...]] = {}         # the axes of each buffer's index
    for block in blocks(function.body):
        info = _info(block, outputs, written)
        found[block.name] = info
        written[_writes(block).buffer] = info.kept
    return found


def _info(block: ScheduleBlock, outputs: set[str], written: dict[str, tuple[str, ...]]) -> BlockInfo:
    write = _writes(block)
    reads: dict[str, frozenset[str]] = {}
    for whole in expressions(block.body):
        for e in walk(whole):
            if isinstance(e, Load) and e.buffer in written and e.buffer != write.buffer:
                aligned = frozenset(a for a, at in zip(written[e.buffer], e.index, strict=True) if at == Var(f"v{a}"))
                reads[e.buffer] = reads.get(e.buffer, aligned) & aligned
    if isinstance(write, Reduce):
        kind = "reduction"
    elif write.buffer in outputs:
        kind = "output"
    elif block.name.endswith(INIT):
        kind = "init"
    elif any(isinstance(x, IfThenElse) for x in statements(block.body)):
        kind = "pieces"
    else:
        kind = "element"
    return BlockInfo(
        block.name, tuple(v.name[1:] for v in block.iter_vars),
        frozenset(v.name[1:] for v in block.iter_vars if v.kind == "R"),
        {v.name[1:]: v.extent for v in block.iter_vars}, tuple(Read(b, a) for b, a in reads.items()), kind,
        write.value.dtype, sum(map(cost, expressions(block.body))), write.op if isinstance(write, Reduce) else None)


def _writes(block: ScheduleBlock) -> Store | Reduce:
    stores: list[Stmt] = [x for x in statements(block.body) if isinstance(x, Store | Reduce)]
    return stores[-1]  # type: ignore[return-value]


def number(extent: Expr) -> int | None:
    """An extent, if it is known."""
    return int(extent.value) if isinstance(extent, Const) else None
