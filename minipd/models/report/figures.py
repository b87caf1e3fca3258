"""The pictures of a report, each drawn from what the run has left; None where it has left nothing."""

from __future__ import annotations

import re
from typing import NamedTuple

from minipd import viz
from minipd.dist.mesh import parse_mesh
from minipd.ir.parser import parse
from minipd.ir.program import Program
from minipd.models.report.run import TIMELINE, Run, broken
from minipd.parallel.pipeline.schedule import schedule
from minipd.viz.chart import Line, bars, curves
from minipd.viz.dist.reshard import size_text
from minipd.viz.svg import Svg

__all__ = ["Fused", "fusion", "ideal", "loss", "measured", "memory", "mesh"]


def loss(run: Run) -> Svg | None:
    """Training and validation loss over steps, with the entropies of counting models to get below."""
    lines = [Line(name, [(row["step"], row[key]) for row in run.metrics if key in row], kind, dots)
             for key, name, kind, dots in (("loss", "training", "first", False),
                                           ("val_loss", "validation", "second", True))]
    try:
        return curves(lines, run.entropy, "step", "loss, nats per token", "loss curve")
    except ValueError:                      # no step was taken, or no loss was finite
        return None


def mesh(run: Run) -> Svg:
    """The ranks."""
    return viz.mesh(parse_mesh(run.config.dist.mesh))


def measured(run: Run) -> Svg | None:
    """What every rank did when in the last step, if there was a pipeline."""
    if not run.timeline:
        return None
    try:
        return viz.timeline(run.timeline, "measured pipeline of the last step")
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise broken(f"records of jobs in {TIMELINE}", f"{run.name} ({error})") from None


def ideal(run: Run) -> Svg | None:
    """The same schedule if nothing but jobs took time, a backward job twice as long as a forward one."""
    stages = run.config.dist.axes.get("pp", 1)
    if not run.timeline or stages == 1:
        return None
    jobs = schedule(run.config.dist.schedule, stages, run.config.train.micro_batches)
    return viz.schedule(jobs, {"forward": 1, "backward": 2, "optimizer": 1}, f"{run.config.dist.schedule}, ideal")


def memory(run: Run) -> Svg | None:
    """The most memory that each rank's process held."""
    if not run.memory:
        return None
    return bars({f"rank {rank}": peak for rank, peak in run.memory.items()},
                {f"rank {rank}": size_text(peak) for rank, peak in run.memory.items()}, "peak memory per rank")


class Fused(NamedTuple):
    """A part of a program before fusion, and after; the file names; how many operations the whole has each time."""

    layer: str
    rank: str
    before: Svg
    after: Svg | None
    files: tuple[str, ...]
    counts: tuple[int, ...]


def fusion(run: Run) -> Fused | None:
    """One layer of a rank's program, before and after the compiler has fused it; before only, if it was not compiled.

    Raises: InputError for a program that does not read.
    """
    name = next((n for n in run.programs if re.fullmatch(r"step\.rank\d+(\.forward)?\.pir", n)), None)
    if name is None:
        return None
    files = tuple(n for n in (name, name.replace(".pir", ".cinn.pir")) if n in run.programs)
    programs = [_parsed(run, file) for file in files]
    parts = [part for part in map(layer_part, programs) if part is not None]
    if len(parts) < len(files):
        return None
    before, *after = [viz.program(program, f"{layer} in {file}", ops)
                      for program, (layer, ops), file in zip(programs, parts, files, strict=True)]
    rank = re.search(r"rank(\d+)", name)
    return Fused(parts[0][0], rank[1] if rank else "0", before, after[0] if after else None, files,
                 tuple(p.num_ops() for p in programs))


def _parsed(run: Run, file: str) -> Program:
    try:
        return parse(run.programs[file])
    except ValueError as error:
        raise broken("a program in the exact style", f"{file} in {run.name} ({error})") from None


def layer_part(program: Program) -> tuple[str, range] | None:
    """(`layer 0`, its operations): from the first that reads a parameter of a layer to the first that reads a parameter
    of something else; None if no parameter belongs to a layer."""
    first, layer = 0, None
    for i, op in enumerate(program.global_block()):
        for value in op.operands_source():
            source = value.get_defining_op()
            if source is None or source.name() != "builtin.parameter" or op.name() == "builtin.combine":
                continue
            found = re.search(r"\.layers\.(\d+)\.", f".{source.attributes['parameter_name'].value}")
            number = found[1] if found else None
            if layer is None and number is not None:
                first, layer = i, number
            elif layer is not None and number != layer:
                return f"layer {layer}", range(first, i)
    return (f"layer {layer}", range(first, len(program.global_block()))) if layer is not None else None
