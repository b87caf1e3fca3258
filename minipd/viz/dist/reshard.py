"""Drawing a reshard: what the ranks hold before, after each step, and in the end; and what each step sends.

On one mesh a step is a collective along an axis, or nothing to send, or messages from rank to rank, as it is from one
mesh to another.  Arrows show who gives what to whom, with the bytes; a dashed one is what stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.dist.reshard import cost
from minipd.dist.reshard.across import Message, exchanged
from minipd.dist.reshard.between import plan_between
from minipd.dist.reshard.plan import Plan, plan
from minipd.dist.reshard.steps import Step
from minipd.dist.sharding import ceil_chunk, local_shape
from minipd.viz.dist.cut import Cut
from minipd.viz.dist.sharding import cell_of, draw_holders
from minipd.viz.svg import Sheet, Svg

__all__ = ["flows", "reshard", "sent", "told"]

GAP, BESIDE = 92, 18            # pixels between rows of ranks, and between ranks
ROW = 8                         # so many ranks stand in a row
LABELS = 8                      # so many arrows are told how much they bring
ALONG = (0.2, 0.4, 0.6, 0.8)    # where on its arrow a label may stand: at the first place that is free
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
    # a few ranks stand in a row, so that arrows show who sends what to whom; many stand in their grid
    in_rows = all(state.cut.mesh.size <= ROW for state in found)
    y = _state(sheet, found[0].cut, name, 0.0, in_rows)
    for before, state in zip(found, found[1:], strict=False):
        if in_rows or state.messages:
            if not in_rows:
                y = _row(sheet, before.cut, y + 14)
            y = _arrows(sheet, before.cut, state, y)
        else:
            y = _arrow(sheet, state.words, y)
        y = _state(sheet, state.cut, name, y, in_rows or bool(state.messages), below=in_rows or bool(state.messages))
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
    """What everybody holds, and the step that has led there: in words; as messages if it was made of them; and how
    many bytes went from which rank to which."""

    cut: Cut
    words: list[str]
    messages: tuple[Message, ...] = ()
    flows: Mapping[tuple[int, int], int] = {}


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
    crossing = State(there, words, messages, _flows_of(messages, cut))
    return [State(cut, []), *_steps(cut, between.here), crossing, *_steps(there, between.there)]


def _counted(messages: Sequence[Message], cut: Cut) -> str:
    """How many messages those between different ranks are, and how much."""
    amounts = [math.prod(m.shape) * cut.dtype.itemsize for m in messages if m.src != m.dst]     # type: ignore[union-attr]
    return f"{len(amounts)} message{'s' * (len(amounts) != 1)}, {size_text(sum(amounts))} in all"


def _flows_of(messages: Sequence[Message], cut: Cut) -> dict[tuple[int, int], int]:
    """(src, dst) -> bytes, of what stays on a rank too."""
    found: dict[tuple[int, int], int] = {}
    for m in messages:
        found[m.src, m.dst] = found.get((m.src, m.dst), 0) + math.prod(m.shape) * cut.dtype.itemsize  # type: ignore
    return found


def _steps(cut: Cut, steps: Plan) -> list[State]:
    found = []
    for step, before, after in steps.stages:
        now, cut = cut, cut.after(after)
        if isinstance(step, Step):
            found.append(State(cut, said(step, now), (), _step_flows(step, now)))
        else:
            messages = exchanged(tuple(cut.shape), cut.mesh, before, after)
            found.append(State(cut, ["exchange among the ranks", _counted(messages, now)], messages,
                               _flows_of(messages, now)))
    return found


def _step_flows(step: Step, now: Cut) -> dict[tuple[int, int], int]:
    """What a step sends from whom to whom, if that can be said."""
    if now.dtype is None or not all(isinstance(d, int) for d in now.shape):
        return {}
    return flows(step, now.shape, now.mesh, now.placements, now.dtype.itemsize)


def _middles(cut: Cut) -> dict[int, float]:
    """Where the middle of each rank's picture is, if they stand in a row."""
    width = cell_of(cut).width
    return {rank: i * max(width + BESIDE, 76) + width / 2 for i, rank in enumerate(cut.mesh.process_ids)}


def _row(sheet: Sheet, cut: Cut, y: float) -> float:
    """The ranks in a row; returns where it ends."""
    cell = cell_of(cut)
    for rank, middle in _middles(cut).items():
        cell.draw(sheet, rank, middle - cell.width / 2, y)
    return y + cell.height


