"""Kernel selection, ahead: what each operation of a program will call.

A `Call` says which function computes an operation, for its dtypes, what it reads and makes, and what the memory plan
may assume of it.  Operations of the operator table get theirs from their row.  A floor above that has operations of its
own registers a maker for them:

    register_maker("cinn_runtime.jit_kernel", lambda op: Call(op, op.operands_source(), op.results(), kernel_out=f))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from minipd.executor.overwriting import overwritable
from minipd.framework import dtype as dtypes
from minipd.framework.row import Row, Trait, ufunc_of
from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.ir.value import Value

__all__ = ["Call", "register_maker"]


@dataclass
class Call:
    """One operation, prepared.

    operands, results: the values that the function takes and makes, bundles taken apart.
    kernel: `kernel(*operands, **attrs)` returns the result, or a tuple of results.  None: only `kernel_out` is there.
    kernel_out: `kernel_out(out, *operands, **attrs)` writes into the buffer `out`, a tuple of buffers if `multi`.
        None: the row allocates.
    bind: `bind(outs, operands)` returns the function without arguments that does the same on just these arrays; only
        where there is something better than to hold the arguments for `kernel_out`.
    shape_only: the operands of which only the shape is read.  They keep nothing alive.
    view: the result may share memory with operand 0, which is then all that happens.
    passes: the result may be an operand itself.
    overwrites: result -> the operands that `kernel_out` may write it over.
    updates: result -> the operand whose new value it is, if it may be written over it (optimizers).
    keeps_order: the result is laid out in memory as the operands are (element-wise kernels), not in row-major order.
    comm: the function takes this rank's communicator first.  ufunc: what `kernel_out` is, if it is just that.
    constant: it depends on nothing but attributes.  inplace_state: it writes over the program state that it reads.
    """

    op: Operation
    operands: Sequence[Value]
    results: Sequence[Value]
    attrs: dict[str, Any] = field(default_factory=dict)
    kernel: Callable | None = None
    kernel_out: Callable | None = None
    bind: Callable[[Sequence[Any], Sequence[Any]], Callable[[], Any]] | None = None
    multi: bool = False
    shape_only: tuple[int, ...] = ()
    view: bool = False
    passes: bool = False
    overwrites: dict[int, tuple[int, ...]] = field(default_factory=dict)
    updates: dict[int, int] = field(default_factory=dict)
    keeps_order: bool = False
    ufunc: Callable | None = None
    comm: bool = False
    constant: bool = False
    inplace_state: bool = False

    def reads(self) -> list[Value]:
        """The operands whose values are read."""
        return [v for i, v in enumerate(self.operands) if i not in self.shape_only]


Maker = Callable[[Operation], Call]
MAKERS: dict[str, Maker] = {}


def register_maker(op_name: str, maker: Maker) -> None:
    """Let the executor run operations called `op_name`, of a dialect of a floor above.

    Raises: ValueError if there is a maker for them already.
    """
    if op_name in MAKERS:
        raise ValueError(f"register_maker: {op_name} has a maker already, {MAKERS[op_name]}")
    MAKERS[op_name] = maker


def call_of(op: Operation) -> Call:
    """The prepared call of an operation.

    Raises: ValueError for an operation that cannot be executed, naming it.
    """
    maker = MAKERS.get(op.name())
    if maker is not None:
        return maker(op)
    row = op.row
    if row is None:
        raise ValueError(f"executor: expected operators of the table and of the dialects builtin and cf, got "
                         f"{op.name()}; lower it first")
    values = tensor_operands(op)
    kernel, kernel_out = kernels_for(row, values)
    return Call(
        op, values, result_values(op), op_attrs(op), kernel, kernel_out, multi=row.multi, shape_only=row.shape_only,
        view=row.view,
        # a mark of a global program hands its operand on, and so does a collective of one rank
        passes=row.comm or row.dialect != "pd_op", overwrites=overwritable(row),
        updates=row.inplace if Trait.INPLACE in row.traits else {},
        keeps_order=Trait.ELEMENTWISE in row.traits, comm=row.comm,
        ufunc=ufunc_of(row) if kernel_out is row.kernel_out else None,
        constant=row.name in ("full", "full_int_array", "shape_only"))


def kernels_for(row: Row, values: Sequence[Value]) -> tuple[Callable | None, Callable | None]:
    """The row's `kernel` and `kernel_out` for the dtype of its key operand; rows without operands have one of each."""
    if row.comm or row.key >= len(values):
        return row.kernel, row.kernel_out
    code = dtypes.of(values[row.key].dtype).code
    return row.kernels[code], row.kernel_outs[code]
