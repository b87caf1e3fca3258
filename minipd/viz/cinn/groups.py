"""Drawing what the compiler fuses: a program in its fusion groups, or one group."""

from __future__ import annotations

from minipd.cinn.compile import prepare
from minipd.cinn.dialect import FUSION
from minipd.cinn.frontend import build_groups
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.viz.ir.program import program_graph
from minipd.viz.render import graph_svg
from minipd.viz.svg import Svg

__all__ = ["grouped", "groups"]


def groups(program: Program, title: str = "fusion groups", ops: range | None = None) -> Svg:
    """The picture of a program's fusion groups: what each frame holds becomes one kernel.

    The program itself is not changed.  One that has no groups yet is decomposed and grouped; `ops` counts out a part of
    what comes of that.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> groups(trace(lambda x: (x * x).exp(), Meta((2,), dtypes.float32.np)).program)
    <Svg 'fusion groups', ...>
    """
    return graph_svg(program_graph(grouped(program), title, ops))


def grouped(program: Program) -> Program:
    """A copy of a program, decomposed and in fusion groups; the program itself if it has groups."""
    if any(op.name() == FUSION for op in program.walk()):
        return program
    copy = program.clone()
    prepare(copy)
    build_groups(copy)
    return copy


def is_group(op: Operation) -> bool:
    """Whether an operation is a fusion group."""
    return op.name() == FUSION
