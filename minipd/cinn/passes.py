"""The compiler as passes, by name (`PassManager.add_pass`).  What compiles is imported, with numba, when they run."""

from __future__ import annotations

from minipd.cinn.dialect import GROUP
from minipd.ir.program import Program
from minipd.passes.base import Pass
from minipd.passes.table import register_pass

__all__ = ["ApplyCinn", "BuildCinn", "CinnGroupCluster", "CompileFusedRows", "LowerCinnFusionOp", "PdToCinn"]


@register_pass("apply_cinn_pass")
class ApplyCinn(Pass):
    """What can be kernels is fused and compiled, by the four passes below; the number of changes is that of the
    kernels."""

    opt_level = 4

    def run(self, program: Program) -> int:
        from minipd.cinn.compile import apply_cinn_pass
        return apply_cinn_pass(program)


@register_pass("pd_to_cinn_pass")
class PdToCinn(Pass):
    """What the compiler has no loops for is taken apart, where its parts have; the number of changes is that of the
    operations."""

    opt_level = 4

    def run(self, program: Program) -> int:
        from minipd.cinn.parts import prepare
        return prepare(program)


@register_pass("build_cinn_pass")
class BuildCinn(Pass):
    """What of a program may have loops is put into `cinn_op.group`s; the number of changes is theirs."""

    opt_level = 4

    def run(self, program: Program) -> int:
        from minipd.cinn.frontend import detect_groups
        return len(detect_groups(program))


@register_pass("cinn_group_cluster_pass")
class CinnGroupCluster(Pass):
    """Groups become `cinn_op.fusion`s, each of which will be a kernel; the number of changes is that of both."""

    opt_level = 4

    def run(self, program: Program) -> int:
        from minipd.cinn.frontend import cluster_groups
        groups = sum(op.name() == GROUP for op in program.walk())
        return len(cluster_groups(program)) + groups


@register_pass("lower_cinn_fusion_op_pass")
class LowerCinnFusionOp(Pass):
    """Fusions become kernels (`cinn_runtime.jit_kernel`); the number of changes is that of the kernels."""

    opt_level = 4

    def run(self, program: Program) -> int:
        from minipd.cinn.compile import compile_groups
        return compile_groups(program)


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
