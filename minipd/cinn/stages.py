"""What this floor does when a function is compiled for backend "CINN" (`jit.stages`): the parts of `apply_cinn_pass`,
each of which `FLAGS_print_ir` shows.

What compiles is imported, with numba, only by who compiles.
"""

from __future__ import annotations

from minipd.ir.program import Program
from minipd.jit.stages import Options, register_stage

__all__: list[str] = []


def _decompose(program: Program, options: Options) -> Program:
    from minipd.cinn.compile import prepare
    prepare(program)
    return program


def _group(program: Program, options: Options) -> Program:
    from minipd.cinn.frontend import detect_groups
    detect_groups(program)
    return program


def _cluster(program: Program, options: Options) -> Program:
    from minipd.cinn.frontend import cluster_groups
    cluster_groups(program)
    return program


def _compile(program: Program, options: Options) -> Program:
    from minipd.cinn.compile import compile_groups
    compile_groups(program)
    return program


def _kernels(program: Program) -> str:
    from minipd.cinn.kernels import kernel_texts
    return kernel_texts(program)


register_stage("decompose", _decompose, needs_backend="CINN")
register_stage("group", _group, needs_backend="CINN")
register_stage("cluster", _cluster, needs_backend="CINN")
register_stage("compile", _compile, needs_backend="CINN", made=_kernels)
