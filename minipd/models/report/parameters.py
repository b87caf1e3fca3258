"""The table of parameters: where each lies, equal ones of several layers in one line."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from minipd.models.report.run import Parameter
from minipd.viz.dist.cut import Cut
from minipd.viz.dist.reshard import size_text
from minipd.viz.dist.sharding import thumbnail
from minipd.viz.svg import Svg

__all__ = ["Row", "Stage", "stages"]


class Row(NamedTuple):
    """Parameters of one shape, placed alike.  name: with `*` where their names have the numbers `layers`."""

    name: str
    layers: str
    notation: str
    local: str
    bytes: str
    picture: Svg


class Stage(NamedTuple):
    """The parameters on one set of ranks, and how many bytes of them each rank holds (at most)."""

    ranks: str
    rows: list[Row]
    bytes: str


def stages(parameters: list[Parameter]) -> list[Stage]:
    """The parameters by the ranks that hold them, in order."""
    by_ranks: dict[tuple[int, ...], list[Parameter]] = {}
    for p in parameters:
        by_ranks.setdefault(tuple(sorted(p.mesh.process_ids)), []).append(p)
    return [Stage(" ".join(map(str, ranks)), _rows(mine), size_text(most_bytes(mine)))
            for ranks, mine in sorted(by_ranks.items())]


def most_bytes(parameters: list[Parameter]) -> int:
    """The most bytes of these parameters that one rank holds."""
    held: dict[int, int] = {}
    for p in parameters:
        cut = _cut(p)
        for rank in p.mesh.process_ids:
            held[rank] = held.get(rank, 0) + sum(math.prod(n) for n, _ in cut.windows(rank)) * p.dtype.itemsize
    return max(held.values(), default=0)


def _cut(p: Parameter) -> Cut:
    return Cut.of(p.shape, p.mesh, p.placements, p.dtype)


def _rows(parameters: list[Parameter]) -> list[Row]:
    alike: dict[tuple, list[Parameter]] = {}
    for p in parameters:
        alike.setdefault((pattern(p.name), p.shape, p.dtype, p.mesh, p.placements), []).append(p)
    rows = []
    for (name, *_), group in alike.items():
        cut = _cut(group[0])
        locals_ = list(dict.fromkeys(cut.local(rank) for rank in cut.mesh.process_ids))
        rows.append(Row(name, ranges([n for p in group for n in numbers(p.name)]), cut.text,
                        " or ".join(locals_), size_text(most_bytes([group[0]])), thumbnail(cut)))
    return rows


def pattern(name: str) -> str:
    """A name without its numbers.

    >>> pattern("llama.layers.12.mlp.up_proj.weight")
    'llama.layers.*.mlp.up_proj.weight'
    """
    return re.sub(r"(?<=\.)\d+(?=\.)", "*", name)


def numbers(name: str) -> list[int]:
    """The numbers in a name."""
    return list(map(int, re.findall(r"(?<=\.)\d+(?=\.)", name)))


def ranges(found: list[int]) -> str:
    """Numbers, with those that follow each other as one range.

    >>> ranges([0, 1, 2, 3, 5, 7, 8]), ranges([4]), ranges([])
    ('0 to 3, 5, 7, 8', '4', '')
    """
    runs: list[list[int]] = []
    for number in found:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)
