"""The statements of the loop IR; `ast` has the grammar and the rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from minipd.cinn.ir.expr import BOOL, STORAGE_ONLY, Expr, check_indices, refuse

__all__ = ["Accumulate", "Alloc", "Annotations", "BLOCK_AXES", "For", "GPU_AXES", "IfThenElse", "Init", "IterVar",
           "Let", "LOOP_KINDS", "MEMORIES", "REDUCTIONS", "Reduce", "ScheduleBlock", "Seq", "Stmt", "Store",
           "SyncThreads", "THREAD_AXES"]

#: operations that fold many values into one
REDUCTIONS = ("add", "mul", "max", "min", "and", "or")
BLOCK_AXES = ("blockIdx.x", "blockIdx.y", "blockIdx.z")
THREAD_AXES = ("threadIdx.x", "threadIdx.y", "threadIdx.z")
GPU_AXES = (*BLOCK_AXES, *THREAD_AXES)
#: where an array is: of whom it is on a GPU, `ast` says
MEMORIES = ("local", "shared", "global")
LOOP_KINDS = ("serial", "parallel", "vector", "unroll", *GPU_AXES)

#: (key, value) pairs for those who come later; they mean nothing to the interpreter
Annotations = tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class Seq:
    """One after the other; the scope of what Let, Init and Alloc in it declare."""

    stmts: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class For:
    """The body for var = 0 .. extent - 1; var is an int64."""

    var: str
    extent: Expr
    body: Stmt
    kind: str = "serial"
    annotations: Annotations = ()

    def __post_init__(self) -> None:
        check_indices(f"extent of {self.var}", (self.extent,))
        if self.kind not in LOOP_KINDS:
            refuse(f"no loop kind {self.kind!r}; there are {', '.join(LOOP_KINDS)}")


@dataclass(frozen=True, slots=True)
class IfThenElse:
    """`then` where the condition holds, else `orelse`."""

    cond: Expr
    then: Stmt
    orelse: Stmt | None = None

    def __post_init__(self) -> None:
        if self.cond.dtype != BOOL:
            refuse(f"if: expected a bool condition, got {self.cond.dtype}")


@dataclass(frozen=True, slots=True)
class IterVar:
    """An axis of what a block computes: "S", spatial, each position another element; or "R", reduced."""

    name: str
    extent: Expr
    kind: Literal["S", "R"] = "S"

    def __post_init__(self) -> None:
        check_indices(f"extent of {self.name}", (self.extent,))
        if self.kind not in ("S", "R"):
            refuse(f"iter var {self.name}: expected the kind S or R, got {self.kind!r}")


@dataclass(frozen=True, slots=True)
class ScheduleBlock:
    """One element's worth of work: body, for iter vars that have the values that the loops around give them.

    iter_values and predicate speak of the loops around; the body of iter vars alone.  A block whose predicate does not
    hold does nothing (its iter values may then lie outside of their extents).
    """

    name: str
    iter_vars: tuple[IterVar, ...]
    iter_values: tuple[Expr, ...]
    body: Stmt
    predicate: Expr | None = None
    annotations: Annotations = ()

    def __post_init__(self) -> None:
        if len(self.iter_vars) != len(self.iter_values):
            refuse(f"block {self.name}: {len(self.iter_vars)} iter vars, {len(self.iter_values)} values")
        if len({v.name for v in self.iter_vars}) != len(self.iter_vars):
            refuse(f"block {self.name}: two iter vars of one name")
        check_indices(f"iter values of {self.name}", self.iter_values)
        if self.predicate is not None and self.predicate.dtype != BOOL:
            refuse(f"block {self.name}: expected a bool predicate, got {self.predicate.dtype}")


@dataclass(frozen=True, slots=True)
class Store:
    """buffer[index] = value; the value has the buffer's dtype."""

    buffer: str
    index: tuple[Expr, ...]
    value: Expr

    def __post_init__(self) -> None:
        check_indices(f"index of {self.buffer}", self.index)


@dataclass(frozen=True, slots=True)
class Reduce:
    """buffer[index] = buffer[index] op value."""

    buffer: str
    index: tuple[Expr, ...]
    op: str
    value: Expr

    def __post_init__(self) -> None:
        check_indices(f"index of {self.buffer}", self.index)
        _check_reduction(self.op, self.value.dtype)


@dataclass(frozen=True, slots=True)
class Let:
    """A name for a scalar, from here to the end of the enclosing Seq."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Init:
    """A scalar accumulator of the value's dtype, from here to the end of the enclosing Seq."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Accumulate:
    """name = name op value, for a name that Init declares."""

    name: str
    op: str
    value: Expr

    def __post_init__(self) -> None:
        _check_reduction(self.op, self.value.dtype)


def _check_reduction(op: str, dtype: np.dtype) -> None:
    if op not in REDUCTIONS:
        refuse(f"no accumulation {op!r}; there are {', '.join(REDUCTIONS)}")
    if dtype in STORAGE_ONLY:
        refuse(f"accumulation in {dtype}: cast it to float32 first")
    if (op in ("and", "or")) != (dtype == BOOL):
        refuse(f"accumulation {op!r} of {dtype}")


@dataclass(frozen=True, slots=True)
class Alloc:
    """A local array, from here to the end of the enclosing Seq; inside a loop, a new one in every iteration."""

    buffer: str
    shape: tuple[Expr, ...]
    dtype: np.dtype
    memory: str = "local"

    def __post_init__(self) -> None:
        check_indices(f"shape of {self.buffer}", self.shape)
        if self.memory not in MEMORIES:
            refuse(f"{self.buffer}: no memory {self.memory!r}; there are {', '.join(MEMORIES)}")


@dataclass(frozen=True, slots=True)
class SyncThreads:
    """Every thread of the GPU block waits here until all have come."""


Stmt = Seq | For | IfThenElse | ScheduleBlock | Store | Reduce | Let | Init | Accumulate | Alloc | SyncThreads
