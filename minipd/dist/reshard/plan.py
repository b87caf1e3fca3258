"""The plan of a reshard: which mesh axis changes when, from one set of placements to another on the same mesh.

A step changes one axis, by one collective or by none:

    R -> S   slice                 P -> R   all_reduce          R -> P   keep: one rank keeps the value, the others
    S -> R   all_gather            P -> S   reduce_scatter                add nothing to it
    S -> S'  all_to_all            (S -> P, P -> P': through R)

Not every order is right.  Where several axes split one dimension, the outer axis splits first (see `sharding.py`), so
a rank's chunk along the inner axis is a part of its chunk along the outer one.  Splitting or gathering a dimension over
an axis is therefore right only while no axis *further in* splits that dimension: else rows are permuted, and no shape
would tell.  Likewise a sum of maxima is no maximum of sums: with Partials of two kinds, the inner one is reduced first.

Among the right orders, the plan takes the one with the fewest collectives, then the fewest bytes: so slices that cost
nothing come before collectives that they make smaller.  With a few placements per axis it is found by search.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Replicate, Shard, check_placements

__all__: list[str] = []

Placements = tuple[Placement, ...]


class Plan(tuple["Step", ...]):
    """The steps of a reshard, in order; and, for a picture, what it starts from.

    src, dst: the placements at the beginning and in the end.  ndim: how many dimensions the tensor has.
    """

    src: Placements
    dst: Placements
    mesh: ProcessMesh
    ndim: int

    @classmethod
    def of(cls, steps: Sequence[Step], src: Placements, dst: Placements, mesh: ProcessMesh, ndim: int) -> Plan:
        self = cls(steps)
        self.src, self.dst, self.mesh, self.ndim = src, dst, mesh, ndim
        return self


class Step(NamedTuple):
    """One mesh axis goes from placement `src` to `dst`.

    >>> Step(1, Partial(), Shard(0)).action
    'reduce_scatter'
    """

    axis: int
    src: Placement
    dst: Placement

    @property
    def action(self) -> str:
        """The collective, or what is done without one: "slice" or "keep"."""
        return _ACTIONS[type(self.src), type(self.dst)]


_ACTIONS: dict[tuple[type, type], str] = {
    (Replicate, Shard): "slice", (Replicate, Partial): "keep",
    (Shard, Replicate): "all_gather", (Shard, Shard): "all_to_all",
    (Partial, Replicate): "all_reduce", (Partial, Shard): "reduce_scatter",
}
COLLECTIVES = ("all_gather", "all_to_all", "all_reduce", "reduce_scatter")


@functools.lru_cache(maxsize=4096)
def plan(src: Placements, dst: Placements, mesh: ProcessMesh, ndim: int) -> Plan:
    """The steps that bring a tensor of `ndim` dimensions from placements `src` to `dst`; () if there is nothing to do.

    Axes of size 1 need none: a lone rank holds the same whatever its placement is called.

    >>> from minipd.dist.mesh import parse_mesh
    >>> mesh = parse_mesh("dp=2,tp=2")
    >>> print(describe(plan((Partial(), Replicate()), (Replicate(), Shard(0)), mesh, 2), mesh))
    tp: Replicate() -> Shard(dim=0)  (slice)
    dp: Partial(reduce_type=SUM) -> Replicate()  (all_reduce)
    """
    start, goal = check_placements(src, mesh, ndim, "reshard from"), check_placements(dst, mesh, ndim, "reshard to")
    start = tuple(q if size == 1 else p for p, q, size in zip(start, goal, mesh.sizes, strict=True))
    # Dijkstra's search.  The count breaks ties between equally dear paths in the order in which they were found.
    queue: list[tuple[int, Fraction, int, int, Placements, tuple[Step, ...]]] = [(0, Fraction(0), 0, 0, start, ())]
    done: set[Placements] = set()
    found = 0
    while queue:
        count, volume, free, _, now, steps = heapq.heappop(queue)
        if now == goal:
            return Plan.of(steps, start, goal, mesh, ndim)
        if now in done:
            continue
        done.add(now)
        for step in _right_steps(now, goal, mesh):
            after = now[:step.axis] + (step.dst,) + now[step.axis + 1:]
            found += 1
            dear = step.action in COLLECTIVES
            heapq.heappush(queue, (count + dear, volume + _volume(step, now, mesh), free + (not dear), found, after,
                                   (*steps, step)))
    raise AssertionError(f"reshard {src} -> {dst}: through Replicate everywhere there is always a way")


def _right_steps(now: Placements, goal: Placements, mesh: ProcessMesh) -> Iterator[Step]:
    """The steps that may come next: an axis goes to where it shall be, or is gathered first."""
    for axis, p in enumerate(now):
        targets = [goal[axis]] if isinstance(p, Replicate) else [goal[axis], Replicate()]
        for q in targets:
            if p is q or (type(p), type(q)) not in _ACTIONS:
                continue
            if not any(_must_go_first(r, p, q) for r in now[axis + 1:]):
                yield Step(axis, p, q)


def _must_go_first(inner: Placement, src: Placement, dst: Placement) -> bool:
    """Whether an axis further in, placed as `inner`, forbids a step from `src` to `dst`."""
    if isinstance(inner, Shard):
        return inner in (src, dst)
    if isinstance(inner, Partial) and isinstance(src, Partial):
        return inner is not src and not {inner.op, src.op} <= {"sum", "avg"}
    return False


def _volume(step: Step, now: Placements, mesh: ProcessMesh) -> Fraction:
    """What one rank sends in a step, as a fraction of the whole tensor (ring algorithms; even splits)."""
    local = Fraction(1)
    for p, size in zip(now, mesh.sizes, strict=True):
        if isinstance(p, Shard):
            local /= size
    ways = mesh.sizes[step.axis]
    others = Fraction(ways - 1, ways)
    return {"all_reduce": 2 * others * local, "reduce_scatter": others * local, "all_to_all": others * local,
            "all_gather": (ways - 1) * local}.get(step.action, Fraction(0))


def collectives(steps: Sequence[Step]) -> tuple[str, ...]:
    """The names of the collectives in a plan, in order."""
    return tuple(s.action for s in steps if s.action in COLLECTIVES)


def describe(steps: Sequence[Step], mesh: ProcessMesh) -> str:
    """The plan as text, a line per step."""
    return "\n".join(f"{mesh.names[s.axis]}: {s.src!r} -> {s.dst!r}  ({s.action})" for s in steps) or "nothing to do"
