"""`minipd draw` mesh, tensor, reshard, placed, schedule."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from minipd import viz
from minipd.framework.errors import InputError
from minipd.framework.files import reason
from minipd.viz.command.graphs import program_arguments, program_of
from minipd.viz.svg import Svg

__all__: list[str] = []

Picture = tuple[Svg, str]
TENSOR = 'how it is sharded, such as "f32[16_dp, 128, 64_tp]{P_pp}"'


# --------------------------------------------------------------------------------------------------- arguments
def mesh_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("mesh", help="its axes and their sizes, outermost first, such as dp=2,tp=2")


def tensor_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("tensor", help=TENSOR)
    _mesh_option(parser)


def reshard_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", help=TENSOR)
    parser.add_argument("target", help="the same tensor, as it shall be sharded")
    _mesh_option(parser)
    parser.add_argument("--to", metavar="MESH", help="another mesh to bring it to, of the ranks after those of --mesh")


def placed_arguments(parser: ArgumentParser) -> None:
    program_arguments(parser)
    parser.add_argument("--rank", type=int, default=0, metavar="N", help="whose own program (%(default)s)")


def schedule_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", help="FThenB or 1F1B; or a run folder, for what the run measured")
    parser.add_argument("--stages", type=int, default=4, metavar="N", help="of the pipeline (%(default)s)")
    parser.add_argument("--micro", type=int, default=8, metavar="N", help="micro-batches of a step (%(default)s)")
    parser.add_argument("--backward", type=int, default=2, metavar="N",
                        help="how long a backward job takes, where a forward job takes 1 (%(default)s)")


def _mesh_option(parser: ArgumentParser) -> None:
    parser.add_argument("--mesh", required=True, help="axes and their sizes, outermost first, such as dp=2,tp=2")


# ------------------------------------------------------------------------------------------------------ things
def mesh(given: Namespace) -> Picture:
    found = _mesh(given.mesh)
    lines = [f"rank {rank}: " + ", ".join(f"{n} {i}" for n, i in zip(found.names, found.coordinate(rank), strict=True))
             for rank in found.process_ids]
    return viz.mesh(found), "\n".join(lines)


def tensor(given: Namespace) -> Picture:
    from minipd.viz.dist.cut import Cut
    from minipd.viz.dist.notation import parse_sharding
    on = _mesh(given.mesh)
    t = parse_sharding(given.tensor, on)
    cut = Cut.of(t.shape, on, t.placements, t.dtype)
    lines = [f"rank {rank}: {cut.local(rank)} from {', '.join(str([*offsets]) for _, offsets in cut.windows(rank))} "
             f"{cut.part(rank)}".rstrip() for rank in on.process_ids]
    return viz.sharding(t.shape, on, t.placements, t.dtype, t.name), "\n".join(lines)


def reshard(given: Namespace) -> Picture:
    from minipd.viz.dist.notation import parse_sharding
    from minipd.viz.dist.reshard import told
    on = _mesh(given.mesh)
    to = None if given.to is None else _mesh(given.to, on.size)
    src, dst = parse_sharding(given.source, on), parse_sharding(given.target, to or on)
    if (src.shape, src.dtype) != (dst.shape, dst.dtype):
        raise InputError(f"the same tensor twice, {src.dtype} {list(src.shape)}", f"{dst.dtype} {list(dst.shape)}",
                         "only the sharding may differ")
    return (viz.reshard(src.shape, on, src.placements, dst.placements, src.dtype, src.name, to),
            told(src.shape, on, src.placements, dst.placements, src.dtype, to))


def placed(given: Namespace) -> Picture:
    from minipd.viz.dist.placed import placed_text
    program = program_of(given)
    try:
        return viz.placed(program, given.rank), placed_text(program, given.rank)
    except ValueError as error:
        raise InputError("a program that marks its inputs with shard_tensor, and a rank of its mesh",
                         f"{given.what}, rank {given.rank} ({error})", "mark them, or name another rank") from None


def schedule(given: Namespace) -> Picture:
    from minipd.parallel.pipeline.schedule import SCHEDULES
    from minipd.parallel.pipeline.schedule import schedule as jobs_of
    if given.what not in SCHEDULES:
        return _measured(given.what, list(SCHEDULES))
    for option, least in (("stages", 1), ("micro", 1), ("backward", 1)):
        if getattr(given, option) < least:
            raise InputError(f"--{option} of at least {least}", str(getattr(given, option)), "raise it")
    jobs = jobs_of(given.what, given.stages, given.micro)
    costs = {"forward": 1, "backward": given.backward, "optimizer": 1}
    title = f"{given.what}, {given.stages} stages, {given.micro} micro-batches"
    lines = [f"stage {i}: {' '.join(map(str, stage))}" for i, stage in enumerate(jobs)]
    return viz.schedule(jobs, costs, title), "\n".join(lines)


def _measured(what: str, names: list[str]) -> Picture:
    file = Path(what)
    file = file / "timeline.json" if file.is_dir() else file
    if not file.exists():
        raise InputError(f"{' or '.join(names)}, or a run folder with a timeline.json", what,
                         "only runs with a pipeline (a mesh with pp) have one")
    try:
        records = json.loads(file.read_text())
        picture = viz.timeline(records, f"measured step of {what}")
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError("the timeline of a run", f"{file} ({reason(error)})", "name a run folder") from None
    lines = [f"rank {r['rank']}: {r['type']} {r['micro']} from {1000 * r['start']:.3f} to {1000 * r['end']:.3f} ms"
             for r in records]
    return picture, "\n".join(lines)


def _mesh(text: str, first: int = 0) -> Any:
    """The mesh that a text describes, its ranks numbered from `first`."""
    from minipd.dist.mesh import ProcessMesh, parse_mesh
    try:
        found = parse_mesh(text)
        return ProcessMesh(found.mesh + first, found.dim_names)
    except ValueError as error:
        raise InputError("a mesh such as dp=2,tp=2", repr(text), str(error)) from None
