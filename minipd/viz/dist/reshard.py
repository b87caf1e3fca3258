"""Drawing a reshard: what the ranks hold before, after each step, and in the end; and what each step sends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.dist.reshard.plan import Step, plan
from minipd.dist.sharding import local_window
from minipd.viz.dist.sharding import Cut, draw_holders
from minipd.viz.svg import Sheet, Svg

__all__ = ["reshard", "sent", "told"]

ACTIONS = {"slice": "each rank keeps its slice", "keep": "the first rank keeps it, the others take nothing"}


def reshard(shape: Sequence[Any], mesh: ProcessMesh, src: Sequence[Placement], dst: Sequence[Placement],
            dtype: Any = "float32", name: str = "") -> Svg:
    """The picture of the plan that brings a tensor from placements `src` to `dst`.

    Raises: TypeError or ValueError for placements that do not fit.

    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Partial, Shard
    >>> reshard((4, 6), parse_mesh("tp=2"), [Partial()], [Shard(0)])
    <Svg 'reshard f32[4, 6]{P_tp} -> f32[4_tp, 6]', ...>
    """
    cut, goal = Cut.of(shape, mesh, src, dtype), Cut.of(shape, mesh, dst, dtype)
    if any(p.is_shard() for p in goal.placements) and not any(p.is_shard() for p in cut.placements):
        cut = goal.after(cut.placements)                    # show the dimension that will be split
    steps = plan(cut.placements, goal.placements, mesh, len(cut.shape))
    sheet = Sheet(f"reshard {cut.text} -> {goal.text}")
    y = _state(sheet, cut, f"{name}: " if name else "", 0)
    for step in steps:
        y = _arrow(sheet, said(step, cut), y)
        cut = cut.after(cut.placements[:step.axis] + (step.dst,) + cut.placements[step.axis + 1:])
        y = _state(sheet, cut, f"{name}: " if name else "", y)
    if not steps:
        sheet.text(0, y + 8, "nothing to do", "dim", 11)
    return sheet.done()


def told(shape: Sequence[Any], mesh: ProcessMesh, src: Sequence[Placement], dst: Sequence[Placement],
         dtype: Any = "float32") -> str:
    """The plan as text, a line per step with what it sends.

    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Partial, Shard
    >>> print(told((4, 6), parse_mesh("tp=2"), [Partial()], [Shard(0)]))
    reduce_scatter over tp: each rank sends 48 B, 96 B in all; then f32[4_tp, 6]
    """
    cut, lines = Cut.of(shape, mesh, src, dtype), []
    for step in plan(cut.placements, Cut.of(shape, mesh, dst, dtype).placements, mesh, len(cut.shape)):
        words = ": ".join(said(step, cut))
        cut = cut.after(cut.placements[:step.axis] + (step.dst,) + cut.placements[step.axis + 1:])
        lines.append(f"{words}; then {cut.text}")
    return "\n".join(lines) or "nothing to do"


def _state(sheet: Sheet, cut: Cut, name: str, y: float) -> float:
    """What everybody holds; returns where it ends."""
    sheet.text(0, y, name + cut.text, "mono", 13)
    holders = Sheet("")
    draw_holders(holders, cut)
    sheet.place(holders, 0, y + 14)
    return y + 14 + holders.height


def _arrow(sheet: Sheet, words: list[str], y: float) -> float:
    sheet.line([(14, y + 12), (14, y + 52)], "second thick", arrow=True)
    sheet.text(30, y + 30, words[0], "bold")
    sheet.text(30, y + 46, words[1], "dim", 11)
    return y + 78


def said(step: Step, cut: Cut) -> list[str]:
    """A step in words: what is done along which axis, and what that sends."""
    axis = cut.mesh.names[step.axis]
    if step.action in ACTIONS:
        return [f"{step.action} over {axis}", f"{ACTIONS[step.action]}; nothing is sent"]
    if not all(isinstance(d, int) for d in cut.shape):
        return [f"{step.action} over {axis}", "how much is sent depends on the sizes"]
    amounts = list(sent(step, cut.shape, cut.mesh, cut.placements, cut.dtype.itemsize).values())
    most = f"{'at most ' if len(set(amounts)) > 1 else ''}{size_text(max(amounts))}"
    return [f"{step.action} over {axis}", f"each rank sends {most}, {size_text(sum(amounts))} in all"]


def sent(step: Step, shape: Sequence[int], mesh: ProcessMesh, before: Sequence[Placement],
         itemsize: int) -> dict[int, int]:
    """The bytes that each rank sends in a step, by ring algorithms; exact for uneven chunks too.

    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Replicate, Shard
    >>> sent(Step(0, Shard(0), Replicate()), (5, 8), parse_mesh("tp=4"), [Shard(0)], 4)
    {0: 96, 1: 128, 2: 160, 3: 96}
    """
    after = [*before]
    after[step.axis] = step.dst
    found = {}
    for rank in mesh.process_ids:
        group = mesh.group(rank, step.axis)
        at = group.index(rank)
        holds = [_elements(local_window(shape, mesh, before, r)[0]) for r in group]
        gets = [_elements(local_window(shape, mesh, after, r)[0]) for r in group]
        if step.action == "all_gather":             # passes everything on but the chunk of the next, who has it
            elements = sum(holds) - holds[(at + 1) % len(group)]
        elif step.action == "reduce_scatter":       # sends every sum on but the one that ends here
            elements = sum(gets) - gets[at]
        elif step.action == "all_reduce":           # both, with even chunks
            elements = 2 * (len(group) - 1) * -(-holds[at] // len(group))
        elif step.action == "all_to_all":           # what it holds and will not hold
            elements = holds[at] - _overlap(shape, mesh, before, after, rank)
        else:
            elements = 0
        found[rank] = elements * itemsize
    return found


def _elements(shape: Sequence[int]) -> int:
    return math.prod(shape)


def _overlap(shape: Sequence[int], mesh: ProcessMesh, before: Sequence[Placement], after: Sequence[Placement],
             rank: int) -> int:
    """How many elements a rank holds before and after."""
    (n0, o0), (n1, o1) = (local_window(shape, mesh, p, rank) for p in (before, after))
    return math.prod(max(min(a + n, b + m) - max(a, b), 0) for a, n, b, m in zip(o0, n0, o1, n1, strict=True))


def size_text(n: float) -> str:
    """A number of bytes for people.

    >>> size_text(96), size_text(4096), size_text(3 << 20)
    ('96 B', '4 KiB', '3 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.3g} {unit}"
        n /= 1024
    raise AssertionError
