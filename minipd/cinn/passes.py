"""The compiler as passes, by name (`PassManager.add_pass`).  What compiles is imported, with numba, when they run."""

from __future__ import annotations

from minipd.ir.program import Program
from minipd.passes.base import Pass
from minipd.passes.table import register_pass

__all__ = ["BuildCinn", "CompileFusedRows"]


@register_pass("build_cinn_pass")
class BuildCinn(Pass):
    """What can be kernels is fused and compiled; the number of changes is that of the groups."""

    opt_level = 4

    def run(self, program: Program) -> int:
        from minipd.cinn.compile import build_cinn_pass
        return build_cinn_pass(program)


@register_pass("compile_fused_rows_pass")
class CompileFusedRows(Pass):
    """Operators that stand for several become kernels of their own; the number of changes is that of the operators.

    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.framework.meta import Meta
    >>> from minipd.ir.traced import trace
    >>> from minipd.ops.activation import softmax
    >>> program = trace(lambda x: softmax(x) + 1.0, Meta((4, 8), dtypes.float32.np)).program
    >>> CompileFusedRows().run(program)
    1
    >>> [op.name() for op in program.global_block()]
    ['pd_op.data', 'cinn_runtime.jit_kernel', 'pd_op.full', 'pd_op.add', 'builtin.shadow_output']
    """

    opt_level = 2

    def run(self, program: Program) -> int:
        from minipd.cinn.fused_rows import compile_fused_rows
        return compile_fused_rows(program)
