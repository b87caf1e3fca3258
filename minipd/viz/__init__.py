"""Pictures of everything that minipd makes: `from minipd import viz`, or the object itself at the end of a cell.

    viz.tape(loss)                              the recorded calls behind a tensor
    viz.program(p), viz.program(p, depth=1)     operations, values, regions; folded by layer
    viz.layers(p)                               the same as a page of layers that open and close
    viz.changes(p, "silu_fuse_pass")            a program before and after passes, side by side
    viz.matches(p, "silu_fuse_pass")            where rules match, or how near they come
    viz.use_def(value)                          who makes it, who reads it
    viz.dependencies(executor.dependencies())   which instruction must come before which
    viz.streams(schedule(graph))                streams and events on the simulated clock
    viz.memory(executor, S0=8)                  where buffers lie in the arena, and from when to when
    viz.run(prof.spans)                         what a profiler has measured
    viz.groups(p)                               what the compiler fuses
    viz.loops(p)                                the loop nests that come of it
    viz.steps(p)                                how they came about: the nests after each primitive
    viz.mesh(m)                                 ranks, and who talks to whom
    viz.tensor(t), viz.sharding(shape, ...)     which rank holds which piece
    viz.reshard(shape, mesh, src, dst)          the steps, and what they send
    viz.placed(program, rank=0)                 a program with its placements, and a rank's own beside it
    viz.schedule(jobs), viz.timeline(records)   a pipeline: the ideal, and the measured

Each returns an `Svg` (`layers`: a `Page`): a notebook shows it, `.save(path)` writes it, `.svg` is its text.  Nothing
else is needed for it, Graphviz neither; a picture of a graph also has DOT text (`.source`).

    autograd/, ir/, executor/, passes/, cinn/, dist/, parallel/     the drawers, each on the floor of what it draws
    shown                       what makes notebooks show the objects themselves
    graph, layout/, render      nodes and edges: what they are, where they stand, how they are drawn
    svg, style, chart           the sheet that is drawn on, its colours, plain charts
    command/                    `minipd draw`
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["changes", "dependencies", "groups", "layers", "loops", "matches", "memory", "mesh", "placed", "program",
           "reshard", "run", "schedule", "sharding", "steps", "streams", "tape", "tensor", "timeline", "use_def"]

#: name -> the drawer's module.  They are imported when asked for: each belongs to a floor, which may be closed.
DRAWERS = {
    "tape": "autograd.tape", "program": "ir.program", "use_def": "ir.uses", "groups": "cinn.groups",
    "changes": "passes.changes", "matches": "passes.matches",
    "layers": "ir.layers", "memory": "executor.memory",
    "dependencies": "executor.dependencies", "streams": "executor.timeline", "run": "executor.timeline",
    "loops": "cinn.loops", "steps": "cinn.steps",
    "mesh": "dist.mesh", "tensor": "dist.sharding", "sharding": "dist.sharding",
    "reshard": "dist.reshard", "placed": "dist.placed",
    "schedule": "parallel.timeline", "timeline": "parallel.timeline",
}


def __getattr__(name: str) -> Any:
    if name not in DRAWERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(DRAWERS)}")
    return getattr(importlib.import_module(f"{__name__}.{DRAWERS[name]}"), name)


def __dir__() -> list[str]:
    return __all__
