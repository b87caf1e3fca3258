"""The table of compile stages: what happens to a program between the trace and the executor.

A stage is a name and a function `(program, options) -> program`, which may change the program in place.  Floors above
register theirs; the order is that of `ORDER`, whoever comes first.  Stages of phase "trace" see the forward program
before its gradient is appended, those of phase "compile" every program that will run.  With the flag `FLAGS_print_ir`
the program is printed after each, and what else the stage has made (the loops and the source of kernels).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from minipd.framework.flags import flag
from minipd.ir.program import Program

__all__ = ["Options", "register_stage", "run_stages"]

PHASES = ("trace", "compile")
#: where each stage has its place
ORDER = ("forward_fusion", "graph_passes", "decompose", "group", "cluster", "compile")


@dataclass(frozen=True)
class Options:
    """How to compile.  backend: "CINN", or None for library kernels only.  until: the last stage that programs go
    through, to look at what comes of it; "" for all."""

    backend: str | None = None
    until: str = ""


class Stage(NamedTuple):
    """needs_backend: runs only for that backend.  made: the text of what it has made beside the program, to print."""

    name: str
    function: Callable[[Program, Options], Program]
    phase: str
    needs_backend: str | None
    made: Callable[[Program], str] | None


STAGES: dict[str, Stage] = {}


def register_stage(name: str, function: Callable[[Program, Options], Program], phase: str = "compile",
                   needs_backend: str | None = None, made: Callable[[Program], str] | None = None) -> None:
    """Add a stage.

    Raises: ValueError for a name that is taken or has no place in `ORDER`, and for an unknown phase.
    """
    if name in STAGES:
        raise ValueError(f"register_stage: there is a stage {name!r} already")
    if name not in ORDER or phase not in PHASES:
        raise ValueError(f"register_stage: expected a name among {', '.join(ORDER)} and a phase among "
                         f"{', '.join(PHASES)}, got {name!r} and {phase!r}")
    STAGES[name] = Stage(name, function, phase, needs_backend, made)


def run_stages(program: Program, options: Options, phase: str, title: str = "program") -> Program:
    """Take a program through the stages of a phase.  title: what it is called where it is printed."""
    printing = flag("FLAGS_print_ir")
    if printing:
        print(f"IR of the {title}, before the stages of phase {phase} = {program}")
    for name in ORDER[:ORDER.index(options.until) + 1] if options.until else ORDER:
        stage = STAGES.get(name)
        if stage is None or stage.phase != phase or stage.needs_backend not in (None, options.backend):
            continue
        program = stage.function(program, options)
        if printing:
            print(f"IR of the {title}, after {name} = {program}")
            if stage.made is not None:
                print(stage.made(program))
    return program
