"""What this floor does when a function is compiled (`jit.stages`): fusions of the forward program, and graph passes."""

from __future__ import annotations

from minipd.ir.program import Program
from minipd.jit.stages import Options, register_stage
from minipd.passes.fusion import fuse_forward
from minipd.passes.manager import PassManager
from minipd.passes.pipelines import GRAPH_PASSES

__all__: list[str] = []


def _forward_fusion(program: Program, options: Options) -> Program:
    fuse_forward(program)
    return program


def _graph_passes(program: Program, options: Options) -> Program:
    manager = PassManager()
    for name in GRAPH_PASSES:
        manager.add_pass(name)
    manager.run(program)
    return program


register_stage("forward_fusion", _forward_fusion, "trace")
register_stage("graph_passes", _graph_passes)
