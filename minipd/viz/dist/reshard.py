"""Drawing a reshard: what the ranks hold before, after each step, and in the end; and what each step sends.

On one mesh a step is a collective along an axis, or nothing to send, or messages from rank to rank, as it is from one
mesh to another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.dist.reshard import cost
from minipd.dist.reshard.across import Message, exchanged
from minipd.dist.reshard.between import plan_between
from minipd.dist.reshard.plan import Plan, plan
from minipd.dist.reshard.steps import Step
from minipd.viz.dist.cut import Cut
from minipd.viz.dist.sharding import cell_of, draw_holders
from minipd.viz.svg import Sheet, Svg

__all__ = ["reshard", "sent", "told"]

GAP, BESIDE = 74, 18            # pixels between rows of ranks, and between ranks
ACTIONS = {"slice": "each rank keeps its slice", "keep": "the first rank keeps it, the others take nothing",
           "pad": "each rank puts its chunk among what adds nothing"}


def reshard(shape: Sequence[Any], mesh: ProcessMesh, src: Sequence[Placement], dst: Sequence[Placement],
            dtype: Any = "float32", name: str = "", to: ProcessMesh | None = None) -> Svg:
    """The picture of the plan that brings a tensor from placements `src` on a mesh to `dst`, there or on the mesh `to`.

    Raises: TypeError or ValueError for placements that do not fit.

    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Partial, Shard
    >>> reshard((4, 6), parse_mesh("tp=2"), [Partial()], [Shard(0)])
    <Svg 'reshard f32[4, 6]{P_tp} -> f32[4_tp, 6]', ...>
    """
    found = states(shape, mesh, src, dst, dtype, to)
    sheet = Sheet(f"reshard {found[0].cut.text} -> {found[-1].cut.text}")
    y = 0.0
    for i, state in enumerate(found):
        crosses = i + 1 < len(found) and bool(found[i + 1].messages)
        if state.messages:
            y = _messages(sheet, found[i - 1].cut, state, y)
            continue
        y = _arrow(sheet, state.words, y) if i else y
        sheet.text(0, y, state.cut.named(name), "mono", 13)
        if not crosses:                         # else the ranks stand in a row, from which the messages go
            holders = Sheet("")
            draw_holders(holders, state.cut)
            sheet.place(holders, 0, y + 14)
            y += 14 + holders.height
    if len(found) == 1:
        sheet.text(0, y + 16, "nothing to do", "dim", 11)
    return sheet.done()


def told(shape: Sequence[Any], mesh: ProcessMesh, src: Sequence[Placement], dst: Sequence[Placement],
         dtype: Any = "float32", to: ProcessMesh | None = None) -> str:
    """The plan as text, a line per step with what it sends.

    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Partial, Shard
    >>> print(told((4, 6), parse_mesh("tp=2"), [Partial()], [Shard(0)]))
    reduce_scatter over tp: each rank sends 48 B, 96 B in all; then f32[4_tp, 6]
    """
    stages = states(shape, mesh, src, dst, dtype, to)[1:]
    return "\n".join(f"{': '.join(stage.words)}; then {stage.cut.text}" for stage in stages) or "nothing to do"


class State(NamedTuple):
    """What everybody holds, and the step that has led there: in words, and as messages if it was to another mesh."""

    cut: Cut
    words: list[str]
    messages: tuple[Message, ...] = ()


def states(shape: Sequence[Any], mesh: ProcessMesh, src: Sequence[Placement], dst: Sequence[Placement], dtype: Any,
           to: ProcessMesh | None) -> list[State]:
    """The states of a reshard, from the first to the last."""
    cut, goal = Cut.of(shape, mesh, src, dtype), Cut.of(shape, to or mesh, dst, dtype)
    if any(p.is_shard() for p in goal.placements) and not any(p.is_shard() for p in cut.placements):
        cut = goal.after(cut.placements, mesh)              # show the dimension that will be split
    if to is None or to == mesh:
        return [State(cut, []), *_steps(cut, plan(cut.placements, goal.placements, mesh, len(cut.shape), cut.shape))]
    if cut.dtype is None or not all(isinstance(d, int) for d in cut.shape):
        raise ValueError(f"reshard to another mesh: expected a dtype, and sizes that are numbers, got {cut.text}; draw "
                         "it with those of a run")
    between = plan_between(mesh, cut.placements, to, goal.placements, cut.shape)
    there = cut.after(between.there.src, to)
    messages = between.messages or tuple(Message(b.root, r, cut.shape, (0,) * len(cut.shape))
                                         for b in between.broadcasts for r in b.group[1:])
    words = ["broadcast to the other mesh" if between.broadcasts else "send to the other mesh", _counted(messages, cut)]
    return [State(cut, []), *_steps(cut, between.here), State(there, words, messages), *_steps(there, between.there)]


def _counted(messages: Sequence[Message], cut: Cut) -> str:
    """How many messages those between different ranks are, and how much."""
    amounts = [math.prod(m.shape) * cut.dtype.itemsize for m in messages if m.src != m.dst]     # type: ignore[union-attr]
    return f"{len(amounts)} message{'s' * (len(amounts) != 1)}, {size_text(sum(amounts))} in all"


def _steps(cut: Cut, steps: Plan) -> list[State]:
    found = []
    for step, before, after in steps.stages:
        now, cut = cut, cut.after(after)
        if isinstance(step, Step):
            found.append(State(cut, said(step, now)))
        else:
            messages = exchanged(tuple(cut.shape), cut.mesh, before, after)
            found.append(State(cut, ["exchange among the ranks", _counted(messages, now)], messages))
    return found


def _messages(sheet: Sheet, before: Cut, stage: State, y: float) -> float:
    """Messages as arrows between two rows of ranks; returns where they end."""
    y += 14
    rows = [(before, y), (stage.cut, y + cell_of(before).height + GAP)]
    middles: list[dict[int, float]] = []
    for cut, top in rows:
        cell = cell_of(cut)
        step = max(cell.width + BESIDE, 76)
        middles.append({rank: i * step + cell.width / 2 for i, rank in enumerate(cut.mesh.process_ids)})
        for i, rank in enumerate(cut.mesh.process_ids):
            cell.draw(sheet, rank, i * step, top)
    bottom = y + cell_of(before).height
    right = max(middles[0].values()) + cell_of(before).width / 2 + 30
    sheet.text(right, y + 20, stage.words[0], "bold")
    sheet.text(right, y + 36, stage.words[1], "dim", 11)
    for m in stage.messages:
        tip = f"rank {m.src} to rank {m.dst}: {list(m.shape)} from {list(m.offsets)}"
        kind = "wire dash" if m.src == m.dst else "second"
        sheet.line([(middles[0][m.src], bottom + 2), (middles[1][m.dst], bottom + GAP - 3)], kind, arrow=True, tip=tip)
    end = rows[1][1] + cell_of(stage.cut).height
    sheet.text(0, end + 24, stage.cut.text, "mono", 13)
    return end + 30


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
    if cut.dtype is None or not all(isinstance(d, int) for d in cut.shape):
        return [f"{step.action} over {axis}", "how much is sent depends on the sizes"]
    amounts = list(sent(step, cut.shape, cut.mesh, cut.placements, cut.dtype.itemsize).values())
    most = f"{'at most ' if len(set(amounts)) > 1 else ''}{size_text(max(amounts))}"
    return [f"{step.action} over {axis}", f"each rank sends {most}, {size_text(sum(amounts))} in all"]


def sent(step: Step, shape: Sequence[int], mesh: ProcessMesh, before: Sequence[Placement],
         itemsize: int) -> dict[int, int]:
    """The bytes that each rank gives to others in a step; exact for uneven chunks too (see `dist/reshard/cost.py`).

    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Replicate, Shard
    >>> sent(Step(0, Shard(0), Replicate()), (5, 8), parse_mesh("tp=4"), [Shard(0)], 4)
    {0: 192, 1: 192, 2: 96, 3: 0}
    """
    return {rank: itemsize * cost.sent(step, tuple(before), mesh, shape, rank) for rank in mesh.process_ids}


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
