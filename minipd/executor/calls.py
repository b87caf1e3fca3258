"""Kernel selection, ahead: what each operation of a program will call.

A `Call` says which function computes an operation, for its dtypes, what it reads and makes, and what the memory plan
may assume of it.  Operations of dialect `kernel` get theirs from the table of kernels, by their key; those of
floors above have makers (`makers`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from minipd.executor.kernel.table import CPU, select, transfer
from minipd.executor.makers import MAKERS
from minipd.executor.overwriting import overwritable
from minipd.framework.row import Trait, ufunc_of
from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.ir.value import Value

__all__ = ["Call"]


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
    comm: the function takes this rank's communicator first.  ufunc: the function of numpy that `kernel_out` is, if it
    is just that.
    library: `kernel_out` is the row's own, for arrays of numpy and the dtypes as they are.
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
    library: bool = False
    inplace_state: bool = False

    def reads(self) -> list[Value]:
        """The operands whose values are read."""
        return [v for i, v in enumerate(self.operands) if i not in self.shape_only]


def call_of(op: Operation) -> Call:
    """The prepared call of an operation of a lowered program.

    Raises: ValueError for an operation that cannot be executed, naming it.
    """
    maker = MAKERS.get(op.name())
    if maker is not None:
        return maker(op)
    row = op.row
    key = op.attributes["kernel_key"].value if "kernel_key" in op.attributes else None
    if key is None:
        raise ValueError(f"executor: expected operators of the table and of the dialects builtin and cf, got "
                         f"{op.name()}; lower it first")
    if row is None:
        return Call(op, op.operands_source(), op.results(), kernel=transfer(op.name(), key.backend))
    kernel, kernel_out = select(row, key)
    operands = tensor_operands(op)
    if key.backend == CPU and row.key >= len(operands):     # what makes values of nothing makes them as they are wanted
        kernel, kernel_out = row.kernel, row.kernel_out
    found = Call(op, operands, result_values(op), op_attrs(op), kernel, kernel_out, multi=row.multi,
                 shape_only=row.shape_only, comm=row.comm)
    if key.backend == CPU:
        found.view = row.view
        # a mark of a global program hands its operand on, and so does a collective of one rank
        found.passes = row.comm or row.dialect != "pd_op"
        found.overwrites = overwritable(row)
        found.updates = row.inplace if Trait.INPLACE in row.traits else {}
        found.keeps_order = Trait.ELEMENTWISE in row.traits
        found.library = kernel_out is row.kernel_out
        found.ufunc = ufunc_of(row) if found.library else None
        found.constant = row.name in ("full", "full_int_array", "shape_only")
    elif kernel is not None:
        found.kernel_out, found.passes = None, True     # the arena is the CPU's; the other one allocates, or hands on
    return found