def _state(sheet: Sheet, cut: Cut, name: str, y: float, in_row: bool, below: bool = False) -> float:
    """What everybody holds, in words above the picture, or below it; returns where it ends."""
    if not below:
        sheet.text(0, y, cut.named(name), "mono", 13)
        y += 14
    if in_row:
        y = _row(sheet, cut, y)
    else:
        holders = Sheet("")
        draw_holders(holders, cut)
        sheet.place(holders, 0, y)
        y += holders.height
    if below:
        sheet.text(0, y + 20, cut.named(name), "mono", 13)
        y += 30
    return y


def _arrows(sheet: Sheet, before: Cut, state: State, y: float) -> float:
    """Who gives how much to whom, from a row of ranks that ends at y to one that begins where this returns.

    An arrow has the colour of what is sent, where that is a piece; of parts of a sum, of the piece that they become.
    """
    tops, ends = _middles(before), _middles(state.cut)
    right = max(tops.values()) + cell_of(before).width / 2 + 30
    sheet.text(right, y + 30, state.words[0], "bold")
    sheet.text(right, y + 46, state.words[1], "dim", 11)
    sends = {rank: sum(n for (src, dst), n in state.flows.items() if src == rank != dst) for rank in tops}
    top = y + 3
    if any(sends.values()):
        for rank, middle in tops.items():
            sheet.text(middle, y + 12, f"sends {size_text(sends[rank])}" if sends[rank] else "sends nothing", "mid dim", 9)
        top = y + 17
    shapes: dict[tuple[int, int], list[str]] = {}
    for m in state.messages:
        shapes.setdefault((m.src, m.dst), []).append(f"{list(m.shape)} from {list(m.offsets)}")
    stays = [rank for rank in ends if rank in tops and not (before.local(rank) == "nothing" and state.messages)]
    for rank in stays:
        if not state.messages or (rank, rank) in state.flows:
            tip = f"rank {rank} to rank {rank}: {', '.join(shapes.get((rank, rank), ['what it keeps']))}"
            sheet.line([(tops[rank], top), (ends[rank], y + GAP - 3)], "wire dash", arrow=True, tip=tip)
    labels = len(state.flows) <= LABELS
    taken: list[tuple[float, float]] = []
    for (src, dst), amount in state.flows.items():
        if src == dst or not amount:
            continue
        tip = f"rank {src} to rank {dst}: " + (", ".join(shapes[src, dst]) if state.messages else size_text(amount))
        whose, rank = (state.cut, dst) if before.part(src) else (before, src)
        kind = f"{whose.colour(whose.windows(rank)[0])} thick" if whose.local(rank) != "nothing" else "second thick"
        (x0, y0), (x1, y1) = (tops[src], top), (ends[dst], y + GAP - 3)
        sheet.line([(x0, y0), (x1, y1)], kind, arrow=True, tip=tip)
        if labels:
            text = size_text(amount)
            spots = [(x0 + (x1 - x0) * along, y0 + (y1 - y0) * along + 4) for along in ALONG]
            spot = next((at for at in spots if not any(_touch(at, other, text) for other in taken)), spots[0])
            taken.append(spot)
            sheet.text(*spot, text, "mid halo", 10)
    return y + GAP


def _touch(one: tuple[float, float], other: tuple[float, float], text: str) -> bool:
    """Whether labels as long as `text`, in the middle of these places, would cover each other."""
    return abs(one[0] - other[0]) < 6 * len(text) + 6 and abs(one[1] - other[1]) < 12


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


def flows(step: Step, shape: Sequence[int], mesh: ProcessMesh, before: Sequence[Placement],
          itemsize: int) -> dict[tuple[int, int], int]:
    """The bytes that go from one rank to another in a step: `sent`, told apart by who gets them.

    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Partial, Replicate, Shard
    >>> flows(Step(0, Shard(0), Replicate()), (3, 8), parse_mesh("tp=2"), [Shard(0)], 4)
    {(0, 1): 64, (1, 0): 32}
    >>> flows(Step(0, Partial(), Replicate()), (3, 8), parse_mesh("tp=2"), [Partial()], 4)
    {(0, 1): 96, (1, 0): 96}
    """
    if step.action in ACTIONS:
        return {}
    now = tuple(before)
    after = step.applied(now)
    found = {}
    for src in mesh.process_ids:
        group = mesh.group(src, step.axis)
        held = local_shape(shape, mesh, now, src)
        total = math.prod(held)
        for dst in group:
            if dst == src:
                continue
            if step.action == "all_gather":
                amount = total
            elif step.action == "all_reduce":           # the chunk that the other adds up, and the one added up here
                amount = sum(ceil_chunk(total, len(group), group.index(r))[0] for r in (src, dst))
            else:
                dim = step.dst.dim                      # type: ignore[attr-defined]
                kept = local_shape(shape, mesh, after, dst)[dim]
                amount = total // held[dim] * kept if total else 0
            found[src, dst] = amount * itemsize
    return found


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
