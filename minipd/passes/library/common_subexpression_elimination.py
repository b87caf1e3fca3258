"""Of two operations that compute the same, the first serves for both.

    >>> from minipd.passes.show import before_after, show
    >>> def twice(x, y):
    ...     return (x * y).exp() + (y * x).exp()
    >>> show(before_after("common_subexpression_elimination_pass", twice, (2,), (2,)))
    before
      a = multiply(x, y)
      b = exp(a)
      c = multiply(y, x)
      d = exp(c)
      e = add(b, d)
      return e
    after
      a = multiply(x, y)
      b = exp(a)
      c = add(b, b)
      return c

The same: one operator, the same operands (in any order where they commute to the bit), the same attributes, as long as
running it once or twice makes no difference.  So never: draws of random numbers (two calls are two draws), collectives
and other effects, reads of state, branches.

The walk keeps one table per block.  A block sees the tables of the blocks around it, as its operations see their
values; what a region computes serves nobody outside, for it may not have run.  On the same programs Paddle's pass of
this name leaves the same operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minipd.framework.row import Trait
from minipd.ir.block import Block
from minipd.ir.operation import Operation, captured
from minipd.ir.program import Program
from minipd.ir.schema import is_pure, number_of_tensors
from minipd.ir.traits import IrTrait
from minipd.passes.base import Pass
from minipd.passes.table import register_pass

__all__ = ["CommonSubexpressionElimination"]

#: facts about an operation that do not change what it computes.  (Whether a gradient flows is not one of them: it
#: decides what the gradient of the program will be.)
FACTS = ("as_written", "comp_op_name", "is_inplace", "op_callstack", "place", "struct_name")
#: operations that make one value of several, a vector, and take one apart
BUNDLES = ("builtin.combine", "builtin.split")

#: operators that commute, but not to the bit: of 0.0 and -0.0 they give the first
ORDERED = ("pd_op.maximum", "pd_op.minimum")

Table = dict[Any, Operation]


@register_pass("common_subexpression_elimination_pass")
class CommonSubexpressionElimination(Pass):
    """Of equal operations the first one remains.  The number of changes is the number of operations that are gone."""

    exact = True

    def run(self, program: Program) -> int:
        removed = 0
        # a block that is half walked, and the tables that it sees, its own last; needs no recursion
        pending: list[tuple[Iterable[Operation], list[Table]]] = [(iter(program.global_block()), [{}])]
        while pending:
            ops, tables = pending[-1]
            for op in ops:
                if op.regions:
                    seen = [] if _lists_what_it_reads(op) else tables
                    pending += [(iter(block), [*seen, {}]) for block in _blocks(op)]
                    break
                removed += _merged(op, tables)
            else:
                pending.pop()
        return removed


def _blocks(op: Operation) -> list[Block]:
    return list(op.blocks())


def _lists_what_it_reads(op: Operation) -> bool:
    """Whether the operands are exactly what the regions read of outside, as in a `cinn_op.fusion`: then they read
    nothing else afterwards either."""
    return set(captured(op)) == set(op.operands_source())


def _merged(op: Operation, tables: list[Table]) -> bool:
    """Whether `op` was computed before, and is gone; else it is remembered."""
    if not _repeatable(op):
        return False
    key = _key(op)
    for table in tables:
        if key in table:
            op.replace_all_uses_with(table[key].results())
            op.erase()
            return True
    tables[-1][key] = op
    return False


def _repeatable(op: Operation) -> bool:
    """Whether running an operation once or twice makes no difference.

    True for calls of rows and for BUNDLES, if they are pure, draw no random numbers, do not communicate, and read no
    state; False for everything else.
    """
    traits = op.info.traits
    return (op.row is not None or op.name() in BUNDLES) and is_pure(op) and not traits & {
        Trait.RANDOM, Trait.COMM, IrTrait.READS_STATE}


def _key(op: Operation) -> Any:
    """Equal for operations that compute the same, and for no others; can be the key of a dict.

    They have one name, the same operands (tensors in any order if the operator commutes to the bit; what stands for
    attributes in its place), equal attributes but for FACTS, and results of the same types.
    """
    operands = [id(v) for v in op.operands_source()]
    if op.has_trait(Trait.COMMUTATIVE) and op.row is not None and op.name() not in ORDERED:
        n = number_of_tensors(op, op.row)
        operands[:n] = sorted(operands[:n])
    attributes = tuple(sorted(((k, a) for k, a in op.attributes.items() if k not in FACTS), key=lambda pair: pair[0]))
    return op.name(), tuple(operands), attributes, tuple(r.type() for r in op.results())
