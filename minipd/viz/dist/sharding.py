"""Drawing a sharded tensor: how it is cut, and which rank holds which piece.

On the left the whole tensor, cut where mesh axes split it, true to size; on the right the ranks in their grid, each
with its piece at its place.  Equal colours are equal pieces.  Of a `Partial` tensor, a rank holds one part of a sum.

At most two dimensions are drawn as a plane; where more are split, several such planes stand beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.dist.sharding import split_axes
from minipd.framework.tensor import Tensor
from minipd.viz.dist.cut import Cut
from minipd.viz.dist.mesh import draw_ranks, place
from minipd.viz.style import text_width
from minipd.viz.svg import Sheet, Svg

__all__ = ["Cell", "cell_of", "draw_holders", "draw_small", "sharding", "tensor", "thumbnail"]

LINE = 18.0                     # the least height in which words stand
SMALL = 0.34                    # how much smaller a rank's picture is


def tensor(x: Any, name: str = "") -> Svg:
    """The picture of a distributed tensor (or of a value of a completed program: anything with mesh and placements).

    Raises: TypeError for what is not distributed.
    """
    held = x
    if isinstance(x, Tensor):
        held = x.payload
    elif callable(getattr(x, "type", None)):            # a value of a program says it in its type
        held = x.type()
    if not hasattr(held, "placements"):
        raise TypeError(f"tensor: expected a distributed tensor, got {x!r}; make it one with shard_tensor")
    return sharding(held.shape, held.mesh, held.placements, held.dtype, name)


def sharding(shape: Sequence[Any], mesh: ProcessMesh, placements: Sequence[Placement], dtype: Any = "float32",
             name: str = "") -> Svg:
    """The picture of how a tensor is spread over a mesh.

    Raises: TypeError or ValueError for placements that do not fit.

    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Shard
    >>> sharding((5, 8), parse_mesh("tp=4"), [Shard(0)])
    <Svg 'f32[5_tp, 8]', ...>
    """
    cut = Cut.of(shape, mesh, placements, dtype)
    said = cut.named(name)
    sheet = Sheet(said)
    sheet.text(0, 0, said, "mono", 13)
    sheet.text(0, 18, f"on mesh {', '.join(f'{n} = {s}' for n, s in zip(mesh.names, mesh.sizes, strict=True))}", "dim",
               11)
    whole, holders = Sheet(""), Sheet("")
    _whole(whole, cut)
    _sides(whole, cut)
    draw_holders(holders, cut)
    sheet.place(whole, 0, 36)
    sheet.place(holders, whole.width + 44, 36)
    return sheet.done()


def thumbnail(cut: Cut) -> Svg:
    """The whole tensor, cut, small enough for a line of a table."""
    sheet = Sheet(cut.text)
    draw_small(sheet, cut)
    return sheet.done(margin=2)


def draw_small(sheet: Sheet, cut: Cut) -> None:
    """The whole tensor, cut, as `thumbnail` shows it."""
    _whole(sheet, cut, 0.36)


def _whole(sheet: Sheet, cut: Cut, scale: float = 1) -> None:
    """The whole tensor, cut."""
    width, height = (max(side * scale, LINE) for side in cut.extent())
    levels = cut.levels
    for k, offsets in enumerate(levels):
        at = k * (width + 26)
        sheet.rect(at, 0, width, height, "region", radius=0)
        if cut.planes:
            words = ", ".join(f"dim {d} from {o}" for d, o in zip(cut.planes, offsets, strict=True))
            sheet.text(at + width / 2, height + 15, words, "mid dim", 10)
    for window, ranks in cut.pieces.items():
        if 0 in window[0]:
            continue
        level, x, y, w, h = cut.box(window, width, height)
        x += level * (width + 26)
        words = " ".join(map(str, ranks))
        names = f"rank{'s' * (len(ranks) > 1)} {words}"
        sheet.rect(x, y, w, h, cut.colour(window), f"{names}: {cut.local(ranks[0])}", 0)
        for lines in ([names], [words], wrap(words, max(int((w - 4) / text_width("0", 11)), 1))):
            if max(text_width(line, 11) for line in lines) < w - 4 and 13 * len(lines) < h:
                for i, line in enumerate(lines):
                    sheet.text(x + w / 2, y + h / 2 + 4 + 13 * (i - (len(lines) - 1) / 2), line, "mid", 11)
                break


def _sides(sheet: Sheet, cut: Cut) -> None:
    """What the sides are: the dimension, its size, the axes that split it, and into what."""
    width, height = cut.extent()
    for d, down in ((cut.across, False), (cut.down, True)):
        if d is None:
            continue
        chunks = sorted({(o[d], s[d]) for s, o in cut.pieces})
        axes = [split_text(cut, axis) for axis in split_axes(cut.placements, d)]
        lines = [f"dim {d}: {cut.shape[d]}"]
        if axes:
            lines.append("over " + ", then ".join(axes))
            sizes = [n for _, n in chunks]
            if isinstance(cut.shape[d], int) and len(sizes) > 4 and len(set(sizes)) == 1:
                lines.append(f"{len(sizes)} x {sizes[0]}")
            elif isinstance(cut.shape[d], int) and len(sizes) <= 8:
                lines.append(" + ".join(map(str, sizes)))
        if down:
            for i, line in enumerate(lines):
                sheet.text(-10, height / 2 - 7 * len(lines) + 10 + i * 14, line, "end dim", 11)
        else:
            words = lines[0] + (f" {lines[1]}" if axes else "") + (f" = {lines[2]}" if len(lines) > 2 else "")
            sheet.text(width / 2, -8, words, "mid dim", 11)


def split_text(cut: Cut, axis: int) -> str:
    """The axis that splits a dimension, with what it splits where that is each of several parts."""
    factor = cut.placements[axis].factor                    # type: ignore[attr-defined]
    return cut.mesh.names[axis] + (f" (each of {factor} parts)" if factor > 1 else "")


class Cell(NamedTuple):
    """How large the picture of what one rank holds is, and what draws it: (sheet, rank, x, y)."""

    width: float
    height: float
    draw: Callable[[Sheet, int, float, float], None]


def draw_holders(sheet: Sheet, cut: Cut) -> None:
    """The ranks in their grid, each with what it holds of the tensor."""
    draw_ranks(sheet, cut.mesh, *cell_of(cut))


def cell_of(cut: Cut) -> Cell:
    """The picture of a rank with its piece at its place."""
    width, height = (side * SMALL for side in cut.extent())
    levels = len(cut.levels)
    across = levels * width + (levels - 1) * 6
    words = max((text_width(said, 10) for r in cut.mesh.process_ids for said in (cut.local(r), cut.part(r))), default=0)
    wide = max(across, words * 1.12, 46) + 16
    tall = height + 40 + (14 if any(map(cut.part, cut.mesh.process_ids)) else 0)

    def draw(on: Sheet, rank: int, x: float, y: float) -> None:
        part = cut.part(rank)
        on.rect(x, y, wide, tall, "card", f"rank {rank}: {place(cut.mesh, rank)}", 5)
        on.text(x + 8, y + 14, f"rank {rank}", "", 11)
        left, top = x + (wide - across) / 2, y + 21
        for k in range(levels):
            on.rect(left + k * (width + 6), top, width, height, "bare region", radius=0)
        for window in cut.windows(rank):
            if 0 in window[0]:
                continue
            level, dx, dy, w, h = cut.box(window, width, height)
            kind = cut.colour(window) + (" dash" if part else "")
            on.rect(left + level * (width + 6) + dx, top + dy, w, h, kind, radius=0)
        on.text(x + wide / 2, y + height + 33, cut.local(rank), "mid mono", 10)
        if part:
            on.text(x + wide / 2, y + height + 47, part, "mid dim", 10)

    return Cell(wide, tall, draw)
