"""What the rows of optimizers share.

Operands come in one order: the parameter, its gradient, what the optimizer keeps for it, then `step` (from 1) and
`learning_rate`, if the formula asks for them, and `skip_update`.  Results are the new parameter and what is kept.

A row's `formula(xp, param, grad, *kept, [t], [lr], **attributes)` says what the new values are, with
arithmetic and a few functions of `xp`.  So it serves as the kernel, on arrays, and as the decomposition, on tensors.
Step and rate come to it in float64, whatever the parameter: 1 - beta^step would lose digits in float32.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from minipd.framework.meta import Meta
from minipd.framework.row import Row

__all__: list[str] = []

#: what a formula calls step and learning rate
NUMBERS = frozenset({"t", "lr"})
#: elements of a block
BLOCK = 1 << 15


def metas(*tensors: Any) -> tuple[Meta, ...]:
    """Each result looks like what it replaces."""
    return tuple(Meta(x.shape, x.dtype) for x in tensors)


def in_blocks(*arrays: Any) -> Iterator[Sequence[Any]]:
    """Arrays of one shape, a block of elements at a time: what an update needs besides then stays in the cache, and is
    no second parameter in memory."""
    if arrays[0].size <= BLOCK or not all(a.flags.c_contiguous for a in arrays):
        yield arrays
        return
    flat = [a.reshape(-1) for a in arrays]
    for start in range(0, flat[0].size, BLOCK):
        yield [a[start:start + BLOCK] for a in flat]


class Operands(NamedTuple):
    """The operands of a row, sorted: what the formula is given, and what the results replace."""

    tensors: tuple
    numbers: tuple
    skip: Any
    old: tuple


def sorter(formula: Callable) -> Callable[[tuple], Operands]:
    """What sorts the operands of the row with this formula."""
    count = len(NUMBERS & inspect.signature(formula).parameters.keys())

    def sort(operands: tuple) -> Operands:
        *given, skip = operands
        n = len(given) - count
        return Operands(tuple(given[:n]), tuple(given[n:]), skip, (given[0], *given[2:n]))
    return sort


def stepping(formula: Callable) -> tuple[Callable, Callable]:
    """(kernel, kernel_out) of the row with this formula.  Where `skip_update` holds, nothing changes."""
    sort = sorter(formula)

    def kernel(xp: Any, *operands: Any, **attrs: Any) -> tuple:
        tensors, numbers, skip, old = sort(operands)
        if skip:
            return tuple(xp.array(x) for x in old)
        new = formula(xp, *tensors, *map(float, numbers), **attrs)
        # what a formula leaves as it is would be its operand's own memory
        return tuple(xp.array(x) if x is y else xp.asarray(x, y.dtype) for x, y in zip(new, old, strict=True))

    def kernel_out(xp: Any, out: Any, *operands: Any, **attrs: Any) -> None:
        for buffer, new in zip(out, kernel(xp, *operands, **attrs), strict=True):
            buffer[...] = new

    kernel.formula = formula        # type: ignore[attr-defined]
    return kernel, kernel_out


def formula_of(row: Row) -> Callable | None:
    """The formula of an optimizer's row, None where it has none."""
    return getattr(getattr(row.kernel, "func", None), "formula", None)
