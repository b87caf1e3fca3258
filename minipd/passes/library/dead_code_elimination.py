"""Operations whose results nothing reads, and which do nothing else, are removed."""

from __future__ import annotations

from minipd.ir.dce import remove_dead_ops
from minipd.ir.program import Program
from minipd.passes.base import Pass
from minipd.passes.table import register_pass

__all__ = ["DeadCodeElimination"]


@register_pass("dead_code_elimination_pass")
class DeadCodeElimination(Pass):
    """The number of changes is the number of operations that are gone."""

    opt_level, exact = 0, True

    def run(self, program: Program) -> int:
        return remove_dead_ops(program)
