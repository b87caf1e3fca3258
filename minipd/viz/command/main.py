"""`minipd draw THING ...`: a picture of something, as a file whose path is printed; without --out,
what it shows as text on the screen, DOT text for a graph."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from minipd.viz.command import graphs, shards
from minipd.viz.ir.layers import Page
from minipd.viz.svg import Svg

__all__ = ["main"]


class Drawn(NamedTuple):
    """One thing to draw.  arguments: adds its own; draw: from the parsed ones, (the picture, its text)."""

    name: str
    about: str
    arguments: Callable[[argparse.ArgumentParser], None]
    draw: Callable[[argparse.Namespace], tuple[Svg | Page, str]]


THINGS = (
    Drawn("tape", "the recorded calls behind what a function returns", graphs.function_arguments, graphs.tape),
    Drawn("program", "operations, values, regions", graphs.layered_arguments, graphs.program),
    Drawn("matches", "where the rules of passes match in a program, or how near they come", graphs.matches_arguments,
          graphs.matches),
    Drawn("layers", "a program as a page (.html) of layers that open and close", graphs.program_arguments,
          graphs.layers),
    Drawn("memory", "where the buffers of a run lie in the arena", graphs.sizes_arguments, graphs.memory),
    Drawn("use-def", "who makes a value, and who reads it", graphs.value_arguments, graphs.use_def),
    Drawn("groups", "a program in its fusion groups", graphs.part_arguments, graphs.groups),
    Drawn("loops", "the loop nests of the fusion groups", graphs.program_arguments, graphs.loops),
    Drawn("steps", "how the loop nests came about: the nests after each primitive", graphs.program_arguments,
          graphs.steps),
    Drawn("mesh", "the ranks of a mesh", shards.mesh_arguments, shards.mesh),
    Drawn("tensor", "which rank holds which piece of a tensor", shards.tensor_arguments, shards.tensor),
    Drawn("reshard", "the steps from one sharding to another", shards.reshard_arguments, shards.reshard),
    Drawn("placed", "a program with its placements, and a rank's own program beside it", shards.placed_arguments,
          shards.placed),
    Drawn("schedule", "a pipeline: as planned, or as a run measured it", shards.schedule_arguments, shards.schedule),
)


def main(argv: list[str]) -> int:
    """Draw what the command line names; returns the exit status.

    `minipd draw FILE` is short for `minipd draw program FILE`.
    Raises: InputError for what cannot be drawn, naming it.
    """
    names = [thing.name for thing in THINGS]
    if argv and argv[0] not in names and not argv[0].startswith("-"):
        argv = ["program", *argv]
    given = parser().parse_args(argv)
    picture, text = given.draw(given)
    if given.out is None:
        print(text.rstrip("\n"))
    else:
        picture.save(given.out)
        print(given.out)
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="minipd draw", description="draw something that minipd makes")
    parts = top.add_subparsers(title="what to draw", metavar="THING", required=True)
    for thing in THINGS:
        part = parts.add_parser(thing.name, help=thing.about, description=f"draw {thing.about}")
        thing.arguments(part)
        part.add_argument("-o", "--out", type=Path, metavar="FILE.svg",
                          help="the picture (graphs: or FILE.dot; layers: FILE.html); without, text on the screen "
                               "(graphs: DOT text)")
        part.set_defaults(draw=thing.draw)
    return top
