"""Drawing a process mesh: the ranks in their grid, and who talks to whom along each axis.

The last axis runs to the right, the one before it down; further axes put such grids beside and below each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from minipd.dist.mesh import ProcessMesh
from minipd.viz.style import text_width
from minipd.viz.svg import Sheet, Svg

__all__ = ["draw_ranks", "mesh"]

NEAR, WIDE = 18, 34             # pixels between cells, and between grids of cells
HEAD = 18                       # room for the line that names a place along an axis
INKS = ("first", "second", "way")
GROUPS = 6                      # so many groups of an axis are named


class Grid(NamedTuple):
    """Where things stand: corners of the cells by rank, the whole extent."""

    corners: dict[int, tuple[float, float]]
    width: float
    height: float


def mesh(mesh: ProcessMesh, title: str = "") -> Svg:
    """The picture of a process mesh.

    >>> from minipd.dist.mesh import parse_mesh
    >>> mesh(parse_mesh("dp=2,tp=2"))
    <Svg 'mesh dp=2,tp=2', ...>
    """
    sheet = Sheet(title or f"mesh {mesh.text()}")
    sheet.text(0, 0, f"mesh {', '.join(f'{n} = {s}' for n, s in zip(mesh.names, mesh.sizes, strict=True))}", "bold")
    sheet.text(0, 16, f"{mesh.size} rank{'s' * (mesh.size > 1)}", "dim", 11)

    def cell(on: Sheet, rank: int, x: float, y: float) -> None:
        on.rect(x, y, 54, 34, "input", f"rank {rank}: {place(mesh, rank)}", 5)
        on.text(x + 27, y + 21, str(rank), "mid", 13)

    grid = Sheet("")
    height = draw_ranks(grid, mesh, 54, 34, cell, links=True)
    sheet.place(grid, 0, 30)
    y = 30 + height + 22
    for axis, name in enumerate(mesh.names):
        groups = list(dict.fromkeys(mesh.group(rank, axis) for rank in mesh.process_ids))
        more = f" and {len(groups) - GROUPS} more" if len(groups) > GROUPS else ""
        said = "   ".join(map(members, groups[:GROUPS])) + more
        if mesh.sizes[axis] > 1 and axis >= mesh.ndim - 2:
            sheet.line([(0, y - 4), (18, y - 4)], f"{INKS[axis % 3]} thick")
        sheet.text(26, y, f"{name} talks among   {said}" if mesh.sizes[axis] > 1 else f"{name}: nobody to talk to",
                   "dim", 11)
        y += 17
    return sheet.done()


def members(group: tuple[int, ...]) -> str:
    """The ranks of a group, those of a large one from the first to the last.

    >>> members((0, 1, 2)), members(tuple(range(0, 128, 8)))
    ('0 1 2', '0 8 16 ... 120')
    """
    names = list(map(str, group))
    return " ".join(names if len(names) <= 8 else [*names[:3], "...", names[-1]])


def place(mesh: ProcessMesh, rank: int) -> str:
    """`dp 0, tp 1`."""
    return ", ".join(f"{name} {i}" for name, i in zip(mesh.names, mesh.coordinate(rank), strict=True))


def draw_ranks(sheet: Sheet, mesh: ProcessMesh, width: float, height: float,
               cell: Callable[[Sheet, int, float, float], None], links: bool = False) -> float:
    """Draw a cell of that size for each rank, with the names of the places along the axes; returns the height.

    links: lines between neighbours.  cell: draws one, (sheet, rank, x, y).
    """
    grid = arrange(mesh, width, height)
    heads = _heads(sheet, mesh, grid, width, height)
    if links:
        _links(sheet, mesh, grid, width, height)
    for rank, (x, y) in grid.corners.items():
        cell(sheet, rank, x, y)
    return grid.height + heads


def arrange(mesh: ProcessMesh, width: float, height: float) -> Grid:
    """Corners of cells: axes alternate between right and down, from the last one outwards."""
    extent, steps = [width, height], [0.0] * mesh.ndim
    for out, axis in enumerate(reversed(range(mesh.ndim))):
        way, gap = out % 2, (NEAR if out < 2 else WIDE)
        if out >= 2 and way == 0:
            gap += HEAD
        if out >= 2 and way == 1:
            gap += HEAD * ((mesh.ndim + 1) // 2)
        steps[axis] = extent[way] + gap
        extent[way] = steps[axis] * mesh.sizes[axis] - gap
    corners = {}
    for rank in mesh.process_ids:
        at = [0.0, 0.0]
        for axis, i in enumerate(mesh.coordinate(rank)):
            at[(mesh.ndim - 1 - axis) % 2] += steps[axis] * i
        corners[rank] = (at[0], at[1])
    return Grid(corners, extent[0], extent[1])


def _heads(sheet: Sheet, mesh: ProcessMesh, grid: Grid, width: float, height: float) -> float:
    """Name the places along each axis, above and left of the grid; returns the height that this takes."""
    left, above = 0.0, 0.0
    for out, axis in enumerate(reversed(range(mesh.ndim))):
        words = [f"{mesh.names[axis]} {i}" for i in range(mesh.sizes[axis])]
        across = out % 2 == 0
        places: dict[tuple, list[tuple[float, float]]] = {}     # ranks that are level there, also along outer axes
        for rank in mesh.process_ids:
            at = mesh.coordinate(rank)
            places.setdefault(tuple(at[axis::-2]), []).append(grid.corners[rank])
        for (i, *_), members in places.items():
            word = words[i]
            x0, y0 = min(x for x, _ in members), min(y for _, y in members)
            if across:
                x1 = max(x for x, _ in members) + width
                sheet.text((x0 + x1) / 2, -7 - above, word, "mid dim" if out < 2 else "mid bold", 11)
            else:
                y1 = max(y for _, y in members) + height
                sheet.text(-8 - left, (y0 + y1) / 2 + 4, word, "end dim" if out < 2 else "end bold", 11)
        if across:
            above += HEAD
        else:
            left += max(text_width(word, 11) for word in words) + 12
    return above


def _links(sheet: Sheet, mesh: ProcessMesh, grid: Grid, width: float, height: float) -> None:
    """A line from each rank to the next along the two inner axes, which are seen as rows and columns."""
    for axis in range(mesh.ndim):
        for rank in mesh.process_ids:
            group = mesh.group(rank, axis)
            at = group.index(rank)
            if at + 1 == len(group) or mesh.ndim - 1 - axis > 2:
                continue
            (x0, y0), (x1, y1) = grid.corners[rank], grid.corners[group[at + 1]]
            kind = f"{INKS[axis % 3]} thick"
            out = mesh.ndim - 1 - axis
            if out == 0:
                sheet.line([(x0 + width, y0 + height / 2), (x1, y1 + height / 2)], kind)
            elif out == 1:
                sheet.line([(x0 + width / 2, y0 + height), (x1 + width / 2, y1)], kind)
