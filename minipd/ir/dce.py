"""Dead code elimination: operations whose results nothing reads, and which do nothing else.

An `if` or a loop that stays loses what nobody reads of it: results of an `if`, with what its blocks yield for them, and
what a loop carries without looking at it.
"""

from __future__ import annotations

from collections.abc import Iterable

from minipd.ir.operation import Operation, walk_inside
from minipd.ir.program import Program
from minipd.ir.schema import is_pure
from minipd.ir.traits import IrTrait
from minipd.ir.types import StackType
from minipd.ir.value import Value

__all__ = ["erase_unread", "remove_dead_ops"]


def remove_dead_ops(program: Program) -> int:
    """Remove the operations whose results nothing reads, and which do nothing else, in regions too; returns how many
    operations are gone, those inside of others counted.

    Inputs (`pd_op.data`) stay, used or not: they are the program's signature.
    """
    before = program.num_ops()
    _remove(program)
    while _prune(program):          # what was yielded may be dead now
        _remove(program)
    return before - program.num_ops()


def erase_unread(values: Iterable[Value]) -> None:
    """Erase the constants and vectors among what makes these values, if nothing reads them any more, and the constants
    and vectors that only those read.  For who has erased a reader of `values`, and is not going to look at the whole
    program."""
    for op in dict.fromkeys(v.get_defining_op() for v in values):
        if op is not None and op.parent is not None and all(r.use_empty() for r in op.results()) and (
                op.name() == "builtin.combine" or IrTrait.CONSTANT in op.info.traits):
            sources = op.operands_source()
            op.erase()
            erase_unread(sources)


def _remove(program: Program) -> None:
    """Remove whatever is dead (`_dead`), in regions too, until nothing is.  Takes one walk over the program."""
    # users stand behind what they use, so going from the back sees every use that remains; the regions of an operation
    # that stays come before what stands in front of it, because they use that
    open_blocks = [reversed(program.global_block().ops)]
    while open_blocks:
        op = next(open_blocks[-1], None)
        if op is None:
            open_blocks.pop()
        elif _dead(op):
            op.erase()
        else:
            open_blocks += [reversed(block.ops) for block in op.blocks()]


def _prune(program: Program) -> bool:
    """Remove results of `if` and `while` that nothing reads; whether there were any."""
    found = False
    for op in [op for top in program.global_block().ops for op in walk_inside(top)]:
        if op.name() not in ("pd_op.if", "pd_op.while"):
            continue
        for i in reversed(range(op.num_results())):
            if op.result(i).use_empty() and (op.name() == "pd_op.if" or _only_carried(op, i)):
                _drop(op, i)
                found = True
    return found


def _only_carried(loop: Operation, i: int) -> bool:
    """Whether an iteration does nothing with its i-th value, or only hands it on in the same place."""
    block = loop.regions[0].front()
    return all(use.owner() is block.back() and use.index() == i + 1 for use in block.args()[i].uses)


def _drop(op: Operation, i: int) -> None:
    """Remove the i-th result, and what belongs to it."""
    loop = op.name() == "pd_op.while"
    for region in op.regions:
        end = region.front().back()
        assert end is not None
        end.erase_operand(i + 1 if loop else i)
    if loop:
        op.regions[0].front().erase_arg(i)
        op.erase_operand(i + 1)
    op.erase_result(i)


def _dead(op: Operation) -> bool:
    """Whether an operation has no users, and it and everything inside of it may go."""
    if op.name() in ("pd_op.data", "cf.yield") or not all(r.use_empty() for r in op.results()):
        return False
    if op.name() == "cf.tuple_pop" and _counts(op):
        return False
    return all(inner.name() == "cf.yield" or _removable(inner) for inner in walk_inside(op))


def _counts(pop: Operation) -> bool:
    """Whether something asks the stack that is popped whether it has elements: without the pop, it always would."""
    maker = pop.operand_source(0).get_defining_op()
    return maker is not None and any(use.owner().name() == "cf.has_elements" for r in maker.results() for use in r.uses)


def _removable(op: Operation) -> bool:
    """Whether nothing but its results tells that an operation ran.  A push shows only in the pop of its stack."""
    if op.name() == "cf.tuple_push":
        create = op.operand_source(0).get_defining_op()
        return create is not None and all(create.result(StackType.ENDS.index(end)).use_empty()
                                          for end in ("stack", "outlet"))
    return op.name() in ("cf.tuple_pop", "cf.has_elements") or is_pure(op)
