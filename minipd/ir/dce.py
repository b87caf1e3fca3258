"""Removing operations whose results nobody uses, and whose running nobody notices."""

from __future__ import annotations

from minipd.ir.program import Program
from minipd.ir.schema import is_pure

__all__ = ["remove_dead_ops"]


def remove_dead_ops(program: Program) -> int:
    """Remove dead operations from the global block, users before what they use; returns how many."""
    removed = 0
    for op in reversed(list(program.global_block())):
        if is_pure(op) and not op.regions and op.num_results() and all(r.use_empty() for r in op.results()):
            op.erase()
            removed += 1
    return removed
