"""What this floor does when a function is compiled for backend "CINN" (`jit.stages`)."""

from __future__ import annotations

from minipd.ir.program import Program
from minipd.jit.stages import Options, register_stage

__all__: list[str] = []


def _cinn(program: Program, options: Options) -> Program:
    from minipd.cinn.compile import build_cinn_pass  # with numba: only for who compiles
    build_cinn_pass(program)
    return program


register_stage("cinn", _cinn, needs_backend="CINN")
