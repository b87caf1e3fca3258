"""What is fused in a forward program, before its gradient is appended.

Fused first, differentiated then: the gradient is that of the fused operator, written by hand, and what the composed
form would have kept for its gradient is not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minipd.ir.builder import Builder
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.value import Value
from minipd.passes.drr import RULES
from minipd.passes.pattern import apply_patterns_greedily
from minipd.passes.pipelines import FORWARD_FUSIONS

__all__ = ["fuse_forward"]


def fuse_forward(program: Program, keep: Sequence[Value] = (), after: Operation | None = None) -> list[Value]:
    """Fuse what `FORWARD_FUSIONS` names, where it stands composed.

    keep: values that Python still holds (the loss); returns those that stand for them now.  Every other value that is
    not an input of the program may be gone.  after: leave what stands up to this operation of the global block alone.
    """
    block = program.global_block()
    # an output of the program has a user, so it is no value between others, and is replaced like any operand
    build, holders = Builder(block), list[Operation]()
    for i, value in enumerate(keep):
        holders.append(build.output(f"fuse_forward_{i}", value))
    rules = [rule for name, wanted in FORWARD_FUSIONS.items() for rule in RULES[name] if rule.name in wanted]
    apply_patterns_greedily(program, rules, ops=_from(block.front() if after is None else after.next))
    kept = [holder.operand_source(0) for holder in holders]
    for holder in holders:
        holder.erase()
    return kept


def _from(op: Operation | None) -> Iterable[Operation]:
    found = []
    while op is not None:
        found.append(op)
        op = op.next
    return found
